package kubesim

import (
	"fmt"
	"slices"
	"strings"

	quantity "k8s.io/apimachinery/pkg/api/resource"

	"github.com/clusterawsadm/clusterawsadm/internal/regex"
)

// sourceLaws are the rules about the variables of a container.
func sourceLaws() []law {
	sources := []string{"configMapKeyRef", "fieldRef", "fileKeyRef", "resourceFieldRef", "secretKeyRef"}
	return []law{
		{path: "env[].valueFrom", wrong: func(v any, _ Object) string {
			if from, is := v.(Object); is {
				return one(sources...)(nil, from)
			}
			return ""
		}},
		{path: "env[].valueFrom.fieldRef.fieldPath", wrong: func(v any, _ Object) string {
			others := []string{"spec.nodeName", "spec.serviceAccountName", "status.hostIP", "status.hostIPs", "status.podIP", "status.podIPs"}
			if s, _ := v.(string); slices.Contains(others, s) {
				return ""
			}
			return shown("name", "namespace", "uid")(v, nil)
		}},
		{path: "env[].valueFrom.resourceFieldRef.resource", wrong: func(v any, _ Object) string {
			if s, _ := v.(string); !regex.Of(`^(limits|requests)\.(cpu|memory|ephemeral-storage|hugepages-.*)$`).MatchString(s) {
				return fmt.Sprintf("Unsupported value: %q", s)
			}
			return ""
		}},
		{path: "env[].valueFrom.configMapKeyRef.key", wrong: dataKey},
		{path: "env[].valueFrom.secretKeyRef.key", wrong: dataKey},
		{path: "envFrom[].prefix", wrong: func(v any, _ Object) string {
			if s, _ := v.(string); strings.Contains(s, "=") {
				return fmt.Sprintf("Invalid value: %q: a valid environment variable name must consist only of printable ASCII characters other than '='", s)
			}
			return ""
		}},
		{path: "envFrom[]", wrong: func(v any, _ Object) string {
			from, _ := v.(Object)
			return one("configMapRef", "secretRef")(nil, from)
		}},
		{path: "envFrom[].configMapRef.name", wrong: needed},
		{path: "envFrom[].secretRef.name", wrong: needed},
	}
}

// dataKey is the rule for one key in the data of a Secret or ConfigMap.
func dataKey(v any, _ Object) string {
	if s, _ := v.(string); !regex.Of(`^[-._a-zA-Z0-9]{1,253}$`).MatchString(s) {
		return fmt.Sprintf("Invalid value: %q: a valid config key must consist of alphanumeric characters, '-', '_' or '.'", s)
	}
	return ""
}

// protectionLaws are the rules about what a container may do.
func protectionLaws(pod Object) []law {
	const context = "securityContext."
	return []law{
		{path: "terminationMessagePolicy", wrong: among("FallbackToLogsOnError", "File")},
		{path: context + "runAsUser", wrong: between(0, largest32)},
		{path: context + "runAsGroup", wrong: between(0, largest32)},
		{path: context + "seccompProfile", wrong: profile},
		{path: context + "appArmorProfile", wrong: profile},
		{path: context + "procMount", wrong: func(v any, in Object) string {
			if v == "Unmasked" && pod["hostUsers"] != false {
				return "Invalid value: \"Unmasked\": `hostUsers` must be false to use `Unmasked`"
			}
			return among("Default", "Unmasked")(v, in)
		}},
		{path: "securityContext", wrong: func(v any, _ Object) string {
			c, _ := v.(Object)
			if add, _ := value(c, "capabilities", "add").([]any); c["allowPrivilegeEscalation"] == false && slices.Contains(add, any("CAP_SYS_ADMIN")) {
				return "Invalid value: cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN"
			}
			return ""
		}},
		{path: "resizePolicy[].resourceName", wrong: among("cpu", "memory")},
		{path: "resizePolicy[].restartPolicy", wrong: func(v any, in Object) string {
			if v == "RestartContainer" && text(pod, "restartPolicy") == "Never" {
				return "Invalid value: must be 'NotRequired' when `restartPolicy` is 'Never'"
			}
			return among("NotRequired", "RestartContainer")(v, in)
		}},
		{path: "resources", wrong: devices},
		{path: "resources.claims[].name", wrong: func(v any, _ Object) string {
			for _, c := range listed(pod["resourceClaims"]) {
				if text(c, "name") == v {
					return ""
				}
			}
			return fmt.Sprintf("Not found: %q", v)
		}},
	}
}

