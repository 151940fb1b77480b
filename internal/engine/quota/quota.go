// Package quota compares what a plan creates with the quotas of the account.
package quota

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/aws/aws-sdk-go-v2/service/servicequotas"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/kind"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// Report is the result of Check.
type Report struct {
	Lines    []plan.Quota
	Reasons  []error  // why the run cannot reach its goal
	Warnings []string // what the run will not do, or what was not checked
	Short    bool     // a quota of vCPUs has no room for all machines, but for the control plane
}

// demand counts the units of a quota that a plan needs.
type demand struct {
	kind.Quota
	scope string
	needs int
	used  int
	limit int
	err   error // why the limit or the use is not known

	groups []*group // with a quota of vCPUs
}

// Check returns the quotas that a plan needs some of. control says which resources are
// those of the control plane.
func Check(ctx context.Context, c *cloud.Clients, g *graph.Graph, p plan.Plan, control func(plan.ID) bool) (r Report, err error) {
	demands := countedDemands(g, p)
	vcpus, err := vcpuDemands(ctx, c, g, p, control)
	if err != nil {
		return r, err
	}
	demands = append(demands, vcpus...)
	var all sync.WaitGroup
	for _, d := range demands {
		all.Go(func() { d.read(ctx, c) })
	}
	all.Wait()
	if ctx.Err() != nil {
		return r, context.Cause(ctx)
	}
	slices.SortFunc(demands, func(a, b *demand) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), cmp.Compare(b.needs+b.used, a.needs+a.used), strings.Compare(a.scope, b.scope))
	})
	for n, d := range demands {
		largest := n == 0 || demands[n-1].Code != d.Code || d.Used != nil || len(d.groups) > 0
		if largest || d.err == nil && d.needs+d.used > d.limit { // of security groups, the one with the most rules says enough
			r.add(c.Region, d)
		}
	}
	r.addUnread(demands)
	return r, nil
}

// countedDemands returns the demands for quotas that kinds of resources declare.
func countedDemands(g *graph.Graph, p plan.Plan) (out []*demand) {
	kinds := map[string]*kind.Kind{}
	for _, k := range aws.Kinds() {
		if k.Quota != nil {
			kinds[k.Name] = k
		}
	}
	found, changes := map[string]*demand{}, map[string]bool{}
	for _, s := range p.Steps {
		k := kinds[s.Resource.Kind()]
		if k == nil {
			continue
		}
		n, scope := takes(k.Quota, g, s)
		key := k.Quota.Code + " " + scope
		if n == 0 {
			continue
		}
		if found[key] == nil {
			found[key] = &demand{Quota: *k.Quota, scope: scope}
			out = append(out, found[key])
		}
		if s.Action == plan.Create {
			found[key].needs += n
		} else {
			found[key].used += n
		}
		changes[key] = changes[key] || s.Action == plan.Create || s.Action == plan.Update
	}
	return slices.DeleteFunc(out, func(d *demand) bool { return !changes[d.Code+" "+d.scope] })
}

// takes returns how much of a quota a step takes. What takes the place of a resource that AWS is still deleting takes no more than that one,
// which counts until it is gone.
func takes(q *kind.Quota, g *graph.Graph, s plan.Step) (n int, scope string) {
	counts := s.Action == plan.Create || q.Used == nil && slices.Contains([]plan.Action{plan.Update, plan.Keep, plan.Settle}, s.Action)
	if !counts || s.After != "" && q.Used != nil {
		return 0, ""
	}
	if q.Takes == nil {
		return 1, ""
	}
	return q.Takes(g.Resource(s.Resource).Desired())
}

// name returns the resources that the quota limits: "NAT gateways in us-east-1a".
func (d *demand) name() string {
	if d.scope == "" {
		return d.Name
	}
	return d.Name + " in " + d.scope
}

// read reads the limit, and what is in use.
func (d *demand) read(ctx context.Context, c *cloud.Clients) {
	if d.Used != nil {
		used, err := d.Used(ctx, c)
		d.used, d.err = used[d.scope], err
	}
	if d.Rare && d.err == nil && d.used+d.needs <= d.Default {
		d.limit = unknownLimit
		return
	}
	limit, err := cloud.Remember(ctx, c, "quota "+d.Code, func(ctx context.Context) (int, error) { return limit(ctx, c, d.Quota) })
	if d.limit = limit; err != nil {
		d.err = err
	}
}

// unknownLimit is the limit of a quota that does not exist in the region, or that nobody has to know.
const unknownLimit = -1

// limit returns the value of a quota.
func limit(ctx context.Context, c *cloud.Clients, q kind.Quota) (int, error) {
	out, err := c.Quotas.GetServiceQuota(ctx, &servicequotas.GetServiceQuotaInput{ServiceCode: &q.Service, QuotaCode: &q.Code})
	switch {
	case cloud.Is(err, "NoSuchResourceException"):
		return cmp.Or(q.Default, unknownLimit), nil
	case err != nil:
		return 0, err
	case out.Quota == nil || out.Quota.Value == nil:
		return cmp.Or(q.Default, unknownLimit), nil
	}
	return int(*out.Quota.Value), nil
}

// add adds a quota to the report.
func (r *Report) add(region string, d *demand) {
	if d.err != nil || d.limit == unknownLimit {
		return
	}
	l := plan.Quota{Service: d.Service, Code: d.Code, Name: d.name(), Limit: d.limit, Used: d.used, Needed: d.needs}
	if l.Needed == 0 && !l.Exceeded() {
		return // the plan only changes resources that exist
	}
	r.Lines = append(r.Lines, l)
	switch {
	case !l.Exceeded():
	case len(d.groups) > 0:
		r.addMachines(region, l, d.groups)
	default:
		r.Reasons = append(r.Reasons, exceeded(region, l, l.Needed, ""))
	}
}

// exceeded is the reason why a run is refused.
func exceeded(region string, l plan.Quota, needed int, purpose string) error {
	fix := "delete some, or request a higher quota"
	if l.Used == 0 {
		fix = "reduce them in the manifest, or request a higher quota"
	}
	return fmt.Errorf(
		"the plan needs %d %s%s, but %s allows %d and %d are in use: "+fix+" (%s %s)",
		needed,
		l.Name,
		purpose,
		region,
		l.Limit,
		l.Used,
		l.Service,
		l.Code,
	)
}

// addUnread adds a warning about quotas that could not be read.
func (r *Report) addUnread(all []*demand) {
	var names []string
	var why error
	for _, d := range all {
		if d.err != nil {
			names, why = append(names, d.Name), d.err
		}
	}
	if why != nil {
		r.Warnings = append(
			r.Warnings,
			fmt.Sprintf("these quotas are not checked (%v): %s", cmp.Or(cloud.Code(why), why.Error()), strings.Join(slices.Compact(names), ", ")),
		)
	}
}
