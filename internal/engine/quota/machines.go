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
	vcpus   int // of one machine
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
	used := map[string]int{}
	for _, r := range running {
		if q := ec2.VCPUQuota(r.Type, r.Spot); q != nil {
			used[q.Code] += r.Count * vcpus[r.Type]
		}
	}
	return byQuota(launched, func(d *demand, m machines) {
		m.vcpus = vcpus[m.Type]
		d.used = used[d.Code]
		d.needs += m.Count * m.vcpus
		d.machines = append(d.machines, m)
	}), nil
}

// launches lists the machines that a plan launches.
func launches(g *graph.Graph, p plan.Plan, control func(plan.ID) bool) (out []machines) {
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
		if _, single := l.(*ec2.Instance); single && strings.Count(group, "/") > 1 {
			group = path.Dir(group) // "machine/md-0/17" is one of the machines of md-0
		}
		for _, x := range l.Launches(r.Observed()) {
			if x.Count > 0 {
				out = append(out, machines{Launch: x, group: group, control: control(s.Resource)})
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
// fits, the run launches as many other machines as the quota allows.
func (r *Report) addMachines(region string, l plan.Quota, all []machines) {
	free := l.Limit - l.Used
	needed := 0
	for _, m := range all {
		if m.control {
			needed += m.Count * m.vcpus
		}
	}
	if needed > free {
		r.Reasons = append(r.Reasons, exceeded(region, l, needed, " for the control plane"))
		return
	}
	free -= needed
	var order []string
	fit, wanted := map[string]int{}, map[string]int{}
	for _, m := range all {
		if m.control || m.vcpus == 0 {
			continue
		}
		if !slices.Contains(order, m.group) {
			order = append(order, m.group)
		}
		n := min(m.Count, max(free, 0)/m.vcpus)
		free -= n * m.vcpus
		fit[m.group] += n
		wanted[m.group] += m.Count
	}
	parts := make([]string, len(order))
	for i, name := range order {
		parts[i] = fmt.Sprintf("%d of %d of %s", fit[name], wanted[name], name)
	}
	r.Warnings = append(
		r.Warnings,
		fmt.Sprintf("the plan needs %d %s, but %s allows %d and %d are in use: only some machines run (%s) until there is a higher quota (%s %s)",
			l.Needed, l.Name, region, l.Limit, l.Used, strings.Join(parts, ", "), l.Service, l.Code),
	)
}
