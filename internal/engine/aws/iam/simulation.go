package iam

import (
	"context"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/iam/types"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
)

// Simulation asks IAM whether a user or a role may do something, which it does not do.
type Simulation struct {
	Principal string            // ARN
	Actions   []string          // each is simulated with each of the resources
	Resources []string          // ARNs; empty: any resource
	Context   map[string]string // values of condition keys
}

// Decision is IAM's answer for an action on a resource.
type Decision struct {
	Allowed  bool
	Explicit bool     // a statement denies it
	Boundary bool     // the permissions boundary does not allow it
	Control  bool     // the service control policies of the organization do not allow it
	Missing  []string // condition keys of the policies that the simulation has no value for
}

// Simulated is an action on a resource; without resources in the simulation, Resource is "*".
type Simulated struct{ Action, Resource string }

// most is how many actions one call simulates. IAM documents no limit.
const most = 100

// attempts is how often a simulation is asked for: a run waits for the answer, and goes on
// without one.
const attempts = 2

// Run runs a simulation.
func (s Simulation) Run(ctx context.Context, c *cloud.Clients) (map[Simulated]Decision, error) {
	out := map[Simulated]Decision{}
	for part := range slices.Chunk(s.Actions, most) {
		in := &iam.SimulatePrincipalPolicyInput{PolicySourceArn: &s.Principal, ActionNames: part, ResourceArns: s.Resources, MaxItems: aws.Int32(1000)}
		for key, value := range s.Context {
			in.ContextEntries = append(
				in.ContextEntries,
				types.ContextEntry{ContextKeyName: &key, ContextKeyType: types.ContextKeyTypeEnumString, ContextKeyValues: []string{value}},
			)
		}
		ctx := cloud.Listing(ctx)
		for p := iam.NewSimulatePrincipalPolicyPaginator(c.IAM, in); p.HasMorePages(); {
			page, err := p.NextPage(ctx, func(o *iam.Options) { o.RetryMaxAttempts = attempts })
			if err != nil {
				return nil, err
			}
			for _, r := range page.EvaluationResults {
				s.add(out, r)
			}
		}
	}
	return out, nil
}

// add adds the decisions of a result: one for each resource, or that for any resource.
func (s Simulation) add(to map[Simulated]Decision, r types.EvaluationResult) {
	action := aws.ToString(r.EvalActionName)
	d := Decision{
		Allowed:  r.EvalDecision == types.PolicyEvaluationDecisionTypeAllowed,
		Explicit: r.EvalDecision == types.PolicyEvaluationDecisionTypeExplicitDeny,
		Boundary: r.PermissionsBoundaryDecisionDetail != nil && !r.PermissionsBoundaryDecisionDetail.AllowedByPermissionsBoundary,
		Control:  r.OrganizationsDecisionDetail != nil && !r.OrganizationsDecisionDetail.AllowedByOrganizations,
		Missing:  r.MissingContextValues,
	}
	if len(s.Resources) == 0 {
		to[Simulated{action, "*"}] = d
		return
	}
	for _, resource := range s.Resources {
		to[Simulated{action, resource}] = d // unless there is one of its own
	}
	for _, one := range r.ResourceSpecificResults {
		own := d
		own.Allowed = one.EvalResourceDecision == types.PolicyEvaluationDecisionTypeAllowed
		own.Explicit = one.EvalResourceDecision == types.PolicyEvaluationDecisionTypeExplicitDeny
		if b := one.PermissionsBoundaryDecisionDetail; b != nil {
			own.Boundary = !b.AllowedByPermissionsBoundary
		}
		if len(one.MissingContextValues) > 0 || own.Allowed {
			own.Missing = one.MissingContextValues
		}
		to[Simulated{action, aws.ToString(one.EvalResourceName)}] = own
	}
}
