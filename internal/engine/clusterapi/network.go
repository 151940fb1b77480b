package clusterapi

import (
	infrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/api/v1beta2"
	clusterv1beta1 "sigs.k8s.io/cluster-api/api/core/v1beta1" //nolint:staticcheck // the type of a field of CAPA
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// fillNetwork writes the IDs of the cluster's own VPC and subnets into the specification of
// its network, as CAPA does. Without them, CAPA would look for the VPC by its name, and lay
// out subnets anew, in the zones that are available by then.
func (b *builder) fillNetwork(n *infrav1.NetworkSpec) {
	if b.s.VPC == nil {
		return
	}
	n.VPC.ID, n.VPC.CidrBlock = b.s.VPC.ID, b.s.VPC.CIDR
	n.VPC.Tags = infrav1.Tags(b.s.VPC.Tags)
	listed := n.Subnets
	n.Subnets = nil
	for _, have := range b.s.Subnets {
		n.Subnets = append(n.Subnets, subnetSpec(have, listed))
	}
}

// subnetSpec returns the specification of a subnet. One that the manifest lists keeps its
// name and settings.
func subnetSpec(have Subnet, listed infrav1.Subnets) infrav1.SubnetSpec {
	s := infrav1.SubnetSpec{ID: have.Tags["Name"], IsPublic: have.Public, IPv6CidrBlock: have.IPv6CIDR, IsIPv6: have.IPv6CIDR != ""}
	for _, x := range listed {
		if x.ResourceID == have.ID || x.ID == have.ID || x.CidrBlock != "" && x.CidrBlock == have.CIDR {
			s = *x.DeepCopy()
		}
	}
	s.ResourceID, s.CidrBlock, s.AvailabilityZone = have.ID, have.CIDR, have.Zone
	return s
}

// infraEndpoint converts an address to the type of CAPA's fields.
func infraEndpoint(e clusterv1.APIEndpoint) clusterv1beta1.APIEndpoint {
	return clusterv1beta1.APIEndpoint{Host: e.Host, Port: e.Port}
}
