package ec2

import "cmp"

// State is the state of EC2. Every kind of resource is a Table, by ID.
type State struct {
	VPCs               Table[*VPC]
	Subnets            Table[*Subnet]
	InternetGateways   Table[*InternetGateway]
	EgressOnlyGateways Table[*EgressOnlyGateway]
	CarrierGateways    Table[*CarrierGateway]
	NATGateways        Table[*NATGateway]
	Addresses          Table[*Address]
	RouteTables        Table[*RouteTable]
	NetworkACLs        Table[*NetworkACL]
	SecurityGroups     Table[*SecurityGroup]
	Endpoints          Table[*Endpoint]
	FlowLogs           Table[*FlowLog]
	Interfaces         Table[*Interface]
	Instances          Table[*Instance]
	Volumes            Table[*Volume]
	LaunchTemplates    Table[*LaunchTemplate]
	Images             Table[*Image]
	Snapshots          Table[*Snapshot]
	Elsewhere          map[string]*Place       // state in other regions, by region
	KeyPairs           map[string]bool         // by name
	PlacementGroups    map[string]string       // strategy by name: cluster, partition or spread
	Partitions         map[string]int32        // number of partitions by the name of a placement group; 7 without an entry
	Reservations       map[string]*Reservation // capacity reservations, by ID
	Hosts              map[string]*Host        // dedicated hosts, by ID
	Keys               map[string]string       // KMS keys for images in all regions: alias by key ID
	Tokens             map[string]Answer       // answers by operation and client token
	MetadataTokens     string                  // the account's default for HttpTokens; "" is that of the image
	Limits             Limits

	// Copied are patterns of the names of images that are those of another account: the
	// simulated public images with such names do not exist.
	Copied []string `json:",omitempty"`

	// Listed has the zones and instance types of that account; nil: this one is no copy.
	Listed *Listed `json:",omitempty"`

	// NATGatewayFailure and LaunchFailure, if set, are why new NAT gateways fail, and new
	// instances are terminated before they run: code and message, separated by ": ".
	NATGatewayFailure, LaunchFailure string
	// EndpointFailure and BlockFailure are the same for new VPC endpoints and for the IPv6 blocks and
	// secondary blocks of VPCs, whose message has no code.
	EndpointFailure, BlockFailure string `json:",omitempty"`
	// EndpointDeleteFailure is why deletions of VPC endpoints fail after they were accepted, and
	// EndpointRefusal why DeleteVpcEndpoints, which succeeds, does not accept them: code and message.
	EndpointDeleteFailure, EndpointRefusal string `json:",omitempty"`
	// FlowLogRefusal is why CreateFlowLogs, which succeeds, creates none: code and message. FlowLogFailure
	// is why the records of new flow logs are not delivered.
	FlowLogRefusal, FlowLogFailure string `json:",omitempty"`
	// FailedState is the state of VPC endpoints and of blocks that have failed: "" for failed.
	FailedState string `json:",omitempty"`
	// SubnetFailure is why the IPv6 blocks of new subnets fail, and SubnetState the state of new subnets.
	SubnetFailure, SubnetState string `json:",omitempty"`
	// LaunchRefusal is why Auto Scaling cannot launch instances: code and message.
	LaunchRefusal string `json:",omitempty"`
}

func (s *State) failed() string { return cmp.Or(s.FailedState, "failed") }

// Limits are the quotas of the account.
type Limits struct {
	VPCs          int // VPCs in the region, and internet gateways
	Addresses     int // elastic IPs in the region
	VCPUs         int // vCPUs of Standard instances, on demand; and as many of spot instances
	RulesPerGroup int // per direction and IP version

	NATGatewaysPerZone int

	OtherVCPUs map[string]int // limits of other vCPUs, by the code of the quota
}
