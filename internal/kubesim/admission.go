package kubesim

import (
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"time"
)

// Durations of asynchronous steps. Kubernetes documents no figures.
const (
	// definedTakes is the time from the creation of a CustomResourceDefinition until its
	// objects are served.
	definedTakes = 1500 * time.Millisecond
	// podsTake is the time from the first ready Node until the pods of a webhook answer.
	podsTake = 20 * time.Second
)

// store stores an object like put, with everything else that the API server adds.
func (c *Cluster) store(path string, o Object, now time.Time) {
	old := c.Objects[path]
	c.defaults(o, old)
	if _, counted := o["spec"]; counted {
		meta, _ := o["metadata"].(Object)
		was, _ := value(old, "metadata", "generation").(float64)
		if meta["generation"] = was; !reflect.DeepEqual(o["spec"], value(old, "spec")) {
			meta["generation"] = was + 1
		}
	}
	c.put(path, o, now)
}

// defaults sets the defaults of the API server that could look like differences: also in
// lists, and values that are chosen once.
func (c *Cluster) defaults(o, old Object) {
	spec, _ := o["spec"].(Object)
	if spec == nil {
		return
	}
	switch text(o, "kind") {
	case "CustomResourceDefinition":
		storeVersions(o)
	case "DaemonSet", "Deployment":
		unset(spec, "revisionHistoryLimit", float64(10))
		strategy := map[string]string{"DaemonSet": "updateStrategy", "Deployment": "strategy"}[text(o, "kind")]
		unset(spec, strategy, Object{"type": "RollingUpdate"})
		pod, _ := value(spec, "template", "spec").(Object)
		podDefaults(pod)
	case "Service":
		unset(spec, "type", "ClusterIP")
		unset(spec, "sessionAffinity", "None")
		if ip := text(old, "spec", "clusterIP"); ip != "" {
			unset(spec, "clusterIP", ip)
		}
		if spec["clusterIP"] == nil && text(spec, "type") != "ExternalName" {
			spec["clusterIP"] = c.freeAddress(o)
		}
		protocols(spec)
	}
}

// podDefaults sets defaults in the specification of a pod.
func podDefaults(pod Object) {
	if pod == nil {
		return
	}
	unset(pod, "restartPolicy", "Always")
	unset(pod, "dnsPolicy", "ClusterFirst")
	containers, _ := pod["containers"].([]any)
	for _, x := range containers {
		container, _ := x.(Object)
		unset(container, "imagePullPolicy", "IfNotPresent")
		unset(container, "terminationMessagePath", "/dev/termination-log")
		protocols(container)
	}
}

func protocols(of Object) {
	ports, _ := of["ports"].([]any)
	for _, x := range ports {
		if port, ok := x.(Object); ok {
			unset(port, "protocol", "TCP")
		}
	}
}

func unset(o Object, key string, v any) {
	if o != nil && o[key] == nil {
		o[key] = v
	}
}

// managed records in managedFields who applied an object, when, and which fields. Those of custom resources are not simulated.
func managed(o, applied Object, manager string, now time.Time) {
	meta, _ := o["metadata"].(Object)
	entry := Object{"manager": manager, "operation": "Apply", "time": now.UTC().Format(time.RFC3339Nano)}
	if fields := fieldSet(applied); fields != nil {
		entry["fieldsType"], entry["fieldsV1"] = "FieldsV1", fields
	}
	meta["managedFields"] = []any{entry}
}

// settleDefinitions serves the custom resources whose time has come.
func (c *Cluster) settleDefinitions(now time.Time) {
	for _, path := range slices.Sorted(maps.Keys(c.Defined)) {
		if o := c.Objects[path]; !c.Defined[path].After(now) {
			if o != nil {
				c.define(o)
				storeVersions(o)
				status, _ := o["status"].(Object)
				status["conditions"] = []any{Object{"type": "Established", "status": "True"}}
			}
			delete(c.Defined, path)
		}
	}
}

// authorize rejects requests to resources in Denied.
func (c *Cluster) authorize(at place, method string) (int, any) {
	what := strings.TrimSuffix(at.resource.Name+"/"+at.sub, "/")
	if method == http.MethodGet && at.namespace+at.name == "" && slices.Contains(c.Denied, "list "+what) {
		return failure(http.StatusForbidden, "Forbidden", fmt.Sprintf(
			"%s is forbidden: User \"kubernetes-admin\" cannot list resource %q in API group \"\" at the cluster scope", what, what))
	}
	if method == http.MethodGet || !slices.Contains(c.Denied, what) {
		return 0, nil
	}
	return failure(http.StatusForbidden, "Forbidden", fmt.Sprintf(
		"%s %q is forbidden: User \"kubernetes-admin\" cannot write resource %q in the namespace %q", at.resource.Name, at.name, what, at.namespace))
}

