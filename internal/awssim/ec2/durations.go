package ec2

import "time"

// Durations in EC2.
const (
	// VPCTakes is how long a new VPC is pending.
	VPCTakes = time.Second
	// IPv6BlockTakes is how long a CIDR block of a VPC is associating. Before, a block
	// from Amazon is not returned.
	IPv6BlockTakes = 2 * time.Second
	// SubnetIPv6Takes is how long a subnet's IPv6 block is associating.
	SubnetIPv6Takes = time.Second
	// NATGatewayTakes is how long a new NAT gateway is pending.
	NATGatewayTakes = 100 * time.Second
	// NATGatewayFails is how long a NAT gateway takes to fail.
	NATGatewayFails = 5 * time.Second
	// NATGatewayDeletes is the minimum time that a NAT gateway is deleting.
	NATGatewayDeletes = 45 * time.Second
	// NATGatewayDeletesMost is the maximum.
	NATGatewayDeletesMost = 60 * time.Second
	// NATGatewayShown is how long a deleted or failed NAT gateway is returned.
	NATGatewayShown = time.Hour
	// InstanceTakes is how long a new instance is pending.
	InstanceTakes = 30 * time.Second
	// InstanceStops is how long an instance is shutting down.
	InstanceStops = 35 * time.Second
	// InstanceHalts is how long an instance is stopping.
	InstanceHalts = 40 * time.Second
	// InstanceShown is how long a terminated instance is returned.
	InstanceShown = time.Hour
	// EndpointDeletes is how long a gateway endpoint is deleting.
	EndpointDeletes = 10 * time.Second
	// VolumeTakes is how long a new volume without an instance is creating.
	VolumeTakes = 2 * time.Second
	// SnapshotCopies is the minimum time that the copy of a snapshot is pending.
	SnapshotCopies = 3 * time.Minute
	// SnapshotCopiesMost is the maximum.
	SnapshotCopiesMost = 8 * time.Minute
	// ImageFollows is how long a copied image is pending after its last snapshot.
	ImageFollows = 10 * time.Second
	// KeyIsRefused is how long a copy with an invalid key takes to fail.
	KeyIsRefused = time.Minute
)
