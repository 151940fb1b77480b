package incluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/ec2"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
	"github.com/clusterawsadm/clusterawsadm/internal/text"
)

// NodeObjects are the nodes of machines that we have taken away, unless a cloud
// controller manager has deleted them: that of one machine, which is to be gone
// when it is deleted, or those that earlier runs have left behind.
type NodeObjects struct {
	API     *API
	Server  *graph.Ref[APIServerState] // nil where the run does not wait for it
	Machine ec2.InstanceState          // zero: any that is gone
	After   []graph.Edge
}

// NodeObjectsState are nodes without a machine.
type NodeObjectsState struct {
	Names  []string
	Silent error
}

// CloudID implements graph.State.
func (s NodeObjectsState) CloudID() string { return cmp.Or(text.Several(s.Names), "node") }

var (
	_ graph.Desired[NodeObjectsState] = (*NodeObjects)(nil)
	_ graph.Deleter[NodeObjectsState] = (*NodeObjects)(nil)
)

// Needs implements graph.Desired.
func (n *NodeObjects) Needs() []graph.Edge {
	return append(append(n.API.needs(), graph.Awaits(n.Server)...), n.After...)
}

// Find implements graph.Desired.
func (n *NodeObjects) Find(ctx context.Context, c *cloud.Clients) (*NodeObjectsState, error) {
	if n.Server != nil && !answers(n.Server) {
		return nil, nil // nor did it for those that go
	}
	all, err := Nodes(ctx, c, n.API)
	var silent *unansweredError
	if errors.As(err, &silent) && n.Machine.ID != "" {
		return &NodeObjectsState{Silent: silent}, nil
	} else if silent != nil {
		return nil, nil //nolint:nilerr // a later run will see
	}
	s := &NodeObjectsState{}
	if err == nil {
		s.Names, err = n.names(ctx, c, all)
	}
	if err != nil || len(s.Names) == 0 {
		return nil, err
	}
	return s, nil
}

func (n *NodeObjects) names(ctx context.Context, c *cloud.Clients, all *Roster) (out []string, err error) {
	if n.Machine.ID != "" {
		if s := all.Of(n.Machine); s != nil {
			out = append(out, s.Name)
		}
		return out, nil
	}
	there, err := ec2.InstanceInventory(ctx, c)
	if err != nil {
		return nil, err
	}
	for _, s := range all.list {
		if m := there.ByID[s.Retired]; s.Retired != "" && (m == nil || m.Status == "shutting-down") {
			out = append(out, s.Name)
		}
	}
	return out, nil
}

// Diff implements graph.Desired: what is left has to go.
func (n *NodeObjects) Diff(*NodeObjectsState) graph.Diff { return nil }

// Delete implements graph.Deleter.
func (n *NodeObjects) Delete(ctx context.Context, c *cloud.Clients, have *NodeObjectsState) error {
	if have.Silent != nil {
		return n.API.patiently(ctx, graph.NotYet(have.Silent))
	}
	k, err := n.API.Client(c)
	if err != nil {
		return err
	}
	for _, name := range have.Names {
		if err := k.Delete(ctx, nodePath(name)); err != nil && !apierrors.IsNotFound(err) {
			return n.API.patiently(ctx, fmt.Errorf("node %s: %w", name, err))
		}
	}
	return nil
}
