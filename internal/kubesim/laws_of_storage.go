package kubesim

import (
	"fmt"
	"slices"
	"strings"

	quantity "k8s.io/apimachinery/pkg/api/resource"
)

const volume, class, claim = "PersistentVolume", "StorageClass", "PersistentVolumeClaim"

// volumeKindLaws are more rules about volumes, and those of their classes and drivers.
func volumeKindLaws() []law {
	return []law{
		{volume + " " + claim, "spec.accessModes", func(v any, _ Object) string {
			if modes, _ := v.([]any); len(modes) > 1 && slices.Contains(modes, any("ReadWriteOncePod")) {
				return "Forbidden: may not use ReadWriteOncePod with other access modes"
			}
			return ""
		}},
		{claim, "spec.resources.requests.storage", positive},
		{volume, "spec.capacity.storage", positive},
		{volume, "spec.capacity", func(v any, _ Object) string {
			if c, _ := v.(Object); c["storage"] == nil || len(c) > 1 {
				return "Unsupported value: supported values: \"storage\""
			}
			return ""
		}},
		{volume + " " + claim, "spec.storageClassName", domain},
		{claim, "spec.selector", chosen},
		{volume, "spec", volumeSource},
		{volume, "spec.persistentVolumeReclaimPolicy", among("Delete", "Recycle", "Retain")},
		{volume, "spec.csi.volumeHandle", needed},
		{volume, "spec.csi.driver", csiDriver},
		{class, "provisioner", func(v any, _ Object) string {
			s, _ := v.(string)
			return keyName(strings.ToLower(s), nil)
		}},
		{class, "parameters", func(v any, _ Object) string {
			if all, _ := v.(Object); all[""] != nil {
				return "Invalid value: \"\": field can not be empty."
			}
			return ""
		}},
		{class, "allowedTopologies[].matchLabelExpressions[].values", needed},
		{class, "allowedTopologies[].matchLabelExpressions[].key", keyName},
		{"VolumeAttributesClass", "parameters", needed},
		{"VolumeAttributesClass", "driverName", needed},
		{"CSIDriver", "spec.fsGroupPolicy", among("File", "None", "ReadWriteOnceWithFSType")},
		{"CSIDriver", "spec.volumeLifecycleModes[]", among("Ephemeral", "Persistent")},
		{"CSIDriver", "spec.tokenRequests[].expirationSeconds", tooShort},
	}
}

// positive permits amounts of more than 0.
func positive(v any, _ Object) string {
	if n, err := quantity.ParseQuantity(fmt.Sprint(v)); v != nil && err == nil && n.Sign() <= 0 {
		return fmt.Sprintf("Invalid value: %q: must be greater than zero", n.String())
	}
	return ""
}

// volumeSource is the rule of what a volume consists of.
func volumeSource(v any, _ Object) string {
	s, _ := v.(Object)
	others := []string{
		"accessModes", "capacity", "claimRef", "mountOptions", "nodeAffinity", "persistentVolumeReclaimPolicy", "storageClassName",
		"volumeAttributesClassName", "volumeMode",
	}
	types := 0
	for field := range s {
		if !slices.Contains(others, field) {
			types++
		}
	}
	switch {
	case types == 0:
		return "Required value: must specify a volume type"
	case types > 1:
		return "Forbidden: may not specify more than 1 volume type"
	case s["local"] != nil && value(s, "nodeAffinity", "required") == nil:
		return "nodeAffinity: Required value: Local volume requires node affinity"
	case text(s, "hostPath", "path") == "/" && text(s, "persistentVolumeReclaimPolicy") == "Recycle":
		return "persistentVolumeReclaimPolicy: Forbidden: may not be 'recycle' for a hostPath mount of '/'"
	}
	return ""
}

const quotaKind, rangeKind = "ResourceQuota", "LimitRange"

