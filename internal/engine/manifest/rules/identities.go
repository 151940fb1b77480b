package rules

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/internal/regex"
)

// Limits of AssumeRole (AWS STS API reference).
const (
	longestExternalID    = 1224
	longestSessionName   = 64
	longestSessionPolicy = 2048 // characters
	mostSessionPolicies  = 10
	longestChained       = 3600 // seconds of a session of a role that a session of another role assumes
)

// checkIdentities checks what the identities of the cluster send to AWS STS.
func (c *checks) checkIdentities() {
	for i, identity := range c.cluster.Identity {
		_, name, _ := strings.Cut(identity.Origin, "/")
		o := c.lookup(manifest.KindRoleIdentity, name)
		if identity.Role == nil || o == nil {
			continue
		}
		r := identity.Role
		c.checkARN(o, "spec.roleARN", r.RoleArn, roleARN())
		if s := r.SessionName; s != "" && (len(s) < 2 || len(s) > longestSessionName || !regex.Of(`^[\w+=,.@-]*$`).MatchString(s)) {
			c.fail(o.Problem("spec.sessionName", fmt.Sprintf("%q is not the name of a session", s),
				fmt.Sprintf("use 2 to %d letters, digits and _ + = , . @ -", longestSessionName)))
		}
		if s := r.ExternalID; s != "" && (len(s) < 2 || len(s) > longestExternalID || !regex.Of(`^[\w+=,.@:/-]*$`).MatchString(s)) {
			c.fail(o.Problem("spec.externalID", fmt.Sprintf("%q is not an external ID", s),
				fmt.Sprintf("use 2 to %d letters, digits and _ + = , . @ : / -", longestExternalID)))
		}
		if chained := i > 0 && c.cluster.Identity[i-1].Role != nil; chained && r.DurationSeconds > longestChained {
			c.fail(o.Problem(
				"spec.durationSeconds",
				fmt.Sprintf(
					"%d: a session lasts at most %d seconds if a session of another role (%s) assumes the role",
					r.DurationSeconds,
					longestChained,
					c.cluster.Identity[i-1].Origin,
				),
				fmt.Sprintf("set %d or less", longestChained),
			))
		}
		c.checkSessionPolicies(o, r.InlinePolicy, r.PolicyARNs)
	}
}

// checkSessionPolicies checks the policies of a session (Policy and PolicyArns of AssumeRole).
func (c *checks) checkSessionPolicies(o *manifest.Entry, inline string, arns []string) {
	const path = "spec.inlinePolicy"
	var document map[string]any
	switch n := utf8.RuneCountInString(inline); {
	case inline == "":
	case n > longestSessionPolicy:
		c.fail(o.Problem(path, fmt.Sprintf("%d characters: the policy of a session has at most %d", n, longestSessionPolicy), "use spec.policyARNs"))
	case json.Unmarshal([]byte(inline), &document) != nil:
		c.fail(o.Problem(path, "it is not a policy in JSON", `write a document such as {"Version": "2012-10-17", "Statement": […]}`))
	case document["Statement"] == nil:
		c.fail(o.Problem(path, "the policy has no Statement", `write a document such as {"Version": "2012-10-17", "Statement": […]}`))
	}
	if len(arns) > mostSessionPolicies {
		c.fail(o.Problem("spec.policyARNs", fmt.Sprintf("a session has at most %d policies, this one has %d", mostSessionPolicies, len(arns)), "remove some"))
	}
	for i, arn := range arns {
		at := fmt.Sprintf("spec.policyARNs[%d]", i)
		if arn == "" {
			c.fail(o.Problem(at, "it is empty", "write the ARN of an IAM policy, or remove it"))
		}
		c.checkARN(o, at, arn, policyARN())
	}
}
