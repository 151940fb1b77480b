package eks

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/eks/types"
	expinfrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/exp/api/v1beta2"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/autoscaling"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/ec2"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/iam"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/identity"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/kind"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
	"github.com/clusterawsadm/clusterawsadm/internal/kube"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// NodeGroup is a managed node group (CAPA: AWSManagedMachinePool).
type NodeGroup struct {
	Cluster *graph.Ref[ClusterState]
	Name    string
	Role    *graph.Ref[iam.RoleState]
	Subnets []*graph.Ref[ec2.SubnetState]

	Version          string // "1.34"; "" is the cluster's version at creation, and any version later
	Release          string // release version of the AMI; "" for the newest
	ImageType        string // AL2023_x86_64_STANDARD…; "" with a launch template that sets an AMI
	Capacity         string // ON_DEMAND, SPOT or CAPACITY_BLOCK
	Force            bool   // an update does not stop if pods cannot be evicted
	InstanceTypes    []string
	IPv6             bool  // of the cluster
	DiskSize         int32 // GiB; 0 for the default of EKS
	MinSize, MaxSize int32
	Desired          int32
	KeepDesired      bool // an autoscaler sets the number of nodes

	Labels                   map[string]string
	Taints                   []Taint
	MaxUnavailable           int32 // nodes that are replaced at a time, unless the percentage is set
	MaxUnavailablePercentage int32
	Strategy                 string // of updates: DEFAULT, or MINIMAL, which terminates nodes before it launches new ones; "": not changed
	Repair                   bool
	RepairLimits             *RepairLimits // nil: not changed
	SSHKey                   string
	SSHFrom                  []*graph.Ref[ec2.SecurityGroupState]
	SSHFromIDs               []string
	Adopt                    bool // it may be somebody else's: it gets the tags
	Tags                     cloud.Tags
	NodeTags                 cloud.Tags // of the Auto Scaling group, which new nodes get
	FormerNodeTags           []string   // keys of such tags that it should not have any more

	// Template is the launch template, of which the latest version is used; nil if EKS
	// creates it. Content is its desired content, from which a plan computes the next
	// version.
	Template *graph.Ref[ec2.LaunchTemplateState]
	Content  *ec2.LaunchTemplate
	// Hooks are lifecycle hooks of the Auto Scaling group that EKS creates.
	Hooks []expinfrav1.AWSLifecycleHook
	// Kubernetes returns a client of the API server, which knows the pods in the way of an update; nil if a run does not use it.
	Kubernetes func(*cloud.Clients) (*kube.Client, error)
}

// Taint is a taint of the nodes of a group: "dedicated", "gpu", NO_SCHEDULE.
type Taint struct{ Key, Value, Effect string }

// String prints a taint as kubectl does.
func (t Taint) String() string { return t.Key + "=" + t.Value + ":" + t.Effect }

// NodeGroupState is an EKS node group, as AWS describes it.
type NodeGroupState struct {
	identity.Object                                              // the ID is its ARN
	Cluster                                                      string
	Name, Status, Version, Release, ImageType, Capacity, RoleARN string
	Subnets, InstanceTypes                                       []string
	DiskSize, MinSize, MaxSize, Desired                          int32
	MaxUnavailable, MaxUnavailablePercentage                     int32
	Strategy                                                     string // "" if EKS does not return it
	Repair                                                       bool
	RepairLimits                                                 RepairLimits
	Labels                                                       map[string]string
	Taints                                                       []Taint
	SSHKey                                                       string
	SSHFrom                                                      []string          // security groups; none: all addresses
	Issues                                                       []string          // health issues that EKS reports
	Template, TemplateName, TemplateVersion                      string            // ID, name and version; "" if EKS creates it
	OwnTemplate                                                  bool              // the cluster owns the launch template
	ScalingGroup                                                 string            // name of the Auto Scaling group; "" before it exists
	Hooks                                                        map[string]string // its lifecycle hooks as text, by name
	NodeTags                                                     map[string]string // its tags that new nodes get, if the manifest has any
	lastUpdate
	ongoing ongoing
	Foreign bool // somebody else has made it
}