// quotaLaws are the rules about quotas and ranges of resources.
func quotaLaws() []law {
	return []law{
		{quotaKind, "spec.hard", hardLimits},
		{quotaKind, "spec", quotaScopes},
		{quotaKind, "spec.scopeSelector.matchExpressions[].operator", func(v any, in Object) string {
			ranked := slices.Contains([]string{"PriorityClass", "VolumeAttributesClass"}, text(in, "scopeName"))
			if !ranked && v != "Exists" {
				return fmt.Sprintf("Invalid value: %q: must be 'Exists'", v)
			}
			if some := v == "In" || v == "NotIn"; some == isEmpty(in["values"]) {
				return "values: Required value: must be at least one value when `operator` is 'In' or 'NotIn' for scope selector"
			}
			return ""
		}},
		{rangeKind, "spec.limits[].type", func(v any, in Object) string {
			if v == "Pod" && (in["default"] != nil || in["defaultRequest"] != nil) {
				return "default: Forbidden: may not be specified when `type` is 'Pod'"
			}
			if v == claim && value(in, "min", "storage") == nil && value(in, "max", "storage") == nil {
				return "limits: Required value: either minimum or maximum storage value is required, but neither was provided"
			}
			if s, _ := v.(string); strings.Contains(s, "/") {
				return ""
			}
			return among("Container", "Pod", claim)(v, in)
		}},
		{rangeKind, "spec.limits", distinct("type")},
		{rangeKind, "spec.limits[]", ordered},
	}
}

// hardLimits is the rule of the resources of a quota.
func hardLimits(v any, _ Object) string {
	counted := []string{
		"pods", "resourcequotas", "services", "replicationcontrollers", "secrets", "configmaps", "persistentvolumeclaims", "services.nodeports",
		"services.loadbalancers",
	}
	computed := []string{"cpu", "memory", "ephemeral-storage", "requests.storage"}
	for _, of := range []string{"cpu", "memory", "ephemeral-storage"} {
		computed = append(computed, "requests."+of, "limits."+of)
	}
	all, _ := v.(Object)
	for name, x := range all {
		whole := slices.Contains(counted, name)
		if !strings.Contains(name, "/") && !whole && !slices.Contains(computed, name) && !strings.Contains(name, "hugepages-") {
			return fmt.Sprintf("[%s]: Invalid value: %q: must be a standard resource for quota", name, name)
		}
		n, err := quantity.ParseQuantity(fmt.Sprint(x))
		if x == nil {
			continue
		}
		if err != nil || n.Sign() < 0 || whole && n.MilliValue()%1000 != 0 {
			return fmt.Sprintf("[%s]: Invalid value: %q: must be an integer", name, n.String())
		}
	}
	return ""
}

// quotaScopes is the rule of the objects that a quota is about.
func quotaScopes(v any, _ Object) string {
	s, _ := v.(Object)
	scopes, _ := s["scopes"].([]any)
	for _, e := range listed(value(s, "scopeSelector", "matchExpressions")) {
		scopes = append(slices.Clone(scopes), e["scopeName"])
	}
	hard, _ := s["hard"].(Object)
	for _, x := range scopes {
		known := []any{"BestEffort", "CrossNamespacePodAffinity", "NotBestEffort", "NotTerminating", "PriorityClass", "Terminating", "VolumeAttributesClass"}
		if !slices.Contains(known, x) {
			return "scopes: Invalid value: unsupported scope"
		}
		for name := range hard {
			if x == "BestEffort" && slices.Contains([]string{"cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory"}, name) {
				return "scopes: Invalid value: unsupported scope applied to resource"
			}
		}
	}
	for _, of := range []string{"BestEffort", "Terminating"} {
		if slices.Contains(scopes, any(of)) && slices.Contains(scopes, any("Not"+of)) {
			return "scopes: Invalid value: conflicting scopes"
		}
	}
	return ""
}

// ordered is the rule of the amounts of a range.
func ordered(v any, _ Object) string {
	l, _ := v.(Object)
	for _, pair := range [][2]string{
		{"min", "max"}, {"default", "max"}, {"defaultRequest", "max"}, {"defaultRequest", "default"}, {"min", "default"}, {"min", "defaultRequest"},
	} {
		small, _ := l[pair[0]].(Object)
		large, _ := l[pair[1]].(Object)
		for name, x := range small {
			a, one := quantity.ParseQuantity(fmt.Sprint(x))
			b, two := quantity.ParseQuantity(fmt.Sprint(large[name]))
			if one == nil && two == nil && a.Cmp(b) > 0 {
				return fmt.Sprintf("%s[%s]: Invalid value: %q: is greater than %s value %s", pair[0], name, a.String(), pair[1], b.String())
			}
		}
	}
	return ""
}
