package incluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/ec2"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
	"github.com/clusterawsadm/clusterawsadm/internal/kube"
	"github.com/clusterawsadm/clusterawsadm/internal/text"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// Drain represents the workload on the Node of a machine that is to be terminated. To
// delete it is to cordon the Node, evict the pods, and wait until their volumes are
// detached, as Cluster API's Machine controller does.
type Drain struct {
	API     *API
	Machine ec2.InstanceState
	// Timeout and Detach are how long the pods and the volumes may take; 0: as
	// long as they need.
	Timeout, Detach time.Duration
	SkipDetach      bool // volumes may stay attached
	After           []graph.Edge
}

// DrainState is a Node that is not drained yet.
type DrainState struct {
	Node        NodeState
	Pods        []corev1.Pod // that have to leave the Node
	Volumes     []string     // that are still attached
	Unavailable error        // why the API server does not respond; nil if it does
}

// CloudID implements graph.State.
func (s DrainState) CloudID() string { return cmp.Or(s.Node.Name, "node") }

// Annotations of Nodes that are drained. They hold times because a drain may take
// more than one run.
const (
	retiredAnnotation  = "clusterawsadm/retired" // ID of the machine
	drainingAnnotation = "clusterawsadm/draining-since"
	drainedAnnotation  = "clusterawsadm/drained-since"
	cordonedAnnotation = "clusterawsadm/was-cordoned" // before the drain, by somebody else
	hooksAnnotation    = "clusterawsadm/hooks-"       // and "pre-drain" or "pre-terminate": ID of the machine whose hooks have been copied
)

var (
	_ graph.Desired[DrainState] = (*Drain)(nil)
	_ graph.Deleter[DrainState] = (*Drain)(nil)
	_ graph.TimeLimited         = (*Drain)(nil)
)

// Needs implements graph.Desired.
func (d *Drain) Needs() []graph.Edge { return append(d.API.needs(), d.After...) }

// TimeLimit implements graph.TimeLimited.
func (d *Drain) TimeLimit() time.Duration { return 15*time.Minute + d.Timeout + d.Detach }

// Find implements graph.Desired.
func (d *Drain) Find(ctx context.Context, c *cloud.Clients) (*DrainState, error) {
	node, unavailable, err := nodeOf(ctx, c, d.API, d.Machine)
	if unavailable != nil {
		return &DrainState{Unavailable: unavailable}, nil //nolint:nilerr // Delete waits for it
	}
	if node == nil || err != nil {
		return nil, err
	}
	s := &DrainState{Node: *node}
	if !s.Node.Cordoned || s.Node.Draining.IsZero() {
		s.Node.Draining, s.Node.Drained = time.Time{}, time.Time{}
	}
	k, err := d.API.Client(c)
	var pods nodePods
	if err == nil {
		pods, err = podsOf(ctx, k, s.Node)
	}
	if s.Node.Drained.IsZero() {
		s.Pods = pods.leave
	}
	if err == nil {
		s.Volumes, err = d.attached(ctx, k, s.Node, pods.keptClaims)
	}
	switch {
	case err != nil:
		return unavailableDrain(ctx, err)
	case s.Node.Draining.IsZero(), len(s.Pods) > 0, len(s.Volumes) > 0 && !over(c, s.Node.Drained, d.Detach):
		return s, nil
	}
	return nil, nil // the Node is drained
}

// unavailableDrain is the state if the API server is unavailable.
func unavailableDrain(ctx context.Context, err error) (*DrainState, error) {
	var unavailable *unavailableError
	if errors.As(retryUnavailable(ctx, err), &unavailable) {
		return &DrainState{Unavailable: unavailable}, nil
	}
	return nil, err
}

// nodeOf returns the Node of a machine that is to be terminated; nil if there is no Node
// or no machine. unavailable says why the API server does not respond.
func nodeOf(ctx context.Context, c *cloud.Clients, api *API, m ec2.InstanceState) (node *NodeState, unavailable, err error) {
	machines, err := ec2.InstanceInventory(ctx, c)
	if err != nil || machines.ByID[m.ID] == nil {
		return nil, nil, err
	}
	k, err := api.Client(c)
	if err != nil {
		return nil, nil, err
	}
	if k == nil {
		return nil, errNoAddress, nil
	}
	all, err := Nodes(ctx, c, api)
	var why *unavailableError
	if errors.As(err, &why) {
		return nil, why, nil
	}
	if err != nil {
		return nil, nil, err
	}
	if s := all.inherited(m); s != nil && !s.Unreachable { // its kubelet reports for the Node of a lost machine
		return s, nil, nil
	}
	return all.Of(m), nil, nil
}

