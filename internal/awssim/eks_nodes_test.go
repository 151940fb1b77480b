package awssim

import (
	"bytes"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/eks/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	ekssim "github.com/clusterawsadm/clusterawsadm/internal/awssim/eks"
)

// group returns the call for a node group of two nodes.
func group(name string) *eks.CreateNodegroupInput {
	return &eks.CreateNodegroupInput{
		ClusterName: aws.String("demo"), NodegroupName: &name, NodeRole: aws.String(stockRole), Subnets: []string{testSubnetA, testSubnetB},
		InstanceTypes: []string{"t3.large"}, ScalingConfig: &types.NodegroupScalingConfig{MinSize: aws.Int32(1), MaxSize: aws.Int32(4), DesiredSize: aws.Int32(2)},
		ClientRequestToken: aws.String("once " + name), Labels: map[string]string{"a": "b"},
	}
}

func TestNodeGroupLives(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := furnished(Options{})
		c := eksWithNetwork(t, a, "demo")
		_, err := c.CreateNodegroup(t.Context(), group("one"))
		require.NoError(t, err)
		_, err = c.CreateNodegroup(t.Context(), group("one"))
		require.NoError(t, err, "the same token is the same request")
		other := group("one")
		other.ClientRequestToken = aws.String("twice")
		_, err = c.CreateNodegroup(t.Context(), other)
		hasCode(t, err, "ResourceInUseException")
		id := &eks.DeleteNodegroupInput{ClusterName: aws.String("demo"), NodegroupName: aws.String("one")}
		_, err = c.DeleteNodegroup(t.Context(), id)
		hasCode(t, err, "ResourceInUseException")
		time.Sleep(ekssim.NodeGroupTakes)

		_, err = c.DeleteCluster(t.Context(), &eks.DeleteClusterInput{Name: aws.String("demo")})
		hasCode(t, err, "ResourceInUseException")
		config := &eks.UpdateNodegroupConfigInput{
			ClusterName:   aws.String("demo"),
			NodegroupName: aws.String("one"),
			ScalingConfig: &types.NodegroupScalingConfig{DesiredSize: aws.Int32(5)},
		}
		_, err = c.UpdateNodegroupConfig(t.Context(), config)
		hasCode(t, err, "InvalidParameterException")
		config.ScalingConfig.DesiredSize = aws.Int32(3)
		config.Labels = &types.UpdateLabelsPayload{RemoveLabels: []string{"a"}}
		_, err = c.UpdateNodegroupConfig(t.Context(), config)
		require.NoError(t, err)
		_, err = c.UpdateNodegroupConfig(t.Context(), config)
		hasCode(t, err, "ResourceInUseException")
		time.Sleep(ekssim.NodeGroupConfigTakes)
		out, err := c.DescribeNodegroup(t.Context(), &eks.DescribeNodegroupInput{ClusterName: aws.String("demo"), NodegroupName: aws.String("one")})
		require.NoError(t, err)
		assert.Empty(t, out.Nodegroup.Labels)
		require.Len(t, a.state.EKS.Clusters["demo"].NodeGroups["one"].Instances, 3)

		_, err = c.DeleteNodegroup(t.Context(), id)
		require.NoError(t, err)
		time.Sleep(EKSNodeGroupDeletes)
		_, err = c.DeleteNodegroup(t.Context(), id)
		hasCode(t, err, "ResourceNotFoundException")
	})
}

