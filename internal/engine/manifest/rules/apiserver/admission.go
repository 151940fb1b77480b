package apiserver

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
)

// hookRule checks which requests a webhook or a policy is about (validateRuleWithOperations in pkg/apis/admissionregistration/validation).
func (c *check) hookRule(at string, r *admissionv1.RuleWithOperations) {
	for i, o := range r.Operations {
		field := fmt.Sprintf("%soperations[%d]", at, i)
		oneOf(c, field, o, admissionv1.Create, admissionv1.Update, admissionv1.Delete, admissionv1.Connect, admissionv1.OperationAll)
	}
	operations := make([]string, len(r.Operations))
	for i, o := range r.Operations {
		operations[i] = string(o)
	}
	c.allOrSome(at+"operations", operations, "CREATE")
	c.allOrSome(at+"apiGroups", r.APIGroups, "apps")
	c.allOrSome(at+"apiVersions", r.APIVersions, "v1")
	c.when(len(r.Resources) == 0, at+"resources", "a value is required", "write one such as [pods]")
	whole := false // the API server looks at the last one only
	for _, s := range r.Resources {
		if !strings.Contains(s, "/") {
			whole = s != "*"
		}
	}
	c.when(slices.Contains(r.Resources, "*/*") && len(r.Resources) > 1, at+"resources", "*/* are all resources, and others are beside it", "remove the others")
	c.when(slices.Contains(r.Resources, "*") && whole, at+"resources", "* are all resources, and others are beside it", "remove the others")
	isOneOf(c, at+"scope", r.Scope, admissionv1.ClusterScope, admissionv1.NamespacedScope, admissionv1.AllScopes)
}

// allOrSome refuses a list that is empty, and one that has * and something else.
func (c *check) allOrSome(field string, values []string, example string) {
	c.when(len(values) == 0, field, "a value is required", fmt.Sprintf("write one such as [%s]", example))
	c.when(slices.Contains(values, "*") && len(values) > 1, field, "* means all, and others are beside it", "remove the others")
}

// hookClient checks how the API server calls a webhook.
func (c *check) hookClient(at string, client *admissionv1.WebhookClientConfig) {
	if (client.URL == nil) == (client.Service == nil) {
		c.refuse(strings.TrimSuffix(at, "."), "needs url or service", "set one of them")
		return
	}
	if s := client.Service; s != nil {
		c.serviceReference(at+"service.", s.Namespace, s.Name, s.Path, s.Port)
		return
	}
	u, err := url.Parse(*client.URL)
	switch {
	case err != nil, u.Scheme != "https", u.Host == "":
		c.refuse(at+"url", *client.URL+" is no address of https", "write https://…")
	case u.User != nil, u.Fragment != "", u.RawQuery != "":
		c.refuse(at+"url", *client.URL+" has a user, a query or a fragment", "write https://HOST/PATH only")
	}
}

// hookVersions checks which versions of requests a webhook knows.
func (c *check) hookVersions(field string, versions []string) {
	c.when(len(versions) == 0, field, "a value is required", "write [v1]")
	known := slices.Contains(versions, "v1") || slices.Contains(versions, "v1beta1")
	c.when(len(versions) > 0 && !known, field, "has no version that the API server sends", "add v1")
}
