package autoscaling

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/ec2"
	"github.com/clusterawsadm/clusterawsadm/internal/text"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// To Auto Scaling, a machine is healthy when EC2 runs it, whether or not it has joined the cluster.
// A run that looks at Nodes therefore replaces machines in parts: each instance refresh has a
// checkpoint below 100 %, at which AWS ends it ("Add checkpoints to an instance refresh", Amazon EC2
// Auto Scaling user guide), and the next one starts when the new machines are Nodes. If the run
// dies, AWS replaces no more than the part that is in progress.

// The time in which a machine of a group joins, from when it is launched. Bare-metal instances take
// many minutes to boot.
const (
	poolPatience  = 10 * time.Minute
	metalPatience = 30 * time.Minute
)

// joinLimit returns how long a machine may take to join.
func (i PoolInstance) joinLimit() time.Duration {
	if strings.Contains(i.Type, ".metal") {
		return metalPatience
	}
	return poolPatience
}

// notJoined is the difference of outdated machines that have never joined.
const notJoined = "machines without a Node"

// keepsOutdated reports whether outdated machines stay until somebody else replaces them.
func (g *Group) keepsOutdated() bool {
	p := g.Spec.RefreshPreferences
	return p != nil && p.Disable
}

// watch adds what is known of the Nodes, while machines are being replaced.
func (g *Group) watch(ctx context.Context, c *cloud.Clients, have *GroupState) error {
	outdated := len(g.outdated(have))
	if outdated == 0 && have.StartedRefresh == "" && !have.Refresh.Running {
		return nil
	}
	have.lasts = g.lasts(have, outdated)
	if g.Nodes == nil {
		return nil
	}
	ids := make([]string, 0, len(have.Instances))
	for _, i := range have.Instances {
		ids = append(ids, i.ID)
	}
	known, why, err := g.Nodes(ctx, c, ids)
	if err != nil || why != "" {
		have.NodesUnknown = why
		return err
	}
	have.Watched, have.Instances = true, slices.Clone(have.Instances)
	for n := range have.Instances {
		m := known[have.Instances[n].ID]
		m.Overdue = !m.Launched.IsZero() && c.Now().Sub(m.Launched) > have.Instances[n].joinLimit()
		have.Instances[n].Machine = m
	}
	have.Refresh.TimeLimit = max(g.refreshLimit(), 15*time.Minute+2*have.lasts)
	for _, i := range g.fresh(have) {
		if !have.usable(i) && i.Machine.Overdue {
			have.late = max(have.late, i.joinLimit())
		}
	}
	return nil
}

// Suspends reports whether a process of the group is suspended.
func (s *GroupState) Suspends(process string) bool { return slices.Contains(s.Suspended, process) }

// fresh lists the machines that are not outdated.
func (g *Group) fresh(have *GroupState) []PoolInstance {
	old := g.outdated(have)
	return slices.DeleteFunc(have.Members(), func(i PoolInstance) bool { return slices.Contains(old, i.Version) })
}

// usable reports whether a machine can take the place of another one: its Node is ready or, while
// no Node of the group is ready, because the cluster has no pod network yet, has joined.
func (s *GroupState) usable(i PoolInstance) bool {
	anyReady := slices.ContainsFunc(s.Instances, func(i PoolInstance) bool { return i.Machine.Ready })
	return i.Machine.Ready || i.Machine.Joined && !anyReady
}

// notJoined describes the machines that have not joined: "no ready Node within 10m0s: i-0123".
func (s *GroupState) notJoined() string {
	var ids []string
	for _, i := range s.Members() {
		if i.Machine.Overdue && !s.usable(i) {
			ids = append(ids, i.ID)
		}
	}
	return fmt.Sprintf("no ready Node within %s: %s", s.late, text.Several(ids))
}

// FirstLate returns the ID of a machine that has had enough time and has no ready Node; "" for
// none.
func (s *GroupState) FirstLate() string {
	for _, i := range s.Members() {
		if i.Machine.Overdue && !s.usable(i) {
			return i.ID
		}
	}
	return ""
}

// dead lists outdated machines that have never joined: nothing is lost with them. Without any Node
// of the group, it lists none, because then the Nodes may only not be recognized.
func (g *Group) dead(have *GroupState) (ids []string) {
	members, old := have.Members(), g.outdated(have)
	if !slices.ContainsFunc(members, func(i PoolInstance) bool { return i.Machine.Joined }) {
		return nil
	}
	for _, i := range members {
		if slices.Contains(old, i.Version) && !i.Machine.Joined && i.Machine.Overdue {
			ids = append(ids, i.ID)
		}
	}
	return ids
}

