package eks

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/eks/types"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim/core"
)

// Operation is an update of a cluster, a node group or an add-on, in progress or finished.
type Operation struct {
	ID, Kind   string
	Born, Done time.Time
	Applied    bool
	Failure    string   // see Faults
	Of         []string // the resources that the failure is about
	Params     []types.UpdateParam
}

// Update is an update of a cluster or an add-on.
type Update struct {
	Operation

	// The new values; empty fields do not change.
	Version, Authentication, Key, Support string
	Tier                                  string
	Remote                                *types.RemoteNetworkConfigRequest
	AutoMode                              *AutoChange
	Protected, ZonalShift                 *bool
	Logging                               map[string]bool
	Endpoint                              *Endpoint
	Subnets, Groups                       []string
}

// Endpoint is the access to an API server.
type Endpoint struct {
	Public, Private bool
	CIDRs           []string
}

const (
	// VersionTakes is how long an upgrade takes.
	VersionTakes = 9 * time.Minute
	// ConfigTakes is how long other updates take.
	ConfigTakes = 2 * time.Minute
	// EncryptionTakes is how long the encryption of secrets takes.
	EncryptionTakes = 15 * time.Minute
)

func (svc *Service) simulateUpdates() {
	core.On(svc.Account, svc.updateVersion, "Name", "Version", "Force", "ClientRequestToken")
	core.On(
		svc.Account,
		svc.updateConfig,
		"Name",
		"ResourcesVpcConfig",
		"Logging",
		"AccessConfig",
		"UpgradePolicy",
		"DeletionProtection",
		"ZonalShiftConfig",
		"ControlPlaneScalingConfig",
		"RemoteNetworkConfig",
		"ComputeConfig",
		"StorageConfig",
		"KubernetesNetworkConfig",
		"ClientRequestToken",
	)
	core.On(svc.Account, svc.encrypt, "ClusterName", "EncryptionConfig", "ClientRequestToken")
	core.On(svc.Account, svc.describeUpdate, "Name", "UpdateId", "NodegroupName", "AddonName")
	core.On(svc.Account, svc.listUpdates, "Name", "NodegroupName", "AddonName", "MaxResults", "NextToken")
}

// begin returns an operation that begins now.
func (svc *Service) begin(kind types.UpdateType, takes time.Duration, params ...types.UpdateParam) Operation {
	return Operation{ID: svc.Hash(), Kind: string(kind), Born: svc.Now(), Done: svc.Now().Add(takes), Failure: svc.state.Faults.Update, Params: params}
}

// params returns the parameters of an update, without those that it does not change ("Update existing cluster to new Kubernetes version", EKS user
// guide; the examples of update-nodegroup-version and update-addon in the AWS CLI). Those of other updates are not simulated.
func params(values map[types.UpdateParamType]string) (out []types.UpdateParam) {
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if values[name] != "" {
			out = append(out, types.UpdateParam{Type: name, Value: aws.String(values[name])})
		}
	}
	return out
}

func (o *Operation) operation() *Operation { return o }

// pending returns the update in progress, or nil. There is only one at a time.
func pending[U interface{ operation() *Operation }](updates []U) (none U) {
	for _, u := range updates {
		if !u.operation().Applied {
			return u
		}
	}
	return none
}

// updateWith returns the update with an ID, or nil.
func updateWith[U interface{ operation() *Operation }](updates []U, id *string) *Operation {
	for _, u := range updates {
		if o := u.operation(); o.ID == aws.ToString(id) {
			return o
		}
	}
	return nil
}

// settleUpdates applies the update that is due.
func (svc *Service) settleUpdates(c *Cluster) {
	u := pending(c.Updates)
	if u == nil || svc.Now().Before(u.Done) {
		return
	}
	u.Applied = true
	if u.Failure != "" || svc.state.Faults.Reverts {
		return
	}
	for to, value := range map[*string]string{
		&c.Version: u.Version, &c.Authentication: u.Authentication, &c.Key: u.Key, &c.Support: u.Support, &c.Tier: u.Tier,
	} {
		if value != "" {
			*to = value
		}
	}
	if u.Authentication != "" { // "Managing cluster access", EKS Workshop: the creator and the node groups have entries then
		svc.letInCreator(c)
		for _, g := range core.ByKey(c.NodeGroups) {
			svc.letIn(c, g.RoleARN, g.entryType())
		}
	}
	for kind, on := range u.Logging {
		c.Logging[kind] = on
	}
	core.Set(&c.Protected, u.Protected)
	core.Set(&c.ZonalShift, u.ZonalShift)
	if u.Remote != nil {
		c.RemoteNodes, c.RemotePods = remoteBlocks(u.Remote)
	}
	if u.AutoMode != nil {
		svc.setAutoMode(c, u.AutoMode.To)
	}
	if e := u.Endpoint; e != nil {
		c.Public, c.Private, c.PublicCIDRs = e.Public, e.Private, e.CIDRs
	}
	if u.Subnets != nil || u.Groups != nil {
		svc.move(c, u)
	}
}

