package topology_test

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/internal/enginetest"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
)

// zoned returns the example of a Local Zone, with another zone.
func zoned(t *testing.T, zone string) *manifest.Cluster {
	t.Helper()
	m := enginetest.Quick(enginetest.Load(t, "local-zone.yaml", nil))
	for i := range m.Infra.Spec.NetworkSpec.Subnets {
		if s := &m.Infra.Spec.NetworkSpec.Subnets[i]; s.AvailabilityZone == "us-east-1-bos-1a" {
			s.AvailabilityZone = zone
		}
	}
	m.Deployments[0].Object.Spec.Template.Spec.FailureDomain = zone
	return m
}

// The kind of a zone is read from AWS. As in CAPA, an edge zone contains machines, and neither
// NAT gateways nor load balancers. Its private subnet uses the NAT gateway of its
// availability zone, and its public subnet the internet gateway or a carrier gateway.
func TestEdgeZones(t *testing.T) {
	for zone, gateway := range map[string]string{"us-east-1-bos-1a": "igw", "us-east-1-wl1-bos-wlz-1": "cagw"} {
		t.Run(zone, func(t *testing.T) {
			m := zoned(t, zone)
			synctest.Test(t, func(t *testing.T) {
				a := enginetest.Account(m, enginetest.Lag)
				before := a.Inventory()
				enginetest.MustApply(t, m, a)
				enginetest.RequireNoChange(t, m, a)
				a.Edit(func(s *awssim.State) {
					require.Len(t, s.EC2.NATGateways, 1)
					ways := map[string]string{}
					for _, x := range s.EC2.RouteTables {
						for _, id := range x.Associations {
							for _, r := range x.Routes {
								if r.Destination == "0.0.0.0/0" {
									ways[s.EC2.Subnets[id].Tags["Name"]] = r.Target
								}
							}
						}
					}
					require.Regexp(t, "^"+gateway+"-", ways["edge-public"])
					require.Equal(t, ways["private-a"], ways["edge-private"])
					for _, n := range s.EC2.NATGateways {
						require.Equal(t, "public-a", s.EC2.Subnets[n.Subnet].Tags["Name"])
						require.Equal(t, n.ID, ways["edge-private"])
					}
					for _, n := range s.EC2.Subnets {
						if n.Zone == zone {
							require.NotContains(t, n.Tags, "kubernetes.io/role/elb")
							require.NotContains(t, n.Tags, "kubernetes.io/role/internal-elb")
						}
					}
					for _, b := range s.ELB.LoadBalancers {
						require.Len(t, b.Zones, 1)
					}
				})
				enginetest.MustDelete(t, m, a)
				require.Equal(t, before, a.Inventory())
			})
		})
	}
}

// A run with a zone that the account cannot use, or with IPv6 in an edge zone, is refused
// before the first write.
func TestEdgeZonesThatCannotBeUsed(t *testing.T) {
	for zone, want := range map[string]string{
		"us-east-1-chi-1a": "spec.network.subnets[2].availabilityZone: the account has not opted in to us-east-1-chi-1, which contains the zone us-east-1-chi-1a: run aws ec2 modify-availability-zone-group --region us-east-1 --group-name us-east-1-chi-1 --opt-in-status opted-in",
		"us-east-1-mars-1": "spec.network.subnets[2].availabilityZone: region us-east-1 has no zone us-east-1-mars-1",
		"us-east-1-bos-1a": "spec.network.subnets[2].isIpv6: Local Zones and Wavelength Zones have no IPv6",
	} {
		m := zoned(t, zone)
		m.Infra.Spec.NetworkSpec.Subnets[2].IsIPv6 = zone == "us-east-1-bos-1a"
		synctest.Test(t, func(t *testing.T) {
			a := enginetest.Account(m, enginetest.Lag)
			_, err := enginetest.Open(m, a.Process()).Apply(t.Context(), cluster.Options{})
			require.ErrorContains(t, err, want)
			require.Empty(t, enginetest.Writes(a.Calls()))
		})
	}
}
