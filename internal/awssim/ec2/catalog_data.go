package ec2

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
)

// Owner accounts of images.
const (
	communityImages = "819546954734" // of Cluster API
	canonicalImages = "099720109477" // of Ubuntu
)

// NewState returns the default resources of an account: a default VPC, images, and a key
// pair with the name "default".
func NewState(now time.Time, region string) State {
	s := State{
		Keys:     map[string]string{"1234abcd-12ab-34cd-56ef-1234567890ab": "alias/images"},
		KeyPairs: map[string]bool{"default": true},
		Limits:   Limits{VPCs: 5, Addresses: 5, VCPUs: 5000, RulesPerGroup: 60, NATGatewaysPerZone: 5, OtherVCPUs: map[string]int{}},
	}
	for _, t := range s.tables() {
		t.fill()
	}
	given := func(prefix, name string) Thing {
		return Thing{ID: GivenID(prefix, region, name), Tags: map[string]string{}, Born: now.AddDate(-1, 0, 0), Given: true}
	}
	vpc := &VPC{Thing: given("vpc", ""), CIDR: "172.31.0.0/16", Tenancy: "default", DNSHostnames: true, DNSSupport: true, Default: true}
	s.VPCs[vpc.ID] = vpc
	gateway := &InternetGateway{Thing: given("igw", ""), VPC: vpc.ID}
	s.InternetGateways[gateway.ID] = gateway
	table := &RouteTable{
		Thing: given("rtb", ""), VPC: vpc.ID, Main: GivenID("rtbassoc", region, ""), Associations: map[string]string{},
		Routes: []Route{{Destination: "0.0.0.0/0", Target: gateway.ID}},
	}
	s.RouteTables[table.ID] = table
	group := &SecurityGroup{Thing: given("sg", ""), VPC: vpc.ID, Name: "default", Description: "default VPC security group"}
	group.Ingress = []Rule{{ID: GivenID("sgr", region, "in"), Protocol: "-1", From: -1, To: -1, Group: group.ID}}
	group.Egress = []Rule{{ID: GivenID("sgr", region, "out"), Protocol: "-1", From: -1, To: -1, CIDR: "0.0.0.0/0"}}
	s.SecurityGroups[group.ID] = group
	for n, z := range zonesOf(region) {
		if z.parent == "" {
			subnet := &Subnet{
				Thing: given("subnet", z.name), VPC: vpc.ID, Zone: z.name, CIDR: fmt.Sprintf("172.31.%d.0/20", n*16),
				MapPublicIP: true, Default: true, HostnameType: "ip-name",
			}
			s.Subnets[subnet.ID] = subnet
		}
	}
	return s
}

// Publish adds the public images of the region.
func (svc *Service) Publish(images []*Image) {
	for _, i := range images {
		if svc.state.Images[i.ID] == nil {
			svc.state.Images[i.ID] = i
		}
	}
}

// GivenID returns the ID of a default resource.
func GivenID(prefix, region, name string) string {
	sum := sha256.Sum256([]byte(prefix + " " + region + " " + name))
	return prefix + "-0" + hex.EncodeToString(sum[:8])
}

// zone is a zone of the region.
type zone struct {
	name, id, parent string // parent: the availability zone of a Local or Wavelength Zone
	wavelength       bool
	group            string
	optIn            types.AvailabilityZoneOptInStatus
}

// zonesOf returns the zones of a region: its availability zones, a Local Zone
// that the account has opted in to, one that it has not, and a Wavelength Zone.
func zonesOf(region string) (zones []zone) {
	letters := "abc"
	if region == "us-east-1" {
		letters = "abcdef"
	}
	for n, l := range letters {
		zones = append(zones, zone{
			name: region + string(l), id: fmt.Sprintf("%s-az%d", abbreviated(region), n+1), group: region,
			optIn: types.AvailabilityZoneOptInStatusOptInNotRequired,
		})
	}
	local := func(place string, status types.AvailabilityZoneOptInStatus) zone {
		group := region + "-" + place + "-1"
		return zone{name: group + "a", id: abbreviated(region) + "-" + place + "1-az1", parent: region + "a", group: group, optIn: status}
	}
	wavelength := zone{
		name: region + "-wl1-bos-wlz-1", id: abbreviated(region) + "-wl1-bos-wlz1", parent: region + "a", group: region + "-wl1",
		optIn: types.AvailabilityZoneOptInStatusOptedIn, wavelength: true,
	}
	return append(zones, local("bos", types.AvailabilityZoneOptInStatusOptedIn), local("chi", types.AvailabilityZoneOptInStatusNotOptedIn), wavelength)
}

