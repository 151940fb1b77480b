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
	for _, read := range []func(context.Context, *eks.Client, *sim.Cluster) error{
		r.addons, r.nodeGroups, r.fargate, r.access, r.identityProviders, r.podIdentities,
	} {
		if err := read(ctx, c, own); err != nil {
			return err
		}
	}
	return nil
}

func (r *reader) clusterOf(x *types.Cluster) *sim.Cluster {
	own := &sim.Cluster{
		Name: aws.ToString(
			x.Name,
		),
		ARN:           aws.ToString(x.Arn),
		Version:       aws.ToString(x.Version),
		Platform:      aws.ToString(x.PlatformVersion),
		RoleARN:       aws.ToString(x.RoleArn),
		Logging:       map[string]bool{},
		Protected:     aws.ToBool(x.DeletionProtection),
		Tags:          x.Tags,
		Born:          r.since(x.CreatedAt),
		Addons:        map[string]*sim.Addon{},
		PodIdentities: map[string]*sim.PodIdentity{},
		NodeGroups:    map[string]*sim.NodeGroup{},
		Fargate:       map[string]*sim.Fargate{},
		Access:        map[string]*sim.Access{},
		Providers:     map[string]*sim.Provider{},

		CreatorIsAdmin: true, // the default: EKS does not return it
	}
	own.Ready = r.until(x.Status == types.ClusterStatusCreating, own.Born)
	if x.Status == types.ClusterStatusDeleting {
		own.Deleted = r.Now
	}
	host, _, _ := strings.Cut(strings.TrimPrefix(aws.ToString(x.Endpoint), "https://"), ".")
	own.Random = host
	if v := x.ResourcesVpcConfig; v != nil {
		own.VPC, own.Group, own.Subnets, own.Groups, own.PublicCIDRs = aws.ToString(
			v.VpcId,
		), aws.ToString(
			v.ClusterSecurityGroupId,
		), v.SubnetIds, v.SecurityGroupIds, v.PublicAccessCidrs
		own.Public, own.Private = v.EndpointPublicAccess, v.EndpointPrivateAccess
	}
	if n := x.KubernetesNetworkConfig; n != nil {
		own.Family, own.ServiceCIDR = string(n.IpFamily), aws.ToString(n.ServiceIpv4Cidr)+aws.ToString(n.ServiceIpv6Cidr)
	}
	if a := x.AccessConfig; a != nil {
		own.Authentication = string(a.AuthenticationMode)
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
	if m := x.ComputeConfig; m != nil && aws.ToBool(m.Enabled) {
		own.Auto = &sim.AutoMode{NodePools: m.NodePools, NodeRole: aws.ToString(m.NodeRoleArn)}
	}
	if z := x.ZonalShiftConfig; z != nil {
		own.ZonalShift = aws.ToBool(z.Enabled)
	}
	if s := x.ControlPlaneScalingConfig; s != nil {
		own.Tier = string(s.Tier)
	}
	if n := x.RemoteNetworkConfig; n != nil {
		for _, r := range n.RemoteNodeNetworks {
			own.RemoteNodes = append(own.RemoteNodes, r.Cidrs...)
		}
		for _, r := range n.RemotePodNetworks {
			own.RemotePods = append(own.RemotePods, r.Cidrs...)
		}
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
