package awssim

import (
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestZonesAndTypes(t *testing.T) {
	in(t, Options{}, func(t *testing.T, n *testbed) {
		ctx := t.Context()
		zones := func(all bool, filters ...types.Filter) (names []string) {
			out, err := n.ec2.DescribeAvailabilityZones(ctx, &ec2.DescribeAvailabilityZonesInput{AllAvailabilityZones: &all, Filters: filters})
			require.NoError(t, err)
			for _, z := range out.AvailabilityZones {
				names = append(names, *z.ZoneName)
			}
			return names
		}
		assert.Len(t, zones(true), 9)
		assert.Len(t, zones(false), 8, "a Local Zone and a Wavelength Zone that the account has opted in to")
		assert.Len(t, zones(false, filter("opt-in-status", "opt-in-not-required")...), 6)
		out, err := n.ec2.DescribeInstanceTypeOfferings(ctx, &ec2.DescribeInstanceTypeOfferingsInput{
			LocationType: "availability-zone", Filters: filter("instance-type", "m5.large"),
		})
		require.NoError(t, err)
		assert.Len(t, out.InstanceTypeOfferings, 5)
		info, err := n.ec2.DescribeInstanceTypes(ctx, &ec2.DescribeInstanceTypesInput{InstanceTypes: []types.InstanceType{"m6g.large"}})
		require.NoError(t, err)
		assert.Equal(t, []types.ArchitectureType{"arm64"}, info.InstanceTypes[0].ProcessorInfo.SupportedArchitectures)
		_, err = n.ec2.DescribeInstanceTypes(ctx, &ec2.DescribeInstanceTypesInput{InstanceTypes: []types.InstanceType{"x9.huge"}})
		assert.Equal(t, "InvalidInstanceType", code(err))
	})
}

func TestEveryImageLookup(t *testing.T) {
	in(t, Options{}, func(t *testing.T, n *testbed) {
		for _, version := range []string{"1.28.3", "1.30.0", "1.31.0", "1.32.4", "1.33.0", "1.34.0", "1.34.2"} {
			for _, base := range []string{"ubuntu-24.04", "flatcar-stable"} {
				for _, architecture := range []string{"x86_64", "arm64"} {
					out, err := n.ec2.DescribeImages(t.Context(), &ec2.DescribeImagesInput{Filters: slices.Concat(
						filter("owner-id", "819546954734"), filter("name", "capa-ami-"+base+"-?"+version+"-*"), filter("architecture", architecture),
						filter("state", "available"), filter("virtualization-type", "hvm"),
					)})
					require.NoError(t, err)
					newest := slices.MaxFunc(out.Images, func(x, y types.Image) int { return strings.Compare(*x.CreationDate, *y.CreationDate) })
					last := slices.MaxFunc(out.Images, func(x, y types.Image) int { return strings.Compare(*x.Name, *y.Name) })
					assert.NotEqual(t, *last.Name, *newest.Name, "names do not sort by age")
				}
			}
		}
	})
}
