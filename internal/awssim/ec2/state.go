package ec2

import "time"

// State is what EC2 holds: everything by its ID.
type State struct {
	VPCs               map[string]*VPC
	Subnets            map[string]*Subnet
	InternetGateways   map[string]*InternetGateway
	EgressOnlyGateways map[string]*InternetGateway
	NATGateways        map[string]*NATGateway
	Addresses          map[string]*Address
	RouteTables        map[string]*RouteTable
	SecurityGroups     map[string]*SecurityGroup
	Endpoints          map[string]*Endpoint
	Interfaces         map[string]*Interface
	Instances          map[string]*Instance
	Volumes            map[string]*Volume
	LaunchTemplates    map[string]*LaunchTemplate
	Images             map[string]*Image
	Snapshots          map[string]*Snapshot
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

// Answer is what a client token has been answered with.
type Answer struct {
	Parameters string   // digest of the call's parameters
	IDs        []string // of what was made
}

// Thing is what all things of EC2 have.
type Thing struct {
	ID    string
	Tags  map[string]string
	Born  time.Time
	Given bool // every account has it from the beginning
}

// VPC is a virtual private cloud.
type VPC struct {
	Thing
	CIDR                     string
	Secondary                []Association
	IPv6                     *Association // amazon-provided
	Tenancy                  string
	DNSHostnames, DNSSupport bool
	Default                  bool
}

// Association is a CIDR block of a VPC.
type Association struct {
	ID, CIDR string
	Born     time.Time
}

// Subnet is a subnet of a VPC.
type Subnet struct {
	Thing
	VPC, CIDR, IPv6CIDR, Zone               string
	MapPublicIP, AssignIPv6, DNS64, Default bool
	Native                                  bool   // IPv6 only
	HostnameType                            string // ip-name or resource-name
	ResourceNameA, ResourceNameAAAA         bool
	Next                                    int // the address to try next, counted from the first
}

// InternetGateway is an internet gateway, or an egress-only one.
type InternetGateway struct {
	Thing
	VPC string // attached to; "" when detached
}

// NATGateway is a public NAT gateway.
type NATGateway struct {
	Thing
	VPC, Subnet, Address, Interface string
	Failed                          bool
	Ready                           time.Time // available from then on
	Deleted                         time.Time // when deletion was asked for; zero: not
	Gone                            time.Time // when it is over
}

// Address is an elastic IP address.
type Address struct {
	Thing
	PublicIP, Association, Interface, Instance string
}

// RouteTable is a route table.
type RouteTable struct {
	Thing
	VPC          string
	Main         string            // the main association's ID; "": not the main table
	Routes       []Route           // neither the local ones nor those of endpoints
	Associations map[string]string // association ID to subnet
}

// Route is one route.
type Route struct {
	Destination string // an IPv4 or IPv6 CIDR
	Target      string // igw-…, eigw-…, nat-…
}

// SecurityGroup is a security group.
type SecurityGroup struct {
	Thing
	VPC, Name, Description string
	Ingress, Egress        []Rule
}

// Rule is one rule of a security group, with exactly one source.
type Rule struct {
	ID, Protocol      string
	From, To          int32
	CIDR, IPv6, Group string // one of them
	Description       string
}

// Endpoint is a gateway endpoint.
type Endpoint struct {
	Thing
	VPC, Service string
	RouteTables  []string
	Deleted      time.Time // when deletion was asked for; zero: not
}

// Interface is a network interface.
type Interface struct {
	Thing
	VPC, Subnet, Description, Type, PrivateIP, PublicIP string
	Groups                                              []string
	IPv6                                                []string
	Owner                                               string    // what it serves: an instance, a NAT gateway, a load balancer; "" when free
	Managed                                             bool      // AWS made it and alone can remove it
	Dies                                                time.Time // when AWS will have removed it; zero: not dying
	DeleteWithOwner                                     bool
	Device                                              int32 // device index at its instance
	NoSourceCheck                                       bool
}

// Instance is an instance.
type Instance struct {
	Thing
	Image, Type, Subnet, VPC, Zone, Key, Profile, UserData string // user data as sent: base64
	Reservation, Token                                     string
	HostnameType                                           string // ip-name or resource-name
	ResourceNameA, ResourceNameAAAA                        bool
	Protected                                              bool // termination through the API is disabled
	Spot                                                   bool
	MaxPrice                                               string
	Interfaces, Volumes                                    []string
	Metadata                                               MetadataOptions
	Placement                                              Placement
	Launch                                                 map[string]string // other parameters it was launched with, for tests
	Running                                                time.Time         // running from then on
	Terminating                                            time.Time         // termination asked for; zero: not
	Terminated                                             time.Time         // terminated from then on
	Index                                                  int               // ami-launch-index
	Boot                                                   *Boot             // nil: it has not booted
}

// MetadataOptions are an instance's settings of its metadata service.
type MetadataOptions struct {
	Endpoint, IPv6, Tokens, Tags string
	HopLimit                     int32
}

// Placement is where an instance was put.
type Placement struct {
	Tenancy, Group, Host, Affinity string
	Partition                      int32
}

// Volume is a volume of an instance.
type Volume struct {
	Thing
	Zone, Instance, Device, Type, Key string
	Size, IOPS, Throughput            int32 // GiB, operations and MiB a second
	Encrypted                         bool
	DeleteWithInstance                bool
}
