package kubesim

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/clusterawsadm/clusterawsadm/internal/regex"
)

// laws are the rules about kinds: those of pkg/apis/*/validation and of the strategies in pkg/registry of Kubernetes 1.34.
func laws() []law {
	return slices.Concat(
		workloadLaws(), rolloutLaws(), jobLaws(), networkLaws(), serviceLaws(), ingressLaws(), policyLaws(), storageLaws(), volumeKindLaws(),
		quotaLaws(), scalingLaws(), rightsLaws(), hookLaws(), definedLaws(), flowLaws(), serverLaws(), otherLaws(),
	)
}

func workloadLaws() []law {
	return []law{
		{"Deployment DaemonSet StatefulSet ReplicaSet", "spec.selector", podSelector},
		{"Deployment DaemonSet StatefulSet ReplicaSet", "spec.selector.matchExpressions[]", requirement},
		{"Deployment DaemonSet StatefulSet ReplicaSet ReplicationController Job", "spec.template.metadata.labels", marked},
		{"Deployment StatefulSet ReplicaSet ReplicationController", "spec.replicas", counted},
		{"ReplicationController", "spec.selector", func(v any, in Object) string {
			wanted, _ := v.(Object)
			given, _ := value(in, "template", "metadata", "labels").(Object)
			if !selects(Object{"matchLabels": wanted}, given) {
				return "Invalid value: `selector` does not match template `labels`"
			}
			return ""
		}},
		{"Deployment", "spec.strategy.type", among("Recreate", "RollingUpdate")},
		{"Deployment", "spec.strategy.rollingUpdate", recreated},
		{"Deployment", "spec.strategy.rollingUpdate.maxUnavailable", rollingUpdate},
		{"DaemonSet StatefulSet", "spec.updateStrategy.type", among("RollingUpdate", "OnDelete")},
		{"DaemonSet", "spec.updateStrategy.rollingUpdate.maxSurge", func(v any, in Object) string {
			if most, is := number(in["maxUnavailable"]); v != nil && (!is || most > 0) {
				return "Invalid value: may not be set when maxUnavailable is non-zero"
			}
			return ""
		}},
		{"Deployment DaemonSet StatefulSet ReplicaSet", "spec.template.spec.activeDeadlineSeconds", func(v any, _ Object) string {
			if v != nil {
				return "Forbidden: activeDeadlineSeconds in this kind is not Supported"
			}
			return ""
		}},
		{"DaemonSet", "spec.updateStrategy.rollingUpdate.maxUnavailable", func(v any, in Object) string {
			if most, is := number(v); is && most == 0 && in["maxSurge"] == nil {
				return "Invalid value: 0: cannot be 0 when maxSurge is 0"
			}
			return ""
		}},
		{"StatefulSet", "spec.podManagementPolicy", among("OrderedReady", "Parallel")},
		{"CronJob", "spec.schedule", schedule},
		{"CronJob", "spec.concurrencyPolicy", among("Allow", "Forbid", "Replace")},
	}
}

// selects reports whether a label selector matches labels.
func selects(selector, labels Object) bool {
	wanted, _ := selector["matchLabels"].(Object)
	for k, v := range wanted {
		if labels[k] != v {
			return false
		}
	}
	expressions, _ := selector["matchExpressions"].([]any)
	for _, x := range expressions {
		e, _ := x.(Object)
		have, is := labels[text(e, "key")]
		values, _ := e["values"].([]any)
		switch text(e, "operator") {
		case "In":
			is = is && (len(values) == 0 || slices.Contains(values, have))
		case "NotIn":
			is = !is || !slices.Contains(values, have)
		case "DoesNotExist":
			is = !is
		case "Exists":
		default:
			is = true // another rule is about it
		}
		if !is {
			return false
		}
	}
	return true
}

