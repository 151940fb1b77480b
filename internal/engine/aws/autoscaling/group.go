package autoscaling

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	expinfrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/exp/api/v1beta2"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/ec2"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/identity"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/kind"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
	"github.com/clusterawsadm/clusterawsadm/internal/text"
)

// Group is a pool of machines that AWS keeps at its size (CAPA:
// AWSMachinePool). It launches the latest version of its template; machines
// of older versions are replaced by an instance refresh.
type Group struct {
	Name string
	// Spec is the AWSMachinePool's. Its template and its subnets are those
	// below.
	Spec     expinfrav1.AWSMachinePoolSpec
	Template *graph.Ref[ec2.LaunchTemplateState]
	// Content is what the template is to be, so that a plan can tell of the
	// instance refresh that its next version brings about; it may be nil.
	Content *ec2.LaunchTemplate
	Subnets []*graph.Ref[ec2.SubnetState]
	// Desired is how many machines there are to be; nil leaves that to whoever
	// manages it (annotation cluster.x-k8s.io/replicas-managed-by).
	Desired *int32
	Tags    cloud.Tags

	// Needed lists what has to be there before a machine may boot.
	Needed []graph.Edge
}

// GroupState is a group that exists. Its ID is its name.
type GroupState struct {
	identity.Object
	ARN               string
	Status            string // "Delete in progress", or ""
	Min, Max, Desired int32
	Subnets           []string
	Template          string // ID and version, "lt-0123:$Latest"
	Mixed             string // the mixed instances policy, written down; "" for none
	Cooldown, Warmup  time.Duration
	Rebalance         bool
	Suspended         []string          // processes
	Hooks             map[string]string // lifecycle hooks, written down, by name
	Instances         []PoolInstance
	Refresh           Refresh // the last instance refresh, where machines differ
	Started           string  // ID of the instance refresh that this run has started
	Trouble           string  // why the last launch failed; "" unless machines are missing
}

// PoolInstance is a machine of a group.
type PoolInstance struct {
	ID, Zone, Type string
	State          string // of its life cycle: Pending, InService, Terminating, …
	Health         string // Healthy or Unhealthy
	Version        string // of the launch template
}

// Refresh is an instance refresh.
type Refresh struct {
	ID, Status, Reason string
	Percent            int32
	Running            bool
	Began              time.Time
	Limit              time.Duration // how long it may take while it runs
}

// String prints a refresh: "08b91cf7 InProgress, 40 %".
func (r Refresh) String() string {
	s := r.ID + " " + r.Status
	if r.Running {
		return s + fmt.Sprintf(", %d %%", r.Percent)
	}
	return s + text.Prefixed(": ", r.Reason)
}

// Refreshing says that an instance refresh is under way: "; 08b91cf7
// InProgress, 40 %".
func (s *GroupState) Refreshing() string {
	if !s.Refresh.Running {
		return ""
	}
	return "; " + s.Refresh.String()
}

const inService = string(types.LifecycleStateInService)

// Serving counts the machines that are in service.
func (s *GroupState) Serving() (n int) {
	for _, i := range s.Instances {
		if i.State == inService && i.Health != "Unhealthy" {
			n++
		}
	}
	return n
}

var (
	_ graph.Managed[GroupState]  = (*Group)(nil)
	_ graph.Follower[GroupState] = (*Group)(nil)
	_ graph.Timed                = (*Group)(nil)
	_ graph.TimeLimited          = GroupState{}
)

// Needs implements graph.Desired.
func (g *Group) Needs() []graph.Edge {
	needs := graph.On(g.Template)
	for _, s := range g.Subnets {
		needs = append(needs, graph.Exists(s)...)
	}
	return append(needs, g.Needed...)
}

// Takes implements graph.Timed: a group notices that it is too small, and a
// machine starts.
func (g *Group) Takes() (create, remove time.Duration) {
	return ec2.InstanceTakes + 10*time.Second, ec2.InstanceGoes + 10*time.Second
}

// TimeLimit implements graph.TimeLimited: an instance refresh may replace one
// machine after the other.
func (s GroupState) TimeLimit() time.Duration {
	if s.Refresh.Running {
		return s.Refresh.Limit
	}
	return 0
}

func (g *Group) refreshLimit() time.Duration {
	return 15*time.Minute + time.Duration(max(g.Spec.MaxSize, 1))*(g.warmup()+2*time.Minute)
}

