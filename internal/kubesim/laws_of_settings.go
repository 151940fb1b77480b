package kubesim

import (
	"fmt"
	"net"
	"slices"
	"strings"

	"github.com/clusterawsadm/clusterawsadm/internal/regex"
)

const (
	largest32  = 1<<31 - 1
	labelValue = `^([A-Za-z0-9]([-_.A-Za-z0-9]{0,61}[A-Za-z0-9])?)?$`
	dotted     = `^_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?(\._?[a-z0-9]([-_a-z0-9]*[a-z0-9])?)*$`
)

// settingLaws are the rules about settings of pods that are not about containers and volumes.
func settingLaws() []law {
	const context = "securityContext."
	identity := between(0, largest32)
	return []law{
		{path: "hostAliases[].ip", wrong: address},
		{path: "hostAliases[].hostnames[]", wrong: domain},
		{path: "hostname", wrong: label},
		{path: "subdomain", wrong: label},
		{path: "nodeName", wrong: domain},
		{path: "priorityClassName", wrong: domain},
		{path: "runtimeClassName", wrong: domain},
		{path: "preemptionPolicy", wrong: among("Never", "PreemptLowerPriority")},
		{path: "activeDeadlineSeconds", wrong: between(1, largest32)},
		{path: "dnsConfig.nameservers", wrong: atMost(3)},
		{path: "dnsConfig.nameservers[]", wrong: address},
		{path: "dnsConfig.searches", wrong: atMost(32)},
		{path: "dnsConfig.searches[]", wrong: searched},
		{path: "dnsConfig.options[].name", wrong: needed},
		{path: "schedulingGates[].name", wrong: keyName},
		{path: "readinessGates[].conditionType", wrong: keyName},
		{path: "ephemeralContainers", wrong: never("ephemeral containers not allowed in pod template")},
		{path: context + "fsGroup", wrong: identity},
		{path: context + "runAsUser", wrong: identity},
		{path: context + "runAsGroup", wrong: identity},
		{path: context + "supplementalGroups[]", wrong: identity},
		{path: context + "fsGroupChangePolicy", wrong: among("Always", "OnRootMismatch")},
		{path: context + "supplementalGroupsPolicy", wrong: among("Merge", "Strict")},
		{path: context + "seLinuxChangePolicy", wrong: among("MountOption", "Recursive")},
		{path: context + "seccompProfile", wrong: profile},
		{path: context + "appArmorProfile", wrong: profile},
		{path: context + "sysctls[].name", wrong: kernelParameter},
		{path: "shareProcessNamespace", wrong: func(v any, in Object) string {
			if v == true && in["hostPID"] == true {
				return "Invalid value: true: ShareProcessNamespace and HostPID cannot both be enabled"
			}
			return ""
		}},
		{path: "hostUsers", wrong: ownUsers},
		{path: "os", wrong: system},
		{path: "securityContext", wrong: hostSysctls},
		{path: "containers", wrong: hostProcesses},
		{path: "tolerations[].key", wrong: func(v any, in Object) string {
			if isEmpty(v) {
				return ""
			}
			return keyName(v, in)
		}},
	}
}

func between(least, most float64) func(any, Object) string {
	return func(v any, _ Object) string {
		if n, is := number(v); is && (n < least || n > most) {
			return fmt.Sprintf("Invalid value: %v: must be between %.0f and %.0f, inclusive", v, least, most)
		}
		return ""
	}
}

func atMost(most int) func(any, Object) string {
	return func(v any, _ Object) string {
		if all, _ := v.([]any); len(all) > most {
			return fmt.Sprintf("Invalid value: must not have more than %d items", most)
		}
		return ""
	}
}

// never permits no value.
func never(why string) func(any, Object) string {
	return func(v any, _ Object) string {
		if v != nil {
			return "Forbidden: " + why
		}
		return ""
	}
}

// address permits IP addresses.
func address(v any, _ Object) string {
	if s, is := v.(string); is && net.ParseIP(s) == nil {
		return fmt.Sprintf("Invalid value: %q: must be a valid IP address", s)
	}
	return ""
}

