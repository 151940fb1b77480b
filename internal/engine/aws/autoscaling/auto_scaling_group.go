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
	expinfrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/exp/api/v1beta2"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/ec2"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/identity"
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

	refreshing bool   // an instance refresh was seen under way
	started    string // the ID of the one that this run has started
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
	_ graph.Desired[GroupState] = (*Group)(nil)
	_ graph.Patient             = (*Group)(nil)
)

// Needs implements graph.Resource.
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

// Patience implements graph.Patient: an instance refresh may replace one
// machine after the other.
func (g *Group) Patience() time.Duration {
	usual := 15 * time.Minute
	if !g.refreshing {
		return usual
	}
	return usual + time.Duration(max(g.Spec.MaxSize, 1))*(g.warmup()+2*time.Minute)
}

func (g *Group) warmup() time.Duration {
	if p := g.Spec.RefreshPreferences; p != nil && p.InstanceWarmup != nil {
		return time.Duration(*p.InstanceWarmup) * time.Second
	}
	return usually(g.Spec.DefaultInstanceWarmup.Duration)
}

// usually is CAPA's default for cooldown and warm-up.
func usually(d time.Duration) time.Duration { return cmp.Or(d, 300*time.Second) }

// Find implements graph.Resource.
func (g *Group) Find(ctx context.Context, c *cloud.Clients) (*GroupState, error) {
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
	if g.refreshing || g.uneven(&have) { // it warms the last machine up when all are alike
		if have.Refresh, err = lastRefresh(ctx, c, have.ID); err != nil {
			return nil, err
		}
	}
	g.refreshing = have.Refresh.Running
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

// Diff implements graph.Resource. Time is given for machines to come only
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
		if g.failed(have) {
			text += ", after instance refresh " + have.Refresh.String()
		}
		d.Set("machines", text, "all of version "+g.version())
	case len(*d) == 0 && have.Serving() != int(have.Desired) && !g.halted():
		d.Await("machines", fmt.Sprintf("%d in service%s", have.Serving(), text.Prefixed(" (", have.Trouble)+closing(have.Trouble)), fmt.Sprintf("%d in service", have.Desired))
	}
}

// failed reports whether the instance refresh that this run has started is
// over.
func (g *Group) failed(have *GroupState) bool {
	return g.started != "" && have.Refresh.ID == g.started && !have.Refresh.Running
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

// Create implements graph.Resource. What it makes has no machines yet, and
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

// Delete implements graph.Resource. The machines go with the group, and it
// goes when they have gone.
func (g *Group) Delete(ctx context.Context, c *cloud.Clients, have *GroupState) error {
	if have.Status != "" {
		return nil // somebody has asked for it already
	}
	_, err := c.AutoScaling.DeleteAutoScalingGroup(ctx, &autoscaling.DeleteAutoScalingGroupInput{AutoScalingGroupName: &have.ID, ForceDelete: aws.Bool(true)})
	return err
}