// Upgrades go one minor version at a time, nodes after the control plane, without
// downgrades; an update in progress survives a save.
func TestEKSVersions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := furnished(Options{})
		c := eksWithNetwork(t, a, "demo")
		_, err := c.CreateNodegroup(t.Context(), group("one"))
		require.NoError(t, err)
		time.Sleep(ekssim.NodeGroupTakes)
		to := func(v string) error {
			_, err := c.UpdateClusterVersion(t.Context(), &eks.UpdateClusterVersionInput{Name: aws.String("demo"), Version: &v})
			return err
		}
		nodesTo := func(v string) error {
			_, err := c.UpdateNodegroupVersion(
				t.Context(),
				&eks.UpdateNodegroupVersionInput{ClusterName: aws.String("demo"), NodegroupName: aws.String("one"), Version: &v},
			)
			return err
		}
		hasCode(t, to("1.32"), "InvalidParameterException")
		hasCode(t, to("1.33"), "InvalidParameterException")
		hasCode(t, to("1.35"), "InvalidParameterException")
		hasCode(t, nodesTo("1.34"), "InvalidParameterException")
		require.NoError(t, to("1.34"))
		hasCode(t, to("1.34"), "ResourceInUseException")
		_, err = c.CreateNodegroup(t.Context(), group("two"))
		hasCode(t, err, "InvalidRequestException")

		var saved bytes.Buffer
		require.NoError(t, a.Save(&saved))
		a, err = Load(&saved, Options{})
		require.NoError(t, err)
		c = eks.NewFromConfig(a.Config())
		time.Sleep(ekssim.VersionTakes)
		require.NoError(t, nodesTo("1.34"))
		hasCode(t, nodesTo("1.34"), "ResourceInUseException")
		time.Sleep(2 * ekssim.NodeTakes)
		hasCode(t, nodesTo("1.33"), "InvalidParameterException")
		out, err := c.DescribeNodegroup(t.Context(), &eks.DescribeNodegroupInput{ClusterName: aws.String("demo"), NodegroupName: aws.String("one")})
		require.NoError(t, err)
		assert.Equal(t, "1.34", *out.Nodegroup.Version)
		assert.Equal(t, types.NodegroupStatusActive, out.Nodegroup.Status)
	})
}

// Updates of a control plane exclude each other.
func TestEKSUpdatesExcludeEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := furnished(Options{})
		c := eksWithNetwork(t, a, "demo")
		update := func(in eks.UpdateClusterConfigInput) error {
			in.Name = aws.String("demo")
			_, err := c.UpdateClusterConfig(t.Context(), &in)
			return err
		}
		logs := func(on bool) *types.Logging {
			return &types.Logging{ClusterLogging: []types.LogSetup{{Enabled: &on, Types: []types.LogType{types.LogTypeApi}}}}
		}
		hasCode(t, update(eks.UpdateClusterConfigInput{}), "InvalidParameterException")
		hasCode(t, update(eks.UpdateClusterConfigInput{Logging: logs(false)}), "InvalidParameterException")
		hasCode(
			t,
			update(eks.UpdateClusterConfigInput{Logging: logs(true), UpgradePolicy: &types.UpgradePolicyRequest{SupportType: types.SupportTypeStandard}}),
			"InvalidParameterException",
		)
		private := types.VpcConfigRequest{PublicAccessCidrs: []string{"10.0.0.0/8"}}
		hasCode(t, update(eks.UpdateClusterConfigInput{ResourcesVpcConfig: &private}), "InvalidParameterException")
		require.NoError(t, update(eks.UpdateClusterConfigInput{Logging: logs(true)}))
		hasCode(t, update(eks.UpdateClusterConfigInput{DeletionProtection: aws.Bool(true)}), "ResourceInUseException")
		time.Sleep(ekssim.ConfigTakes)
		mode := func(m types.AuthenticationMode) eks.UpdateClusterConfigInput {
			return eks.UpdateClusterConfigInput{AccessConfig: &types.UpdateAccessConfigRequest{AuthenticationMode: m}}
		}
		hasCode(t, update(mode(types.AuthenticationModeApi)), "InvalidParameterException")
		_, err := c.ListAccessEntries(t.Context(), &eks.ListAccessEntriesInput{ClusterName: aws.String("demo")})
		hasCode(t, err, "InvalidRequestException")
		require.NoError(t, update(mode(types.AuthenticationModeApiAndConfigMap)))
		time.Sleep(ekssim.ConfigTakes)
		_, err = c.ListAccessEntries(t.Context(), &eks.ListAccessEntriesInput{ClusterName: aws.String("demo")})
		require.NoError(t, err)
		hasCode(t, update(mode(types.AuthenticationModeConfigMap)), "InvalidParameterException")

		_, err = c.CreateNodegroup(t.Context(), group("one"))
		require.NoError(t, err)
		entry, err := c.DescribeAccessEntry(t.Context(), &eks.DescribeAccessEntryInput{ClusterName: aws.String("demo"), PrincipalArn: aws.String(stockRole)})
		require.NoError(t, err, "EKS lets the nodes in that it runs")
		assert.Equal(t, "EC2_LINUX", *entry.AccessEntry.Type)
	})
}

