package ec2

import (
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim/core"
)

// zone is a zone of the region.
type zone struct {
	name, id, parent string // parent: the availability zone of a Local or Wavelength Zone
	wavelength       bool
	group            string
	optIn            types.AvailabilityZoneOptInStatus
	copied           map[string]bool // whether it offers an instance type, for those of Listed
}

// zonesOf returns the zones of a region: its availability zones, and zones at its edge.
func zonesOf(region string) (zones []zone) {
	for _, name := range zoneNames(region) {
		zones = append(zones, zone{
			name: name, id: zoneID(region, name), group: region, optIn: types.AvailabilityZoneOptInStatusOptInNotRequired,
		})
	}
	return append(zones, edgesOf(region)...)
}

// zoneNames returns the names of the availability zones of a region. A region that the
// archive does not list has the zones a, b and c; Beijing has a, b and d.
func zoneNames(region string) (names []string) {
	for _, name := range listings().zoneNames {
		if letter, ok := strings.CutPrefix(name, region); ok && len(letter) == 1 {
			names = append(names, name)
		}
	}
	switch {
	case names != nil:
		return names
	case region == "cn-north-1":
		return []string{region + "a", region + "b", region + "d"}
	}
	return []string{region + "a", region + "b", region + "c"}
}

// zoneID returns the ID of an availability zone. The ID of a name differs between
// accounts; here it is that of the account whose listings the archive contains.
func zoneID(region, name string) string {
	if z, ok := listings().zones[name]; ok {
		return z.ID
	}
	return fmt.Sprintf("%s-az%d", abbreviated(region), name[len(name)-1]-'a'+1)
}

// edge is the place of Local Zones and Wavelength Zones of a region.
type edge struct {
	local      []string // places of Local Zones; the account has opted in to the first
	wavelength string   // place of the Wavelength Zone; "" for none
}

// edges lists some of the zones in AWS's lists of Local Zones and of Wavelength Zones.
func edges() map[string]edge {
	return map[string]edge{
		"us-east-1":      {[]string{"bos-1", "chi-1"}, "bos"},
		"us-west-2":      {[]string{"lax-1", "las-1"}, "las"},
		"eu-central-1":   {[]string{"ham-1", "waw-1"}, "ber"},
		"eu-north-1":     {[]string{"cph-1", "hel-1"}, ""},
		"eu-west-2":      {nil, "lon"},
		"ap-northeast-1": {[]string{"tpe-1"}, "nrt"},
		"ap-south-1":     {[]string{"ccu-1", "del-1"}, ""},
		"ap-southeast-1": {[]string{"bkk-1", "mnl-1"}, ""},
		"ap-southeast-2": {[]string{"per-1", "akl-1"}, ""},
		"ca-central-1":   {nil, "yto"},
		"af-south-1":     {[]string{"los-1"}, ""},
		"me-south-1":     {[]string{"mct-1"}, ""},
	}
}

// edgesOf returns the Local Zones and the Wavelength Zone of a region.
func edgesOf(region string) (zones []zone) {
	for n, place := range edges()[region].local {
		group, status := region+"-"+place, types.AvailabilityZoneOptInStatusNotOptedIn
		if n == 0 {
			status = types.AvailabilityZoneOptInStatusOptedIn
		}
		id := abbreviated(region) + "-" + strings.ReplaceAll(place, "-", "") + "-az1"
		zones = append(zones, zone{name: group + "a", id: id, parent: region + "a", group: group, optIn: status})
	}
	if place := edges()[region].wavelength; place != "" {
		zones = append(zones, zone{
			name: region + "-wl1-" + place + "-wlz-1", id: abbreviated(region) + "-wl1-" + place + "-wlz1", parent: region + "a", group: region + "-wl1",
			optIn: types.AvailabilityZoneOptInStatusOptedIn, wavelength: true,
		})
	}
	return zones
}

// abbreviated returns a region as in zone IDs: us-east-1 is use1.
func abbreviated(region string) string {
	parts := strings.Split(region, "-")
	for n, p := range parts {
		if n == 0 || n == len(parts)-1 {
			continue
		}
		short := ""
		for _, word := range []string{"north", "south", "central", "east", "west", "gov"} {
			if strings.Contains(p, word) {
				short += word[:1]
			}
		}
		parts[n] = short
	}
	return strings.Join(parts, "")
}

// offered reports whether a zone offers an instance type. Local and Wavelength Zones offer
// few.
func (z zone) offered(name string) bool {
	if offered, ok := z.copied[name]; ok {
		return offered
	}
	if z.parent != "" {
		return z.optIn == types.AvailabilityZoneOptInStatusOptedIn && slices.Contains([]string{"t3.medium", "t3.xlarge", "r5.2xlarge"}, name)
	}
	return listings().offers(z.name, name)
}

// ZoneID returns the ID of a zone, which is the same in all accounts; "" for none.
func (svc *Service) ZoneID(name string) string {
	z, _ := svc.zone(name)
	return z.id
}

// zone returns the zone with that name, if the account may use it.
func (svc *Service) zone(name string) (zone, bool) {
	for _, z := range svc.zones() {
		if z.name == name && z.optIn != types.AvailabilityZoneOptInStatusNotOptedIn {
			return z, true
		}
	}
	return zone{}, false
}

func (z zone) out(region string) types.AvailabilityZone {
	out := types.AvailabilityZone{
		ZoneName: aws.String(z.name), ZoneId: aws.String(z.id), GroupName: aws.String(z.group), NetworkBorderGroup: aws.String(z.group),
		RegionName: aws.String(region), OptInStatus: z.optIn, State: types.AvailabilityZoneStateAvailable, ZoneType: aws.String("availability-zone"),
	}
	if z.parent != "" {
		out.ZoneType, out.ParentZoneName = aws.String("local-zone"), aws.String(z.parent)
	}
	if z.wavelength {
		out.ZoneType = aws.String("wavelength-zone")
	}
	return out
}

func (svc *Service) describeAvailabilityZones(in *ec2.DescribeAvailabilityZonesInput) (*ec2.DescribeAvailabilityZonesOutput, error) {
	keep, err := matching(in.Filters, fields[zone]{
		"zone-name":     func(z zone) []string { return []string{z.name} },
		"zone-id":       func(z zone) []string { return []string{z.id} },
		"group-name":    func(z zone) []string { return []string{z.group} },
		"opt-in-status": func(z zone) []string { return []string{string(z.optIn)} },
		"state":         func(zone) []string { return []string{"available"} },
		"region-name":   func(zone) []string { return []string{svc.Region} },
		"zone-type":     func(z zone) []string { return []string{aws.ToString(z.out(svc.Region).ZoneType)} },
	}, nil)
	if err != nil {
		return nil, err
	}
	zones := svc.zones()
	for _, name := range in.ZoneNames {
		if !slices.ContainsFunc(zones, func(z zone) bool { return z.name == name }) {
			return nil, core.Fail("InvalidParameterValue", "invalid availability zone: [%s]", name)
		}
	}
	slices.Reverse(zones) // AWS does not guarantee an order
	out := &ec2.DescribeAvailabilityZonesOutput{}
	for _, z := range zones {
		named := len(in.ZoneNames)+len(in.ZoneIds) == 0 || slices.Contains(in.ZoneNames, z.name) || slices.Contains(in.ZoneIds, z.id)
		open := aws.ToBool(in.AllAvailabilityZones) || z.optIn != types.AvailabilityZoneOptInStatusNotOptedIn
		if named && open && keep(z) {
			out.AvailabilityZones = append(out.AvailabilityZones, z.out(svc.Region))
		}
	}
	return out, nil
}
