//go:build e2e

package e2e

import (
	"context"
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/elasticloadbalancing"
	"github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/test/moto"
)

// inventory lists all resources of the account that a cluster may have.
func inventory(t *testing.T, s *moto.Server) (all []string) {
	t.Helper()
	ctx := t.Context()
	s = repeating(s)
	vpcs := map[string]bool{}
	all = append(all, networkThings(ctx, t, s, vpcs)...)
	all = append(all, computeThings(ctx, t, s, vpcs)...)
	all = append(all, balancers(ctx, t, s)...)
	all = append(all, stored(ctx, t, s)...)
	slices.Sort(all)
	return all
}

// repeating returns a server whose clients repeat calls that lost their connection, which
// moto closes now and then under load. The calls of a test only read.
func repeating(s *moto.Server) *moto.Server {
	cfg := s.Config.Copy()
	cfg.Retryer = func() aws.Retryer {
		return retry.NewStandard(func(o *retry.StandardOptions) {
			o.Retryables = append(o.Retryables, retry.IsErrorRetryableFunc(func(err error) aws.Ternary {
				return aws.BoolTernary(errors.Is(err, net.ErrClosed) || errors.Is(err, io.ErrUnexpectedEOF))
			}))
		})
	}
	return &moto.Server{URL: s.URL, Config: cfg}
}

func networkThings(ctx context.Context, t *testing.T, s *moto.Server, vpcs map[string]bool) (all []string) {
	t.Helper()
	c := ec2.NewFromConfig(s.Config)
	v, err := c.DescribeVpcs(ctx, &ec2.DescribeVpcsInput{})
	require.NoError(t, err)
	for _, x := range v.Vpcs {
		vpcs[*x.VpcId] = true
		all = append(all, "vpc "+*x.VpcId)
	}
	subnets, err := c.DescribeSubnets(ctx, &ec2.DescribeSubnetsInput{})
	require.NoError(t, err)
	for _, x := range subnets.Subnets {
		all = append(all, "subnet "+*x.SubnetId+tags(x.Tags))
	}
	gateways, err := c.DescribeInternetGateways(ctx, &ec2.DescribeInternetGatewaysInput{})
	require.NoError(t, err)
	for _, x := range gateways.InternetGateways {
		all = append(all, "internet gateway "+*x.InternetGatewayId)
	}
	egress, err := c.DescribeEgressOnlyInternetGateways(ctx, &ec2.DescribeEgressOnlyInternetGatewaysInput{})
	require.NoError(t, err)
	for _, x := range egress.EgressOnlyInternetGateways {
		all = append(all, "egress-only gateway "+*x.EgressOnlyInternetGatewayId)
	}
	nats, err := c.DescribeNatGateways(ctx, &ec2.DescribeNatGatewaysInput{})
	require.NoError(t, err)
	for _, x := range nats.NatGateways {
		if x.State != types.NatGatewayStateDeleted {
			all = append(all, "NAT gateway "+*x.NatGatewayId)
		}
	}
	tables, err := c.DescribeRouteTables(ctx, &ec2.DescribeRouteTablesInput{})
	require.NoError(t, err)
	for _, x := range tables.RouteTables {
		all = append(all, "route table "+*x.RouteTableId)
	}
	groups, err := c.DescribeSecurityGroups(ctx, &ec2.DescribeSecurityGroupsInput{})
	require.NoError(t, err)
	for _, x := range groups.SecurityGroups {
		all = append(all, "security group "+*x.GroupId)
	}
	endpoints, err := c.DescribeVpcEndpoints(ctx, &ec2.DescribeVpcEndpointsInput{})
	require.NoError(t, err)
	for _, x := range endpoints.VpcEndpoints {
		if !strings.EqualFold(string(x.State), "deleted") {
			all = append(all, "VPC endpoint "+*x.VpcEndpointId)
		}
	}
	return all
}

func tags(all []types.Tag) (line string) {
	for _, x := range all {
		line += " " + *x.Key + "=" + *x.Value
	}
	return line
}