// requirement is the rule of an expression of a label selector.
func requirement(v any, _ Object) string {
	e, _ := v.(Object)
	switch text(e, "operator") {
	case "In", "NotIn":
		if isEmpty(e["values"]) {
			return "values: Required value: must be specified when `operator` is 'In' or 'NotIn'"
		}
	case "Exists", "DoesNotExist":
		if !isEmpty(e["values"]) {
			return "values: Forbidden: may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
		}
	default:
		return fmt.Sprintf("operator: Invalid value: %q: not a valid selector operator", text(e, "operator"))
	}
	return ""
}

// schedule is the rule of the schedule of a CronJob (ParseStandard of github.com/robfig/cron/v3).
func schedule(v any, _ Object) string {
	s, _ := v.(string)
	if s == "" {
		return required
	}
	if after, is := strings.CutPrefix(s, "@every "); is {
		if _, err := time.ParseDuration(after); err != nil {
			return fmt.Sprintf("Invalid value: %q: failed to parse duration", s)
		}
		return ""
	}
	if regex.Of(`^@(yearly|annually|monthly|weekly|daily|midnight|hourly)$`).MatchString(s) {
		return ""
	}
	fields := strings.Fields(s)
	if len(fields) != 5 {
		return fmt.Sprintf("Invalid value: %q: expected exactly 5 fields", s)
	}
	for i, field := range fields {
		for part := range strings.SplitSeq(field, ",") {
			if !isTimes(part, i) {
				return fmt.Sprintf("Invalid value: %q: failed to parse %s", s, part)
			}
		}
	}
	return ""
}

// isTimes reports whether a text is a number, a range or * of one of the five fields of a schedule.
func isTimes(text string, field int) bool {
	names := map[int]string{3: "..jan.feb.mar.apr.may.jun.jul.aug.sep.oct.nov.dec", 4: ".sun.mon.tue.wed.thu.fri.sat"}[field]
	least, most := []int{0, 0, 1, 1, 0}[field], []int{59, 23, 31, 12, 6}[field]
	times, step, stepped := strings.Cut(text, "/")
	if n, err := strconv.Atoi(step); stepped && (err != nil || n < 1) {
		return false
	}
	if times == "*" || times == "?" {
		return true
	}
	last := least
	for one := range strings.SplitSeq(times, "-") {
		n, err := strconv.Atoi(one)
		if i := strings.Index(names, "."+strings.ToLower(one)); i >= 0 && len(one) == 3 {
			n, err = strings.Count(names[:i], "."), nil
		}
		if err != nil || n < last || n > most {
			return false
		}
		last = n
	}
	return true
}

func networkLaws() []law {
	return []law{
		{"Service Namespace", "metadata.name", func(v any, _ Object) string {
			if s, _ := v.(string); !isLabel(s) {
				return fmt.Sprintf("Invalid value: %q: a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-'", s)
			}
			return ""
		}},
		{"Service", "spec.type", among("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")},
		{"Service", "spec.sessionAffinity", among("ClientIP", "None")},
		{"Service", "spec.externalTrafficPolicy", externalTraffic},
		{"Service", "spec.externalName", func(v any, in Object) string {
			if text(in, "type") == "ExternalName" && isEmpty(v) {
				return required
			}
			return ""
		}},
		{"Service", "spec.externalName", func(v any, in Object) string {
			if s, _ := v.(string); text(in, "type") == "ExternalName" && !regex.Of(`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?\.?$`).MatchString(s) {
				return fmt.Sprintf("Invalid value: %q: a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.'", s)
			}
			return ""
		}},
		{"Service", "spec.loadBalancerClass", func(v any, in Object) string {
			if v != nil && text(in, "type") != "LoadBalancer" {
				return "Forbidden: may only be used when `type` is 'LoadBalancer'"
			}
			return ""
		}},
		{"Service", "spec.healthCheckNodePort", func(v any, in Object) string {
			if v != nil && (text(in, "type") != "LoadBalancer" || text(in, "externalTrafficPolicy") != "Local") {
				return "Invalid value: may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'"
			}
			return ""
		}},
		{"Namespace", "metadata.labels", podSecurity},
		{"Service", "spec.ports", servicePorts},
		{"Service", "spec.ports[].protocol", among("SCTP", "TCP", "UDP")},
		{"Service", "spec.ports[].targetPort", portNumber},
		{"Ingress", "spec", func(v any, _ Object) string {
			if s, _ := v.(Object); isEmpty(s["rules"]) && s["defaultBackend"] == nil {
				return "Invalid value: []: either `defaultBackend` or `rules` must be specified"
			}
			return ""
		}},
		{"Ingress", "spec.rules[].http.paths[].pathType", pathType},
		{"Ingress", "spec.rules[].http.paths[].path", func(v any, in Object) string {
			if s, _ := v.(string); text(in, "pathType") != "ImplementationSpecific" && !strings.HasPrefix(s, "/") {
				return fmt.Sprintf("Invalid value: %q: must be an absolute path", s)
			}
			return ""
		}},
		{"Ingress", "spec.rules[].http.paths[].backend", ingressBackend},
		{"NetworkPolicy", "spec.policyTypes[]", among("Egress", "Ingress")},
		{"NetworkPolicy", "spec.ingress[].from[].ipBlock.cidr", cidr},
		{"NetworkPolicy", "spec.egress[].to[].ipBlock.cidr", cidr},
		{"NetworkPolicy", "spec.ingress[].ports[].port", portNumber},
		{"NetworkPolicy", "spec.egress[].ports[].port", portNumber},
	}
}

