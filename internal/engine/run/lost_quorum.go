package run

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
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// startsWithin is how long the API server of a new cluster may take to start. Before that, its silence is not a sign of a loss.
const startsWithin = 10 * time.Minute

// checkQuorum returns an error if machines of the control plane are lost, and the API server does not
// answer within a minute: etcd has no quorum. A run would only launch machines that cannot join.
func (l *Looking) checkQuorum(ctx context.Context) error {
	if l.unanswered == nil || l.Built.Members == 0 || l.restores() {
		return nil
	}
	e, err := l.lostQuorum(ctx)
	if e == nil || err != nil {
		return err
	}
	l.Warn("machines of the control plane are missing, and the API server does not answer (%s): asking it again, for up to %s", e.Why, cloud.ConsistencyDelay)
	for began := l.Cloud.Clock.Now(); l.Cloud.Clock.Since(began) < cloud.ConsistencyDelay; {
		if err := l.Cloud.Clock.Sleep(ctx, pauseOfLooks); err != nil {
			return err
		}
		k, err := l.Built.API.Client(l.Cloud)
		if err != nil || k == nil {
			return err
		}
		if err = k.Ready(cloud.ReadOnly(ctx)); err == nil {
			l.unanswered = nil
			l.Cloud.Snapshot()
			return l.checkNodes(ctx)
		}
	}
	return e
}

// lostQuorum returns the error for an etcd that has no quorum, as far as the account shows it; nil if it
// shows no loss.
func (l *Looking) lostQuorum(ctx context.Context) (*plan.LostQuorumError, error) {
	why, silent := kube.Unavailable(l.unanswered)
	if !silent {
		return nil, nil
	}
	e := &plan.LostQuorumError{Cluster: l.Cluster.Name, Members: l.Built.Members, Why: why}
	var stopped []ec2.InstanceState
	begins := false // whether the first API server of the cluster may still be starting
	for _, m := range l.Inventory.Machines {
		switch {
		case m.Tags[cloud.RoleTag] != topology.RoleControlPlane:
		case m.Stopped:
			e.Stopped = append(e.Stopped, m.ID)
			stopped = append(stopped, m)
		default:
			e.Left = append(e.Left, plan.Survivor{ID: m.ID, Launched: m.LaunchedAt})
			begins = begins || m.ID == l.Inventory.InitMachine && l.Cloud.Now().Sub(m.LaunchedAt) < startsWithin
		}
	}
	worked, err := l.lastWorked(ctx)
	if err != nil || begins && worked.IsZero() {
		return nil, err
	}
	e.Worked = worked
	gone, err := ec2.TerminatedInstances(cloud.InSnapshot(cloud.ReadOnly(ctx)), l.Cloud)
	if err != nil {
		return nil, fmt.Errorf("terminated machines of the cluster: %w", err)
	}
	e.Lost = l.describeGone(gone)
	few := len(e.Left) < plan.Quorum(e.Members)
	answers := errors.As(l.unanswered, new(apierrors.APIStatus)) // it is there, and etcd does not serve it
	if len(e.Lost)+len(e.Stopped) == 0 || !few && !answers {
		return nil, nil
	}
	slices.Sort(e.Stopped)
	e.Start = ec2.StartCommand("", stopped...)
	slices.SortFunc(e.Left, func(x, y plan.Survivor) int {
		return cmp.Or(x.Launched.Compare(y.Launched), strings.Compare(x.ID, y.ID))
	})
	return e, nil
}

// lastWorked returns when a run last found all machines of the control plane ready. It is zero if that is not known, or was before a new etcd
// was begun.
func (l *Looking) lastWorked(ctx context.Context) (at time.Time, err error) {
	if l.Cloud.Lock != nil {
		at = l.Cloud.Lock.Worked()
	} else {
		last, err := l.lastRun(ctx)
		if err != nil {
			return at, err
		}
		at = last.Worked
	}
	if at.Before(l.Inventory.EtcdSince) {
		return time.Time{}, nil
	}
	return at, nil
}
