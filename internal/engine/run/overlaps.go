package run

import (
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest/rules"
)

// overlaps compares the blocks of pods and Services with those of an existing VPC, which the manifest need not have.
// EKS refuses Services in the VPC ("serviceIpv4Cidr", KubernetesNetworkConfigRequest); otherwise that is a warning.
func (p *planning) overlaps() (reasons []error) {
	m := p.Cluster.Manifest
	vpc, known := p.Built.VPC.Found()
	if spec := m.Infra.Spec.NetworkSpec.VPC; spec.ID == "" || !known || spec.CidrBlock != "" { // the manifest was checked
		return nil
	}
	network, at := m.Object.Spec.ClusterNetwork, "Cluster/"+m.Name
	services := network.Services.CIDRBlocks // EKS chooses a block that does not overlap
	if m.EKS == nil {
		services = rules.Services(m)
	}
	blocks := append([]string{vpc.CIDR}, slices.Sorted(maps.Keys(vpc.Blocks))...)
	for _, x := range both(services, blocks) {
		origin := m.Origin(at, "spec.clusterNetwork.services.cidrBlocks")
		if m.EKS != nil {
			reasons = append(
				reasons,
				fmt.Errorf("%s: %s overlaps with %s of the VPC %s: EKS refuses that; change it, or remove it to let EKS choose", origin, x[0], x[1], vpc.ID),
			)
			continue
		}
		p.Warn("%s: %s, the addresses of Services, overlaps with %s of the VPC %s: pods cannot reach what has an address in both", origin, x[0], x[1], vpc.ID)
	}
	if m.EKS != nil { // the VPC CNI gives pods addresses of the VPC
		return reasons
	}
	for _, x := range both(network.Pods.CIDRBlocks, blocks) {
		p.Warn("%s: %s overlaps with %s of the VPC %s: this works only with a pod network that gives pods addresses of the VPC",
			m.Origin(at, "spec.clusterNetwork.pods.cidrBlocks"), x[0], x[1], vpc.ID)
	}
	return reasons
}

// both lists the pairs of blocks that have addresses in common.
func both(some, others []string) (pairs [][2]string) {
	for _, x := range some {
		a, err := netip.ParsePrefix(x)
		for _, y := range others {
			b, err2 := netip.ParsePrefix(y)
			if errors.Join(err, err2) == nil && a.Overlaps(b) {
				pairs = append(pairs, [2]string{x, y})
			}
		}
	}
	return pairs
}
