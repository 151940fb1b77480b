package kubesim

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	quantity "k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// isImmutable is what the API server says of most fields that cannot be changed (FieldImmutableErrorMsg in k8s.io/apimachinery/pkg/api/validation).
const isImmutable = "field is immutable"

// immutable is a field that cannot be changed after the object was created.
type immutable struct {
	kinds   string // "apps/v1 Deployment, apps/v1 DaemonSet"
	path    string // "spec.selector"
	named   string // the path in the error, if it is another one
	unset   any    // the default: what a field that is not set is compared as
	forbids string // the detail of an error of the type Forbidden; "": the error is "Invalid value: …: field is immutable"
	invalid string // the detail of an error of the type Invalid, if it is another one
}

// immutables lists the fields whose rule does not depend on other fields (ValidateUpdate of the strategies in pkg/registry, and pkg/apis/*/validation of
// Kubernetes v1.34.2).
func immutables() []immutable {
	return []immutable{
		{kinds: "apps/v1 Deployment, apps/v1 DaemonSet, apps/v1 ReplicaSet", path: "spec.selector"},
		{kinds: "apps/v1 ControllerRevision", path: "data"},
		{kinds: "batch/v1 Job", path: "spec.selector"},
		{kinds: "batch/v1 Job", path: "spec.completionMode", unset: "NonIndexed"},
		{kinds: "batch/v1 Job", path: "spec.podFailurePolicy"},
		{kinds: "batch/v1 Job", path: "spec.backoffLimitPerIndex"},
		{kinds: "batch/v1 Job", path: "spec.managedBy"},
		{kinds: "batch/v1 Job", path: "spec.successPolicy"},
		{kinds: "v1 Secret", path: "type", unset: "Opaque"},
		{kinds: "v1 ResourceQuota", path: "spec.scopes"},
		{kinds: "v1 PersistentVolume", path: "spec.volumeMode", named: "volumeMode", unset: "Filesystem"},
		{kinds: "storage.k8s.io/v1 StorageClass", path: "parameters", forbids: "updates to parameters are forbidden."},
		{kinds: "storage.k8s.io/v1 StorageClass", path: "provisioner", forbids: "updates to provisioner are forbidden."},
		{kinds: "storage.k8s.io/v1 StorageClass", path: "reclaimPolicy", unset: "Delete", forbids: "updates to reclaimPolicy are forbidden."},
		{kinds: "storage.k8s.io/v1 StorageClass", path: "volumeBindingMode", unset: "Immediate"},
		{kinds: "storage.k8s.io/v1 VolumeAttributesClass", path: "driverName", forbids: "updates to driverName are forbidden."},
		{kinds: "storage.k8s.io/v1 VolumeAttributesClass", path: "parameters", forbids: "updates to parameters are forbidden."},
		{kinds: "storage.k8s.io/v1 VolumeAttachment", path: "spec"},
		{kinds: "storage.k8s.io/v1 CSIDriver", path: "spec.attachRequired", named: "spec.attachedRequired", unset: true},
		{kinds: "storage.k8s.io/v1 CSIDriver", path: "spec.volumeLifecycleModes", unset: []any{"Persistent"}},
		{kinds: "scheduling.k8s.io/v1 PriorityClass", path: "value", unset: 0.0, forbids: "may not be changed in an update."},
		{kinds: "scheduling.k8s.io/v1 PriorityClass", path: "preemptionPolicy", unset: "PreemptLowerPriority"},
		{kinds: "networking.k8s.io/v1 IngressClass", path: "spec.controller"},
		{kinds: "networking.k8s.io/v1 IPAddress", path: "spec.parentRef"},
		{kinds: "node.k8s.io/v1 RuntimeClass", path: "handler"},
		{kinds: "discovery.k8s.io/v1 EndpointSlice", path: "addressType"},
		{kinds: "resource.k8s.io/v1 ResourceClaim, resource.k8s.io/v1 ResourceClaimTemplate", path: "spec"},
		{
			kinds:   "rbac.authorization.k8s.io/v1 RoleBinding, rbac.authorization.k8s.io/v1 ClusterRoleBinding",
			path:    "roleRef",
			invalid: "cannot change roleRef",
		},
		{kinds: "apiextensions.k8s.io/v1 CustomResourceDefinition", path: "spec.group"},
		{kinds: "apiextensions.k8s.io/v1 CustomResourceDefinition", path: "spec.names.plural"},
	}
}

