package ec2

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/identity"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/kind"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/cost"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// ElasticIP is the public IPv4 address of a NAT gateway.
type ElasticIP struct {
	Subnet *graph.Ref[SubnetState] // of the NAT gateway
	Tags   cloud.Tags
}

// ElasticIPState is an allocated address.
type ElasticIPState struct {
	identity.Object
	PublicIP    string
	Association string   // "" if it is not associated
	Spare       []string // IDs of addresses with the same identity that are not associated
}

var _ graph.Managed[ElasticIPState] = (*ElasticIP)(nil)

// Needs implements graph.Desired.
func (e *ElasticIP) Needs() []graph.Edge { return graph.Reads(e.Subnet) }

// Find implements graph.Desired. CAPA gives all addresses the same name; the NAT gateway
// in the subnet shows which address belongs to it.
func (e *ElasticIP) Find(ctx context.Context, c *cloud.Clients) (*ElasticIPState, error) {
	s, spare, err := e.find(ctx, c)
	if s != nil {
		s.Spare = spare
	}
	return s, err
}

// Identify implements graph.Identified.
func (e *ElasticIP) Identify(ctx context.Context, c *cloud.Clients, _ *ElasticIPState) (*ElasticIPState, error) {
	s, _, err := e.find(ctx, c)
	return s, err
}

func (e *ElasticIP) find(ctx context.Context, c *cloud.Clients) (s *ElasticIPState, spare []string, err error) {
	owned, err := ownedAddresses(ctx, c)
	if err != nil {
		return nil, nil, err
	}
	used, err := e.addressOfNATGateway(ctx, c, owned)
	if err != nil {
		return nil, nil, err
	}
	return identity.FindUsed(identity.PreferMatching(owned, func(x ElasticIPState) bool { return x.ID == used }), e.Tags, func(x ElasticIPState) (bool, error) {
		return isAddressOfNATGateway(ctx, c, x)
	})
}

// isAddressOfNATGateway reports whether an address is associated, or a NAT gateway that is
// being created will have it.
func isAddressOfNATGateway(ctx context.Context, c *cloud.Clients, x ElasticIPState) (bool, error) {
	if x.Association != "" {
		return true, nil
	}
	nats, err := NATGateways(ctx, c)
	return slices.ContainsFunc(nats, func(n NATGatewayState) bool { return n.Address == x.ID }), err
}

// addressOfNATGateway returns the allocation ID of the NAT gateway in the subnet. It is
// only needed if there are addresses without an identity tag.
func (e *ElasticIP) addressOfNATGateway(ctx context.Context, c *cloud.Clients, owned []ElasticIPState) (string, error) {
	subnet, ok := e.Subnet.Found()
	untagged := func(x ElasticIPState) bool { return x.Tags[cloud.ResourceTag] == "" }
	if !ok || !slices.ContainsFunc(owned, untagged) {
		return "", nil
	}
	nats, err := NATGateways(ctx, c)
	for _, n := range nats {
		if n.Subnet == subnet.ID {
			return n.Address, err
		}
	}
	return "", err
}

// Diff implements graph.Desired.
func (e *ElasticIP) Diff(have *ElasticIPState) (d plan.Diff) {
	d.Set("duplicate", strings.Join(have.Spare, ", "), "")
	d.Tags(have.Tags, e.Tags)
	return d
}

// Create implements graph.Creator.
func (e *ElasticIP) Create(ctx context.Context, c *cloud.Clients) (*ElasticIPState, error) {
	out, err := c.EC2.AllocateAddress(ctx, &ec2.AllocateAddressInput{
		Domain: types.DomainTypeVpc, TagSpecifications: e.Tags.On(types.ResourceTypeElasticIp),
	}, cloud.SendOnce)
	if err != nil {
		return nil, err
	}
	return &ElasticIPState{Object: identity.Object{ID: aws.ToString(out.AllocationId), Tags: e.Tags}, PublicIP: aws.ToString(out.PublicIp)}, nil
}

