package ec2

import "time"

// How long AWS takes.
const (
	// VPCTakes is how long a new VPC is pending.
	VPCTakes = time.Second
	// IPv6BlockTakes is how long a CIDR block of a VPC is associating. The
	// block that Amazon provides is not shown before.
	IPv6BlockTakes = 2 * time.Second
	// SubnetIPv6Takes is how long a subnet's IPv6 block is associating.
	SubnetIPv6Takes = time.Second
	// NATGatewayTakes is how long a new NAT gateway is pending.
	NATGatewayTakes = 100 * time.Second
	// NATGatewayFails is how long it takes a NAT gateway to fail.
	NATGatewayFails = 5 * time.Second
	// NATGatewayDeletes is how long a NAT gateway is deleting, at least.
	NATGatewayDeletes = 45 * time.Second
	// NATGatewayDeletesMost is how long a NAT gateway is deleting, at most.
	NATGatewayDeletesMost = 60 * time.Second
	// NATGatewayShown is how long a deleted or failed NAT gateway is still
	// described.
	NATGatewayShown = time.Hour
	// InstanceTakes is how long a new instance is pending.
	InstanceTakes = 30 * time.Second
	// InstanceStops is how long an instance is shutting down.
	InstanceStops = 35 * time.Second
	// InstanceShown is how long a terminated instance is still described.
	InstanceShown = time.Hour
	// EndpointDeletes is how long a gateway endpoint is deleting.
	EndpointDeletes = 10 * time.Second
	// VolumeTakes is how long a volume that was created by itself is creating.
	VolumeTakes = 2 * time.Second
	// SnapshotCopies is how long the copy of a snapshot is pending, at least.
	SnapshotCopies = 3 * time.Minute
	// SnapshotCopiesMost is how long the copy of a snapshot is pending, at most.
	SnapshotCopiesMost = 8 * time.Minute
	// ImageFollows is how long after its last snapshot a copied image is ready.
	ImageFollows = 10 * time.Second
	// KeyIsRefused is how long it takes a copy to fail for its key.
	KeyIsRefused = time.Minute
)
