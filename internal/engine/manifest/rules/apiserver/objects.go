package apiserver

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	nodev1 "k8s.io/api/node/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/clusterawsadm/clusterawsadm/internal/regex"
)

// object applies the rules of the kind of an object.
func (c *check) object(o runtime.Object) {
	switch o := o.(type) {
	case *corev1.Pod, *appsv1.Deployment, *appsv1.DaemonSet, *appsv1.StatefulSet, *appsv1.ReplicaSet, *batchv1.Job, *batchv1.CronJob:
		c.workload(o)
	case *corev1.Service:
		c.service(o)
	case *networkingv1.Ingress:
		c.ingress(o)
	case *networkingv1.IngressClass:
		c.ingressClass(o)
	case *discoveryv1.EndpointSlice:
		c.endpointSlice(o)
	case *networkingv1.NetworkPolicy:
		c.networkPolicy(o)
	case *corev1.PersistentVolumeClaim:
		c.claim("spec.", &o.Spec)
	case *corev1.PersistentVolume:
		if len(o.Spec.Capacity) == 0 {
			c.need("spec.capacity", "")
		}
		c.accessModes("spec.accessModes", o.Spec.AccessModes)
	case *storagev1.StorageClass:
		c.need("provisioner", o.Provisioner)
		c.storageClass(o)
	case *rbacv1.ClusterRoleBinding:
		c.binding(o.RoleRef, o.Subjects, "ClusterRole")
	case *rbacv1.RoleBinding:
		c.binding(o.RoleRef, o.Subjects, "ClusterRole", "Role")
	case *rbacv1.ClusterRole:
		c.rights(o.Rules, false)
	case *rbacv1.Role:
		c.rights(o.Rules, true)
	default:
		c.other(o)
	}
}

// metadata refuses the fields that an object has if somebody has read it from a cluster. They cannot be applied.
func (c *check) metadata(o runtime.Object) {
	m, err := meta.Accessor(o)
	if err != nil {
		return
	}
	const fix = "remove it: it is of the cluster that the object was read from"
	if m.GetManagedFields() != nil {
		c.refuse("metadata.managedFields", "cannot be applied", fix)
	}
	if m.GetUID() != "" {
		c.refuse("metadata.uid", "no object of the cluster has it", fix)
	}
	for i, name := range m.GetFinalizers() {
		if !strings.Contains(name, "/") && !slices.Contains([]string{"kubernetes", "orphan", "foregroundDeletion"}, name) {
			c.refuse(fmt.Sprintf("metadata.finalizers[%d]", i), fmt.Sprintf("%q has no domain", name), "write one such as example.com/"+name)
		}
	}
	for i, owner := range m.GetOwnerReferences() {
		c.need(fmt.Sprintf("metadata.ownerReferences[%d].uid", i), string(owner.UID))
	}
}

// other applies the rules of the remaining kinds, which have few rules each.
func (c *check) other(o runtime.Object) {
	switch o := o.(type) {
	case *autoscalingv2.HorizontalPodAutoscaler:
		c.autoscaler(o)
	case *policyv1.PodDisruptionBudget:
		c.budget(o)
	case *schedulingv1.PriorityClass:
		c.priority(o)
	case *corev1.Namespace:
		c.namespace(o)
	case *coordinationv1.Lease:
		if n := o.Spec.LeaseDurationSeconds; n != nil && *n <= 0 {
			c.refuse("spec.leaseDurationSeconds", fmt.Sprintf("%d is not greater than 0", *n), "change it")
		}
	case *nodev1.RuntimeClass:
		c.label("handler", o.Handler)
	case *corev1.ConfigMap:
		c.keys("data", slices.Sorted(maps.Keys(o.Data)), slices.Sorted(maps.Keys(o.BinaryData)))
	case *corev1.Secret:
		c.secret(o)
	case *apiextensionsv1.CustomResourceDefinition:
		c.definition(o)
	default:
		c.webhooks(o)
	}
}

// budget checks a PodDisruptionBudget.
func (c *check) budget(o *policyv1.PodDisruptionBudget) {
	if o.Spec.MinAvailable != nil && o.Spec.MaxUnavailable != nil {
		c.refuse("spec", "minAvailable and maxUnavailable are set", "remove one of them")
	}
	c.amount("spec.minAvailable", o.Spec.MinAvailable)
	c.amount("spec.maxUnavailable", o.Spec.MaxUnavailable)
}

