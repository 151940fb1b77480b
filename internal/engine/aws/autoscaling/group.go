package autoscaling

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
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
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// Group is an Auto Scaling group (CAPA: AWSMachinePool). It launches the latest version
// of its launch template. An instance refresh replaces machines of older versions.
type Group struct {
	Name string
	// Spec is that of the AWSMachinePool, except for the launch template and the subnets.
	Spec     expinfrav1.AWSMachinePoolSpec
	Template *graph.Ref[ec2.LaunchTemplateState]
	// Content is the desired content of the template, from which a plan computes whether
	// a new version causes an instance refresh; it may be nil.
	Content *ec2.LaunchTemplate
	Subnets []*graph.Ref[ec2.SubnetState]
	// Desired is the number of machines; nil if an autoscaler sets it (annotation
	// cluster.x-k8s.io/replicas-managed-by).
	Desired *int32
	// Initial is the number of machines of a new group whose number an autoscaler sets; nil
	// for the minimum.
	Initial *int32
	Tags    cloud.Tags
	// Nodes returns what the API server and EC2 know of machines, by ID; nil: the run does not
	// look at Nodes.
	// why says that they cannot be known now.
	Nodes func(ctx context.Context, c *cloud.Clients, ids []string) (known map[string]Machine, why string, err error)

	// Needed lists resources that have to exist before a machine boots.
	Needed []graph.Edge
}

// GroupState is an Auto Scaling group, as AWS describes it. Its ID is its name.
type GroupState struct {
	identity.Object
	ARN                string
	Status             string // "Delete in progress", or ""
	Min, Max, Desired  int32
	Subnets            []string
	Template           string // ID and version: "lt-0123:$Latest"
	Mixed              string // the mixed instances policy as text; "" for none
	Cooldown, Warmup   time.Duration
	Rebalance          bool
	DeletionProtection types.DeletionProtection // "" and "none" are the same
	Suspended          []string                 // processes
	Hooks              map[string]string        // lifecycle hooks as text, by name
	Instances          []PoolInstance
	Refresh            Refresh       // the last instance refresh, if one may be in progress
	StartedRefresh     string        // ID of the instance refresh that this run started last
	Replacing          int           // number of outdated machines when it started
	Cancelled          bool          // this run has cancelled it
	LaunchFailure      string        // error of the last launch; "" unless machines are missing
	FailedAt           time.Time     // when that launch began
	Since              time.Time     // when this run has seen these settings of the group for the first time
	Watched            bool          // the Nodes of the machines are known
	NodesUnknown       string        // why they are not, although the run looks at them
	lasts              time.Duration // of the replacement of all outdated machines
	late               time.Duration // how long a new machine has had to join, if it has not; 0 otherwise
}

// PoolInstance is a machine of an Auto Scaling group.
type PoolInstance struct {
	ID, Zone, Type string
	State          string // lifecycle state: Pending, InService, Terminating, …
	Health         string // Healthy or Unhealthy
	Version        string // of the launch template
	Weight         int    // units of the desired capacity
	Protected      bool   // from scale-in
	Machine        Machine
}

// Machine is what the API server and EC2 know of a machine of a group.
type Machine struct {
	Joined, Ready bool      // its Node
	Launched      time.Time // zero: not known
	Leaving       bool      // EC2 terminates it
	Overdue       bool      // it has had enough time to join
}

const inService = string(types.LifecycleStateInService)

// Deleting implements graph.Deleting. The group has no other states.
func (s GroupState) Deleting() bool { return s.Status != "" }

// Serving returns the capacity in service: the number of machines, unless they have weights.
func (s *GroupState) Serving() (n int) {
	for _, i := range s.Instances {
		if i.State == inService && i.Health != "Unhealthy" && !i.Machine.Leaving {
			n += i.Weight
		}
	}
	return n
}

// leaving reports whether a machine is being terminated, or is not part of the capacity.
func (i PoolInstance) leaving() bool {
	return strings.HasPrefix(i.State, "Terminat") || strings.HasPrefix(i.State, "Warmed") || i.Machine.Leaving
}

