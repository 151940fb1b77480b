package topology

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"math/bits"
	"net"
	"slices"

	"github.com/apparentlymart/go-cidr/cidr"
	infrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/api/v1beta2"
)

// DefaultCIDR is the block of a VPC if the manifest has none.
const DefaultCIDR = "10.0.0.0/16"

// Split divides the block of a VPC into a public and a private one for each of n zones,
// as CAPA does (getDefaultSubnets): n+1 equal parts, rounded up to a power of two; the
// first part is divided again, for the kind of subnet that is smaller.
func Split(block string, n int, publicFirst bool) (public, private []string, err error) {
	_, whole, err := net.ParseCIDR(block)
	if err != nil {
		return nil, nil, err
	}
	outer, inner := bits.Len(uint(n)), bits.Len(uint(n-1))
	first, err := cidr.Subnet(whole, outer, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("%s is too small for %d zones: %w", block, n, err)
	}
	var less, more []string
	for i := range n {
		small, err := cidr.Subnet(first, inner, i)
		if err != nil {
			return nil, nil, fmt.Errorf("%s is too small for %d zones: %w", block, n, err)
		}
		large, err := cidr.Subnet(whole, outer, i+1)
		if err != nil {
			return nil, nil, fmt.Errorf("%s is too small for %d zones: %w", block, n, err)
		}
		less, more = append(less, small.String()), append(more, large.String())
	}
	if ones, _ := first.Mask.Size(); ones+inner > 28 {
		return nil, nil, fmt.Errorf("%s is too small for %d zones: AWS wants subnets of /28 or larger", block, n)
	}
	if publicFirst {
		return more, less, nil
	}
	return less, more, nil
}

// equalParts divides a block into n parts of the same size, as CAPA does
// (SplitIntoSubnetsIPv4).
func equalParts(block string, n int) (out []string, err error) {
	_, whole, err := net.ParseCIDR(block)
	if err != nil {
		return nil, err
	}
	for i := range n {
		part, err := cidr.Subnet(whole, bits.Len(uint(n-1)), i)
		if err != nil {
			return nil, fmt.Errorf("%s is too small for %d zones: %w", block, n, err)
		}
		if ones, _ := part.Mask.Size(); ones > 28 {
			return nil, fmt.Errorf("%s is too small for %d zones: AWS wants subnets of /28 or larger", block, n)
		}
		out = append(out, part.String())
	}
	return out, nil
}

// pickZones chooses the zones of a cluster whose manifest does not list subnets: those in
// use, and as many more as the manifest asks for, in order of name or in a pseudo-random
// order that depends only on the cluster's name. In the latter, zones that offer all instance types come first.
func pickZones(spec *infrav1.VPCSpec, cluster string, available, used []string, offersAll func(zone string) bool) []string {
	rest := slices.DeleteFunc(slices.Clone(available), func(z string) bool { return slices.Contains(used, z) })
	if spec.AvailabilityZoneSelection != nil && *spec.AvailabilityZoneSelection == infrav1.AZSelectionSchemeRandom {
		rank := func(zone string) int {
			if offersAll(zone) {
				return 0
			}
			return 1
		}
		slices.SortStableFunc(rest, func(a, b string) int {
			return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(shuffled(cluster, a), shuffled(cluster, b)))
		})
	}
	zones := append(slices.Clone(used), rest...)
	zones = zones[:min(ZoneLimit(spec), len(zones))]
	slices.Sort(zones)
	return zones
}

// shuffled returns the sort key of a zone in the pseudo-random order: a hash, because the
// names differ only in their last letter.
func shuffled(cluster, zone string) string {
	sum := sha256.Sum256([]byte(cluster + "/" + zone))
	return string(sum[:])
}

// ZoneLimit returns how many zones a cluster uses if its manifest does not list subnets.
func ZoneLimit(spec *infrav1.VPCSpec) int {
	if spec.AvailabilityZoneUsageLimit != nil {
		return *spec.AvailabilityZoneUsageLimit
	}
	return 3
}
