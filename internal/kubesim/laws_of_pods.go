package kubesim

import (
	"fmt"
	"slices"
	"strings"

	quantity "k8s.io/apimachinery/pkg/api/resource"

	"github.com/clusterawsadm/clusterawsadm/internal/regex"
)

// podLaws are the rules about the specification of pods (ValidatePodSpec in pkg/apis/core/validation of Kubernetes 1.34).
func podLaws() []law {
	term := func(v any, _ Object) string {
		if isEmpty(v) {
			return "Required value: can not be empty"
		}
		return ""
	}
	weight := func(v any, _ Object) string {
		if n, _ := number(v); n < 1 || n > 100 {
			return fmt.Sprintf("Invalid value: %v: must be in the range 1-100", v)
		}
		return ""
	}
	const required, preferred = "requiredDuringSchedulingIgnoredDuringExecution", "preferredDuringSchedulingIgnoredDuringExecution"
	return []law{
		{path: "containers", wrong: needed},
		{path: "containers", wrong: hostPorts},
		{path: "dnsPolicy", wrong: among("ClusterFirst", "ClusterFirstWithHostNet", "Default", "None")},
		{path: "dnsConfig", wrong: func(v any, in Object) string {
			if c, _ := v.(Object); text(in, "dnsPolicy") == "None" && isEmpty(c["nameservers"]) {
				return "Required value: must provide at least one DNS nameserver when `dnsPolicy` is None"
			}
			return ""
		}},
		{path: "nodeSelector", wrong: func(v any, _ Object) string {
			all, _ := v.(Object)
			for _, x := range all {
				if s, _ := x.(string); !regex.Of(`^([A-Za-z0-9]([-_.A-Za-z0-9]{0,61}[A-Za-z0-9])?)?$`).MatchString(s) {
					return fmt.Sprintf("Invalid value: %q: a valid label must be an empty string or consist of alphanumeric characters", s)
				}
			}
			return ""
		}},
		{path: "serviceAccountName", wrong: func(v any, _ Object) string {
			if s, _ := v.(string); s != "" && !regex.Of(subdomain).MatchString(s) {
				return fmt.Sprintf("Invalid value: %q: a lowercase RFC 1123 subdomain", s)
			}
			return ""
		}},
		{path: "tolerations[]", wrong: toleration},
		{path: "topologySpreadConstraints[].topologyKey", wrong: term},
		{path: "topologySpreadConstraints[].whenUnsatisfiable", wrong: among("DoNotSchedule", "ScheduleAnyway")},
		{path: "affinity.podAntiAffinity." + required + "[].topologyKey", wrong: term},
		{path: "affinity.podAffinity." + required + "[].topologyKey", wrong: term},
		{path: "affinity.podAntiAffinity." + preferred + "[].weight", wrong: weight},
		{path: "affinity.podAffinity." + preferred + "[].weight", wrong: weight},
		{path: "affinity.nodeAffinity." + preferred + "[].weight", wrong: weight},
		{path: "affinity.nodeAffinity." + required + ".nodeSelectorTerms[].matchExpressions[].values", wrong: func(v any, in Object) string {
			if isEmpty(v) && slices.Contains([]string{"In", "NotIn"}, text(in, "operator")) {
				return "Required value: must be specified when `operator` is 'In' or 'NotIn'"
			}
			return ""
		}},
		{path: "volumes[]", wrong: func(v any, _ Object) string {
			if o, _ := v.(Object); o["image"] != nil {
				return "" // it is dropped, unless a feature gate is on
			} else if len(o) > 2 {
				return "Forbidden: may not specify more than 1 volume type"
			} else if !isLabel(text(o, "name")) {
				return fmt.Sprintf("name: Invalid value: %q: a lowercase RFC 1123 label", text(o, "name"))
			}
			return ""
		}},
		{path: "volumes[].secret.secretName", wrong: needed},
		{path: "volumes[].configMap.name", wrong: needed},
		{path: "volumes[].persistentVolumeClaim.claimName", wrong: needed},
		{path: "volumes[].projected.sources[].serviceAccountToken.expirationSeconds", wrong: tooShort},
		{path: "volumes[].hostPath.path", wrong: needed},
		{
			path:  "volumes[].hostPath.type",
			wrong: among("BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket"),
		},
	}
}

