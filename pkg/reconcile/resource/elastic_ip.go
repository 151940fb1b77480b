package resource

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"clusterawsadm/internal/cloud"
	"clusterawsadm/pkg/reconcile/graph"
)

// ElasticIP is a public IPv4 address.
type ElasticIP struct {
	Tags cloud.Tags
}

// ElasticIPState is an address that is allocated.
type ElasticIPState struct {
	Object
	PublicIP    string
	Association string // "" when it is free
}

var _ graph.Resource[ElasticIPState] = (*ElasticIP)(nil)

// Needs implements graph.Resource.
func (e *ElasticIP) Needs() []graph.Edge { return nil }

// Find implements graph.Resource.
func (e *ElasticIP) Find(ctx context.Context, c *cloud.Clients) (*ElasticIPState, error) {
	all, err := addresses(ctx, c)
	if err != nil {
		return nil, err
	}
	var ours []ElasticIPState
	for _, x := range all {
		if x.Tags[c.OwnerTag()] == cloud.Owned {
			ours = append(ours, x)
		}
	}
	return mine(ours, e.Tags, func(x ElasticIPState) cloud.Tags { return x.Tags })
}

// Diff implements graph.Resource.
func (e *ElasticIP) Diff(have *ElasticIPState) (d graph.Diff) {
	d.Tags(have.Tags, e.Tags)
	return d
}

// Create implements graph.Resource.
func (e *ElasticIP) Create(ctx context.Context, c *cloud.Clients) (*ElasticIPState, error) {
	out, err := c.EC2.AllocateAddress(ctx, &ec2.AllocateAddressInput{
		Domain: types.DomainTypeVpc, TagSpecifications: e.Tags.On(types.ResourceTypeElasticIp),
	}, cloud.AskOnce)
	if err != nil {
		return nil, err
	}
	return &ElasticIPState{Object: Object{str(out.AllocationId), e.Tags}, PublicIP: str(out.PublicIp)}, nil
}

// Update implements graph.Resource.
func (e *ElasticIP) Update(ctx context.Context, c *cloud.Clients, have *ElasticIPState, _ graph.Diff) (*ElasticIPState, error) {
	after, err := *have, error(nil)
	after.Object, err = retagged(ctx, c, have.Object, e.Tags)
	return &after, err
}

// Delete implements graph.Resource. AWS answers AuthFailure while the address
// is still mapped to something that is on its way out.
func (e *ElasticIP) Delete(ctx context.Context, c *cloud.Clients, have *ElasticIPState) error {
	_, err := c.EC2.ReleaseAddress(ctx, &ec2.ReleaseAddressInput{AllocationId: &have.ID})
	if cloud.Is(err, "AuthFailure") {
		return graph.NotYet(err)
	}
	return err
}

// addresses lists all addresses of the region: AWS does not page them, and
// their number counts against a quota.
func addresses(ctx context.Context, c *cloud.Clients) ([]ElasticIPState, error) {
	return cloud.Remember(ctx, c, "addresses", func(ctx context.Context) (out []ElasticIPState, err error) {
		all, err := c.EC2.DescribeAddresses(ctx, &ec2.DescribeAddressesInput{})
		if err != nil {
			return nil, err
		}
		for _, x := range all.Addresses {
			out = append(out, ElasticIPState{Object{str(x.AllocationId), cloud.FromEC2(x.Tags)}, str(x.PublicIp), str(x.AssociationId)})
		}
		return out, nil
	})
}

// CountAddresses returns how many elastic IP addresses the region has,
// whoever they belong to.
func CountAddresses(ctx context.Context, c *cloud.Clients) (int, error) {
	all, err := addresses(ctx, c)
	return len(all), err
}
