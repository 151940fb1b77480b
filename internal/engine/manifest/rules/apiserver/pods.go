package apiserver

import (
	"fmt"
	"maps"
	"reflect"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// pod checks the specification of a pod (ValidatePodSpec in pkg/apis/core/validation). claims are the volumeClaimTemplates of a StatefulSet:
// containers can mount them like volumes.
func (c *check) pod(at string, pod *corev1.PodSpec, claims []corev1.PersistentVolumeClaim) {
	volumes := c.volumes(at, pod.Volumes)
	for _, claim := range claims {
		volumes[claim.Name] = true
	}
	if len(pod.Containers) == 0 {
		c.refuse(at+"containers", "at least one container is required", "add it")
	}
	for i := range pod.InitContainers {
		c.container(fmt.Sprintf("%sinitContainers[%d].", at, i), &pod.InitContainers[i], pod, volumes)
	}
	for i := range pod.Containers {
		c.container(fmt.Sprintf("%scontainers[%d].", at, i), &pod.Containers[i], pod, volumes)
	}
	oneOf(c, at+"restartPolicy", pod.RestartPolicy, corev1.RestartPolicyAlways, corev1.RestartPolicyOnFailure, corev1.RestartPolicyNever)
	oneOf(c, at+"dnsPolicy", pod.DNSPolicy, corev1.DNSClusterFirst, corev1.DNSClusterFirstWithHostNet, corev1.DNSDefault, corev1.DNSNone)
	if pod.DNSPolicy == corev1.DNSNone && (pod.DNSConfig == nil || len(pod.DNSConfig.Nameservers) == 0) {
		c.refuse(at+"dnsConfig.nameservers", "dnsPolicy: None needs at least one", "add it, or change dnsPolicy")
	}
	if name := pod.ServiceAccountName; name != "" {
		if bad := validation.IsDNS1123Subdomain(name); len(bad) > 0 {
			c.refuse(at+"serviceAccountName", fmt.Sprintf("%q: %s", name, bad[0]), "change it")
		}
	}
	for _, key := range slices.Sorted(maps.Keys(pod.NodeSelector)) {
		if bad := slices.Concat(validation.IsQualifiedName(key), validation.IsValidLabelValue(pod.NodeSelector[key])); len(bad) > 0 {
			c.refuse(at+"nodeSelector", fmt.Sprintf("%s: %q is not a label: %s", key, pod.NodeSelector[key], bad[0]), "change it")
		}
	}
	for i := range pod.Tolerations {
		c.toleration(fmt.Sprintf("%stolerations[%d].", at, i), &pod.Tolerations[i])
	}
	c.spread(at, pod)
}

func (c *check) toleration(at string, t *corev1.Toleration) {
	known := []corev1.TolerationOperator{corev1.TolerationOpExists, corev1.TolerationOpEqual, corev1.TolerationOpLt, corev1.TolerationOpGt}
	switch {
	case t.Operator != "" && !slices.Contains(known, t.Operator):
		c.refuse(at+"operator", fmt.Sprintf("%q is not one of Exists, Equal", t.Operator), "write one of them")
	case t.Operator == corev1.TolerationOpExists && t.Value != "":
		c.refuse(at+"operator", "Exists has no value", "remove the value, or write Equal")
	case t.Operator != corev1.TolerationOpExists && t.Key == "":
		c.refuse(at+"operator", "a toleration without a key is one of all taints", "write operator: Exists, or add the key")
	case t.TolerationSeconds != nil && t.Effect != corev1.TaintEffectNoExecute:
		c.refuse(at+"effect", "tolerationSeconds is only for NoExecute", "remove it, or write NoExecute")
	}
	oneOf(c, at+"effect", t.Effect, corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute)
}

// spread checks the rules that say on which Nodes a pod runs.
func (c *check) spread(at string, pod *corev1.PodSpec) {
	for i, s := range pod.TopologySpreadConstraints {
		field := fmt.Sprintf("%stopologySpreadConstraints[%d].", at, i)
		c.need(field+"topologyKey", s.TopologyKey)
		c.need(field+"whenUnsatisfiable", string(s.WhenUnsatisfiable))
		oneOf(c, field+"whenUnsatisfiable", s.WhenUnsatisfiable, corev1.DoNotSchedule, corev1.ScheduleAnyway)
		if s.MaxSkew < 1 {
			c.refuse(field+"maxSkew", fmt.Sprintf("%d is less than 1", s.MaxSkew), "use 1 or more")
		}
	}
	a := pod.Affinity
	if a == nil {
		return
	}
	if a.PodAffinity != nil {
		of := a.PodAffinity
		c.terms(at+"affinity.podAffinity.", of.RequiredDuringSchedulingIgnoredDuringExecution, of.PreferredDuringSchedulingIgnoredDuringExecution)
	}
	if a.PodAntiAffinity != nil {
		of := a.PodAntiAffinity
		c.terms(at+"affinity.podAntiAffinity.", of.RequiredDuringSchedulingIgnoredDuringExecution, of.PreferredDuringSchedulingIgnoredDuringExecution)
	}
	if a.NodeAffinity != nil {
		c.nodeAffinity(at+"affinity.nodeAffinity.", a.NodeAffinity)
	}
}

const (
	must   = "requiredDuringSchedulingIgnoredDuringExecution"
	should = "preferredDuringSchedulingIgnoredDuringExecution"
)

func (c *check) terms(at string, required []corev1.PodAffinityTerm, preferred []corev1.WeightedPodAffinityTerm) {
	for i, t := range required {
		c.need(fmt.Sprintf("%s%s[%d].topologyKey", at, must, i), t.TopologyKey)
	}
	for i, t := range preferred {
		field := fmt.Sprintf("%s%s[%d].", at, should, i)
		c.weight(field+"weight", t.Weight)
		c.need(field+"podAffinityTerm.topologyKey", t.PodAffinityTerm.TopologyKey)
	}
}

func (c *check) weight(field string, n int32) {
	const most = 100
	if n < 1 || n > most {
		c.refuse(field, fmt.Sprintf("%d is not between 1 and %d", n, most), "change it")
	}
}

func (c *check) nodeAffinity(at string, a *corev1.NodeAffinity) {
	check := func(field string, t corev1.NodeSelectorTerm) {
		for i, e := range t.MatchExpressions {
			c.expression(fmt.Sprintf("%s.matchExpressions[%d].", field, i), string(e.Operator), e.Values, "In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")
		}
	}
	if a.RequiredDuringSchedulingIgnoredDuringExecution != nil {
		for i, t := range a.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
			check(fmt.Sprintf("%s%s.nodeSelectorTerms[%d]", at, must, i), t)
		}
	}
	for i, t := range a.PreferredDuringSchedulingIgnoredDuringExecution {
		c.weight(fmt.Sprintf("%s%s[%d].weight", at, should, i), t.Weight)
		check(fmt.Sprintf("%s%s[%d].preference", at, should, i), t.Preference)
	}
}

