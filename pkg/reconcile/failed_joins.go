package reconcile

import (
	"context"
	"errors"
	"strings"

	"github.com/clusterawsadm/clusterawsadm/pkg/plan"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/ec2"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/boot"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/diagnose"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/incluster"
)

// apply executes the plan. If it fails only because of machines that can be replaced, it
// executes a second plan, which replaces them. It does so once.
func (r *run) apply(ctx context.Context) error {
	done, built := r.plan, r.built
	failure := r.x.Apply(ctx, built.Graph)
	if failure == nil {
		return nil
	}
	again, err := r.replaceFailedJoins(ctx, failure)
	if !again && err == nil && ctx.Err() == nil {
		again, err = r.becameUnhealthy(ctx, failure)
	}
	if err == nil && again {
		err = r.preflight(ctx)
	}
	switch {
	case err != nil:
		return errors.Join(err, failure)
	case !again:
		r.plan, r.built = done, built
		return failure
	}
	r.plan.Steps = append(done.Steps, r.plan.Steps...)
	return r.x.Apply(ctx, r.built.Graph)
}

// replaceFailedJoins marks machines that have not joined as outdated, so that a rollout
// within the limits of their groups replaces them, and plans again. It reports whether there
// are any, and nothing else is wrong.
func (r *run) replaceFailedJoins(ctx context.Context, failure error) (bool, error) {
	failed := r.failedJoins(ctx, failure)
	if len(failed) == 0 {
		return false, nil
	}
	for _, m := range failed {
		if err := ec2.MarkFailedJoin(ctx, r.cloud, m); err != nil {
			return false, err
		}
	}
	return true, r.look(ctx)
}

// failedJoins returns the machines that may be replaced, if they are the only reason why
// a run has failed: their time limit is over, and their consoles say that kubeadm join has failed; on a
// machine of the control plane, after it was a member of etcd: nothing else repairs it.
func (r *run) failedJoins(ctx context.Context, err error) (machines []ec2.InstanceState) {
	all, ok := err.(interface{ Unwrap() []error })
	if !ok || ctx.Err() != nil {
		return nil
	}
	for _, err := range all.Unwrap() {
		m, why := r.failedJoin(ctx, err)
		if why == "" {
			return nil
		}
		r.warn("%s has not joined the cluster (%s): this run replaces it, once", m.ID, why)
		machines = append(machines, m)
	}
	return machines
}

// failedJoin returns the machine of a Node that has not joined, and what its console
// says; why is "" if the machine is not replaced.
func (r *run) failedJoin(ctx context.Context, err error) (m ec2.InstanceState, why string) {
	failed := gaveUp(err)
	if failed == nil {
		return m, ""
	}
	node, ok := r.built.Resource(failed.Resource).(*graph.Ref[incluster.NodeState])
	if !ok {
		return m, ""
	}
	want, ok := node.Desired().(*incluster.Node)
	if _, joined := node.Found(); !ok || joined {
		return m, ""
	}
	m, _ = want.Machine.Found()
	why, err = diagnose.JoinFailed(ctx, r.cloud, want)
	if err != nil || !want.Replaceable && !strings.Contains(why, boot.IsMember) {
		return m, "" // the run ends with the error of the Node
	}
	return m, why
}

// gaveUp returns the error of a resource that was not ready in time; nil for another error.
func gaveUp(err error) (failed *plan.ResourceError) {
	if !errors.As(err, new(*plan.TimeoutError)) || !errors.As(err, &failed) {
		return nil
	}
	return failed
}
