package topology

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	infrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/api/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/ec2"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// machinePlan lists the machines that stay, that are launched and that are terminated. It
// follows from the manifest and the inventory alone.
type machinePlan struct {
	groups     []groupPlan
	leaving    []ec2.InstanceState // machines without a group, or too many for it
	unknown    []string            // as in groupPlan, of all groups
	keepsToken bool                // a machine of the control plane renews the join token
	remarks    []string            // messages for the user
}

// groupPlan is the plan for the machines of a group.
type groupPlan struct {
	group

	template template            // launch settings of new machines
	stay     []place             // machines that exist and are kept
	launch   []place             // machines that do not exist yet
	outdated []ec2.InstanceState // that a rollout replaces: those that have not joined, then the oldest
	// unhealthy are machines that are replaced by a MachineHealthCheck. As in Cluster API,
	// they leave without waiting for the new ones.
	unhealthy []ec2.InstanceState
	unknown   []string // IDs of machines without a template tag: those of Cluster API
	remarks   []string
}

// place is a position of a machine in its group: "md-0/2".
type place struct {
	index       int
	existing    existingMachine
	initializes bool // the machine runs kubeadm init
}

// existingMachine is a machine of the inventory that has a place in a group.
type existingMachine struct {
	name    string // existing tag Name to keep; "": that of its place
	machine string // existing name of its Machine to keep; "": that of its place
	claimed string // ID of a machine without a name, launched together with others
	state   ec2.InstanceState
}

// exists reports whether a machine of the inventory has this place.
func (p place) exists() bool { return p.existing.state.ID != "" }

// rolls reports whether a rollout replaces machines of the group.
func (p groupPlan) rolls() bool { return len(p.outdated) > 0 }

// id names the resource of a machine.
func (g group) id(i int) plan.ID { return plan.ID(fmt.Sprintf("machine/%s/%d", g.name, i)) }

// shrinksControlPlane reports whether machines of the control plane leave: by a rollout, or for good. They stay registered with the load
// balancers until the others, which may be new, have joined.
func (p machinePlan) shrinksControlPlane() bool { return len(p.leavingControlPlane()) > 0 }

// planMachines assigns the machines of the inventory to places. With bastion, the cluster
// has one.
func planMachines(in inputs, groups []group, bastion bool) (p machinePlan) {
	begun := in.inv.Initialized && in.hasControlPlane()
	for _, g := range groups {
		x := in.planGroup(g, !begun)
		begun = begun || len(x.stay) > 0 || len(x.launch) > 0 && !x.rolls()
		p.groups, p.unknown, p.remarks = append(p.groups, x), append(p.unknown, x.unknown...), append(p.remarks, x.remarks...)
	}
	slices.Sort(p.unknown)
	p.leaving = in.leaving(p.groups, bastion)
	p.keepsToken = in.keepsToken(p.groups)
	p.remarks = append(p.remarks, in.newEtcdRemarks(p.groups)...)
	return p
}

// planGroup plans one group. With first, no machine has initialized the control plane
// yet.
func (in inputs) planGroup(g group, first bool) groupPlan {
	p := groupPlan{group: g, template: templateOf(g)}
	taken := in.assign(g)
	current := map[int]existingMachine{}
	for i, e := range taken {
		switch {
		case in.unhealthy(e.state) != "":
			p.unhealthy = append(p.unhealthy, e.state)
		case in.replacesOutdated(g) && in.outdatedBecause(p, e.state) != "":
			p.outdated = append(p.outdated, e.state)
		default:
			current[i] = e
		}
	}
	slices.SortFunc(p.unhealthy, func(x, y ec2.InstanceState) int { return cmp.Compare(x.ID, y.ID) })
	slices.SortStableFunc(p.outdated, func(x, y ec2.InstanceState) int {
		return cmp.Or(
			-cmp.Compare(x.Tags[cloud.JoinFailedTag], y.Tags[cloud.JoinFailedTag]),
			x.LaunchedAt.Compare(y.LaunchedAt),
			cmp.Compare(x.Tags[cloud.ResourceTag], y.Tags[cloud.ResourceTag]),
		)
	})
	p.unknown = unknownTemplates(g, current)
	p.remarks = slices.Concat(in.expiryRemarks(g, taken), in.keyRemarks(g, current), in.onDeleteRemarks(p, current))
	stay, launch := places(g.count, current, taken, g.deletionOrder)
	for _, i := range stay {
		p.stay = append(p.stay, place{index: i, existing: current[i]})
	}
	for _, i := range launch {
		p.launch = append(p.launch, place{index: i, initializes: first && g.controlPlane && i == 0 && !p.rolls()})
	}
	return p
}

