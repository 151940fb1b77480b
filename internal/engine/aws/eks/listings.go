package eks

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/eks/types"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/identity"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
)

// How long EKS usually takes, for polling and for messages.
const (
	eksClusterTakes    = 9 * time.Minute
	ClusterGoes        = 3 * time.Minute
	eksNodeGroupTakes  = 3 * time.Minute
	NodeGroupGoes      = 3 * time.Minute
	eksFargateTakes    = 2 * time.Minute
	FargateProfileGoes = 2 * time.Minute
	eksAddonTakes      = time.Minute
	AddonGoes          = time.Minute
	eksProviderTakes   = 15 * time.Minute
	eksProviderGoes    = 15 * time.Minute
)

// nodeGroupNames lists the node groups of a cluster.
func nodeGroupNames(ctx context.Context, c *cloud.Clients, cluster string) ([]string, error) {
	return cloud.Remember(ctx, c, "names of node groups", func(ctx context.Context) ([]string, error) {
		p := eks.NewListNodegroupsPaginator(c.EKS, &eks.ListNodegroupsInput{ClusterName: &cluster})
		out, err := cloud.Pages(ctx, p.HasMorePages, func(ctx context.Context) (*eks.ListNodegroupsOutput, error) { return p.NextPage(ctx) },
			func(o *eks.ListNodegroupsOutput) []string { return o.Nodegroups })
		return out, cloud.IgnoreNotFound(err)
	})
}

// addonNames lists the add-ons that EKS manages in a cluster.
func addonNames(ctx context.Context, c *cloud.Clients, cluster string) ([]string, error) {
	return cloud.Remember(ctx, c, "names of add-ons", func(ctx context.Context) ([]string, error) {
		p := eks.NewListAddonsPaginator(c.EKS, &eks.ListAddonsInput{ClusterName: &cluster})
		out, err := cloud.Pages(ctx, p.HasMorePages, func(ctx context.Context) (*eks.ListAddonsOutput, error) { return p.NextPage(ctx) },
			func(o *eks.ListAddonsOutput) []string { return o.Addons })
		return out, cloud.IgnoreNotFound(err)
	})
}

// fargateNames lists the Fargate profiles of a cluster.
func fargateNames(ctx context.Context, c *cloud.Clients, cluster string) ([]string, error) {
	return cloud.Remember(ctx, c, "names of Fargate profiles", func(ctx context.Context) ([]string, error) {
		p := eks.NewListFargateProfilesPaginator(c.EKS, &eks.ListFargateProfilesInput{ClusterName: &cluster})
		out, err := cloud.Pages(ctx, p.HasMorePages, func(ctx context.Context) (*eks.ListFargateProfilesOutput, error) { return p.NextPage(ctx) },
			func(o *eks.ListFargateProfilesOutput) []string { return o.FargateProfileNames })
		return out, cloud.IgnoreNotFound(err)
	})
}

// accessPrincipals lists the principals that have an access entry. A cluster
// that goes by its ConfigMap has none.
func accessPrincipals(ctx context.Context, c *cloud.Clients, cluster string) ([]string, error) {
	return cloud.Remember(ctx, c, "principals of access entries", func(ctx context.Context) ([]string, error) {
		p := eks.NewListAccessEntriesPaginator(c.EKS, &eks.ListAccessEntriesInput{ClusterName: &cluster})
		out, err := cloud.Pages(ctx, p.HasMorePages, func(ctx context.Context) (*eks.ListAccessEntriesOutput, error) { return p.NextPage(ctx) },
			func(o *eks.ListAccessEntriesOutput) []string { return o.AccessEntries })
		if cloud.Is(err, "InvalidRequestException") {
			return nil, nil
		}
		return out, cloud.IgnoreNotFound(err)
	})
}

// NodeGroupByName returns a node group, or nil. The one listing tells of all
// whether they are there.
func NodeGroupByName(ctx context.Context, c *cloud.Clients, cluster, name string) (*NodeGroupState, error) {
	return cloud.Remember(ctx, c, "node group "+name, func(ctx context.Context) (*NodeGroupState, error) {
		out, err := c.EKS.DescribeNodegroup(ctx, &eks.DescribeNodegroupInput{ClusterName: &cluster, NodegroupName: &name})
		if err != nil {
			return nil, cloud.IgnoreNotFound(err)
		}
		s := nodeGroupSeen(out.Nodegroup)
		s.Cluster = cluster
		return &s, nil
	})
}

