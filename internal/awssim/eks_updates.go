package awssim

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/eks/types"
)

// EKSUpdate is a change of a cluster that is under way, or was.
type EKSUpdate struct {
	ID, Kind string
	Born     time.Time
	Done     time.Time
	Applied  bool

	// What it changes, once it is done. Empty: nothing.
	Version, Authentication, Key, Support string
	Logging                               map[string]bool
	Endpoint                              *EKSEndpoint
}

// EKSEndpoint is where an API server is reached from.
type EKSEndpoint struct {
	Public, Private bool
	CIDRs           []string
}

const (
	// EKSVersionTakes is how long a cluster takes over a new minor version.
	EKSVersionTakes = 9 * time.Minute
	// EKSConfigTakes is how long it takes over other changes.
	EKSConfigTakes = 2 * time.Minute
	// EKSEncryptionTakes is how long it takes to encrypt its secrets.
	EKSEncryptionTakes = 15 * time.Minute
)

func (a *AWS) simulateEKSUpdates() {
	on(a, a.updateEKSVersion, "Name", "Version", "ClientRequestToken")
	on(a, a.updateEKSConfig, "Name", "ResourcesVpcConfig", "Logging", "AccessConfig", "UpgradePolicy", "ClientRequestToken")
	on(a, a.encryptEKS, "ClusterName", "EncryptionConfig", "ClientRequestToken")
	on(a, a.describeEKSUpdate, "Name", "UpdateId", "NodegroupName", "AddonName")
}

// updating returns the update that is under way, or nil: there is only one at
// a time.
func (c *EKSCluster) updating() *EKSUpdate {
	for _, u := range c.Updates {
		if !u.Applied {
			return u
		}
	}
	return nil
}

// settleEKSUpdates applies the update whose time has come.
func (a *AWS) settleEKSUpdates(c *EKSCluster) {
	u := c.updating()
	if u == nil || a.now().Before(u.Done) {
		return
	}
	u.Applied = true
	for to, value := range map[*string]string{&c.Version: u.Version, &c.Authentication: u.Authentication, &c.Key: u.Key, &c.Support: u.Support} {
		if value != "" {
			*to = value
		}
	}
	for kind, on := range u.Logging {
		c.Logging[kind] = on
	}
	if e := u.Endpoint; e != nil {
		c.Public, c.Private, c.PublicCIDRs = e.Public, e.Private, e.CIDRs
	}
}

// options takes what a new cluster is to be like, beside network and access.
func (c *EKSCluster) options(in *eks.CreateClusterInput) error {
	if n := in.KubernetesNetworkConfig; n != nil {
		if err := c.network(n); err != nil {
			return err
		}
	}
	if in.Logging != nil {
		logging, err := readLogging(in.Logging)
		if err != nil {
			return err
		}
		c.Logging = logging
	}
	if in.UpgradePolicy != nil && in.UpgradePolicy.SupportType != "" {
		c.Support = string(in.UpgradePolicy.SupportType)
	}
	key, err := readEncryption(in.EncryptionConfig)
	c.Key = key
	return err
}

func (c *EKSCluster) network(n *types.KubernetesNetworkConfigRequest) error {
	if err := only("CreateCluster", n, "IpFamily", "ServiceIpv4Cidr"); err != nil {
		return err
	}
	if n.IpFamily == types.IpFamilyIpv6 {
		if n.ServiceIpv4Cidr != nil {
			return invalidEKS("ServiceIpv4Cidr cannot be specified when IpFamily is ipv6")
		}
		c.Family, c.ServiceCIDR = "ipv6", "fd30:1c53:5f8a::/108" // AWS draws one from fc00::/7
		return nil
	}
	if n.ServiceIpv4Cidr == nil {
		return nil
	}
	p, err := netip.ParsePrefix(*n.ServiceIpv4Cidr)
	switch {
	case err != nil || !p.Addr().Is4() || p.Masked() != p || p.Bits() < 12 || p.Bits() > 24:
		return invalidEKS("serviceIpv4Cidr %s is not a valid CIDR block of between /12 and /24", *n.ServiceIpv4Cidr)
	case !p.Addr().IsPrivate():
		return invalidEKS("serviceIpv4Cidr %s must be within 10.0.0.0/8, 172.16.0.0/12 or 192.168.0.0/16", *n.ServiceIpv4Cidr)
	}
	c.ServiceCIDR = p.String()
	return nil
}

