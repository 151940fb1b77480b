package plan

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Quorum returns how many of its members etcd needs.
func Quorum(members int) int { return members/2 + 1 }

// LostControlPlaneError says that a cluster was begun, and that no machine of its control plane exists
// any more: a run would begin another, empty cluster at the same address.
type LostControlPlaneError struct {
	Cluster  string
	Marker   string   // the SSM parameter that says that the cluster was begun
	Machines []string // the machines that are gone, as far as they are known: "i-0abc (demo-control-plane-x, terminated)"
}

func (e *LostControlPlaneError) Error() string {
	return fmt.Sprintf("the control plane is lost: %s says that the cluster was begun, and none of its machines exists any more: %s. "+
		"All objects of the cluster were in etcd on these machines, and a run would begin an empty cluster at the same address. Either\n"+
		"  restore a snapshot that 'cluster backup %s' has saved, with 'cluster create --restore FILE'; or\n"+
		"  begin a new, empty etcd with --new-etcd=%[3]s. The objects of the cluster are lost then, except for the add-ons of the manifest, and its workers are replaced. "+
		"If the cluster has never worked, nothing is lost by that", e.Marker, strings.Join(e.Machines, ", "), e.Cluster)
}

// LostQuorumError says that machines of the control plane are lost or stopped, and that the API server
// does not answer: etcd has no quorum, and no run can change its members.
type LostQuorumError struct {
	Cluster string
	Members int      // that etcd has, if it has one on each machine
	Why     string   // what the API server answers
	Lost    []string // machines that are gone: "i-0abc (demo-control-plane-x, terminated)"
	Stopped []string // IDs of stopped machines
	Start   string   // the command that starts them, if there are any
	Left    []Survivor
	Worked  time.Time // when all machines of the control plane were ready for the last time, as far as a run has seen it; zero: not known
}

// Survivor is a machine of the control plane that runs.
type Survivor struct {
	ID       string
	Launched time.Time
}

func (e *LostQuorumError) Error() string {
	var left, survivors []string
	for _, s := range e.Left {
		left = append(left, s.ID)
		survivors = append(survivors, fmt.Sprintf("%s (launched %s)", s.ID, s.Launched.UTC().Format(time.RFC3339)))
	}
	var b strings.Builder
	fmt.Fprintf(&b, "etcd has no quorum: for a minute, the API server has not answered (%s), and etcd needs %s. ", e.Why, e.needs())
	for _, x := range []struct {
		what     string
		machines []string
	}{{"Lost", e.Lost}, {"Stopped", e.Stopped}, {"Running", survivors}} {
		if len(x.machines) > 0 {
			fmt.Fprintf(&b, "%s: %s. ", x.what, strings.Join(x.machines, ", "))
		}
	}
	if len(e.Stopped) == 0 && e.neverJoined() {
		fmt.Fprintf(
			&b,
			"The control plane was last seen whole at %s, and none of the machines that run is that old: they have nothing of its data, and cannot join. "+
				"Terminate them (aws ec2 terminate-instances --instance-ids %s), and either\n"+
				"  restore the last backup that 'cluster backup %s' has saved, with 'cluster create --restore FILE'; or\n"+
				"  begin a new, empty etcd with --new-etcd=%[3]s. The objects of the cluster are lost then, except for the add-ons of the manifest, and its workers are replaced",
			e.Worked.UTC().Format(time.RFC3339),
			strings.Join(left, " "),
			e.Cluster,
		)
		return b.String()
	}
	b.WriteString("Do not terminate another machine of the control plane: they have what is left of the data. Then run this again")
	if len(e.Stopped) > 0 {
		b.WriteString("\n  start the stopped machines: " + e.Start)
	}
	if len(left) > 0 {
		fmt.Fprintf(&b, "\n  reboot a machine that does not respond: aws ec2 reboot-instances --instance-ids %s", strings.Join(left, " "))
		b.WriteString("\n  if too few members are left for a quorum, begin a new etcd with the data of one of them: on a machine that is older than the loss, " +
			"set etcd's flag --force-new-cluster in /etc/kubernetes/manifests/etcd.yaml until it answers, and remove it")
	}
	fmt.Fprintf(
		&b,
		"\n  or terminate all of them, and restore the last backup that 'cluster backup %s' has saved, with 'cluster create --restore FILE'; "+
			"without one, --new-etcd=%[1]s begins an empty etcd",
		e.Cluster,
	)
	return b.String()
}

// neverJoined reports whether all running machines were launched after the control plane was last ready. They are replacements, and without a
// quorum none of them has joined etcd.
func (e *LostQuorumError) neverJoined() bool {
	return !e.Worked.IsZero() && len(e.Left) > 0 && !slices.ContainsFunc(e.Left, func(s Survivor) bool { return s.Launched.Before(e.Worked) })
}

// NoQuorumError says that too few machines of the control plane were left when a stopped cluster was started.
type NoQuorumError struct {
	Cluster string
	Members int // of etcd, before
	Left    int // machines of the control plane that are left
}

func (e *NoQuorumError) Error() string {
	if e.Left == 0 {
		return "no machine of the control plane is left: 'cluster create' with the manifest says what can be done"
	}
	return fmt.Sprintf(
		"the machines run, but etcd has no quorum: it needs %d of its %d members, and has at most %d. What is left of its data is on these machines: "+
			"terminate none. 'cluster create' with the manifest says what can be done",
		Quorum(e.Members),
		e.Members,
		e.Left,
	)
}

// needs says how many members etcd needs.
func (e *LostQuorumError) needs() string {
	if e.Members == 1 {
		return "its only member"
	}
	return fmt.Sprintf("%d of its %d members", Quorum(e.Members), e.Members)
}
