package reconcile

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/ec2"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/topology"
	"github.com/clusterawsadm/clusterawsadm/internal/kube"
	"github.com/clusterawsadm/clusterawsadm/internal/text"
)

// LostQuorumError says that machines of the control plane are lost or stopped, and that the API server
// does not answer: etcd has no quorum, and no run can change its members.
type LostQuorumError struct {
	Cluster string
	Members int      // that etcd has, if it has one on each machine
	Why     string   // what the API server answers
	Lost    []string // machines that are gone: "i-0abc (demo-control-plane-x, terminated)"
	Stopped []string // IDs of stopped machines
	Left    []Survivor
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
	b.WriteString("Do not terminate another machine of the control plane: they have what is left of the data. Then run this again")
	if len(e.Stopped) > 0 {
		fmt.Fprintf(&b, "\n  start the stopped machines: aws ec2 start-instances --instance-ids %s", strings.Join(e.Stopped, " "))
	}
	if len(left) > 0 {
		fmt.Fprintf(&b, "\n  reboot a machine that does not respond: aws ec2 reboot-instances --instance-ids %s", strings.Join(left, " "))
		b.WriteString("\n  if too few members are left for a quorum, begin a new etcd with the data of one of them: on a machine that is older than the loss, " +
			"set etcd's flag --force-new-cluster in /etc/kubernetes/manifests/etcd.yaml until it answers, and remove it")
	}
	fmt.Fprintf(&b, "\n  or terminate all of them, and restore the last backup that 'cluster backup %s' has saved, with 'cluster create --restore FILE'", e.Cluster)
	return b.String()
}

// needs says how many members etcd needs.
func (e *LostQuorumError) needs() string {
	if e.Members == 1 {
		return "its only member"
	}
	return fmt.Sprintf("%d of its %s", e.Members/2+1, text.Count(e.Members, "member"))
}

// startsWithin is how long an API server may take to start on a new machine: before that, its silence
// is no sign of a loss.
const startsWithin = 10 * time.Minute

// checkQuorum returns an error if machines of the control plane are lost, and the API server does not
// answer within a minute: etcd has no quorum. A run would only launch machines that cannot join.
func (r *run) checkQuorum(ctx context.Context) error {
	if r.unanswered == nil || r.built.Members == 0 || r.restores() {
		return nil
	}
	e, err := r.lostQuorum(ctx)
	if e == nil || err != nil {
		return err
	}
	r.warn("machines of the control plane are missing, and the API server does not answer (%s): asking it again, for up to %s", e.Why, cloud.ConsistencyDelay)
	for began := r.cloud.Clock.Now(); r.cloud.Clock.Since(began) < cloud.ConsistencyDelay; {
		if err := r.cloud.Clock.Sleep(ctx, pauseOfLooks); err != nil {
			return err
		}
		k, err := r.built.API.Client(r.cloud)
		if err != nil || k == nil {
			return err
		}
		if err = k.Ready(cloud.ReadOnly(ctx)); err == nil {
			r.unanswered = nil
			r.cloud.Snapshot()
			return r.checkNodes(ctx)
		}
	}
	return e
}

// lostQuorum returns the error for an etcd that has no quorum, as far as the account shows it; nil if it
// shows no loss.
func (r *run) lostQuorum(ctx context.Context) (*LostQuorumError, error) {
	why, silent := kube.Unavailable(r.unanswered)
	if !silent {
		return nil, nil
	}
	e := &LostQuorumError{Cluster: r.c.Name, Members: r.built.Members, Why: why}
	oldest := r.cloud.Now()
	for _, m := range r.inventory.Machines {
		switch {
		case m.Tags[cloud.RoleTag] != topology.RoleControlPlane:
		case m.Stopped:
			e.Stopped = append(e.Stopped, m.ID)
		default:
			e.Left = append(e.Left, Survivor{m.ID, m.LaunchedAt})
			if m.LaunchedAt.Before(oldest) {
				oldest = m.LaunchedAt
			}
		}
	}
	if len(e.Left) > 0 && r.cloud.Now().Sub(oldest) < startsWithin {
		return nil, nil
	}
	gone, err := ec2.TerminatedInstances(cloud.InSnapshot(cloud.ReadOnly(ctx)), r.cloud)
	if err != nil {
		return nil, fmt.Errorf("terminated machines of the cluster: %w", err)
	}
	e.Lost = r.describeGone(gone)
	few := len(e.Left) < e.Members/2+1
	answers := errors.As(r.unanswered, new(apierrors.APIStatus)) // it is there, and etcd does not serve it
	if len(e.Lost)+len(e.Stopped) == 0 || !few && !answers {
		return nil, nil
	}
	slices.Sort(e.Stopped)
	slices.SortFunc(e.Left, func(x, y Survivor) int { return cmp.Or(x.Launched.Compare(y.Launched), strings.Compare(x.ID, y.ID)) })
	return e, nil
}