// logTypes are the logs of a control plane.
func logTypes() []string {
	return []string{"api", "audit", "authenticator", "controllerManager", "scheduler"}
}

func readLogging(in *types.Logging) (map[string]bool, error) {
	out := map[string]bool{}
	for _, setup := range in.ClusterLogging {
		for _, kind := range setup.Types {
			if _, twice := out[string(kind)]; twice || !slices.Contains(logTypes(), string(kind)) {
				return nil, invalidEKS("the log type %s is unknown or there twice", kind)
			}
			out[string(kind)] = aws.ToBool(setup.Enabled)
		}
	}
	return out, nil
}

func (c *EKSCluster) loggingOut() *types.Logging {
	on, off := types.LogSetup{Enabled: aws.Bool(true)}, types.LogSetup{Enabled: aws.Bool(false)}
	for _, kind := range logTypes() {
		if c.Logging[kind] {
			on.Types = append(on.Types, types.LogType(kind))
		} else {
			off.Types = append(off.Types, types.LogType(kind))
		}
	}
	out := &types.Logging{}
	for _, s := range []types.LogSetup{on, off} {
		if len(s.Types) > 0 {
			out.ClusterLogging = append(out.ClusterLogging, s)
		}
	}
	return out
}

func readEncryption(in []types.EncryptionConfig) (key string, err error) {
	switch {
	case len(in) == 0:
		return "", nil
	case len(in) > 1 || !slices.Equal(in[0].Resources, []string{"secrets"}):
		return "", invalidEKS("encryptionConfig takes one entry, and only for secrets")
	case in[0].Provider == nil || !strings.HasPrefix(aws.ToString(in[0].Provider.KeyArn), "arn:"):
		return "", invalidEKS("Invalid KMS key ARN")
	}
	return *in[0].Provider.KeyArn, nil
}

// update begins an update, if none is under way.
func (a *AWS) beginEKSUpdate(c *EKSCluster, kind types.UpdateType, takes time.Duration, u EKSUpdate) (*types.Update, error) {
	if busy := c.updating(); busy != nil {
		return nil, &types.ResourceInUseException{
			Message: aws.String(fmt.Sprintf("Cannot %s because cluster %s currently has update %s in progress", kind, c.Name, busy.ID)), ClusterName: aws.String(c.Name),
		}
	}
	u.ID, u.Kind, u.Born, u.Done = a.hash(), string(kind), a.now(), a.now().Add(takes)
	c.Updates = append(c.Updates, &u)
	return u.out(), nil
}

func (u *EKSUpdate) out() *types.Update {
	out := &types.Update{Id: aws.String(u.ID), Type: types.UpdateType(u.Kind), Status: types.UpdateStatusInProgress, CreatedAt: aws.Time(u.Born)}
	if u.Applied {
		out.Status = types.UpdateStatusSuccessful
	}
	return out
}

// minor is the number after the dot.
func minor(version string) int {
	_, m, _ := strings.Cut(version, ".")
	n, _ := strconv.Atoi(m) // versions are checked before
	return n
}

// kubeletSkew is how many minor versions a node may be older than its control
// plane, by Kubernetes' version skew policy from 1.28 on.
const kubeletSkew = 3