// Update implements graph.Updater.
func (e *ElasticIP) Update(ctx context.Context, c *cloud.Clients, have *ElasticIPState, d plan.Diff) (*ElasticIPState, error) {
	after := *have
	for _, id := range have.Spare { // AWS refuses to release an address that is associated
		if _, err := c.EC2.ReleaseAddress(ctx, &ec2.ReleaseAddressInput{AllocationId: &id}); cloud.IgnoreNotFound(err) != nil {
			return nil, fmt.Errorf("duplicate %s: %w", id, err)
		}
	}
	after.Spare = nil
	var err error
	if d.HasTags() {
		after.Object, err = changeTags(ctx, c, have.Object, e.Tags, d)
	}
	return &after, err
}

// Delete implements graph.Deleter. ReleaseAddress returns AuthFailure while the address
// is still associated with a resource that is being deleted.
func (e *ElasticIP) Delete(ctx context.Context, c *cloud.Clients, have *ElasticIPState) error {
	_, err := c.EC2.ReleaseAddress(ctx, &ec2.ReleaseAddressInput{AllocationId: &have.ID})
	if cloud.Is(err, "AuthFailure") {
		return graph.NotYet(err)
	}
	return err
}

// Addresses lists all Elastic IP addresses of the region, because their number counts
// against a quota. DescribeAddresses has no pagination.
func Addresses(ctx context.Context, c *cloud.Clients) ([]ElasticIPState, error) {
	return cloud.Remember(ctx, c, "addresses", func(ctx context.Context) (out []ElasticIPState, err error) {
		all, err := c.EC2.DescribeAddresses(ctx, &ec2.DescribeAddressesInput{})
		if err != nil {
			return nil, err
		}
		for _, x := range all.Addresses {
			out = append(out, ElasticIPState{
				Object:   identity.Object{ID: aws.ToString(x.AllocationId), Tags: cloud.FromEC2(x.Tags)},
				PublicIP: aws.ToString(x.PublicIp), Association: aws.ToString(x.AssociationId),
			})
		}
		return out, nil
	})
}

// countAddresses returns the number of Elastic IP addresses in the region.
func countAddresses(ctx context.Context, c *cloud.Clients) (map[string]int, error) {
	all, err := Addresses(ctx, c)
	return map[string]int{"": len(all)}, err
}

// Costs implements cost.Desired.
func (e *ElasticIP) Costs(_ context.Context, _ *cloud.Clients, have graph.State) (now, then []cost.Item, err error) {
	return cost.Same(have, []cost.Item{cost.PublicAddresses(1)})
}

// Costs implements cost.Existing.
func (s ElasticIPState) Costs(context.Context, *cloud.Clients) ([]cost.Item, error) {
	return []cost.Item{cost.PublicAddresses(1)}, nil
}

// elasticIPKind declares elastic IP addresses.
func elasticIPKind() *kind.Kind {
	return kind.Of(kind.Kind{
		Name: "elastic-ip", Rehearsed: true, Area: plan.AreaNetwork, Type: types.ResourceTypeElasticIp, IDPrefix: "eipalloc-",
		ReadActions: []string{"ec2:DescribeAddresses"}, Statement: kind.Network,
		Actions: []string{"ec2:AllocateAddress", "ec2:CreateTags", "ec2:DeleteTags", "ec2:ReleaseAddress"},
		Quota:   &kind.Quota{Service: "ec2", Code: "L-0263D0A3", Name: "elastic IP addresses", Default: 5, Used: countAddresses},
	}, kind.Functions[ElasticIPState]{
		List: kind.Tagged(ownedAddresses), Delete: &ElasticIP{},
		Status: func(s ElasticIPState) (state, detail string) { return "", s.PublicIP },
	})
}

// ownedAddresses lists the addresses of the cluster.
func ownedAddresses(ctx context.Context, c *cloud.Clients) ([]ElasticIPState, error) {
	all, err := Addresses(ctx, c)
	return slices.DeleteFunc(slices.Clone(all), func(s ElasticIPState) bool { return !s.IsOwned(c) }), err
}
