package replica

import (
	"cmp"
	"context"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	sim "github.com/clusterawsadm/clusterawsadm/internal/awssim/ec2"
)

// zones reads the zones of the region. Their IDs differ between accounts, and so does which
// Local and Wavelength Zones the account has opted in to.
func (r *reader) zones(ctx context.Context) error {
	out, err := ec2.NewFromConfig(r.Config).DescribeAvailabilityZones(ctx, &ec2.DescribeAvailabilityZonesInput{AllAvailabilityZones: aws.Bool(true)})
	if err != nil {
		return err
	}
	var zones []sim.Zone
	for _, z := range out.AvailabilityZones {
		zones = append(zones, sim.Zone{
			Name: aws.ToString(z.ZoneName), ID: aws.ToString(z.ZoneId), Parent: aws.ToString(z.ParentZoneName), Wavelength: aws.ToString(z.ZoneType) == "wavelength-zone",
			Group: cmp.Or(aws.ToString(z.GroupName), r.Config.Region), OptIn: cmp.Or(z.OptInStatus, types.AvailabilityZoneOptInStatusOptInNotRequired), // emulators omit them
		})
	}
	slices.SortFunc(zones, func(a, b sim.Zone) int { // those at the edge, which have a parent, last
		return cmp.Or(cmp.Compare(a.Parent, b.Parent), cmp.Compare(a.Name, b.Name))
	})
	r.list().Zones = zones
	return nil
}

// list is the listing of the copy.
func (r *reader) list() *sim.Listed {
	if r.to.EC2.Listed == nil {
		r.to.EC2.Listed = &sim.Listed{}
	}
	return r.to.EC2.Listed
}

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
	offered := ec2.NewDescribeInstanceTypeOfferingsPaginator(c, &ec2.DescribeInstanceTypeOfferingsInput{LocationType: types.LocationTypeAvailabilityZone, Filters: named})
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