// devices is the rule of resources that are not overcommitted.
func devices(v any, _ Object) string {
	r, _ := v.(Object)
	limits, _ := r["limits"].(Object)
	requests, _ := r["requests"].(Object)
	counted := false
	for _, all := range []Object{limits, requests} {
		counted = counted || all["cpu"] != nil || all["memory"] != nil
		for name, x := range all {
			if !strings.Contains(name, "/") || strings.Contains(name, "kubernetes.io/") {
				continue
			}
			n, err := quantity.ParseQuantity(fmt.Sprint(x))
			if err == nil && n.MilliValue()%1000 != 0 {
				return fmt.Sprintf("limits[%s]: Invalid value: %q: must be an integer", name, n.String())
			}
			if most := limits[name]; most != nil && fmt.Sprint(most) != fmt.Sprint(x) {
				return fmt.Sprintf("requests: Invalid value: %q: must be equal to %s limit of %v", n.String(), name, most)
			}
		}
	}
	for _, all := range []Object{limits, requests} {
		for name := range all {
			if strings.HasPrefix(name, "hugepages-") && !counted {
				return "Forbidden: HugePages require cpu or memory"
			}
		}
	}
	return ""
}

// beginsOnly are the fields that init containers do not have, unless they run beside the others.
func beginsOnly() (all []law) {
	for _, field := range []string{"lifecycle", "livenessProbe", "readinessProbe", "startupProbe"} {
		all = append(all, law{path: field, wrong: func(v any, in Object) string {
			if v != nil && text(in, "restartPolicy") != "Always" {
				return "Forbidden: may not be set for init containers without restartPolicy=Always"
			}
			return ""
		}})
	}
	return all
}

// actionLaws are the rules about what probes and hooks do.
func actionLaws(pod Object) (all []law) {
	grace := float64(30)
	if n, is := number(pod["terminationGracePeriodSeconds"]); is {
		grace = n
	}
	for _, probe := range []string{"livenessProbe", "readinessProbe", "startupProbe"} {
		for _, field := range []string{"initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold"} {
			all = append(all, law{path: probe + "." + field, wrong: counted})
		}
		all = append(all,
			law{path: probe + ".grpc.port", wrong: portNumber},
			law{path: probe + ".terminationGracePeriodSeconds", wrong: func(v any, _ Object) string {
				if n, is := number(v); is && (n < 1 || probe == "readinessProbe") {
					return "Invalid value: must be greater than 0"
				}
				return ""
			}},
		)
	}
	for _, hook := range []string{"lifecycle.postStart", "lifecycle.preStop"} {
		all = append(all,
			law{path: hook, wrong: func(v any, _ Object) string {
				if h, is := v.(Object); is {
					return one("exec", "httpGet", "tcpSocket", "sleep")(nil, h)
				}
				return ""
			}},
			law{path: hook + ".sleep.seconds", wrong: between(0, grace)},
		)
	}
	for _, of := range []string{"livenessProbe", "readinessProbe", "startupProbe", "lifecycle.postStart", "lifecycle.preStop"} {
		all = append(all,
			law{path: of + ".exec.command", wrong: needed},
			law{path: of + ".httpGet.port", wrong: portNumber},
			law{path: of + ".httpGet.httpHeaders[].name", wrong: func(v any, _ Object) string {
				if s, _ := v.(string); !regex.Of(`^[-A-Za-z0-9]+$`).MatchString(s) {
					return fmt.Sprintf("Invalid value: %q: a valid HTTP header must consist of alphanumeric characters or '-'", s)
				}
				return ""
			}},
		)
	}
	return all
}

// hostPorts is the rule of the ports of the machine that containers of a pod have.
func hostPorts(v any, _ Object) string {
	seen := map[string]bool{}
	for i, c := range listed(v) {
		for j, p := range listed(c["ports"]) {
			protocol := text(p, "protocol")
			if protocol == "" {
				protocol = "TCP"
			}
			port := fmt.Sprintf("%s/%s/%v", protocol, text(p, "hostIP"), p["hostPort"])
			if p["hostPort"] != nil && seen[port] {
				return fmt.Sprintf("[%d].ports[%d].hostPort: Duplicate value: %q", i, j, port)
			}
			seen[port] = true
		}
	}
	return ""
}

// barePod are the rules about a pod that is no template.
func barePod() []law {
	image := func(v any, _ Object) string {
		if s, _ := v.(string); strings.TrimSpace(s) != s {
			return fmt.Sprintf("Invalid value: %q: must not have leading or trailing whitespace", s)
		}
		return ""
	}
	return []law{
		{path: "containers[].image", wrong: image},
		{path: "initContainers[].image", wrong: image},
		{path: "nodeName", wrong: func(v any, in Object) string {
			if v != nil && !isEmpty(in["schedulingGates"]) {
				return "Forbidden: cannot be set until all schedulingGates have been cleared"
			}
			return ""
		}},
	}
}