// webhooks checks webhook configurations and admission policies.
func (c *check) webhooks(o runtime.Object) {
	switch o := o.(type) {
	case *admissionv1.ValidatingWebhookConfiguration:
		for i, w := range o.Webhooks {
			c.webhook(fmt.Sprintf("webhooks[%d].", i), w.Name, w.SideEffects, w.AdmissionReviewVersions, w.FailurePolicy, w.TimeoutSeconds, w.ClientConfig)
			c.conditions(fmt.Sprintf("webhooks[%d].matchConditions", i), w.MatchConditions, false)
		}
	case *admissionv1.MutatingWebhookConfiguration:
		for i, w := range o.Webhooks {
			c.webhook(fmt.Sprintf("webhooks[%d].", i), w.Name, w.SideEffects, w.AdmissionReviewVersions, w.FailurePolicy, w.TimeoutSeconds, w.ClientConfig)
			c.conditions(fmt.Sprintf("webhooks[%d].matchConditions", i), w.MatchConditions, false)
		}
	case *admissionv1.ValidatingAdmissionPolicy:
		c.policy(o)
	case *admissionv1.ValidatingAdmissionPolicyBinding:
		c.policyBinding(o)
	}
}

// namespace checks the name of a Namespace, and its labels for Pod Security (k8s.io/pod-security-admission).
func (c *check) namespace(o *corev1.Namespace) {
	c.label("metadata.name", o.Name)
	for _, mode := range []string{"enforce", "audit", "warn"} {
		at, key := "metadata.labels.", "pod-security.kubernetes.io/"+mode
		oneOf(c, at+key, o.Labels[key], "privileged", "baseline", "restricted")
		key += "-version"
		if version, set := o.Labels[key]; set && !regex.Of(`^(latest|v1\.(0|[1-9]\d*))$`).MatchString(version) {
			c.refuse(at+key, fmt.Sprintf("%q is no version", version), "write latest, or one such as v1.34")
		}
	}
}

// label refuses a name that is not a DNS label (RFC 1123).
func (c *check) label(field, name string) {
	if bad := validation.IsDNS1123Label(name); len(bad) > 0 {
		c.refuse(field, fmt.Sprintf("%q: %s", name, bad[0]), "use small letters, digits and -")
	}
}

// amount refuses a negative number, and a text that is not a percentage.
func (c *check) amount(field string, n *intstr.IntOrString) {
	switch {
	case n == nil:
	case n.Type == intstr.String && len(validation.IsValidPercent(n.StrVal)) > 0:
		c.refuse(field, fmt.Sprintf("%q is neither a number nor a percentage", n.StrVal), "write a number, or one such as 25%")
	case n.Type == intstr.Int:
		c.notNegative(field, &n.IntVal)
	}
}

// notNegative refuses a number below 0.
func (c *check) notNegative(field string, n *int32) {
	if n != nil && *n < 0 {
		c.refuse(field, fmt.Sprintf("%d is negative", *n), "use 0 or more")
	}
}

func (c *check) priority(o *schedulingv1.PriorityClass) {
	const most = 1_000_000_000
	if strings.HasPrefix(o.Name, "system-") {
		c.refuse("metadata.name", "names that begin with system- are reserved", "choose another name")
	} else if o.Value > most {
		c.refuse("value", fmt.Sprintf("%d is more than %d", o.Value, most), "use a smaller number")
	}
}

func (c *check) autoscaler(o *autoscalingv2.HorizontalPodAutoscaler) {
	least, most := int32(1), o.Spec.MaxReplicas
	if o.Spec.MinReplicas != nil {
		least = *o.Spec.MinReplicas
	}
	if most < max(1, least) {
		c.refuse("spec.maxReplicas", fmt.Sprintf("%d is less than %d", most, max(1, least)), "use a larger number")
	}
	c.need("spec.scaleTargetRef.name", o.Spec.ScaleTargetRef.Name)
	c.need("spec.scaleTargetRef.kind", o.Spec.ScaleTargetRef.Kind)
	for i, m := range o.Spec.Metrics {
		set := map[autoscalingv2.MetricSourceType]bool{
			autoscalingv2.ResourceMetricSourceType: m.Resource != nil, autoscalingv2.ContainerResourceMetricSourceType: m.ContainerResource != nil,
			autoscalingv2.PodsMetricSourceType: m.Pods != nil, autoscalingv2.ObjectMetricSourceType: m.Object != nil,
			autoscalingv2.ExternalMetricSourceType: m.External != nil,
		}
		if given, is := set[m.Type]; !given {
			what := fmt.Sprintf("the settings of the type %q are missing", m.Type)
			if !is {
				what = fmt.Sprintf("%q is not a type of metrics", m.Type)
			}
			c.refuse(fmt.Sprintf("spec.metrics[%d]", i), what, "add them, such as resource of the type Resource")
		}
	}
}

