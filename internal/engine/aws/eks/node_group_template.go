package eks

import (
	"context"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eks/types"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/ec2"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// OwnHooks are the names of the lifecycle hooks with which EKS drains nodes.
func OwnHooks() []string { return []string{"Launch-LC-Hook", "Terminate-LC-Hook"} }

// ownsTemplate reports whether the cluster owns the launch template of the group.
func (s *NodeGroupState) ownsTemplate(ctx context.Context, c *cloud.Clients) (bool, error) {
	if s.Template == "" {
		return false, nil
	}
	all, err := ec2.LaunchTemplatesIfAllowed(ctx, c)
	return slices.ContainsFunc(all, func(t ec2.LaunchTemplateState) bool { return t.ID == s.Template }), err
}

// diffTemplate compares the launch template and its version. EKS can change only the
// version, for which it replaces all nodes. As in CAPA, a group without a launch template in
// the manifest keeps that of another tool.
func (g *NodeGroup) diffTemplate(have *NodeGroupState, d *plan.Diff) {
	if g.Template == nil {
		if have.OwnTemplate {
			d.Fixed("launchTemplate", have.Template, "")
		}
		return
	}
	d.FixedID("launchTemplate", have.Template, g.Template.CloudID())
	d.Set("launchTemplate.version", have.TemplateVersion, ec2.VersionOf(g.Template, g.Content))
}

// launchTemplate returns the desired version of the launch template.
func (g *NodeGroup) launchTemplate() *types.LaunchTemplateSpecification {
	if g.Template == nil {
		return nil
	}
	return &types.LaunchTemplateSpecification{Id: aws.String(g.Template.CloudID()), Version: aws.String(ec2.VersionOf(g.Template, nil))}
}