// IsOwned reports whether the cluster owns the node group. The tag of its cloud provider is
// enough: CAPA removes others.
func (s NodeGroupState) IsOwned(c *cloud.Clients) bool {
	return s.Object.IsOwned(c) || s.Tags[cloud.CloudProviderTagPrefix+s.Cluster] == cloud.Owned
}

// condition returns the status and EKS's reasons for it.
func (s NodeGroupState) condition() string {
	if s.Status == string(types.NodegroupStatusActive) {
		return s.Status
	}
	return condition(s.Status, s.Issues)
}

// Failure implements graph.Failing.
func (s NodeGroupState) Failure() string {
	switch types.NodegroupStatus(s.Status) {
	case types.NodegroupStatusCreateFailed, types.NodegroupStatusDeleteFailed:
		return s.condition()
	case types.NodegroupStatusActive, types.NodegroupStatusCreating, types.NodegroupStatusUpdating, types.NodegroupStatusDeleting, types.NodegroupStatusDegraded:
	}
	return ""
}

// Deleting implements graph.Deleting.
func (s NodeGroupState) Deleting() bool { return s.Status == string(types.NodegroupStatusDeleting) }

var (
	_ graph.Checked                  = (*NodeGroup)(nil)
	_ graph.Managed[NodeGroupState]  = (*NodeGroup)(nil)
	_ graph.Timed                    = (*NodeGroup)(nil)
	_ graph.UpdateTimed              = (*NodeGroup)(nil)
	_ graph.TimeLimited              = NodeGroupState{}
	_ graph.Follower[NodeGroupState] = (*NodeGroup)(nil)
	_ graph.Failing                  = NodeGroupState{}
)

// Needs implements graph.Desired.
func (g *NodeGroup) Needs() []graph.Edge {
	needs := slices.Concat(graph.On(g.Cluster), graph.On(g.Role), graph.On(g.Template))
	for _, s := range g.Subnets {
		needs = append(needs, graph.On(s)...)
	}
	for _, s := range g.SSHFrom {
		needs = append(needs, graph.Exists(s)...)
	}
	return needs
}

// Takes implements graph.Timed.
func (g *NodeGroup) Takes() (create, remove time.Duration) {
	return nodeGroupCreateTime, nodeGroupDeleteTime
}

// UpdateTakes implements graph.UpdateTimed.
func (g *NodeGroup) UpdateTakes(d plan.Diff) time.Duration {
	switch {
	case d.Has("status"): // it is deleted, and then created again
		return nodeGroupDeleteTime
	case d.Has("version", "releaseVersion", "launchTemplate.version"):
		return nodeGroupCreateTime // for the first nodes; the first read finds it busy
	}
	return nodeGroupConfigTime
}

// UpdatesTake implements graph.UpdateTimed. EKS replaces as many nodes at a time as may be unavailable.
func (g *NodeGroup) UpdatesTake(have graph.State, d plan.Diff) (all time.Duration) {
	s, _ := have.(*NodeGroupState)
	switch {
	case s == nil:
		return 0
	case d.Has("status") && s.Failure() != "":
		return nodeGroupDeleteTime + nodeGroupCreateTime
	case d.Has("status") && s.Status == string(types.NodegroupStatusCreating):
		all = nodeGroupCreateTime
	case d.Has("status") && s.ongoing.version != "":
		all = s.rounds(nodeGroupCreateTime)
	}
	versions := 0
	for _, c := range d {
		if c.Field == "version" {
			versions++
		}
	}
	if d.Has("releaseVersion", "launchTemplate.version") { // together with a version
		versions = max(versions, 1)
	}
	all += s.rounds(time.Duration(versions) * nodeGroupCreateTime)
	switch {
	case g.added(s) > 0:
		all += nodeGroupResizes
	case slices.ContainsFunc(d, changesConfig):
		all += nodeGroupConfigTime
	}
	return all
}

// changesConfig reports whether UpdateNodegroupConfig makes a change.
func changesConfig(c plan.Change) bool {
	field, _, _ := strings.Cut(c.Field, ".")
	return slices.Contains([]string{"scaling", "updateConfig", "updateStrategy", "nodeRepair", "label", "taint"}, field)
}

