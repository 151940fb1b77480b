package incluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/autoscaling"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/ec2"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/eks"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// PoolNodesKind is the kind of the Nodes of a pool.
const PoolNodesKind = "nodes"

// PoolNodes are the Nodes of the machines of a pool: one of each machine that its Auto Scaling group
// has, as in the contract of Cluster API's MachinePool, which is ready when it has a Node of each.
type PoolNodes struct {
	API    *API
	Server *graph.Ref[APIServerState]
	// Either a group of the cluster's own, or a node group of EKS.
	Group     *graph.Ref[autoscaling.GroupState]
	NodeGroup *graph.Ref[eks.NodeGroupState]
	Ready     bool // as in Node
	External  bool // as in Node
}

// PoolNodesState are the machines of a pool and their Nodes.
type PoolNodesState struct {
	Pool     string // name of the Auto Scaling group
	Wanted   int    // machines that the pool is to have
	Leaving  int    // machines that leave when the pool gets as small as the manifest says
	Machines []PoolMachine
}

// PoolMachine is a machine of a pool.
type PoolMachine struct {
	ec2.InstanceState
	Node *NodeState // nil: it has not joined
}

// CloudID implements graph.State.
func (s PoolNodesState) CloudID() string { return s.Pool }

// Joined returns the number of machines that have joined, and of those that are ready. AWS chooses which machines leave: they may be those that have
// not joined.
func (s PoolNodesState) Joined() (joined, ready int) {
	for _, m := range s.Machines {
		if m.Node != nil {
			joined++
			if m.Node.Ready {
				ready++
			}
		}
	}
	return min(joined, s.all()), min(ready, s.all())
}

// all is the number of machines that are to join.
func (s PoolNodesState) all() int { return max(s.Wanted, len(s.Machines)) - s.Leaving }

// shrinks notes that the manifest has fewer machines than the pool, whose size changes.
func (s *PoolNodesState) shrinks(have, wanted int32) {
	if wanted < have {
		s.Leaving = max(0, s.all()-int(wanted))
	}
}

var (
	_ graph.Desired[PoolNodesState] = (*PoolNodes)(nil)
	_ graph.Timed                   = (*PoolNodes)(nil)
	_ graph.TimeLimited             = PoolNodesState{}
)

// Needs implements graph.Desired.
func (n *PoolNodes) Needs() []graph.Edge {
	return slices.Concat(graph.On(n.Server), graph.On(n.Group), graph.On(n.NodeGroup))
}

// Takes implements graph.Timed. EKS creates a node group until its nodes have joined.
func (n *PoolNodes) Takes() (create, remove time.Duration) {
	if n.NodeGroup != nil {
		return 0, 0
	}
	return nodeTakes, 0
}

// TimeLimit implements graph.TimeLimited.
func (s PoolNodesState) TimeLimit() time.Duration {
	if slices.ContainsFunc(s.Machines, func(m PoolMachine) bool { return strings.Contains(m.Type, ".metal") }) {
		return metalPatience
	}
	return nodePatience
}

// Find implements graph.Desired.
func (n *PoolNodes) Find(ctx context.Context, c *cloud.Clients) (*PoolNodesState, error) {
	if !answers(n.Server) {
		return nil, nil // nothing can have joined
	}
	s, err := n.machines(ctx, c)
	if s == nil || err != nil {
		return nil, err
	}
	if err := s.findNodes(ctx, c, n.API); err != nil {
		return nil, err
	}
	return s, nil
}

// findNodes looks up the Nodes of the machines.
func (s *PoolNodesState) findNodes(ctx context.Context, c *cloud.Clients, api *API) error {
	all, err := Nodes(ctx, c, api)
	if err != nil {
		return err
	}
	for i := range s.Machines {
		s.Machines[i].Node = all.Of(s.Machines[i].InstanceState)
	}
	return nil
}

// LateMachine returns a machine of a node group that has not joined or is not ready. If there is none, or the API server does not answer, it
// returns any machine. It returns false if the node group has no machines.
func LateMachine(ctx context.Context, c *cloud.Clients, api *API, group eks.NodeGroupState) (ec2.InstanceState, bool) {
	s, err := machinesOfNodeGroup(ctx, c, group, false)
	if s == nil || err != nil || len(s.Machines) == 0 {
		return ec2.InstanceState{}, false
	}
	_ = s.findNodes(ctx, c, api) // without the API server, no Node is known
	if m, late := s.First(); late {
		return m.InstanceState, true
	}
	return s.Machines[0].InstanceState, true
}

// machines lists the machines of the pool as they are now: Auto Scaling may have replaced some since
// the group was settled.
func (n *PoolNodes) machines(ctx context.Context, c *cloud.Clients) (*PoolNodesState, error) {
	if group, ok := n.NodeGroup.Found(); ok {
		desired := n.NodeGroup.Desired().(*eks.NodeGroup) //nolint:forcetypeassert // nothing else has this state
		s, err := machinesOfNodeGroup(ctx, c, group, desired.KeepDesired)
		if s != nil && !desired.KeepDesired {
			s.shrinks(group.Desired, desired.Desired)
		}
		return s, err
	}
	group, ok := n.Group.Found()
	if !ok {
		return nil, nil
	}
	all, err := autoscaling.Groups(ctx, c)
	if err != nil {
		return nil, err
	}
	at := slices.IndexFunc(all, func(g autoscaling.GroupState) bool { return g.ID == group.ID })
	if at < 0 || all[at].Status != "" {
		return nil, nil
	}
	s, err := machinesOfGroup(ctx, c, all[at])
	if desired, is := n.Group.Desired().(*autoscaling.Group); is && s != nil && desired.Desired != nil && s.Wanted > 0 {
		s.shrinks(all[at].Desired, *desired.Desired)
	}
	return s, err
}

