package replica

import (
	"context"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	sim "github.com/clusterawsadm/clusterawsadm/internal/awssim/ec2"
)

// offerings reads the instance types that the plan asks for, and which zones offer them.
func (r *reader) offerings(ctx context.Context) error {
	var names []string
	for _, in := range of[ec2.DescribeInstanceTypeOfferingsInput](r.Asked) {
		names = append(names, namedTypes(in.Filters)...)
	}
	for _, in := range of[ec2.DescribeInstanceTypesInput](r.Asked) {
		names = append(names, namedTypes(in.Filters)...)
		for _, t := range in.InstanceTypes {
			names = append(names, string(t))
		}
	}
	slices.Sort(names)
	names = slices.Compact(names)
	list := sim.Listed{Types: map[string]types.InstanceTypeInfo{}, Offers: map[string][]string{}}
	for part := range slices.Chunk(names, 100) { // AWS's limit is 200 values of a filter
		if err := r.instanceTypes(ctx, part, &list); err != nil {
			return err
		}
	}
	r.list().Types, r.list().Offers = list.Types, list.Offers
	return nil
}

func (r *reader) instanceTypes(ctx context.Context, names []string, to *sim.Listed) error {
	c, named := ec2.NewFromConfig(r.Config), []types.Filter{{Name: aws.String("instance-type"), Values: names}}
	for _, name := range names {
		to.Offers[name] = []string{} // nowhere, unless it is listed
	}
	offered := ec2.NewDescribeInstanceTypeOfferingsPaginator(
		c,
		&ec2.DescribeInstanceTypeOfferingsInput{LocationType: types.LocationTypeAvailabilityZone, Filters: named},
	)
	err := pages(ctx, offered, func(p *ec2.DescribeInstanceTypeOfferingsOutput) {
		for _, o := range p.InstanceTypeOfferings {
			to.Offers[string(o.InstanceType)] = append(to.Offers[string(o.InstanceType)], aws.ToString(o.Location))
		}
	})
	if err != nil {
		return err
	}
	return pages(ctx, ec2.NewDescribeInstanceTypesPaginator(c, &ec2.DescribeInstanceTypesInput{Filters: named}), func(p *ec2.DescribeInstanceTypesOutput) {
		for _, t := range p.InstanceTypes {
			to.Types[string(t.InstanceType)] = t
		}
	})
}

func namedTypes(filters []types.Filter) (names []string) {
	for _, f := range filters {
		if aws.ToString(f.Name) == "instance-type" {
			names = append(names, f.Values...)
		}
	}
	return names
}