func (g *Group) warmup() time.Duration {
	if p := g.Spec.RefreshPreferences; p != nil && p.InstanceWarmup != nil {
		return time.Duration(*p.InstanceWarmup) * time.Second
	}
	return usually(g.Spec.DefaultInstanceWarmup.Duration)
}

// usually is CAPA's default for cooldown and warm-up.
func usually(d time.Duration) time.Duration { return cmp.Or(d, 300*time.Second) }

// Find implements graph.Desired.
func (g *Group) Find(ctx context.Context, c *cloud.Clients) (*GroupState, error) {
	return g.Follow(ctx, c, &GroupState{})
}

// Follow implements graph.Follower: an instance refresh that was under way is
// looked at until it is over, also when all machines are alike.
func (g *Group) Follow(ctx context.Context, c *cloud.Clients, last *GroupState) (*GroupState, error) {
	all, err := Groups(ctx, c)
	if err != nil {
		return nil, err
	}
	s, err := identity.Find(all, g.Tags, func(s GroupState) cloud.Tags { return s.Tags })
	if s == nil || err != nil || s.Status != "" || cloud.IsBrief(ctx) {
		return s, err
	}
	have := *s
	if have.Hooks, err = LifecycleHooks(ctx, c, have.ID); err != nil {
		return nil, err
	}
	have.Started = last.Started
	if last.Refresh.Running || g.uneven(&have) { // it warms the last machine up when all are alike
		if have.Refresh, err = lastRefresh(ctx, c, have.ID); err != nil {
			return nil, err
		}
		have.Refresh.Limit = g.refreshLimit()
	}
	if have.Serving() < int(have.Desired) {
		have.Trouble, err = trouble(ctx, c, have.ID)
	}
	return &have, err
}

// uneven reports whether machines differ from one another or from the
// template, or come and go: an instance refresh may be under way.
func (g *Group) uneven(have *GroupState) bool {
	return len(g.outdated(have)) > 0 || slices.ContainsFunc(have.Instances, func(i PoolInstance) bool {
		return i.State != inService || i.Version != have.Instances[0].Version
	})
}

// version is the version of the template that machines are to be of: in a
// plan, the one that is yet to be made.
func (g *Group) version() string {
	return ec2.VersionOf(g.Template, g.Content)
}

// outdated lists the versions of machines that are to be replaced.
func (g *Group) outdated(have *GroupState) (versions []string) {
	for _, i := range have.Instances {
		if i.Version != g.version() && !strings.HasPrefix(i.State, "Terminat") {
			versions = append(versions, i.Version)
		}
	}
	return versions
}

// Diff implements graph.Desired. Time is given for machines to come only
// where there is nothing else to mend, since what keeps them from coming may
// be what is to be mended.
func (g *Group) Diff(have *GroupState) (d graph.Diff) {
	if have.Status != "" {
		d.Await("status", have.Status, "")
		return d
	}
	d.Set("minSize", have.Min, g.Spec.MinSize)
	d.Set("maxSize", have.Max, g.Spec.MaxSize)
	if g.Desired != nil {
		d.Set("replicas", have.Desired, *g.Desired)
	}
	d.Lines("subnet", have.Subnets, identity.CloudIDs(g.Subnets))
	d.Set("launchTemplate", have.Template, g.template())
	d.Set("mixedInstancesPolicy", have.Mixed, g.mixed())
	d.Set("capacityRebalance", have.Rebalance, g.Spec.CapacityRebalance)
	d.Set("defaultCoolDown", have.Cooldown, usually(g.Spec.DefaultCoolDown.Duration))
	d.Set("defaultInstanceWarmup", have.Warmup, usually(g.Spec.DefaultInstanceWarmup.Duration))
	d.Lines("suspendedProcess", have.Suspended, g.suspended())
	DiffHooks(have.Hooks, g.Spec.AWSLifecycleHooks, &d)
	d.Tags(have.Tags, g.Tags)
	g.diffMachines(have, &d)
	return d
}

