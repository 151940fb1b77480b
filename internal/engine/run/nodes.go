package run

import (
	"github.com/clusterawsadm/clusterawsadm/internal/engine/incluster"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// nodes counts the Nodes of the machines that the run waits for, as last observed.
func (l *Looking) nodes() (n cluster.Nodes) {
	for _, step := range l.Plan.Steps {
		if s := l.poolNodesOf(step.Resource); s != nil {
			joined, ready := s.Joined()
			n.Joined, n.Ready = n.Joined+joined, n.Ready+ready
		}
		if s := l.nodeOf(step.Resource); s != nil {
			n.Joined++
			if s.Ready {
				n.Ready++
			}
		}
	}
	return n
}

// nodeOf returns the Node of a resource that is a Node and has joined; otherwise nil.
func (l *Looking) nodeOf(id plan.ID) *incluster.NodeState {
	if id.Kind() != incluster.NodeKind || l.Built.Graph == nil {
		return nil
	}
	if x := l.Built.Resource(id); x != nil {
		if s, ok := x.Observed().(*incluster.NodeState); ok && s != nil && s.Name != "" {
			return s
		}
	}
	return nil
}

// poolNodesOf returns the Nodes of a resource that is those of a pool; otherwise nil.
func (l *Looking) poolNodesOf(id plan.ID) *incluster.PoolNodesState {
	if id.Kind() != incluster.PoolNodesKind || l.Built.Graph == nil {
		return nil
	}
	if x := l.Built.Resource(id); x != nil {
		if s, ok := x.Observed().(*incluster.PoolNodesState); ok {
			return s
		}
	}
	return nil
}