func (a *AWS) updateEKSVersion(in *eks.UpdateClusterVersionInput) (*eks.UpdateClusterVersionOutput, error) {
	c, err := a.readyEKSCluster(in.Name)
	if err != nil {
		return nil, err
	}
	version := aws.ToString(in.Version)
	switch {
	case !slices.Contains(eksVersions(), version):
		return nil, invalidEKS("unsupported Kubernetes version %s", version)
	case version == c.Version:
		return nil, invalidEKS("Cluster is already at Kubernetes version %s", version)
	case minor(version) != minor(c.Version)+1:
		return nil, invalidEKS("Unsupported Kubernetes minor version update from %s to %s", c.Version, version)
	}
	for _, g := range byKey(c.NodeGroups) {
		if g.Kind != customImage && minor(version)-minor(g.Version) > kubeletSkew {
			return nil, &types.InvalidRequestException{Message: aws.String(fmt.Sprintf(
				"Nodegroup(s) %s must be updated to a later Kubernetes version before updating the cluster to %s", g.Name, version)), ClusterName: in.Name}
		}
	}
	u, err := a.beginEKSUpdate(c, types.UpdateTypeVersionUpdate, EKSVersionTakes, EKSUpdate{Version: version})
	return &eks.UpdateClusterVersionOutput{Update: u}, err
}

// readyEKSCluster returns the cluster of a name for a call that updates it: it
// may be UPDATING, which is refused with another code.
func (a *AWS) readyEKSCluster(name *string) (*EKSCluster, error) {
	c, err := a.eksCluster(name)
	if err != nil {
		return nil, err
	}
	if s := c.status(a.now()); s != types.ClusterStatusActive && s != types.ClusterStatusUpdating {
		return a.activeEKSCluster(name)
	}
	return c, nil
}

// updateEKSConfig changes one thing at a time.
func (a *AWS) updateEKSConfig(in *eks.UpdateClusterConfigInput) (*eks.UpdateClusterConfigOutput, error) {
	c, err := a.readyEKSCluster(in.Name)
	if err != nil {
		return nil, err
	}
	var updates []func() (types.UpdateType, EKSUpdate, error)
	if in.ResourcesVpcConfig != nil {
		updates = append(updates, func() (types.UpdateType, EKSUpdate, error) { return c.changeEndpoint(in.ResourcesVpcConfig) })
	}
	if in.Logging != nil {
		updates = append(updates, func() (types.UpdateType, EKSUpdate, error) { return c.changeLogging(in.Logging) })
	}
	if in.AccessConfig != nil {
		updates = append(updates, func() (types.UpdateType, EKSUpdate, error) { return c.changeAccess(in.AccessConfig) })
	}
	if in.UpgradePolicy != nil {
		updates = append(updates, func() (types.UpdateType, EKSUpdate, error) { return c.changeSupport(in.UpgradePolicy) })
	}
	if len(updates) != 1 {
		return nil, invalidEKS("Only one type of update can be allowed per call")
	}
	kind, change, err := updates[0]()
	if err != nil {
		return nil, err
	}
	u, err := a.beginEKSUpdate(c, kind, EKSConfigTakes, change)
	return &eks.UpdateClusterConfigOutput{Update: u}, err
}

func (c *EKSCluster) changeEndpoint(in *types.VpcConfigRequest) (types.UpdateType, EKSUpdate, error) {
	const kind = types.UpdateTypeEndpointAccessUpdate
	if err := only("UpdateClusterConfig", in, "EndpointPublicAccess", "EndpointPrivateAccess", "PublicAccessCidrs"); err != nil {
		return kind, EKSUpdate{}, err
	}
	e := &EKSEndpoint{c.Public, c.Private, slices.Clone(c.PublicCIDRs)}
	set(&e.Public, in.EndpointPublicAccess)
	set(&e.Private, in.EndpointPrivateAccess)
	if in.PublicAccessCidrs != nil {
		e.CIDRs = slices.Clone(in.PublicAccessCidrs)
	}
	switch {
	case !e.Public && !e.Private:
		return kind, EKSUpdate{}, invalidEKS("Private and public endpoint access cannot be disabled at the same time")
	case e.Public == c.Public && e.Private == c.Private && slices.Equal(e.CIDRs, c.PublicCIDRs):
		return kind, EKSUpdate{}, invalidEKS("Cluster is already at the desired configuration with endpointPrivateAccess: %v, endpointPublicAccess: %v, and Public Endpoint Restrictions: %v",
			e.Private, e.Public, e.CIDRs)
	}
	return kind, EKSUpdate{Endpoint: e}, nil
}