// diffMachines tells of machines that are to be replaced, and of those that
// are on their way.
func (g *Group) diffMachines(have *GroupState, d *graph.Diff) {
	if have.ID == "" {
		return
	}
	old := g.outdated(have)
	p := g.Spec.RefreshPreferences
	stale := len(old) > 0 && (p == nil || !p.Disable)
	switch {
	case have.Refresh.Running && (stale || len(*d) == 0):
		d.Await("instanceRefresh", have.Refresh.String()+text.Prefixed(" (", have.Trouble)+closing(have.Trouble), "over")
	case stale:
		slices.Sort(old)
		text := fmt.Sprintf("%d of %d of version %s", len(old), len(have.Instances), strings.Join(slices.Compact(old), ", "))
		if have.failed() {
			text += ", after instance refresh " + have.Refresh.String()
		}
		d.Set("machines", text, "all of version "+g.version())
	case len(*d) == 0 && have.Serving() != int(have.Desired) && !g.halted():
		d.Await("machines", fmt.Sprintf("%d in service%s", have.Serving(), text.Prefixed(" (", have.Trouble)+closing(have.Trouble)), fmt.Sprintf("%d in service", have.Desired))
	}
}

// failed reports whether the instance refresh that this run has started is
// over.
func (s *GroupState) failed() bool {
	return s.Started != "" && s.Refresh.ID == s.Started && !s.Refresh.Running
}

func closing(s string) string {
	if s == "" {
		return ""
	}
	return ")"
}

// halted reports whether machines are not to come or go, as the manifest
// says.
func (g *Group) halted() bool {
	s := g.suspended()
	return slices.Contains(s, "Launch") || slices.Contains(s, "Terminate")
}

// Create implements graph.Creator. What it makes has no machines yet, and
// runs all its processes.
func (g *Group) Create(ctx context.Context, c *cloud.Clients) (*GroupState, error) {
	in := &autoscaling.CreateAutoScalingGroupInput{
		AutoScalingGroupName: &g.Name, MinSize: &g.Spec.MinSize, MaxSize: &g.Spec.MaxSize, DesiredCapacity: g.Desired,
		VPCZoneIdentifier: aws.String(strings.Join(identity.CloudIDs(g.Subnets), ",")), CapacityRebalance: &g.Spec.CapacityRebalance,
		DefaultCooldown: seconds(usually(g.Spec.DefaultCoolDown.Duration)), DefaultInstanceWarmup: seconds(usually(g.Spec.DefaultInstanceWarmup.Duration)),
		Tags: g.tags(),
	}
	in.LaunchTemplate, in.MixedInstancesPolicy = g.launches()
	for _, h := range g.Spec.AWSLifecycleHooks {
		in.LifecycleHookSpecificationList = append(in.LifecycleHookSpecificationList, hookSpecification(h))
	}
	if _, err := c.AutoScaling.CreateAutoScalingGroup(ctx, in); err != nil {
		return nil, err
	}
	desired := g.Spec.MinSize
	if g.Desired != nil {
		desired = *g.Desired
	}
	return &GroupState{
		Object: identity.Object{ID: g.Name, Tags: g.Tags}, Min: g.Spec.MinSize, Max: g.Spec.MaxSize, Desired: desired, Subnets: identity.CloudIDs(g.Subnets),
		Template: g.template(), Mixed: g.mixed(), Rebalance: g.Spec.CapacityRebalance, Cooldown: usually(g.Spec.DefaultCoolDown.Duration),
		Warmup: usually(g.Spec.DefaultInstanceWarmup.Duration), Hooks: HooksWritten(g.Spec.AWSLifecycleHooks),
	}, nil
}

// Delete implements graph.Deleter. The machines go with the group, and it
// goes when they have gone.
func (g *Group) Delete(ctx context.Context, c *cloud.Clients, have *GroupState) error {
	if have.Status != "" {
		return nil // somebody has asked for it already
	}
	_, err := c.AutoScaling.DeleteAutoScalingGroup(ctx, &autoscaling.DeleteAutoScalingGroupInput{AutoScalingGroupName: &have.ID, ForceDelete: aws.Bool(true)})
	return err
}