// unknownTemplates lists machines without a template tag.
func unknownTemplates(g group, machines map[int]existingMachine) (ids []string) {
	for _, e := range machines {
		if !g.onDelete && e.state.Tags[cloud.TemplateTag] == "" {
			ids = append(ids, e.state.ID)
		}
	}
	return ids
}

// onDeleteRemarks say how many outdated machines stay because of the strategy
// OnDelete.
func (in inputs) onDeleteRemarks(p groupPlan, machines map[int]existingMachine) []string {
	outdated := 0
	for _, e := range machines {
		if p.onDelete && in.outdatedBecause(p, e.state) != "" {
			outdated++
		}
	}
	if outdated == 0 {
		return nil
	}
	return []string{fmt.Sprintf("%s: %s outdated; by the strategy OnDelete one is replaced when somebody terminates it", p.origin, areMachines(outdated))}
}

// areMachines returns "1 machine is", or "3 machines are".
func areMachines(n int) string {
	if n == 1 {
		return "1 machine is"
	}
	return fmt.Sprintf("%d machines are", n)
}

// replacesOutdated reports whether outdated machines of a group are replaced: not in a
// run that neither drains nor waits.
func (in inputs) replacesOutdated(g group) bool {
	return in.o.Drain && in.usesAPIServer() && !g.onDelete
}

// assign assigns the machines of the inventory to places of the group: by their resource
// tag; those that Cluster API launched, by their names; those that were launched together
// and are not named yet, to any free place.
func (in inputs) assign(g group) map[int]existingMachine {
	taken, base := map[int]existingMachine{}, "machine/"+g.name
	var loose []existingMachine
	pattern := in.machinePattern(g)
	for _, m := range in.inv.Machines {
		tag, e := m.Tags[cloud.ResourceTag], existingMachine{
			name:    m.Tags["Name"],
			machine: strings.TrimPrefix(m.Tags[infrav1.MachineNameTagKey], in.m.Namespace+"/"),
			state:   m,
		}
		at, indexed := strings.CutPrefix(tag, base+"/")
		i, err := strconv.Atoi(at)
		switch {
		case indexed && err == nil:
			if !pattern.MatchString(m.Tags[infrav1.MachineNameTagKey]) || e.name != e.machine { // otherwise it may be a name from Cluster API, and stays
				e = existingMachine{state: m}
			}
			taken[i] = e
		case tag == base:
			loose = append(loose, existingMachine{claimed: m.ID, state: m})
		case tag == "" && (pattern.MatchString(m.Tags[infrav1.MachineNameTagKey]) || g.count == 1 && m.Tags["Name"] == g.instanceName(0)):
			loose = append(loose, e)
		}
	}
	fill(taken, loose)
	return taken
}

// machinePattern matches the MachineName tags that Cluster API gives to the
// machines of a group.
func (in inputs) machinePattern(g group) *regexp.Regexp {
	set := `-[a-z0-9]{5,10}` // suffix of the MachineSet; a control plane has none
	if g.controlPlane {
		set = ""
	}
	return regexp.MustCompile(`^` + regexp.QuoteMeta(in.m.Namespace+"/"+g.name) + set + `-[a-z0-9]{5}$`)
}

// fill assigns machines to the lowest free places.
func fill(taken map[int]existingMachine, loose []existingMachine) {
	for i, next := 0, 0; next < len(loose); i++ {
		if _, ok := taken[i]; !ok {
			taken[i] = loose[next]
			next++
		}
	}
}

// places chooses the places of a group's machines: existing ones first, then the lowest
// free ones. If there are too many machines, those of the highest places leave, or those
// that the manifest's deletion order selects.
func places(count int, current, taken map[int]existingMachine, order clusterv1.MachineSetDeletionOrder) (stay, launch []int) {
	stay = slices.Sorted(maps.Keys(current))
	age := func(i, j int) int { return current[i].state.LaunchedAt.Compare(current[j].state.LaunchedAt) }
	switch order {
	case clusterv1.NewestMachineSetDeletionOrder:
		slices.SortStableFunc(stay, age)
	case clusterv1.OldestMachineSetDeletionOrder:
		slices.SortStableFunc(stay, func(i, j int) int { return age(j, i) })
	}
	stay = stay[:min(count, len(stay))]
	slices.Sort(stay)
	for i := 0; len(stay)+len(launch) < count; i++ {
		if _, ok := taken[i]; !ok {
			launch = append(launch, i)
		}
	}
	return stay, launch
}