// move replaces the interfaces of a cluster.
func (svc *Service) move(c *Cluster, u *Update) {
	for _, n := range svc.ec2.InterfacesOf(c.ARN) {
		svc.ec2.RemoveInterface(n.ID)
	}
	if u.Subnets != nil {
		c.Subnets = u.Subnets
	}
	if u.Groups != nil {
		c.Groups = u.Groups
	}
	svc.attach(c)
}

// options sets the options of a new cluster, other than network and access.
func (c *Cluster) options(in *eks.CreateClusterInput) error {
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
	core.Set(&c.Protected, in.DeletionProtection)
	if in.ZonalShiftConfig != nil {
		core.Set(&c.ZonalShift, in.ZonalShiftConfig.Enabled)
	}
	if s := in.ControlPlaneScalingConfig; s != nil {
		if err := checkTier(s.Tier); err != nil {
			return err
		}
		c.Tier = string(s.Tier)
	}
	if in.RemoteNetworkConfig != nil {
		c.RemoteNodes, c.RemotePods = remoteBlocks(in.RemoteNetworkConfig)
	}
	if in.UpgradePolicy != nil && in.UpgradePolicy.SupportType != "" {
		c.Support = string(in.UpgradePolicy.SupportType)
	}
	return c.checkSupport(c.Support)
}

func (c *Cluster) network(n *types.KubernetesNetworkConfigRequest) error {
	if err := core.Only("CreateCluster", n, "IpFamily", "ServiceIpv4Cidr", "ElasticLoadBalancing"); err != nil {
		return err
	}
	if n.IpFamily == types.IpFamilyIpv6 {
		if n.ServiceIpv4Cidr != nil {
			return invalid("ServiceIpv4Cidr cannot be specified when IpFamily is ipv6")
		}
		c.Family, c.ServiceCIDR = "ipv6", "fd30:1c53:5f8a::/108" // AWS chooses a block in fc00::/7
		return nil
	}
	if n.ServiceIpv4Cidr == nil {
		return nil
	}
	p, err := netip.ParsePrefix(*n.ServiceIpv4Cidr)
	switch {
	case err != nil || !p.Addr().Is4() || p.Masked() != p || p.Bits() < 12 || p.Bits() > 24:
		return invalid("serviceIpv4Cidr %s is not a valid CIDR block of between /12 and /24", *n.ServiceIpv4Cidr)
	case !p.Addr().IsPrivate():
		return invalid("serviceIpv4Cidr %s must be within 10.0.0.0/8, 172.16.0.0/12 or 192.168.0.0/16", *n.ServiceIpv4Cidr)
	}
	c.ServiceCIDR = p.String()
	return nil
}

// logTypes returns the log types of a control plane.
func logTypes() []string {
	return []string{"api", "audit", "authenticator", "controllerManager", "scheduler"}
}

func readLogging(in *types.Logging) (map[string]bool, error) {
	out := map[string]bool{}
	for _, setup := range in.ClusterLogging {
		for _, kind := range setup.Types {
			if _, twice := out[string(kind)]; twice || !slices.Contains(logTypes(), string(kind)) {
				return nil, invalid("the log type %s is unknown or there twice", kind)
			}
			out[string(kind)] = aws.ToBool(setup.Enabled)
		}
	}
	return out, nil
}