// Groups lists the groups of the cluster.
func Groups(ctx context.Context, c *cloud.Clients) ([]GroupState, error) {
	return cloud.Remember(ctx, c, "auto scaling groups", func(ctx context.Context) ([]GroupState, error) {
		p := autoscaling.NewDescribeAutoScalingGroupsPaginator(c.AutoScaling, &autoscaling.DescribeAutoScalingGroupsInput{
			Filters: []types.Filter{{Name: aws.String("tag:" + c.OwnerTag()), Values: []string{cloud.Owned}}}, MaxRecords: aws.Int32(100),
		})
		return cloud.Pages(ctx, p.HasMorePages, func(ctx context.Context) (*autoscaling.DescribeAutoScalingGroupsOutput, error) {
			return p.NextPage(ctx)
		},
			func(o *autoscaling.DescribeAutoScalingGroupsOutput) (out []GroupState) {
				for _, x := range o.AutoScalingGroups {
					out = append(out, autoScalingGroupSeen(x))
				}
				return out
			})
	})
}

func autoScalingGroupSeen(x types.AutoScalingGroup) GroupState {
	s := GroupState{
		Object: identity.Object{ID: aws.ToString(x.AutoScalingGroupName), Tags: cloud.Tags{}}, ARN: aws.ToString(x.AutoScalingGroupARN), Status: aws.ToString(x.Status),
		Min: aws.ToInt32(x.MinSize), Max: aws.ToInt32(x.MaxSize), Desired: aws.ToInt32(x.DesiredCapacity), Mixed: mixedWritten(x.MixedInstancesPolicy),
		Cooldown: time.Duration(aws.ToInt32(x.DefaultCooldown)) * time.Second, Warmup: time.Duration(aws.ToInt32(x.DefaultInstanceWarmup)) * time.Second,
		Rebalance: aws.ToBool(x.CapacityRebalance),
	}
	for _, t := range x.Tags {
		s.Tags[aws.ToString(t.Key)] = aws.ToString(t.Value)
	}
	if ids := aws.ToString(x.VPCZoneIdentifier); ids != "" {
		s.Subnets = strings.Split(ids, ",")
	}
	template := x.LaunchTemplate
	if p := x.MixedInstancesPolicy; p != nil && p.LaunchTemplate != nil {
		template = p.LaunchTemplate.LaunchTemplateSpecification
	}
	if template != nil {
		s.Template = aws.ToString(template.LaunchTemplateId) + ":" + cmp.Or(aws.ToString(template.Version), "$Default")
	}
	for _, p := range x.SuspendedProcesses {
		s.Suspended = append(s.Suspended, aws.ToString(p.ProcessName))
	}
	slices.Sort(s.Suspended)
	for _, i := range x.Instances {
		m := PoolInstance{ID: aws.ToString(i.InstanceId), Zone: aws.ToString(i.AvailabilityZone), Type: aws.ToString(i.InstanceType), State: string(i.LifecycleState), Health: aws.ToString(i.HealthStatus)}
		if i.LaunchTemplate != nil {
			m.Version = aws.ToString(i.LaunchTemplate.Version)
		}
		s.Instances = append(s.Instances, m)
	}
	slices.SortStableFunc(s.Instances, func(a, b PoolInstance) int { return strings.Compare(a.ID, b.ID) })
	return s
}

// LifecycleHooks returns the hooks of a group, written down, by name.
func LifecycleHooks(ctx context.Context, c *cloud.Clients, group string) (map[string]string, error) {
	out, err := cloud.Remember(ctx, c, "lifecycle hooks "+group, func(ctx context.Context) (*autoscaling.DescribeLifecycleHooksOutput, error) {
		return c.AutoScaling.DescribeLifecycleHooks(ctx, &autoscaling.DescribeLifecycleHooksInput{AutoScalingGroupName: &group})
	})
	if err != nil {
		return nil, cloud.IgnoreNotFound(err) // the group went in between
	}
	hooks := map[string]string{}
	for _, h := range out.LifecycleHooks {
		hooks[aws.ToString(h.LifecycleHookName)] = hookWritten(h)
	}
	return hooks, nil
}

