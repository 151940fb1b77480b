package apiserver

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	networkingv1 "k8s.io/api/networking/v1"
	nodev1 "k8s.io/api/node/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	objects "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/clusterawsadm/clusterawsadm/internal/regex"
)

// object applies the rules of the kind of an object.
func (c *check) object(o runtime.Object) {
	switch o := o.(type) {
	case *corev1.ReplicationController:
		c.controller(&o.Spec)
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
	case *corev1.PersistentVolumeClaim, *corev1.PersistentVolume, *storagev1.StorageClass, *storagev1.VolumeAttributesClass, *storagev1.CSIDriver:
		c.storage(o)
	case *rbacv1.ClusterRoleBinding:
		c.binding(o.RoleRef, o.Subjects, "ClusterRole")
	case *rbacv1.RoleBinding:
		c.binding(o.RoleRef, o.Subjects, "ClusterRole", "Role")
	case *rbacv1.ClusterRole:
		c.rights(o.Rules, false)
		c.aggregation(o.AggregationRule)
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
	if o.GetObjectKind().GroupVersionKind().Group == rbacv1.GroupName { // other names are checked elsewhere
		c.segment("metadata.name", m.GetName())
	}
	if keys := m.GetAnnotations(); objects.ValidateAnnotationsSize(keys) != nil {
		c.refuse("metadata.annotations", fmt.Sprintf("have more than %d bytes", objects.TotalAnnotationSizeLimitB), "remove some")
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
	case *autoscalingv1.HorizontalPodAutoscaler:
		c.oldAutoscaler(o)
	case *schedulingv1.PriorityClass:
		c.priority(o)
	case *corev1.Namespace:
		c.namespace(o)
	case *corev1.ResourceQuota:
		c.quota(&o.Spec)
	case *corev1.LimitRange:
		c.limits(o.Spec.Limits)
	case *coordinationv1.Lease:
		between(c, "spec.leaseDurationSeconds", o.Spec.LeaseDurationSeconds, 1, math.MaxInt32)
		c.notNegative("spec.leaseTransitions", o.Spec.LeaseTransitions)
	case *nodev1.RuntimeClass:
		c.label("handler", o.Handler)
	case *corev1.ConfigMap:
		c.configMap(o)
	case *corev1.Secret:
		c.secret(o)
	case *apiextensionsv1.CustomResourceDefinition:
		c.definition(o)
	default:
		c.webhooks(o)
	}
}

// configMap checks a ConfigMap (ValidateConfigMap).
func (c *check) configMap(o *corev1.ConfigMap) {
	names := slices.Sorted(maps.Keys(o.Data))
	c.keys("data", names, slices.Sorted(maps.Keys(o.BinaryData)))
	size := 0
	for _, name := range names {
		_, twice := o.BinaryData[name]
		c.when(twice, fmt.Sprintf("data[%s]", name), "is also in binaryData", "remove one of them")
		size += len(o.Data[name])
	}
	for _, data := range o.BinaryData {
		size += len(data)
	}
	c.fits(size)
}

// fits refuses a ConfigMap or a Secret that is too large.
func (c *check) fits(size int) {
	c.when(size > corev1.MaxSecretSize, "data", fmt.Sprintf("has %d bytes, and at most %d are possible", size, corev1.MaxSecretSize), "make several objects of it")
}

// webhooks checks webhook configurations and admission policies.
func (c *check) webhooks(o runtime.Object) {
	switch o := o.(type) {
	case *admissionv1.ValidatingWebhookConfiguration:
		names := make([]string, len(o.Webhooks))
		for i := range o.Webhooks {
			c.webhook(fmt.Sprintf("webhooks[%d].", i), &o.Webhooks[i])
			names[i] = o.Webhooks[i].Name
		}
		c.distinct("webhooks", names)
	case *admissionv1.MutatingWebhookConfiguration:
		names := make([]string, len(o.Webhooks))
		for i, w := range o.Webhooks {
			names[i] = w.Name
			isOneOf(
				c,
				fmt.Sprintf("webhooks[%d].reinvocationPolicy", i),
				w.ReinvocationPolicy,
				admissionv1.NeverReinvocationPolicy,
				admissionv1.IfNeededReinvocationPolicy,
			)
			c.webhook(fmt.Sprintf("webhooks[%d].", i), &admissionv1.ValidatingWebhook{
				Name: w.Name, ClientConfig: w.ClientConfig, Rules: w.Rules, FailurePolicy: w.FailurePolicy, MatchPolicy: w.MatchPolicy,
				NamespaceSelector: w.NamespaceSelector, ObjectSelector: w.ObjectSelector, SideEffects: w.SideEffects,
				TimeoutSeconds: w.TimeoutSeconds, AdmissionReviewVersions: w.AdmissionReviewVersions, MatchConditions: w.MatchConditions,
			})
		}
		c.distinct("webhooks", names)
	case *admissionv1.ValidatingAdmissionPolicy:
		c.policy(o)
	case *admissionv1.ValidatingAdmissionPolicyBinding:
		c.policyBinding(o)
	case *flowcontrolv1.PriorityLevelConfiguration:
		c.priorityLevel(o)
	case *flowcontrolv1.FlowSchema:
		c.flowSchema(o)
	case *certificatesv1.CertificateSigningRequest:
		c.signing(&o.Spec)
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
	isOneOf(c, "preemptionPolicy", o.PreemptionPolicy, corev1.PreemptLowerPriority, corev1.PreemptNever)
	if strings.HasPrefix(o.Name, "system-") {
		c.refuse("metadata.name", "names that begin with system- are reserved", "choose another name")
	} else if o.Value > most {
		c.refuse("value", fmt.Sprintf("%d is more than %d", o.Value, most), "use a smaller number")
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
	if o.Type == corev1.SecretTypeBasicAuth {
		has := func(key string) bool {
			_, data := o.Data[key]
			_, text := o.StringData[key]
			return data || text
		}
		missing := !has(corev1.BasicAuthUsernameKey) && !has(corev1.BasicAuthPasswordKey)
		c.when(missing, "data[username]", "a Secret of this type has a username or a password", "add one of them, or use the type Opaque")
	}
	size := 0
	for _, data := range o.Data {
		size += len(data)
	}
	for _, text := range o.StringData {
		size += len(text)
	}
	c.fits(size)
	for _, key := range needed[o.Type] {
		data, given := o.Data[key]
		text, plain := o.StringData[key]
		if plain {
			data, given = []byte(text), true
		}
		field := fmt.Sprintf("data[%s]", key)
		switch {
		case !given || key == corev1.SSHAuthPrivateKey && len(data) == 0:
			c.refuse(field, fmt.Sprintf("a Secret of the type %s needs it", o.Type), "add it, or use the type Opaque")
		case strings.HasPrefix(key, ".docker") && !json.Valid(data):
			c.refuse(field, "is not JSON", `write {"auths": {"REGISTRY": {"auth": "…"}}}`)
		}
	}
}

// webhook checks a webhook (pkg/apis/admissionregistration/validation).
func (c *check) webhook(at string, w *admissionv1.ValidatingWebhook) {
	if strings.Count(w.Name, ".") < 2 {
		c.refuse(at+"name", fmt.Sprintf("%q is not a domain with three parts", w.Name), "write one such as check.example.com")
	}
	if w.SideEffects == nil {
		c.refuse(at+"sideEffects", "a value is required", "write None or NoneOnDryRun")
	}
	isOneOf(c, at+"sideEffects", w.SideEffects, admissionv1.SideEffectClassNone, admissionv1.SideEffectClassNoneOnDryRun)
	c.hookVersions(at+"admissionReviewVersions", w.AdmissionReviewVersions)
	isOneOf(c, at+"failurePolicy", w.FailurePolicy, admissionv1.Fail, admissionv1.Ignore)
	isOneOf(c, at+"matchPolicy", w.MatchPolicy, admissionv1.Exact, admissionv1.Equivalent)
	if w.TimeoutSeconds != nil {
		between(c, at+"timeoutSeconds", w.TimeoutSeconds, 1, 30)
	}
	for i := range w.Rules {
		c.hookRule(fmt.Sprintf("%srules[%d].", at, i), &w.Rules[i])
	}
	c.ruleSelectors(at, w.NamespaceSelector, w.ObjectSelector)
	c.hookClient(at+"clientConfig.", &w.ClientConfig)
	c.conditions(at+"matchConditions", w.MatchConditions, false)
}
