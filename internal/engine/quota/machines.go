package quota

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/ec2"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// machines are the machines that a resource launches, of one type.
type machines struct {
	ec2.Launch
	group   string // "machine/md-0" or "auto-scaling-group/mp-0"
	control bool
	vcpus   int     // of one machine
	left    []leave // the machines of the group that have left before: a rollout replaces them
	old     []leave // all machines of the group that a rollout replaces
}

// leave is a machine that a rollout terminates.
type leave struct {
	ec2.Launch
	id    plan.ID
	group string
	zone  string
}

// vcpuDemands returns the demands for quotas of vCPUs.
func vcpuDemands(ctx context.Context, c *cloud.Clients, g *graph.Graph, p plan.Plan, control func(plan.ID) bool) ([]*demand, error) {
	launched := launches(g, p, control)
	if len(launched) == 0 {
		return nil, nil
	}
	running, err := ec2.Running(ctx, c)
	if err != nil {
		return unknown(launched, err), ctx.Err()
	}
	vcpus, err := ec2.VCPUs(ctx, c, typesOf(launched, running))
	if err != nil {
		return unknown(launched, err), ctx.Err()
	}
	freed := func(code string, left []leave) (n int) {
		for _, x := range left {
			if q := ec2.VCPUQuota(x.Type, x.Spot); q != nil && q.Code == code {
				n += vcpus[x.Type]
			}
		}
		return n
	}
	used := map[string]int{}
	for _, r := range running {
		if q := ec2.VCPUQuota(r.Type, r.Spot); q != nil {
			used[q.Code] += r.Count * vcpus[r.Type]
		}
	}
	demands := byQuota(launched, func(d *demand, m machines) {
		d.used = used[d.Code]
		m.vcpus = vcpus[m.Type]
		d.groups = launchedBy(d.groups, m, freed(d.Code, m.left), freed(d.Code, m.old))
	})
	for _, d := range demands {
		d.needs = needed(d.groups)
	}
	return demands, nil
}

// group is what the machines of one group need of a quota.
type group struct {
	name     string
	control  bool
	replaced bool  // a rollout replaces machines
	count    int   // of the machines that are launched
	needs    []int // of the first machine, of the first two, and so on: less what has left before
	sum      int   // of all machines that are launched
	freed    int   // by the machines that leave
}

// launchedBy adds machines to their group: freed is what machines that leave before free of the quota, and old what all that leave do.
func launchedBy(groups []*group, m machines, freed, old int) []*group {
	at := slices.IndexFunc(groups, func(g *group) bool { return g.name == m.group })
	if at < 0 {
		at, groups = len(groups), append(groups, &group{name: m.group, control: m.control, replaced: len(m.old) > 0, freed: old})
	}
	g := groups[at]
	for range m.Count {
		g.sum += m.vcpus
		g.needs = append(g.needs, max(0, g.sum-freed))
	}
	g.count += m.Count
	return groups
}

// most is what the group needs while its machines are launched.
func (g *group) most() int { return slices.Max(g.needs) }

// needed returns what a run needs of a quota at most. The machines of the control plane are replaced first, and the others
// after that.
func needed(groups []*group) int {
	meanwhile, after := ofControlPlane(groups)
	others := 0
	for _, g := range groups {
		if !g.control {
			others += g.most()
		}
	}
	return max(meanwhile, after+others)
}

// ofControlPlane returns what the control plane needs while its machines are replaced, and what it needs after that.
func ofControlPlane(groups []*group) (meanwhile, after int) {
	for _, g := range groups {
		if g.control {
			meanwhile, after = meanwhile+g.most(), after+max(0, g.sum-g.freed)
		}
	}
	return meanwhile, after
}

// leaving lists the machines that a plan replaces, in their order.
func leaving(g *graph.Graph, p plan.Plan) (out []leave) {
	for _, s := range p.Steps {
		if have, ok := g.Resource(s.Resource).Observed().(*ec2.InstanceState); ok && s.Action == plan.Remove && s.ReplacedBy != "" {
			out = append(out, leave{ec2.Launch{Type: have.Type, Spot: have.Spot, Count: 1}, s.Resource, groupOf(s.ReplacedBy), have.Zone})
		}
	}
	return out
}

// groupOf returns "machine/md-0" for "machine/md-0/17", one of the machines of md-0.
func groupOf(machine plan.ID) string {
	if strings.Count(string(machine), "/") > 1 {
		return path.Dir(string(machine))
	}
	return string(machine)
}