func cidr(v any, _ Object) string {
	if s, _ := v.(string); s != "" {
		if _, err := netip.ParsePrefix(s); err != nil {
			return fmt.Sprintf("Invalid value: %q: must be a valid CIDR value", s)
		}
	}
	return ""
}

func storageLaws() []law {
	return []law{
		{"PersistentVolume", "spec.capacity", needed},
		{"PersistentVolumeClaim PersistentVolume", "spec.accessModes", needed},
		{"PersistentVolumeClaim PersistentVolume", "spec.accessModes[]", among("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")},
		{"PersistentVolumeClaim", "spec.resources", func(v any, _ Object) string {
			if r, _ := v.(Object); value(r, "requests", "storage") == nil {
				return "[storage]: Required value"
			}
			return ""
		}},
		{"PersistentVolumeClaim PersistentVolume", "spec.volumeMode", among("Block", "Filesystem")},
		{"StorageClass", "provisioner", needed},
		{"StorageClass", "reclaimPolicy", among("Delete", "Retain")},
		{"StorageClass", "volumeBindingMode", among("Immediate", "WaitForFirstConsumer")},
	}
}

func otherLaws() []law {
	return []law{
		{"ClusterRoleBinding RoleBinding", "roleRef.name", needed},
		{"ClusterRoleBinding", "roleRef.kind", among("ClusterRole")},
		{"RoleBinding", "roleRef.kind", among("ClusterRole", "Role")},
		{"ClusterRoleBinding RoleBinding", "subjects[].kind", among("Group", "ServiceAccount", "User")},
		{"ClusterRoleBinding", "subjects[].namespace", func(v any, in Object) string {
			if text(in, "kind") == "ServiceAccount" && isEmpty(v) {
				return required
			}
			return ""
		}},
		{"ClusterRole Role", "rules[].verbs", needed},
		{"Role", "rules[].nonResourceURLs", func(v any, _ Object) string {
			if !isEmpty(v) {
				return "Invalid value: namespaced rules cannot apply to non-resource URLs"
			}
			return ""
		}},
		{"ClusterRole Role", "rules[].apiGroups", resourceRule},
		{"ClusterRole Role", "rules[].resources", resourceRule},
		{"HorizontalPodAutoscaler", "spec.maxReplicas", mostReplicas},
		{"HorizontalPodAutoscaler", "spec.metrics[]", metric},
		{"PodDisruptionBudget", "spec.minAvailable", leastAvailable},
		{"PriorityClass", "value", priority},
		{"ConfigMap Secret", "data", dataKeys},
		{"Secret", "type", secretType},
		{"CustomResourceDefinition", "spec.scope", func(v any, in Object) string {
			if isEmpty(v) {
				return required
			}
			return among("Cluster", "Namespaced")(v, in)
		}},
		{"CustomResourceDefinition", "spec", definition},
		{"Lease", "spec.leaseDurationSeconds", func(v any, _ Object) string {
			if n, is := number(v); is && n <= 0 {
				return "Invalid value: must be greater than 0"
			}
			return ""
		}},
		{"RuntimeClass", "handler", func(v any, _ Object) string {
			if s, _ := v.(string); !isLabel(s) {
				return fmt.Sprintf("Invalid value: %q: a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-'", s)
			}
			return ""
		}},
		{"ValidatingWebhookConfiguration MutatingWebhookConfiguration", "webhooks[].timeoutSeconds", func(v any, _ Object) string {
			if n, is := number(v); is && (n < 1 || n > 30) {
				return "Invalid value: the timeout value must be between 1 and 30 seconds"
			}
			return ""
		}},
		{"ValidatingWebhookConfiguration MutatingWebhookConfiguration", "webhooks[].clientConfig.url", func(v any, _ Object) string {
			if s, _ := v.(string); v != nil && !strings.HasPrefix(s, "https:") {
				return "Invalid value: 'https' is the only allowed URL scheme"
			}
			return ""
		}},
		{"ValidatingWebhookConfiguration MutatingWebhookConfiguration", "webhooks[].sideEffects", func(v any, in Object) string {
			if isEmpty(v) {
				return "Required value: must specify one of None, NoneOnDryRun"
			}
			return among("None", "NoneOnDryRun")(v, in)
		}},
		{"ValidatingWebhookConfiguration MutatingWebhookConfiguration", "webhooks[].admissionReviewVersions", needed},
		{"ValidatingWebhookConfiguration MutatingWebhookConfiguration", "webhooks[].failurePolicy", among("Fail", "Ignore")},
		{"ValidatingWebhookConfiguration MutatingWebhookConfiguration", "webhooks[].name", func(v any, _ Object) string {
			if s, _ := v.(string); strings.Count(s, ".") < 2 {
				return fmt.Sprintf("Invalid value: %q: should be a domain with at least three segments separated by dots", s)
			}
			return ""
		}},
		{"ValidatingWebhookConfiguration MutatingWebhookConfiguration", "webhooks[].clientConfig", func(v any, _ Object) string {
			c, _ := v.(Object)
			return one("url", "service")(nil, c)
		}},
	}
}

