package look

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/autoscaling"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/ec2"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/kind"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/incluster"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/topology"
	"github.com/clusterawsadm/clusterawsadm/internal/kube"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// apiAnswersWithin limits how long Status waits for an API server.
const apiAnswersWithin = 5 * time.Second

// readNodes asks the API server for its state and the Nodes. The status is nil if the run
// does not use the API server, and the list if it does not answer.
func (v *view) readNodes(ctx context.Context) (*cluster.APIStatus, *incluster.NodeList) {
	if t := v.Cluster.Target; !t.AskCluster || v.Cluster.Manifest != nil && cmp.Or(t.Wait, plan.Infrastructure) == plan.Infrastructure {
		return nil, nil
	}
	k, err := v.APIServer(cloud.InSnapshot(cloud.ReadOnly(ctx)))
	if k == nil && err == nil {
		return &cluster.APIStatus{State: cluster.APINone}, nil
	}
	status := &cluster.APIStatus{State: cluster.APIReady}
	var all *incluster.NodeList
	if err == nil {
		limited, cancel := v.Cloud.Clock.WithTimeout(ctx, apiAnswersWithin, nil)
		defer cancel()
		all, err = readAPI(limited, k, status)
	}
	if err != nil {
		return &cluster.APIStatus{State: cluster.APIUnavailable, Detail: kube.Reason(err)}, nil
	}
	return status, all
}

func readAPI(ctx context.Context, k *kube.Client, s *cluster.APIStatus) (*incluster.NodeList, error) {
	if err := k.Ready(ctx); err != nil {
		return nil, err
	}
	var version struct{ GitVersion string }
	if err := k.Get(ctx, "/version", &version); err != nil {
		return nil, err
	}
	s.Version = version.GitVersion
	return incluster.ListNodes(ctx, k)
}

// nodeStatuses converts a list of Nodes.
func nodeStatuses(all *incluster.NodeList) (out []cluster.NodeStatus) {
	if all == nil {
		return nil
	}
	for _, n := range all.All() {
		s := cluster.NodeStatus{Name: n.Name, Machine: n.Instance(), Roles: n.Roles(), Version: n.Version, Ready: n.Ready, Cordon: n.Cordoned, Since: n.Created}
		if !n.Ready {
			s.Detail = n.Message
		}
		out = append(out, s)
	}
	slices.SortStableFunc(out, func(x, y cluster.NodeStatus) int {
		return cmp.Or(len(y.Roles)-len(x.Roles), cmp.Compare(x.Name, y.Name)) // the control plane first
	})
	return out
}

// addNodes adds to the status of a pool how many of its machines have joined. If the API server has
// not answered, it says nothing.
func addNodes(s *cluster.ResourceStatus, machines []*incluster.NodeState, wanted int) {
	joined, ready := 0, 0
	for _, n := range machines {
		if n != nil {
			joined++
			if n.Ready {
				ready++
			}
		}
	}
	wanted = max(wanted, len(machines))
	if s.State != "ok" && s.State != "pending" {
		return
	}
	switch {
	case joined < wanted:
		s.State, s.Node = "pending", cluster.NodeNotJoined
	case ready < wanted:
		s.State, s.Node = "pending", cluster.NodeNotReady
	default:
		s.Node = cluster.NodeReady
	}
	s.Detail = kind.Join(fmt.Sprintf("%d of %d joined, %d ready;", joined, wanted, ready), s.Detail)
}

// nodesOfGroup returns the Node of each machine that an Auto Scaling group is to have; nil for one
// that has not joined.
func nodesOfGroup(g *autoscaling.GroupState, all *incluster.NodeList, inventory *ec2.Inventory) (out []*incluster.NodeState) {
	for _, i := range g.Members() {
		var m ec2.InstanceState
		if known := inventory.OfGroups[i.ID]; known != nil {
			m = *known
		}
		m.ID = i.ID
		out = append(out, all.Of(m))
	}
	return out
}

// nodesOfNodeGroup returns the Nodes with the label of a node group of EKS.
func nodesOfNodeGroup(name string, all *incluster.NodeList) (out []*incluster.NodeState) {
	for _, n := range all.All() {
		if n.Group == name {
			out = append(out, n)
		}
	}
	return out
}

// addNode adds to the status of a machine whether its Node has joined and is ready. If the
// API server has not answered, it says only that AWS runs the machine.
func addNode(s *cluster.ResourceStatus, m *ec2.InstanceState, all *incluster.NodeList) {
	if s.State != "ok" || m.Status != "running" || m.Tags[cloud.RoleTag] == topology.RoleBastion {
		return
	}
	word := "running"
	if all != nil {
		switch n := all.Of(*m); {
		case n == nil:
			s.State, s.Node, word = "pending", cluster.NodeNotJoined, "not joined"
		case !n.Ready:
			s.State, s.Node, word = "pending", cluster.NodeNotReady, "NotReady"
		default:
			s.Node, word = cluster.NodeReady, "Ready"
		}
	}
	s.Detail = word + " " + s.Detail
}