// Members lists the machines that are to be Nodes: those that are not being terminated, and not in
// a warm pool.
func (s *GroupState) Members() []PoolInstance {
	return slices.DeleteFunc(slices.Clone(s.Instances), PoolInstance.leaving)
}

var (
	_ graph.Managed[GroupState]  = (*Group)(nil)
	_ graph.Follower[GroupState] = (*Group)(nil)
	_ graph.Timed                = (*Group)(nil)
	_ graph.TimeLimited          = GroupState{}
	_ graph.Lasting              = GroupState{}
	_ graph.Failing              = GroupState{}
	_ ec2.Launcher               = (*Group)(nil)
)

// Needs implements graph.Desired.
func (g *Group) Needs() []graph.Edge {
	needs := graph.On(g.Template)
	for _, s := range g.Subnets {
		needs = append(needs, graph.Exists(s)...)
	}
	return append(needs, g.Needed...)
}

// Takes implements graph.Timed. A group starts its first machine some seconds after it
// was created.
func (g *Group) Takes() (create, remove time.Duration) {
	return ec2.InstanceCreateTime + 10*time.Second, ec2.InstanceDeleteTime + 10*time.Second
}

// orDefault returns d, or CAPA's default for cooldown and warmup.
func orDefault(d time.Duration) time.Duration { return cmp.Or(d, 300*time.Second) }

// Find implements graph.Desired.
func (g *Group) Find(ctx context.Context, c *cloud.Clients) (*GroupState, error) {
	return g.Follow(ctx, c, &GroupState{})
}

// Identify implements graph.Identified.
func (g *Group) Identify(ctx context.Context, c *cloud.Clients, _ *GroupState) (*GroupState, error) {
	all, err := Groups(ctx, c)
	if err != nil {
		return nil, err
	}
	return identity.Find(all, g.Tags)
}

// Follow implements graph.Follower. An instance refresh that was in progress is described
// until it ends, also when no machine has to be replaced any more.
func (g *Group) Follow(ctx context.Context, c *cloud.Clients, last *GroupState) (*GroupState, error) {
	s, err := g.Identify(ctx, c, nil)
	if s == nil || err != nil || s.Deleting() {
		return s, err
	}
	have := *s
	if have.Hooks, err = LifecycleHooks(ctx, c, have.ID); err != nil {
		return nil, err
	}
	have.StartedRefresh, have.Replacing, have.Cancelled = last.StartedRefresh, last.Replacing, last.Cancelled
	if last.Refresh.Running || g.mayRefresh(&have) { // after the last replacement, it waits for the warmup
		if have.Refresh, err = lastRefresh(ctx, c, have.ID); err != nil {
			return nil, err
		}
		have.Refresh.TimeLimit = g.refreshLimit()
	}
	if err = g.watch(ctx, c, &have); err != nil {
		return nil, err
	}
	if have.Since = last.Since; have.Since.IsZero() || have.settings() != last.settings() {
		have.Since = c.Now()
	}
	if have.Serving() < int(have.Desired) {
		have.LaunchFailure, have.FailedAt, err = launchFailure(ctx, c, have.ID)
	}
	return &have, err
}

// settings are those that may be why a launch fails.
func (s *GroupState) settings() string {
	return fmt.Sprint(s.Min, s.Max, s.Desired, s.Subnets, s.Template, s.Mixed)
}

// cannotLaunch reports whether launches fail for a reason that does not pass. Auto Scaling repeats a
// failed launch, less and less often. A run waits for the second one: the first may be older than the
// settings, or have come before IAM shows a new instance profile everywhere. A lack of capacity may end
// while the run waits, as with RunInstances.
func (s *GroupState) cannotLaunch() bool {
	return s.LaunchFailure != "" && !s.Since.IsZero() && s.FailedAt.Sub(s.Since) >= cloud.ConsistencyDelay && !cloud.LacksCapacity(s.LaunchFailure)
}

