package apiserver

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// quota checks a ResourceQuota (ValidateResourceQuotaSpec in pkg/apis/core/validation).
func (c *check) quota(s *corev1.ResourceQuotaSpec) {
	for _, name := range slices.Sorted(maps.Keys(s.Hard)) {
		n, field := s.Hard[name], fmt.Sprintf("spec.hard[%s]", name)
		c.invalid(field, string(name), validation.IsQualifiedName(string(name)))
		counted := slices.Contains(counts(), name)
		plain := !strings.Contains(string(name), "/")
		c.when(plain && !counted && !isComputed(name), field, "is not a resource of quotas", "use one such as requests.cpu, or count/RESOURCE.GROUP")
		c.when(n.Sign() < 0, field, n.String()+" is negative", "use 0 or more")
		c.when(counted && n.MilliValue()%1000 != 0, field, n.String()+" is not a whole number", "use a whole number")
	}
	c.scopes("spec.scopes", s.Scopes, s.Hard)
	if s.ScopeSelector == nil {
		return
	}
	scopes := []corev1.ResourceQuotaScope{}
	const at = "spec.scopeSelector.matchExpressions."
	for _, e := range s.ScopeSelector.MatchExpressions {
		scopes = append(scopes, e.ScopeName)
		c.expression(at, string(e.Operator), e.Values, "In", "NotIn", "Exists", "DoesNotExist")
		whole := !slices.Contains([]corev1.ResourceQuotaScope{corev1.ResourceQuotaScopePriorityClass, corev1.ResourceQuotaScopeVolumeAttributesClass}, e.ScopeName)
		c.when(whole && e.Operator != corev1.ScopeSelectorOpExists, at+"operator", fmt.Sprintf("%s has no values", e.ScopeName), "write Exists, without values")
	}
	c.scopes(strings.TrimSuffix(at, "."), scopes, s.Hard)
}

// counts returns the resources of quotas that are numbers of objects.
func counts() []corev1.ResourceName {
	return []corev1.ResourceName{
		corev1.ResourcePods, corev1.ResourceQuotas, corev1.ResourceServices, corev1.ResourceReplicationControllers, corev1.ResourceSecrets,
		corev1.ResourceConfigMaps, corev1.ResourcePersistentVolumeClaims, corev1.ResourceServicesNodePorts, corev1.ResourceServicesLoadBalancers,
	}
}

// isComputed reports whether a resource of quotas is an amount.
func isComputed(name corev1.ResourceName) bool {
	of := strings.TrimPrefix(string(name), "requests.")
	if strings.HasPrefix(of, corev1.ResourceHugePagesPrefix) || name == corev1.ResourceRequestsStorage {
		return true
	}
	if of == string(name) {
		of = strings.TrimPrefix(of, "limits.")
	}
	return slices.Contains([]string{"cpu", "memory", "ephemeral-storage"}, of)
}

// scopes checks which objects a quota is about, and whether its resources are ones of such objects.
func (c *check) scopes(field string, scopes []corev1.ResourceQuotaScope, hard corev1.ResourceList) {
	const best, notBest = corev1.ResourceQuotaScopeBestEffort, corev1.ResourceQuotaScopeNotBestEffort
	const ending, notEnding = corev1.ResourceQuotaScopeTerminating, corev1.ResourceQuotaScopeNotTerminating
	for _, s := range scopes {
		oneOf(
			c, field, s, best, notBest, ending, notEnding, corev1.ResourceQuotaScopePriorityClass,
			corev1.ResourceQuotaScopeCrossNamespacePodAffinity, corev1.ResourceQuotaScopeVolumeAttributesClass,
		)
		for _, name := range slices.Sorted(maps.Keys(hard)) {
			if of := resourcesOf(s); of != nil && (slices.Contains(counts(), name) || isComputed(name)) && !slices.Contains(of, name) {
				c.refuse(field, fmt.Sprintf("the scope %s has no resource %s", s, name), "make two quotas of it")
			}
		}
	}
	for _, pair := range [][2]corev1.ResourceQuotaScope{{best, notBest}, {ending, notEnding}} {
		both := slices.Contains(scopes, pair[0]) && slices.Contains(scopes, pair[1])
		c.when(both, field, fmt.Sprintf("%s and %s exclude each other", pair[0], pair[1]), "remove one of them")
	}
}