// machinesOfGroup lists the machines of an Auto Scaling group that are to be Nodes.
func machinesOfGroup(ctx context.Context, c *cloud.Clients, group autoscaling.GroupState) (*PoolNodesState, error) {
	inventory, err := ec2.InstanceInventory(ctx, c)
	if err != nil {
		return nil, err
	}
	s := &PoolNodesState{Pool: group.ID}
	for _, i := range group.Members() {
		m := PoolMachine{InstanceState: ec2.InstanceState{Type: i.Type, Zone: i.Zone}}
		m.ID = i.ID
		if known := inventory.OfGroups[i.ID]; known != nil {
			m.InstanceState = *known
		}
		if !m.IsTerminating() {
			s.Machines = append(s.Machines, m)
		}
	}
	if !group.Weighted() && !group.Suspends("Launch") {
		s.Wanted = int(group.Desired)
	}
	return s, nil
}

// machinesOfNodeGroup lists the machines of a node group of EKS.
func machinesOfNodeGroup(ctx context.Context, c *cloud.Clients, group eks.NodeGroupState, scaled bool) (*PoolNodesState, error) {
	if group.ScalingGroup == "" {
		return nil, nil
	}
	all, err := ec2.InstancesOfGroup(ctx, c, group.ScalingGroup)
	if err != nil {
		return nil, err
	}
	s := &PoolNodesState{Pool: group.ScalingGroup}
	if !scaled {
		s.Wanted = int(group.Desired)
	}
	for _, m := range all {
		s.Machines = append(s.Machines, PoolMachine{InstanceState: *m})
	}
	return s, nil
}

// Diff implements graph.Desired.
func (n *PoolNodes) Diff(have *PoolNodesState) (d plan.Diff) {
	if have.Pool == "" {
		d.Await("state", "", n.want())
		return d
	}
	joined, ready := have.Joined()
	all := have.all()
	if uninitialized := have.uninitialized() - have.Leaving; n.External && n.Ready && uninitialized > 0 {
		d.Await("providerID", fmt.Sprintf("%d of %d not set", uninitialized, all), "set by the cloud controller manager")
	}
	if n.Ready {
		d.Await("Nodes", fmt.Sprintf("%d of %d ready%s", ready, all, have.message()), fmt.Sprintf("%d of %d ready", all, all))
		return d
	}
	d.Await("Nodes", fmt.Sprintf("%d of %d joined", joined, all), fmt.Sprintf("%d of %d joined", all, all))
	return d
}

func (n *PoolNodes) want() string {
	if n.Ready {
		return ready
	}
	return "joined"
}

// uninitialized counts the Nodes that no cloud controller manager has initialized.
func (s *PoolNodesState) uninitialized() (n int) {
	for _, m := range s.Machines {
		if m.Node != nil && (m.Node.ProviderID == "" || m.Node.Uninitialized) {
			n++
		}
	}
	return n
}

// message says why the first Node that is not ready is not.
func (s *PoolNodesState) message() string {
	for _, m := range s.Machines {
		if m.Node != nil && !m.Node.Ready && m.Node.Message != "" {
			return ": " + m.Node.Message
		}
	}
	return ""
}

// First returns a machine that has not joined or, if all have, one whose Node is not ready.
func (s PoolNodesState) First() (m PoolMachine, ok bool) {
	for _, missing := range []bool{true, false} {
		for _, m := range s.Machines {
			if missing && m.Node == nil || !missing && m.Node != nil && (!m.Node.Ready || m.Node.Uninitialized) {
				return m, true
			}
		}
	}
	return m, false
}

// MachinesOf returns what is known of machines of Auto Scaling groups, by ID. why says that the
// API server does not answer.
func (a *API) MachinesOf(ctx context.Context, c *cloud.Clients, ids []string) (known map[string]autoscaling.Machine, why string, err error) {
	nodes, err := Nodes(ctx, c, a)
	if unavailable := (*unavailableError)(nil); errors.As(err, &unavailable) {
		return nil, unavailable.Error(), nil
	}
	if err != nil {
		return nil, "", err
	}
	inventory, err := ec2.InstanceInventory(ctx, c)
	if err != nil {
		return nil, "", err
	}
	known = map[string]autoscaling.Machine{}
	for _, id := range ids {
		var m ec2.InstanceState
		if have := inventory.OfGroups[id]; have != nil {
			m = *have
		}
		m.ID = id
		x := autoscaling.Machine{Launched: m.LaunchedAt, Leaving: m.IsTerminating()}
		if node := nodes.Of(m); node != nil {
			x.Joined, x.Ready = true, node.Ready
		}
		known[id] = x
	}
	return known, "", nil
}