// lastRefresh returns the instance refresh of a group that began last.
func lastRefresh(ctx context.Context, c *cloud.Clients, group string) (last Refresh, err error) {
	out, err := cloud.Remember(ctx, c, "instance refreshes "+group, func(ctx context.Context) (*autoscaling.DescribeInstanceRefreshesOutput, error) {
		return c.AutoScaling.DescribeInstanceRefreshes(ctx, &autoscaling.DescribeInstanceRefreshesInput{AutoScalingGroupName: &group, MaxRecords: aws.Int32(100)})
	})
	if err != nil {
		return last, cloud.IgnoreNotFound(err)
	}
	for _, r := range out.InstanceRefreshes {
		seen := Refresh{ID: aws.ToString(r.InstanceRefreshId), Status: string(r.Status), Reason: aws.ToString(r.StatusReason), Percent: aws.ToInt32(r.PercentageComplete), Began: aws.ToTime(r.StartTime)}
		switch r.Status { //nolint:exhaustive // in the others it is over
		case types.InstanceRefreshStatusPending, types.InstanceRefreshStatusInProgress, types.InstanceRefreshStatusCancelling,
			types.InstanceRefreshStatusRollbackInProgress, types.InstanceRefreshStatusBaking:
			seen.Running = true
		}
		if !seen.Began.Before(last.Began) {
			last = seen
		}
	}
	return last, nil
}

// trouble tells why the last launch of a group failed; "" when it did not, or
// when that may not be read.
func trouble(ctx context.Context, c *cloud.Clients, group string) (string, error) {
	out, err := cloud.Remember(ctx, c, "scaling activities "+group, func(ctx context.Context) (*autoscaling.DescribeScalingActivitiesOutput, error) {
		return c.AutoScaling.DescribeScalingActivities(ctx, &autoscaling.DescribeScalingActivitiesInput{AutoScalingGroupName: &group, MaxRecords: aws.Int32(1)})
	})
	if cloud.NotFound(err) || cloud.Denied(err) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	for _, x := range out.Activities {
		if x.StatusCode == types.ScalingActivityStatusCodeFailed {
			return aws.ToString(x.StatusMessage), nil
		}
	}
	return "", nil
}

// Update implements graph.Updater. Processes are resumed before anything
// else, and machines replaced when all else is as wanted.
func (g *Group) Update(ctx context.Context, c *cloud.Clients, have *GroupState, d graph.Diff) (*GroupState, error) {
	for _, step := range []func(context.Context, *cloud.Clients, *GroupState, graph.Diff) error{
		g.updateProcesses, g.updateSettings, g.updateHooks, g.updateTags,
	} {
		if err := step(ctx, c, have, d); err != nil {
			return nil, err
		}
	}
	if !d.Has("machines") {
		return nil, nil // look again
	}
	return g.refresh(ctx, c, have, d)
}

func (g *Group) updateProcesses(ctx context.Context, c *cloud.Clients, have *GroupState, d graph.Diff) error {
	if more := d.Added("suspendedProcess"); len(more) > 0 {
		if _, err := c.AutoScaling.SuspendProcesses(ctx, &autoscaling.SuspendProcessesInput{AutoScalingGroupName: &have.ID, ScalingProcesses: more}); err != nil {
			return err
		}
	}
	if less := d.Removed("suspendedProcess"); len(less) > 0 {
		if _, err := c.AutoScaling.ResumeProcesses(ctx, &autoscaling.ResumeProcessesInput{AutoScalingGroupName: &have.ID, ScalingProcesses: less}); err != nil {
			return err
		}
	}
	return nil
}

func (g *Group) updateSettings(ctx context.Context, c *cloud.Clients, have *GroupState, d graph.Diff) error {
	if !d.Has("minSize", "maxSize", "replicas", "subnet", "launchTemplate", "mixedInstancesPolicy", "capacityRebalance", "defaultCoolDown", "defaultInstanceWarmup") {
		return nil
	}
	in := &autoscaling.UpdateAutoScalingGroupInput{
		AutoScalingGroupName: &have.ID, MinSize: &g.Spec.MinSize, MaxSize: &g.Spec.MaxSize, DesiredCapacity: g.Desired,
		VPCZoneIdentifier: aws.String(strings.Join(identity.CloudIDs(g.Subnets), ",")), CapacityRebalance: &g.Spec.CapacityRebalance,
		DefaultCooldown: seconds(usually(g.Spec.DefaultCoolDown.Duration)), DefaultInstanceWarmup: seconds(usually(g.Spec.DefaultInstanceWarmup.Duration)),
	}
	if d.Has("launchTemplate", "mixedInstancesPolicy") {
		in.LaunchTemplate, in.MixedInstancesPolicy = g.launches()
	}
	_, err := c.AutoScaling.UpdateAutoScalingGroup(ctx, in)
	return err
}