// Failure implements graph.Failing. A run cancels an instance refresh before it fails. It does not wait
// for the end of the refresh: AWS finishes the replacements in progress first, and these do not end.
func (s GroupState) Failure() string {
	if !s.cannotLaunch() || s.Refresh.cancellable() {
		return ""
	}
	after := ""
	if s.Cancelled {
		after = ", after instance refresh " + s.Refresh.String()
	}
	return fmt.Sprintf("%s: %s (%d in service of %d%s)", types.ScalingActivityStatusCodeFailed, s.LaunchFailure, s.Serving(), s.Desired, after)
}

// mayRefresh reports whether an instance refresh may be in progress: machines have
// different versions, or are starting or terminating.
func (g *Group) mayRefresh(have *GroupState) bool {
	return len(g.behind(have)) > 0 || slices.ContainsFunc(have.Instances, func(i PoolInstance) bool {
		return i.State != inService || i.Version != have.Instances[0].Version
	})
}

// version returns the desired version of the template. In a plan, it may not exist yet.
func (g *Group) version() string {
	return ec2.VersionOf(g.Template, g.Content)
}

// outdated lists the template versions of the outdated machines.
func (g *Group) outdated(have *GroupState) []string {
	if ec2.KeepsMachines(g.Template, g.Content) {
		return nil
	}
	return g.behind(have)
}

// behind lists the template versions of the machines that have another one than the desired.
func (g *Group) behind(have *GroupState) (versions []string) {
	for _, i := range have.Instances {
		if i.Version != g.version() && !i.leaving() {
			versions = append(versions, i.Version)
		}
	}
	return versions
}

// Diff implements graph.Desired. It waits for machines only if there is no other
// difference, because the other difference may be the reason why machines do not start.
func (g *Group) Diff(have *GroupState) (d plan.Diff) {
	d.Set("minSize", have.Min, g.Spec.MinSize)
	d.Set("maxSize", have.Max, g.Spec.MaxSize)
	d.Set("replicas", have.Desired, g.capacity(have))
	d.Lines("subnet", have.Subnets, identity.CloudIDs(g.Subnets))
	d.Set("launchTemplate", have.Template, g.template())
	d.Set("mixedInstancesPolicy", have.Mixed, g.mixedInstances())
	d.Set("capacityRebalance", have.Rebalance, g.Spec.CapacityRebalance)
	d.Set("defaultCoolDown", have.Cooldown, orDefault(g.Spec.DefaultCoolDown.Duration))
	d.Set("defaultInstanceWarmup", have.Warmup, orDefault(g.Spec.DefaultInstanceWarmup.Duration))
	d.Lines("suspendedProcess", have.Suspended, g.suspended())
	DiffHooks(have.Hooks, g.Spec.AWSLifecycleHooks, &d)
	d.Tags(have.Tags, g.Tags)
	g.diffMachines(have, &d)
	return d
}

// diffMachines adds differences for outdated and for missing machines.
func (g *Group) diffMachines(have *GroupState, d *plan.Diff) {
	if have.ID == "" {
		return
	}
	old := g.outdated(have)
	stale := len(old) > 0 && !g.keepsOutdated()
	switch {
	case have.Refresh.Running:
		have.diffRefresh(stale || len(*d) == 0, d)
	case stale:
		g.diffOutdated(have, old, d)
	case len(*d) == 0 && (have.StartedRefresh == "" || !g.awaitsNodes(have, d)):
		g.diffServing(have, d)
	}
}

// diffRefresh adds a difference for an instance refresh that is running: it is cancelled if its
// machines cannot be launched or do not join, and awaited if needed is set.
func (s *GroupState) diffRefresh(needed bool, d *plan.Diff) {
	switch {
	case s.cannotLaunch() && s.Refresh.cancellable():
		d.Set("instanceRefresh", s.Refresh.String()+parenthesized(s.LaunchFailure), "cancelled")
	case s.late > 0 && s.Refresh.cancellable():
		d.Set("instanceRefresh", s.Refresh.String()+parenthesized(s.notJoined()), "cancelled")
	case needed:
		d.Await("instanceRefresh", s.Refresh.String()+parenthesized(s.LaunchFailure), "complete")
	}
}

