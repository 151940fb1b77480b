package cluster

// Kinds of what a manifest takes for granted.
const (
	AssumedVPC              = "VPC"
	AssumedSubnet           = "subnet"
	AssumedSecurityGroup    = "security group"
	AssumedLoadBalancer     = "network load balancer"
	AssumedKeyPair          = "key pair"
	AssumedImage            = "image"
	AssumedPlacementGroup   = "placement group"
	AssumedReservation      = "capacity reservation"
	AssumedHost             = "dedicated host"
	AssumedKMSKey           = "KMS key"
	AssumedRole             = "IAM role"
	AssumedUser             = "IAM user"
	AssumedInstanceProfile  = "instance profile"
	AssumedPolicy           = "IAM policy"
	AssumedInternetGateway  = "internet gateway"
	AssumedNetworkInterface = "network interface"
)

// Assumed is something that a manifest takes for granted: it refers to it, and a run looks it up and does
// not create it.
type Assumed struct {
	Kind   string
	ID     string // an ID, a name or an ARN; "" if the manifest describes it by filters only
	Origin string // the first field that refers to it: "demo.yaml:12 AWSCluster/demo spec.network.vpc.id"

	VPC     string            // of a subnet, a security group, a gateway
	CIDR    string            // of a VPC or a subnet, if the manifest says so; IPv4
	IPv6    string            // as CIDR; AnyIPv6 for any
	Zone    string            // of a subnet, if the manifest says so
	Public  bool              // a subnet has a route to an internet gateway
	Tags    map[string]string // by which the manifest finds it
	Service string            // that assumes a role: "eks.amazonaws.com"; "": an administrator's role, for the caller
	// Detail of an image is its architecture; of a placement group its strategy; of a capacity reservation CapacityBlock, or "";
	// of a host auto-placement, or "".
	Detail  string
	Version string // of an image: that of Kubernetes; "" if it is not known
	Pattern string // of the name of an image that is found by name; then ID is a name that matches
	Owner   string // of such an image
}

// AnyIPv6 is the value of Assumed.IPv6 for a block that the manifest does not name.
const AnyIPv6 = "any"