// rounds returns how long it takes to replace all nodes, as many at a time as may be unavailable.
func (s NodeGroupState) rounds(each time.Duration) time.Duration {
	atATime := max(s.MaxUnavailable, 1)
	if s.MaxUnavailablePercentage > 0 {
		atATime = max(s.Desired*s.MaxUnavailablePercentage/100, 1)
	}
	return time.Duration(max(1, (s.Desired+atATime-1)/atATime)) * each
}

// TimeLimit implements graph.TimeLimited: EKS replaces as many nodes at a time as may be
// unavailable, and each may take 15 minutes to drain ("Managed node group update behavior",
// EKS user guide). After 21 to 23 minutes it reports that new nodes do not join.
func (s NodeGroupState) TimeLimit() time.Duration {
	return max(time.Hour, s.rounds(nodeReplaceTime))
}

// Follow implements graph.Follower. An update that has failed is an error.
func (g *NodeGroup) Follow(ctx context.Context, c *cloud.Clients, last *NodeGroupState) (*NodeGroupState, error) {
	s, err := g.find(ctx, c, last.lastUpdate)
	if s == nil || err != nil {
		return s, err
	}
	have := *s
	have.lastUpdate, err = last.follow(ctx, c, have.Status, eks.DescribeUpdateInput{Name: &s.Cluster, NodegroupName: &g.Name}, g.inTheWay)
	return &have, err
}

// Identify implements graph.Identified. A deletion does not delete a group that somebody else has made.
func (g *NodeGroup) Identify(ctx context.Context, c *cloud.Clients, _ *NodeGroupState) (*NodeGroupState, error) {
	return identity.FindOwned(ctx, c, g.read)
}

// read returns the group, whoever has made it.
func (g *NodeGroup) read(ctx context.Context, c *cloud.Clients) (*NodeGroupState, error) {
	cluster, ok := g.Cluster.Found()
	if !ok {
		return nil, nil
	}
	return NodeGroupByName(ctx, c, cluster.Name, g.Name)
}

// Find implements graph.Desired.
func (g *NodeGroup) Find(ctx context.Context, c *cloud.Clients) (*NodeGroupState, error) {
	return g.find(ctx, c, lastUpdate{})
}

// find reads the group, and what an update changes that this run has not started.
func (g *NodeGroup) find(ctx context.Context, c *cloud.Clients, own lastUpdate) (*NodeGroupState, error) {
	s, err := g.read(ctx, c)
	if s == nil || err != nil {
		return s, err
	}
	have := *s
	have.Foreign = !have.IsOwned(c)
	if have.ongoing, err = own.ongoing(ctx, c, have.Status, eks.DescribeUpdateInput{Name: &have.Cluster, NodegroupName: &have.Name}); err != nil {
		return nil, err
	}
	if have.OwnTemplate, err = s.ownsTemplate(ctx, c); err != nil || s.ScalingGroup == "" {
		return &have, err
	}
	have.Hooks, err = autoscaling.LifecycleHooks(ctx, c, s.ScalingGroup)
	if cloud.Denied(err) && len(g.Hooks) == 0 {
		err = nil // without this permission, hooks cannot have been created
	}
	for _, name := range OwnHooks() {
		delete(have.Hooks, name)
	}
	if err == nil && len(g.NodeTags)+len(g.FormerNodeTags) > 0 {
		have.NodeTags, err = autoscaling.NodeTags(ctx, c, s.ScalingGroup)
	}
	return &have, err
}