// diffServing adds a difference if there are fewer or more machines in service than desired.
func (g *Group) diffServing(have *GroupState, d *plan.Diff) {
	if have.Serving() != int(have.Desired) && !have.overweight() && !g.scalingSuspended() {
		d.Await("machines", fmt.Sprintf("%d in service%s", have.Serving(), parenthesized(have.LaunchFailure)), fmt.Sprintf("%d in service", have.Desired))
	}
}

// overweight reports whether machines with weights have more capacity than desired, as AWS permits:
// the last one may not fit.
func (s *GroupState) overweight() bool {
	return s.Serving() > int(s.Desired) && s.Weighted()
}

// Weighted reports whether the desired capacity is not a number of machines.
func (s *GroupState) Weighted() bool {
	return slices.ContainsFunc(s.Instances, func(i PoolInstance) bool { return i.Weight > 1 })
}

func parenthesized(s string) string {
	if s == "" {
		return ""
	}
	return " (" + s + ")"
}

// scalingSuspended reports whether the manifest suspends the process Launch or Terminate.
func (g *Group) scalingSuspended() bool {
	s := g.suspended()
	return slices.Contains(s, "Launch") || slices.Contains(s, "Terminate")
}

// Launches implements ec2.Launcher. Of several instance types, it returns the first one.
func (g *Group) Launches(have graph.State) []ec2.Launch {
	n := g.added(have)
	if n <= 0 || g.Content == nil {
		return nil
	}
	_, mixed := g.launchSource()
	if mixed == nil || mixed.InstancesDistribution == nil {
		return g.Content.LaunchesOf(n)
	}
	d := mixed.InstancesDistribution
	base := min(n, aws.ToInt32(d.OnDemandBaseCapacity))
	share := int32(100)
	if d.OnDemandPercentageAboveBaseCapacity != nil {
		share = *d.OnDemandPercentageAboveBaseCapacity
	}
	spot := (n - base) * (100 - share) / 100
	name := g.Content.Spec.InstanceType
	if all := mixed.LaunchTemplate.Overrides; len(all) > 0 {
		name = aws.ToString(all[0].InstanceType)
	}
	return []ec2.Launch{{Type: name, Count: int(n - spot)}, {Type: name, Spot: true, Count: int(spot)}}
}

// initial returns the number of machines of a new group.
func (g *Group) initial() int32 {
	switch {
	case g.Desired != nil:
		return *g.Desired
	case g.Initial != nil:
		return *g.Initial
	}
	return g.Spec.MinSize
}

// capacity returns the desired capacity of the group after a run. A capacity that an autoscaler has set stays, unless the new minimum or maximum
// forbids it: Auto Scaling then moves it to that bound (MinSize, MaxSize of UpdateAutoScalingGroup, API reference).
func (g *Group) capacity(have *GroupState) int32 {
	if g.Desired != nil || have == nil || have.ID == "" {
		return g.initial()
	}
	return min(max(have.Desired, g.Spec.MinSize), g.Spec.MaxSize)
}

// added returns how many machines a run adds to the group.
func (g *Group) added(have graph.State) int32 {
	s, _ := have.(*GroupState)
	n := g.capacity(s)
	if s != nil {
		n -= int32(len(s.Instances)) //nolint:gosec // a group has a few thousand machines at most
	}
	return max(n, 0)
}