// update rejects a change of an object that the API server does not accept.
func update(at place, have, after Object) (int, any) {
	if have == nil || at.sub != "" {
		return 0, nil
	}
	of := at.resource.gv + " " + at.resource.Kind
	var wrong field.ErrorList
	for _, f := range immutables() {
		if slices.Contains(strings.Split(f.kinds, ", "), of) {
			wrong = append(wrong, f.broken(have, after)...)
		}
	}
	if check := updates()[of]; check != nil {
		wrong = append(wrong, check(have, after)...)
	}
	if len(wrong) == 0 {
		return 0, nil
	}
	group, _, grouped := strings.Cut(at.resource.gv, "/")
	if !grouped {
		group = ""
	}
	return refusal(apierrors.NewInvalid(schema.GroupKind{Group: group, Kind: at.resource.Kind}, at.name, wrong))
}

// refusal returns an error as the API server sends it.
func refusal(err *apierrors.StatusError) (code int, said any) {
	err.ErrStatus.Kind, err.ErrStatus.APIVersion = "Status", "v1"
	answer := Object{}
	if raw, bad := json.Marshal(err.ErrStatus); bad == nil {
		_ = json.Unmarshal(raw, &answer)
	}
	return int(err.ErrStatus.Code), answer
}

func (f immutable) broken(have, after Object) field.ErrorList {
	words := strings.Split(f.path, ".")
	was, is := value(have, words...), value(after, words...)
	if isEmpty(was) {
		was = f.unset
	}
	if isEmpty(is) {
		is = f.unset
	}
	if same(was, is) {
		return nil
	}
	if f.named != "" {
		words = strings.Split(f.named, ".")
	}
	at := field.NewPath(words[0], words[1:]...)
	switch {
	case f.forbids != "":
		return field.ErrorList{field.Forbidden(at, f.forbids)}
	case f.invalid != "":
		return field.ErrorList{field.Invalid(at, is, f.invalid)}
	}
	return field.ErrorList{field.Invalid(at, is, isImmutable)}
}

// same compares two values; what is empty is the same as what is not set.
func same(a, b any) bool {
	if isEmpty(a) && isEmpty(b) {
		return true
	}
	x, isObject := a.(Object)
	y, both := b.(Object)
	if isObject && both {
		for _, key := range slices.Concat(slices.Collect(maps.Keys(x)), slices.Collect(maps.Keys(y))) {
			if !same(x[key], y[key]) {
				return false
			}
		}
		return true
	}
	if n, is := number(a); is {
		m, other := number(b)
		return other && n == m
	}
	p, isList := a.([]any)
	q, lists := b.([]any)
	if isList && lists {
		return slices.EqualFunc(p, q, same)
	}
	return reflect.DeepEqual(a, b)
}

// updates are the rules for kinds whose fields depend on each other.
func updates() map[string]func(have, after Object) field.ErrorList {
	return map[string]func(have, after Object) field.ErrorList{
		"v1 Service":               updateService,
		"v1 ConfigMap":             updateImmutable,
		"v1 Secret":                updateImmutable,
		"v1 PersistentVolumeClaim": updateClaim,
		"v1 PersistentVolume":      updateVolume,
		"v1 Pod":                   updatePod,
		"apps/v1 StatefulSet":      updateStatefulSet,
		"batch/v1 Job":             updateJob,

		"apiextensions.k8s.io/v1 CustomResourceDefinition": updateDefinition,
		"networking.k8s.io/v1 ServiceCIDR":                 updateServiceCIDR,
	}
}

// updateService is the rule of addresses, families and classes (validateUpgradeDowngradeClusterIPs, validateUpgradeDowngradeIPFamilies,
// validateLoadBalancerClassField).
func updateService(have, after Object) (wrong field.ErrorList) {
	spec := field.NewPath("spec")
	if text(have, "spec", "type") != "ExternalName" && text(after, "spec", "type") != "ExternalName" {
		was, is := clusterIPs(have), clusterIPs(after)
		for i := range min(len(was), len(is)) {
			if was[i] != is[i] && (i == 0 || len(was) == len(is)) {
				wrong = append(wrong, field.Invalid(spec.Child("clusterIPs").Index(i), is, "may not change once set"))
			}
		}
		families, other := texts(value(have, "spec", "ipFamilies")), texts(value(after, "spec", "ipFamilies"))
		if len(families) > 0 && len(other) > 0 && families[0] != other[0] && !slices.Contains(was, "None") {
			wrong = append(wrong, field.Invalid(spec.Child("ipFamilies").Index(0), other, "may not change once set"))
		}
	}
	class, other := text(have, "spec", "loadBalancerClass"), text(after, "spec", "loadBalancerClass")
	if class != other && text(have, "spec", "type") == "LoadBalancer" && text(after, "spec", "type") == "LoadBalancer" {
		wrong = append(wrong, field.Invalid(spec.Child("loadBalancerClass"), other, "may not change once set"))
	}
	return wrong
}

