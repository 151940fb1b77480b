package ec2

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/identity"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/kind"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
)

// NetworkInterfaces are those that hang around in the security groups and
// subnets of a cluster: load balancers leave theirs behind for a minute or
// two, and a CNI may leave free ones for good. Deletion waits for the first
// and removes the second.
type NetworkInterfaces struct {
	VPC    *graph.Ref[VPCState]
	Groups []*graph.Ref[SecurityGroupState]
	EKS    string // name of the EKS cluster; "" for none
}

// NetworkInterfacesState are the network interfaces that are still there.
type NetworkInterfacesState struct {
	Free      []string // IDs of those that can be removed
	Busy      []string // what AWS says of the rest
	EKSGroups []string // IDs of groups that EKS has left behind on account of them
}

// CloudID implements graph.State.
func (s NetworkInterfacesState) CloudID() string {
	return strings.Join(slices.Concat(s.Free, s.Busy, s.EKSGroups), ", ")
}

var (
	_ graph.Desired[NetworkInterfacesState] = (*NetworkInterfaces)(nil)
	_ graph.Deleter[NetworkInterfacesState] = (*NetworkInterfaces)(nil)
	_ graph.Timed                           = (*NetworkInterfaces)(nil)
)

// Needs implements graph.Desired.
func (n *NetworkInterfaces) Needs() []graph.Edge {
	needs := graph.Exists(n.VPC)
	for _, g := range n.Groups {
		needs = append(needs, graph.Exists(g)...)
	}
	return needs
}

// Takes implements graph.Timed.
func (n *NetworkInterfaces) Takes() (create, remove time.Duration) { return 0, interfacesDeleteTime }

// Find implements graph.Desired.
func (n *NetworkInterfaces) Find(ctx context.Context, c *cloud.Clients) (*NetworkInterfacesState, error) {
	var groups []string
	for _, g := range n.Groups {
		if s, ok := g.Found(); ok {
			groups = append(groups, s.ID)
		}
	}
	vpc, ok := n.VPC.Found()
	if !ok || len(groups) == 0 {
		return nil, nil
	}
	return InterfacesInGroups(ctx, c, vpc.ID, groups, n.EKS)
}

// InterfacesInGroups lists the network interfaces of a VPC that are in one of the groups,
// and, of a cluster of EKS, those in the group that EKS has created for it, which
// EKS leaves behind on their account. By then the cluster is deleted.
func InterfacesInGroups(ctx context.Context, c *cloud.Clients, vpc string, groups []string, cluster string) (*NetworkInterfacesState, error) {
	var left []string
	if cluster != "" && !cloud.IsBrief(ctx) {
		all, err := SecurityGroups(ctx, c, vpc)
		if err != nil {
			return nil, err
		}
		for _, g := range all {
			if g.Tags[kind.EKSClusterTag] == cluster {
				left = append(left, g.ID)
			}
		}
	}
	s, err := RemainingInterfaces(ctx, c, cloud.Filter("vpc-id", vpc), cloud.Filter("group-id", slices.Concat(groups, left)...))
	if err != nil || len(left) == 0 {
		return s, err
	}
	if s == nil {
		s = &NetworkInterfacesState{}
	}
	s.EKSGroups = left
	return s, nil
}

// RemainingInterfaces lists network interfaces that hang around.
func RemainingInterfaces(ctx context.Context, c *cloud.Clients, filters ...types.Filter) (*NetworkInterfacesState, error) {
	if cloud.IsBrief(ctx) {
		return nil, nil // what lingers is only known when the rest has gone
	}
	found, err := describeInterfaces(ctx, c, filters...)
	if err != nil || len(found) == 0 {
		return nil, err
	}
	s := &NetworkInterfacesState{}
	for _, x := range found {
		if x.Status == types.NetworkInterfaceStatusAvailable {
			s.Free = append(s.Free, aws.ToString(x.NetworkInterfaceId))
		} else {
			s.Busy = append(s.Busy, interfaceName(x))
		}
	}
	return s, nil
}

// Diff implements graph.Desired.
func (n *NetworkInterfaces) Diff(*NetworkInterfacesState) graph.Diff { return nil }

// Delete implements graph.Deleter. Those in use go with what they serve.
func (n *NetworkInterfaces) Delete(ctx context.Context, c *cloud.Clients, have *NetworkInterfacesState) error {
	for _, id := range have.Free {
		_, err := c.EC2.DeleteNetworkInterface(ctx, &ec2.DeleteNetworkInterfaceInput{NetworkInterfaceId: &id})
		if cloud.Is(err, "OperationNotPermitted") || cloud.InUse(err) {
			continue // AWS manages it, and removes it itself
		}
		if cloud.IgnoreNotFound(err) != nil {
			return err
		}
	}
	if len(have.Busy) > 0 {
		return nil
	}
	for _, id := range have.EKSGroups {
		err := (&SecurityGroup{}).Delete(ctx, c, &SecurityGroupState{Object: identity.Object{ID: id}})
		if cloud.IgnoreNotFound(err) != nil && !cloud.InUse(err) { // AWS lets go of it in a moment
			return err
		}
	}
	return nil
}

// describeInterfaces lists network interfaces, whoever they belong to.
func describeInterfaces(ctx context.Context, c *cloud.Clients, filters ...types.Filter) ([]types.NetworkInterface, error) {
	p := ec2.NewDescribeNetworkInterfacesPaginator(c.EC2, &ec2.DescribeNetworkInterfacesInput{Filters: filters})
	return cloud.Pages(ctx, p.HasMorePages, func(ctx context.Context) (*ec2.DescribeNetworkInterfacesOutput, error) { return p.NextPage(ctx) },
		func(o *ec2.DescribeNetworkInterfacesOutput) []types.NetworkInterface { return o.NetworkInterfaces })
}

// blockingInterfaces names the network interfaces of a VPC, subnet or group, as what
// blocks its deletion; "" when there are none or AWS does not say.
func blockingInterfaces(ctx context.Context, c *cloud.Clients, filter, id string) string {
	found, err := describeInterfaces(ctx, c, cloud.Filter(filter, id))
	if err != nil {
		return ""
	}
	var names []string
	for _, x := range found {
		names = append(names, interfaceName(x))
	}
	return strings.Join(names, ", ")
}

func interfaceName(x types.NetworkInterface) string {
	return fmt.Sprintf("%s (%s)", aws.ToString(x.NetworkInterfaceId), cmp.Or(aws.ToString(x.Description), string(x.InterfaceType)))
}

// interfacesDeleteTime is how long AWS usually takes to remove the interfaces of a load balancer.
const interfacesDeleteTime = 75 * time.Second

// NetworkInterfacesKind declares network interfaces that are left behind.
func NetworkInterfacesKind() *kind.Any {
	return kind.Of(kind.Kind[NetworkInterfacesState]{
		Name: InterfacesKind, Area: kind.AreaNetwork, ReadActions: []string{"ec2:DescribeNetworkInterfaces"}, Statement: kind.Network,
		Actions: []string{"ec2:DeleteNetworkInterface", "ec2:ModifyNetworkInterfaceAttribute"},
	})
}

// InterfacesKind is the kind of what stands for network interfaces.
const InterfacesKind = "network-interfaces"

// InterfacesAlias is an alias of what stands for the network interfaces that are left
// behind in a VPC or a security group. What has interfaces there refers to it.
func InterfacesAlias(id string) string { return "interfaces of " + id }
