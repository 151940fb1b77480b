package awssim

import (
	"github.com/clusterawsadm/clusterawsadm/internal/awssim/autoscaling"
	"github.com/clusterawsadm/clusterawsadm/internal/awssim/core"
	"github.com/clusterawsadm/clusterawsadm/internal/awssim/ec2"
	"github.com/clusterawsadm/clusterawsadm/internal/awssim/eks"
	"github.com/clusterawsadm/clusterawsadm/internal/awssim/elb"
	"github.com/clusterawsadm/clusterawsadm/internal/awssim/eventbridge"
	"github.com/clusterawsadm/clusterawsadm/internal/awssim/iam"
	"github.com/clusterawsadm/clusterawsadm/internal/awssim/kms"
	"github.com/clusterawsadm/clusterawsadm/internal/awssim/s3"
	"github.com/clusterawsadm/clusterawsadm/internal/awssim/secretsmanager"
	"github.com/clusterawsadm/clusterawsadm/internal/awssim/sqs"
	"github.com/clusterawsadm/clusterawsadm/internal/awssim/ssm"
)

// Account is the number of the simulated account.
const Account = core.AccountID

// The faults of a Process.
const (
	None       = core.None
	Throttled  = core.Throttled
	Denied     = core.Denied
	Broken     = core.Broken
	Unsent     = core.Unsent
	Silent     = core.Silent
	Stale      = core.Stale
	Old        = core.Old
	Used       = core.Used
	Endless    = core.Endless
	Circle     = core.Circle
	LostBefore = core.LostBefore
	LostAfter  = core.LostAfter
	Cut        = core.Cut
	KillBefore = core.KillBefore
	KillAfter  = core.KillAfter
	Held       = core.Held
	KillHeld   = core.KillHeld
)

// Durations in EKS.
const (
	EKSClusterTakes     = eks.ClusterTakes
	EKSAddonTakes       = eks.AddonTakes
	EKSNodeGroupDeletes = eks.NodeGroupDeletes
	EKSNodeGroupTakes   = eks.NodeGroupTakes
	EKSNodeGroupGivesUp = eks.NodeGroupGivesUp
)

// Options configure the simulated account.
type Options = core.Options

// Call is one call that the account received.
type Call = core.Call

// TokenBucket is a token bucket that limits the rate of a class of calls.
type TokenBucket = core.TokenBucket

// Fault is a failure of a call.
type Fault = core.Fault

// Types of the services, so that tests import one package.
//
//nolint:revive // each is documented where it is declared
type (
	EC2State          = ec2.State
	Reservation       = ec2.Reservation
	Host              = ec2.Host
	Thing             = ec2.Thing
	VPC               = ec2.VPC
	Association       = ec2.Association
	Subnet            = ec2.Subnet
	InternetGateway   = ec2.InternetGateway
	EgressOnlyGateway = ec2.EgressOnlyGateway
	NATGateway        = ec2.NATGateway
	Address           = ec2.Address
	RouteTable        = ec2.RouteTable
	NetworkACL        = ec2.NetworkACL
	ACLRule           = ec2.ACLRule
	Route             = ec2.Route
	SecurityGroup     = ec2.SecurityGroup
	Rule              = ec2.Rule
	Endpoint          = ec2.Endpoint
	Interface         = ec2.Interface
	Instance          = ec2.Instance
	Boot              = ec2.Boot
	Volume            = ec2.Volume
	Image             = ec2.Image
	Device            = ec2.Device
	Snapshot          = ec2.Snapshot

	LoadBalancer        = elb.LoadBalancer
	Listener            = elb.Listener
	TargetGroup         = elb.TargetGroup
	Target              = elb.Target
	ClassicLoadBalancer = elb.ClassicLoadBalancer

	ScalingGroup = autoscaling.Group
	ScalingTag   = autoscaling.Tag

	Role        = iam.Role
	Policy      = iam.Policy
	AssumedRole = iam.AssumedRole

	InstanceProfile = iam.InstanceProfile

	EKSCluster   = eks.Cluster
	EventRule    = eventbridge.Rule
	Queue        = sqs.Queue
	EKSAddon     = eks.Addon
	EKSNodeGroup = eks.NodeGroup
	EKSFargate   = eks.Fargate
	EKSAccess    = eks.Access
	// EKSPodIdentity is a pod identity association.
	EKSPodIdentity = eks.PodIdentity
	EKSProvider    = eks.Provider

	Key       = kms.Key
	Bucket    = s3.Bucket
	Object    = s3.Object
	Secret    = secretsmanager.Secret
	Parameter = ssm.Parameter
)
