package iam

import (
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/iam/types"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim/core"
)

// Caller is the name of the user that calls the account. It is an administrator, unless the
// account has a user with this name: then the policies of that user apply.
const Caller = "simulated"

// principal has the policies of a user or a role.
type principal struct {
	policies []string
	boundary string // document; "": none
}

// principal returns the policies of a user or a role: attached, inline, and for a user those of
// its groups.
func (svc *Service) principal(arn string) (p principal, err error) {
	kind, path, _ := strings.Cut(arn[strings.LastIndex(arn, ":")+1:], "/")
	name := path[strings.LastIndex(path, "/")+1:]
	user, role := svc.state.Users[name], svc.state.Roles[name]
	boundary := ""
	switch {
	case kind == "user" && user != nil && svc.ARN("user", user.Path, name) == arn:
		boundary = user.Boundary
		for _, holder := range append(core.Each(user.Groups, func(g string) Holder { return svc.state.Groups[g].Holder }), user.Holder) {
			if err := svc.addPolicies(&p, holder); err != nil {
				return p, err
			}
		}
	case kind == "role" && role != nil && svc.roleARN(role) == arn:
		boundary = role.Boundary
		if err := svc.addPolicies(&p, role.Holder); err != nil {
			return p, err
		}
	case user == nil && arn == svc.ARN("user", "", Caller):
		p.policies = []string{everything}
	case kind != "user" && kind != "role" || !strings.HasPrefix(arn, "arn:"+svc.Partition()+":iam::"+svc.Number()+":"):
		return p, &types.InvalidInputException{Message: aws.String("Invalid Entity Arn: " + arn + " does not clearly define entity type and name.")}
	default:
		return p, NoEntity("The "+kind+" with name", name)
	}
	if boundary != "" {
		p.boundary, err = svc.documentOf(boundary)
	}
	return p, err
}

func (svc *Service) addPolicies(p *principal, h Holder) error {
	for _, name := range core.SortedKeys(h.Inline) {
		p.policies = append(p.policies, h.Inline[name])
	}
	for _, arn := range h.Attached {
		document, err := svc.documentOf(arn)
		if err != nil {
			return err
		}
		p.policies = append(p.policies, document)
	}
	return nil
}

// documentOf returns the document of a managed policy.
func (svc *Service) documentOf(arn string) (string, error) {
	if strings.HasSuffix(arn, ":aws:policy/AdministratorAccess") {
		return everything, nil
	}
	if strings.Contains(arn, ":iam::aws:policy/") {
		return "", core.NotSimulated("the document of %s", arn)
	}
	p, err := svc.Policy(&arn)
	if err != nil {
		return "", err
	}
	return p.Document(), nil
}

func (svc *Service) simulateSimulation() {
	core.On(svc.Account, svc.simulatePrincipalPolicy, "PolicySourceArn", "ActionNames", "ResourceArns", "ContextEntries", "Marker", "MaxItems")
}

// simulatePrincipalPolicy returns one result for each action, and in it one for each resource
// that the call names. The decision of an action is the most restrictive one of its resources.
func (svc *Service) simulatePrincipalPolicy(in *iam.SimulatePrincipalPolicyInput) (*iam.SimulatePrincipalPolicyOutput, error) {
	p, err := svc.principal(aws.ToString(in.PolicySourceArn))
	if err != nil {
		return nil, err
	}
	context := map[string][]string{}
	for _, c := range in.ContextEntries {
		if c.ContextKeyType != types.ContextKeyTypeEnumString || len(c.ContextKeyValues) != 1 {
			return nil, core.NotSimulated("a context entry of the type %s with %d values", c.ContextKeyType, len(c.ContextKeyValues))
		}
		context[strings.ToLower(aws.ToString(c.ContextKeyName))] = c.ContextKeyValues
	}
	resources := in.ResourceArns
	switch {
	case len(resources) == 0:
		resources = []string{"*"}
	case slices.Contains(resources, "*"): // AWS does not say how it reports it beside others
		return nil, core.NotSimulated("the resource *, which is what no resource means")
	}
	var all []types.EvaluationResult
	for _, action := range in.ActionNames {
		service, name, ok := strings.Cut(action, ":")
		if !ok || service == "" || name == "" {
			return nil, &types.InvalidInputException{Message: aws.String("Invalid action " + action)}
		}
		result := types.EvaluationResult{EvalActionName: &action, EvalResourceName: aws.String("*"), EvalDecision: types.PolicyEvaluationDecisionTypeAllowed}
		for _, resource := range resources {
			if err := svc.judge(&result, p, request{action, resource, context}); err != nil {
				return nil, err
			}
		}
		all = append(all, result)
	}
	part, next, err := core.Page(svc.Account, all, in.Marker, in.MaxItems, 100)
	return &iam.SimulatePrincipalPolicyOutput{EvaluationResults: part, Marker: next, IsTruncated: next != nil}, err
}

// judge adds the decision on one resource to the result for an action.
func (svc *Service) judge(to *types.EvaluationResult, p principal, r request) error {
	decision, missing, err := evaluate(p.policies, r)
	if err != nil {
		return err
	}
	one := types.ResourceSpecificResult{EvalResourceName: &r.resource, EvalResourceDecision: decision, MissingContextValues: missing}
	restrict := func(document string) (bool, error) {
		limit, _, err := evaluate([]string{document}, r)
		if limit != types.PolicyEvaluationDecisionTypeAllowed && one.EvalResourceDecision == types.PolicyEvaluationDecisionTypeAllowed {
			one.EvalResourceDecision = limit
		}
		return limit == types.PolicyEvaluationDecisionTypeAllowed, err
	}
	if p.boundary != "" {
		allows, err := restrict(p.boundary)
		if err != nil {
			return err
		}
		one.PermissionsBoundaryDecisionDetail = &types.PermissionsBoundaryDecisionDetail{AllowedByPermissionsBoundary: allows}
		if to.PermissionsBoundaryDecisionDetail == nil || !allows {
			to.PermissionsBoundaryDecisionDetail = one.PermissionsBoundaryDecisionDetail
		}
	}
	if svc.state.ServiceControl != "" {
		allows, err := restrict(svc.state.ServiceControl)
		if err != nil {
			return err
		}
		detail := types.OrganizationsDecisionDetail{
			AllowedByOrganizations: allows && (to.OrganizationsDecisionDetail == nil || to.OrganizationsDecisionDetail.AllowedByOrganizations),
		}
		to.OrganizationsDecisionDetail = &detail
	}
	order := []types.PolicyEvaluationDecisionType{
		types.PolicyEvaluationDecisionTypeAllowed,
		types.PolicyEvaluationDecisionTypeImplicitDeny,
		types.PolicyEvaluationDecisionTypeExplicitDeny,
	}
	if slices.Index(order, one.EvalResourceDecision) > slices.Index(order, to.EvalDecision) {
		to.EvalDecision = one.EvalResourceDecision
	}
	to.MissingContextValues = append(to.MissingContextValues, missing...)
	slices.Sort(to.MissingContextValues)
	to.MissingContextValues = slices.Compact(to.MissingContextValues)
	if r.resource != "*" {
		to.ResourceSpecificResults = append(to.ResourceSpecificResults, one)
	}
	return nil
}
