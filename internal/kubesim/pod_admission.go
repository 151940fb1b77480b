package kubesim

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	podsecurity "k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
)

// Paths of the objects that the admission of pods reads.
const (
	priorities = "/apis/scheduling.k8s.io/v1/priorityclasses/"
	runtimes   = "/apis/node.k8s.io/v1/runtimeclasses/"
)

// makePriorities makes the two PriorityClasses that every API server makes (SystemPriorityClasses in pkg/apis/scheduling/v1/helpers.go of
// Kubernetes v1.34.2).
func (c *Cluster) makePriorities() {
	for name, number := range map[string]float64{"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000} {
		c.put(priorities+name, Object{
			"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": Object{"name": name}, "value": number,
			"preemptionPolicy": "PreemptLowerPriority",
		}, c.Up)
	}
}

// refusesPod returns why the API server refuses a new pod of a namespace; "" if it does not. It has the admission plugins ServiceAccount,
// PodSecurity, Priority and RuntimeClass, in this order (AllOrderedPlugins in pkg/kubeapiserver/options/plugins.go of Kubernetes v1.34.2).
// The settings of PodSecurity in an AdmissionConfiguration are not simulated.
func (c *Cluster) refusesPod(namespace string, pod Object) string {
	spec, _ := pod["spec"].(Object)
	return cmp.Or(c.withoutAccount(namespace, spec), c.insecure(namespace, pod), c.withoutPriority(spec), c.withoutRuntime(spec))
}

// invalidPod returns what is wrong with the pods of a template that is valid (validateContainerOnlyForPod in pkg/apis/core/validation of
// Kubernetes v1.34.2): only a pod is refused for spaces around an image.
func invalidPod(pod Object) string {
	spec, _ := pod["spec"].(Object)
	for _, l := range barePod() {
		if why := broken(spec, l.path, "spec.", l.wrong); why != "" {
			return why
		}
	}
	return ""
}

// forbidden is the answer to a request for a pod that is refused.
func (c *Cluster) forbidden(at place, o Object) (int, any) {
	if at.resource.Name != "pods" || at.resource.gv != "v1" || at.sub != "" || c.Objects[at.full()] != nil {
		return 0, nil
	}
	if why := c.refusesPod(at.namespace, o); why != "" {
		return failure(http.StatusForbidden, "Forbidden", fmt.Sprintf("pods %q is forbidden: %s", at.name, why))
	}
	return 0, nil
}

// withoutAccount is the plugin ServiceAccount (plugin/pkg/admission/serviceaccount/admission.go). The account default is made with each
// namespace, and the plugin waits for it.
func (c *Cluster) withoutAccount(namespace string, spec Object) string {
	name := cmp.Or(text(spec, "serviceAccountName"), text(spec, "serviceAccount"), "default")
	if name == "default" || c.Objects["/api/v1/namespaces/"+namespace+"/serviceaccounts/"+name] != nil {
		return ""
	}
	return fmt.Sprintf("error looking up service account %s/%s: serviceaccount %q not found", namespace, name, name)
}

// withoutPriority is the plugin Priority (plugin/pkg/admission/priority/admission.go).
func (c *Cluster) withoutPriority(spec Object) string {
	class := Object{"value": 0.0}
	if name := text(spec, "priorityClassName"); name != "" {
		if class = c.Objects[priorities+name]; class == nil {
			return "no PriorityClass with name " + name + " was found"
		}
	} else {
		for _, path := range c.paths("PriorityClass") {
			if c.Objects[path]["globalDefault"] == true {
				class = c.Objects[path]
			}
		}
	}
	if given, is := number(spec["priority"]); is {
		if has, _ := number(class["value"]); given != has {
			return fmt.Sprintf(
				"the integer value of priority (%v) must not be provided in pod spec; priority admission controller computed %v from the given PriorityClass name",
				given, has,
			)
		}
	}
	has := cmp.Or(text(class, "preemptionPolicy"), "PreemptLowerPriority")
	if given := text(spec, "preemptionPolicy"); given != "" && given != has {
		return fmt.Sprintf(
			"the string value of PreemptionPolicy (%s) must not be provided in pod spec; priority admission controller computed %s from the given PriorityClass name",
			given, has,
		)
	}
	return ""
}

