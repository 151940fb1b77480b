package rules

import (
	"fmt"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
)

// calledService is a Service that the API server calls.
type calledService struct {
	object

	at              string // the path of the reference
	namespace, name string
	port            int32
	otherwise       string // what the API server does if it gets no answer
}

// webhookPort is the default port of Services that the API server calls (pkg/apis/admissionregistration/v1/defaults.go of Kubernetes).
const webhookPort = 443

// checkCalledServices checks the Services that the API server calls: for webhooks with failurePolicy Fail ("Dynamic Admission Control" in the
// documentation of Kubernetes), for conversion webhooks, and for APIServices.
func (c *checks) checkCalledServices(documents []*manifest.Document, workloads []podsOf, made madeObjects) {
	for _, d := range documents {
		for _, called := range calledBy(object{c, d}) {
			c.checkCalled(called, workloads, made)
		}
	}
}

// checkCalled checks one of these Services.
func (c *checks) checkCalled(called calledService, workloads []podsOf, made madeObjects) {
	key := called.namespace + "/" + called.name
	say := func(report func(manifest.Problem), what, fix string) {
		report(called.problem(fmt.Sprintf("%s: %s: %s: %s", called.Title(), called.at, what, called.otherwise), fix))
	}
	switch s := made.service(key); {
	case s == nil && c.isForeign(called.namespace, made):
	case s == nil:
		say(c.warn, "nothing in the manifest makes the Service "+key, "bring the Service and its pods too, or correct the name")
	case s.Spec.Type == corev1.ServiceTypeExternalName:
	case !slices.ContainsFunc(s.Spec.Ports, func(p corev1.ServicePort) bool { return p.Port == called.port }):
		say(c.fail, fmt.Sprintf("the Service %s has no port %d", key, called.port), "add the port to the Service, or set port here")
	case len(s.Spec.Selector) > 0 && !c.isForeign(called.namespace, made) && !slices.ContainsFunc(workloads, func(w podsOf) bool {
		return w.namespace == called.namespace && labels.SelectorFromSet(s.Spec.Selector).Matches(labels.Set(w.pod.Labels))
	}):
		say(c.warn, "no pods of the manifest have the labels that the Service "+key+" selects", "bring the pods too, or correct the selector of the Service")
	}
}

// service returns a Service of the manifest by NAMESPACE/NAME; nil if there is none.
func (m madeObjects) service(key string) *corev1.Service {
	var s corev1.Service
	d := m.core["Service "+key]
	if d == nil || runtime.DefaultUnstructuredConverter.FromUnstructured(d.Object, &s) != nil {
		return nil
	}
	return &s
}

// isForeign reports whether Helm charts or add-ons of EKS may create objects in a namespace.
func (c *checks) isForeign(namespace string, made madeObjects) bool {
	installs := slices.ContainsFunc(c.cluster.Charts, func(h manifest.Chart) bool { return h.Namespace == namespace })
	return c.madeElsewhere() && (installs || made.namespaces[namespace] == nil)
}

// calledBy returns the Services that the API server calls for an object.
func calledBy(o object) []calledService {
	switch o.Group() + "/" + o.Kind() {
	case "admissionregistration.k8s.io/ValidatingWebhookConfiguration", "admissionregistration.k8s.io/MutatingWebhookConfiguration":
		return calledByHooks(o)
	case "apiextensions.k8s.io/CustomResourceDefinition":
		versions, _ := manifest.ValueAt(o.Object, "spec.versions").([]any)
		if len(versions) > 1 {
			return called(o, "spec.conversion.webhook.clientConfig.service", "the API server does not convert its objects to other versions")
		}
	case "apiregistration.k8s.io/APIService":
		return called(o, "spec.service", "the API does not become available")
	}
	return nil
}

// called returns the Service that a field of an object names.
func called(o object, path, otherwise string) []calledService {
	service, is := manifest.ValueAt(o.Object, path).(map[string]any)
	var s admissionv1.ServiceReference
	if !is || runtime.DefaultUnstructuredConverter.FromUnstructured(service, &s) != nil {
		return nil
	}
	return []calledService{{o, path, s.Namespace, s.Name, portOf(&s), otherwise}}
}

func portOf(s *admissionv1.ServiceReference) int32 {
	if s.Port != nil {
		return *s.Port
	}
	return webhookPort
}

// calledByHooks returns the Services of webhooks with failurePolicy Fail.
func calledByHooks(o object) (all []calledService) {
	var hooks admissionv1.MutatingWebhookConfiguration // the fields are those of the other kind, too
	if runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &hooks) != nil {
		return nil
	}
	for i, h := range hooks.Webhooks {
		if s := h.ClientConfig.Service; s != nil && (h.FailurePolicy == nil || *h.FailurePolicy != admissionv1.Ignore) {
			at := fmt.Sprintf("webhooks[%d].clientConfig.service", i)
			all = append(all, calledService{o, at, s.Namespace, s.Name, portOf(s), "the API server refuses " + ruled(h.Rules)})
		}
	}
	return all
}

// ruled names the resources that the rules of a webhook are about.
func ruled(rules []admissionv1.RuleWithOperations) string {
	var resources []string
	for _, r := range rules {
		for _, name := range r.Resources {
			if !slices.Contains(resources, name) {
				resources = append(resources, name)
			}
		}
	}
	if len(resources) == 0 || slices.ContainsFunc(resources, func(s string) bool { return strings.HasPrefix(s, "*") }) {
		return "all objects that it is to check"
	}
	return strings.Join(resources, ", ")
}
