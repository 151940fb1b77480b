package replica

import (
	"context"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/eks/types"

	sim "github.com/clusterawsadm/clusterawsadm/internal/awssim/eks"
)

// clusters reads the EKS cluster that the plan asks for. Of others it reads the names, which
// are taken and count against the quota.
func (r *reader) clusters(ctx context.Context) error {
	c, found := eks.NewFromConfig(r.Config), map[string]*sim.Cluster{}
	err := pages(ctx, eks.NewListClustersPaginator(c, &eks.ListClustersInput{}), func(p *eks.ListClustersOutput) {
		for _, name := range p.Clusters {
			found[name] = &sim.Cluster{Name: name, ARN: r.arn("eks", "cluster/"+name), Version: "1.33", Born: r.old(), Ready: r.old()}
		}
	})
	if err != nil {
		return err
	}
	for _, in := range of[eks.DescribeClusterInput](r.Asked) {
		if own := found[aws.ToString(in.Name)]; own != nil {
			if err := r.cluster(ctx, c, own); err != nil {
				return err
			}
		}
	}
	r.to.EKS.Clusters = found
	return nil
}

// cluster reads a cluster with all its parts.
func (r *reader) cluster(ctx context.Context, c *eks.Client, own *sim.Cluster) error {
	out, err := c.DescribeCluster(ctx, &eks.DescribeClusterInput{Name: &own.Name})
	if err != nil {
		return err
	}
	*own = *r.clusterOf(out.Cluster)
	for _, read := range []func(context.Context, *eks.Client, *sim.Cluster) error{r.addons, r.nodeGroups, r.fargate, r.access, r.identityProviders, r.podIdentities} {
		if err := read(ctx, c, own); err != nil {
			return err
		}
	}
	return nil
}

func (r *reader) clusterOf(x *types.Cluster) *sim.Cluster {
	own := &sim.Cluster{
		Name: aws.ToString(x.Name), ARN: aws.ToString(x.Arn), Version: aws.ToString(x.Version), Platform: aws.ToString(x.PlatformVersion), RoleARN: aws.ToString(x.RoleArn),
		Logging: map[string]bool{}, Protected: aws.ToBool(x.DeletionProtection), Tags: x.Tags, Born: r.since(x.CreatedAt), Addons: map[string]*sim.Addon{},
		PodIdentities: map[string]*sim.PodIdentity{}, NodeGroups: map[string]*sim.NodeGroup{}, Fargate: map[string]*sim.Fargate{}, Access: map[string]*sim.Access{},
		Providers: map[string]*sim.Provider{},
	}
	own.Ready = r.until(x.Status == types.ClusterStatusCreating, own.Born)
	if x.Status == types.ClusterStatusDeleting {
		own.Deleted = r.Now
	}
	host, _, _ := strings.Cut(strings.TrimPrefix(aws.ToString(x.Endpoint), "https://"), ".")
	own.Random = host
	if v := x.ResourcesVpcConfig; v != nil {
		own.VPC, own.Group, own.Subnets, own.Groups, own.PublicCIDRs = aws.ToString(v.VpcId), aws.ToString(v.ClusterSecurityGroupId), v.SubnetIds, v.SecurityGroupIds, v.PublicAccessCidrs
		own.Public, own.Private = v.EndpointPublicAccess, v.EndpointPrivateAccess
	}
	if n := x.KubernetesNetworkConfig; n != nil {
		own.Family, own.ServiceCIDR = string(n.IpFamily), aws.ToString(n.ServiceIpv4Cidr)+aws.ToString(n.ServiceIpv6Cidr)
	}
	if a := x.AccessConfig; a != nil {
		own.Authentication, own.CreatorIsAdmin = string(a.AuthenticationMode), aws.ToBool(a.BootstrapClusterCreatorAdminPermissions)
	}
	if x.Logging != nil {
		for _, l := range x.Logging.ClusterLogging {
			for _, t := range l.Types {
				own.Logging[string(t)] = aws.ToBool(l.Enabled)
			}
		}
	}
	if u := x.UpgradePolicy; u != nil {
		own.Support = string(u.SupportType)
	}
	if z := x.ZonalShiftConfig; z != nil {
		own.ZonalShift = aws.ToBool(z.Enabled)
	}
	for _, e := range x.EncryptionConfig {
		if e.Provider != nil {
			own.Key = aws.ToString(e.Provider.KeyArn)
		}
	}
	return own
}

// until returns when something is ready: soon if it is not yet.
func (r *reader) until(notYet bool, born time.Time) time.Time {
	if notYet {
		return r.Now.Add(time.Minute)
	}
	return born
}