// leftBefore returns the machines of a group that have left before a resource is created: up to the last one that the
// resource waits for, itself or through another resource.
func leftBefore(r graph.Resource, old []leave) []leave {
	if len(old) == 0 {
		return nil
	}
	awaited := map[plan.ID]bool{}
	for _, e := range r.Needs() {
		awaited[e.Resource.ID()] = true
		for _, e := range e.Resource.Needs() {
			awaited[e.Resource.ID()] = true
		}
	}
	for i, x := range slices.Backward(old) {
		if awaited[x.id] {
			return old[:i+1]
		}
	}
	return nil
}

// launches lists the machines that a plan launches.
func launches(g *graph.Graph, p plan.Plan, control func(plan.ID) bool) (out []machines) {
	old := map[string][]leave{}
	for _, x := range leaving(g, p) {
		old[x.group] = append(old[x.group], x)
	}
	for _, s := range p.Steps {
		if s.Action != plan.Create && s.Action != plan.Update {
			continue
		}
		r := g.Resource(s.Resource)
		l, ok := r.Desired().(ec2.Launcher)
		if !ok {
			continue
		}
		group := string(s.Resource)
		if _, single := l.(*ec2.Instance); single {
			group = groupOf(s.Resource)
		}
		for _, x := range l.Launches(r.Observed()) {
			if x.Count > 0 {
				out = append(out, machines{Launch: x, group: group, control: control(s.Resource), left: leftBefore(r, old[group]), old: old[group]})
			}
		}
	}
	return out
}

func typesOf(launched []machines, running []ec2.Launch) map[string]bool {
	types := map[string]bool{}
	for _, x := range launched {
		types[x.Type] = true
	}
	for _, x := range running {
		types[x.Type] = true
	}
	return types
}

// byQuota groups machines by the quota that they count against.
func byQuota(launched []machines, add func(*demand, machines)) (out []*demand) {
	found := map[string]*demand{}
	for _, m := range launched {
		q := ec2.VCPUQuota(m.Type, m.Spot)
		if q == nil {
			continue
		}
		if found[q.Code] == nil {
			found[q.Code] = &demand{Quota: *q}
			out = append(out, found[q.Code])
		}
		add(found[q.Code], m)
	}
	return out
}

// unknown returns the demands for quotas of vCPUs if their use is not known.
func unknown(launched []machines, err error) []*demand {
	return byQuota(launched, func(d *demand, _ machines) { d.err = err })
}

// addMachines adds what a quota of vCPUs that is too small prevents. If the control plane
// fits, the run launches as many other machines as the quota allows, but it has to allow some of them. A rollout without room is no reason: the old
// machines stay.
func (r *Report) addMachines(region string, l plan.Quota, groups []*group) {
	free := max(0, l.Limit-l.Used) // a quota may have been lowered below what is in use
	meanwhile, after := ofControlPlane(groups)
	if meanwhile > free {
		r.Reasons = append(r.Reasons, exceeded(region, l, meanwhile, " for the control plane"))
		return
	}
	free -= after
	some := false
	var parts, names []string
	for _, g := range groups {
		if g.control || g.sum == 0 {
			continue
		}
		fit := g.fit(free)
		some, names = some || fit > 0 || g.replaced, append(names, g.name)
		if fit > 0 {
			free -= slices.Max(g.needs[:fit])
		}
		what := "%d of %d of %s"
		if g.replaced {
			what = "%d of %d new ones of %s"
		}
		parts = append(parts, fmt.Sprintf(what, fit, g.count, g.name))
	}
	if !some {
		r.Reasons = append(r.Reasons, exceeded(region, l, l.Needed, " for "+strings.Join(names, ", ")+", of which none would run"))
		return
	}
	r.Short = true
	r.Warnings = append(
		r.Warnings,
		fmt.Sprintf("the plan needs %d %s, but %s allows %d and %d are in use: only some machines run (%s) until there is a higher quota (%s %s)",
			l.Needed, l.Name, region, l.Limit, l.Used, strings.Join(parts, ", "), l.Service, l.Code),
	)
}

// fit is how many machines of the group can be launched.
func (g *group) fit(free int) int {
	at := slices.IndexFunc(g.needs, func(n int) bool { return n > max(free, 0) })
	if at < 0 {
		return g.count
	}
	return at
}
