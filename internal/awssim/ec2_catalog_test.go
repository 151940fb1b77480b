package awssim

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"

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

// What AWS lists of its instance types is offered in the zones of their regions.
func TestTypesOfRegions(t *testing.T) {
	for _, x := range []struct {
		region, kind string
		zones        []string
	}{
		{"us-east-1", "t3.xlarge", []string{"use1-az1", "use1-az2", "use1-az4", "use1-az5", "use1-az6"}},
		{"us-east-1", "t2.micro", []string{"use1-az1", "use1-az2", "use1-az3", "use1-az4", "use1-az5", "use1-az6"}},
		{"us-west-1", "m7i.large", []string{"usw1-az1", "usw1-az3"}},
		{"ap-northeast-1", "c6i.large", []string{"apne1-az1", "apne1-az2", "apne1-az4"}},
		{"eu-north-1", "t2.micro", nil},
		{"mx-central-1", "m6g.large", []string{"mxc1-az1", "mxc1-az2", "mxc1-az3"}},
		{"us-gov-west-1", "r7g.metal", []string{"usgw1-az1", "usgw1-az2", "usgw1-az3"}},
		{"us-east-1", "m9z.large", nil},
	} {
		synctest.Test(t, func(t *testing.T) {
			c := ec2.NewFromConfig(New(Options{Region: x.region}).Config())
			out, err := c.DescribeInstanceTypeOfferings(t.Context(), &ec2.DescribeInstanceTypeOfferingsInput{
				LocationType: types.LocationTypeAvailabilityZoneId, Filters: filter("instance-type", x.kind),
			})
			require.NoError(t, err)
			var zones []string
			for _, o := range out.InstanceTypeOfferings {
				if strings.Count(*o.Location, "-") == 1 { // not at the edge
					zones = append(zones, *o.Location)
				}
			}
			assert.Equal(t, x.zones, zones, x.region+" "+x.kind)
			_, err = c.DescribeInstanceTypes(t.Context(), &ec2.DescribeInstanceTypesInput{InstanceTypes: []types.InstanceType{types.InstanceType(x.kind)}})
			if x.zones == nil {
				assert.Equal(t, "InvalidInstanceType", code(err))
			} else {
				require.NoError(t, err)
			}
		})
	}
}

// Every type has what the simulated EC2 reads of it.
func TestAllTypes(t *testing.T) {
	in(t, Options{}, func(t *testing.T, n *testbed) {
		families := map[string]bool{}
		count := 0
		for p := ec2.NewDescribeInstanceTypesPaginator(n.ec2, &ec2.DescribeInstanceTypesInput{}); p.HasMorePages(); {
			page, err := p.NextPage(t.Context())
			require.NoError(t, err)
			for _, i := range page.InstanceTypes {
				count++
				family, _, _ := strings.Cut(string(i.InstanceType), ".")
				families[family] = true
				assert.Positive(t, *i.VCpuInfo.DefaultVCpus, i.InstanceType)
				assert.Positive(t, *i.MemoryInfo.SizeInMiB, i.InstanceType)
				assert.NotEmpty(t, i.ProcessorInfo.SupportedArchitectures, i.InstanceType)
				assert.NotNil(t, i.PlacementGroupInfo, i.InstanceType)
				assert.Positive(t, *i.NetworkInfo.MaximumNetworkInterfaces, i.InstanceType)
				assert.NotEmpty(t, i.SupportedUsageClasses, i.InstanceType)
			}
		}
		assert.Greater(t, count, 1200)
		for _, f := range strings.Fields("t2 t3 t3a t4g m5 m6i m7g m8g c5 c6a c7i c8g r5 r6g r7iz r8g x2gd z1d i3 i4i d3 h1 g4dn g5 g6 g6e p4d p5 inf2 trn1 mac2 u7i-12tb") {
			assert.True(t, families[f], f)
		}
	})
}

// Every version of Kubernetes that exists has an image, and no other.
func TestImagesOfEveryVersion(t *testing.T) {
	in(t, Options{}, func(t *testing.T, n *testbed) {
		for version, want := range map[string]int{"1.27.16": 1, "1.29.15": 1, "1.34.13": 1, "1.35.0": 1, "1.37.2": 1, "1.27.17": 0, "1.34.99": 0, "1.99.0": 0, "2.34.0": 0, "1.34.01": 0} {
			for _, v := range []string{"?" + version, "v" + version} {
				out, err := n.ec2.DescribeImages(t.Context(), &ec2.DescribeImagesInput{Filters: slices.Concat(
					filter("owner-id", "819546954734"), filter("name", "capa-ami-ubuntu-24.04-"+v+"-*"), filter("architecture", "arm64"),
				)})
				require.NoError(t, err)
				require.Len(t, out.Images, want, v)
				for _, i := range out.Images {
					again, err := n.ec2.DescribeImages(t.Context(), &ec2.DescribeImagesInput{ImageIds: []string{*i.ImageId}})
					require.NoError(t, err)
					assert.Equal(t, *i.Name, *again.Images[0].Name)
				}
			}
		}
	})
}
