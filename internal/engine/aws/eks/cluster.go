package eks

import (
	"context"
	"encoding/base64"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/eks/types"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/ec2"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/iam"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/identity"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/kind"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/kms"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
	"github.com/clusterawsadm/clusterawsadm/internal/kube"
	"github.com/clusterawsadm/clusterawsadm/internal/text"
	pkgeks "github.com/clusterawsadm/clusterawsadm/pkg/eks"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// Cluster is an EKS cluster (CAPA: AWSManagedControlPlane).
type Cluster struct {
	Name       string
	Version    string // "1.34"; "" is the default version at creation, and any version later
	Role       *graph.Ref[iam.RoleState]
	Subnets    []*graph.Ref[ec2.SubnetState]
	Groups     []*graph.Ref[ec2.SecurityGroupState]
	ClusterTag string // kubernetes.io/cluster/NAME: CAPA sets it to "owned" on clusters that it creates

	Public, Private       *bool                            // endpoint access; nil: as EKS sets it: public, and not private
	PublicCIDRs           []string                         // with public access, sorted; empty: all addresses
	MostPublicBlocks      int                              // how many blocks EKS takes
	NATAddresses          []*graph.Ref[ec2.ElasticIPState] // that may use the public endpoint, too
	IPv6                  bool
	ServiceCIDR           string   // IPv4; "" for the default of EKS
	Logging               []string // enabled log types, sorted
	Key                   string   // ARN of the KMS key for Secrets; "" for a key of EKS
	Authentication        string   // CONFIG_MAP, API_AND_CONFIG_MAP or API; "" for the default of EKS
	MovesToAPI            bool     // Authentication changes the mode to API when all access entries exist
	CreatorIsAdmin        *bool
	Zones                 []string // of the subnets of an existing cluster, sorted
	SkipSelfManagedAddons bool     // EKS does not install the VPC CNI, CoreDNS and kube-proxy
	Support               string   // EXTENDED or STANDARD; "": not changed
	DeletionProtection    *bool    // EKS does not delete the cluster; nil: not changed
	ZonalShift            *bool    // ARC may move its traffic away from a zone; nil: not changed
	Tier                  string   // of the control plane: "standard", "tier-xl", …; "": not changed
	Remote                *RemoteNetworks
	Auto                  *AutoMode // EKS Auto Mode; nil: not changed
	ForceUpgrade          bool      // upgrade also if EKS has an insight with an error
	Adopt                 bool      // the cluster may exist without an owned tag: it gets one
	Tags                  cloud.Tags
}

// ClusterState is an EKS cluster, as AWS describes it.
type ClusterState struct {
	identity.Object                   // the ID is its ARN
	Name, Status, Version             string
	Endpoint, CA, Issuer, ServiceCIDR string // "" until it is active
	RoleARN, VPC, Group               string // Group is the cluster security group
	Subnets, Groups, PublicCIDRs      []string
	Public, Private, IPv6             bool
	Logging                           []string
	Key, Authentication, Support      string
	DeletionProtection, ZonalShift    bool
	Tier                              string // of the control plane; "" if EKS does not return it
	Remote                            RemoteNetworks
	Auto                              AutoModeState
	OutdatedNodeGroup                 string // a node group with a version that is too old for the desired version
	lastUpdate
	ongoing ongoing
	Created time.Time
	Issues  []string // "CODE: message"
}

// Failure implements graph.Failing.
func (s ClusterState) Failure() string {
	if s.Status == string(types.ClusterStatusFailed) {
		return condition(s.Status, s.Issues)
	}
	return ""
}

// Deleting implements graph.Deleting.
func (s ClusterState) Deleting() bool { return s.Status == string(types.ClusterStatusDeleting) }

var (
	_ graph.Managed[ClusterState]  = (*Cluster)(nil)
	_ graph.Follower[ClusterState] = (*Cluster)(nil)
	_ graph.Timed                  = (*Cluster)(nil)
	_ graph.UpdateTimed            = (*Cluster)(nil)
)

// Needs implements graph.Desired.
func (e *Cluster) Needs() []graph.Edge {
	needs := graph.On(e.Role)
	for _, a := range e.NATAddresses {
		needs = append(needs, graph.Reads(a)...)
	}
	if e.Auto != nil && e.Auto.Role != nil {
		needs = append(needs, graph.On(e.Auto.Role)...)
	}
	for _, s := range e.Subnets {
		needs = append(needs, graph.Exists(s)...)
	}
	for _, g := range e.Groups {
		needs = append(needs, graph.Exists(g)...)
	}
	return needs
}

// Takes implements graph.Timed.
func (e *Cluster) Takes() (create, remove time.Duration) { return clusterCreateTime, clusterDeleteTime }

// Find implements graph.Desired. It returns an error for a cluster with the same name
// that is not owned.
func (e *Cluster) Find(ctx context.Context, c *cloud.Clients) (*ClusterState, error) {
	return e.find(ctx, c, lastUpdate{})
}

// find reads the cluster, and what an update changes that this run has not started.
func (e *Cluster) find(ctx context.Context, c *cloud.Clients, own lastUpdate) (*ClusterState, error) {
	s, err := e.Identify(ctx, c, nil)
	if s == nil || err != nil {
		return nil, err
	}
	have := *s
	if have.OutdatedNodeGroup, err = e.outdatedNodeGroup(ctx, c, s); err != nil {
		return nil, err
	}
	have.ongoing, err = own.ongoing(ctx, c, have.Status, eks.DescribeUpdateInput{Name: &have.Name})
	return &have, err
}

// Identify implements graph.Identified.
func (e *Cluster) Identify(ctx context.Context, c *cloud.Clients, _ *ClusterState) (*ClusterState, error) {
	s, err := ClusterByName(ctx, c, e.Name)
	switch {
	case s == nil || err != nil:
		return nil, err
	case !e.Adopt && s.Tags[e.ClusterTag] != cloud.Owned && s.Tags[c.OwnerTag()] != cloud.Owned:
		return nil, fmt.Errorf(
			"an EKS cluster named %s exists that does not have the tag %s=%s: add the tag if it is this cluster (%s), "+
				"or set another name in spec.eksClusterName",
			e.Name,
			e.ClusterTag,
			cloud.Owned,
			cloud.TagCommand(s.ID, e.ClusterTag, cloud.Owned),
		)
	}
	return e.withAlias(ctx, c, s)
}

// withAlias returns the state with the alias of the manifest if that names the key of the cluster. EKS shows the key, and not the alias
// with which it was named.
func (e *Cluster) withAlias(ctx context.Context, c *cloud.Clients, s *ClusterState) (*ClusterState, error) {
	if same, err := kms.Names(ctx, c, e.Key, s.Key); !same || err != nil {
		return s, err
	}
	have := *s
	have.Key = e.Key
	return &have, nil
}

// Follow implements graph.Follower. An update that has failed is an error.
func (e *Cluster) Follow(ctx context.Context, c *cloud.Clients, last *ClusterState) (*ClusterState, error) {
	s, err := e.find(ctx, c, last.lastUpdate)
	return followCluster(ctx, c, s, err, last)
}

// followCluster adds the ID of the last update to the state of a cluster while it is in progress.
func followCluster(ctx context.Context, c *cloud.Clients, s *ClusterState, err error, last *ClusterState) (*ClusterState, error) {
	if s == nil || err != nil {
		return s, err
	}
	have := *s
	have.lastUpdate, err = last.follow(ctx, c, have.Status, eks.DescribeUpdateInput{Name: &have.Name})
	return &have, err
}

// lastUpdate is the last update that this run has started.
type lastUpdate struct {
	Update string // its ID while it is in progress
	Ended  bool   // EKS has ended it, and reports no failure
}

// Updated implements graph.Finishing.
func (u lastUpdate) Updated() bool { return u.Ended }

// begun returns an update that has begun.
func begun(u *types.Update) lastUpdate {
	if u == nil {
		return lastUpdate{}
	}
	return lastUpdate{Update: aws.ToString(u.Id)}
}

// follow returns the update as it is now, and an error if it has failed. Only DescribeUpdate tells:
// after a failed update, the status is ACTIVE again. hints add to the errors what else is known about them.
func (u lastUpdate) follow(
	ctx context.Context,
	c *cloud.Clients,
	status string,
	of eks.DescribeUpdateInput,
	hints ...func(context.Context, *cloud.Clients, types.ErrorDetail) string,
) (lastUpdate, error) {
	if u.Update == "" || status == string(types.ClusterStatusUpdating) {
		return u, nil
	}
	of.UpdateId = &u.Update
	out, err := c.EKS.DescribeUpdate(ctx, &of)
	if err != nil || out.Update == nil {
		return lastUpdate{}, cloud.IgnoreNotFound(err)
	}
	switch out.Update.Status {
	case types.UpdateStatusInProgress:
		return u, nil
	case types.UpdateStatusFailed, types.UpdateStatusCancelled:
		var why []string
		for _, e := range out.Update.Errors {
			line := failedUpdate(e)
			for _, hint := range hints {
				line += hint(ctx, c, e)
			}
			why = append(why, line)
		}
		return lastUpdate{}, &graph.FailedError{Reason: "update " + strings.ToLower(string(out.Update.Status)) + text.Prefixed(": ", strings.Join(why, "; "))}
	case types.UpdateStatusSuccessful:
		return lastUpdate{Ended: true}, nil
	}
	return lastUpdate{}, nil
}

// ZonesWithout returns the IDs of the availability zones in which EKS does not place control
// planes ("Subnet requirements for clusters", EKS user guide).
func ZonesWithout() []string { return []string{"use1-az3", "usw1-az2", "cac1-az3"} }

// kubeletSkew is the number of minor versions by which nodes may be older than their
// control plane (Kubernetes version skew policy since 1.28).
const kubeletSkew = 3

// outdatedNodeGroup returns the name of a node group that is too old for the desired
// version of the control plane. EKS would reject the upgrade only after some minor
// versions.
func (e *Cluster) outdatedNodeGroup(ctx context.Context, c *cloud.Clients, have *ClusterState) (string, error) {
	if minor(e.Version) <= minor(have.Version) {
		return "", nil
	}
	names, err := nodeGroupNames(ctx, c, e.Name)
	for _, name := range names {
		g, err := NodeGroupByName(ctx, c, e.Name, name)
		if err != nil {
			return "", err
		}
		if g != nil && g.Version != "" && minor(e.Version)-minor(g.Version) > kubeletSkew {
			return fmt.Sprintf("%s with node group %s of %s", have.Version, name, g.Version), nil
		}
	}
	return "", err
}

// Diff implements graph.Desired. EKS accepts one change at a time: Update makes the first
// one; when it is complete, Diff returns the others.
func (e *Cluster) Diff(have *ClusterState) (d plan.Diff) {
	if have.Status == string(types.ClusterStatusFailed) {
		d.Fixed("status", have.Failure(), string(types.ClusterStatusActive))
		d.Advise("EKS could not create it; delete the cluster and create it again")
		return d
	}
	d.Await("status", have.Status, string(types.ClusterStatusActive))
	d.Fixed("ipFamily", family(have.IPv6), family(e.IPv6))
	if e.ServiceCIDR != "" {
		d.Fixed("serviceCIDR", have.ServiceCIDR, e.ServiceCIDR)
	}
	fixedRole("role", have.RoleARN, e.Role, &d)
	e.diffNetwork(have, &d)
	e.diffCreation(have, &d)
	e.diffVersion(have, &d)
	e.diffAccess(have, &d)
	d.Lines("logging", have.Logging, e.Logging)
	switch {
	case have.Key == "" && e.Key != "":
		d.Set("encryptionKey", "", e.Key)
	case have.Key != "":
		d.Fixed("encryptionKey", have.Key, e.Key)
	}
	if e.Support != "" && (have.Support != "" || have.ID == "") { // emulators do not return it
		d.Set("upgradePolicy", have.Support, e.Support)
	}
	if e.DeletionProtection != nil {
		d.Set("deletionProtection", have.DeletionProtection, *e.DeletionProtection)
	}
	if e.ZonalShift != nil {
		d.Set("zonalShift", have.ZonalShift, *e.ZonalShift)
	}
	e.diffScaling(have, &d)
	e.diffAutoMode(have, &d)
	d.Advise("set the existing value in the manifest, or create another cluster")
	if have.ID == "" {
		d.Tags(nil, e.creationTags())
		return d
	}
	d.Tags(have.Tags, e.Tags)
	return d
}

// diffNetwork compares the subnets and the security groups. EKS accepts only subnets in the
// VPC and the zones in which it has created the cluster.
func (e *Cluster) diffNetwork(have *ClusterState, d *plan.Diff) {
	const advice = "EKS keeps the availability zones in which it has created a cluster: keep subnets in all of them and in no others, or create another cluster"
	zones, before := map[string]bool{}, map[string]bool{}
	vpc := have.VPC
	for _, ref := range e.Subnets {
		zone, in := "", have.VPC
		if s, ok := ref.Found(); ok {
			zone, in = s.Zone, s.VPC
			before[zone] = before[zone] || slices.Contains(have.Subnets, s.ID)
		} else if s, ok := ref.Desired().(*ec2.Subnet); ok {
			zone, in = s.Zone, s.VPC.CloudID()
		}
		zones[zone] = true
		if in != have.VPC {
			vpc = in
		}
	}
	if have.ID != "" { // UpdateClusterConfig: "Subnets specified must belong to the same VPC"
		d.FixedID("vpc", have.VPC, vpc, "EKS keeps the VPC in which it has created a cluster: name it again, or create another cluster")
	}
	want := identity.CloudIDs(e.Subnets)
	known := !slices.ContainsFunc(have.Subnets, func(id string) bool { return !slices.Contains(want, id) })
	for _, zone := range slices.Sorted(maps.Keys(zones)) {
		if known && have.ID != "" && !before[zone] {
			d.Fixed("zone", "", zone, advice)
		}
	}
	for _, zone := range e.Zones {
		if !zones[zone] {
			d.Fixed("zone", zone, "", advice)
		}
	}
	d.Lines("subnet", have.Subnets, want)
	d.Lines("securityGroup", have.Groups, identity.CloudIDs(e.Groups))
}

func family(ipv6 bool) string {
	if ipv6 {
		return "ipv6"
	}
	return "ipv4"
}

func (e *Cluster) diffVersion(have *ClusterState, d *plan.Diff) {
	if have.OutdatedNodeGroup != "" {
		d.Fixed("version", have.OutdatedNodeGroup, e.Version)
		d.Advise(fmt.Sprintf("nodes may be %d minor versions older than the control plane: upgrade both in smaller steps", kubeletSkew))
		return
	}
	diffVersion(d, have.ID != "", have.Version, have.ongoing.version, e.Version, "spec.version of the AWSManagedControlPlane")
}

// diffVersion compares the Kubernetes versions of a cluster or a node group. EKS upgrades
// one minor version at a time, so there is a difference for each. It does not downgrade. target is the version of an upgrade in progress; "" for none.
func diffVersion(d *plan.Diff, exists bool, have, target, want, field string) {
	have = after(have, target)
	from, to := minor(have), minor(want)
	switch {
	case want == "":
		return
	case !exists:
		d.Set("version", "", want)
		return
	case from > to:
		d.Fixed("version", have, want)
		adviseOngoing(d, target, field)
		d.Advise("EKS does not downgrade; set " + field + " to " + have)
	}
	for v := from; v < to; v++ {
		d.Set("version", fmt.Sprintf("1.%d", v), fmt.Sprintf("1.%d", v+1))
	}
}

// minor returns the minor version; -1 if there is none.
func minor(version string) int {
	_, text, _ := strings.Cut(strings.TrimPrefix(version, "v"), ".")
	text, _, _ = strings.Cut(text, ".")
	n, err := strconv.Atoi(text)
	if err != nil {
		return -1
	}
	return n
}

// authenticationModes lists the modes in the only order in which EKS can change them.
func authenticationModes() []string {
	return []string{string(types.AuthenticationModeConfigMap), string(types.AuthenticationModeApiAndConfigMap), string(types.AuthenticationModeApi)}
}

func (e *Cluster) diffAccess(have *ClusterState, d *plan.Diff) {
	public, private := e.access()
	d.Set("endpointAccess.public", have.Public, public)
	d.Set("endpointAccess.private", have.Private, private)
	if e.publicToAll() {
		d.Lines("endpointAccess.publicCIDRs", slices.DeleteFunc(slices.Clone(have.PublicCIDRs), ec2.IsAnywhere), nil)
	} else {
		d.Lines("endpointAccess.publicCIDRs", have.PublicCIDRs, e.PublicBlocks())
	}
	switch {
	case e.Authentication == "":
		return
	case have.Authentication == "":
		if have.ID == "" {
			d.Set("authenticationMode", "", e.Authentication)
		}
		return
	}
	mode := after(have.Authentication, have.ongoing.authentication)
	if e.MovesToAPI && mode == string(types.AuthenticationModeApi) {
		return
	}
	modes := authenticationModes()
	from, to := slices.Index(modes, mode), slices.Index(modes, e.Authentication)
	if from > to {
		d.Fixed("authenticationMode", mode, e.Authentication)
		adviseOngoing(d, have.ongoing.authentication, "accessConfig.authenticationMode")
		d.Advise("EKS does not change the authentication mode back; set accessConfig.authenticationMode to the existing mode")
	}
	for i := from; i >= 0 && i < to; i++ {
		d.Set("authenticationMode", modes[i], modes[i+1])
	}
}

// access returns whether the endpoint of the API server has public access, and whether it has private access. By default it has only public
// access, as in EKS and CAPA (reconcileVpcConfig in pkg/cloud/services/eks/cluster.go of CAPA v2.13.0).
func (e *Cluster) access() (public, private bool) {
	return e.Public == nil || *e.Public, e.Private != nil && *e.Private
}

// PublicBlocks lists the blocks that may use the public endpoint: those of the manifest, and the addresses of the NAT
// gateways, which are plan.Unknown before they exist.
func (e *Cluster) PublicBlocks() []string {
	all := slices.Clone(e.PublicCIDRs)
	for _, ref := range e.NATAddresses {
		if a, known := ref.Found(); known && a.PublicIP != "" {
			all = append(all, ec2.HostBlock(a.PublicIP))
		} else {
			all = append(all, plan.Unknown)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func (e *Cluster) publicToAll() bool {
	return !slices.ContainsFunc(e.PublicCIDRs, func(b string) bool { return !ec2.IsAnywhere(b) })
}

// Create implements graph.Creator.
func (e *Cluster) Create(ctx context.Context, c *cloud.Clients) (*ClusterState, error) {
	in := &eks.CreateClusterInput{
		Name: &e.Name, RoleArn: aws.String(e.Role.CloudID()), Tags: e.creationTags(),
		ResourcesVpcConfig: &types.VpcConfigRequest{
			SubnetIds: identity.CloudIDs(e.Subnets), SecurityGroupIds: identity.CloudIDs(e.Groups), EndpointPublicAccess: e.Public, EndpointPrivateAccess: e.Private,
		},
		KubernetesNetworkConfig: e.networkConfig(), Logging: logging(e.Logging, nil), EncryptionConfig: e.encryption(),
		BootstrapSelfManagedAddons: aws.Bool(!e.SkipSelfManagedAddons), DeletionProtection: e.DeletionProtection, ZonalShiftConfig: e.zonalShift(),
		ClientRequestToken: c.Token("eks-cluster", e.Name, e.Role.CloudID(), strings.Join(identity.CloudIDs(e.Subnets), ",")),
	}
	if !e.publicToAll() {
		in.ResourcesVpcConfig.PublicAccessCidrs = e.PublicBlocks()
	}
	if e.Version != "" {
		in.Version = &e.Version
	}
	if e.Authentication != "" || e.CreatorIsAdmin != nil {
		in.AccessConfig = &types.CreateAccessConfigRequest{
			AuthenticationMode: types.AuthenticationMode(e.Authentication), BootstrapClusterCreatorAdminPermissions: e.CreatorIsAdmin,
		}
	}
	if e.Support != "" {
		in.UpgradePolicy = &types.UpgradePolicyRequest{SupportType: types.SupportType(e.Support)}
	}
	if e.Tier != "" {
		in.ControlPlaneScalingConfig = &types.ControlPlaneScalingConfig{Tier: types.ProvisionedControlPlaneTier(e.Tier)}
	}
	if e.Remote != nil && len(e.Remote.Nodes) > 0 {
		in.RemoteNetworkConfig = e.Remote.request()
	}
	e.createAutoMode(in)
	out, err := c.EKS.CreateCluster(ctx, in)
	if err != nil {
		return nil, err
	}
	s := clusterState(out.Cluster)
	s.Tags = e.creationTags()
	return e.withAlias(ctx, c, &s)
}

func (e *Cluster) zonalShift() *types.ZonalShiftConfigRequest {
	if e.ZonalShift == nil {
		return nil
	}
	return &types.ZonalShiftConfigRequest{Enabled: e.ZonalShift}
}

func (e *Cluster) networkConfig() *types.KubernetesNetworkConfigRequest {
	switch {
	case e.IPv6:
		return &types.KubernetesNetworkConfigRequest{IpFamily: types.IpFamilyIpv6}
	case e.ServiceCIDR != "":
		return &types.KubernetesNetworkConfigRequest{ServiceIpv4Cidr: &e.ServiceCIDR}
	}
	return nil
}

func (e *Cluster) encryption() []types.EncryptionConfig {
	if e.Key == "" {
		return nil
	}
	return []types.EncryptionConfig{{Provider: &types.Provider{KeyArn: &e.Key}, Resources: []string{"secrets"}}}
}

// logging returns the configuration that enables and disables log types.
func logging(on, off []string) *types.Logging {
	setup := func(names []string, enabled bool) (out []types.LogSetup) {
		if len(names) == 0 {
			return nil
		}
		s := types.LogSetup{Enabled: aws.Bool(enabled)}
		for _, n := range names {
			s.Types = append(s.Types, types.LogType(n))
		}
		return []types.LogSetup{s}
	}
	all := append(setup(on, true), setup(off, false)...)
	if len(all) == 0 {
		return nil
	}
	return &types.Logging{ClusterLogging: all}
}

// Update implements graph.Updater. It makes the first change only: EKS rejects another
// update while one is in progress.
func (e *Cluster) Update(ctx context.Context, c *cloud.Clients, have *ClusterState, d plan.Diff) (*ClusterState, error) {
	after := *have
	if d.HasTags() {
		var err error
		after.Object, err = changeTags(ctx, c, have.Object, e.Tags, d)
		return &after, err
	}
	update, err := e.updateFirst(ctx, c, d)
	if err != nil {
		return nil, err
	}
	after.Status, after.lastUpdate = string(types.ClusterStatusUpdating), begun(update)
	return &after, nil
}

// updateFirst makes the call for the first difference.
func (e *Cluster) updateFirst(ctx context.Context, c *cloud.Clients, d plan.Diff) (*types.Update, error) {
	switch fields := e.first(d); {
	case slices.Contains(fields, "version"):
		out, err := c.EKS.UpdateClusterVersion(ctx, &eks.UpdateClusterVersionInput{
			Name: &e.Name, Version: aws.String(nextValue(d, "version")), Force: e.ForceUpgrade,
		})
		if err != nil {
			return nil, err
		}
		return out.Update, nil
	case slices.Contains(fields, "encryptionKey"):
		out, err := c.EKS.AssociateEncryptionConfig(ctx, &eks.AssociateEncryptionConfigInput{ClusterName: &e.Name, EncryptionConfig: e.encryption()})
		if err != nil {
			return nil, err
		}
		return out.Update, nil
	default:
		out, err := c.EKS.UpdateClusterConfig(ctx, e.configUpdate(fields, d))
		if err != nil {
			return nil, err
		}
		return out.Update, nil
	}
}

// configUpdate returns the request that changes some fields: one of configGroups, or the upgrade policy.
func (e *Cluster) configUpdate(fields []string, d plan.Diff) *eks.UpdateClusterConfigInput {
	in := &eks.UpdateClusterConfigInput{Name: &e.Name}
	if len(fields) == 0 {
		return in
	}
	switch fields[0] {
	case "subnet":
		in.ResourcesVpcConfig = &types.VpcConfigRequest{SubnetIds: identity.CloudIDs(e.Subnets), SecurityGroupIds: identity.CloudIDs(e.Groups)}
	case "endpointAccess.public":
		public, private := e.access()
		in.ResourcesVpcConfig = &types.VpcConfigRequest{EndpointPublicAccess: &public, EndpointPrivateAccess: &private, PublicAccessCidrs: e.PublicBlocks()}
		if e.publicToAll() {
			in.ResourcesVpcConfig.PublicAccessCidrs = []string{ec2.AnywhereIPv4}
		}
	case "authenticationMode":
		in.AccessConfig = &types.UpdateAccessConfigRequest{AuthenticationMode: types.AuthenticationMode(nextValue(d, "authenticationMode"))}
	case "deletionProtection":
		in.DeletionProtection = e.DeletionProtection
	case "zonalShift":
		in.ZonalShiftConfig = e.zonalShift()
	case "controlPlaneTier":
		in.ControlPlaneScalingConfig = &types.ControlPlaneScalingConfig{Tier: types.ProvisionedControlPlaneTier(e.Tier)}
	case "remoteNodeNetwork":
		in.RemoteNetworkConfig = e.Remote.request()
	case "autoMode":
		in.ComputeConfig, in.StorageConfig = e.Auto.compute(), e.Auto.storage()
		in.KubernetesNetworkConfig = &types.KubernetesNetworkConfigRequest{ElasticLoadBalancing: e.Auto.loadBalancing()}
	case "logging":
		in.Logging = logging(d.Added("logging"), d.Removed("logging"))
	case "upgradePolicy":
		in.UpgradePolicy = &types.UpgradePolicyRequest{SupportType: types.SupportType(e.Support)}
	}
	return in
}

// nextValue returns the desired value of the first difference of a field.
func nextValue(d plan.Diff, field string) string {
	for _, change := range d {
		if change.Field == field {
			return change.Want
		}
	}
	return ""
}

// Delete implements graph.Deleter. It first deletes the network interfaces that the VPC CNI
// left behind in the cluster security group: EKS deletes the group with the cluster if
// nothing uses it. Once the cluster is gone, the group cannot be found by the name of the
// Cluster object.
func (e *Cluster) Delete(ctx context.Context, c *cloud.Clients, have *ClusterState) error {
	if have.Deleting() {
		return nil
	}
	if have.Group != "" { // it has none before it is active
		if err := ec2.DeleteFreeInterfaces(ctx, c, have.Group); err != nil {
			return err
		}
	}
	_, err := c.EKS.DeleteCluster(ctx, &eks.DeleteClusterInput{Name: &have.Name})
	return err
}

// How long EKS usually takes to create, to change and to delete a cluster.
const (
	clusterCreateTime  = 9 * time.Minute
	clusterUpgradeTime = 9 * time.Minute
	clusterConfigTime  = 2 * time.Minute
	clusterDeleteTime  = 3 * time.Minute

	clusterEncryptionTime = 15 * time.Minute
)

// UpdateTakes implements graph.UpdateTimed.
func (e *Cluster) UpdateTakes(d plan.Diff) time.Duration {
	switch fields := e.first(d); {
	case d.HasTags():
		return clusterConfigTime
	case slices.Contains(fields, "version"):
		return clusterUpgradeTime
	case slices.Contains(fields, "encryptionKey"):
		return clusterEncryptionTime
	}
	return clusterConfigTime
}

// UpdatesTake implements graph.UpdateTimed. An update that somebody else has started comes first.
func (e *Cluster) UpdatesTake(have graph.State, d plan.Diff) (all time.Duration) {
	if s, _ := have.(*ClusterState); d.Has("status") && s != nil {
		all = clusterConfigTime
		switch {
		case s.Status == string(types.ClusterStatusCreating):
			all = clusterCreateTime
		case s.ongoing.version != "":
			all = clusterUpgradeTime
		}
	}
	for d = slices.DeleteFunc(slices.Clone(d), plan.Change.IsTag); ; {
		fields := e.first(d)
		if fields == nil {
			return all
		}
		all += e.UpdateTakes(d)
		d = without(d, fields)
	}
}

// without returns the differences that an update of these fields leaves. EKS changes a version, and the authentication mode, step by step.
func without(d plan.Diff, fields []string) (left plan.Diff) {
	first := true
	for _, c := range d {
		steps := c.Field == "version" || c.Field == "authenticationMode"
		if !slices.Contains(fields, c.Field) || steps && !first {
			left = append(left, c)
			continue
		}
		first = false
	}
	return left
}

// first returns the fields that the next update changes; nil for none. The upgrade policy STANDARD comes after an
// upgrade: EKS does not take it for a version in extended support.
func (e *Cluster) first(d plan.Diff) []string {
	groups := configGroups()
	policy, version := []string{"upgradePolicy"}, []string{"version"}
	if e.Support == string(types.SupportTypeStandard) {
		groups = append(groups, version, policy)
	} else {
		groups = append(groups, policy, version)
	}
	for _, fields := range append(groups, []string{"encryptionKey"}) {
		if d.Has(fields...) {
			return fields
		}
	}
	return nil
}

// configGroups are the fields that each call of UpdateClusterConfig changes, in the order of the calls, which come before an upgrade.
func configGroups() [][]string {
	return [][]string{
		{"subnet", "securityGroup"}, // not together with another change
		{"endpointAccess.public", "endpointAccess.private", "endpointAccess.publicCIDRs"},
		{"authenticationMode"},
		{"deletionProtection"},
		{"zonalShift"},
		{"controlPlaneTier"},
		{"remoteNodeNetwork", "remotePodNetwork"},
		{"autoMode", "nodePool"},
		{"logging"},
	}
}

// ClusterByName returns a cluster, or nil.
func ClusterByName(ctx context.Context, c *cloud.Clients, name string) (*ClusterState, error) {
	return cloud.Remember(ctx, c, "EKS cluster "+name, func(ctx context.Context) (*ClusterState, error) {
		out, err := c.EKS.DescribeCluster(ctx, &eks.DescribeClusterInput{Name: &name})
		if err != nil {
			return nil, cloud.IgnoreNotFound(err)
		}
		s := clusterState(out.Cluster)
		return &s, nil
	})
}

func clusterState(x *types.Cluster) ClusterState {
	s := ClusterState{
		DeletionProtection: aws.ToBool(x.DeletionProtection),
		ZonalShift:         x.ZonalShiftConfig != nil && aws.ToBool(x.ZonalShiftConfig.Enabled),
		Object: identity.Object{
			ID:   aws.ToString(x.Arn),
			Tags: x.Tags,
		},
		Name:     aws.ToString(x.Name),
		Status:   string(x.Status),
		Version:  aws.ToString(x.Version),
		Endpoint: aws.ToString(x.Endpoint),
		RoleARN:  aws.ToString(x.RoleArn),
	}
	if v := x.ResourcesVpcConfig; v != nil {
		s.VPC, s.Group, s.Subnets, s.Groups = aws.ToString(v.VpcId), aws.ToString(v.ClusterSecurityGroupId), v.SubnetIds, v.SecurityGroupIds
		s.Public, s.Private, s.PublicCIDRs = v.EndpointPublicAccess, v.EndpointPrivateAccess, v.PublicAccessCidrs
	}
	if n := x.KubernetesNetworkConfig; n != nil {
		s.IPv6, s.ServiceCIDR = n.IpFamily == types.IpFamilyIpv6, aws.ToString(n.ServiceIpv4Cidr)
		if s.IPv6 {
			s.ServiceCIDR = aws.ToString(n.ServiceIpv6Cidr)
		}
	}
	s.readScaling(x)
	s.Auto = autoModeState(x)
	s.Created = aws.ToTime(x.CreatedAt)
	if x.Health != nil {
		for _, i := range x.Health.Issues {
			s.Issues = append(s.Issues, string(i.Code)+": "+aws.ToString(i.Message))
		}
	}
	s.Logging = enabledLogs(x.Logging)
	for _, k := range x.EncryptionConfig {
		if k.Provider != nil {
			s.Key = aws.ToString(k.Provider.KeyArn)
		}
	}
	if x.AccessConfig != nil {
		s.Authentication = string(x.AccessConfig.AuthenticationMode)
	}
	if x.UpgradePolicy != nil {
		s.Support = string(x.UpgradePolicy.SupportType)
	}
	if x.CertificateAuthority != nil {
		s.CA = aws.ToString(x.CertificateAuthority.Data)
	}
	if x.Identity != nil && x.Identity.Oidc != nil {
		s.Issuer = aws.ToString(x.Identity.Oidc.Issuer)
	}
	return s
}

// enabledLogs lists the enabled log types.
func enabledLogs(x *types.Logging) (out []string) {
	if x == nil {
		return nil
	}
	for _, l := range x.ClusterLogging {
		for _, t := range l.Types {
			if aws.ToBool(l.Enabled) {
				out = append(out, string(t))
			}
		}
	}
	slices.Sort(out)
	return out
}

// SecurityGroup implements ec2.SecurityGroupOwner with the cluster security group.
func (s ClusterState) SecurityGroup() string { return s.Group }

// Client returns a client for the API server of an EKS cluster.
func (s ClusterState) Client(c *cloud.Clients) (*kube.Client, error) {
	return c.API(s.Endpoint, func() (kube.Access, error) {
		ca, err := base64.StdEncoding.DecodeString(s.CA)
		return kube.Access{Server: s.Endpoint, CA: ca, Token: pkgeks.Tokens(c.Config, s.Name)}, err
	})
}

// ClusterKind is the kind of EKS clusters.
const ClusterKind = "eks-cluster"

// clusterKind declares EKS clusters.
func clusterKind() *kind.Kind {
	return kind.Of(kind.Kind{
		Name:       ClusterKind,
		Rehearsed:  true,
		Area:       plan.AreaControlPlane,
		ByNameOnly: true,
		ReadActions: []string{
			"eks:DescribeCluster",
			"eks:DescribeClusterVersions",
			"eks:DescribeInsight",
			"eks:DescribeUpdate",
			"eks:ListClusters",
			"eks:ListInsights",
			"eks:ListUpdates",
		},
		Statement: kind.EKS,
		Actions: []string{
			"eks:AssociateEncryptionConfig",
			"eks:CreateCluster",
			"eks:DeleteCluster",
			"eks:TagResource", "eks:UntagResource",
			"eks:UpdateClusterConfig",
			"eks:UpdateClusterVersion",
		},
		Quota: &kind.Quota{Service: "eks", Code: "L-1194D53C", Name: "EKS clusters", Default: 100, Used: countClusters},
	}, kind.Functions[ClusterState]{
		List: ownedClusters, Delete: &Cluster{},
		ID: func(ClusterState) plan.ID { return ClusterKind },
		Find: func(ctx context.Context, c *cloud.Clients, s ClusterState) (*ClusterState, error) {
			return ClusterByName(ctx, c, s.Name)
		},
		Refers: func(s ClusterState) []string {
			return slices.Concat([]string{s.RoleARN, ec2.InterfacesAlias(s.VPC)}, s.Subnets, s.Groups)
		},
		Aliases:    func(s ClusterState) []string { return []string{clusterAlias(s.Name), issuerAlias(s.Issuer)} },
		OwnerOf:    func(s ClusterState) kind.Owner { return kind.Owner{Kubernetes: s.Name, EKS: true} },
		Protection: protection,
		Status: func(s ClusterState) (state, detail string) {
			return strings.ToLower(s.Status), kind.Join(s.ongoing.shown(s.Version), s.Endpoint)
		},
	})
}

// clusterAlias returns the alias by which the parts of a cluster refer to it.
func clusterAlias(name string) string { return "EKS cluster " + name }

// issuerAlias returns the alias by which the OIDC provider refers to the cluster.
func issuerAlias(url string) string { return "issuer " + strings.TrimPrefix(url, "https://") }

// Names lists the names of the EKS clusters in the region.
func Names(ctx context.Context, c *cloud.Clients) ([]string, error) {
	return cloud.Remember(ctx, c, "EKS clusters", func(ctx context.Context) ([]string, error) {
		p := eks.NewListClustersPaginator(c.EKS, &eks.ListClustersInput{})
		return cloud.Pages(ctx, p, func(o *eks.ListClustersOutput) []string { return o.Clusters })
	})
}

// countClusters returns the number of EKS clusters in the region.
func countClusters(ctx context.Context, c *cloud.Clients) (map[string]int, error) {
	all, err := Names(ctx, c)
	return map[string]int{"": len(all)}, err
}

func ownedClusters(ctx context.Context, c *cloud.Clients, _ kind.Owner) (out []ClusterState, err error) {
	names, err := Names(ctx, c)
	for _, name := range names {
		s, err := ClusterByName(ctx, c, name)
		if err != nil {
			return nil, err
		}
		if s != nil && s.IsOwned(c) {
			out = append(out, *s)
		}
	}
	return out, err
}

// Tagged returns the EKS cluster with the owned tag, or nil.
func Tagged(ctx context.Context, c *cloud.Clients) (*ClusterState, error) {
	all, err := ownedClusters(ctx, c, kind.Owner{})
	if len(all) == 0 {
		return nil, err
	}
	return &all[0], nil
}