// Create implements graph.Creator. The state it returns has no machines and no suspended
// processes.
func (g *Group) Create(ctx context.Context, c *cloud.Clients) (*GroupState, error) {
	desired := g.initial()
	in := &autoscaling.CreateAutoScalingGroupInput{
		AutoScalingGroupName: &g.Name, MinSize: &g.Spec.MinSize, MaxSize: &g.Spec.MaxSize, DesiredCapacity: &desired,
		VPCZoneIdentifier: aws.String(strings.Join(identity.CloudIDs(g.Subnets), ",")), CapacityRebalance: &g.Spec.CapacityRebalance,
		DefaultCooldown: seconds(orDefault(g.Spec.DefaultCoolDown.Duration)), DefaultInstanceWarmup: seconds(orDefault(g.Spec.DefaultInstanceWarmup.Duration)),
		Tags: g.tags(),
	}
	in.LaunchTemplate, in.MixedInstancesPolicy = g.launchSource()
	for _, h := range g.Spec.AWSLifecycleHooks {
		in.LifecycleHookSpecificationList = append(in.LifecycleHookSpecificationList, hookSpecification(h))
	}
	if _, err := c.AutoScaling.CreateAutoScalingGroup(ctx, in); err != nil {
		return nil, err
	}
	return &GroupState{
		Object: identity.Object{ID: g.Name, Tags: g.Tags}, Min: g.Spec.MinSize, Max: g.Spec.MaxSize, Desired: desired, Subnets: identity.CloudIDs(g.Subnets),
		Template: g.template(), Mixed: g.mixedInstances(), Rebalance: g.Spec.CapacityRebalance, Cooldown: orDefault(g.Spec.DefaultCoolDown.Duration),
		Warmup: orDefault(g.Spec.DefaultInstanceWarmup.Duration), Hooks: HookTexts(g.Spec.AWSLifecycleHooks),
	}, nil
}

// Delete implements graph.Deleter. AWS terminates the machines first.
func (g *Group) Delete(ctx context.Context, c *cloud.Clients, have *GroupState) error {
	if have.Deleting() {
		return nil // the deletion is in progress
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
		return cloud.Pages(ctx, p, func(o *autoscaling.DescribeAutoScalingGroupsOutput) (out []GroupState) {
			for _, x := range o.AutoScalingGroups {
				out = append(out, groupState(x))
			}
			return out
		})
	})
}

func groupState(x types.AutoScalingGroup) GroupState {
	s := GroupState{
		Object: identity.Object{
			ID:   aws.ToString(x.AutoScalingGroupName),
			Tags: cloud.TagsFrom(x.Tags, func(t types.TagDescription) (key, value *string) { return t.Key, t.Value }),
		},
		ARN:                aws.ToString(x.AutoScalingGroupARN),
		Status:             aws.ToString(x.Status),
		Min:                aws.ToInt32(x.MinSize),
		Max:                aws.ToInt32(x.MaxSize),
		Desired:            aws.ToInt32(x.DesiredCapacity),
		Mixed:              mixedInstancesText(x.MixedInstancesPolicy),
		Cooldown:           time.Duration(aws.ToInt32(x.DefaultCooldown)) * time.Second,
		Warmup:             time.Duration(aws.ToInt32(x.DefaultInstanceWarmup)) * time.Second,
		Rebalance:          aws.ToBool(x.CapacityRebalance),
		DeletionProtection: x.DeletionProtection,
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
		m := PoolInstance{
			ID:     aws.ToString(i.InstanceId),
			Zone:   aws.ToString(i.AvailabilityZone),
			Type:   aws.ToString(i.InstanceType),
			State:  string(i.LifecycleState),
			Health: aws.ToString(i.HealthStatus),

			Protected: aws.ToBool(i.ProtectedFromScaleIn),
		}
		if m.Weight, _ = strconv.Atoi(aws.ToString(i.WeightedCapacity)); m.Weight == 0 {
			m.Weight = 1
		}
		if i.LaunchTemplate != nil {
			m.Version = aws.ToString(i.LaunchTemplate.Version)
		}
		s.Instances = append(s.Instances, m)
	}
	slices.SortStableFunc(s.Instances, func(a, b PoolInstance) int { return strings.Compare(a.ID, b.ID) })
	return s
}

