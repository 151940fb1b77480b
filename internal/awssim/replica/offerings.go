package replica

import (
	"context"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	sim "github.com/clusterawsadm/clusterawsadm/internal/awssim/ec2"
)

// offerings compares the availability zones that offer the instance types of the plan with those of the
// simulated account, which cannot be changed. Differences are remarks.
func (r *reader) offerings(ctx context.Context) error {
	var names []string
	for _, in := range of[ec2.DescribeInstanceTypeOfferingsInput](r.Asked) {
		for _, f := range in.Filters {
			if aws.ToString(f.Name) == "instance-type" {
				names = append(names, f.Values...)
			}
		}
	}
	slices.Sort(names)
	names = slices.Compact(names)
	if len(names) == 0 {
		return nil
	}
	offers := map[string][]string{}
	in := &ec2.DescribeInstanceTypeOfferingsInput{LocationType: types.LocationTypeAvailabilityZone, Filters: []types.Filter{{Name: aws.String("instance-type"), Values: names}}}
	p := ec2.NewDescribeInstanceTypeOfferingsPaginator(ec2.NewFromConfig(r.Config), in)
	err := pages(ctx, p, func(p *ec2.DescribeInstanceTypeOfferingsOutput) {
		for _, o := range p.InstanceTypeOfferings {
			if zone := aws.ToString(o.Location); len(zone) == len(r.Config.Region)+1 { // not at the edge
				offers[string(o.InstanceType)] = append(offers[string(o.InstanceType)], zone)
			}
		}
	})
	if err != nil {
		return err
	}
	for _, name := range names {
		have, want := sim.Offering(r.Config.Region, name), slices.Sorted(slices.Values(offers[name]))
		if !slices.Equal(have, want) {
			r.remark("%s is offered in %s, and in the copy in %s", name, listed(want), listed(have))
		}
	}
	return nil
}

func listed(zones []string) string {
	if len(zones) == 0 {
		return "no zone"
	}
	return strings.Join(zones, ", ")
}
