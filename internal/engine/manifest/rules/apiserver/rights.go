package apiserver

import (
	"fmt"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
)

// binding checks a RoleBinding or a ClusterRoleBinding (pkg/apis/rbac/validation).
func (c *check) binding(role rbacv1.RoleRef, subjects []rbacv1.Subject, kinds ...string) {
	c.need("roleRef.name", role.Name)
	c.need("roleRef.kind", role.Kind)
	oneOf(c, "roleRef.kind", role.Kind, kinds...)
	oneOf(c, "roleRef.apiGroup", role.APIGroup, rbacv1.GroupName)
	c.segment("roleRef.name", role.Name)
	for i, s := range subjects {
		at := fmt.Sprintf("subjects[%d].", i)
		c.need(at+"kind", s.Kind)
		c.need(at+"name", s.Name)
		oneOf(c, at+"kind", s.Kind, rbacv1.UserKind, rbacv1.GroupKind, rbacv1.ServiceAccountKind)
		if s.Kind != rbacv1.ServiceAccountKind {
			oneOf(c, at+"apiGroup", s.APIGroup, rbacv1.GroupName)
		} else {
			c.subdomain(at+"name", s.Name)
			c.when(s.APIGroup != "", at+"apiGroup", fmt.Sprintf("%q is not the API group of service accounts, which is empty", s.APIGroup), "remove it")
			if !slices.Contains(kinds, "Role") { // a RoleBinding has a namespace itself
				c.need(at+"namespace", s.Namespace)
			}
		}
	}
}

// rights checks the rules of a role.
func (c *check) rights(rules []rbacv1.PolicyRule, namespaced bool) {
	for i, r := range rules {
		at := fmt.Sprintf("rules[%d].", i)
		if len(r.Verbs) == 0 {
			c.refuse(at+"verbs", "a rule needs at least one verb", "add one, such as get")
		}
		switch {
		case len(r.NonResourceURLs) > 0 && namespaced:
			c.refuse(at+"nonResourceURLs", "a Role has no rights to URLs", "use a ClusterRole")
		case len(r.NonResourceURLs) > 0:
			both := len(r.APIGroups)+len(r.Resources)+len(r.ResourceNames) > 0
			c.when(both, at+"nonResourceURLs", "a rule is about URLs, or about resources", "make two rules of it")
		case len(r.APIGroups) == 0:
			c.refuse(at+"apiGroups", "a rule needs at least one API group", `add one: "" is the group of pods and Services`)
		case len(r.Resources) == 0:
			c.refuse(at+"resources", "a rule needs at least one resource", "add one, such as pods")
		}
	}
}

// aggregation checks which roles a ClusterRole consists of.
func (c *check) aggregation(a *rbacv1.AggregationRule) {
	if a == nil {
		return
	}
	c.when(len(a.ClusterRoleSelectors) == 0, "aggregationRule.clusterRoleSelectors", "at least one selector is required", "add one, or remove aggregationRule")
	for i := range a.ClusterRoleSelectors {
		c.labelSelector(fmt.Sprintf("aggregationRule.clusterRoleSelectors[%d]", i), &a.ClusterRoleSelectors[i])
	}
}