// Diff implements graph.Desired. A group that EKS could not create is deleted and created
// again.
func (g *NodeGroup) Diff(have *NodeGroupState) (d plan.Diff) {
	if have.Foreign && !g.Adopt {
		return notOwned()
	}
	if have.Status == string(types.NodegroupStatusCreateFailed) {
		d.Set("status", have.condition(), "created again")
		return d
	}
	if have.Status != string(types.NodegroupStatusDegraded) { // nodes are unhealthy, but the group can be updated
		d.Await("status", have.condition(), string(types.NodegroupStatusActive))
	}
	fixedRole("role", have.RoleARN, g.Role, &d)
	if g.ImageType != "" {
		d.Fixed("amiType", have.ImageType, g.ImageType)
	}
	if g.Template != nil || have.Capacity != string(types.CapacityTypesCapacityBlock) { // otherwise the template of another tool says so
		d.Fixed("capacityType", have.Capacity, g.Capacity)
	}
	if len(g.InstanceTypes) > 0 {
		d.Fixed("instanceTypes", strings.Join(have.InstanceTypes, ","), strings.Join(g.InstanceTypes, ","))
	}
	if g.DiskSize > 0 {
		d.Fixed("diskSize", have.DiskSize, g.DiskSize)
	}
	d.Fixed("sshKey", have.SSHKey, g.SSHKey)
	g.diffRemoteAccess(have, &d)
	d.Fixed("subnets", sortedList(have.Subnets), idList(identity.CloudIDs(g.Subnets)))
	g.diffTemplate(have, &d)
	d.Advise("set spec.eksNodegroupName of the AWSManagedMachinePool to another name: a node group with the new name is created and this one is deleted")
	g.diffVersion(have, &d)
	g.keepBlock(have, &d)
	g.diffConfig(have, &d)
	if have.ID == "" || have.ScalingGroup != "" {
		autoscaling.DiffHooks(have.Hooks, g.Hooks, &d)
		autoscaling.DiffNodeTags(have.NodeTags, g.NodeTags, g.FormerNodeTags, &d)
	}
	d.Tags(have.Tags, g.Tags)
	return d
}

// diffRemoteAccess compares the SSH access. Security groups of the cluster itself are not
// compared, because they may be created after the node group.
func (g *NodeGroup) diffRemoteAccess(have *NodeGroupState, d *plan.Diff) {
	if have.SSHKey == "" || g.SSHKey == "" {
		return
	}
	d.Fixed("remoteAccess.public", len(have.SSHFrom) == 0, len(g.SSHFrom)+len(g.SSHFromIDs) == 0)
	for _, id := range g.SSHFromIDs {
		if !slices.Contains(have.SSHFrom, id) {
			d.Fixed("remoteAccess.sourceSecurityGroups", "", id)
		}
	}
}

// keepBlock refuses to replace nodes in a Capacity Block: it has no room for more of them ("Create a managed node group with
// Capacity Blocks for ML", EKS user guide: an upgrade needs a desired size of 0).
func (g *NodeGroup) keepBlock(have *NodeGroupState, d *plan.Diff) {
	if have.Capacity != string(types.CapacityTypesCapacityBlock) || have.Desired == 0 {
		return
	}
	for i, change := range *d {
		if slices.Contains([]string{"version", "releaseVersion", "launchTemplate.version"}, change.Field) {
			(*d)[i].Remedy = plan.Replace
		}
	}
	d.Advise("nodes in a Capacity Block are not replaced one by one: set replicas and scaling.minSize to 0, run, and make the change then")
}

func (g *NodeGroup) diffVersion(have *NodeGroupState, d *plan.Diff) {
	diffVersion(d, have.ID != "", have.Version, have.ongoing.version, g.Version, "spec.template.spec.version of the MachinePool")
	if g.Release != "" {
		d.Set("releaseVersion", have.Release, g.Release)
	}
}

func (g *NodeGroup) diffConfig(have *NodeGroupState, d *plan.Diff) {
	d.Set("scaling.minSize", have.MinSize, g.MinSize)
	d.Set("scaling.maxSize", have.MaxSize, g.MaxSize)
	d.Set("scaling.desiredSize", have.Desired, g.capacity(have))
	d.Set("updateConfig", unavailable(have.MaxUnavailable, have.MaxUnavailablePercentage), unavailable(g.MaxUnavailable, g.MaxUnavailablePercentage))
	if g.Strategy != "" {
		d.Set("updateStrategy", have.Strategy, g.Strategy)
	}
	d.Set("nodeRepair", have.Repair, g.Repair)
	g.diffRepairLimits(have, d)
	d.Lines("label", pairs(have.Labels), pairs(g.Labels))
	d.Lines("taint", taintLines(have.Taints), taintLines(g.Taints))
}