// domain permits names of DNS in small letters, or none.
func domain(v any, _ Object) string {
	if s, _ := v.(string); s != "" && (len(s) > 253 || !regex.Of(subdomain).MatchString(s)) {
		return fmt.Sprintf("Invalid value: %q: a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.'", s)
	}
	return ""
}

// label permits one part of a name of DNS, or none.
func label(v any, _ Object) string {
	if s, _ := v.(string); s != "" && !isLabel(s) {
		return fmt.Sprintf("Invalid value: %q: a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-'", s)
	}
	return ""
}

// keyName permits names such as those of labels.
func keyName(v any, _ Object) string {
	s, _ := v.(string)
	prefix, name, prefixed := strings.Cut(s, "/")
	if !prefixed {
		prefix, name = "a", s
	}
	if !regex.Of(part).MatchString(name) || !regex.Of(subdomain).MatchString(prefix) {
		return fmt.Sprintf("Invalid value: %q: name part must consist of alphanumeric characters, '-', '_' or '.'", s)
	}
	return ""
}

// marked permits mappings that could be labels.
func marked(v any, _ Object) string {
	all, _ := v.(Object)
	for k, x := range all {
		if why := keyName(k, nil); why != "" {
			return why
		}
		if s, _ := x.(string); !regex.Of(labelValue).MatchString(s) {
			return fmt.Sprintf("Invalid value: %q: a valid label must be an empty string or consist of alphanumeric characters", s)
		}
	}
	return ""
}

// chosen is the rule of a label selector.
func chosen(v any, _ Object) string {
	s, is := v.(Object)
	if !is {
		return ""
	}
	if why := marked(s["matchLabels"], nil); why != "" {
		return "matchLabels: " + why
	}
	all, _ := s["matchExpressions"].([]any)
	for i, x := range all {
		e, _ := x.(Object)
		why := requirement(x, nil)
		if why == "" {
			why = keyName(e["key"], nil)
		}
		values, _ := e["values"].([]any)
		for _, one := range values {
			if s, _ := one.(string); why == "" && !regex.Of(labelValue).MatchString(s) {
				why = fmt.Sprintf("values: Invalid value: %q", s)
			}
		}
		if why != "" {
			return fmt.Sprintf("matchExpressions[%d].%s", i, why)
		}
	}
	return ""
}

func searched(v any, _ Object) string {
	if s, _ := v.(string); s != "." && !regex.Of(dotted).MatchString(strings.TrimSuffix(s, ".")) {
		return fmt.Sprintf("Invalid value: %q: a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '_', '-' or '.'", s)
	}
	return ""
}

// profile is the rule of a profile of seccomp or AppArmor.
func profile(v any, _ Object) string {
	p, is := v.(Object)
	if !is {
		return ""
	}
	file, set := p["localhostProfile"]
	switch of := text(p, "type"); {
	case !slices.Contains([]string{"Localhost", "RuntimeDefault", "Unconfined"}, of):
		return fmt.Sprintf("type: Unsupported value: %q", of)
	case (of == "Localhost") != set:
		return fmt.Sprintf("localhostProfile: Invalid value: %q: must be set when type is Localhost, and only then", file)
	}
	return ""
}

func kernelParameter(v any, _ Object) string {
	if s, _ := v.(string); !regex.Of(`^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$`).MatchString(s) {
		return fmt.Sprintf("Invalid value: %q: must match regex", s)
	}
	return ""
}

// hostSysctls refuses parameters of the kernel in namespaces that a pod shares with its machine.
func hostSysctls(v any, in Object) string {
	context, _ := v.(Object)
	all, _ := context["sysctls"].([]any)
	for _, x := range all {
		s, _ := x.(Object)
		if strings.HasPrefix(text(s, "name"), "net") && in["hostNetwork"] == true {
			return fmt.Sprintf("sysctls.name: Invalid value: %q: may not be specified when 'hostNetwork' is true", text(s, "name"))
		}
	}
	return ""
}