func (r *reader) addons(ctx context.Context, c *eks.Client, own *sim.Cluster) error {
	var names []string
	err := pages(ctx, eks.NewListAddonsPaginator(c, &eks.ListAddonsInput{ClusterName: &own.Name}), func(p *eks.ListAddonsOutput) { names = append(names, p.Addons...) })
	if err != nil {
		return err
	}
	for _, name := range names {
		out, err := c.DescribeAddon(ctx, &eks.DescribeAddonInput{ClusterName: &own.Name, AddonName: &name})
		if err != nil {
			return err
		}
		x := out.Addon
		a := &sim.Addon{
			Name: name, Version: aws.ToString(x.AddonVersion), ARN: aws.ToString(x.AddonArn), RoleARN: aws.ToString(x.ServiceAccountRoleArn), Configuration: aws.ToString(x.ConfigurationValues),
			Tags: x.Tags, Born: r.since(x.CreatedAt), Modified: r.since(x.ModifiedAt),
		}
		a.Ready = r.until(x.Status == types.AddonStatusCreating || x.Status == types.AddonStatusUpdating, a.Born)
		if a.Updated = x.Status == types.AddonStatusUpdating; x.Status == types.AddonStatusDeleting {
			a.Deleted = r.Now
		}
		own.Addons[name] = a
	}
	return nil
}

func (r *reader) nodeGroups(ctx context.Context, c *eks.Client, own *sim.Cluster) error {
	var names []string
	err := pages(ctx, eks.NewListNodegroupsPaginator(c, &eks.ListNodegroupsInput{ClusterName: &own.Name}), func(p *eks.ListNodegroupsOutput) { names = append(names, p.Nodegroups...) })
	if err != nil {
		return err
	}
	for _, name := range names {
		out, err := c.DescribeNodegroup(ctx, &eks.DescribeNodegroupInput{ClusterName: &own.Name, NodegroupName: &name})
		if err != nil {
			return err
		}
		g := r.nodeGroupOf(out.Nodegroup)
		for id, i := range r.to.EC2.Instances {
			if i.Tags["eks:cluster-name"] == own.Name && i.Tags["eks:nodegroup-name"] == name {
				g.Instances = append(g.Instances, id)
			}
		}
		own.NodeGroups[name] = g
	}
	return nil
}

func (r *reader) nodeGroupOf(x *types.Nodegroup) *sim.NodeGroup {
	g := &sim.NodeGroup{
		Name: aws.ToString(x.NodegroupName), ARN: aws.ToString(x.NodegroupArn), RoleARN: aws.ToString(x.NodeRole), Version: aws.ToString(x.Version), Release: aws.ToString(x.ReleaseVersion),
		Kind: string(x.AmiType), Capacity: string(x.CapacityType), Subnets: x.Subnets, InstanceTypes: x.InstanceTypes, DiskSize: aws.ToInt32(x.DiskSize),
		Labels: x.Labels, Tags: x.Tags, Born: r.since(x.CreatedAt), Modified: r.since(x.ModifiedAt),
	}
	g.Ready = r.until(x.Status == types.NodegroupStatusCreating, g.Born)
	if x.Status == types.NodegroupStatusDeleting {
		g.Deleted = r.Now
	}
	if s := x.ScalingConfig; s != nil {
		g.Least, g.Most, g.Desired = aws.ToInt32(s.MinSize), aws.ToInt32(s.MaxSize), aws.ToInt32(s.DesiredSize)
	}
	if u := x.UpdateConfig; u != nil {
		g.MaxUnavailable, g.MaxUnavailablePercentage = aws.ToInt32(u.MaxUnavailable), aws.ToInt32(u.MaxUnavailablePercentage)
	}
	if x.NodeRepairConfig != nil {
		g.Repair = aws.ToBool(x.NodeRepairConfig.Enabled)
	}
	if t := x.LaunchTemplate; t != nil {
		g.Template, g.TemplateVersion = aws.ToString(t.Id), aws.ToString(t.Version)
	}
	if a := x.RemoteAccess; a != nil {
		g.SSHKey, g.SourceGroups = aws.ToString(a.Ec2SshKey), a.SourceSecurityGroups
	}
	if n := x.Resources; n != nil {
		g.Remote = aws.ToString(n.RemoteAccessSecurityGroup)
		for _, s := range n.AutoScalingGroups {
			g.Scaling = aws.ToString(s.Name)
		}
	}
	for _, t := range x.Taints {
		g.Taints = append(g.Taints, sim.Taint{Key: aws.ToString(t.Key), Value: aws.ToString(t.Value), Effect: string(t.Effect)})
	}
	return g
}