func unavailable(number, percentage int32) string {
	if percentage > 0 {
		return fmt.Sprintf("%d%%", percentage)
	}
	return fmt.Sprint(number)
}

func taintLines(taints []Taint) (out []string) {
	for _, t := range taints {
		out = append(out, t.String())
	}
	return out
}

// Create implements graph.Creator.
func (g *NodeGroup) Create(ctx context.Context, c *cloud.Clients) (*NodeGroupState, error) {
	cluster, _ := g.Cluster.Found()
	in := &eks.CreateNodegroupInput{
		ClusterName: &cluster.Name, NodegroupName: &g.Name, NodeRole: aws.String(g.Role.CloudID()), Subnets: identity.CloudIDs(g.Subnets),
		AmiType: types.AMITypes(g.ImageType), CapacityType: types.CapacityTypes(g.Capacity), InstanceTypes: g.InstanceTypes, Labels: g.Labels,
		ScalingConfig: g.scaling(g.Desired), UpdateConfig: g.updateConfig(), Taints: sdkTaints(g.Taints), Tags: g.Tags,
		LaunchTemplate:     g.launchTemplate(),
		ClientRequestToken: c.Token("node-group", cluster.Name, g.Name, g.Role.CloudID(), strings.Join(identity.CloudIDs(g.Subnets), ",")),
	}
	if in.AmiType == types.AMITypesCustom {
		in.AmiType = "" // EKS takes it from the launch template
	}
	if g.Version != "" {
		in.Version = &g.Version
	}
	if g.Release != "" {
		in.ReleaseVersion = &g.Release
	}
	if g.DiskSize > 0 {
		in.DiskSize = &g.DiskSize
	}
	if g.Repair {
		in.NodeRepairConfig = g.repairConfig()
	}
	if g.SSHKey != "" {
		in.RemoteAccess = &types.RemoteAccessConfig{Ec2SshKey: &g.SSHKey, SourceSecurityGroups: append(identity.CloudIDs(g.SSHFrom), g.SSHFromIDs...)}
	}
	out, err := c.EKS.CreateNodegroup(ctx, in)
	if err != nil {
		return nil, err
	}
	s := nodeGroupState(out.Nodegroup)
	s.Cluster = cluster.Name
	return &s, nil
}

func (g *NodeGroup) scaling(desired int32) *types.NodegroupScalingConfig {
	return &types.NodegroupScalingConfig{MinSize: &g.MinSize, MaxSize: &g.MaxSize, DesiredSize: &desired}
}

func (g *NodeGroup) updateConfig() *types.NodegroupUpdateConfig {
	out := &types.NodegroupUpdateConfig{MaxUnavailable: &g.MaxUnavailable, UpdateStrategy: types.NodegroupUpdateStrategies(g.Strategy)}
	if g.MaxUnavailablePercentage > 0 {
		out.MaxUnavailable, out.MaxUnavailablePercentage = nil, &g.MaxUnavailablePercentage
	}
	return out
}

func sdkTaints(taints []Taint) (out []types.Taint) {
	for _, t := range taints {
		x := types.Taint{Key: aws.String(t.Key), Effect: types.TaintEffect(t.Effect)}
		if t.Value != "" {
			x.Value = aws.String(t.Value)
		}
		out = append(out, x)
	}
	return out
}