func (g *Group) updateHooks(ctx context.Context, c *cloud.Clients, have *GroupState, d graph.Diff) error {
	return UpdateHooks(ctx, c, have.ID, g.Spec.AWSLifecycleHooks, d)
}

func (g *Group) updateTags(ctx context.Context, c *cloud.Clients, _ *GroupState, d graph.Diff) error {
	if !d.HasTags() {
		return nil
	}
	_, err := c.AutoScaling.CreateOrUpdateTags(ctx, &autoscaling.CreateOrUpdateTagsInput{Tags: g.tags()})
	return err
}

// refresh has the machines replaced. One that this run has started and that
// came to nothing is not started again.
func (g *Group) refresh(ctx context.Context, c *cloud.Clients, have *GroupState, d graph.Diff) (*GroupState, error) {
	if have.failed() {
		return nil, fmt.Errorf("instance refresh %s left %s", have.Refresh, d[slices.IndexFunc(d, func(c graph.Change) bool { return c.Field == "machines" })].Have)
	}
	in := &autoscaling.StartInstanceRefreshInput{AutoScalingGroupName: &have.ID, Strategy: types.RefreshStrategyRolling}
	if p := g.Spec.RefreshPreferences; p != nil {
		in.Preferences = &types.RefreshPreferences{
			InstanceWarmup: narrow(p.InstanceWarmup), MinHealthyPercentage: narrow(p.MinHealthyPercentage), MaxHealthyPercentage: narrow(p.MaxHealthyPercentage),
		}
		if s := aws.ToString(p.Strategy); s != "" {
			in.Strategy = types.RefreshStrategy(s)
		}
	}
	out, err := c.AutoScaling.StartInstanceRefresh(ctx, in)
	if err != nil {
		return nil, err
	}
	after := *g.changed(have)
	after.Started = aws.ToString(out.InstanceRefreshId)
	after.Refresh = Refresh{ID: after.Started, Status: string(types.InstanceRefreshStatusPending), Running: true, Limit: g.refreshLimit()}
	return &after, nil
}

// changed is the state of the group when all that Update changes is as wanted.
func (g *Group) changed(have *GroupState) *GroupState {
	after := *have
	after.Min, after.Max, after.Subnets, after.Template, after.Mixed = g.Spec.MinSize, g.Spec.MaxSize, identity.CloudIDs(g.Subnets), g.template(), g.mixed()
	if g.Desired != nil {
		after.Desired = *g.Desired
	}
	after.Rebalance, after.Cooldown, after.Warmup = g.Spec.CapacityRebalance, usually(g.Spec.DefaultCoolDown.Duration), usually(g.Spec.DefaultInstanceWarmup.Duration)
	after.Suspended, after.Hooks, after.Tags = g.suspended(), HooksWritten(g.Spec.AWSLifecycleHooks), have.Tags.With(g.Tags)
	return &after
}

func narrow(n *int64) *int32 {
	if n == nil {
		return nil
	}
	return aws.Int32(int32(*n)) //nolint:gosec // percentages, and seconds of less than a day
}

func seconds(d time.Duration) *int32 {
	return aws.Int32(int32(d / time.Second)) //nolint:gosec // less than a century
}

// tags are the group's own: what it launches has those of the template.
func (g *Group) tags() (out []types.Tag) {
	for _, t := range g.Tags.EC2() {
		out = append(out, types.Tag{
			Key: t.Key, Value: t.Value, PropagateAtLaunch: aws.Bool(false), ResourceId: &g.Name, ResourceType: aws.String("auto-scaling-group"),
		})
	}
	return out
}

// template is what the group launches, as its state has it.
func (g *Group) template() string {
	if _, ok := g.Template.Found(); !ok {
		return graph.Unknown
	}
	return g.Template.CloudID() + ":" + expinfrav1.LaunchTemplateLatestVersion
}

func (g *Group) suspended() []string {
	s := g.Spec.SuspendProcesses
	if s == nil {
		return nil
	}
	own := *s // upstream's method writes into what it is called on
	out := own.ConvertSetValuesToStringSlice()
	slices.Sort(out)
	return out
}

