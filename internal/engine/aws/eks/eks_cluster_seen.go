package eks

import (
	"encoding/base64"

	"context"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/eks/types"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/identity"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
	"github.com/clusterawsadm/clusterawsadm/internal/kube"
	pkgeks "github.com/clusterawsadm/clusterawsadm/pkg/eks"
)

// eksNotYet has a call repeated that EKS refuses since something is still on
// its way: a role that IAM has not told everybody of, a thing of the same
// name that goes, another one of which there may be only one at a time, an
// update of the cluster.
func eksNotYet(err error) error {
	busy := cloud.Is(err, "InvalidRequestException") && strings.Contains(strings.ToLower(err.Error()), "active")
	role := cloud.Is(err, "InvalidParameterException", "InvalidRequestException") && strings.Contains(strings.ToLower(err.Error()), "role")
	if role {
		return graph.NotShown(err)
	}
	if busy || cloud.Is(err, "ResourceInUseException") {
		return graph.NotYet(err)
	}
	return err
}

// ClusterByName returns a cluster, or nil.
func ClusterByName(ctx context.Context, c *cloud.Clients, name string) (*ClusterState, error) {
	return cloud.Remember(ctx, c, "EKS cluster "+name, func(ctx context.Context) (*ClusterState, error) {
		out, err := c.EKS.DescribeCluster(ctx, &eks.DescribeClusterInput{Name: &name})
		if err != nil {
			return nil, cloud.IgnoreNotFound(err)
		}
		s := eksClusterSeen(out.Cluster)
		return &s, nil
	})
}

func eksClusterSeen(x *types.Cluster) ClusterState {
	s := ClusterState{
		Object: identity.Object{ID: aws.ToString(x.Arn), Tags: x.Tags}, Name: aws.ToString(x.Name), Status: string(x.Status), Version: aws.ToString(x.Version), Endpoint: aws.ToString(x.Endpoint), RoleARN: aws.ToString(x.RoleArn),
	}
	if v := x.ResourcesVpcConfig; v != nil {
		s.VPC, s.Group, s.Subnets, s.Groups = aws.ToString(v.VpcId), aws.ToString(v.ClusterSecurityGroupId), v.SubnetIds, v.SecurityGroupIds
		s.Public, s.Private, s.PublicCIDRs = v.EndpointPublicAccess, v.EndpointPrivateAccess, v.PublicAccessCidrs
	}
	if n := x.KubernetesNetworkConfig; n != nil {
		s.IPv6, s.ServiceCIDR = n.IpFamily == types.IpFamilyIpv6, aws.ToString(n.ServiceIpv4Cidr)
		if s.IPv6 {
			s.ServiceCIDR = aws.ToString(n.ServiceIpv6Cidr)
		}
	}
	s.Logging = logsSeen(x.Logging)
	for _, k := range x.EncryptionConfig {
		if k.Provider != nil {
			s.Key = aws.ToString(k.Provider.KeyArn)
		}
	}
	if x.AccessConfig != nil {
		s.Authentication = string(x.AccessConfig.AuthenticationMode)
	}
	if x.UpgradePolicy != nil {
		s.Support = string(x.UpgradePolicy.SupportType)
	}
	if x.CertificateAuthority != nil {
		s.CA = aws.ToString(x.CertificateAuthority.Data)
	}
	if x.Identity != nil && x.Identity.Oidc != nil {
		s.Issuer = aws.ToString(x.Identity.Oidc.Issuer)
	}
	return s
}

// logsSeen lists the types of logs that are kept.
func logsSeen(x *types.Logging) (out []string) {
	if x == nil {
		return nil
	}
	for _, l := range x.ClusterLogging {
		for _, t := range l.Types {
			if aws.ToBool(l.Enabled) {
				out = append(out, string(t))
			}
		}
	}
	slices.Sort(out)
	return out
}

// SecurityGroup implements ec2.SecurityGroupOwner: the group that EKS has
// created for the nodes of the cluster.
func (s ClusterState) SecurityGroup() string { return s.Group }

// Client returns a client of the API server of a cluster of EKS.
func (s ClusterState) Client(c *cloud.Clients) (*kube.Client, error) {
	return c.API(s.Endpoint, func() (kube.Access, error) {
		ca, err := base64.StdEncoding.DecodeString(s.CA)
		return kube.Access{Server: s.Endpoint, CA: ca, Token: pkgeks.Tokens(c.Config, s.Name)}, err
	})
}
