package eks

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/ec2"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/iam"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// distrusts says that the trust policy of an existing role does not let a service assume it; "" if it does, or if the role does not exist
// yet. EKS refuses such a role. Sources in the EKS user guide: "Amazon EKS cluster IAM role", "Amazon EKS node IAM role", "Amazon EKS Pod
// execution IAM role", and "Create IAM role with trust policy required by EKS Pod Identity".
func distrusts(role *graph.Ref[iam.RoleState], service string, tagsSessions bool) string {
	if role == nil {
		return ""
	}
	state, _ := role.Found()
	return state.Distrusts(service, tagsSessions)
}

// fixedRole compares a role that EKS does not change. If the run creates the desired role, its ARN is not known yet, so the names are compared.
func fixedRole(field, have string, want *graph.Ref[iam.RoleState], d *plan.Diff) {
	arn := want.CloudID()
	if role, is := want.Desired().(*iam.Role); is && arn == plan.Unknown && have != "" && !strings.HasSuffix(have, "/"+role.Name) {
		arn = role.Name
	}
	d.Fixed(field, have, arn)
}

// CheckCreation implements graph.CheckedCreation.
func (k *Cluster) CheckCreation(context.Context, *cloud.Clients) (refusal string, err error) {
	return distrusts(k.Role, iam.ServiceEKS, false), nil
}

// CheckCreation implements graph.CheckedCreation.
func (g *NodeGroup) CheckCreation(ctx context.Context, c *cloud.Clients) (refusal string, err error) {
	if refusal = distrusts(g.Role, iam.ServiceEC2, false); refusal != "" {
		return refusal, nil
	}
	if lacks, none, err := g.lacks(ctx, c); none || err != nil {
		return lacks, err
	}
	return ec2.MissingSources(ctx, c, g.Subnets, slices.Clone(g.SSHFromIDs))
}

// lacks says what an existing role lacks for the nodes of the group; "" for nothing. none says that it has no permission at all, so that no node joins.
func (g *NodeGroup) lacks(ctx context.Context, c *cloud.Clients) (lacks string, none bool, err error) {
	if g.Role == nil {
		return "", false, nil
	}
	role, ok := g.Role.Found()
	if !ok || role.IsOwned(c) {
		return "", false, nil
	}
	policy, none, err := iam.LacksForNodes(ctx, c, role.Name)
	switch {
	case policy == "" || err != nil:
		return "", false, err
	case none:
		lacks = fmt.Sprintf("the role %s has no policy, so that nodes do not join", role.Name)
	default:
		lacks = fmt.Sprintf("the role %s lacks %s, so that nodes do not join unless another of its policies allows the same", role.Name, policy)
	}
	return lacks + ": attach AmazonEKSWorkerNodePolicy, AmazonEC2ContainerRegistryPullOnly and, if no add-on has a role of its own for it, AmazonEKS_CNI_Policy", none, nil
}

// CheckCreation implements graph.CheckedCreation.
func (f *FargateProfile) CheckCreation(context.Context, *cloud.Clients) (refusal string, err error) {
	return distrusts(f.Role, iam.ServiceFargate, false), nil
}

// Check implements graph.Checked.
func (p *PodIdentity) Check(context.Context, *cloud.Clients) (refusal string, err error) {
	return distrusts(p.Role, iam.ServicePods, true), nil
}
