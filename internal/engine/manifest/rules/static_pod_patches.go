package rules

import (
	"fmt"
	"slices"
	"strings"

	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
)

// isStaticPod reports whether kubeadm makes a static pod for a target of patches.
func isStaticPod(target string) bool { return strings.HasPrefix(target, "kube-") || target == "etcd" }

// checkStaticPodPatch checks a patch of kubeadm for the pod of a component of the control plane (ComponentPod in
// cmd/kubeadm/app/util/staticpod/utils.go of Kubernetes).
func (c *checks) checkStaticPodPatch(o *manifest.Entry, at, target, kind string, doc any, spec *bootstrapv1.KubeadmConfigSpec) {
	if o.Kind != manifest.KindControlPlane && !spec.ClusterConfiguration.IsDefined() { // workers have no static pods
		return
	}
	of, _ := doc.(map[string]any)
	if of != nil {
		c.checkPatchedPod(o, at, target, kind, of)
		return
	}
	operations, _ := doc.([]any)
	c.checkOperations(o, at, target, operations)
	for _, x := range operations {
		op, _ := x.(map[string]any)
		if manifest.StringField(op, "path") == "/spec/hostNetwork" && (op["op"] == "remove" || op["value"] == false) {
			c.fail(o.Problem(at, target+" does not start: "+withoutHostNetwork, "remove the operation"))
		}
	}
}

// withoutHostNetwork says what a static pod of the control plane waits for that has a network of its own.
const withoutHostNetwork = "without the network of the machine, it waits for a pod network, which nothing can install"

// checkPatchedPod checks a patch that has the form of the pod.
func (c *checks) checkPatchedPod(o *manifest.Entry, at, target, kind string, doc map[string]any) {
	refuse := func(what, fix string) { c.fail(o.Problem(at, target+" does not start: "+what, fix)) }
	spec, _ := manifest.ValueAt(doc, "spec").(map[string]any)
	if network, set := spec["hostNetwork"]; set && network != true {
		refuse(withoutHostNetwork, "remove hostNetwork")
	}
	containers, _ := spec["containers"].([]any)
	for _, x := range containers {
		of, _ := x.(map[string]any)
		switch name, image := manifest.StringField(of, "name"), manifest.StringField(of, "image"); {
		case name == "":
			c.fail(o.Problem(at, "kubeadm fails: a container has no name, by which the patch is applied", "write name: "+target))
		case kind == "merge" && image == "":
			refuse("a patch of the type merge replaces all containers, and "+name+" has no image", "name the file +strategic")
		case name != target && image == "" && of["$patch"] == nil:
			refuse(fmt.Sprintf("the patch adds a container %s without an image", name), "write name: "+target+", or add the image")
		}
	}
}

// checkOperations refuses operations on fields that the pod does not have: no operation but add makes one, and add needs what is around it
// (gopkg.in/evanphx/json-patch.v4). An operation that is about what an earlier one adds is accepted.
func (c *checks) checkOperations(o *manifest.Entry, at, target string, operations []any) {
	var added []string
	for i, x := range operations {
		op, _ := x.(map[string]any)
		verb, path := manifest.StringField(op, "op"), manifest.StringField(op, "path")
		read := path
		switch verb {
		case "add":
			read = path[:max(strings.LastIndex(path, "/"), 0)]
			added = append(added, path)
		case "move", "copy":
			read = manifest.StringField(op, "from")
			added = append(added, path)
		case "replace", "remove":
		case "test":
			continue
		default:
			c.fail(o.Problem(at, fmt.Sprintf("kubeadm fails: operation %d has op %q", i+1, verb), "write add, replace, remove, move, copy or test"))
			continue
		}
		if slices.ContainsFunc(added, func(a string) bool { return read == a || strings.HasPrefix(read, a+"/") }) || podHas(target, read) {
			continue
		}
		fix := "correct the path"
		if verb == "replace" {
			fix += ", or write add"
		}
		c.fail(o.Problem(at, fmt.Sprintf("kubeadm fails: operation %d, %s: the pod of %s has no %s", i+1, verb, target, read), fix))
	}
}

// podHas reports whether the pod that kubeadm makes for a component may have a field.
func podHas(target, path string) bool {
	known := map[string]string{
		"":                                  "apiVersion kind metadata spec status",
		"/metadata":                         "name namespace labels annotations creationTimestamp",
		"/metadata/labels":                  "component tier",
		"/spec":                             "containers hostNetwork priority priorityClassName securityContext volumes",
		"/spec/containers":                  "0 -",
		"/spec/containers/0":                "name image imagePullPolicy command livenessProbe readinessProbe startupProbe resources volumeMounts env ports",
		"/spec/containers/0/resources":      "requests",
		"/spec/securityContext":             "seccompProfile runAsUser runAsGroup fsGroup supplementalGroups",
		"/spec/containers/0/livenessProbe":  "",
		"/spec/containers/0/readinessProbe": "",
	}
	if requests := "cpu"; target == "etcd" {
		known["/spec/containers/0/resources/requests"] = requests + " memory"
	} else {
		known["/spec/containers/0/resources/requests"] = requests
	}
	in := ""
	for step := range strings.SplitSeq(strings.TrimPrefix(path, "/"), "/") {
		if path == "" {
			return true
		}
		if fields := known[in]; fields != "" && !slices.Contains(strings.Fields(fields), step) {
			return false
		}
		in += "/" + step
	}
	return true
}