// resourceRule is the rule of a rule of a role: it is about URLs, or about resources of API groups.
func resourceRule(v any, in Object) string {
	if isEmpty(in["nonResourceURLs"]) && isEmpty(v) {
		return "Required value: resource rules must supply at least one api group and one resource"
	}
	return ""
}

// secretType is the rule of types of Secrets, which have certain keys.
func secretType(v any, in Object) string {
	has := func(k string) bool {
		given, _ := in["stringData"].(Object)
		data, _ := in["data"].(Object)
		return given[k] != nil || data[k] != nil
	}
	keys := map[string][]string{
		"kubernetes.io/tls": {"tls.crt", "tls.key"}, "kubernetes.io/dockerconfigjson": {".dockerconfigjson"}, "kubernetes.io/ssh-auth": {"ssh-privatekey"},
	}
	s, _ := v.(string)
	for _, k := range keys[s] {
		if !has(k) {
			return fmt.Sprintf("data[%s]: Required value", k)
		}
	}
	if plain := text(in, "stringData", ".dockerconfigjson"); s == "kubernetes.io/dockerconfigjson" && plain != "" && !json.Valid([]byte(plain)) {
		return "data[.dockerconfigjson]: Invalid value: \"<secret contents redacted>\": invalid character"
	}
	return ""
}

// podSelector is the rule of the selector of a workload.
func podSelector(v any, in Object) string {
	s, _ := v.(Object)
	if isEmpty(s["matchLabels"]) && isEmpty(s["matchExpressions"]) {
		return required
	}
	given, _ := value(in, "template", "metadata", "labels").(Object)
	if !selects(s, given) {
		return "Invalid value: `selector` does not match template `labels`"
	}
	return ""
}

