package kubernetes

import (
	"fmt"
	"strings"
)

// staticPodPatchRefused returns why kubeadm does not apply a patch to the pod of a component, or why the kubelet does not run what it makes
// (cmd/kubeadm/app/util/patches/patches.go, ComponentPod in cmd/kubeadm/app/util/staticpod/utils.go of Kubernetes v1.34.2).
func staticPodPatchRefused(target, kind string, doc any) string {
	resources := map[string]any{"cpu": "100m"}
	if target == "etcd" {
		resources["memory"] = "100Mi"
	}
	container := map[string]any{"resources": map[string]any{"requests": resources}}
	for _, name := range strings.Fields("name image imagePullPolicy command livenessProbe readinessProbe startupProbe volumeMounts env ports") {
		container[name] = true // what is in it is not simulated
	}
	pod := map[string]any{
		"apiVersion": true, "kind": true, "status": true,
		"metadata": map[string]any{
			"name": true, "namespace": true, "creationTimestamp": true, "annotations": true, "labels": map[string]any{"component": true, "tier": true},
		},
		"spec": map[string]any{
			"containers": []any{container}, "hostNetwork": true, "priority": true, "priorityClassName": true, "volumes": true, "securityContext": true,
		},
	}
	switch doc := doc.(type) {
	case []any:
		for _, x := range doc {
			op, _ := x.(map[string]any)
			if why := operate(pod, op); why != "" {
				return "kubeadm: could not apply the following patch to target " + target + ": " + why
			}
		}
	case map[string]any:
		spec, _ := doc["spec"].(map[string]any)
		if network, set := spec["hostNetwork"]; set {
			pod["spec"].(map[string]any)["hostNetwork"] = network
		}
		containers, _ := spec["containers"].([]any)
		for _, x := range containers {
			c, _ := x.(map[string]any)
			switch {
			case c["name"] == nil && kind != "merge":
				return "kubeadm: map: " + fmt.Sprint(c) + " does not contain declared merge key: name"
			case c["image"] == nil && (kind == "merge" || c["name"] != target) && c["$patch"] == nil:
				return fmt.Sprintf("kubelet: Pod %q is invalid: spec.containers.image: Required value", target)
			}
		}
	}
	if pod["spec"].(map[string]any)["hostNetwork"] != true {
		return target + ": container runtime network not ready: cni plugin not initialized"
	}
	return ""
}

// operate applies an operation to fields, and returns why it fails. true is a value that is not known.
func operate(pod map[string]any, op map[string]any) string {
	verb, _ := op["op"].(string)
	path, _ := op["path"].(string)
	from, _ := op["from"].(string)
	switch verb {
	case "test":
		return ""
	case "add", "replace", "remove":
	case "move", "copy":
		if in, name := around(pod, from); !holds(in, name) {
			return "missing value: " + from
		}
	default:
		return "Unexpected kind: " + verb
	}
	in, name := around(pod, path)
	if in == nil || (verb == "replace" || verb == "remove") && !holds(in, name) {
		return fmt.Sprintf("%s operation: doc is missing key: %s: missing value", verb, path)
	}
	if fields, is := in.(map[string]any); is {
		if verb == "remove" {
			delete(fields, name)
		} else if fields[name] = op["value"]; op["value"] == nil {
			fields[name] = true
		}
	}
	return ""
}

// around returns what has the last field of a path, and the name of the field; nil if there is nothing.
func around(pod map[string]any, path string) (any, string) {
	steps := strings.Split(strings.TrimPrefix(path, "/"), "/")
	var at any = pod
	for _, step := range steps[:len(steps)-1] {
		switch v := at.(type) {
		case map[string]any:
			at = v[step]
		case []any:
			if step != "0" || len(v) == 0 {
				return nil, ""
			}
			at = v[0]
		default:
			return at, ""
		}
	}
	return at, steps[len(steps)-1]
}

func holds(in any, name string) bool {
	switch in := in.(type) {
	case nil:
		return false
	case map[string]any:
		return in[name] != nil
	case []any:
		return name == "0" || name == "-"
	}
	return true
}
