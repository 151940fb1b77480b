package incluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/ec2"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
	"github.com/clusterawsadm/clusterawsadm/internal/kube"
	"github.com/clusterawsadm/clusterawsadm/internal/text"
)

// Drain is what still runs on the node of a machine that is to go. To delete it
// is to cordon the node, to evict the pods, and to wait until their volumes are
// detached (facts D.11).
type Drain struct {
	API     *API
	Machine ec2.InstanceState
	// Timeout and Detach are how long the pods and the volumes may take; 0: as
	// long as they need.
	Timeout, Detach time.Duration
	Abandon         bool // volumes may stay attached
	After           []graph.Edge
}

// DrainState is a node that is not empty yet.
type DrainState struct {
	Node    NodeState
	Pods    []podObject // that have to go
	Volumes []string
	Silent  error // why nothing is known of the node
}

// CloudID implements graph.State.
func (s DrainState) CloudID() string { return cmp.Or(s.Node.Name, "node") }

// Annotations of nodes that are taken away. Times outlast a run.
const (
	retiredMark  = "clusterawsadm/retired" // the machine
	drainingMark = "clusterawsadm/draining-since"
	drainedMark  = "clusterawsadm/drained-since"
	cordonedMark = "clusterawsadm/was-cordoned" // by somebody else, before us
)

var (
	_ graph.Desired[DrainState] = (*Drain)(nil)
	_ graph.Deleter[DrainState] = (*Drain)(nil)
	_ graph.TimeLimited             = (*Drain)(nil)
)

// Needs implements graph.Desired.
func (d *Drain) Needs() []graph.Edge { return append(d.API.needs(), d.After...) }

// TimeLimit implements graph.TimeLimited.
func (d *Drain) TimeLimit() time.Duration { return 15*time.Minute + d.Timeout + d.Detach }

// Find implements graph.Desired.
func (d *Drain) Find(ctx context.Context, c *cloud.Clients) (*DrainState, error) {
	node, silent, err := nodeOf(ctx, c, d.API, d.Machine)
	if silent != nil {
		return &DrainState{Silent: silent}, nil //nolint:nilerr // that is what is known
	}
	if node == nil || err != nil {
		return nil, err
	}
	s := &DrainState{Node: *node}
	if !s.Node.Cordoned || s.Node.Draining.IsZero() {
		s.Node.Draining, s.Node.Drained = time.Time{}, time.Time{}
	}
	k, err := d.API.Client(c)
	var here podsHere
	if err == nil {
		here, err = podsOn(ctx, k, s.Node)
	}
	if s.Node.Drained.IsZero() {
		s.Pods = here.leave
	}
	if err == nil {
		s.Volumes, err = d.attached(ctx, k, s.Node, here.spared)
	}
	switch {
	case err != nil:
		return silently(ctx, err)
	case s.Node.Draining.IsZero(), len(s.Pods) > 0, len(s.Volumes) > 0 && !over(c, s.Node.Drained, d.Detach):
		return s, nil
	}
	return nil, nil // nothing is left
}

// silently is what is known of a node when the API server has not answered.
func silently(ctx context.Context, err error) (*DrainState, error) {
	var silent *unansweredError
	if errors.As(patiently(ctx, err), &silent) {
		return &DrainState{Silent: silent}, nil
	}
	return nil, err
}

// errNowhere says that it is not known where the API server is.
var errNowhere = &unansweredError{why: "its address is not known"}

// nodeOf returns the node of a machine that is to go; nil when there is none or
// the machine is gone, and why, when the API server does not tell.
func nodeOf(ctx context.Context, c *cloud.Clients, api *API, m ec2.InstanceState) (node *NodeState, silent, err error) {
	there, err := ec2.InstanceInventory(ctx, c)
	if err != nil || there.ByID[m.ID] == nil {
		return nil, nil, err
	}
	k, err := api.Client(c)
	if err != nil {
		return nil, nil, err
	}
	if k == nil {
		return nil, errNowhere, nil
	}
	all, err := Nodes(ctx, c, api)
	var unanswered *unansweredError
	if errors.As(err, &unanswered) {
		return nil, unanswered, nil
	}
	if err != nil {
		return nil, nil, err
	}
	return all.Of(m), nil, nil
}

// over reports whether a time has run out.
func over(c *cloud.Clients, since time.Time, limit time.Duration) bool {
	return limit > 0 && !since.IsZero() && c.Clock.Since(since) >= limit
}