// recreated is the rule of the settings of rolling updates: the other strategy has none.
func recreated(v any, in Object) string {
	if text(in, "type") == "Recreate" && v != nil {
		return "Forbidden: may not be specified when strategy `type` is 'Recreate'"
	}
	return ""
}

// rollingUpdate is the rule of how many pods of a Deployment may be missing in an update.
func rollingUpdate(v any, in Object) string {
	least, most := fmt.Sprint(in["maxSurge"]), fmt.Sprint(v)
	for _, n := range []any{v, in["maxSurge"]} {
		if s, is := n.(string); is {
			percent, err := strconv.Atoi(strings.TrimSuffix(s, "%"))
			if !isShare(s) || err != nil {
				return fmt.Sprintf("Invalid value: %q: a valid percent string must be a numeric string followed by an ending '%%'", s)
			}
			if percent > 100 && n == v {
				return fmt.Sprintf("Invalid value: %q: must not be greater than 100%%", s)
			}
		}
	}
	if none := []string{"0", "0%"}; slices.Contains(none, least) && slices.Contains(none, most) {
		return "Invalid value: 0: may not be 0 when `maxSurge` is 0"
	}
	return ""
}

// ingressBackend is the rule of where requests of an Ingress go.
func ingressBackend(v any, _ Object) string {
	b, _ := v.(Object)
	if b["service"] == nil && b["resource"] == nil {
		return "Required value: port name or number is required"
	}
	if p, _ := value(b, "service", "port").(Object); b["service"] != nil && p["name"] == nil && p["number"] == nil {
		return "Required value: port name or number is required"
	}
	return ""
}

// externalTraffic is the rule of externalTrafficPolicy.
func externalTraffic(v any, in Object) string {
	if v != nil && !isOpen(in) {
		return "Invalid value: may only be set for externally-accessible services"
	}
	return among("Cluster", "Local")(v, in)
}

// servicePorts is the rule of the ports of a Service.
func servicePorts(v any, in Object) string {
	ports, _ := v.([]any)
	if len(ports) == 0 && text(in, "type") != "ExternalName" && text(in, "clusterIP") != "None" {
		return required
	}
	names, seen := map[string]bool{}, map[string]bool{}
	for i, x := range ports {
		p, _ := x.(Object)
		switch name := text(p, "name"); {
		case len(ports) > 1 && name == "":
			return fmt.Sprintf("[%d].name: Required value", i)
		case name != "" && names[name]:
			return fmt.Sprintf("[%d].name: Duplicate value: %q", i, name)
		case seen[portOf(p)]:
			return fmt.Sprintf("[%d]: Duplicate value: port %v", i, p["port"])
		case p["nodePort"] != nil && !isOpen(in):
			return fmt.Sprintf("[%d].nodePort: Forbidden: may not be used when `type` is 'ClusterIP'", i)
		case p["nodePort"] != nil && seen[fmt.Sprint("node ", p["nodePort"], text(p, "protocol"))]:
			return fmt.Sprintf("[%d].nodePort: Duplicate value: %v", i, p["nodePort"])
		default:
			names[name], seen[portOf(p)], seen[fmt.Sprint("node ", p["nodePort"], text(p, "protocol"))] = true, true, true
		}
	}
	return ""
}

// portOf returns the number and the protocol of a port of a Service.
func portOf(p Object) string {
	protocol := text(p, "protocol")
	if protocol == "" {
		protocol = "TCP"
	}
	return fmt.Sprint(p["port"], " ", protocol)
}

