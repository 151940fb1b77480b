package apiserver

import (
	"fmt"
	"maps"
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// pod checks the specification of a pod (ValidatePodSpec in pkg/apis/core/validation). claims are the volumeClaimTemplates of a StatefulSet:
// containers can mount them like volumes.
func (c *check) pod(at string, pod *corev1.PodSpec, claims []corev1.PersistentVolumeClaim) {
	volumes := c.volumes(at, pod.Volumes)
	for _, claim := range claims {
		volumes[claim.Name] = corev1.VolumeSource{} // of a claim
	}
	if len(pod.Containers) == 0 {
		c.refuse(at+"containers", "at least one container is required", "add it")
	}
	grace := int64(corev1.DefaultTerminationGracePeriodSeconds)
	if pod.TerminationGracePeriodSeconds != nil {
		grace = *pod.TerminationGracePeriodSeconds
	}
	for i := range pod.InitContainers {
		of, field := &pod.InitContainers[i], fmt.Sprintf("%sinitContainers[%d].", at, i)
		c.container(field, of, pod, volumes)
		c.handlers(field, of, grace, true)
	}
	for i := range pod.Containers {
		of, field := &pod.Containers[i], fmt.Sprintf("%scontainers[%d].", at, i)
		c.container(field, of, pod, volumes)
		c.handlers(field, of, grace, false)
	}
	c.hostPorts(at+"containers", pod.Containers)
	c.when(len(pod.EphemeralContainers) > 0, at+"ephemeralContainers", "can only be added to a pod that runs", "remove them")
	oneOf(c, at+"restartPolicy", pod.RestartPolicy, corev1.RestartPolicyAlways, corev1.RestartPolicyOnFailure, corev1.RestartPolicyNever)
	oneOf(c, at+"dnsPolicy", pod.DNSPolicy, corev1.DNSClusterFirst, corev1.DNSClusterFirstWithHostNet, corev1.DNSDefault, corev1.DNSNone)
	if pod.DNSPolicy == corev1.DNSNone && (pod.DNSConfig == nil || len(pod.DNSConfig.Nameservers) == 0) {
		c.refuse(at+"dnsConfig.nameservers", "dnsPolicy: None needs at least one", "add it, or change dnsPolicy")
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
	c.settings(at, pod)
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
	if t.Key != "" {
		c.qualified(at+"key", t.Key)
	}
	if t.Operator != corev1.TolerationOpExists {
		c.invalid(at+"operator", t.Value, validation.IsValidLabelValue(t.Value))
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
		c.spreadDetails(field, &s, pod.TopologySpreadConstraints[:i])
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

// spreadDetails checks what is optional in a constraint. earlier are those before it.
func (c *check) spreadDetails(at string, s *corev1.TopologySpreadConstraint, earlier []corev1.TopologySpreadConstraint) {
	between(c, at+"minDomains", s.MinDomains, 1, math.MaxInt32)
	c.when(
		s.MinDomains != nil && s.WhenUnsatisfiable == corev1.ScheduleAnyway, at+"minDomains",
		"is only for whenUnsatisfiable: DoNotSchedule", "remove it, or change whenUnsatisfiable",
	)
	isOneOf(c, at+"nodeAffinityPolicy", s.NodeAffinityPolicy, corev1.NodeInclusionPolicyHonor, corev1.NodeInclusionPolicyIgnore)
	isOneOf(c, at+"nodeTaintsPolicy", s.NodeTaintsPolicy, corev1.NodeInclusionPolicyHonor, corev1.NodeInclusionPolicyIgnore)
	c.labelSelector(at+"labelSelector", s.LabelSelector)
	c.labelKeys(at+"matchLabelKeys", s.MatchLabelKeys, s.LabelSelector)
	for _, e := range earlier {
		c.when(
			e.TopologyKey == s.TopologyKey && e.WhenUnsatisfiable == s.WhenUnsatisfiable, at+"topologyKey",
			fmt.Sprintf("another constraint has %s and %s", s.TopologyKey, s.WhenUnsatisfiable), "remove one of them",
		)
	}
}

// labelKeys checks the keys of labels whose values pods have to have in common.
func (c *check) labelKeys(at string, keys []string, selector *metav1.LabelSelector) {
	c.when(len(keys) > 0 && selector == nil, at, "needs labelSelector", "add it")
	for i, key := range keys {
		c.qualified(fmt.Sprintf("%s[%d]", at, i), key)
	}
}

const (
	must   = "requiredDuringSchedulingIgnoredDuringExecution"
	should = "preferredDuringSchedulingIgnoredDuringExecution"
)

func (c *check) terms(at string, required []corev1.PodAffinityTerm, preferred []corev1.WeightedPodAffinityTerm) {
	for i := range required {
		c.term(fmt.Sprintf("%s%s[%d].", at, must, i), &required[i])
	}
	for i := range preferred {
		field := fmt.Sprintf("%s%s[%d].", at, should, i)
		c.weight(field+"weight", preferred[i].Weight)
		c.term(field+"podAffinityTerm.", &preferred[i].PodAffinityTerm)
	}
}

// term checks a term of an affinity for other pods (validatePodAffinityTerm).
func (c *check) term(at string, t *corev1.PodAffinityTerm) {
	c.need(at+"topologyKey", t.TopologyKey)
	if t.TopologyKey != "" {
		c.qualified(at+"topologyKey", t.TopologyKey)
	}
	for _, name := range t.Namespaces {
		c.label(at+"namespaces", name)
	}
	c.labelSelector(at+"labelSelector", t.LabelSelector)
	c.labelSelector(at+"namespaceSelector", t.NamespaceSelector)
	c.labelKeys(at+"matchLabelKeys", t.MatchLabelKeys, t.LabelSelector)
	c.labelKeys(at+"mismatchLabelKeys", t.MismatchLabelKeys, t.LabelSelector)
}

func (c *check) weight(field string, n int32) {
	const most = 100
	if n < 1 || n > most {
		c.refuse(field, fmt.Sprintf("%d is not between 1 and %d", n, most), "change it")
	}
}

func (c *check) nodeAffinity(at string, a *corev1.NodeAffinity) {
	if r := a.RequiredDuringSchedulingIgnoredDuringExecution; r != nil {
		c.nodeSelector(at+must, r)
	}
	for i := range a.PreferredDuringSchedulingIgnoredDuringExecution {
		p := &a.PreferredDuringSchedulingIgnoredDuringExecution[i]
		c.weight(fmt.Sprintf("%s%s[%d].weight", at, should, i), p.Weight)
		c.nodeTerm(fmt.Sprintf("%s%s[%d].preference", at, should, i), &p.Preference)
	}
}

// nodeSelector checks which Nodes are required (ValidateNodeSelector).
func (c *check) nodeSelector(at string, s *corev1.NodeSelector) {
	c.when(len(s.NodeSelectorTerms) == 0, at+".nodeSelectorTerms", "at least one term is required", "add one, or remove the affinity")
	for i := range s.NodeSelectorTerms {
		c.nodeTerm(fmt.Sprintf("%s.nodeSelectorTerms[%d]", at, i), &s.NodeSelectorTerms[i])
	}
}

func (c *check) nodeTerm(at string, t *corev1.NodeSelectorTerm) {
	for i, e := range t.MatchExpressions {
		field := fmt.Sprintf("%s.matchExpressions[%d].", at, i)
		c.expression(field, string(e.Operator), e.Values, "In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")
		c.qualified(field+"key", e.Key)
		for j, v := range e.Values {
			c.invalid(fmt.Sprintf("%svalues[%d]", field, j), v, validation.IsValidLabelValue(v))
		}
	}
	for i, e := range t.MatchFields {
		field := fmt.Sprintf("%s.matchFields[%d].", at, i)
		oneOf(c, field+"operator", e.Operator, corev1.NodeSelectorOpIn, corev1.NodeSelectorOpNotIn)
		c.when(e.Key != metav1.ObjectNameField, field+"key", fmt.Sprintf("%q is not metadata.name", e.Key), "write metadata.name, or use matchExpressions")
		c.when(len(e.Values) != 1, field+"values", "exactly one value is required", "write the name of one Node")
	}
}