// ownUsers is the rule of a pod whose users are not those of its machine.
func ownUsers(v any, in Object) string {
	for _, name := range []string{"hostNetwork", "hostPID", "hostIPC"} {
		if v == false && in[name] == true {
			return "Forbidden: " + name + " when `hostUsers` is false"
		}
	}
	return ""
}

// system is the rule of the operating system of a pod.
func system(v any, in Object) string {
	of, is := v.(Object)
	if !is {
		return ""
	}
	if text(of, "name") == "linux" {
		return ""
	} else if text(of, "name") != "windows" {
		return fmt.Sprintf("name: Unsupported value: %q: supported values: \"linux\", \"windows\"", text(of, "name"))
	}
	contexts := []any{in["securityContext"]}
	for _, c := range listed(in["containers"]) {
		contexts = append(contexts, c["securityContext"])
	}
	for _, x := range contexts {
		context, _ := x.(Object)
		for name := range context {
			if !slices.Contains([]string{"windowsOptions", "runAsNonRoot"}, name) {
				return fmt.Sprintf("securityContext.%s: Forbidden: cannot be set for a windows pod", name)
			}
		}
	}
	return ""
}

// hostProcesses is the rule of containers of Windows that are processes of their machine.
func hostProcesses(v any, in Object) string {
	host := value(in, "securityContext", "windowsOptions", "hostProcess") == true
	for _, c := range listed(v) {
		host = host || value(c, "securityContext", "windowsOptions", "hostProcess") == true
	}
	if host && in["hostNetwork"] != true {
		return "hostNetwork: Invalid value: false: hostNetwork must be true if pod contains any hostProcess containers"
	}
	return ""
}

// listed returns the mappings of a list.
func listed(v any) (all []Object) {
	list, _ := v.([]any)
	for _, x := range list {
		o, _ := x.(Object)
		all = append(all, o)
	}
	return all
}

// placementLaws lists the rules for the fields that select the Node of a pod: affinity and topologySpreadConstraints.
func placementLaws() (all []law) {
	const must, should = "requiredDuringSchedulingIgnoredDuringExecution", "preferredDuringSchedulingIgnoredDuringExecution"
	for _, of := range []string{"affinity.podAffinity.", "affinity.podAntiAffinity."} {
		for _, term := range []string{of + must + "[].", of + should + "[].podAffinityTerm."} {
			all = append(all,
				law{path: term + "topologyKey", wrong: keyName},
				law{path: term + "namespaces[]", wrong: label},
				law{path: term + "labelSelector", wrong: chosen},
				law{path: term + "namespaceSelector", wrong: chosen},
			)
		}
	}
	const nodes = "affinity.nodeAffinity." + must + ".nodeSelectorTerms"
	return append(all,
		law{path: nodes, wrong: needed},
		law{path: nodes + "[].matchExpressions[].key", wrong: keyName},
		law{path: nodes + "[].matchExpressions[].values[]", wrong: func(v any, _ Object) string { return marked(Object{"a": v}, nil) }},
		law{path: nodes + "[].matchFields[].key", wrong: among("metadata.name")},
		law{path: "topologySpreadConstraints[].minDomains", wrong: func(v any, in Object) string {
			if v != nil && text(in, "whenUnsatisfiable") != "DoNotSchedule" {
				return "Invalid value: can only use minDomains if whenUnsatisfiable=DoNotSchedule"
			}
			return between(1, largest32)(v, in)
		}},
		law{path: "topologySpreadConstraints[].nodeAffinityPolicy", wrong: among("Honor", "Ignore")},
		law{path: "topologySpreadConstraints[].nodeTaintsPolicy", wrong: among("Honor", "Ignore")},
		law{path: "topologySpreadConstraints[].labelSelector", wrong: chosen},
		law{path: "topologySpreadConstraints[].matchLabelKeys", wrong: func(v any, in Object) string {
			if !isEmpty(v) && in["labelSelector"] == nil {
				return "Forbidden: must not be specified when labelSelector is not set"
			}
			return ""
		}},
	)
}