func nodeGroupSeen(x *types.Nodegroup) NodeGroupState {
	s := NodeGroupState{
		Object: identity.Object{ID: aws.ToString(x.NodegroupArn), Tags: x.Tags}, Name: aws.ToString(x.NodegroupName), Status: string(x.Status), Version: aws.ToString(x.Version), Release: aws.ToString(x.ReleaseVersion),
		Kind: string(x.AmiType), Capacity: string(x.CapacityType), RoleARN: aws.ToString(x.NodeRole), Subnets: x.Subnets, InstanceTypes: x.InstanceTypes,
		DiskSize: aws.ToInt32(x.DiskSize), Labels: x.Labels,
	}
	if v := x.ScalingConfig; v != nil {
		s.Least, s.Most, s.Desired = aws.ToInt32(v.MinSize), aws.ToInt32(v.MaxSize), aws.ToInt32(v.DesiredSize)
	}
	if v := x.LaunchTemplate; v != nil {
		s.Template, s.TemplateVersion = aws.ToString(v.Id), aws.ToString(v.Version)
	}
	if v := x.Resources; v != nil && len(v.AutoScalingGroups) > 0 {
		s.Scaling = aws.ToString(v.AutoScalingGroups[0].Name)
	}
	if v := x.UpdateConfig; v != nil {
		s.MaxUnavailable, s.MaxUnavailablePercentage = aws.ToInt32(v.MaxUnavailable), aws.ToInt32(v.MaxUnavailablePercentage)
	}
	if v := x.NodeRepairConfig; v != nil {
		s.Repair = aws.ToBool(v.Enabled)
	}
	if v := x.RemoteAccess; v != nil {
		s.SSHKey = aws.ToString(v.Ec2SshKey)
	}
	for _, t := range x.Taints {
		s.Taints = append(s.Taints, Taint{aws.ToString(t.Key), aws.ToString(t.Value), string(t.Effect)})
	}
	if x.Health != nil {
		for _, i := range x.Health.Issues {
			s.Issues = append(s.Issues, string(i.Code)+": "+aws.ToString(i.Message))
		}
	}
	return s
}

// Parts are the names of what hangs on a cluster of EKS.
type Parts struct {
	Cluster                               *ClusterState // nil: there is none
	NodeGroups, Addons, Fargate, Accesses []string
}

// PartsOf looks at a cluster of EKS and at what hangs on it. Who looks
// briefly, to delete, does without what goes with the cluster.
func PartsOf(ctx context.Context, c *cloud.Clients, name string) (p Parts, err error) {
	if p.Cluster, err = ClusterByName(ctx, c, name); err != nil || p.Cluster == nil {
		return p, err
	}
	for _, part := range []struct {
		to   *[]string
		list func(context.Context, *cloud.Clients, string) ([]string, error)
	}{
		{&p.NodeGroups, nodeGroupNames}, {&p.Addons, addonNames}, {&p.Fargate, fargateNames}, {&p.Accesses, accessPrincipals},
	} {
		if cloud.IsBrief(ctx) && (part.to == &p.Addons || part.to == &p.Accesses) {
			continue
		}
		if *part.to, err = part.list(ctx, c, name); err != nil {
			return p, err
		}
		slices.Sort(*part.to)
	}
	return p, nil
}

// eksRetagged sets tags on a thing of EKS and returns its object as it is then.
func eksRetagged(ctx context.Context, c *cloud.Clients, have identity.Object, tags cloud.Tags) (identity.Object, error) {
	have.Tags = have.Tags.With(tags)
	_, err := c.EKS.TagResource(ctx, &eks.TagResourceInput{ResourceArn: &have.ID, Tags: tags})
	return have, err
}

// idList writes IDs down; it is unknown until all of them are there.
func idList(ids []string) string {
	if slices.Contains(ids, graph.Unknown) {
		return graph.Unknown
	}
	return sortedList(ids)
}

func sortedList(list []string) string { return strings.Join(slices.Sorted(slices.Values(list)), ",") }