// clusterIPs returns the addresses of a Service, or "None".
func clusterIPs(o Object) []string {
	if all := texts(value(o, "spec", "clusterIPs")); len(all) > 0 {
		return all
	}
	if one := text(o, "spec", "clusterIP"); one != "" {
		return []string{one}
	}
	return nil
}

func texts(v any) (all []string) {
	items, _ := v.([]any)
	for _, x := range items {
		if s, is := x.(string); is {
			all = append(all, s)
		}
	}
	return all
}

// updateImmutable is the rule of ConfigMaps and Secrets with the field immutable.
func updateImmutable(have, after Object) (wrong field.ErrorList) {
	if have["immutable"] != true {
		return nil
	}
	if after["immutable"] != true {
		wrong = append(wrong, field.Forbidden(field.NewPath("immutable"), "field is immutable when `immutable` is set"))
	}
	for _, name := range []string{"data", "binaryData"} {
		if !same(have[name], after[name]) {
			wrong = append(wrong, field.Forbidden(field.NewPath(name), "field is immutable when `immutable` is set"))
		}
	}
	return wrong
}

// updateClaim is the rule of claims: a bound one may ask for more (ValidatePersistentVolumeClaimUpdate).
func updateClaim(have, after Object) (wrong field.ErrorList) {
	was, is := storageOf(have), storageOf(after)
	bound := text(have, "status", "phase") == "Bound"
	clean := func(o Object) Object {
		spec, _ := copied(o["spec"]).(Object)
		unset(spec, "volumeMode", "Filesystem")
		for _, once := range []string{"volumeName", "storageClassName"} { // a controller sets them later
			if text(have, "spec", once) == "" {
				delete(spec, once)
			}
		}
		requests, _ := value(spec, "resources", "requests").(Object)
		delete(requests, "storage")
		if size := storageOf(o); !bound {
			unset(requests, "storage", size.String())
		} else {
			delete(spec, "volumeAttributesClassName")
		}
		return spec
	}
	spec := field.NewPath("spec")
	if !same(clean(have), clean(after)) {
		wrong = append(wrong, field.Forbidden(
			spec,
			"spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims",
		))
	}
	if is.Cmp(was) < 0 {
		capacity, err := quantity.ParseQuantity(text(have, "status", "capacity", "storage"))
		if err != nil {
			capacity = quantity.Quantity{}
		}
		if is.Cmp(capacity) <= 0 {
			wrong = append(wrong, field.Forbidden(spec.Child("resources", "requests", "storage"), "field can not be less than status.capacity"))
		}
	}
	return wrong
}

// storageOf returns the size that a claim asks for.
func storageOf(claim Object) quantity.Quantity {
	q, err := quantity.ParseQuantity(text(claim, "spec", "resources", "requests", "storage"))
	if err != nil {
		return quantity.Quantity{}
	}
	return q
}

// updateVolume is the rule of the source of a PersistentVolume, which is what is left of its spec without the other fields.
func updateVolume(have, after Object) field.ErrorList {
	source := func(o Object) Object {
		spec, _ := copied(o["spec"]).(Object)
		for _, other := range []string{
			"accessModes", "capacity", "claimRef", "mountOptions", "nodeAffinity", "persistentVolumeReclaimPolicy", "storageClassName",
			"volumeAttributesClassName", "volumeMode",
		} {
			delete(spec, other)
		}
		return spec
	}
	if same(source(have), source(after)) {
		return nil
	}
	return field.ErrorList{field.Forbidden(field.NewPath("spec", "persistentvolumesource"), "spec.persistentvolumesource is immutable after creation")}
}

// updatePod is the rule of pods: only few fields may change (ValidatePodUpdate). Resizes and scheduling gates are not simulated.
func updatePod(have, after Object) field.ErrorList {
	rest := func(o Object) Object {
		spec, _ := copied(o["spec"]).(Object)
		podDefaults(spec)
		for _, other := range []string{"activeDeadlineSeconds", "tolerations", "terminationGracePeriodSeconds", "nodeName", "ephemeralContainers"} {
			delete(spec, other)
		}
		for _, list := range []string{"containers", "initContainers"} {
			all, _ := spec[list].([]any)
			for _, x := range all {
				if c, is := x.(Object); is {
					delete(c, "image")
				}
			}
		}
		return spec
	}
	if same(rest(have), rest(after)) {
		return nil
	}
	return field.ErrorList{field.Forbidden(
		field.NewPath("spec"),
		"pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,"+
			"`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)",
	)}
}