// An identity provider locks its cluster during association and disassociation, and there
// can be one.
func TestEKSIdentityProviders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := furnished(Options{})
		c := eksWithNetwork(t, a, "demo")
		associate := func(name string) error {
			_, err := c.AssociateIdentityProviderConfig(
				t.Context(),
				&eks.AssociateIdentityProviderConfigInput{ClusterName: aws.String("demo"), Oidc: &types.OidcIdentityProviderConfigRequest{
					IdentityProviderConfigName: &name, IssuerUrl: aws.String("https://login.example.com"), ClientId: aws.String("kubernetes"),
				}},
			)
			return err
		}
		require.NoError(t, associate("company"))
		hasCode(t, associate("other"), "ResourceLimitExceededException")
		_, err := c.CreateNodegroup(t.Context(), group("one"))
		hasCode(t, err, "InvalidRequestException")
		leave := &eks.DisassociateIdentityProviderConfigInput{
			ClusterName:            aws.String("demo"),
			IdentityProviderConfig: &types.IdentityProviderConfig{Name: aws.String("company"), Type: aws.String("oidc")},
		}
		_, err = c.DisassociateIdentityProviderConfig(t.Context(), leave)
		hasCode(t, err, "ResourceInUseException")
		time.Sleep(ekssim.ProviderTakes)
		_, err = c.DisassociateIdentityProviderConfig(t.Context(), leave)
		require.NoError(t, err)
		time.Sleep(ekssim.ProviderTakes)
		_, err = c.DisassociateIdentityProviderConfig(t.Context(), leave)
		hasCode(t, err, "ResourceNotFoundException")
	})
}

// Fargate profiles are created and deleted one at a time, in private subnets.
func TestFargateOneAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := furnished(Options{})
		c := eksWithNetwork(t, a, "demo")
		create := func(name string, subnets ...string) error {
			_, err := c.CreateFargateProfile(t.Context(), &eks.CreateFargateProfileInput{
				ClusterName: aws.String("demo"), FargateProfileName: &name, PodExecutionRoleArn: aws.String(fargateRole), Subnets: subnets,
				Selectors: []types.FargateProfileSelector{{Namespace: aws.String("default")}},
			})
			return err
		}
		remove := func(name string) error {
			_, err := c.DeleteFargateProfile(t.Context(), &eks.DeleteFargateProfileInput{ClusterName: aws.String("demo"), FargateProfileName: &name})
			return err
		}
		require.NoError(t, create("one", testSubnetA))
		hasCode(t, create("two", testSubnetA), "ResourceInUseException")
		hasCode(t, remove("one"), "ResourceInUseException")
		time.Sleep(ekssim.FargateTakes)
		require.NoError(t, create("two", testSubnetA))
		time.Sleep(ekssim.FargateTakes)
		require.NoError(t, remove("one"))
		hasCode(t, remove("two"), "ResourceInUseException")
		_, err := c.DeleteCluster(t.Context(), &eks.DeleteClusterInput{Name: aws.String("demo")})
		hasCode(t, err, "ResourceInUseException")
		time.Sleep(ekssim.FargateDeletes)
		require.NoError(t, remove("two"))
		time.Sleep(ekssim.FargateDeletes)
		_, err = c.DeleteCluster(t.Context(), &eks.DeleteClusterInput{Name: aws.String("demo")})
		require.NoError(t, err)
	})
}

