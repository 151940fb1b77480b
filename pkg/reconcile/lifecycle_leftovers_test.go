package reconcile_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	elb "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancing"
	elbtypes "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancing/types"
	"github.com/stretchr/testify/require"

	"clusterawsadm/internal/awssim"
	"clusterawsadm/pkg/reconcile"
	"clusterawsadm/pkg/reconcile/graph"
	"clusterawsadm/pkg/reconcile/manifest"
)

// things are IDs of a cluster's things that stands.
type things struct{ vpc, public, private, nodes string }

func thingsOf(a *awssim.AWS, m *manifest.Cluster) (out things) {
	a.Edit(func(s *awssim.State) {
		for id, v := range s.EC2.VPCs {
			if v.Tags["Name"] == m.Name+"-vpc" {
				out.vpc = id
			}
		}
		for id, n := range s.EC2.Subnets {
			switch n.Tags["clusterawsadm/node"] {
			case "subnet/public/us-east-1a":
				out.public = id
			case "subnet/private/us-east-1a":
				out.private = id
			}
		}
		for id, g := range s.EC2.SecurityGroups {
			if g.Name == m.Name+"-node" {
				out.nodes = id
			}
		}
	})
	return out
}

// serve makes what the cloud controller manager makes for a Service of type
// LoadBalancer: a classic load balancer with a group of its own, which it lets
// through to the nodes.
func serve(t *testing.T, a *awssim.AWS, m *manifest.Cluster, x things) {
	t.Helper()
	owned := "kubernetes.io/cluster/" + m.Name
	c, lb := ec2.NewFromConfig(a.Config()), elb.NewFromConfig(a.Config())
	group, err := c.CreateSecurityGroup(t.Context(), &ec2.CreateSecurityGroupInput{
		VpcId: &x.vpc, GroupName: aws.String("k8s-elb-a0123"), Description: aws.String("Security group for Kubernetes ELB a0123"),
		TagSpecifications: []types.TagSpecification{{ResourceType: types.ResourceTypeSecurityGroup, Tags: []types.Tag{{Key: &owned, Value: aws.String("owned")}}}},
	})
	require.NoError(t, err)
	_, err = c.AuthorizeSecurityGroupIngress(t.Context(), &ec2.AuthorizeSecurityGroupIngressInput{GroupId: &x.nodes, IpPermissions: []types.IpPermission{{
		IpProtocol: aws.String("-1"), UserIdGroupPairs: []types.UserIdGroupPair{{GroupId: group.GroupId}},
	}}})
	require.NoError(t, err)
	_, err = lb.CreateLoadBalancer(t.Context(), &elb.CreateLoadBalancerInput{
		LoadBalancerName: aws.String("a0123"), Subnets: []string{x.public}, SecurityGroups: []string{*group.GroupId},
		Listeners: []elbtypes.Listener{{Protocol: aws.String("TCP"), LoadBalancerPort: 80, InstancePort: aws.Int32(30080), InstanceProtocol: aws.String("TCP")}},
		Tags:      []elbtypes.Tag{{Key: &owned, Value: aws.String("owned")}},
	})
	require.NoError(t, err)
}

// observer notes what is being waited for.
func observer(waiting *[]string) func(graph.Event) {
	return func(e graph.Event) {
		if e.What == graph.Waiting {
			*waiting = append(*waiting, fmt.Sprintf("%s: %s", e.Node, e.Detail))
		}
	}
}

// A load balancer that the cluster's own controller has made keeps the VPC
// from going: the deletion says so, by name, while it waits and when it gives
// up. With that out of the way, running again ends it.
func TestDeletionNamesWhatBlocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := quick(load(t, threeZones, nil))
		a := account(m, lag)
		mustApply(t, m, a)
		x := thingsOf(a, m)
		serve(t, a, m, x)
		var waiting []string
		_, err := open(m, a.Process()).Delete(t.Context(), reconcile.Options{Observe: observer(&waiting)})
		require.ErrorAs(t, err, new(*reconcile.HalfwayError))
		require.ErrorContains(t, err, "ELB a0123")
		require.True(t, slices.ContainsFunc(waiting, func(w string) bool { return strings.Contains(w, "ELB a0123") }), "%v", waiting)

		_, err = elb.NewFromConfig(a.Config()).DeleteLoadBalancer(t.Context(), &elb.DeleteLoadBalancerInput{LoadBalancerName: aws.String("a0123")})
		require.NoError(t, err)
		_, err = open(m, a.Process()).Delete(t.Context(), reconcile.Options{})
		require.ErrorContains(t, err, "k8s-elb-a0123")
		a.Edit(func(s *awssim.State) {
			for id, g := range s.EC2.SecurityGroups {
				if g.Name == "k8s-elb-a0123" {
					delete(s.EC2.SecurityGroups, id)
				}
			}
		})
		mustDelete(t, m, a)
		require.Empty(t, a.Inventory())
	})
}

// A free network interface that a CNI has left goes with the cluster; a volume
// stays, for it may hold data.
func TestDeletionSweepsInterfaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := quick(load(t, threeZones, nil))
		a := account(m, lag)
		mustApply(t, m, a)
		x := thingsOf(a, m)
		c := ec2.NewFromConfig(a.Config())
		_, err := c.CreateNetworkInterface(t.Context(), &ec2.CreateNetworkInterfaceInput{SubnetId: &x.private, Groups: []string{x.nodes}, Description: aws.String("aws-K8S-i-0123")})
		require.NoError(t, err)
		_, err = c.CreateVolume(t.Context(), &ec2.CreateVolumeInput{
			AvailabilityZone: aws.String("us-east-1a"), Size: aws.Int32(8),
			TagSpecifications: []types.TagSpecification{{ResourceType: types.ResourceTypeVolume, Tags: []types.Tag{
				{Key: aws.String("Name"), Value: aws.String("pvc-0123")}, {Key: aws.String("kubernetes.io/cluster/" + m.Name), Value: aws.String("owned")},
			}}},
		})
		require.NoError(t, err)
		mustDelete(t, m, a)
		require.Equal(t, []string{"Volume pvc-0123"}, a.Inventory())
	})
}
