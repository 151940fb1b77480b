package incluster

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/ec2"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// Hooks are the pre-drain or the pre-terminate hooks of a machine that is to be terminated.
// In Cluster API they are annotations of the Machine, and its deletion waits until their
// owners have removed them. Without Machines, a run copies them to the Node and waits until
// they are removed there.
type Hooks struct {
	API     *API
	Machine ec2.InstanceState
	Prefix  string            // of the annotations: "pre-drain.delete.hook.machine.cluster.x-k8s.io"
	Owners  map[string]string // by annotation
	After   []graph.Edge
}

// HooksState are the hooks that are not finished.
type HooksState struct {
	Node        string
	Waiting     []string // annotations that are on the Node
	Copied      bool     // a run has copied the hooks to the Node
	Unavailable error    // why the API server does not respond; nil if it does
}

// CloudID implements graph.State.
func (s HooksState) CloudID() string { return s.Node }

var (
	_ graph.Desired[HooksState] = (*Hooks)(nil)
	_ graph.Deleter[HooksState] = (*Hooks)(nil)
	_ graph.TimeLimited         = (*Hooks)(nil)
)

// Needs implements graph.Desired.
func (h *Hooks) Needs() []graph.Edge { return append(h.API.needs(), h.After...) }

// TimeLimit implements graph.TimeLimited. The next run continues to wait.
func (h *Hooks) TimeLimit() time.Duration { return 30 * time.Minute }

// Find implements graph.Desired.
func (h *Hooks) Find(ctx context.Context, c *cloud.Clients) (*HooksState, error) {
	node, unavailable, err := nodeOf(ctx, c, h.API, h.Machine)
	switch {
	case unavailable != nil:
		return &HooksState{Unavailable: unavailable}, nil //nolint:nilerr // Delete waits for it
	case node == nil || err != nil:
		return nil, err
	}
	s := &HooksState{Node: node.Name, Copied: node.Hooks[h.copied()] == h.Machine.ID}
	for _, name := range slices.Sorted(maps.Keys(node.Hooks)) {
		if strings.HasPrefix(name, h.Prefix) {
			s.Waiting = append(s.Waiting, name)
		}
	}
	if s.Copied && len(s.Waiting) == 0 {
		return nil, nil
	}
	return s, nil
}

// phase is "pre-drain" or "pre-terminate".
func (h *Hooks) phase() string {
	name, _, _ := strings.Cut(h.Prefix, ".")
	return name
}

// copied is the annotation whose value is the ID of the machine whose hooks have been copied.
func (h *Hooks) copied() string { return hooksAnnotation + h.phase() }

// Diff implements graph.Desired: the hooks are retired, so nothing differs.
func (h *Hooks) Diff(*HooksState) plan.Diff { return nil }

// Delete implements graph.Deleter. Each call is one round.
func (h *Hooks) Delete(ctx context.Context, c *cloud.Clients, have *HooksState) error {
	if have.Unavailable != nil {
		return h.API.retryUnavailable(ctx, graph.NotYet(have.Unavailable))
	}
	if !have.Copied {
		k, err := h.API.Client(c)
		if err != nil {
			return err
		}
		annotations := map[string]any{h.copied(): h.Machine.ID}
		for name, owner := range h.Owners {
			annotations[name] = owner
		}
		if err := k.Merge(ctx, nodePath(have.Node), annotating(annotations)); err != nil && !apierrors.IsNotFound(err) {
			return h.API.retryUnavailable(ctx, err)
		}
		return graph.NotYet(errors.New("its hooks"))
	}
	var waiting []string
	for _, name := range have.Waiting {
		waiting = append(waiting, fmt.Sprintf("%s (of %s)", strings.TrimPrefix(name, h.Prefix+"/"), h.Owners[name]))
	}
	return graph.NotYet(
		fmt.Errorf("the %s hook %s: its owner, or kubectl annotate node %s %s-, removes it", h.phase(), strings.Join(waiting, ", "), have.Node, have.Waiting[0]),
	)
}

// hooksOf returns the annotations of a Node that a run has copied, and those that say so.
func hooksOf(annotations map[string]string) map[string]string {
	hooks, copied := map[string]string{}, false
	for name, value := range annotations {
		isMark := strings.HasPrefix(name, hooksAnnotation)
		copied = copied || isMark
		if isMark || strings.Contains(name, ".delete.hook.machine.cluster.x-k8s.io") {
			hooks[name] = value
		}
	}
	if !copied {
		return nil
	}
	return hooks
}