// launchFailure returns the error of the last launch in a group, and the time at which that launch began. The error is "" if the launch has not
// failed, or if the caller has no permission to read scaling activities.
//
// A failed launch is the newest activity of the group. A launch that a lifecycle hook has abandoned has the status Cancelled, and newer activities
// may follow it: Auto Scaling terminates the machine, and launches another.
func launchFailure(ctx context.Context, c *cloud.Clients, group string) (why string, began time.Time, err error) {
	out, err := cloud.Remember(ctx, c, "scaling activities "+group, func(ctx context.Context) (*autoscaling.DescribeScalingActivitiesOutput, error) {
		return c.AutoScaling.DescribeScalingActivities(ctx, &autoscaling.DescribeScalingActivitiesInput{AutoScalingGroupName: &group, MaxRecords: aws.Int32(20)})
	})
	if cloud.NotFound(err) || cloud.Denied(err) {
		return "", began, nil
	}
	if err != nil {
		return "", began, err
	}
	for n, x := range out.Activities {
		message := aws.ToString(x.StatusMessage)
		switch {
		case n == 0 && x.StatusCode == types.ScalingActivityStatusCodeFailed,
			x.StatusCode == types.ScalingActivityStatusCodeCancelled && strings.Contains(message, "Lifecycle Action"):
			return message, aws.ToTime(x.StartTime), nil
		case x.StatusCode == types.ScalingActivityStatusCodeSuccessful && strings.HasPrefix(aws.ToString(x.Description), "Launching"):
			return "", began, nil
		}
	}
	return "", began, nil
}

// Update implements graph.Updater. It resumes processes first, and replaces machines
// last.
func (g *Group) Update(ctx context.Context, c *cloud.Clients, have *GroupState, d plan.Diff) (*GroupState, error) {
	for _, step := range []func(context.Context, *cloud.Clients, *GroupState, plan.Diff) error{
		g.updateProcesses, g.updateSettings, g.updateHooks, g.updateTags,
	} {
		if err := step(ctx, c, have, d); err != nil {
			return nil, err
		}
	}
	switch {
	case d.Has("instanceRefresh"):
		return cancelRefresh(ctx, c, have)
	case d.Has(notJoined):
		return nil, ec2.Terminate(ctx, c, g.dead(have))
	case d.Has("machines"):
		return g.startRefresh(ctx, c, have, d)
	}
	return nil, nil // find it again
}

