package clusterapi

import (
	"cmp"

	infrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/api/v1beta2"
	clusterv1beta1 "sigs.k8s.io/cluster-api/api/core/v1beta1" //nolint:staticcheck // the type of a field of CAPA
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

// infraEndpoint returns the address of the AWSCluster: the name of the load balancer also where the Cluster has a name of the user's. CAPA writes
// that name each time, and its webhook refuses to change another one (reconcileLoadBalancer in controllers/awscluster_controller.go).
func (b *builder) infraEndpoint() clusterv1beta1.APIEndpoint {
	return clusterv1beta1.APIEndpoint{Host: cmp.Or(b.s.Balancer, b.s.Endpoint.Host), Port: b.s.Endpoint.Port}
}