func (c *Cluster) loggingOut() *types.Logging {
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

// readEncryption returns the ARN of the key. EKS takes the ARN of an alias, and keeps and shows that of the key that the alias names then
// (https://github.com/kubernetes-sigs/cluster-api-provider-aws/issues/3096). What it says to a name without ARN is not verified.
func (svc *Service) readEncryption(in []types.EncryptionConfig) (key string, err error) {
	switch {
	case len(in) == 0:
		return "", nil
	case len(in) > 1 || !slices.Equal(in[0].Resources, []string{"secrets"}): //nolint:staticcheck // EKS accepts the field and does not use it any more
		return "", invalid("encryptionConfig takes one entry, and only for secrets")
	case in[0].Provider == nil || !strings.HasPrefix(aws.ToString(in[0].Provider.KeyArn), "arn:"):
		return "", invalid("Invalid KMS key ARN")
	}
	named := *in[0].Provider.KeyArn
	if key, err = svc.KeyARN(named); err != nil {
		return "", unusableKey(named, err)
	}
	return key, nil
}

// unusableKey refuses a KMS key: "the KMS key must be … in the same AWS Region as the cluster, and … you must have
// access to it" ("Encrypt Kubernetes secrets with KMS on existing clusters", EKS user guide). The text is not verified.
func unusableKey(key string, why error) error {
	return invalid("The keyArn in encryptionConfig provider, %s, cannot be used: %s", key, why)
}

// beginUpdate starts an update, unless one is in progress.
func (svc *Service) beginUpdate(c *Cluster, kind types.UpdateType, takes time.Duration, u Update) (*types.Update, error) {
	if busy := pending(c.Updates); busy != nil {
		return nil, &types.ResourceInUseException{
			Message: aws.String(fmt.Sprintf("Cannot %s because cluster %s currently has update %s in progress", kind, c.Name, busy.ID)), ClusterName: aws.String(c.Name),
		}
	}
	protection := ""
	if u.Protected != nil {
		protection = strconv.FormatBool(*u.Protected)
	}
	u.Operation = svc.begin(kind, takes, params(map[types.UpdateParamType]string{
		types.UpdateParamTypeVersion: u.Version, types.UpdateParamTypeAuthenticationMode: u.Authentication, types.UpdateParamTypeDeletionProtection: protection,
	})...)
	c.Updates = append(c.Updates, &u)
	return u.out(), nil
}

func (o *Operation) out() *types.Update {
	out := &types.Update{Id: aws.String(o.ID), Type: types.UpdateType(o.Kind), Status: types.UpdateStatusInProgress, CreatedAt: aws.Time(o.Born), Params: o.Params}
	if o.Applied {
		finish(out, o.Failure)
		for i := range out.Errors {
			out.Errors[i].ResourceIds = slices.Clone(o.Of)
		}
	}
	return out
}

// finish sets the outcome of an update.
func finish(u *types.Update, failure string) {
	u.Status = types.UpdateStatusSuccessful
	if failure == string(types.UpdateStatusCancelled) {
		u.Status = types.UpdateStatusCancelled
	}
	if code, message, failed := strings.Cut(failure, ": "); failed {
		u.Status, u.Errors = types.UpdateStatusFailed, []types.ErrorDetail{{ErrorCode: types.ErrorCode(code), ErrorMessage: &message}}
	}
}

// minor returns the minor version.
func minor(version string) int {
	_, m, _ := strings.Cut(version, ".")
	n, _ := strconv.Atoi(m) // versions are valid here
	return n
}

// kubeletSkew is how many minor versions a node may be behind its control plane, by
// Kubernetes' version skew policy since 1.28.
const kubeletSkew = 3

func (svc *Service) updateVersion(in *eks.UpdateClusterVersionInput) (*eks.UpdateClusterVersionOutput, error) {
	c, err := svc.readyCluster(in.Name)
	if err != nil {
		return nil, err
	}
	version := aws.ToString(in.Version)
	switch {
	case !slices.Contains(SupportedVersions(), version):
		return nil, invalid("unsupported Kubernetes version %s", version)
	case version == c.Version:
		return nil, invalid("Cluster is already at Kubernetes version %s", version)
	case minor(version) != minor(c.Version)+1:
		return nil, invalid("Unsupported Kubernetes minor version update from %s to %s", c.Version, version)
	}
	for _, g := range core.ByKey(c.NodeGroups) {
		if g.Kind != customImage && minor(version)-minor(g.Version) > kubeletSkew {
			return nil, &types.InvalidRequestException{Message: aws.String(fmt.Sprintf(
				"Nodegroup(s) %s must be updated to a later Kubernetes version before updating the cluster to %s", g.Name, version)), ClusterName: in.Name}
		}
	}
	if err := c.unready(version); err != nil && !in.Force {
		return nil, err
	}
	u, err := svc.beginUpdate(c, types.UpdateTypeVersionUpdate, VersionTakes, Update{Version: version})
	return &eks.UpdateClusterVersionOutput{Update: u}, err
}

// readyCluster returns the cluster for a call that updates it. In the status UPDATING,
// the error has another code.
func (svc *Service) readyCluster(name *string) (*Cluster, error) {
	c, err := svc.cluster(name)
	if err != nil {
		return nil, err
	}
	if s := c.status(svc.Now()); s != types.ClusterStatusActive && s != types.ClusterStatusUpdating {
		return svc.activeCluster(name)
	}
	return c, nil
}

// updateConfig changes one setting at a time.
func (svc *Service) updateConfig(in *eks.UpdateClusterConfigInput) (*eks.UpdateClusterConfigOutput, error) {
	c, err := svc.readyCluster(in.Name)
	if err != nil {
		return nil, err
	}
	var updates []func() (types.UpdateType, Update, error)
	if in.ResourcesVpcConfig != nil {
		if v := in.ResourcesVpcConfig; v.SubnetIds != nil || v.SecurityGroupIds != nil {
			updates = append(updates, func() (types.UpdateType, Update, error) { return svc.changeNetwork(c, v) })
		} else {
			updates = append(updates, func() (types.UpdateType, Update, error) { return c.changeEndpoint(v) })
		}
	}
	if in.Logging != nil {
		updates = append(updates, func() (types.UpdateType, Update, error) { return c.changeLogging(in.Logging) })
	}
	if in.AccessConfig != nil {
		updates = append(updates, func() (types.UpdateType, Update, error) { return c.changeAccess(in.AccessConfig) })
	}
	if in.UpgradePolicy != nil {
		updates = append(updates, func() (types.UpdateType, Update, error) { return c.changeSupport(in.UpgradePolicy) })
	}
	if in.DeletionProtection != nil {
		updates = append(updates, func() (types.UpdateType, Update, error) {
			return types.UpdateTypeDeletionProtectionUpdate, Update{Protected: in.DeletionProtection}, nil
		})
	}
	if in.ZonalShiftConfig != nil {
		updates = append(updates, func() (types.UpdateType, Update, error) {
			return types.UpdateTypeZonalShiftConfigUpdate, Update{ZonalShift: in.ZonalShiftConfig.Enabled}, nil
		})
	}
	if in.ControlPlaneScalingConfig != nil {
		updates = append(updates, func() (types.UpdateType, Update, error) { return c.changeTier(in.ControlPlaneScalingConfig.Tier) })
	}
	if in.RemoteNetworkConfig != nil {
		updates = append(updates, func() (types.UpdateType, Update, error) { return svc.changeRemote(c, in.RemoteNetworkConfig) })
	}
	if auto := (autoRequest{in.ComputeConfig, in.KubernetesNetworkConfig, in.StorageConfig}); auto.given() {
		updates = append(updates, func() (types.UpdateType, Update, error) { return svc.changeAutoMode(c, auto) })
	}
	if len(updates) != 1 {
		return nil, invalid("Only one type of update can be allowed per call")
	}
	kind, change, err := updates[0]()
	if err != nil {
		return nil, err
	}
	u, err := svc.beginUpdate(c, kind, ConfigTakes, change)
	return &eks.UpdateClusterConfigOutput{Update: u}, err
}

// changeNetwork changes the subnets and the security groups, in a call of their own. The
// subnets must be in exactly the availability zones in which the cluster was created. Both are
// seen by others: github.com/aws-controllers-k8s/eks-controller, pull request 119;
// github.com/aws/containers-roadmap, issue 2258.
func (svc *Service) changeNetwork(c *Cluster, in *types.VpcConfigRequest) (types.UpdateType, Update, error) {
	const kind = types.UpdateTypeVpcConfigUpdate
	if err := core.Only("UpdateClusterConfig", in, "SubnetIds", "SecurityGroupIds"); err != nil {
		return kind, Update{}, err
	}
	if in.SubnetIds != nil {
		zones, err := svc.zonesOf(c, in.SubnetIds)
		if err != nil {
			return kind, Update{}, err
		}
		if before, err := svc.zonesOf(c, c.Subnets); err == nil && !slices.Equal(zones, before) {
			return kind, Update{}, invalid(
				"Provided subnets belong to the AZs '%s'. But they should belong to the exact set of AZs '%s' in which subnets were provided during cluster creation.",
				strings.Join(zones, ","),
				strings.Join(before, ","),
			)
		}
	}
	if _, err := svc.ec2.GroupsFor(c.VPC, in.SecurityGroupIds); err != nil {
		return kind, Update{}, invalid("%s", err)
	}
	return kind, Update{Subnets: slices.Clone(in.SubnetIds), Groups: slices.Clone(in.SecurityGroupIds)}, nil
}

func (c *Cluster) changeEndpoint(in *types.VpcConfigRequest) (types.UpdateType, Update, error) {
	const kind = types.UpdateTypeEndpointAccessUpdate
	if err := core.Only("UpdateClusterConfig", in, "EndpointPublicAccess", "EndpointPrivateAccess", "PublicAccessCidrs"); err != nil {
		return kind, Update{}, err
	}
	e := &Endpoint{c.Public, c.Private, slices.Clone(c.PublicCIDRs)}
	core.Set(&e.Public, in.EndpointPublicAccess)
	core.Set(&e.Private, in.EndpointPrivateAccess)
	if in.PublicAccessCidrs != nil {
		e.CIDRs = slices.Clone(in.PublicAccessCidrs)
	}
	if err := c.checkPublic(e.CIDRs); err != nil {
		return kind, Update{}, err
	}
	switch {
	case !e.Public && !e.Private:
		return kind, Update{}, invalid("Private and public endpoint access cannot be disabled at the same time")
	case e.Public == c.Public && e.Private == c.Private && slices.Equal(e.CIDRs, c.PublicCIDRs):
		return kind, Update{}, invalid(
			"Cluster is already at the desired configuration with endpointPrivateAccess: %v, endpointPublicAccess: %v, and Public Endpoint Restrictions: %v",
			e.Private,
			e.Public,
			e.CIDRs,
		)
	}
	return kind, Update{Endpoint: e}, nil
}

func (c *Cluster) changeLogging(in *types.Logging) (types.UpdateType, Update, error) {
	logging, err := readLogging(in)
	changed := false
	for kind, on := range logging {
		changed = changed || c.Logging[kind] != on
	}
	if err == nil && !changed {
		err = invalid("No changes needed for the logging config provided")
	}
	return types.UpdateTypeLoggingUpdate, Update{Logging: logging}, err
}

// changeAccess changes the authentication mode, only from the ConfigMap to the API.
func (c *Cluster) changeAccess(in *types.UpdateAccessConfigRequest) (types.UpdateType, Update, error) {
	modes := []string{string(types.AuthenticationModeConfigMap), string(types.AuthenticationModeApiAndConfigMap), string(types.AuthenticationModeApi)}
	from, to := slices.Index(modes, c.Authentication), slices.Index(modes, string(in.AuthenticationMode))
	var err error
	switch {
	case to < 0:
		err = invalid("unsupported authentication mode %s", in.AuthenticationMode)
	case to == from:
		err = invalid("Cluster is already at the desired authentication mode")
	case to != from+1:
		err = invalid("Unsupported authentication mode update from %s to %s", c.Authentication, in.AuthenticationMode)
	}
	return types.UpdateTypeAccessConfigUpdate, Update{Authentication: string(in.AuthenticationMode)}, err
}

func (c *Cluster) changeSupport(in *types.UpgradePolicyRequest) (types.UpdateType, Update, error) {
	var err error
	switch {
	case !slices.Contains(in.SupportType.Values(), in.SupportType):
		err = invalid("unsupported support type %s", in.SupportType)
	case string(in.SupportType) == c.Support:
		err = invalid("Cluster is already at the desired upgrade policy")
	default:
		err = c.checkSupport(string(in.SupportType))
	}
	return types.UpdateTypeUpgradePolicyUpdate, Update{Support: string(in.SupportType)}, err
}

// checkSupport refuses to end extended support in it: a cluster can leave it by an upgrade only ("Disable EKS extended
// support", EKS user guide). That CreateCluster refuses it, too, and the text are not verified.
func (c *Cluster) checkSupport(support string) error {
	if support == string(types.SupportTypeStandard) && slices.Contains(extendedVersions(), c.Version) {
		return invalid("The upgrade policy STANDARD is not supported for Kubernetes version %s, which is in extended support", c.Version)
	}
	return nil
}

// checkPublic validates the blocks that may use the public endpoint: 40 at most, without reserved addresses, and of IPv6
// in IPv6 clusters only ("Cluster API server endpoint" and the quotas in the EKS user guide). The texts are not verified.
func (c *Cluster) checkPublic(blocks []string) error {
	if len(blocks) > 40 {
		return invalid("publicAccessCidrs cannot have more than 40 CIDRs")
	}
	for _, block := range blocks {
		p, err := netip.ParsePrefix(block)
		if err != nil {
			return invalid("The CIDR %s in publicAccessCidrs is not valid", block)
		}
		a := p.Addr()
		shared := netip.MustParsePrefix("100.64.0.0/10").Contains(a)
		local := a.IsPrivate() || a.IsLoopback() || a.IsLinkLocalUnicast() || a.IsMulticast() || shared || a.Is4() && (a.As4()[0] == 0 || a.As4()[0] >= 240)
		switch {
		case a.Is6() && c.Family != "ipv6":
			return invalid("IPv6 CIDR %s in publicAccessCidrs of a cluster with the IP family ipv4", block)
		case local && p.Bits() > 0:
			return invalid("The following CIDRs are not allowed in publicAccessCidrs: [%s]", block)
		}
	}
	return nil
}

func (svc *Service) encrypt(in *eks.AssociateEncryptionConfigInput) (*eks.AssociateEncryptionConfigOutput, error) {
	c, err := svc.readyCluster(in.ClusterName)
	if err != nil {
		return nil, err
	}
	key, err := svc.readEncryption(in.EncryptionConfig)
	switch {
	case err != nil:
		return nil, err
	case key == "":
		return nil, invalid("encryptionConfig is required")
	case c.Key != "":
		return nil, invalid("Cluster already has encryption configuration")
	}
	u, err := svc.beginUpdate(c, types.UpdateTypeAssociateEncryptionConfig, EncryptionTakes, Update{Key: key})
	return &eks.AssociateEncryptionConfigOutput{Update: u}, err
}

func (svc *Service) describeUpdate(in *eks.DescribeUpdateInput) (*eks.DescribeUpdateOutput, error) {
	c, err := svc.cluster(in.Name)
	if err != nil {
		return nil, err
	}
	if in.NodegroupName != nil {
		_, g, err := svc.nodeGroup(in.Name, in.NodegroupName)
		if err != nil {
			return nil, err
		}
		if u := updateWith(g.Updates, in.UpdateId); u != nil {
			return &eks.DescribeUpdateOutput{Update: u.out()}, nil
		}
	}
	if in.AddonName != nil {
		_, d, err := svc.addon(in.Name, in.AddonName)
		if err != nil {
			return nil, err
		}
		if u := updateWith(d.Updates, in.UpdateId); u != nil {
			u.Applied = u.Applied || !svc.Now().Before(u.Done)
			return &eks.DescribeUpdateOutput{Update: u.out()}, nil
		}
	}
	if u := updateWith(c.Updates, in.UpdateId); u != nil && in.NodegroupName == nil && in.AddonName == nil {
		return &eks.DescribeUpdateOutput{Update: u.out()}, nil
	}
	return nil, &types.ResourceNotFoundException{Message: aws.String("No update found for ID: " + aws.ToString(in.UpdateId)), ClusterName: in.Name}
}

// listUpdates returns the IDs of the updates of a cluster, a node group or an add-on. EKS does not document their order.
func (svc *Service) listUpdates(in *eks.ListUpdatesInput) (*eks.ListUpdatesOutput, error) {
	c, err := svc.cluster(in.Name)
	if err != nil {
		return nil, err
	}
	var ids []string
	switch {
	case in.NodegroupName != nil:
		_, g, err := svc.nodeGroup(in.Name, in.NodegroupName)
		if err != nil {
			return nil, err
		}
		ids = updateIDs(g.Updates)
	case in.AddonName != nil:
		_, d, err := svc.addon(in.Name, in.AddonName)
		if err != nil {
			return nil, err
		}
		ids = updateIDs(d.Updates)
	default:
		ids = updateIDs(c.Updates)
	}
	part, next, err := page(svc, ids, in.NextToken, in.MaxResults)
	return &eks.ListUpdatesOutput{UpdateIds: part, NextToken: next}, err
}

func updateIDs[U interface{ operation() *Operation }](updates []U) (ids []string) {
	for _, u := range updates {
		ids = append(ids, u.operation().ID)
	}
	slices.Sort(ids)
	return ids
}