// A node group becomes active only if its nodes can reach the API server, and what they load from
// AWS.
func TestNodesReachTheAPIServer(t *testing.T) {
	const outside, ofNAT = "198.51.100.0/24", "203.0.113.7/32"
	for name, c := range map[string]struct {
		endpoint ekssim.Endpoint
		routes   bool
		joins    bool
	}{
		"public":                        {ekssim.Endpoint{Public: true, CIDRs: []string{"0.0.0.0/0"}}, true, true},
		"public, others":                {ekssim.Endpoint{Public: true, CIDRs: []string{outside}}, true, false},
		"public, NAT gateway":           {ekssim.Endpoint{Public: true, CIDRs: []string{outside, ofNAT}}, true, true},
		"public, others, and private":   {ekssim.Endpoint{Public: true, Private: true, CIDRs: []string{outside}}, true, true},
		"private":                       {ekssim.Endpoint{Private: true, CIDRs: []string{outside}}, true, true},
		"public, no way to it":          {ekssim.Endpoint{Public: true, CIDRs: []string{"0.0.0.0/0"}}, false, false},
		"private, no way to the images": {ekssim.Endpoint{Private: true, CIDRs: []string{"0.0.0.0/0"}}, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := furnished(Options{})
				client := eksWithNetwork(t, a, "demo")
				a.Edit(func(s *State) {
					d := s.EKS.Clusters["demo"]
					d.Public, d.Private, d.PublicCIDRs = c.endpoint.Public, c.endpoint.Private, c.endpoint.CIDRs
					if !c.routes {
						s.EC2.RouteTables["rtb-0test"].Routes = nil
					}
				})
				_, err := client.CreateNodegroup(t.Context(), group("one"))
				require.NoError(t, err)
				get := func() *types.Nodegroup {
					out, err := client.DescribeNodegroup(t.Context(), &eks.DescribeNodegroupInput{ClusterName: aws.String("demo"), NodegroupName: aws.String("one")})
					require.NoError(t, err)
					return out.Nodegroup
				}
				time.Sleep(ekssim.NodeGroupTakes)
				if c.joins {
					require.Equal(t, types.NodegroupStatusActive, get().Status)
					return
				}
				require.Equal(t, types.NodegroupStatusCreating, get().Status)
				time.Sleep(ekssim.NodeGroupGivesUp)
				require.Equal(t, types.NodegroupStatusCreateFailed, get().Status)
				require.Equal(t, types.NodegroupIssueCodeNodeCreationFailure, get().Health.Issues[0].Code)
				require.NotEmpty(t, get().Health.Issues[0].ResourceIds)
			})
		})
	}
}

// The snapshots of Amazon Linux 2 are smaller than the root devices of its images: nodes start with 10 GiB.
func TestNodeGroupWithASmallDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := eksWithNetwork(t, furnished(Options{}), "demo")
		small := group("small")
		small.AmiType, small.Version, small.DiskSize = types.AMITypesAl2X8664, aws.String("1.32"), aws.Int32(10)
		_, err := c.CreateNodegroup(t.Context(), small)
		require.NoError(t, err)
		time.Sleep(time.Hour)
		out, err := c.DescribeNodegroup(t.Context(), &eks.DescribeNodegroupInput{ClusterName: aws.String("demo"), NodegroupName: aws.String("small")})
		require.NoError(t, err)
		require.Equal(t, types.NodegroupStatusActive, out.Nodegroup.Status, out.Nodegroup.Health)
		small.NodegroupName, small.ClientRequestToken, small.DiskSize = aws.String("smaller"), aws.String("another"), aws.Int32(3)
		_, err = c.CreateNodegroup(t.Context(), small)
		require.ErrorContains(t, err, "expect size>= 4GB")
	})
}