// secondDefault refuses a second PriorityClass for pods that name none (ValidatePriorityClass in plugin/pkg/admission/priority/admission.go).
func (c *Cluster) secondDefault(at place, o Object) (int, any) {
	if at.resource.Name != "priorityclasses" || o["globalDefault"] != true {
		return 0, nil
	}
	for _, path := range c.paths("PriorityClass") {
		if other := c.Objects[path]; other["globalDefault"] == true && path != at.full() {
			return failure(http.StatusForbidden, "Forbidden", fmt.Sprintf(
				"priorityclasses.scheduling.k8s.io %q is forbidden: PriorityClass %s is already marked as default. Only one default can exist",
				at.name, text(other, "metadata", "name"),
			))
		}
	}
	return 0, nil
}

// withoutRuntime is the plugin RuntimeClass (plugin/pkg/admission/runtimeclass/admission.go).
func (c *Cluster) withoutRuntime(spec Object) string {
	name, class := text(spec, "runtimeClassName"), Object{}
	if name != "" {
		if class = c.Objects[runtimes+name]; class == nil {
			return fmt.Sprintf("pod rejected: RuntimeClass %q not found", name)
		}
	}
	fixed := value(class, "overhead", "podFixed")
	switch overhead := spec["overhead"]; {
	case isEmpty(overhead):
	case isEmpty(fixed):
		return "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead"
	case !reflect.DeepEqual(overhead, fixed):
		return "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead"
	}
	wanted, _ := value(class, "scheduling", "nodeSelector").(Object)
	selector, _ := spec["nodeSelector"].(Object)
	for _, key := range slices.Sorted(maps.Keys(wanted)) {
		if v, set := selector[key]; set && v != wanted[key] {
			return fmt.Sprintf("conflict: runtimeClass.scheduling.nodeSelector[%s] = %v; pod.spec.nodeSelector[%[1]s] = %[3]v", key, wanted[key], v)
		}
	}
	return ""
}

// evaluator has the checks of the Pod Security Standards.
//
//nolint:gochecknoglobals // constant data, which is made when it is needed first
var evaluator = sync.OnceValues(func() (policy.Evaluator, error) { return policy.NewEvaluator(policy.DefaultChecks(), nil) })

// insecure is the plugin PodSecurity (k8s.io/pod-security-admission, whose code decides).
func (c *Cluster) insecure(namespace string, pod Object) string {
	given, _ := value(c.Objects["/api/v1/namespaces/"+namespace], "metadata", "labels").(Object)
	labels := map[string]string{}
	for k, v := range given {
		labels[k], _ = v.(string)
	}
	lowest := podsecurity.LevelVersion{Level: podsecurity.LevelPrivileged, Version: podsecurity.LatestVersion()}
	wanted, _ := podsecurity.PolicyToEvaluate(labels, podsecurity.Policy{Enforce: lowest, Audit: lowest, Warn: lowest})
	if wanted.Enforce.Level == podsecurity.LevelPrivileged {
		return ""
	}
	own := podsecurity.MajorMinorVersion(1, c.minor())
	if wanted.Enforce.Latest() || own.Older(wanted.Enforce.Version) {
		wanted.Enforce.Version = own
	}
	raw, err := json.Marshal(pod)
	var typed corev1.PodTemplateSpec
	if err != nil || json.Unmarshal(raw, &typed) != nil {
		return ""
	}
	with, err := evaluator()
	if err != nil {
		return err.Error()
	}
	meta := metav1.ObjectMeta{Annotations: typed.Annotations}
	if result := policy.AggregateCheckResults(with.EvaluatePod(wanted.Enforce, &meta, &typed.Spec)); !result.Allowed {
		return fmt.Sprintf("violates PodSecurity %q: %s", wanted.Enforce.String(), result.ForbiddenDetail())
	}
	return ""
}

// minor is the minor version of Kubernetes; a large number if it is not known.
func (c *Cluster) minor() int {
	const unknown = 1000
	_, rest, _ := strings.Cut(c.Version, ".")
	digits, _, _ := strings.Cut(rest, ".")
	if n, err := strconv.Atoi(digits); err == nil {
		return n
	}
	return unknown
}

// refusedPods returns why the API server refuses the pods of a workload; "" if it does not.
func (c *Cluster) refusedPods(workload Object) string {
	return cmp.Or(c.refusesPod(text(workload, "metadata", "namespace"), template(workload)), invalidPod(template(workload)))
}
