package eks

import (
	"context"
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
	return ec2.MissingSources(ctx, c, g.Subnets, slices.Clone(g.SSHFromIDs))
}

// CheckCreation implements graph.CheckedCreation.
func (f *FargateProfile) CheckCreation(context.Context, *cloud.Clients) (refusal string, err error) {
	return distrusts(f.Role, iam.ServiceFargate, false), nil
}

// Check implements graph.Checked.
func (p *PodIdentity) Check(context.Context, *cloud.Clients) (refusal string, err error) {
	return distrusts(p.Role, iam.ServicePods, true), nil
}