// diffOutdated adds the differences of outdated machines, while no instance refresh is in progress.
func (g *Group) diffOutdated(have *GroupState, old []string, d *plan.Diff) {
	others := len(*d) > 0
	switch {
	case have.NodesUnknown != "":
		d.Await("Nodes", "not known: "+have.NodesUnknown, "known")
	case have.Watched && !others && g.awaitsNodes(have, d):
	case have.Watched && !others && !g.scalingSuspended() && have.Serving() < int(have.Desired):
		d.Await("machines in service", fmt.Sprintf("%d%s", have.Serving(), parenthesized(have.LaunchFailure)), have.Desired)
	}
	if dead := g.dead(have); have.Watched && len(dead) > 0 && g.suspendsRefresh() == "" {
		d.Set(notJoined, text.Several(dead), "replaced")
		return
	}
	slices.Sort(old)
	machines := fmt.Sprintf("%d of %d of version %s", len(old), len(have.Instances), strings.Join(slices.Compact(old), ", "))
	if have.refreshEnded() {
		machines += ", after instance refresh " + have.Refresh.String()
	}
	if p := g.suspendsRefresh(); p != "" {
		d.Fixed("machines", machines, "all of version "+g.version(), "the manifest suspends the process "+p+", without which AWS replaces no machine: "+
			"remove it from spec.suspendProcesses, or set spec.refreshPreferences.disable")
		return
	}
	d.Set("machines", machines, "all of version "+g.version())
}

// awaitsNodes adds a difference if new machines are not usable yet, or others have just been
// launched, and reports whether it has.
func (g *Group) awaitsNodes(have *GroupState, d *plan.Diff) bool {
	old, members, usable := g.outdated(have), have.Members(), 0
	for _, i := range members {
		if slices.Contains(old, i.Version) && (i.Machine.Joined || i.Machine.Overdue) || have.usable(i) {
			usable++
		}
	}
	if !have.Watched || usable == len(members) {
		return false
	}
	after := ""
	if have.Cancelled && !have.Refresh.Running {
		after = ", after instance refresh " + have.Refresh.String()
	}
	d.Await("Nodes", fmt.Sprintf("%d of %d%s", usable, len(members), after), fmt.Sprintf("%d of %d", len(members), len(members)))
	return true
}

// policy returns the share of the desired capacity, in percent, that an instance refresh keeps in
// service, and the most that it has.
func (g *Group) policy() (least, most int) {
	least, most = 90, 100 // AWS's defaults
	if p := g.Spec.RefreshPreferences; p != nil {
		if p.MinHealthyPercentage != nil {
			least = int(*p.MinHealthyPercentage)
		}
		if p.MaxHealthyPercentage != nil {
			most = int(*p.MaxHealthyPercentage)
		}
	}
	return least, most
}

// atOnce returns how many machines an instance refresh replaces at the same time.
func (g *Group) atOnce(have *GroupState) int {
	least, most := g.policy()
	desired := int(have.Desired)
	return max(1, desired-(desired*least+99)/100, desired*(most-100)/100)
}

// part returns the checkpoint of the next instance refresh: the share of the machines, in percent,
// that it replaces. AWS replaces outdated machines first, and as many as reach the percentage.
func (g *Group) part(have *GroupState, outdated int) int32 {
	all := max(1, len(have.Members()))
	return int32(min(100, max(1, 100*min(outdated, g.atOnce(have))/all)))
}

// lasts estimates how long the replacement of machines takes: in each part, machines are
// terminated, after their lifecycle hooks, and others are launched, boot, join and warm up.
func (g *Group) lasts(have *GroupState, outdated int) time.Duration {
	atOnce := g.atOnce(have)
	each := ec2.InstanceDeleteTime + ec2.InstanceCreateTime + max(g.warmup(), joinTime)
	for _, h := range g.Spec.AWSLifecycleHooks {
		if h.HeartbeatTimeout != nil {
			each += h.HeartbeatTimeout.Duration
		} else {
			each += time.Hour // AWS's default
		}
	}
	return time.Duration((outdated+atOnce-1)/atOnce) * each
}

// joinTime is how long a machine usually takes to boot and to join.
const joinTime = 100 * time.Second
