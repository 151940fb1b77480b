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
			Name: aws.ToString(
				z.ZoneName,
			),
			ID:         aws.ToString(z.ZoneId),
			Parent:     aws.ToString(z.ParentZoneName),
			Wavelength: aws.ToString(z.ZoneType) == "wavelength-zone",
			Group: cmp.Or(
				aws.ToString(z.GroupName),
				r.Config.Region,
			),
			OptIn: cmp.Or(z.OptInStatus, types.AvailabilityZoneOptInStatusOptInNotRequired), // emulators omit them
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
