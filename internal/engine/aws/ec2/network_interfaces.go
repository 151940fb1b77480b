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
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// NetworkInterfaces are the network interfaces that remain in the security groups of a
// cluster during a deletion. AWS usually deletes those of load balancers after a minute or
// two, so the deletion waits for them. It deletes those that nothing uses, as CAPA does: a
// load balancer may leave one behind for an hour (cluster-api-provider-aws issue 6067).
type NetworkInterfaces struct {
	VPC    *graph.Ref[VPCState]
	Groups []*graph.Ref[SecurityGroupState]
	EKS    string // name of the EKS cluster; "" for none
}

// NetworkInterfacesState are the network interfaces that remain.
type NetworkInterfacesState struct {
	Free      []string // IDs of interfaces of the cluster that are not in use
	Busy      []string // IDs and descriptions of the others
	EKSGroups []string // IDs of security groups that EKS could not delete because of them
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
func (n *NetworkInterfaces) Takes() (create, remove time.Duration) {
	return 0, BalancerInterfacesRemain
}

// Identify implements graph.Identified: the interfaces are known only after the other
// resources are deleted.
func (*NetworkInterfaces) Identify(context.Context, *cloud.Clients, *NetworkInterfacesState) (*NetworkInterfacesState, error) {
	return nil, nil
}

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

// InterfacesInGroups lists the network interfaces of a VPC that are in one of the
// security groups. For a deleted EKS cluster, it includes the cluster security group,
// which EKS does not delete while it is in use.
func InterfacesInGroups(ctx context.Context, c *cloud.Clients, vpc string, groups []string, cluster string) (*NetworkInterfacesState, error) {
	var left []string
	if cluster != "" {
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

// RemainingInterfaces lists network interfaces during a deletion; nil if there are none. Those
// that EC2 deletes with their instance are not among them: they need no call and no wait of their own.
func RemainingInterfaces(ctx context.Context, c *cloud.Clients, filters ...types.Filter) (*NetworkInterfacesState, error) {
	found, err := describeInterfaces(ctx, c, filters...)
	found = slices.DeleteFunc(found, func(x types.NetworkInterface) bool {
		return x.Attachment != nil && x.Attachment.InstanceId != nil && aws.ToBool(x.Attachment.DeleteOnTermination)
	})
	if err != nil || len(found) == 0 {
		return nil, err
	}
	s := &NetworkInterfacesState{}
	for _, x := range found {
		if LeftInCluster(c, interfaceOf(x)) {
			s.Free = append(s.Free, aws.ToString(x.NetworkInterfaceId))
		} else {
			s.Busy = append(s.Busy, interfaceName(x))
		}
	}
	return s, nil
}

// DeleteFreeInterfaces deletes the network interfaces in a security group that the cluster
// left behind and that are not in use.
func DeleteFreeInterfaces(ctx context.Context, c *cloud.Clients, group string) error {
	s, err := RemainingInterfaces(ctx, c, cloud.Filter("group-id", group), cloud.Filter("status", string(types.NetworkInterfaceStatusAvailable)))
	if err != nil || s == nil {
		return err
	}
	return (&NetworkInterfaces{}).Delete(ctx, c, &NetworkInterfacesState{Free: s.Free})
}

// LeftInCluster reports whether an interface that nothing uses, in a security group of the
// cluster, is deleted with it: it has tags of the cluster, or none that names another owner. A
// CNI plugin, EKS or a load balancer has left it behind.
func LeftInCluster(c *cloud.Clients, i Interface) bool {
	return i.Available && (i.CNI || i.EKSCluster != "" || len(i.Tags) == 0 ||
		i.Tags[c.OwnerTag()] == cloud.Owned || i.Tags[cloud.CloudProviderTagPrefix+c.Cluster] == cloud.Owned)
}

// Diff implements graph.Desired.
func (n *NetworkInterfaces) Diff(*NetworkInterfacesState) plan.Diff { return nil }

// Delete implements graph.Deleter. AWS deletes the interfaces that are in use.
func (n *NetworkInterfaces) Delete(ctx context.Context, c *cloud.Clients, have *NetworkInterfacesState) error {
	for _, id := range have.Free {
		_, err := c.EC2.DeleteNetworkInterface(ctx, &ec2.DeleteNetworkInterfaceInput{NetworkInterfaceId: &id})
		if cloud.Is(err, "OperationNotPermitted") || cloud.InUse(err) {
			continue // a service of AWS manages it, and deletes it
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
		if cloud.IgnoreNotFound(err) != nil && !cloud.InUse(err) { // retried: AWS may still show the deleted interface
			return err
		}
	}
	return nil
}

// describeInterfaces lists network interfaces, owned or not.
func describeInterfaces(ctx context.Context, c *cloud.Clients, filters ...types.Filter) ([]types.NetworkInterface, error) {
	p := ec2.NewDescribeNetworkInterfacesPaginator(c.EC2, &ec2.DescribeNetworkInterfacesInput{Filters: filters})
	return cloud.Pages(ctx, p, func(o *ec2.DescribeNetworkInterfacesOutput) []types.NetworkInterface { return o.NetworkInterfaces })
}

// UsersOfSubnets lists what has network interfaces in some subnets, as text. It leaves out NAT gateways, the network load balancers with the
// given names, and the EKS cluster with the given name: they leave a subnet when a run takes it from them.
func UsersOfSubnets(ctx context.Context, c *cloud.Clients, subnets, balancers []string, eksCluster string) (users []string, err error) {
	found, err := describeInterfaces(ctx, c, cloud.Filter("subnet-id", subnets...))
	for _, x := range found {
		i := interfaceOf(x)
		own := func(name string) bool { return strings.HasPrefix(i.LoadBalancer, "net/"+name+"/") }
		if i.NATGateway == "" && !slices.ContainsFunc(balancers, own) && (eksCluster == "" || i.EKSCluster != eksCluster) {
			users = append(users, cmp.Or(i.Instance, interfaceName(x)))
		}
	}
	slices.Sort(users)
	return slices.Compact(users), err
}

// blockingInterfaces lists the network interfaces that prevent the deletion of a VPC,
// subnet or security group, as text; "" if there are none or the call fails.
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

// BalancerInterfacesRemain is how long the network interfaces of a deleted load balancer usually remain
// in its subnets and security groups.
const BalancerInterfacesRemain = 75 * time.Second

// NetworkInterfacesKind declares remaining network interfaces.
func NetworkInterfacesKind() *kind.Kind {
	return kind.Of(kind.Kind{
		Name: InterfacesKind, Area: plan.AreaNetwork, ReadActions: []string{"ec2:DescribeNetworkInterfaces"}, Statement: kind.Network,
		Actions: []string{"ec2:DeleteNetworkInterface", "ec2:ModifyNetworkInterfaceAttribute"},
	}, kind.Functions[NetworkInterfacesState]{})
}

// InterfacesKind is the name of the kind of remaining network interfaces.
const InterfacesKind = "network-interfaces"

// InterfacesAlias returns the alias of the remaining network interfaces of a VPC or a
// security group. Resources with network interfaces there refer to it.
func InterfacesAlias(id string) string { return "interfaces of " + id }

// VPCOf returns the ID of the VPC among the IDs and aliases that a resource refers to; ""
// if there is none.
func VPCOf(refers []string) string {
	for _, r := range refers {
		id := r[strings.LastIndexByte(r, ' ')+1:]                                        // an alias ends with the ID
		if hex, is := strings.CutPrefix(id, "vpc-"); is && !strings.Contains(hex, "-") { // vpc-cidr-assoc-… is a block
			return id
		}
	}
	return ""
}
