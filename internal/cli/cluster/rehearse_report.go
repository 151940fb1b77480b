package cluster

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/clusterawsadm/clusterawsadm/internal/render"
	"github.com/clusterawsadm/clusterawsadm/internal/text"
	"github.com/clusterawsadm/clusterawsadm/pkg/reconcile"
)

// print prints the report.
func (r *rehearsal) print(o *rehearseOptions, plan reconcile.Plan, left []string) error {
	if err := render.Table(o.Env.Out, []string{"STEP", "AWS TAKES", "READS", "WRITES"}, r.rows); err != nil {
		return err
	}
	cost, checked := plan.Cost, (*reconcile.Permissions)(nil)
	if r.planned != nil { // AWS's own prices
		cost, checked = cmp.Or(r.planned.plan.Cost, cost), r.planned.plan.Permissions
	}
	_, err := fmt.Fprint(o.Env.Out, "\n", r.services(), near(plan.Quotas), render.CostLine(cost, o.Env.OutStyle()), policyLine(r.manifest), denied(checked), remains(left))
	return err
}

// services prints the calls and the writes of each service.
func (r *rehearsal) services() string {
	calls, writes := map[string]int{}, map[string]int{}
	for _, c := range r.calls.List() {
		if calls[c.Service] += c.Count; c.Writes {
			writes[c.Service] += c.Count
		}
	}
	parts := make([]string, 0, len(calls))
	for _, name := range slices.Sorted(maps.Keys(calls)) {
		parts = append(parts, fmt.Sprintf("%s %d (%d)", name, calls[name], writes[name]))
	}
	return "Calls by service (writes): " + strings.Join(parts, ", ") + "\n"
}

// near prints the quotas of which the cluster leaves less than a fifth.
func near(quotas []reconcile.Quota) string {
	out := ""
	for _, q := range quotas {
		if used := q.Used + q.Needed; used*5 > q.Limit*4 {
			out += fmt.Sprintf("Quota nearly used up: %s: %d of %d (%s %s)\n", q.Name, used, q.Limit, q.Service, q.Code)
		}
	}
	if out == "" {
		return "Quotas nearly used up: none\n"
	}
	return out
}

// policyLine says what the policy of the caller must allow.
func policyLine(m *reconcile.Manifest) string {
	actions := map[string]int{}
	total := 0
	for _, s := range m.Policy().Statement {
		for _, a := range s.Action {
			service, _, _ := strings.Cut(a, ":")
			actions[service]++
			total++
		}
	}
	parts := make([]string, 0, len(actions))
	for _, service := range slices.Sorted(maps.Keys(actions)) {
		parts = append(parts, fmt.Sprintf("%s %d", service, actions[service]))
	}
	return fmt.Sprintf("The policy must allow %s (%s): 'clusterawsadm cluster policy -f FILE' prints it\n", text.Count(total, "action"), strings.Join(parts, ", "))
}

// denied says what the caller may not do of what the plan needs.
func denied(p *reconcile.Permissions) string {
	switch {
	case p == nil:
		return ""
	case p.Unknown != "":
		return "Permissions of the caller: not checked, " + p.Unknown + "\n"
	case len(p.Lacking) == 0:
		return "Permissions of the caller: all that the plan needs\n"
	}
	out := "Permissions that the caller lacks:\n"
	for _, l := range p.Lacking {
		out += "  " + l.Action + " for " + string(l.Resource) + "\n"
	}
	return out
}

// remains prints what the deletion has left.
func remains(left []string) string {
	if len(left) == 0 {
		return "Left in the account: nothing\n"
	}
	return "Left in the account:\n  " + strings.Join(left, "\n  ") + "\n"
}