// Node groups whose volume is too small for the image are refused, and nodes whose image does not work on the instance type do not
// join.
func TestNodeGroupsThatCannotWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := furnished(Options{})
		c := eksWithNetwork(t, a, "demo")
		small := group("small")
		small.DiskSize = aws.Int32(10)
		_, err := c.CreateNodegroup(t.Context(), small)
		require.ErrorContains(t, err, "expect size>= 20GB")
		distrusting := group("distrusting")
		distrusting.NodeRole = aws.String(planeRole)
		_, err = c.CreateNodegroup(t.Context(), distrusting)
		require.ErrorContains(t, err, "Following required service principals [ec2.amazonaws.com] were not found")
		windows := group("windows")
		windows.AmiType = types.AMITypesWindowsCore2022X8664
		_, err = c.CreateNodegroup(t.Context(), windows)
		require.ErrorContains(t, err, "is not simulated")
		for _, kind := range []types.AMITypes{types.AMITypesBottlerocketX8664Nvidia, types.AMITypesAl2023X8664Neuron, types.AMITypesBottlerocketX8664Fips} {
			in := group(string(kind))
			in.AmiType = kind
			_, err = c.CreateNodegroup(t.Context(), in)
			require.NoError(t, err, "EKS accepts the group")
		}
		powerless := group("powerless")
		powerless.NodeRole = aws.String("arn:aws:iam::123456789012:role/powerless")
		_, err = c.CreateNodegroup(t.Context(), powerless)
		require.NoError(t, err, "EKS does not look at policies")
		time.Sleep(ekssim.NodeGroupGivesUp + ekssim.NodeGroupTakes)
		for kind, want := range map[types.AMITypes]types.NodegroupStatus{
			types.AMITypesBottlerocketX8664Nvidia: types.NodegroupStatusCreateFailed, types.AMITypesAl2023X8664Neuron: types.NodegroupStatusActive,
			types.AMITypesBottlerocketX8664Fips: types.NodegroupStatusActive,
			"powerless":                         types.NodegroupStatusCreateFailed,
		} {
			out, err := c.DescribeNodegroup(t.Context(), &eks.DescribeNodegroupInput{ClusterName: aws.String("demo"), NodegroupName: aws.String(string(kind))})
			require.NoError(t, err)
			assert.Equal(t, want, out.Nodegroup.Status, kind)
		}
	})
}

// EKS refuses access entries for service-linked roles, prefixes that are for Kubernetes, issuers with a query or in a private network, and roles of other
// accounts.
func TestNamesThatEKSKeeps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := furnished(Options{})
		c := eksWithNetwork(t, a, "demo")
		a.Edit(func(s *State) { s.EKS.Clusters["demo"].Authentication = string(types.AuthenticationModeApi) })
		_, err := c.CreateAccessEntry(t.Context(), &eks.CreateAccessEntryInput{
			ClusterName: aws.String("demo"), PrincipalArn: aws.String("arn:aws:iam::123456789012:role/aws-service-role/eks.amazonaws.com/AWSServiceRoleForAmazonEKS"),
		})
		require.ErrorContains(t, err, "Service Linked Role")
		for want, change := range map[string]func(*types.OidcIdentityProviderConfigRequest){
			"can't contain system:":           func(o *types.OidcIdentityProviderConfigRequest) { o.GroupsPrefix = aws.String("system:") },
			"must not have query parameters":  func(o *types.OidcIdentityProviderConfigRequest) { o.IssuerUrl = aws.String("https://example.com/?a=b") },
			"must be publicly accessible":     func(o *types.OidcIdentityProviderConfigRequest) { o.IssuerUrl = aws.String("https://10.0.0.1:8443/a") },
			"identityProviderConfigName and ": func(o *types.OidcIdentityProviderConfigRequest) { o.ClientId = aws.String("") },
		} {
			o := &types.OidcIdentityProviderConfigRequest{
				ClientId:                   aws.String("a"),
				IdentityProviderConfigName: aws.String("b"),
				IssuerUrl:                  aws.String("https://example.com"),
			}
			change(o)
			_, err := c.AssociateIdentityProviderConfig(t.Context(), &eks.AssociateIdentityProviderConfigInput{ClusterName: aws.String("demo"), Oidc: o})
			require.ErrorContains(t, err, want)
		}
		_, err = c.CreateAddon(t.Context(), &eks.CreateAddonInput{
			ClusterName: aws.String("demo"), AddonName: aws.String("vpc-cni"), ServiceAccountRoleArn: aws.String("arn:aws:iam::999999999999:role/x"),
		})
		require.ErrorContains(t, err, "Cross-account pass role is not allowed")
	})
}

