package rules

import (
	"fmt"
	"slices"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
)

// mostPolicies is how many managed policies a role can have ("IAM and AWS STS quotas", IAM user guide).
const mostPolicies = 10

// warnNoPods warns of an association that no pod can use, because Kubernetes does not permit the name of its namespace or of its service
// account (ValidateNamespaceName and ValidateServiceAccountName in k8s.io/apimachinery/pkg/api/validation).
func (c *checks) warnNoPods(a manifest.PodIdentity) {
	for _, x := range []struct {
		what, name string
		valid      func(string, bool) []string
	}{
		{"a namespace", a.Namespace, apivalidation.ValidateNamespaceName},
		{"a service account", a.ServiceAccount, apivalidation.ValidateServiceAccountName},
	} {
		if x.name != "" && len(x.valid(x.name, false)) > 0 {
			c.warn(
				c.infra.AnnotationProblem(
					manifest.AnnotationPodIdentities,
					fmt.Sprintf("no pod gets the role of %s/%s: %q is not the name of %s", a.Namespace, a.ServiceAccount, x.name, x.what),
					"use small letters, digits and -",
				),
			)
		}
	}
}

// checkPodRole checks the role of the association with a name in an annotation.
func (c *checks) checkPodRole(annotation, name string, r manifest.PodRole) {
	at := manifest.AnnotationPath(annotation)
	switch {
	case r.RoleARN != "" && len(r.PolicyARNs) > 0:
		c.fail(c.infra.AnnotationProblem(annotation, name+" has both roleARN and policyARNs", "name an existing role, or the policies of a role that is made"))
	case len(r.PolicyARNs) > mostPolicies:
		c.fail(
			c.infra.AnnotationProblem(
				annotation,
				fmt.Sprintf("%s has %d policies, and a role can have %d", name, len(r.PolicyARNs), mostPolicies),
				"join some of them in a policy of your own",
			),
		)
	}
	c.checkARN(c.infra, at, r.RoleARN, roleARN())
	for i, arn := range r.PolicyARNs {
		if arn == "" || slices.Contains(r.PolicyARNs[:i], arn) {
			c.fail(c.infra.AnnotationProblem(annotation, fmt.Sprintf("%s has an empty policy, or one twice", name), "name each policy once, by its ARN"))
		}
		c.checkARN(c.infra, at, arn, policyARN())
	}
}