func (g *Group) updateProcesses(ctx context.Context, c *cloud.Clients, have *GroupState, d plan.Diff) error {
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

func (g *Group) updateSettings(ctx context.Context, c *cloud.Clients, have *GroupState, d plan.Diff) error {
	if !d.Has(
		"minSize",
		"maxSize",
		"replicas",
		"subnet",
		"launchTemplate",
		"mixedInstancesPolicy",
		"capacityRebalance",
		"defaultCoolDown",
		"defaultInstanceWarmup",
	) {
		return nil
	}
	in := &autoscaling.UpdateAutoScalingGroupInput{
		AutoScalingGroupName: &have.ID, MinSize: &g.Spec.MinSize, MaxSize: &g.Spec.MaxSize, DesiredCapacity: g.Desired,
		CapacityRebalance: &g.Spec.CapacityRebalance,
		DefaultCooldown:   seconds(orDefault(g.Spec.DefaultCoolDown.Duration)), DefaultInstanceWarmup: seconds(orDefault(g.Spec.DefaultInstanceWarmup.Duration)),
	}
	if d.Has("subnet") { // with subnets, Auto Scaling checks whether machines start, also if none will
		in.VPCZoneIdentifier = aws.String(strings.Join(identity.CloudIDs(g.Subnets), ","))
	}
	if d.Has("launchTemplate", "mixedInstancesPolicy") {
		in.LaunchTemplate, in.MixedInstancesPolicy = g.launchSource()
	}
	_, err := c.AutoScaling.UpdateAutoScalingGroup(ctx, in)
	return err
}

func (g *Group) updateTags(ctx context.Context, c *cloud.Clients, _ *GroupState, d plan.Diff) error {
	return changeTags(ctx, c, g.Name, g.tags(), d)
}

func seconds(d time.Duration) *int32 {
	return aws.Int32(int32(d / time.Second)) //nolint:gosec // less than a century
}

// tags returns the tags of the group. Machines get those of the launch template.
func (g *Group) tags() []types.Tag { return groupTags(g.Name, g.Tags, false) }

// template returns the launch template as in GroupState.
func (g *Group) template() string {
	if _, ok := g.Template.Found(); !ok {
		return plan.Unknown
	}
	return g.Template.CloudID() + ":" + expinfrav1.LaunchTemplateLatestVersion
}

func (g *Group) suspended() []string {
	s := g.Spec.SuspendProcesses
	if s == nil {
		return nil
	}
	own := *s // the method modifies its receiver
	out := own.ConvertSetValuesToStringSlice()
	slices.Sort(out)
	return out
}

// GroupKind is the kind of Auto Scaling groups.
const GroupKind = "auto-scaling-group"

// groupProtection implements kind.Functions.Protection. Protection of single machines from scale-in
// does not prevent a forced deletion of the group.
func groupProtection(_ context.Context, c *cloud.Clients, s GroupState) (string, error) {
	if s.DeletionProtection == "" || s.DeletionProtection == types.DeletionProtectionNone || s.Deleting() {
		return "", nil
	}
	return fmt.Sprintf(
		"the Auto Scaling group %s has deletion protection (%s): aws autoscaling update-auto-scaling-group --region %s --auto-scaling-group-name %[1]s --deletion-protection none turns it off",
		s.ID,
		s.DeletionProtection,
		c.Region,
	), nil
}

// groupKind declares Auto Scaling groups.
func groupKind() *kind.Kind {
	return kind.Of(kind.Kind{
		Name:         GroupKind,
		Rehearsed:    true,
		Area:         plan.AreaWorkers,
		SearchedWith: ec2types.ResourceTypeLaunchTemplate,
		RunsPods:     true,
		ReadActions: []string{
			"autoscaling:DescribeAutoScalingGroups",
			"autoscaling:DescribeInstanceRefreshes",
			"autoscaling:DescribeLifecycleHooks",
			"autoscaling:DescribeScalingActivities",
		},
		Statement: kind.Pools,
		Actions: []string{
			"autoscaling:CancelInstanceRefresh",
			"autoscaling:CreateAutoScalingGroup",
			"autoscaling:CreateOrUpdateTags", "autoscaling:DeleteAutoScalingGroup",
			"autoscaling:DeleteTags",
			"autoscaling:ResumeProcesses",
			"autoscaling:StartInstanceRefresh",
			"autoscaling:SuspendProcesses",
			"autoscaling:UpdateAutoScalingGroup",
		},
	}, kind.Functions[GroupState]{
		List: kind.Tagged(Groups), Delete: &Group{},
		Refers: func(s GroupState) []string {
			return append(slices.Clone(s.Subnets), s.TemplateID())
		},
		Uses:       func(s GroupState) []string { return []string{s.TemplateID()} },
		Protection: groupProtection,
		Status:     func(s GroupState) (state, detail string) { return strings.ToLower(s.Status), s.summary() },
	})
}

// summary lists the machines of the group for a status line.
func (s *GroupState) summary() string {
	const most = 10 // machines that are listed
	parts := []string{fmt.Sprintf("%d of %d in service", s.Serving(), s.Desired)}
	for n, i := range s.Instances {
		if n == most {
			parts = append(parts, fmt.Sprintf("and %d more", len(s.Instances)-most))
			break
		}
		machine := kind.Join(i.ID, i.Zone, i.Type)
		if i.State != inService {
			machine += " " + i.State
		}
		parts = append(parts, machine)
	}
	return strings.Join(parts, ", ") + s.refreshText()
}