// abbreviated returns a region as in zone IDs: us-east-1 is use1.
func abbreviated(region string) string {
	parts := strings.Split(region, "-")
	for n, p := range parts {
		if n == 0 || n == len(parts)-1 {
			continue
		}
		short := ""
		for _, direction := range []string{"north", "south", "central", "east", "west"} {
			if strings.Contains(p, direction) {
				short += direction[:1]
			}
		}
		parts[n] = short
	}
	return strings.Join(parts, "")
}

// instanceType is an instance type.
type instanceType struct {
	name          string
	architectures []types.ArchitectureType
	vcpus         int32
	memory        int64 // MiB
	gpu, current  bool
}

// instanceTypes returns the simulated instance types.
func instanceTypes() []instanceType {
	intel, arm := []types.ArchitectureType{types.ArchitectureTypeX8664}, []types.ArchitectureType{types.ArchitectureTypeArm64}
	return []instanceType{
		{"t2.micro", []types.ArchitectureType{types.ArchitectureTypeI386, types.ArchitectureTypeX8664}, 1, 1024, false, true},
		{"t3.micro", intel, 2, 1024, false, true},
		{"t3.small", intel, 2, 2048, false, true},
		{"t3.medium", intel, 2, 4096, false, true},
		{"t3.large", intel, 2, 8192, false, true},
		{"m5.large", intel, 2, 8192, false, true},
		{"m5.xlarge", intel, 4, 16384, false, true},
		{"m6i.large", intel, 2, 8192, false, true},
		{"m6i.xlarge", intel, 4, 16384, false, true},
		{"m6g.large", arm, 2, 8192, false, true},
		{"c5.large", intel, 2, 4096, false, true},
		{"c5.xlarge", intel, 4, 8192, false, true},
		{"c6i.xlarge", intel, 4, 8192, false, true},
		{"g4dn.xlarge", intel, 4, 16384, true, true},
	}
}

// typeNamed returns the instance type with that name.
func typeNamed(name string) (instanceType, bool) {
	for _, t := range instanceTypes() {
		if t.name == name {
			return t, true
		}
	}
	return instanceType{}, false
}

// Architectures returns the architectures of an instance type; nil if it does not exist.
func Architectures(name string) []types.ArchitectureType {
	t, _ := typeNamed(name)
	return t.architectures
}

// offered reports whether a zone offers an instance type: us-east-1e and Local Zones
// offer few types.
func (z zone) offered(instanceType string) bool {
	switch {
	case z.parent != "":
		return z.optIn == types.AvailabilityZoneOptInStatusOptedIn && instanceType == "t3.medium"
	case z.name == "us-east-1e":
		return instanceType == "t2.micro"
	}
	return true
}

// ImagesIn returns the images of a region. There are several for each version, and their
// order by name is not the order by age.
func ImagesIn(region string) (images []*Image) {
	add := func(owner, name, description, architecture, device string, created int64) {
		images = append(images, &Image{
			Thing: Thing{ID: GivenID("ami", region, name), Tags: map[string]string{}, Born: time.Unix(created, 0).UTC(), Given: true},
			Name:  name, Owner: owner, Description: description, Architecture: architecture, RootDevice: device,
			Created: time.Unix(created, 0).UTC(), RootSize: 8,
		})
	}
	const day = 24 * 60 * 60
	for n, version := range []string{"1.28.3", "1.30.0", "1.31.0", "1.32.4", "1.33.0", "1.34.0", "1.34.2"} {
		for m, base := range []string{"ubuntu-24.04", "ubuntu-22.04", "flatcar-stable"} {
			device := map[bool]string{true: "/dev/xvda", false: "/dev/sda1"}[base == "flatcar-stable"]
			for k, architecture := range []string{"x86_64", "arm64"} {
				built := 1_700_000_000 + int64(n)*120*day + int64(m)*3600 + int64(k)*600
				for build := range int64(3) {
					at := built + build*20*day
					add(communityImages, fmt.Sprintf("capa-ami-%s-v%s-%d", base, version, at), "Kubernetes v"+version+" on "+base, architecture, device, at)
				}
				// An older image whose name is the last.
				add(communityImages, fmt.Sprintf("capa-ami-%s-v%s-rebuilt-%d", base, version, k), "Kubernetes v"+version+" on "+base, architecture, device, built-day)
			}
		}
	}
	for n := range int64(3) {
		at := 1_740_000_000 + n*30*day
		date := time.Unix(at, 0).UTC().Format("20060102")
		add(canonicalImages, "ubuntu/images/hvm-ssd-gp3/ubuntu-noble-24.04-amd64-server-"+date,
			"Canonical, Ubuntu, 24.04, amd64 noble image", "x86_64", "/dev/sda1", at)
		add(canonicalImages, "ubuntu/images/hvm-ssd-gp3/ubuntu-noble-24.04-arm64-server-"+date,
			"Canonical, Ubuntu, 24.04, arm64 noble image", "arm64", "/dev/sda1", at)
	}
	return images
}