// Update implements graph.Updater. It makes one call, versions first: EKS rejects another
// update while one is in progress.
func (g *NodeGroup) Update(ctx context.Context, c *cloud.Clients, have *NodeGroupState, d plan.Diff) (*NodeGroupState, error) {
	cluster, _ := g.Cluster.Found()
	after := *have
	var update *types.Update
	var err error
	switch {
	case d.Has("status"):
		after.Status = string(types.NodegroupStatusDeleting)
		return &after, g.Delete(ctx, c, have)
	case d.HasTags():
		after.Object, err = changeTags(ctx, c, have.Object, g.Tags, d)
		after.Foreign = false
		return &after, err
	case d.Has("version", "releaseVersion", "launchTemplate.version"):
		in := &eks.UpdateNodegroupVersionInput{ClusterName: &cluster.Name, NodegroupName: &g.Name, Force: g.Force}
		if d.Has("launchTemplate.version") {
			in.LaunchTemplate = g.launchTemplate()
		}
		if d.Has("version", "releaseVersion") {
			in.Version = aws.String(have.Version)
			if d.Has("version") {
				in.Version = aws.String(nextValue(d, "version"))
			}
			if g.Release != "" && minor(*in.Version) == minor(g.Version) { // EKS does not go back from a newer one
				in.ReleaseVersion = &g.Release
			}
		}
		var out *eks.UpdateNodegroupVersionOutput
		if out, err = c.EKS.UpdateNodegroupVersion(ctx, in); err == nil {
			update = out.Update
		}
	case autoscaling.HasHooks(d):
		after.Hooks = autoscaling.HookTexts(g.Hooks)
		return &after, autoscaling.UpdateHooks(ctx, c, have.ScalingGroup, g.Hooks, d)
	case autoscaling.HasNodeTags(d):
		after.NodeTags = cloud.Tags(have.NodeTags).With(g.NodeTags).Without(g.FormerNodeTags)
		return &after, autoscaling.ChangeNodeTags(ctx, c, have.ScalingGroup, g.NodeTags, d)
	default:
		var out *eks.UpdateNodegroupConfigOutput
		if out, err = c.EKS.UpdateNodegroupConfig(ctx, g.configUpdate(cluster.Name, have, d)); err == nil {
			update = out.Update
		}
	}
	if err != nil {
		return nil, err
	}
	after.Status, after.lastUpdate = string(types.NodegroupStatusUpdating), begun(update)
	return &after, nil
}

// configUpdate returns the request for all changes except versions and tags.
func (g *NodeGroup) configUpdate(cluster string, have *NodeGroupState, d plan.Diff) *eks.UpdateNodegroupConfigInput {
	in := &eks.UpdateNodegroupConfigInput{ClusterName: &cluster, NodegroupName: &g.Name}
	if d.Has("scaling.minSize", "scaling.maxSize", "scaling.desiredSize") {
		in.ScalingConfig = g.scaling(g.capacity(have))
	}
	if d.Has("updateConfig", "updateStrategy") {
		in.UpdateConfig = g.updateConfig()
	}
	if d.Has("nodeRepair", "nodeRepair.maxUnhealthy", "nodeRepair.maxParallel") {
		in.NodeRepairConfig = g.repairConfig()
	}
	if d.Has("label") {
		in.Labels = &types.UpdateLabelsPayload{AddOrUpdateLabels: map[string]string{}}
		for k, v := range g.Labels {
			if old, ok := have.Labels[k]; !ok || old != v {
				in.Labels.AddOrUpdateLabels[k] = v
			}
		}
		for _, k := range slices.Sorted(maps.Keys(have.Labels)) {
			if _, wanted := g.Labels[k]; !wanted {
				in.Labels.RemoveLabels = append(in.Labels.RemoveLabels, k)
			}
		}
	}
	if d.Has("taint") {
		in.Taints = g.taintsUpdate(have)
	}
	return in
}

func (g *NodeGroup) taintsUpdate(have *NodeGroupState) *types.UpdateTaintsPayload {
	is := func(t Taint) func(Taint) bool {
		return func(x Taint) bool { return x.Key == t.Key && x.Effect == t.Effect }
	}
	out := &types.UpdateTaintsPayload{}
	for _, t := range have.Taints {
		if !slices.ContainsFunc(g.Taints, is(t)) {
			out.RemoveTaints = append(out.RemoveTaints, sdkTaints([]Taint{t})...)
		}
	}
	for _, t := range g.Taints {
		if !slices.Contains(have.Taints, t) {
			out.AddOrUpdateTaints = append(out.AddOrUpdateTaints, sdkTaints([]Taint{t})...)
		}
	}
	return out
}