// leaving lists the machines of the inventory that have no place in the cluster.
func (in inputs) leaving(groups []groupPlan, bastion bool) (out []ec2.InstanceState) {
	tags, ids, names := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for _, p := range groups {
		for _, x := range slices.Concat(p.stay, p.launch) {
			tags[string(p.id(x.index))] = true
			ids[x.existing.claimed] = true
			names[in.ownTags(p.group, x)["Name"]] = true
		}
		for _, m := range slices.Concat(p.outdated, p.unhealthy) {
			ids[m.ID] = true // it is terminated, but by other steps
		}
	}
	if bastion {
		tags["bastion"], names[in.bastionTags()["Name"]] = true, true
	}
	for _, m := range in.inv.Machines {
		tag := m.Tags[cloud.ResourceTag]
		if !tags[tag] && !ids[m.ID] && (tag != "" || !names[m.Tags["Name"]]) {
			out = append(out, m)
		}
	}
	return out
}

// leavingControlPlane lists all machines of the control plane that are
// terminated, by a rollout or for good.
func (p machinePlan) leavingControlPlane() (out []ec2.InstanceState) {
	for _, g := range p.groups {
		if g.controlPlane {
			out = slices.Concat(out, g.outdated, g.unhealthy)
		}
	}
	for _, m := range p.leaving {
		if m.Tags[cloud.RoleTag] == RoleControlPlane {
			out = append(out, m)
		}
	}
	return out
}

// outdatedBecause says why a machine is to be replaced; "" if it is not. A machine
// without the template tag stays: it was launched by Cluster API or by an earlier
// version. As with "clusterctl alpha rollout restart", rollout.after replaces machines
// that were launched earlier. rollout.before replaces machines of the control plane
// before their certificates expire.
func (in inputs) outdatedBecause(p groupPlan, m ec2.InstanceState) string {
	have, now := m.Tags[cloud.TemplateTag], in.inv.Now
	switch {
	case have != "" && have != p.template.digest && !in.o.Adopt:
		return "made from another template"
	case m.Tags[cloud.JoinFailedTag] != "":
		return "kubeadm join has failed on it"
	case now.IsZero() || m.LaunchedAt.IsZero():
	case !p.rolloutAfter.IsZero() && !now.Before(p.rolloutAfter) && m.LaunchedAt.Before(p.rolloutAfter):
		return "launched before rollout.after, " + p.rolloutAfter.UTC().Format(time.RFC3339)
	case p.renewBefore > 0 && !now.Before(in.expiry(m).Add(-p.renewBefore)):
		return "its certificates expire on " + in.expiry(m).Format(time.DateOnly)
	}
	return ""
}

// day is the unit in which Cluster API counts the validity of certificates.
const day = 24 * time.Hour

// expiry returns the earliest time at which the certificates of a machine of the control
// plane expire: kubeadm creates them after boot.
func (in inputs) expiry(m ec2.InstanceState) time.Time {
	config, _ := in.clusterConfiguration()
	return m.LaunchedAt.Add(time.Duration(cmp.Or(config.CertificateValidityPeriodDays, 365)) * day).UTC()
}

// keyRemarks say which machines keep the key pair with which they were launched, when the cluster has another one now.
func (in inputs) keyRemarks(g group, machines map[int]existingMachine) []string {
	want, inherited := in.m.KeyPair(g.spec.SSHKeyName)
	keep := 0
	for _, e := range machines {
		if inherited && e.state.Key != want {
			keep++
		}
	}
	if keep == 0 {
		return nil
	}
	return []string{fmt.Sprintf(
		"%s: machines keep the key pair with which they were launched: %d of them have another one than spec.sshKeyName; rollout.after replaces them",
		g.origin, keep,
	)}
}

// expiryRemarks warn of certificates of the control plane that expire within two months,
// if the manifest does not say when to renew them.
func (in inputs) expiryRemarks(g group, taken map[int]existingMachine) []string {
	if !g.controlPlane || g.renewBefore > 0 || in.inv.Now.IsZero() {
		return nil
	}
	var first time.Time
	for _, e := range taken {
		if at := in.expiry(e.state); !e.state.LaunchedAt.IsZero() && (first.IsZero() || at.Before(first)) {
			first = at
		}
	}
	if first.IsZero() || !in.inv.Now.After(first.Add(-60*day)) {
		return nil
	}
	return []string{
		fmt.Sprintf(
			"%s: certificates of the control plane expire on %s; rollout.before.certificatesExpiryDays says when machines are replaced for it",
			g.origin,
			first.Format(time.DateOnly),
		),
	}
}