func contradictsItself(v any, _ Object) string {
	if s, _ := v.(Object); s["privileged"] == true && s["allowPrivilegeEscalation"] == false {
		return "Invalid value: cannot set `allowPrivilegeEscalation` to false and `privileged` to true"
	}
	return ""
}

func leavesFolder(v any, _ Object) string {
	if s, _ := v.(string); strings.HasPrefix(s, "/") || strings.HasPrefix(s+"/", "../") || strings.Contains(s+"/", "/../") {
		return fmt.Sprintf("Invalid value: %q: must be a relative path that does not contain '..'", s)
	}
	return ""
}

// tooShort is the rule of the seconds that a token is valid.
func tooShort(v any, _ Object) string {
	if n, is := number(v); is && n < 600 {
		return "Invalid value: may not specify a duration less than 10 minutes"
	}
	return ""
}

func toleration(v any, _ Object) string {
	t, _ := v.(Object)
	switch operator := text(t, "operator"); {
	case operator != "" && operator != "Exists" && operator != "Equal":
		return fmt.Sprintf("operator: Unsupported value: %q", operator)
	case operator == "Exists" && text(t, "value") != "":
		return "operator: Invalid value: value must be empty when `operator` is 'Exists'"
	case operator != "Exists" && !regex.Of(labelValue).MatchString(text(t, "value")):
		return fmt.Sprintf("operator: Invalid value: %q: a valid label must consist of alphanumeric characters", text(t, "value"))
	case operator != "Exists" && text(t, "key") == "":
		return "operator: Invalid value: operator must be Exists when `key` is empty"
	case t["tolerationSeconds"] != nil && text(t, "effect") != "NoExecute":
		return "effect: Invalid value: effect must be 'NoExecute' when `tolerationSeconds` is set"
	}
	if why := among("NoSchedule", "PreferNoSchedule", "NoExecute")(t["effect"], t); why != "" {
		return "effect: " + why
	}
	return ""
}

// containerLaws are the rules about a container of a pod of an object.
func containerLaws(pod, o Object) []law {
	all := []law{
		{path: "image", wrong: needed},
		{path: "imagePullPolicy", wrong: among("Always", "IfNotPresent", "Never")},
		{path: "ports[].containerPort", wrong: func(v any, in Object) string {
			if v == nil {
				return "Required value"
			}
			return portNumber(v, in)
		}},
		{path: "ports[].protocol", wrong: among("SCTP", "TCP", "UDP")},
		{path: "ports[].name", wrong: func(v any, in Object) string {
			if isEmpty(v) {
				return ""
			}
			return portNumber(v, in)
		}},
		{path: "ports", wrong: distinct("name")},
		{path: "ports[].hostPort", wrong: func(v any, in Object) string {
			if n, is := number(v); !is || n == 0 {
				return ""
			}
			if pod["hostNetwork"] == true && v != in["containerPort"] {
				return fmt.Sprintf("Invalid value: %v: must match `containerPort` when `hostNetwork` is true", v)
			}
			return portNumber(v, in)
		}},
		{path: "env", wrong: distinct("name")},
		{path: "env[].name", wrong: variableName},
		{path: "env[].valueFrom", wrong: func(v any, in Object) string {
			if v != nil && text(in, "value") != "" {
				return "Invalid value: \"\": may not be specified when `value` is not empty"
			}
			return ""
		}},
		{path: "env[].valueFrom.secretKeyRef.key", wrong: needed},
		{path: "env[].valueFrom.configMapKeyRef.key", wrong: needed},
		{path: "volumeMounts[].name", wrong: func(v any, _ Object) string {
			volumes, _ := pod["volumes"].([]any)
			claims, _ := value(o, "spec", "volumeClaimTemplates").([]any)
			for _, x := range volumes {
				if is, _ := x.(Object); text(is, "name") == v {
					return ""
				}
			}
			for _, x := range claims {
				if is, _ := x.(Object); text(is, "metadata", "name") == v {
					return ""
				}
			}
			return fmt.Sprintf("Not found: %q", v)
		}},
		{path: "securityContext", wrong: contradictsItself},
		{path: "volumeMounts[].subPath", wrong: leavesFolder},
		{path: "volumeMounts[].mountPath", wrong: needed},
		{path: "volumeMounts", wrong: distinct("mountPath")},
		{path: "resources", wrong: amounts},
	}
	return slices.Concat(all, probeLaws(), restartLaws(pod, o), sourceLaws(), protectionLaws(pod), actionLaws(pod), mountLaws(pod))
}