// hooked rejects a request for a webhook that does not answer yet, and a dry run for one that may have side effects
// (NewDryRunUnsupportedErr in k8s.io/apiserver). The answers of webhooks are not simulated.
func (c *Cluster) hooked(now time.Time, at place, method string, dry bool) (int, any) {
	if method == http.MethodGet || method == http.MethodDelete || at.sub != "" {
		return 0, nil
	}
	configurations := c.those(func(path string, _ Object) bool {
		return strings.HasPrefix(path, "/apis/admissionregistration.k8s.io/v1/")
	})
	for _, path := range configurations {
		webhooks, _ := c.Objects[path]["webhooks"].([]any)
		for _, x := range webhooks {
			hook, _ := x.(Object)
			if dry && concerns(hook, at) && !slices.Contains([]string{"None", "NoneOnDryRun"}, text(hook, "sideEffects")) {
				return failure(http.StatusBadRequest, "BadRequest", fmt.Sprintf("admission webhook %q does not support dry run", text(hook, "name")))
			}
			if text(hook, "failurePolicy") == "Ignore" || !concerns(hook, at) || c.answers(now, hook) {
				continue
			}
			service, _ := value(hook, "clientConfig", "service").(Object)
			host := text(hook, "clientConfig", "service", "name") + "." + text(hook, "clientConfig", "service", "namespace") + ".svc:443"
			return failure(http.StatusInternalServerError, "InternalError", fmt.Sprintf(
				"Internal error occurred: failed calling webhook %q: failed to call webhook: Post \"https://%s/?timeout=10s\": %s",
				text(hook, "name"),
				host,
				c.unreached(now, service),
			))
		}
	}
	return 0, nil
}

// concerns reports whether a rule of a webhook matches a request.
func concerns(hook Object, at place) bool {
	group, _, ok := strings.Cut(at.resource.gv, "/")
	if !ok {
		group = ""
	}
	rules, _ := hook["rules"].([]any)
	return slices.ContainsFunc(rules, func(x any) bool {
		rule, _ := x.(Object)
		lists := func(key, word string) bool {
			words, _ := rule[key].([]any)
			return slices.Contains(words, any(word)) || slices.Contains(words, any("*"))
		}
		return lists("apiGroups", group) && lists("resources", at.resource.Name)
	})
}

// answers reports whether the Service of a webhook can be reached.
func (c *Cluster) answers(now time.Time, hook Object) bool {
	service, _ := value(hook, "clientConfig", "service").(Object)
	return value(hook, "clientConfig", "url") != nil || c.unreached(now, service) == ""
}

// unreached says why the API server does not reach a Service; "" if it does: a Node has been ready for long enough, the Service has the port
// (ResolveEndpoint in k8s.io/apiserver/pkg/util/proxy), and there are pods that it selects.
func (c *Cluster) unreached(now time.Time, service Object) string {
	name, namespace := text(service, "name"), text(service, "namespace")
	o := c.Objects["/api/v1/namespaces/"+namespace+"/services/"+name]
	if o == nil {
		return fmt.Sprintf("service %q not found", name)
	}
	port, given := number(service["port"])
	if !given {
		port = 443
	}
	has := func(p Object) bool { n, _ := number(p["port"]); return n == port }
	if !slices.ContainsFunc(list(o, "spec", "ports"), has) {
		return fmt.Sprintf("no service port %v found for service %q", port, name)
	}
	selector, _ := value(o, "spec", "selector").(Object)
	for path, workload := range c.Objects {
		labels, _ := value(template(workload), "metadata", "labels").(Object)
		if !strings.HasPrefix(path, "/apis/apps/v1/namespaces/"+namespace+"/") || c.broken(workload) {
			continue
		}
		if selects(Object{"matchLabels": selector}, labels) && !c.Running.IsZero() && now.Sub(c.Running) >= podsTake {
			return ""
		}
	}
	return fmt.Sprintf("no endpoints available for service %q", name)
}

// settleAPIServices sets the condition of APIServices (pkg/controllers/status/remote of k8s.io/kube-aggregator).
func (c *Cluster) settleAPIServices(now time.Time) {
	for _, path := range c.paths("APIService") {
		o := c.Objects[path]
		is := Object{"type": "Available", "status": "True", "reason": "Passed"}
		if service, has := value(o, "spec", "service").(Object); has {
			if why := c.unreached(now, service); why != "" {
				is = Object{"type": "Available", "status": "False", "reason": "ServiceNotFound", "message": why}
			}
		}
		if status := (Object{"conditions": []any{is}}); !reflect.DeepEqual(o["status"], status) {
			o["status"] = status
			c.put(path, o, now)
		}
	}
}
