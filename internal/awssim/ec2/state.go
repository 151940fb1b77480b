package ec2

// State is what EC2 holds: everything by its ID. A kind of resource is known by
// its Table here.
type State struct {
	VPCs               Table[*VPC]
	Subnets            Table[*Subnet]
	InternetGateways   Table[*InternetGateway]
	EgressOnlyGateways Table[*EgressOnlyGateway]
	CarrierGateways    Table[*CarrierGateway]
	NATGateways        Table[*NATGateway]
	Addresses          Table[*Address]
	RouteTables        Table[*RouteTable]
	SecurityGroups     Table[*SecurityGroup]
	Endpoints          Table[*Endpoint]
	Interfaces         Table[*Interface]
	Instances          Table[*Instance]
	Volumes            Table[*Volume]
	LaunchTemplates    Table[*LaunchTemplate]
	Images             Table[*Image]
	Snapshots          Table[*Snapshot]
	Elsewhere          map[string]*Place // what is kept of other regions, by region
	KeyPairs           map[string]bool   // by name
	PlacementGroups    map[string]string // by name: cluster, partition or spread
	Reservations       map[string]bool   // capacity reservations, by ID
	Hosts              map[string]bool   // dedicated hosts, by ID
	Keys               map[string]string // KMS keys for images, of every region: key ID to alias
	Tokens             map[string]Answer // client tokens: operation and token to what was answered
	Limits             Limits
}

// Limits are the account's quotas.
type Limits struct {
	VPCs          int // in the region; as many internet gateways
	Addresses     int // elastic IPs in the region
	VCPUs         int // of all instances that are not terminated
	RulesPerGroup int // of one direction and one IP version
}
