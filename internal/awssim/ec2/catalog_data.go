package ec2

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim/core"
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
		if svc.state.Images[i.ID] == nil && !svc.state.hides(i) {
			svc.state.Images[i.ID] = i
		}
	}
}

// hides reports whether a simulated public image does not exist in the account, which has the
// images of another one.
func (s *State) hides(i *Image) bool {
	return slices.ContainsFunc(s.Copied, func(pattern string) bool { return core.Wild(pattern, i.Name) })
}

// CopyImages replaces the simulated public images whose names match the patterns by images of
// another account.
func (s *State) CopyImages(patterns []string, images []*Image) {
	s.Copied = patterns
	maps.DeleteFunc(s.Images, func(_ string, i *Image) bool { return s.hides(i) })
	for _, i := range images {
		s.Images[i.ID] = i
	}
}

// GivenID returns the ID of a default resource.
func GivenID(prefix, region, name string) string {
	sum := sha256.Sum256([]byte(prefix + " " + region + " " + name))
	return prefix + "-0" + hex.EncodeToString(sum[:8])
}
