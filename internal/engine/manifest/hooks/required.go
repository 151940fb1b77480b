package hooks

import (
	"slices"
	"strings"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
)

// WriteRequired sets required fields that are missing in an object, as the mutating webhook of its kind does. An API
// server calls the webhook before it validates the object with the schema. The webhook answers with the object in its
// Go type, so that fields without omitempty are there with their zero value.
// https://kubernetes.io/docs/reference/access-authn-authz/admission-controllers/#admission-control-phases
func WriteRequired(kind, version string, object map[string]any) {
	switch kind {
	case manifest.KindDeployment: // core/webhooks/admission/machinedeployment.go
		writeMissing(object, "spec.selector", map[string]any{})
	case manifest.KindControlPlane:
		if version == manifest.VersionOld {
			writeMissing(object, "spec.kubeadmConfigSpec", map[string]any{})
		}
	case manifest.KindManagedPool:
		writeMissing(object, "spec.taints[].value", "")
	case manifest.KindAWSCluster, manifest.KindManagedPlane:
		writeNetwork(object, "spec.")
	case manifest.KindAWSClusterTemplate, manifest.KindManagedPlaneTemplate:
		writeMissing(object, "spec.template.spec", map[string]any{})
		writeNetwork(object, "spec.template.spec.")
	}
}

// writeNetwork sets ids of subnets and versions of EKS add-ons that are missing, descriptions of ingress rules, and the
// ports of protocols that have no ports.
func writeNetwork(object map[string]any, spec string) {
	writeMissing(object, spec+"network.subnets[].id", "")
	writeMissing(object, spec+"addons[].version", "")
	for _, list := range []string{
		"network.cni.cniIngressRules", "network.additionalControlPlaneIngressRules", "network.additionalNodeIngressRules",
		"controlPlaneLoadBalancer.ingressRules", "secondaryControlPlaneLoadBalancer.ingressRules",
	} {
		writeMissing(object, spec+list+"[].description", "")
		each(object, spec+list+"[]", func(rule map[string]any) {
			protocol, _ := rule["protocol"].(string)
			_, from := rule["fromPort"]
			_, to := rule["toPort"]
			if slices.Contains([]string{"-1", "4", "50"}, protocol) && !from && !to {
				rule["fromPort"], rule["toPort"] = int64(0), int64(0)
			}
		})
	}
}

// writeMissing sets a field in each mapping that should have it and does not. [] in a path stands for each item of a list.
func writeMissing(object map[string]any, path string, value any) {
	at := strings.LastIndexByte(path, '.')
	each(object, path[:at], func(parent map[string]any) {
		if _, ok := parent[path[at+1:]]; !ok {
			parent[path[at+1:]] = value
		}
	})
}

// each calls f with each mapping at a path.
func each(value any, path string, f func(map[string]any)) {
	m, ok := value.(map[string]any)
	if !ok {
		return
	}
	if path == "" {
		f(m)
		return
	}
	name, rest, _ := strings.Cut(path, ".")
	field, isList := strings.CutSuffix(name, "[]")
	if !isList {
		each(m[field], rest, f)
		return
	}
	items, _ := m[field].([]any)
	for _, item := range items {
		each(item, rest, f)
	}
}
