package render

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/clusterawsadm/clusterawsadm/internal/text"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// WriteText prints a rehearsal for people, without its kills.
func (r *Rehearsal) WriteText(w io.Writer, s Style) error {
	var rows [][]string
	for _, run := range r.Runs {
		rows = append(rows, []string{run.Run, inSeconds(run.Took).String(), strconv.FormatInt(run.Reads, 10), strconv.FormatInt(run.Writes, 10)})
	}
	if err := Table(w, []string{"STEP", "AWS TAKES", "READS", "WRITES"}, rows); err != nil {
		return err
	}
	_, err := fmt.Fprint(w, "\n", r.services(), r.nearQuotas(), CostLine(r.Cost, s), r.policyLine(), r.lacking(), r.remains())
	return err
}

// inSeconds is a duration in whole seconds.
func inSeconds(s float64) time.Duration {
	return time.Duration(s * float64(time.Second)).Round(time.Second)
}

// services are the calls and the writes of each service.
func (r *Rehearsal) services() string {
	calls, writes := map[string]int{}, map[string]int{}
	for _, c := range r.Calls {
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

// nearQuotas are the quotas of which the cluster leaves less than a fifth.
func (r *Rehearsal) nearQuotas() string {
	out := ""
	for _, q := range r.Quotas {
		if NearlyUsedUp(q) {
			out += fmt.Sprintf("Quota nearly used up: %s: %d of %d (%s %s)\n", q.Name, q.Used+q.Needed, q.Limit, q.Service, q.Code)
		}
	}
	if out == "" {
		return "Quotas nearly used up: none\n"
	}
	return out
}

// ActionsByService are the numbers of actions of a policy for each service.
func (r *Rehearsal) ActionsByService() string {
	actions := map[string]int{}
	for _, a := range r.Policy {
		service, _, _ := strings.Cut(a, ":")
		actions[service]++
	}
	parts := make([]string, 0, len(actions))
	for _, service := range slices.Sorted(maps.Keys(actions)) {
		parts = append(parts, fmt.Sprintf("%s %d", service, actions[service]))
	}
	return strings.Join(parts, ", ")
}

// policyLine says what the policy of the caller must allow.
func (r *Rehearsal) policyLine() string {
	return fmt.Sprintf(
		"The policy must allow %s (%s): 'clusterawsadm cluster policy -f FILE' prints it\n",
		text.Count(len(r.Policy), "action"),
		r.ActionsByService(),
	)
}

// lacking says what the caller may not do of what the plan needs.
func (r *Rehearsal) lacking() string {
	line := PermissionsLine(r.Permissions)
	if line == "" {
		return ""
	}
	out := line + "\n"
	for _, l := range r.Permissions.Lacking {
		out += "  " + l.Action + " for " + string(l.Resource) + "\n"
	}
	return out
}

// PermissionsLine says whether the caller may do what a plan needs; "" if that was not asked.
func PermissionsLine(p *plan.Permissions) string {
	switch {
	case p == nil:
		return ""
	case p.Unknown != "":
		return "Permissions of the caller: not checked, " + p.Unknown
	case len(p.Lacking) == 0:
		return "Permissions of the caller: all that the plan needs"
	}
	return "Permissions that the caller lacks:"
}

// remains is what the deletion has left.
func (r *Rehearsal) remains() string {
	if len(r.Left) == 0 {
		return "Left in the account: nothing\n"
	}
	return "Left in the account:\n  " + strings.Join(r.Left, "\n  ") + "\n"
}

// WriteText prints what the kills have shown, for people.
func (k *Kills) WriteText(w io.Writer) error {
	if k.Differ == 0 {
		return k.writeSame(w)
	}
	var rows [][]string
	for _, run := range k.Runs {
		for i, line := range run.Differences() {
			where := ""
			if i == 0 {
				where = fmt.Sprintf("%s, %s %s %s (call %d)", run.Run, run.When(), run.Service, run.Operation, run.Call)
			}
			rows = append(rows, []string{where, line})
		}
	}
	if _, err := io.WriteString(w, "\n"); err != nil {
		return err
	}
	return Table(w, []string{"KILLED IN", "AFTER ANOTHER RUN"}, rows)
}

// writeSame says that all results are the same.
func (k *Kills) writeSame(w io.Writer) error {
	all := ""
	if k.Every > 1 {
		all = fmt.Sprintf("every %dth of ", k.Every)
	}
	stopped := ""
	if done := len(k.Runs) + k.NotReached; done < k.Planned {
		stopped = fmt.Sprintf(", of %d planned", k.Planned)
	}
	_, err := fmt.Fprintf(
		w,
		"Killed %s%s, before and after %sthe %d calls of create and the %d of delete, and run again: the result is always that of a run that was not killed\n",
		text.Count(len(k.Runs), "run"),
		stopped,
		all,
		k.CreateCalls,
		k.DeleteCalls,
	)
	return err
}

// Conclusion says how many of the runs did not end well; "" if all did.
func (k *Kills) Conclusion() string {
	if k == nil || k.Differ == 0 {
		return ""
	}
	return fmt.Sprintf("%d of %s, run again, do not have the result of a run that was not killed", k.Differ, text.Count(len(k.Runs), "killed run"))
}