// podSecurity is the rule of the labels of a Namespace ("Pod Security Standards", Kubernetes).
func podSecurity(v any, _ Object) string {
	marks, _ := v.(Object)
	for _, mode := range []string{"audit", "enforce", "warn"} {
		key := "pod-security.kubernetes.io/" + mode
		if level, _ := marks[key].(string); level != "" && level != "privileged" && level != "baseline" && level != "restricted" {
			return fmt.Sprintf("[%s]: Invalid value: %q: must be one of privileged, baseline, restricted", key, level)
		}
		if version, _ := marks[key+"-version"].(string); version != "" && version != "latest" && !strings.HasPrefix(version, "v1.") {
			return fmt.Sprintf(`[%s-version]: Invalid value: %q: must be "latest" or "v1.x"`, key, version)
		}
	}
	return ""
}

// isOpen reports whether a Service has node ports.
func isOpen(in Object) bool {
	return slices.Contains([]string{"NodePort", "LoadBalancer"}, text(in, "type"))
}

// pathType is the rule of the type of a path of an Ingress.
func pathType(v any, in Object) string {
	if isEmpty(v) {
		return "Required value: pathType must be specified"
	}
	return among("Exact", "ImplementationSpecific", "Prefix")(v, in)
}

// mostReplicas is the rule of the numbers of an autoscaler.
func mostReplicas(v any, in Object) string {
	most, _ := number(v)
	if least, is := number(in["minReplicas"]); most < 1 || is && most < least {
		return fmt.Sprintf("Invalid value: %v: must be greater than or equal to `minReplicas`", v)
	}
	return ""
}

// metric is the rule of a metric of an autoscaler.
func metric(v any, _ Object) string {
	m, _ := v.(Object)
	if of := text(m, "type"); of == "" || m[strings.ToLower(of[:1])+of[1:]] == nil {
		return "Required value: must populate information for the given metric source"
	}
	return ""
}

// leastAvailable is the rule of a disruption budget.
func leastAvailable(v any, in Object) string {
	if s, is := v.(string); is && !isShare(s) {
		return fmt.Sprintf("Invalid value: %q: a valid percent string must be a numeric string followed by an ending '%%'", s)
	}
	if v != nil && in["maxUnavailable"] != nil {
		return "Invalid value: minAvailable and maxUnavailable cannot be both set"
	}
	return ""
}

// priority is the rule of a priority class.
func priority(v any, in Object) string {
	if n, _ := number(v); n > 1e9 {
		return "Forbidden: maximum allowed value of a user defined priority is 1000000000"
	}
	if strings.HasPrefix(text(in, "metadata", "name"), "system-") {
		return "Forbidden: priority class names with 'system-' prefix are reserved for system use only"
	}
	return ""
}

// dataKeys is the rule for the data of a Secret or ConfigMap.
func dataKeys(v any, _ Object) string {
	all, _ := v.(Object)
	for k := range all {
		if why := dataKey(k, nil); why != "" {
			return fmt.Sprintf("[%s]: %s", k, why)
		}
	}
	return ""
}

// definition is the rule of a CustomResourceDefinition.
func definition(v any, in Object) string {
	spec, _ := v.(Object)
	if name := text(spec, "names", "plural") + "." + text(spec, "group"); text(in, "metadata", "name") != name {
		return fmt.Sprintf("metadata.name: Invalid value: must be spec.names.plural+\".\"+spec.group, %q", name)
	}
	versions, _ := spec["versions"].([]any)
	stored := 0
	for i, x := range versions {
		version, _ := x.(Object)
		if version["storage"] == true {
			stored++
		}
		if value(version, "schema", "openAPIV3Schema") == nil {
			return fmt.Sprintf("versions[%d].schema.openAPIV3Schema: Required value: schemas are required", i)
		}
		if why := versionOfDefinition(fmt.Sprintf("versions[%d]", i), version); why != "" {
			return why
		}
	}
	approved := text(in, "metadata", "annotations", "api-approved.kubernetes.io")
	if regex.Of(`\.(k8s|kubernetes)\.io$`).MatchString(text(spec, "group")) && approved == "" {
		return "metadata.annotations[api-approved.kubernetes.io]: Required value: protected groups must have approval annotation"
	}
	if stored != 1 {
		return "versions: Invalid value: must have exactly one version marked as storage version"
	}
	return ""
}
