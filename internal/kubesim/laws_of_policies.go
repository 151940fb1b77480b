package kubesim

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/clusterawsadm/clusterawsadm/internal/regex"
)

const autoscaler, bindings = "HorizontalPodAutoscaler", "ClusterRoleBinding RoleBinding"

// scalingLaws are more rules about autoscalers and disruption budgets.
func scalingLaws() (all []law) {
	for _, way := range []string{"spec.behavior.scaleUp.", "spec.behavior.scaleDown."} {
		all = append(all,
			law{autoscaler, way + "stabilizationWindowSeconds", between(0, 3600)},
			law{autoscaler, way + "selectPolicy", among("Disabled", "Max", "Min")},
			law{autoscaler, way + "policies[].type", among("Percent", "Pods")},
			law{autoscaler, way + "policies[].value", between(1, largest32)},
			law{autoscaler, way + "policies[].periodSeconds", between(1, 1800)},
		)
	}
	for _, of := range []string{"resource", "containerResource", "pods", "object", "external"} {
		target := "spec.metrics[]." + of + ".target"
		all = append(all,
			law{autoscaler, target + ".type", among("AverageValue", "Utilization", "Value")},
			law{autoscaler, target + ".averageUtilization", between(1, largest32)},
			law{autoscaler, target, func(v any, _ Object) string { return metricTarget(v, of) }},
			law{autoscaler, "spec.metrics[]." + of + ".metric.name", segment},
		)
	}
	return append(all,
		law{autoscaler, "spec.metrics[].resource.name", needed},
		law{autoscaler, "spec.metrics[].containerResource.container", needed},
		law{autoscaler, "spec.minReplicas", between(1, largest32)},
		law{autoscaler, "spec.scaleTargetRef.apiVersion", func(v any, _ Object) string {
			if s, _ := v.(string); !strings.Contains(s, "/") {
				return fmt.Sprintf("Invalid value: %q: apiVersion must specify API group", s)
			}
			return ""
		}},
		law{"PodDisruptionBudget", "spec.minAvailable", notMoreThanAll},
		law{"PodDisruptionBudget", "spec.maxUnavailable", notMoreThanAll},
		law{"PodDisruptionBudget", "spec.selector", chosen},
		law{"PodDisruptionBudget", "spec.unhealthyPodEvictionPolicy", among("AlwaysAllow", "IfHealthyBudget")},
	)
}

func metricTarget(v any, of string) string {
	t, is := v.(Object)
	_, share := t["averageUtilization"]
	_, average := t["averageValue"]
	_, plain := t["value"]
	switch {
	case !is:
	case strings.HasSuffix(strings.ToLower(of), "resource") && share == average:
		return "averageUtilization: Required value: must set either a target raw value or a target utilization"
	case of == "pods" && !average:
		return "averageValue: Required value: must specify a positive target averageValue"
	case (of == "object" || of == "external") && !average && !plain:
		return "averageValue: Required value: must set either a target value or averageValue"
	}
	return ""
}

func notMoreThanAll(v any, _ Object) string {
	if s, is := v.(string); is && isShare(s) && len(s) > 3 && s > "100%" {
		return fmt.Sprintf("Invalid value: %q: must not be greater than 100%%", s)
	}
	return ""
}

// segment permits what can be a part of an address of the API.
func segment(v any, _ Object) string {
	if s, is := v.(string); is && (s == "." || s == ".." || strings.ContainsAny(s, "/%")) {
		return fmt.Sprintf("Invalid value: %q: may not contain '/'", s)
	}
	return ""
}

// rightsLaws are more rules about roles, and their bindings.
func rightsLaws() []law {
	const group = "rbac.authorization.k8s.io"
	return []law{
		{bindings + " ClusterRole Role", "metadata.name", segment},
		{bindings, "roleRef.name", segment},
		{bindings, "roleRef.apiGroup", among(group)},
		{bindings, "subjects[].apiGroup", func(v any, in Object) string {
			if text(in, "kind") == "ServiceAccount" {
				if !isEmpty(v) {
					return fmt.Sprintf("Unsupported value: %q: supported values: \"\"", v)
				}
				return ""
			}
			return among(group)(v, in)
		}},
		{bindings, "subjects[].name", func(v any, in Object) string {
			if text(in, "kind") == "ServiceAccount" {
				return domain(v, in)
			}
			return ""
		}},
		{"ClusterRole", "aggregationRule", func(v any, _ Object) string {
			if a, is := v.(Object); is && isEmpty(a["clusterRoleSelectors"]) {
				return "clusterRoleSelectors: Required value: at least one clusterRoleSelector required if aggregationRule is non-nil"
			}
			return ""
		}},
		{"ClusterRole", "rules[].nonResourceURLs", func(v any, in Object) string {
			if !isEmpty(v) && (!isEmpty(in["apiGroups"]) || !isEmpty(in["resources"])) {
				return "Invalid value: rules cannot apply to both regular resources and non-resource URLs"
			}
			return ""
		}},
	}
}

