package topology

import (
	"fmt"
	"slices"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/ec2"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/eks"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
)

// addNATAddresses adds the addresses of the NAT gateways to those that may use the public endpoint, if the manifest says so.
// The addresses that a run allocates exist seconds later, long before their gateways: the cluster is created with them.
func (in inputs) addNATAddresses(e *eks.Cluster, net network) error {
	if !in.m.EKS.NATAddresses {
		return nil
	}
	e.NATAddresses = net.addresses
	waysOut := slices.Concat(in.inv.WaysOut, net.left)
	for _, address := range waysOut {
		e.PublicCIDRs = append(e.PublicCIDRs, ec2.HostBlock(address))
	}
	slices.Sort(e.PublicCIDRs)
	e.PublicCIDRs = slices.Compact(e.PublicCIDRs)
	if len(e.NATAddresses)+len(waysOut) > 0 {
		return nil
	}
	return fmt.Errorf(
		"%s: the annotation %s%s adds no address: no private subnet of the cluster has a route to a NAT gateway with a public address. "+
			"Remove it, and set endpointAccess.private: true",
		in.m.Origin(in.m.InfraObject(), manifest.AnnotationPath(manifest.AnnotationNATAddresses)),
		manifest.OwnAnnotations,
		manifest.AnnotationNATAddresses,
	)
}