// volumes checks the volumes of a pod, and returns their names.
func (c *check) volumes(at string, volumes []corev1.Volume) map[string]bool {
	names := map[string]bool{}
	for i := range volumes {
		v, field := &volumes[i], fmt.Sprintf("%svolumes[%d].", at, i)
		if names[v.Name] {
			c.refuse(field+"name", "another volume has the name "+v.Name, "change one of them")
		}
		names[v.Name] = true
		c.label(field+"name", v.Name)
		if of := sources(v.VolumeSource); len(of) > 1 {
			c.refuse(field+of[1], "the volume is of another type, too: "+of[0], "make two volumes of it")
		}
		switch {
		case v.Secret != nil:
			c.need(field+"secret.secretName", v.Secret.SecretName)
		case v.ConfigMap != nil:
			c.need(field+"configMap.name", v.ConfigMap.Name)
		case v.PersistentVolumeClaim != nil:
			c.need(field+"persistentVolumeClaim.claimName", v.PersistentVolumeClaim.ClaimName)
		case v.Projected != nil:
			c.projected(field+"projected.", v.Projected)
		case v.CSI != nil:
			c.need(field+"csi.driver", v.CSI.Driver)
		case v.HostPath != nil:
			c.need(field+"hostPath.path", v.HostPath.Path)
			if of := v.HostPath.Type; of != nil {
				oneOf(
					c, field+"hostPath.type", *of, corev1.HostPathDirectoryOrCreate, corev1.HostPathDirectory, corev1.HostPathFileOrCreate,
					corev1.HostPathFile, corev1.HostPathSocket, corev1.HostPathCharDev, corev1.HostPathBlockDev,
				)
			}
		}
	}
	return names
}

// projected checks the tokens in a volume (validateProjectionSources).
func (c *check) projected(at string, v *corev1.ProjectedVolumeSource) {
	for i, s := range v.Sources {
		if t := s.ServiceAccountToken; t != nil && t.ExpirationSeconds != nil && *t.ExpirationSeconds < 600 {
			field := fmt.Sprintf("%ssources[%d].serviceAccountToken.expirationSeconds", at, i)
			c.refuse(field, fmt.Sprintf("%d is less than 10 minutes", *t.ExpirationSeconds), "use 600 or more")
		}
	}
}

// sources returns the fields that say of which type a volume is. A valid volume has one.
func sources(v corev1.VolumeSource) (names []string) {
	of := reflect.ValueOf(v)
	for i, f := range fieldsOf(of.Type()) {
		if !of.Field(i).IsNil() {
			names = append(names, f.name)
		}
	}
	return names
}