// The Auto Scaling group of a node group replaces an instance that somebody has terminated or stopped.
func TestNodeGroupReplacesInstances(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := furnished(Options{})
		c := eksWithNetwork(t, a, "demo")
		_, err := c.CreateNodegroup(t.Context(), group("one"))
		require.NoError(t, err)
		time.Sleep(ekssim.NodeGroupTakes + 5*time.Minute)
		out, err := c.DescribeNodegroup(t.Context(), &eks.DescribeNodegroupInput{ClusterName: aws.String("demo"), NodegroupName: aws.String("one")})
		require.NoError(t, err)
		instances := func() (ids, healths []string) {
			t.Helper()
			groups, err := autoscaling.NewFromConfig(a.Config()).DescribeAutoScalingGroups(t.Context(), &autoscaling.DescribeAutoScalingGroupsInput{
				AutoScalingGroupNames: []string{*out.Nodegroup.Resources.AutoScalingGroups[0].Name},
			})
			require.NoError(t, err)
			for _, i := range groups.AutoScalingGroups[0].Instances {
				ids, healths = append(ids, *i.InstanceId), append(healths, *i.HealthStatus)
			}
			return ids, healths
		}
		machines := ec2.NewFromConfig(a.Config())
		for what, end := range map[string]func(id string) error{
			"terminated": func(id string) error {
				_, err := machines.TerminateInstances(t.Context(), &ec2.TerminateInstancesInput{InstanceIds: []string{id}})
				return err
			},
			"stopped": func(id string) error {
				_, err := machines.StopInstances(t.Context(), &ec2.StopInstancesInput{InstanceIds: []string{id}})
				return err
			},
		} {
			before, healths := instances()
			require.Len(t, before, 2, what)
			require.Equal(t, []string{"Healthy", "Healthy"}, healths, what)
			require.NoError(t, end(before[0]), what)
			during, healths := instances()
			require.Equal(t, before, during, "it takes a while to notice")
			require.Contains(t, healths, "Unhealthy", what)
			time.Sleep(5 * time.Minute)
			after, healths := instances()
			require.Equal(t, []string{"Healthy", "Healthy"}, healths, what)
			require.NotContains(t, after, before[0], what)
			require.Contains(t, after, before[1], what)
			require.Len(t, after, 2, what)
		}
		_, err = c.DeleteNodegroup(t.Context(), &eks.DeleteNodegroupInput{ClusterName: aws.String("demo"), NodegroupName: aws.String("one")})
		require.NoError(t, err)
		time.Sleep(ekssim.NodeGroupDeletes + time.Minute)
		running, err := machines.DescribeInstances(t.Context(), &ec2.DescribeInstancesInput{
			Filters: []ec2types.Filter{
				{Name: aws.String("tag:eks:nodegroup-name"), Values: []string{"one"}},
				{Name: aws.String("instance-state-name"), Values: []string{"pending", "running", "stopping", "stopped"}},
			},
		})
		require.NoError(t, err)
		require.Empty(t, running.Reservations)
	})
}