// keys refuses names that a ConfigMap or a Secret cannot have as keys.
func (c *check) keys(field string, lists ...[]string) {
	for _, k := range slices.Concat(lists...) {
		if bad := validation.IsConfigMapKey(k); len(bad) > 0 {
			c.refuse(fmt.Sprintf("%s[%s]", field, k), "is not a key: "+bad[0], "use letters, digits, -, _ and .")
		}
	}
}

// secret requires the keys of the type of a Secret (ValidateSecret).
func (c *check) secret(o *corev1.Secret) {
	c.keys("data", slices.Sorted(maps.Keys(o.Data)), slices.Sorted(maps.Keys(o.StringData)))
	needed := map[corev1.SecretType][]string{
		corev1.SecretTypeTLS: {corev1.TLSCertKey, corev1.TLSPrivateKeyKey}, corev1.SecretTypeDockerConfigJson: {corev1.DockerConfigJsonKey},
		corev1.SecretTypeDockercfg: {corev1.DockerConfigKey}, corev1.SecretTypeSSHAuth: {corev1.SSHAuthPrivateKey},
	}
	if o.Type == corev1.SecretTypeServiceAccountToken && o.Annotations[corev1.ServiceAccountNameKey] == "" {
		c.refuse(fmt.Sprintf("metadata.annotations[%s]", corev1.ServiceAccountNameKey), "a Secret of this type needs it", "set it to the name of the service account")
	}
	for _, key := range needed[o.Type] {
		data, given := o.Data[key]
		text, plain := o.StringData[key]
		if plain {
			data, given = []byte(text), true
		}
		field := fmt.Sprintf("data[%s]", key)
		switch {
		case !given:
			c.refuse(field, fmt.Sprintf("a Secret of the type %s needs it", o.Type), "add it, or use the type Opaque")
		case strings.HasPrefix(key, ".docker") && !json.Valid(data):
			c.refuse(field, "is not JSON", `write {"auths": {"REGISTRY": {"auth": "…"}}}`)
		}
	}
}

// webhook checks a webhook (pkg/apis/admissionregistration/validation, and ValidateWebhookURL in k8s.io/apiserver/pkg/util/webhook).
func (c *check) webhook(
	at, name string,
	effects *admissionv1.SideEffectClass,
	versions []string,
	failure *admissionv1.FailurePolicyType,
	timeout *int32,
	client admissionv1.WebhookClientConfig,
) {
	if strings.Count(name, ".") < 2 {
		c.refuse(at+"name", fmt.Sprintf("%q is not a domain with three parts", name), "write one such as check.example.com")
	}
	if effects == nil {
		c.refuse(at+"sideEffects", "a value is required", "write None or NoneOnDryRun")
	} else {
		oneOf(c, at+"sideEffects", *effects, admissionv1.SideEffectClassNone, admissionv1.SideEffectClassNoneOnDryRun)
	}
	if len(versions) == 0 {
		c.refuse(at+"admissionReviewVersions", "a value is required", "write [v1]")
	}
	if failure != nil {
		oneOf(c, at+"failurePolicy", *failure, admissionv1.Fail, admissionv1.Ignore)
	}
	if (client.URL == nil) == (client.Service == nil) {
		c.refuse(at+"clientConfig", "needs url or service", "set one of them")
	}
	if timeout != nil && (*timeout < 1 || *timeout > 30) {
		c.refuse(at+"timeoutSeconds", fmt.Sprintf("%d is not between 1 and 30", *timeout), "change it")
	}
	if client.URL != nil && !strings.HasPrefix(*client.URL, "https://") {
		c.refuse(at+"clientConfig.url", *client.URL+" is no address of https", "write https://…")
	}
}
