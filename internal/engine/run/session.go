package run

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/aws/smithy-go"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/kind"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// Session is what all phases of a run have: the cluster, the clients for AWS, and the lock.
type Session struct {
	Cluster *Cluster
	Cloud   *cloud.Clients
	Owner   kind.Owner // what tells the cluster's resources from others'

	executor *graph.Executor
	began    time.Time
	planned  string    // the saved plan that the run carries out; "" for none
	done     bool      // the run has carried out its plan
	deleted  bool      // the cluster has no resources any more
	worked   time.Time // when all machines of the control plane were ready; zero: the run does not know
}

// Begin opens a session. observe is called for each event of a resource; it may be nil.
func Begin(c *Cluster, observe func(plan.Event)) *Session {
	cfg := c.Target.Config
	if c.Manifest != nil {
		cfg.Region = c.Region
		cfg = withIdentity(cfg, c.Manifest)
	}
	s := &Session{Cluster: c, Owner: kind.Owner{Cluster: c.Name}}
	settings := ClientOptions(c.Target)
	settings.Budget = c.budget(settings)
	settings.Repeating = func(retry cloud.Retry) { s.Warn("%s", retry) }
	s.Cloud = cloud.New(cfg, c.Name, settings)
	s.began = s.Cloud.Clock.Now()
	if c.Manifest != nil {
		s.Owner.Kubernetes, s.Owner.EKS = c.Manifest.KubernetesName(), c.IsEKS()
	}
	s.executor = &graph.Executor{Cloud: s.Cloud, Timeout: c.Target.Timeout, Observe: observe, Locate: s.locate}
	return s
}

// locate returns the part of the manifest that an error is about: the field that AWS's message quotes or names, if that
// is a refusal, or else the origin.
func (s *Session) locate(origin string, err error) string {
	if s.Cluster.Manifest == nil {
		return origin
	}
	var refused smithy.APIError
	switch {
	case errors.As(err, &refused):
		if cloud.Denied(err) || !cloud.Rejected(err) {
			return origin
		}
		return s.Cluster.Manifest.Locate(origin, refused.ErrorMessage())
	case errors.As(err, new(*plan.TimeoutError)):
		return origin
	}
	return s.Cluster.Manifest.Locate(origin, err.Error())
}

// Warn sends a message to the user.
func (s *Session) Warn(format string, args ...any) {
	if s.Cluster.Target.Warn != nil {
		s.Cluster.Target.Warn(fmt.Sprintf(format, args...))
	}
}

// Refused makes a RefusedError of an error before the first write. Network errors and errors of
// AWS itself are returned unchanged.
func Refused(err error) error {
	if err = RefuseIdentity(err); err == nil || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) ||
		cloud.Unanswered(err) || cloud.Code(err) != "" && !refusesCaller(err) && !cloud.NotFound(err) {
		return err
	}
	return &plan.RefusedError{Reasons: []error{err}}
}

// Lock takes the lock of the cluster for a command: in SSM Parameter Store, or in a file of this
// machine if SSM is denied.
func (s *Session) Lock(ctx context.Context, command string) error {
	if err := CheckName(s.Cluster.Name); err != nil {
		return &plan.RefusedError{Reasons: []error{err}}
	}
	t := s.Cluster.Target
	o := cloud.LockOptions{Who: t.Owner, Command: command, ConsistencyDelay: t.LockTTL, Waiting: func(h cloud.Holder, left time.Duration) {
		if h.Late > 0 {
			s.Warn("waiting %s: %s (%s, since %s) has stopped while it deleted something, and AWS may still carry out a request of it until then",
				left.Round(time.Second), h.Who, h.Command, h.Since.UTC().Format(time.TimeOnly))
			return
		}
		s.Warn("%s holds the lock (%s, since %s) but may be dead; this run takes over in %s unless the other one renews the lock",
			h.Who, h.Command, h.Since.UTC().Format(time.TimeOnly), left.Round(time.Second))
	}}
	err := RefuseIdentity(s.Cloud.AcquireLock(ctx, o))
	if cloud.Denied(err) && !errors.As(err, new(*plan.RefusedError)) && t.StateDir != "" {
		s.Warn("access to SSM Parameter Store is denied (%v): the lock is stored on this machine only, and runs on other machines do not see it", cloud.Code(err))
		err = s.Cloud.AcquireFileLock(ctx, filepath.Join(t.StateDir, s.Cluster.Region, s.Cluster.Name), o)
	}
	if errors.As(err, new(*plan.LockedError)) || errors.As(err, new(*cloud.DamagedLockError)) || errors.Is(err, cloud.ErrLockLost) || refusesCaller(err) {
		return &plan.RefusedError{Reasons: []error{err}}
	}
	return err
}

// The time limits of Unlock: in general, and after an interrupt.
const (
	unlocking            = 30 * time.Second
	unlockingInterrupted = 600 * time.Millisecond
)

// Unlock releases the lock, also after an interrupt.
func (s *Session) Unlock(ctx context.Context) {
	limit := unlocking
	if ctx.Err() != nil {
		limit = unlockingInterrupted
	}
	ctx, cancel := s.Cloud.Clock.WithTimeout(context.WithoutCancel(ctx), limit, nil)
	defer cancel()
	nothing := s.deleted || s.Cloud.Lock.IsFirst() && s.Cloud.Stats().Writes.Load() == 0 && s.Cloud.Lock.Manager() == nil
	ending := cloud.Ending{Unknown: s.executor.LostAnswers(), Nothing: nothing, Worked: s.worked, Done: s.done, Planned: s.planned}
	if err := s.Cloud.Lock.Release(ctx, ending); err != nil && !errors.Is(err, cloud.ErrLockLost) {
		s.Warn("the lock could not be released (%v); the next run takes it over after one minute", err)
	}
}

// IsManaged is the error for a cluster that a management cluster manages.
func (s *Session) IsManaged(by *plan.Manager) error {
	return &plan.RefusedError{Reasons: []error{&plan.ManagedError{Cluster: s.Cluster.Name, Manager: *by}}}
}

// confirmed calls Options.Confirm with the plan. The time for that does not count as time of the
// run.
func (s *Session) confirmed(confirm func(plan.Plan) (bool, error), p plan.Plan) error {
	if confirm == nil || p.Empty() {
		return nil
	}
	asked := s.Cloud.Clock.Now()
	yes, err := confirm(p)
	s.began = s.began.Add(s.Cloud.Clock.Since(asked))
	if err == nil && !yes {
		err = plan.ErrDeclined
	}
	return err
}
