package incluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/ec2"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
	"github.com/clusterawsadm/clusterawsadm/internal/text"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// NodeObjects are Nodes of terminated machines that no cloud controller manager has
// deleted: that of one machine, or those that earlier runs have left.
type NodeObjects struct {
	API     *API
	Server  *graph.Ref[APIServerState] // nil where the run does not wait for it
	Machine ec2.InstanceState          // zero: all terminated machines
	Lost    bool                       // also machines that no run has drained: those of a snapshot
	After   []graph.Edge
}

// NodeObjectsState are Nodes without a machine.
type NodeObjectsState struct {
	Names       []string
	Unavailable error
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
		return nil, nil // it did not respond when the machines were terminated either
	}
	all, err := Nodes(ctx, c, n.API)
	var unavailable *unavailableError
	if errors.As(err, &unavailable) && n.Machine.ID != "" {
		return &NodeObjectsState{Unavailable: unavailable}, nil
	} else if unavailable != nil {
		return nil, nil //nolint:nilerr // a later run finds them
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

func (n *NodeObjects) names(ctx context.Context, c *cloud.Clients, all *NodeList) (out []string, err error) {
	if n.Machine.ID != "" {
		if s := all.Of(n.Machine); s != nil {
			return []string{s.Name}, nil
		}
		reused, err := FindReusedAddresses(ctx, c, all, []ec2.InstanceState{n.Machine})
		if s := all.inherited(n.Machine); s != nil && len(reused) > 0 {
			out = append(out, s.Name)
		}
		return out, err
	}
	machines, err := ec2.InstanceInventory(ctx, c)
	if err != nil {
		return nil, err
	}
	if n.Lost {
		lost, err := lostNodes(ctx, c, all, machines.List, func(*NodeState) bool { return true })
		for _, s := range lost {
			out = append(out, s.Name)
		}
		return out, err
	}
	for _, s := range all.list {
		if m := machines.ByID[s.Retired]; s.Retired != "" && (m == nil || m.IsTerminating()) {
			out = append(out, s.Name)
		}
	}
	return out, nil
}

// Diff implements graph.Desired: the Nodes are retired, so nothing differs.
func (n *NodeObjects) Diff(*NodeObjectsState) plan.Diff { return nil }

// Delete implements graph.Deleter.
func (n *NodeObjects) Delete(ctx context.Context, c *cloud.Clients, have *NodeObjectsState) error {
	if have.Unavailable != nil {
		return n.API.retryUnavailable(ctx, graph.NotYet(have.Unavailable))
	}
	k, err := n.API.Client(c)
	if err != nil {
		return err
	}
	for _, name := range have.Names {
		if err := k.Delete(ctx, nodePath(name)); err != nil && !apierrors.IsNotFound(err) {
			return n.API.retryUnavailable(ctx, fmt.Errorf("node %s: %w", name, err))
		}
	}
	return nil
}

// lostNodes returns those of the Nodes that have lost their machine: it does not exist any more, or is
// being terminated. A Node that does not name its machine is lost if no machine of the cluster has its name
// or its address, and it is of the control plane or without contact: that of a worker may be foreign.
func lostNodes(ctx context.Context, c *cloud.Clients, all *NodeList, machines []*ec2.InstanceState, of func(*NodeState) bool) (lost []*NodeState, err error) {
	alive := map[*NodeState]bool{}
	for _, m := range machines {
		if s := all.Of(*m); s != nil && !m.IsTerminating() {
			alive[s] = true
		}
	}
	named := func(s *NodeState) bool { return strings.HasPrefix(s.Instance(), "i-") }
	var ids []string
	for _, s := range all.list {
		_, control := s.Labels[controlPlaneLabel]
		if alive[s] || !of(s) || !named(s) && !s.Unreachable && !control {
			continue
		}
		lost = append(lost, s)
		if named(s) {
			ids = append(ids, s.Instance())
		}
	}
	if len(ids) == 0 {
		return lost, nil
	}
	existing, err := ec2.InstanceTags(ctx, c, ids) // also those without the tags of the cluster
	return slices.DeleteFunc(lost, func(s *NodeState) bool { _, exists := existing[s.Instance()]; return exists }), err
}
