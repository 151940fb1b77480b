package teardown

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/ec2"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
	"github.com/clusterawsadm/clusterawsadm/internal/kube"
	"github.com/clusterawsadm/clusterawsadm/internal/text"
)

// InCluster are objects of one sort in a cluster that is to go, for which
// controllers in it made something in AWS. To delete them is to ask the cluster
// to give that up, and to wait for its controllers. It never fails for what the
// cluster does or does not do: what stays is found in AWS by its tags.
type InCluster struct {
	Kube *kube.Client
	Warn func(string) // told once, when not all was given up
	// Patience is how long to wait while nothing becomes less, and twice of it
	// how long in all; 0: five minutes.
	Patience time.Duration

	list func(context.Context, *kube.Client) (*InClusterState, error)
	ask  func(context.Context, *kube.Client, *InClusterState) error

	asked          map[string]bool // by UID: what controllers of others make anew is not asked for again
	over           bool            // it is as far as the cluster goes
	began, changed time.Time
	least          int
	last           *InClusterState // as it was when last seen
	failed         error           // why the last request came to nothing
}

// InClusterState are objects that are still there.
type InClusterState struct {
	objects []held
	users   []inClusterObject // pods that keep them
}

// held is an object that something in AWS was made for.
type held struct {
	name, path, uid string // "Service default/web"
	going           bool
}

// CloudID implements graph.State.
func (s InClusterState) CloudID() string { return strings.Join(s.names(), ", ") }

func (s InClusterState) names() []string {
	var names []string
	for _, o := range s.objects {
		names = append(names, o.name)
	}
	return names
}

// inClusterPatience is how long the controllers in a cluster may do nothing.
// They wait for load balancers, whose network interfaces stay for two minutes.
const inClusterPatience = 5 * time.Minute

// hurry is how long to go on with an API server that has stopped to answer, or
// does not allow what is asked of it.
const hurry = time.Minute

// Sweep adds the objects to a graph, to be given up before anything else goes.
func (i *InCluster) Sweep(g *graph.Graph, id graph.ID, before []graph.Edge) {
	graph.Sweep(g, id, &Found{
		Again: func(ctx context.Context, _ *cloud.Clients) (graph.State, error) {
			s, err := i.find(ctx)
			if s == nil {
				return nil, err
			}
			return s, err
		},
		Remove: func(ctx context.Context, c *cloud.Clients, have graph.State) error {
			s, _ := have.(*InClusterState)
			return i.remove(ctx, c, s)
		},
		Hangs: before,
	}, graph.From("which the cluster is asked to give up"))
}

func (i *InCluster) find(ctx context.Context) (*InClusterState, error) {
	if i.over {
		return nil, nil // the rest is found by its tags
	}
	s, err := i.list(ctx, i.Kube)
	if err != nil && stopped(ctx, err) {
		return nil, err
	}
	if i.failed = err; err != nil {
		if i.asked == nil {
			i.end(err)
			return nil, nil // nor was it told what there is
		}
		return i.last, nil
	}
	if i.asked != nil {
		s.only(i.asked)
	}
	if len(s.objects) == 0 {
		return nil, nil // all was given up
	}
	i.last = s
	return s, nil
}

// only leaves out objects that are not asked for.
func (s *InClusterState) only(asked map[string]bool) {
	var left []held
	for _, o := range s.objects {
		if asked[o.uid] {
			left = append(left, o)
		}
	}
	s.objects = left
}

func (i *InCluster) remove(ctx context.Context, c *cloud.Clients, have *InClusterState) error {
	now := c.Clock.Now()
	if i.asked == nil {
		i.asked, i.began, i.changed = map[string]bool{}, now, now
		for _, o := range have.objects {
			i.asked[o.uid] = true
		}
		i.least = len(have.objects) + len(have.users)
	}
	if i.failed == nil {
		if left := len(have.objects) + len(have.users); left < i.least {
			i.least, i.changed = left, now
		}
		if err := i.ask(ctx, i.Kube, have); err != nil {
			if stopped(ctx, err) {
				return err
			}
			i.failed = err
		}
	}
	limit := i.Patience
	if limit == 0 {
		limit = inClusterPatience
	}
	idle := limit
	if i.failed != nil {
		idle = min(idle, hurry)
	}
	if now.Sub(i.changed) >= idle || now.Sub(i.began) >= 2*limit {
		i.end(i.failed)
		return nil
	}
	if i.failed != nil {
		return graph.NotYet(fmt.Errorf("the API server: %s", kube.Reason(i.failed)))
	}
	return graph.NotYet(fmt.Errorf("the cluster to give up %s", text.Several(have.names())))
}

// end is as far as the cluster goes.
func (i *InCluster) end(err error) {
	i.over = true
	what, why := "what it made in AWS", "in time"
	if i.last != nil {
		what = text.Several(i.last.names())
	}
	if err != nil {
		why = "(" + kube.Reason(err) + ")"
	}
	i.Warn(fmt.Sprintf("the cluster has not given up %s %s: what was made for that is found in AWS by its tags", what, why))
}

// stopped reports whether an error is not of the API server: the run was
// stopped, or lost its lock.
func stopped(ctx context.Context, err error) bool {
	return ctx.Err() != nil || errors.Is(err, context.Canceled) || errors.Is(err, cloud.ErrLockLost) || errors.As(err, new(*cloud.RefusedError))
}

// inClusterObject is what matters here of objects of all kinds.
type inClusterObject struct {
	Metadata struct {
		Name, Namespace, UID, DeletionTimestamp string

		Finalizers      []string
		OwnerReferences []struct {
			Kind, Name string
			Controller bool
		}
	}
	Spec struct {
		Type, LoadBalancerClass       string // of a Service
		PersistentVolumeReclaimPolicy string // and so on: of a PersistentVolume
		ClaimRef                      struct{ Namespace, Name, UID string }
		CSI                           struct{ Driver string }
		AWSElasticBlockStore          *struct{}
		NodeName                      string // of a Pod
		Volumes                       []struct {
			Name                  string
			PersistentVolumeClaim struct{ ClaimName string }
			Ephemeral             *struct{}
		}
	}
	Status struct{ Phase string }
}

// inClusterObjects lists the objects at a path. A kind that is not served has
// none.
func inClusterObjects(ctx context.Context, k *kube.Client, path string) (all []inClusterObject, err error) {
	for next := ""; ; {
		var page struct {
			Metadata struct{ Continue string }
			Items    []inClusterObject
		}
		if err := k.Get(ctx, path+"?limit=500&continue="+next, &page); err != nil {
			if apierrors.IsNotFound(err) {
				err = nil
			}
			return all, err
		}
		all = append(all, page.Items...)
		if next = page.Metadata.Continue; next == "" {
			return all, nil
		}
	}
}

// deleteAll deletes what is at some paths. What is refused does not keep it
// from the rest.
func deleteAll(ctx context.Context, k *kube.Client, paths []string) (first error) {
	for _, path := range paths {
		err := k.Delete(ctx, path)
		if err != nil && !apierrors.IsNotFound(err) && first == nil {
			first = err
		}
		if err != nil && stopped(ctx, err) {
			return err
		}
	}
	return first
}

// ControlPlaneRuns reports whether a machine of the control plane runs.
func ControlPlaneRuns(ctx context.Context, c *cloud.Clients) (bool, error) {
	all, err := ec2.Instances(ctx, c)
	return slices.ContainsFunc(all, func(s ec2.InstanceState) bool {
		return s.Tags[cloud.RoleTag] == "control-plane" && s.Status == "running"
	}), err
}