// over reports whether a time limit has passed; there is none for 0.
func over(c *cloud.Clients, since time.Time, limit time.Duration) bool {
	return limit > 0 && !since.IsZero() && c.Clock.Since(since) >= limit
}

// Diff implements graph.Desired: a drain is retired, so nothing differs.
func (d *Drain) Diff(*DrainState) plan.Diff { return nil }

// Delete implements graph.Deleter. Each call is one round.
func (d *Drain) Delete(ctx context.Context, c *cloud.Clients, have *DrainState) error {
	if have.Unavailable != nil {
		return d.API.retryUnavailable(ctx, graph.NotYet(have.Unavailable))
	}
	k, err := d.API.Client(c)
	if err == nil {
		err = d.round(ctx, c, k, have)
	}
	if apierrors.IsNotFound(err) {
		return nil // the Node is deleted
	}
	return d.API.retryUnavailable(ctx, err)
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
		return graph.NotYet(errors.New("the list of its pods after the Node was cordoned"))
	case len(have.Pods) == 0 || late:
		if err := k.Merge(ctx, nodePath(have.Node.Name), annotating(map[string]any{drainedAnnotation: now})); err != nil {
			return err
		}
		if late && len(have.Pods) > 0 {
			return graph.NotYet(fmt.Errorf("the pods that remain after nodeDrainTimeout (%s): %s", d.Timeout, podNames(have.Pods)))
		}
	default:
		return evict(ctx, c, k, have)
	}
	return graph.NotYet(fmt.Errorf("%s to be detached: %s", text.Count(len(have.Volumes), "volume"), text.Several(have.Volumes)))
}

// cordoning returns the patch that starts a drain.
func (d *Drain) cordoning(have NodeState, now string) map[string]any {
	annotations := map[string]any{retiredAnnotation: d.Machine.ID, drainingAnnotation: now, drainedAnnotation: nil}
	switch {
	case !have.Cordoned:
		annotations[cordonedAnnotation] = nil
	case have.Retired == "":
		annotations[cordonedAnnotation] = "true"
	}
	patch := annotating(annotations)
	patch["spec"] = map[string]any{"unschedulable": true}
	return patch
}

// annotating returns a merge patch of annotations; nil removes one.
func annotating(annotations map[string]any) map[string]any {
	return map[string]any{"metadata": map[string]any{"annotations": annotations}}
}

func nodePath(name string) string { return "/api/v1/nodes/" + name }

// attached lists the attached volumes that have to be detached from a Node: not those of
// pods that stay, and none of an unreachable Node, on which no kubelet unmounts them.
func (d *Drain) attached(ctx context.Context, k *kube.Client, node NodeState, keptClaims []string) (out []string, err error) {
	if d.SkipDetach || node.Unreachable {
		return nil, nil
	}
	var list storagev1.VolumeAttachmentList
	err = k.Get(ctx, "/apis/storage.k8s.io/v1/volumeattachments", &list)
	for _, a := range list.Items {
		if a.Spec.NodeName != node.Name || !a.Status.Attached {
			continue
		}
		volume := ""
		if name := a.Spec.Source.PersistentVolumeName; name != nil {
			volume = *name
		}
		claim, err := claimOf(ctx, k, volume, keptClaims)
		if err != nil {
			return nil, err
		}
		if claim == "" || !slices.Contains(keptClaims, claim) {
			out = append(out, cmp.Or(volume, a.Name))
		}
	}
	return out, err
}

// claimOf returns the claim of a volume; "" if it has none, or if keptClaims is empty.
func claimOf(ctx context.Context, k *kube.Client, volume string, keptClaims []string) (string, error) {
	if volume == "" || len(keptClaims) == 0 {
		return "", nil
	}
	var v corev1.PersistentVolume
	err := k.Get(ctx, "/api/v1/persistentvolumes/"+volume, &v)
	switch {
	case apierrors.IsNotFound(err):
		return "", nil
	case err != nil || v.Spec.ClaimRef == nil:
		return "", err
	}
	return v.Spec.ClaimRef.Namespace + "/" + v.Spec.ClaimRef.Name, nil
}