// hookLaws are more rules about webhooks.
func hookLaws() []law {
	const kinds, rules, called = "ValidatingWebhookConfiguration MutatingWebhookConfiguration", "webhooks[].rules[].", "webhooks[].clientConfig."
	return []law{
		{kinds, "webhooks[].admissionReviewVersions", func(v any, _ Object) string {
			if all, _ := v.([]any); !slices.Contains(all, any("v1")) && !slices.Contains(all, any("v1beta1")) {
				return "Invalid value: must include at least one of v1, v1beta1"
			}
			return ""
		}},
		{kinds, "webhooks[].matchPolicy", among("Equivalent", "Exact")},
		{kinds, "webhooks[].namespaceSelector", chosen},
		{kinds, "webhooks[].objectSelector", chosen},
		{kinds, rules + "operations[]", among("*", "CONNECT", "CREATE", "DELETE", "UPDATE")},
		{kinds, rules + "scope", among("*", "Cluster", "Namespaced")},
		{kinds, rules + "operations", wildcard},
		{kinds, rules + "apiGroups", wildcard},
		{kinds, rules + "apiVersions", wildcard},
		{kinds, rules + "resources", func(v any, _ Object) string {
			all, _ := v.([]any)
			if slices.Contains(all, any("*/*")) {
				return wildcard([]any{"*", len(all)}[:min(2, len(all))], nil)
			}
			last := "*" // without a subresource: the API server looks at no other
			for _, x := range all {
				if s, _ := x.(string); !strings.Contains(s, "/") {
					last = s
				}
			}
			if slices.Contains(all, any("*")) && last != "*" {
				return "Invalid value: if '*' is present, must not specify other resources without subresources"
			}
			return needed(v, nil)
		}},
		{kinds, called + "url", func(v any, _ Object) string {
			if s, is := v.(string); is && strings.ContainsAny(s, "?#@") {
				return "Invalid value: query parameters are not permitted in the URL"
			}
			return ""
		}},
		{kinds, called + "service.name", needed},
		{kinds, called + "service.namespace", needed},
		{kinds, called + "service.port", portNumber},
		{kinds, called + "service.path", func(v any, _ Object) string {
			if s, _ := v.(string); s != "" && !regex.Of(`^/([a-z0-9][-.a-z0-9]*(/[a-z0-9][-.a-z0-9]*)*/?)?$`).MatchString(s) {
				return fmt.Sprintf("Invalid value: %q: must start with a '/'", s)
			}
			return ""
		}},
	}
}

// wildcard permits lists that have * alone, or other values.
func wildcard(v any, _ Object) string {
	all, _ := v.([]any)
	if len(all) == 0 {
		return required
	} else if slices.Contains(all, any("*")) && len(all) > 1 {
		return "Invalid value: if '*' is present, must not specify others"
	}
	return ""
}

// definedLaws are more rules about the names of kinds that users define, and about policies of admission.
func definedLaws() (all []law) {
	const definition, names = "CustomResourceDefinition", "spec.names."
	name := func(v any, _ Object) string {
		if s, is := v.(string); is && !regex.Of(`^[a-z]([-a-z0-9]*[a-z0-9])?$`).MatchString(s) {
			return fmt.Sprintf("Invalid value: %q: a DNS-1035 label must start with an alphabetic character", s)
		}
		return ""
	}
	for _, field := range []string{names + "plural", names + "singular", names + "shortNames[]", "spec.versions[].name"} {
		all = append(all, law{definition, field, name})
	}
	for _, field := range []string{names + "kind", names + "listKind"} {
		all = append(all, law{definition, field, func(v any, in Object) string {
			s, is := v.(string)
			if !is {
				return ""
			}
			return name(strings.ToLower(s), in)
		}})
	}
	const policy, rules = "ValidatingAdmissionPolicy", "spec.matchConstraints.resourceRules[]."
	for _, field := range []string{"operations", "apiGroups", "apiVersions"} {
		all = append(all, law{policy, rules + field, wildcard})
	}
	return append(all,
		law{definition, names + "kind", needed},
		law{policy, rules + "operations[]", among("*", "CONNECT", "CREATE", "DELETE", "UPDATE")},
		law{policy, rules + "resources", needed},
		law{policy, rules + "scope", among("*", "Cluster", "Namespaced")},
	)
}

const levels, flows, signing = "PriorityLevelConfiguration", "FlowSchema", "CertificateSigningRequest"