// updateStatefulSet is the rule of StatefulSets: only these fields may change (ValidateStatefulSetUpdate).
func updateStatefulSet(have, after Object) field.ErrorList {
	rest := func(o Object) Object {
		spec, _ := copied(o["spec"]).(Object)
		for _, other := range []string{
			"replicas", "template", "updateStrategy", "minReadySeconds", "ordinals", "revisionHistoryLimit", "persistentVolumeClaimRetentionPolicy",
		} {
			delete(spec, other)
		}
		unset(spec, "podManagementPolicy", "OrderedReady")
		for _, claim := range list(spec, "volumeClaimTemplates") {
			for _, other := range []string{"apiVersion", "kind", "status"} {
				delete(claim, other)
			}
			of, _ := claim["spec"].(Object)
			unset(of, "volumeMode", "Filesystem")
		}
		return spec
	}
	if same(rest(have), rest(after)) {
		return nil
	}
	return field.ErrorList{field.Forbidden(
		field.NewPath("spec"),
		"updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', 'revisionHistoryLimit', "+
			"'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden",
	)}
}

// updateJob is the rule of the template and the completions of a Job (ValidateJobSpecUpdate). Suspended Jobs, whose templates may change in
// part, are not simulated.
func updateJob(have, after Object) (wrong field.ErrorList) {
	spec := field.NewPath("spec")
	if text(after, "spec", "completionMode") != "Indexed" && completions(have) != completions(after) {
		wrong = append(wrong, field.Invalid(spec.Child("completions"), value(after, "spec", "completions"), isImmutable))
	}
	pods := func(o Object) Object {
		pod, _ := copied(template(o)).(Object)
		of, _ := pod["spec"].(Object)
		podDefaults(of)
		return pod
	}
	if !same(pods(have), pods(after)) {
		wrong = append(wrong, field.Invalid(spec.Child("template"), template(after), isImmutable))
	}
	return wrong
}

// completions returns the completions of a Job; -1 if there are none (SetDefaults_Job).
func completions(job Object) float64 {
	if n, is := number(value(job, "spec", "completions")); is {
		return n
	}
	if value(job, "spec", "parallelism") != nil {
		return -1
	}
	return 1
}

// updateDefinition is the rule of the scope, the kind and the stored versions (ValidateCustomResourceDefinitionUpdate).
func updateDefinition(have, after Object) (wrong field.ErrorList) {
	spec := field.NewPath("spec")
	established := slices.ContainsFunc(list(have, "status", "conditions"), func(c Object) bool {
		return text(c, "type") == "Established" && text(c, "status") == "True"
	})
	for _, path := range []string{"scope", "names.kind"} {
		words := strings.Split(path, ".")
		was, is := text(have, append([]string{"spec"}, words...)...), text(after, append([]string{"spec"}, words...)...)
		if established && was != is {
			wrong = append(wrong, field.Invalid(spec.Child(words[0], words[1:]...), is, isImmutable))
		}
	}
	versions := map[string]bool{}
	for _, v := range list(after, "spec", "versions") {
		versions[text(v, "name")] = true
	}
	for i, v := range texts(value(have, "status", "storedVersions")) {
		if !versions[v] {
			wrong = append(wrong, field.Invalid(
				field.NewPath("status", "storedVersions").Index(i), v,
				"missing from spec.versions; "+v+" was previously a storage version, and must remain in spec.versions until a storage migration ensures no data "+
					"remains persisted in "+v+" and removes "+v+" from status.storedVersions",
			))
		}
	}
	return wrong
}

// updateServiceCIDR is the rule of the blocks of Services: a second one may be added.
func updateServiceCIDR(have, after Object) (wrong field.ErrorList) {
	was, is := texts(value(have, "spec", "cidrs")), texts(value(after, "spec", "cidrs"))
	at := field.NewPath("spec", "cidrs")
	if len(was) != len(is) && (len(was) != 1 || len(is) != 2) {
		return field.ErrorList{field.Invalid(at, is, isImmutable)}
	}
	for i := range was {
		if was[i] != is[i] {
			wrong = append(wrong, field.Invalid(at.Index(i), is[i], isImmutable))
		}
	}
	return wrong
}

// storeVersions records the storage version of a definition in its status (PrepareForUpdate in pkg/registry/customresourcedefinition of
// k8s.io/apiextensions-apiserver).
func storeVersions(o Object) {
	stored := texts(value(o, "status", "storedVersions"))
	for _, v := range list(o, "spec", "versions") {
		if name := text(v, "name"); v["storage"] == true && !slices.Contains(stored, name) {
			stored = append(stored, name)
		}
	}
	status, _ := o["status"].(Object)
	status = maps.Clone(status)
	if status == nil {
		status = Object{}
	}
	all := make([]any, len(stored))
	for i, name := range stored {
		all[i] = name
	}
	status["storedVersions"] = all
	o["status"] = status
}