func (c *EKSCluster) changeLogging(in *types.Logging) (types.UpdateType, EKSUpdate, error) {
	logging, err := readLogging(in)
	changed := false
	for kind, on := range logging {
		changed = changed || c.Logging[kind] != on
	}
	if err == nil && !changed {
		err = invalidEKS("No changes needed for the logging config provided")
	}
	return types.UpdateTypeLoggingUpdate, EKSUpdate{Logging: logging}, err
}

// changeAccess goes one way only: from the ConfigMap to the API.
func (c *EKSCluster) changeAccess(in *types.UpdateAccessConfigRequest) (types.UpdateType, EKSUpdate, error) {
	modes := []string{string(types.AuthenticationModeConfigMap), string(types.AuthenticationModeApiAndConfigMap), string(types.AuthenticationModeApi)}
	from, to := slices.Index(modes, c.Authentication), slices.Index(modes, string(in.AuthenticationMode))
	var err error
	switch {
	case to < 0:
		err = invalidEKS("unsupported authentication mode %s", in.AuthenticationMode)
	case to == from:
		err = invalidEKS("Cluster is already at the desired authentication mode")
	case to != from+1:
		err = invalidEKS("Unsupported authentication mode update from %s to %s", c.Authentication, in.AuthenticationMode)
	}
	return types.UpdateTypeAccessConfigUpdate, EKSUpdate{Authentication: string(in.AuthenticationMode)}, err
}

func (c *EKSCluster) changeSupport(in *types.UpgradePolicyRequest) (types.UpdateType, EKSUpdate, error) {
	var err error
	switch {
	case !slices.Contains(in.SupportType.Values(), in.SupportType):
		err = invalidEKS("unsupported support type %s", in.SupportType)
	case string(in.SupportType) == c.Support:
		err = invalidEKS("Cluster is already at the desired upgrade policy")
	}
	return types.UpdateTypeUpgradePolicyUpdate, EKSUpdate{Support: string(in.SupportType)}, err
}

func (a *AWS) encryptEKS(in *eks.AssociateEncryptionConfigInput) (*eks.AssociateEncryptionConfigOutput, error) {
	c, err := a.readyEKSCluster(in.ClusterName)
	if err != nil {
		return nil, err
	}
	key, err := readEncryption(in.EncryptionConfig)
	switch {
	case err != nil:
		return nil, err
	case key == "":
		return nil, invalidEKS("encryptionConfig is required")
	case c.Key != "":
		return nil, invalidEKS("Cluster already has encryption configuration")
	}
	u, err := a.beginEKSUpdate(c, types.UpdateTypeAssociateEncryptionConfig, EKSEncryptionTakes, EKSUpdate{Key: key})
	return &eks.AssociateEncryptionConfigOutput{Update: u}, err
}

func (a *AWS) describeEKSUpdate(in *eks.DescribeUpdateInput) (*eks.DescribeUpdateOutput, error) {
	c, err := a.eksCluster(in.Name)
	if err != nil {
		return nil, err
	}
	for _, u := range c.Updates {
		if u.ID == aws.ToString(in.UpdateId) {
			return &eks.DescribeUpdateOutput{Update: u.out()}, nil
		}
	}
	return nil, &types.ResourceNotFoundException{Message: aws.String("No update found for ID: " + aws.ToString(in.UpdateId)), ClusterName: in.Name}
}