// Delete implements graph.Deleter.
func (g *NodeGroup) Delete(ctx context.Context, c *cloud.Clients, have *NodeGroupState) error {
	if have.Deleting() {
		return nil
	}
	_, err := c.EKS.DeleteNodegroup(ctx, &eks.DeleteNodegroupInput{ClusterName: &have.Cluster, NodegroupName: &have.Name})
	return err
}

// How long EKS usually takes to create and to delete a node group.
const (
	nodeGroupCreateTime = 3 * time.Minute
	nodeGroupDeleteTime = 3 * time.Minute
	nodeGroupConfigTime = 20 * time.Second
	nodeReplaceTime     = 20 * time.Minute // at most, with its drain
)

// capacity returns how many nodes the group has after a run. A size that an autoscaler has set stays, unless the new minimum or maximum forbids it.
func (g *NodeGroup) capacity(have *NodeGroupState) int32 {
	if !g.KeepDesired || have == nil || have.ID == "" {
		return g.Desired
	}
	return min(max(have.Desired, g.MinSize), g.MaxSize)
}

// added returns how many nodes a run adds to the group.
func (g *NodeGroup) added(have graph.State) int32 {
	s, _ := have.(*NodeGroupState)
	n := g.capacity(s)
	if s != nil {
		n -= s.Desired
	}
	return max(n, 0)
}

// DefaultNodeType is the instance type of a node group that names none (instanceTypes of CreateNodegroup, EKS API reference).
const DefaultNodeType = "t3.medium"

// Launches implements ec2.Launcher. Of several instance types, it returns the first one.
func (g *NodeGroup) Launches(have graph.State) []ec2.Launch {
	n := g.added(have)
	switch {
	case n == 0, g.Capacity == string(types.CapacityTypesCapacityBlock): // it counts against no quota
		return nil
	case len(g.InstanceTypes) > 0:
		return []ec2.Launch{{Type: g.InstanceTypes[0], Spot: g.Capacity == "SPOT", Count: int(n)}}
	case g.Content != nil && g.Content.Spec.InstanceType != "":
		return []ec2.Launch{{Type: g.Content.Spec.InstanceType, Spot: g.Capacity == "SPOT", Count: int(n)}}
	}
	return []ec2.Launch{{Type: DefaultNodeType, Spot: g.Capacity == "SPOT", Count: int(n)}}
}

// countNodeGroup returns the cluster of a node group.
func countNodeGroup(desired any) (n int, scope string) {
	g, ok := desired.(*NodeGroup)
	if !ok {
		return 0, ""
	}
	return 1, string(g.Cluster.ID())
}

// NodeGroupKind is the name of the kind of node groups.
const NodeGroupKind = "node-group"

// nodeGroupKind declares managed node groups.
func nodeGroupKind() *kind.Kind {
	return kind.Of(kind.Kind{
		Name:        NodeGroupKind,
		Rehearsed:   true,
		Area:        plan.AreaWorkers,
		ByNameOnly:  true,
		RunsPods:    true,
		ReadActions: []string{"eks:DescribeNodegroup", "eks:DescribeUpdate", "eks:ListNodegroups", "eks:ListUpdates"},
		Statement:   kind.EKS,
		Actions: []string{
			"eks:CreateNodegroup",
			"eks:DeleteNodegroup",
			"eks:TagResource",
			"eks:UntagResource",
			"eks:UpdateNodegroupConfig",
			"eks:UpdateNodegroupVersion",
		},
		Quota: &kind.Quota{Service: "eks", Code: "L-6D54EA21", Name: "managed node groups", Default: 30, Takes: countNodeGroup},
	}, kind.Functions[NodeGroupState]{
		Delete: &NodeGroup{},
		ID:     func(s NodeGroupState) plan.ID { return plan.ID(NodeGroupKind + "/" + s.Name) },
		List:   partsOf(nodeGroupNames, NodeGroupByName),
		Find: func(ctx context.Context, c *cloud.Clients, s NodeGroupState) (*NodeGroupState, error) {
			return NodeGroupByName(ctx, c, s.Cluster, s.Name)
		},
		Refers: func(s NodeGroupState) []string {
			return append(slices.Clone(s.Subnets), clusterAlias(s.Cluster), s.RoleARN, s.Template)
		},
		Uses: func(s NodeGroupState) []string { return []string{s.Template} },
		Status: func(s NodeGroupState) (state, detail string) {
			details := []string{s.ongoing.shown(s.Version), fmt.Sprintf("%d nodes", s.Desired), strings.Join(s.InstanceTypes, ","), strings.Join(s.Issues, "; ")}
			return strings.ToLower(s.Status), kind.Join(details...)
		},
	})
}