// launches is what the group launches: one type of machine, or several.
func (g *Group) launches() (*types.LaunchTemplateSpecification, *types.MixedInstancesPolicy) {
	t := &types.LaunchTemplateSpecification{LaunchTemplateId: aws.String(g.Template.CloudID()), Version: aws.String(expinfrav1.LaunchTemplateLatestVersion)}
	p := g.Spec.MixedInstancesPolicy
	if p == nil {
		return t, nil
	}
	out := &types.MixedInstancesPolicy{LaunchTemplate: &types.LaunchTemplate{LaunchTemplateSpecification: t}}
	for _, o := range p.Overrides {
		out.LaunchTemplate.Overrides = append(out.LaunchTemplate.Overrides, types.LaunchTemplateOverrides{InstanceType: aws.String(o.InstanceType)})
	}
	if d := p.InstancesDistribution; d != nil {
		out.InstancesDistribution = &types.InstancesDistribution{
			OnDemandAllocationStrategy: optional(string(d.OnDemandAllocationStrategy)), SpotAllocationStrategy: optional(string(d.SpotAllocationStrategy)),
			OnDemandBaseCapacity: narrow(d.OnDemandBaseCapacity), OnDemandPercentageAboveBaseCapacity: narrow(d.OnDemandPercentageAboveBaseCapacity),
		}
	}
	return nil, out
}

func optional(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

func (g *Group) mixed() string {
	_, p := g.launches()
	return mixedWritten(p)
}

// mixedWritten writes a mixed instances policy down, with AWS's defaults for
// what it leaves open.
func mixedWritten(p *types.MixedInstancesPolicy) string {
	if p == nil {
		return ""
	}
	var kinds []string
	if p.LaunchTemplate != nil {
		for _, o := range p.LaunchTemplate.Overrides {
			kinds = append(kinds, aws.ToString(o.InstanceType))
		}
	}
	d := types.InstancesDistribution{}
	if p.InstancesDistribution != nil {
		d = *p.InstancesDistribution
	}
	share := int32(100)
	if d.OnDemandPercentageAboveBaseCapacity != nil {
		share = *d.OnDemandPercentageAboveBaseCapacity
	}
	return fmt.Sprintf("%s; on demand %d and %d %% of the rest, %s; spot %s", strings.Join(kinds, ", "), aws.ToInt32(d.OnDemandBaseCapacity), share,
		cmp.Or(aws.ToString(d.OnDemandAllocationStrategy), "prioritized"), cmp.Or(aws.ToString(d.SpotAllocationStrategy), "lowest-price"))
}

// groupKind declares Auto Scaling groups.
func groupKind() *kind.Any {
	return kind.Of(kind.Kind[GroupState]{
		Name: "auto-scaling-group", Area: kind.AreaWorkers, SearchedWith: ec2types.ResourceTypeLaunchTemplate, List: kind.Tagged(Groups), Delete: &Group{}, RunsPods: true,
		Refers: func(s GroupState) []string {
			template, _, _ := strings.Cut(s.Template, ":")
			return append(slices.Clone(s.Subnets), template)
		},
		Status:    func(s GroupState) (state, detail string) { return strings.ToLower(s.Status), s.summary() },
		Looks:     []string{"autoscaling:DescribeAutoScalingGroups", "autoscaling:DescribeInstanceRefreshes", "autoscaling:DescribeLifecycleHooks", "autoscaling:DescribeScalingActivities"},
		Statement: kind.Pools,
		Actions: []string{
			"autoscaling:CreateAutoScalingGroup", "autoscaling:CreateOrUpdateTags", "autoscaling:DeleteAutoScalingGroup", "autoscaling:ResumeProcesses",
			"autoscaling:StartInstanceRefresh", "autoscaling:SuspendProcesses", "autoscaling:UpdateAutoScalingGroup",
		},
	})
}

// summary says how many machines a group has, and which.
func (s *GroupState) summary() string {
	const most = 10 // of hundreds, the number says more
	words := []string{fmt.Sprintf("%d of %d in service", s.Serving(), s.Desired)}
	for n, i := range s.Instances {
		if n == most {
			words = append(words, fmt.Sprintf("and %d more", len(s.Instances)-most))
			break
		}
		word := kind.Words(i.ID, i.Zone, i.Type)
		if i.State != inService {
			word += " " + i.State
		}
		words = append(words, word)
	}
	return strings.Join(words, ", ") + s.Refreshing()
}

// Kinds lists the kinds of this package: one line each.
func Kinds() []*kind.Any {
	return []*kind.Any{
		groupKind(),
		hookKind(),
	}
}
