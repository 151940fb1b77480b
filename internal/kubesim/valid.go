package kubesim

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/clusterawsadm/clusterawsadm/internal/regex"
)

const (
	subdomain = `^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	part      = `^[A-Za-z0-9]([-_.A-Za-z0-9]{0,61}[A-Za-z0-9])?$`
	amount    = `^[0-9.]+([numkMGTPE]|[KMGTPE]i|[eE][0-9]+)?$`
)

// valid rejects an object that the API server does not decode, or does not accept (pkg/apis/core/validation, pkg/apis/apps/validation
// and k8s.io/apimachinery/pkg/api/validation of Kubernetes).
func valid(o Object) (int, any) {
	if why := undecodable(o); why != "" {
		return failure(http.StatusBadRequest, "BadRequest", text(o, "kind")+" in version "+text(o, "apiVersion")+" cannot be handled: "+why)
	}
	if why := unacceptable(o); why != "" {
		return failure(http.StatusUnprocessableEntity, "Invalid", fmt.Sprintf("%s %q is invalid: %s", text(o, "kind"), text(o, "metadata", "name"), why))
	}
	return 0, nil
}

// undecodable says which value is of another type than its field.
func undecodable(o Object) string {
	texts := []string{"metadata annotations"}
	if text(o, "apiVersion") == "v1" {
		texts = append(texts, map[string][]string{"ConfigMap": {"data"}, "Secret": {"data", "stringData"}}[text(o, "kind")]...)
	}
	for _, path := range texts {
		all, _ := value(o, strings.Fields(path)...).(Object)
		for key, v := range all {
			word, is := v.(string)
			if !is && v != nil {
				return fmt.Sprintf("json: cannot unmarshal into Go struct field %s.%s of type string", path, key)
			}
			if _, err := base64.StdEncoding.DecodeString(word); text(o, "kind") == "Secret" && path == "data" && err != nil {
				return "illegal base64 data at input byte 0"
			}
		}
	}
	for _, c := range containersOf(o) {
		env, _ := value(c, "env").([]any)
		for _, x := range env {
			e, _ := x.(Object)
			if v, set := e["value"]; set && v != nil && text(e, "value") == "" && v != "" {
				return "json: cannot unmarshal into Go struct field EnvVar.spec.template.spec.containers.env.value of type string"
			}
		}
	}
	return ""
}

// unacceptable says what the API server finds wrong in an object.
func unacceptable(o Object) string {
	name := text(o, "metadata", "name")
	if !strings.HasPrefix(text(o, "apiVersion"), "rbac.authorization.k8s.io/") &&
		!regex.Of(subdomain).MatchString(name) {
		return fmt.Sprintf("metadata.name: Invalid value: %q: a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.'", name)
	}
	if slices.Contains([]string{"Deployment", "DaemonSet", "StatefulSet"}, text(o, "kind")) && strings.HasPrefix(text(o, "apiVersion"), "apps/") {
		wanted, _ := value(o, "spec", "selector", "matchLabels").(Object)
		for k, v := range wanted {
			if labels, _ := value(o, "spec", "template", "metadata", "labels").(Object); labels[k] != v {
				return "spec.template.metadata.labels: Invalid value: `selector` does not match template `labels`"
			}
		}
	}
	if why := labelsRefused(o); why != "" {
		return why
	}
	if why := containerRefused(o); why != "" {
		return why
	}
	if why := portRefused(o); why != "" {
		return why
	}
	if why := unnamed(o); why != "" {
		return why
	}
	if why := wrongPolicy(o); why != "" {
		return why
	}
	return brokenLaw(o)
}

// unnamed says which object an object has to name, such as its owner.
func unnamed(o Object) string {
	owners, _ := value(o, "metadata", "ownerReferences").([]any)
	for _, x := range owners {
		if r, _ := x.(Object); text(r, "uid") == "" {
			return `metadata.ownerReferences.uid: Invalid value: "": must not be empty`
		}
	}
	if text(o, "type") == "kubernetes.io/service-account-token" && text(o, "metadata", "annotations", "kubernetes.io/service-account.name") == "" {
		return "metadata.annotations[kubernetes.io/service-account.name]: Required value"
	}
	return ""
}

// containerRefused says which name or amount of a container the API server does not accept.
func containerRefused(o Object) string {
	seen := map[string]bool{}
	for _, c := range containersOf(o) {
		if n := text(c, "name"); !regex.Of(subdomain).MatchString(n) || strings.Contains(n, ".") {
			return fmt.Sprintf("spec.template.spec.containers.name: Invalid value: %q", n)
		} else if seen[n] {
			return fmt.Sprintf("spec.template.spec.containers.name: Duplicate value: %q", n)
		}
		seen[text(c, "name")] = true
		for _, of := range []string{"limits", "requests"} {
			amounts, _ := value(c, "resources", of).(Object)
			for k, v := range amounts {
				if !regex.Of(amount).MatchString(fmt.Sprint(v)) {
					return fmt.Sprintf("spec.template.spec.containers.resources.%s[%s]: quantities must match the regular expression", of, k)
				}
			}
		}
	}
	return ""
}

// labelsRefused says which label or annotation of an object the API server does not accept.
func labelsRefused(o Object) string {
	for _, of := range []string{"labels", "annotations"} {
		all, _ := value(o, "metadata", of).(Object)
		for key, v := range all {
			prefix, name, prefixed := strings.Cut(key, "/")
			if !prefixed {
				prefix, name = "a", key
			}
			if !regex.Of(part).MatchString(name) || !regex.Of(subdomain).MatchString(strings.ToLower(prefix)) ||
				of == "labels" && v != "" && !regex.Of(part).MatchString(fmt.Sprint(v)) {
				return fmt.Sprintf("metadata.%s: Invalid value: %q", of, key)
			}
		}
	}
	return ""
}

// portRefused says which port of a Service the API server does not accept.
func portRefused(o Object) string {
	ports, _ := value(o, "spec", "ports").([]any)
	for _, x := range ports {
		if p, _ := x.(Object); text(o, "kind") == "Service" {
			if n, is := p["port"].(float64); is && (n < 1 || n > 65535) {
				return fmt.Sprintf("spec.ports.port: Invalid value: %v: must be between 1 and 65535, inclusive", n)
			}
		}
	}
	return ""
}

// containersOf returns the containers of a workload or a pod.
func containersOf(o Object) (all []Object) {
	for _, path := range [][]string{{"spec"}, {"spec", "template", "spec"}, {"spec", "jobTemplate", "spec", "template", "spec"}} {
		for _, kind := range []string{"initContainers", "containers"} {
			list, _ := value(o, append(slices.Clone(path), kind)...).([]any)
			for _, x := range list {
				if c, is := x.(Object); is {
					all = append(all, c)
				}
			}
		}
	}
	return all
}