func computeThings(ctx context.Context, t *testing.T, s *moto.Server, vpcs map[string]bool) (all []string) {
	t.Helper()
	c := ec2.NewFromConfig(s.Config)
	addresses, err := c.DescribeAddresses(ctx, &ec2.DescribeAddressesInput{})
	require.NoError(t, err)
	for _, x := range addresses.Addresses {
		all = append(all, "elastic IP "+*x.AllocationId)
	}
	instances, err := c.DescribeInstances(ctx, &ec2.DescribeInstancesInput{})
	require.NoError(t, err)
	for _, r := range instances.Reservations {
		for _, x := range r.Instances {
			if x.State.Name != types.InstanceStateNameTerminated {
				all = append(all, "instance "+*x.InstanceId)
			}
		}
	}
	volumes, err := c.DescribeVolumes(ctx, &ec2.DescribeVolumesInput{})
	require.NoError(t, err)
	for _, x := range volumes.Volumes {
		all = append(all, "volume "+*x.VolumeId)
	}
	interfaces, err := c.DescribeNetworkInterfaces(ctx, &ec2.DescribeNetworkInterfacesInput{})
	require.NoError(t, err)
	for _, x := range interfaces.NetworkInterfaces {
		if vpcs[*x.VpcId] {
			all = append(all, "network interface "+*x.NetworkInterfaceId)
		}
	}
	keys, err := c.DescribeKeyPairs(ctx, &ec2.DescribeKeyPairsInput{})
	require.NoError(t, err)
	for _, x := range keys.KeyPairs {
		all = append(all, "key pair "+*x.KeyName)
	}
	return all
}

func balancers(ctx context.Context, t *testing.T, s *moto.Server) (all []string) {
	t.Helper()
	c := elasticloadbalancingv2.NewFromConfig(s.Config)
	network, err := c.DescribeLoadBalancers(ctx, &elasticloadbalancingv2.DescribeLoadBalancersInput{})
	require.NoError(t, err)
	for _, x := range network.LoadBalancers {
		all = append(all, "load balancer "+*x.LoadBalancerName)
	}
	groups, err := c.DescribeTargetGroups(ctx, &elasticloadbalancingv2.DescribeTargetGroupsInput{})
	require.NoError(t, err)
	for _, x := range groups.TargetGroups {
		all = append(all, "target group "+*x.TargetGroupName)
	}
	classic, err := elasticloadbalancing.NewFromConfig(s.Config).DescribeLoadBalancers(ctx, &elasticloadbalancing.DescribeLoadBalancersInput{})
	require.NoError(t, err)
	for _, x := range classic.LoadBalancerDescriptions {
		all = append(all, "classic load balancer "+*x.LoadBalancerName)
	}
	return all
}

func stored(ctx context.Context, t *testing.T, s *moto.Server) (all []string) {
	t.Helper()
	pages := ssm.NewGetParametersByPathPaginator(ssm.NewFromConfig(s.Config), &ssm.GetParametersByPathInput{
		Path: aws.String("/clusterawsadm"), Recursive: aws.Bool(true),
	})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		require.NoError(t, err)
		for _, x := range page.Parameters {
			all = append(all, "parameter "+*x.Name)
		}
	}
	secrets, err := secretsmanager.NewFromConfig(s.Config).ListSecrets(ctx, &secretsmanager.ListSecretsInput{})
	require.NoError(t, err)
	for _, x := range secrets.SecretList {
		all = append(all, "secret "+*x.Name)
	}
	buckets, err := s3.NewFromConfig(s.Config, func(o *s3.Options) { o.UsePathStyle = true }).ListBuckets(ctx, &s3.ListBucketsInput{})
	require.NoError(t, err)
	for _, x := range buckets.Buckets {
		all = append(all, "bucket "+*x.Name)
	}
	profiles, err := iam.NewFromConfig(s.Config).ListInstanceProfiles(ctx, &iam.ListInstanceProfilesInput{})
	require.NoError(t, err)
	for _, x := range profiles.InstanceProfiles {
		all = append(all, "instance profile "+*x.InstanceProfileName)
	}
	return all
}