// serverLaws are the rules about other objects that the API server itself reads, and about a few more kinds.
func serverLaws() []law {
	const registration = "APIService"
	return []law{
		{registration, "spec", func(v any, in Object) string {
			s, _ := v.(Object)
			if name := text(s, "version") + "." + text(s, "group"); text(in, "metadata", "name") != name {
				return fmt.Sprintf("metadata.name: Invalid value: must be `spec.version+\".\"+spec.group`: %q", name)
			}
			if s["insecureSkipTLSVerify"] == true && !isEmpty(s["caBundle"]) {
				return "insecureSkipTLSVerify: Invalid value: true: may not be true if caBundle is present"
			}
			return ""
		}},
		{registration, "spec.groupPriorityMinimum", within20000},
		{registration, "spec.versionPriority", between(1, 1000)},
		{registration, "spec.service.name", needed},
		{registration, "spec.service.namespace", needed},
		{signing, "spec.usages", needed},
		{signing, "spec.signerName", func(v any, _ Object) string {
			if s, _ := v.(string); !regex.Of(`^[a-z0-9-]+(\.[a-z0-9-]+)+/.+$`).MatchString(s) {
				return fmt.Sprintf("Invalid value: %q: must be a fully qualified domain and path of the form 'example.com/signer-name'", s)
			}
			return ""
		}},
		{signing, "spec.request", func(v any, _ Object) string {
			s, _ := v.(string)
			if data, err := base64.StdEncoding.DecodeString(s); err != nil || !strings.Contains(string(data), "CERTIFICATE REQUEST") {
				return "Invalid value: PEM block type must be CERTIFICATE REQUEST"
			}
			return ""
		}},
		{"Lease", "spec.leaseTransitions", counted},
		{"PriorityClass", "preemptionPolicy", among("Never", "PreemptLowerPriority")},
		{"ConfigMap", "data", func(v any, in Object) string {
			all, _ := v.(Object)
			for name := range all {
				if value(in, "binaryData", name) != nil {
					return fmt.Sprintf("[%s]: Invalid value: %q: duplicate of key present in binaryData", name, name)
				}
			}
			return ""
		}},
		{"Secret", "type", credentials},
	}
}

// flowLaws are the rules about how many requests the API server serves at once.
func flowLaws() []law {
	return []law{
		{levels, "spec.type", func(v any, _ Object) string {
			if v == "Exempt" {
				return "Invalid value: must be 'Exempt' if and only if `name` is 'exempt'"
			}
			return among("Limited")(v, nil)
		}},
		{levels, "spec.limited", needed},
		{levels, "spec.limited.limitResponse", func(v any, _ Object) string {
			r, _ := v.(Object)
			if text(r, "type") == "Queue" && r["queuing"] == nil {
				return "queuing: Required value: must not be empty if limited.limitResponse.type is Limited"
			}
			return among("Queue", "Reject")(r["type"], nil)
		}},
		{flows, "spec.matchingPrecedence", between(1, 10000)},
		{flows, "spec.priorityLevelConfiguration.name", needed},
		{flows, "spec.rules[].subjects", needed},
		{flows, "spec.rules[].subjects[]", func(v any, _ Object) string {
			s, _ := v.(Object)
			if of := text(s, "kind"); of == "" || s[strings.ToLower(of[:1])+of[1:]] == nil {
				return "kind: Required value: the subject of the kind is missing"
			}
			return ""
		}},
		{flows, "spec.rules[]", func(v any, _ Object) string {
			if r, _ := v.(Object); isEmpty(r["resourceRules"]) && isEmpty(r["nonResourceRules"]) {
				return "Required value: at least one of resourceRules and nonResourceRules has to be non-empty"
			}
			return ""
		}},
	}
}

func within20000(v any, in Object) string {
	if v == nil {
		v = 0.0
	}
	return between(1, 20000)(v, in)
}

// credentials is the rule of Secrets with credentials.
func credentials(v any, in Object) string {
	given := func(key string) any {
		if plain := value(in, "stringData", key); plain != nil {
			return plain
		}
		return value(in, "data", key)
	}
	switch v {
	case "kubernetes.io/basic-auth":
		if given("username") == nil && given("password") == nil {
			return "data[username]: Required value"
		}
	case "kubernetes.io/ssh-auth":
		if isEmpty(given("ssh-privatekey")) {
			return "data[ssh-privatekey]: Required value"
		}
	case "kubernetes.io/dockercfg":
		if s, is := value(in, "stringData", ".dockercfg").(string); is && !json.Valid([]byte(s)) {
			return "data[.dockercfg]: Invalid value"
		}
	}
	return ""
}