// Diff implements graph.Desired: what is left has to go.
func (d *Drain) Diff(*DrainState) graph.Diff { return nil }

// Delete implements graph.Deleter: one round.
func (d *Drain) Delete(ctx context.Context, c *cloud.Clients, have *DrainState) error {
	if have.Silent != nil {
		return d.API.patiently(ctx, graph.NotYet(have.Silent))
	}
	k, err := d.API.Client(c)
	if err == nil {
		err = d.round(ctx, c, k, have)
	}
	if apierrors.IsNotFound(err) {
		return nil // the node is gone
	}
	return d.API.patiently(ctx, err)
}

func (d *Drain) round(ctx context.Context, c *cloud.Clients, k *kube.Client, have *DrainState) error {
	now := c.Clock.Now().UTC().Format(time.RFC3339)
	if have.Node.Draining.IsZero() {
		if err := k.Merge(ctx, nodePath(have.Node.Name), d.cordoning(have.Node, now)); err != nil {
			return err
		}
	}
	switch late := over(c, have.Node.Draining, d.Timeout); {
	case !have.Node.Drained.IsZero():
	case len(have.Pods) == 0 && len(have.Volumes) == 0:
		return graph.NotYet(errors.New("a look at its pods, now that it takes no more"))
	case len(have.Pods) == 0 || late:
		if err := k.Merge(ctx, nodePath(have.Node.Name), marked(map[string]any{drainedMark: now})); err != nil {
			return err
		}
		if late && len(have.Pods) > 0 {
			return graph.NotYet(fmt.Errorf("no pods any more: nodeDrainTimeout, %s, is over; left are %s", d.Timeout, podNames(have.Pods)))
		}
	default:
		return evict(ctx, c, k, have)
	}
	return graph.NotYet(fmt.Errorf("%s to be detached: %s", text.Count(len(have.Volumes), "volume"), text.Several(have.Volumes)))
}

// cordoning is the change that begins to take a node away.
func (d *Drain) cordoning(have NodeState, now string) map[string]any {
	marks := map[string]any{retiredMark: d.Machine.ID, drainingMark: now, drainedMark: nil}
	switch {
	case !have.Cordoned:
		marks[cordonedMark] = nil
	case have.Retired == "":
		marks[cordonedMark] = "true"
	}
	change := marked(marks)
	change["spec"] = map[string]any{"unschedulable": true}
	return change
}

// marked is a change of a node's annotations.
func marked(annotations map[string]any) map[string]any {
	return map[string]any{"metadata": map[string]any{"annotations": annotations}}
}

func nodePath(name string) string { return "/api/v1/nodes/" + name }

// attached lists the volumes that are attached to a node, and are waited for:
// not those of pods that stay, nor any of a node that is not heard of, for
// nobody unmounts them there.
func (d *Drain) attached(ctx context.Context, k *kube.Client, node NodeState, spared []string) (out []string, err error) {
	if d.Abandon || node.Unreachable {
		return nil, nil
	}
	var list struct {
		Items []struct {
			Metadata struct{ Name string }
			Spec     struct {
				NodeName string
				Source   struct{ PersistentVolumeName string }
			}
			Status struct{ Attached bool }
		}
	}
	err = k.Get(ctx, "/apis/storage.k8s.io/v1/volumeattachments", &list)
	for _, a := range list.Items {
		if a.Spec.NodeName != node.Name || !a.Status.Attached {
			continue
		}
		volume := a.Spec.Source.PersistentVolumeName
		claim, err := claimOf(ctx, k, volume, spared)
		if err != nil {
			return nil, err
		}
		if claim == "" || !slices.Contains(spared, claim) {
			out = append(out, cmp.Or(volume, a.Metadata.Name))
		}
	}
	return out, err
}

// claimOf names the claim of a volume; "" for none, or when none is sought.
func claimOf(ctx context.Context, k *kube.Client, volume string, sought []string) (string, error) {
	if volume == "" || len(sought) == 0 {
		return "", nil
	}
	var v struct {
		Spec struct {
			ClaimRef struct{ Namespace, Name string }
		}
	}
	err := k.Get(ctx, "/api/v1/persistentvolumes/"+volume, &v)
	if apierrors.IsNotFound(err) {
		return "", nil
	}
	return v.Spec.ClaimRef.Namespace + "/" + v.Spec.ClaimRef.Name, err
}
