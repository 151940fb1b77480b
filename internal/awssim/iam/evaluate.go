package iam

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/iam/types"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim/core"
)

// request is a request that IAM evaluates.
type request struct {
	action, resource string
	context          map[string][]string // values of condition keys, by their names in lower case
}

// everything is the document of AWS's policy AdministratorAccess.
const everything = `{"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "*", "Resource": "*"}]}`

// evaluate returns the decision of some policies on a request, and the condition keys that
// the request lacks. An explicit denial is stronger than any number of permissions.
func evaluate(documents []string, r request) (decision types.PolicyEvaluationDecisionType, missing []string, err error) {
	decision = types.PolicyEvaluationDecisionTypeImplicitDeny
	for _, document := range documents {
		statements, err := parseDocument(document)
		if err != nil {
			return decision, nil, err
		}
		for _, s := range statements {
			applies, lacks, err := r.matches(s)
			if err != nil {
				return decision, nil, err
			}
			missing = append(missing, lacks...)
			switch {
			case applies && s["Effect"] == "Deny":
				decision = types.PolicyEvaluationDecisionTypeExplicitDeny
			case applies && decision != types.PolicyEvaluationDecisionTypeExplicitDeny:
				decision = types.PolicyEvaluationDecisionTypeAllowed
			}
		}
	}
	slices.Sort(missing)
	return decision, slices.Compact(missing), nil
}

// matches reports whether a statement applies to a request, and which condition keys the
// request lacks.
func (r request) matches(s map[string]any) (applies bool, missing []string, err error) {
	if named, err := r.named(s); !named || err != nil {
		return false, nil, err
	}
	return r.satisfies(s["Condition"])
}

// named reports whether a statement names the action and the resource of a request.
func (r request) named(s map[string]any) (bool, error) {
	for _, x := range []struct{ field, value string }{{"Action", strings.ToLower(r.action)}, {"Resource", r.resource}} {
		list, negated := texts(s[x.field]), false
		if s["Not"+x.field] != nil {
			list, negated = texts(s["Not"+x.field]), true
		}
		found := slices.ContainsFunc(list, func(pattern string) bool {
			if x.field == "Action" {
				pattern = strings.ToLower(pattern)
			}
			return glob(pattern, x.value)
		})
		if slices.ContainsFunc(list, func(p string) bool { return strings.Contains(p, "${") }) {
			return false, core.NotSimulated("a policy with variables")
		}
		if found == negated {
			return false, nil
		}
	}
	return true, nil
}

// Grants reports whether the policies of a role allow an action on a resource. It ignores conditions, so it is for callers
// that set what these ask for.
func (svc *Service) Grants(role *Role, action, resource string) bool {
	var p principal
	if role == nil || svc.addPolicies(&p, role.Holder) != nil {
		return false
	}
	granted := false
	for _, document := range p.policies {
		statements, err := parseDocument(document)
		if err != nil {
			return false
		}
		for _, s := range statements {
			switch named, err := (request{action: action, resource: resource}).named(s); {
			case err != nil || named && s["Effect"] != "Allow":
				return false
			case named:
				granted = true
			}
		}
	}
	return granted
}

// satisfies evaluates the conditions of a statement.
func (r request) satisfies(condition any) (holds bool, missing []string, err error) {
	var operators map[string]map[string]any
	raw, err := json.Marshal(condition)
	if err != nil || json.Unmarshal(raw, &operators) != nil {
		return false, nil, malformedPolicy("Syntax errors in policy.")
	}
	holds = true
	for operator, keys := range operators {
		if operator != "StringEquals" && operator != "StringLike" {
			return false, nil, core.NotSimulated("the condition %s", operator)
		}
		for key, wanted := range keys {
			have, known := r.context[strings.ToLower(key)]
			if !known {
				missing = append(missing, key)
			}
			holds = holds && slices.ContainsFunc(have, func(value string) bool {
				return slices.ContainsFunc(texts(wanted), func(pattern string) bool {
					return pattern == value || operator == "StringLike" && glob(pattern, value)
				})
			})
		}
	}
	return holds, missing, nil
}

// texts returns the texts of a list, or a single one.
func texts(v any) (out []string) {
	for _, x := range elements(v) {
		if s, ok := x.(string); ok {
			out = append(out, s)
		}
	}
	return out
}

// glob reports whether a text matches a pattern of IAM: a star is any number of characters,
// slashes and colons too, and a question mark is one. A backslash is not special.
func glob(pattern, text string) bool { return core.Wild(strings.ReplaceAll(pattern, `\`, `\\`), text) }