// resourcesOf returns the resources of a scope; nil for an unknown one.
func resourcesOf(s corev1.ResourceQuotaScope) []corev1.ResourceName {
	switch s {
	case corev1.ResourceQuotaScopeBestEffort:
		return []corev1.ResourceName{corev1.ResourcePods}
	case corev1.ResourceQuotaScopeVolumeAttributesClass:
		return []corev1.ResourceName{corev1.ResourcePersistentVolumeClaims, corev1.ResourceRequestsStorage}
	case corev1.ResourceQuotaScopeTerminating, corev1.ResourceQuotaScopeNotTerminating, corev1.ResourceQuotaScopeNotBestEffort,
		corev1.ResourceQuotaScopePriorityClass, corev1.ResourceQuotaScopeCrossNamespacePodAffinity:
		return []corev1.ResourceName{
			corev1.ResourcePods, corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceLimitsCPU, corev1.ResourceLimitsMemory,
			corev1.ResourceRequestsCPU, corev1.ResourceRequestsMemory,
		}
	}
	return nil
}

// limits checks a LimitRange (ValidateLimitRange).
func (c *check) limits(items []corev1.LimitRangeItem) {
	seen := map[corev1.LimitType]bool{}
	for i := range items {
		l, at := &items[i], fmt.Sprintf("spec.limits[%d].", i)
		c.when(seen[l.Type], at+"type", fmt.Sprintf("another item has the type %s", l.Type), "make one item of them")
		seen[l.Type] = true
		if !strings.Contains(string(l.Type), "/") {
			c.need(at+"type", string(l.Type))
			oneOf(c, at+"type", l.Type, corev1.LimitTypeContainer, corev1.LimitTypePod, corev1.LimitTypePersistentVolumeClaim)
		}
		if l.Type == corev1.LimitTypePod {
			for _, name := range given(setting{"default", len(l.Default) > 0}, setting{"defaultRequest", len(l.DefaultRequest) > 0}) {
				c.refuse(at+name, "is not for the type Pod", "write it in an item of the type Container")
			}
			continue
		}
		if l.Type == corev1.LimitTypePersistentVolumeClaim {
			_, least := l.Min[corev1.ResourceStorage]
			_, most := l.Max[corev1.ResourceStorage]
			c.when(!least && !most, at+"limits", "the type PersistentVolumeClaim needs min or max of storage", "add one of them")
		}
		before := len(c.found)
		if c.ascending(at, "min", l.Min, l.Max, "max"); len(c.found) > before {
			continue // the others follow from it
		}
		c.ascending(at, "default", l.Default, l.Max, "max")
		c.ascending(at, "defaultRequest", l.DefaultRequest, l.Max, "max")
		c.ascending(at, "defaultRequest", l.DefaultRequest, l.Default, "default")
		c.descending(at, "default", l.Default, l.Min)
		c.descending(at, "defaultRequest", l.DefaultRequest, l.Min)
	}
}

// ascending refuses amounts that are more than others.
func (c *check) ascending(at, name string, amounts, others corev1.ResourceList, other string) {
	for _, r := range slices.Sorted(maps.Keys(amounts)) {
		n := amounts[r]
		if most, is := others[r]; is && n.Cmp(most) > 0 {
			c.refuse(fmt.Sprintf("%s%s[%s]", at, name, r), fmt.Sprintf("%s is more than %s, %s", n.String(), other, most.String()), "change one of them")
		}
	}
}

// descending refuses amounts that are less than the least ones.
func (c *check) descending(at, name string, amounts, least corev1.ResourceList) {
	for _, r := range slices.Sorted(maps.Keys(amounts)) {
		n := amounts[r]
		if most, is := least[r]; is && n.Cmp(most) < 0 {
			c.refuse(fmt.Sprintf("%s%s[%s]", at, name, r), fmt.Sprintf("%s is less than min, %s", n.String(), most.String()), "change one of them")
		}
	}
}