// probeLaws are the rules about the probes of a container.
func probeLaws() (all []law) {
	handlers := []string{"exec", "httpGet", "tcpSocket", "grpc"}
	for _, probe := range []string{"livenessProbe", "readinessProbe", "startupProbe"} {
		all = append(all,
			law{path: probe, wrong: func(v any, _ Object) string {
				if p, is := v.(Object); is {
					return one(handlers...)(nil, p)
				}
				return ""
			}},
			law{path: probe + ".successThreshold", wrong: func(v any, _ Object) string {
				if n, is := number(v); is && n > 1 && probe != "readinessProbe" {
					return fmt.Sprintf("Invalid value: %v: must be 1", v)
				}
				return ""
			}},
			law{path: probe + ".httpGet.port", wrong: portNumber},
			law{path: probe + ".tcpSocket.port", wrong: portNumber},
			law{path: probe + ".httpGet.scheme", wrong: among("HTTP", "HTTPS")},
		)
	}
	return all
}

// restartLaws are the rules about when the kubelet starts the containers of a pod again.
func restartLaws(pod, o Object) (all []law) {
	restart := text(pod, "restartPolicy")
	switch of := text(o, "kind"); {
	case of == "Job" || of == "CronJob":
		all = append(all, law{path: "image", wrong: func(any, Object) string {
			if restart != "Never" && restart != "OnFailure" {
				return "restartPolicy: Required value: valid values: \"OnFailure\", \"Never\""
			}
			return ""
		}})
	case of != "Pod":
		all = append(all, law{path: "image", wrong: func(any, Object) string {
			if restart != "" && restart != "Always" {
				return fmt.Sprintf("restartPolicy: Unsupported value: %q: supported values: \"Always\"", restart)
			}
			return ""
		}})
	}
	return all
}

// distinct permits a list whose items differ in a field.
func distinct(field string) func(any, Object) string {
	return func(v any, _ Object) string {
		list, _ := v.([]any)
		seen := map[string]bool{}
		for i, x := range list {
			item, _ := x.(Object)
			if name := text(item, field); name != "" && seen[name] {
				return fmt.Sprintf("[%d].%s: Duplicate value: %q", i, field, name)
			} else if name != "" {
				seen[name] = true
			}
		}
		return ""
	}
}

// amounts is the rule of the resources of a container.
func amounts(v any, _ Object) string {
	r, _ := v.(Object)
	limits, _ := r["limits"].(Object)
	for _, of := range []string{"limits", "requests"} {
		all, _ := r[of].(Object)
		for name, x := range all {
			usual := slices.Contains([]string{"cpu", "memory", "ephemeral-storage"}, name) || strings.HasPrefix(name, "hugepages-")
			if !usual && !strings.Contains(name, "/") {
				return fmt.Sprintf("%s[%s]: Invalid value: %q: must be a standard resource type or fully qualified", of, name, name)
			}
			n, err := quantity.ParseQuantity(fmt.Sprint(x))
			if err != nil {
				return fmt.Sprintf("%s[%s]: quantities must match the regular expression", of, name)
			}
			if n.Sign() < 0 {
				return fmt.Sprintf("%s[%s]: Invalid value: %q: must be greater than or equal to 0", of, name, n.String())
			}
			most, err := quantity.ParseQuantity(fmt.Sprint(limits[name]))
			switch {
			case of == "limits" || err != nil && usual && !strings.HasPrefix(name, "hugepages-"):
			case err != nil:
				return "limits: Required value: Limit must be set for non overcommitable resources"
			case n.Cmp(most) > 0:
				return fmt.Sprintf("requests: Invalid value: %q: must be less than or equal to %s limit of %s", n.String(), name, most.String())
			}
		}
	}
	return ""
}

// variableName is the rule of the name of a variable.
func variableName(v any, _ Object) string {
	if s, _ := v.(string); s == "" || strings.Contains(s, "=") {
		return fmt.Sprintf("Invalid value: %q: a valid environment variable name must consist only of printable ASCII characters other than '='", s)
	}
	return ""
}