// nodeGroupNames lists the node groups of a cluster.
func nodeGroupNames(ctx context.Context, c *cloud.Clients, cluster string) ([]string, error) {
	return cloud.Remember(ctx, c, "names of node groups", func(ctx context.Context) ([]string, error) {
		p := eks.NewListNodegroupsPaginator(c.EKS, &eks.ListNodegroupsInput{ClusterName: &cluster})
		out, err := cloud.Pages(ctx, p, func(o *eks.ListNodegroupsOutput) []string { return o.Nodegroups })
		return out, cloud.IgnoreNotFound(err)
	})
}

// NodeGroupByName returns a node group, or nil.
func NodeGroupByName(ctx context.Context, c *cloud.Clients, cluster, name string) (*NodeGroupState, error) {
	return cloud.Remember(ctx, c, "node group "+name, func(ctx context.Context) (*NodeGroupState, error) {
		out, err := c.EKS.DescribeNodegroup(ctx, &eks.DescribeNodegroupInput{ClusterName: &cluster, NodegroupName: &name})
		if err != nil {
			return nil, cloud.IgnoreNotFound(err)
		}
		s := nodeGroupState(out.Nodegroup)
		s.Cluster = cluster
		return &s, nil
	})
}

func nodeGroupState(x *types.Nodegroup) NodeGroupState {
	s := NodeGroupState{
		Object: identity.Object{
			ID:   aws.ToString(x.NodegroupArn),
			Tags: x.Tags,
		},
		Name:          aws.ToString(x.NodegroupName),
		Status:        string(x.Status),
		Version:       aws.ToString(x.Version),
		Release:       aws.ToString(x.ReleaseVersion),
		ImageType:     string(x.AmiType),
		Capacity:      string(x.CapacityType),
		RoleARN:       aws.ToString(x.NodeRole),
		Subnets:       x.Subnets,
		InstanceTypes: x.InstanceTypes,
		DiskSize:      aws.ToInt32(x.DiskSize),
		Labels:        x.Labels,
	}
	if v := x.ScalingConfig; v != nil {
		s.MinSize, s.MaxSize, s.Desired = aws.ToInt32(v.MinSize), aws.ToInt32(v.MaxSize), aws.ToInt32(v.DesiredSize)
	}
	if v := x.LaunchTemplate; v != nil {
		s.Template, s.TemplateName, s.TemplateVersion = aws.ToString(v.Id), aws.ToString(v.Name), aws.ToString(v.Version)
	}
	if v := x.Resources; v != nil && len(v.AutoScalingGroups) > 0 {
		s.ScalingGroup = aws.ToString(v.AutoScalingGroups[0].Name)
	}
	if v := x.UpdateConfig; v != nil {
		s.MaxUnavailable, s.MaxUnavailablePercentage = aws.ToInt32(v.MaxUnavailable), aws.ToInt32(v.MaxUnavailablePercentage)
		s.Strategy = string(v.UpdateStrategy)
	}
	if v := x.NodeRepairConfig; v != nil {
		s.Repair, s.RepairLimits = aws.ToBool(v.Enabled), repairLimits(v)
	}
	if v := x.RemoteAccess; v != nil {
		s.SSHKey, s.SSHFrom = aws.ToString(v.Ec2SshKey), v.SourceSecurityGroups
	}
	for _, t := range x.Taints {
		s.Taints = append(s.Taints, Taint{aws.ToString(t.Key), aws.ToString(t.Value), string(t.Effect)})
	}
	if x.Health != nil {
		for _, i := range x.Health.Issues {
			s.Issues = append(s.Issues, string(i.Code)+": "+aws.ToString(i.Message))
		}
	}
	return s
}
