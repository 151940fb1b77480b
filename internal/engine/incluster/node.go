package incluster

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/ec2"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
)

// Node is the node that a machine becomes in Kubernetes.
type Node struct {
	API     *API
	Server  *graph.Ref[APIServerState]
	Machine *graph.Ref[ec2.InstanceState]
	// Ready says to wait until pods can run on it, which takes a pod network;
	// else it is enough that it has joined.
	Ready bool
	// External says that the AWS cloud controller manager has to tell the node
	// which machine it is, before anything can run there.
	External bool
	// Parts says to wait for the control plane's parts on it, too: etcd, the API
	// server, the controller manager and the scheduler.
	Parts bool
	// Labels are those that the node is to have, whatever others it has.
	Labels map[string]string
}

// NodeState is a node that has joined.
type NodeState struct {
	Name, ProviderID, Version string // "aws:///us-east-1a/i-0123", "v1.34.2"
	IP                        string // the internal one
	Ready                     bool
	Message                   string // why it is not ready
	Uninitialized             bool   // has the taint that a cloud controller manager removes
	Cordoned                  bool
	Missing                   string    // parts of the control plane that are not ready, if asked for
	Unreachable               bool      // its kubelet is not heard of
	Retired                   string    // the machine, once we have begun to take the node away
	WasCordoned               bool      // before that, by somebody else
	Draining, Drained         time.Time // since when; zero: not
	Group                     string    // node group of EKS; "" for none
	Labels                    map[string]string
}

// CloudID implements graph.State.
func (s NodeState) CloudID() string { return s.Name }

var (
	_ graph.Desired[NodeState] = (*Node)(nil)
	_ graph.Updater[NodeState] = (*Node)(nil)
	_ graph.Timed              = (*Node)(nil)
	_ graph.TimeLimited        = (*Node)(nil)
)

// Needs implements graph.Desired.
func (n *Node) Needs() []graph.Edge { return append(graph.On(n.Server), graph.On(n.Machine)...) }

// Takes implements graph.Timed.
func (n *Node) Takes() (create, remove time.Duration) { return nodeTakes, 0 }

// Find implements graph.Desired.
func (n *Node) Find(ctx context.Context, c *cloud.Clients) (*NodeState, error) {
	m, ok := n.Machine.Found()
	if !ok || !answers(n.Server) {
		return nil, nil // nothing can have joined
	}
	all, err := Nodes(ctx, c, n.API)
	if err != nil {
		return nil, err
	}
	have := all.Of(m)
	if have == nil || !n.Parts {
		return have, nil
	}
	with := *have
	with.Missing, err = missingParts(ctx, c, n.API, have.Name)
	return &with, err
}

// Diff implements graph.Desired. What can be mended comes before what is
// waited for: a pod network may run on nodes of a label only.
func (n *Node) Diff(have *NodeState) (d graph.Diff) {
	if d = n.open(have); len(d) > 0 && have.Name != "" {
		return d
	}
	return append(n.awaited(have), d...)
}

// open lists what we have to change: a node that was to go and stays after all
// is used again, and labels that are missing are added.
func (n *Node) open(have *NodeState) (d graph.Diff) {
	if have.Retired != "" {
		d.Set("unschedulable", have.Cordoned, have.Cordoned && have.WasCordoned)
		d.Set("annotation "+retiredMark, have.Retired, "")
	}
	for _, k := range slices.Sorted(maps.Keys(n.Labels)) {
		d.Set("label", have.label(k), k+"="+n.Labels[k])
	}
	return d
}

// label is a label as kubectl writes it; "" for none.
func (s *NodeState) label(key string) string {
	if v, ok := s.Labels[key]; ok {
		return key + "=" + v
	}
	return ""
}

// awaited lists what comes by itself.
func (n *Node) awaited(have *NodeState) (d graph.Diff) {
	if n.External && n.Ready {
		d.Await("providerID", have.provider(), "set by the cloud controller manager")
	}
	if n.Ready {
		d.Await("state", have.state(), ready)
	}
	if n.Parts {
		d.Await("parts not ready", have.Missing, "")
	}
	if len(d) == 0 && have.Name == "" {
		d.Await("state", "", "joined")
	}
	return d
}

// Update implements graph.Updater: all in one request, so that nothing of our
// marks is left on a node that is used again.
func (n *Node) Update(ctx context.Context, c *cloud.Clients, have *NodeState, _ graph.Diff) (*NodeState, error) {
	k, err := n.API.Client(c)
	if err != nil {
		return nil, err
	}
	after, meta := *have, map[string]any{}
	change := map[string]any{"metadata": meta}
	if have.Retired != "" {
		meta["annotations"] = map[string]any{retiredMark: nil, drainingMark: nil, drainedMark: nil, cordonedMark: nil}
		if !have.WasCordoned {
			change["spec"], after.Cordoned = map[string]any{"unschedulable": nil}, false
		}
		after.Retired, after.WasCordoned, after.Draining, after.Drained = "", false, time.Time{}, time.Time{}
	}
	if len(n.Labels) > 0 { // a null would take all of them away
		meta["labels"], after.Labels = n.Labels, map[string]string{}
		maps.Copy(after.Labels, have.Labels)
		maps.Copy(after.Labels, n.Labels)
	}
	if err = k.Merge(ctx, nodePath(have.Name), change); apierrors.IsNotFound(err) {
		return nil, graph.NotYet(errors.New("it to come again"))
	}
	return &after, patiently(ctx, err)
}

func (s *NodeState) provider() string {
	if s.ProviderID != "" && !s.Uninitialized {
		return "set by the cloud controller manager"
	}
	return "not set"
}

func (s *NodeState) state() string {
	switch {
	case s.Ready:
		return ready
	case s.Name == "":
		return ""
	case s.Message != "":
		return "not ready: " + s.Message
	}
	return "not ready"
}

// missingParts names the parts of the control plane that are not ready on a
// node. They are static pods, which the kubelet shows as pods of these names.
func missingParts(ctx context.Context, c *cloud.Clients, api *API, node string) (string, error) {
	running, err := cloud.Remember(ctx, c, "parts of the control plane", func(ctx context.Context) (map[string]bool, error) {
		k, err := api.Client(c)
		if err != nil || k == nil {
			return nil, err
		}
		var all struct {
			Items []struct {
				Metadata struct{ Name string }
				Status   struct {
					Conditions []struct{ Type, Status string }
				}
			}
		}
		if err := k.Get(ctx, "/api/v1/namespaces/kube-system/pods?labelSelector=tier=control-plane", &all); err != nil {
			return nil, patiently(ctx, err)
		}
		running := map[string]bool{}
		for _, p := range all.Items {
			for _, x := range p.Status.Conditions {
				running[p.Metadata.Name] = running[p.Metadata.Name] || x.Type == "Ready" && x.Status == "True"
			}
		}
		return running, nil
	})
	var missing []string
	for _, part := range []string{"kube-apiserver", "kube-controller-manager", "kube-scheduler"} {
		if !running[part+"-"+node] {
			missing = append(missing, part)
		}
	}
	return strings.Join(missing, ", "), err
}

// Roster is the listing of a cluster's nodes, by what they are asked for.
type Roster struct {
	list                     []*NodeState
	byInstance, byName, ByIP map[string]*NodeState
}

// Of returns the node that a machine has become; nil for none. A node tells
// which machine it is by its provider ID, and before it has one by its name and
// address.
func (r *Roster) Of(m ec2.InstanceState) *NodeState {
	if s := r.byInstance[m.ID]; s != nil {
		return s
	}
	for _, s := range []*NodeState{r.byName[m.PrivateDNS], r.ByIP[m.PrivateIP]} {
		if s != nil && s.ProviderID == "" {
			return s
		}
	}
	return nil
}

// Nodes lists the nodes of the cluster.
func Nodes(ctx context.Context, c *cloud.Clients, api *API) (*Roster, error) {
	return cloud.Remember(ctx, c, "nodes", func(ctx context.Context) (*Roster, error) {
		r := &Roster{byInstance: map[string]*NodeState{}, byName: map[string]*NodeState{}, ByIP: map[string]*NodeState{}}
		k, err := api.Client(c)
		if err != nil || k == nil {
			return r, err
		}
		for next := ""; ; {
			var page nodeList
			if err := k.Get(ctx, "/api/v1/nodes?limit=500&continue="+next, &page); err != nil {
				return r, patiently(ctx, err)
			}
			for i := range page.Items {
				r.add(page.Items[i].state())
			}
			if next = page.Metadata.Continue; next == "" {
				return r, nil
			}
		}
	})
}

func (r *Roster) add(s *NodeState) {
	r.list = append(r.list, s)
	r.byName[s.Name], r.ByIP[s.IP] = s, s
	if at := strings.LastIndexByte(s.ProviderID, '/'); at >= 0 {
		r.byInstance[s.ProviderID[at+1:]] = s
	} else if s.Retired != "" {
		r.byInstance[s.Retired] = s
	}
}

// nodeList is what matters here of a NodeList.
type nodeList struct {
	Metadata struct{ Continue string }
	Items    []nodeObject
}

type nodeObject struct {
	Metadata struct {
		Name                string
		Labels, Annotations map[string]string
	}
	Spec struct {
		ProviderID    string
		Unschedulable bool
		Taints        []struct{ Key string }
	}
	Status struct {
		Addresses  []struct{ Type, Address string }
		Conditions []struct{ Type, Status, Message string }
		NodeInfo   struct{ KubeletVersion string }
	}
}

func (o *nodeObject) state() *NodeState {
	s := &NodeState{
		Name: o.Metadata.Name, ProviderID: o.Spec.ProviderID, Version: o.Status.NodeInfo.KubeletVersion, Cordoned: o.Spec.Unschedulable,
		Group: o.Metadata.Labels["eks.amazonaws.com/nodegroup"], Retired: o.Metadata.Annotations[retiredMark],
		WasCordoned: o.Metadata.Annotations[cordonedMark] != "", Labels: o.Metadata.Labels,
	}
	s.Draining, _ = time.Parse(time.RFC3339, o.Metadata.Annotations[drainingMark])
	s.Drained, _ = time.Parse(time.RFC3339, o.Metadata.Annotations[drainedMark])
	for _, a := range o.Status.Addresses {
		if a.Type == "InternalIP" && s.IP == "" {
			s.IP = a.Address
		}
	}
	for _, x := range o.Status.Conditions {
		if x.Type == "Ready" {
			s.Ready, s.Message, s.Unreachable = x.Status == "True", x.Message, x.Status == "Unknown"
		}
	}
	for _, t := range o.Spec.Taints {
		s.Uninitialized = s.Uninitialized || t.Key == "node.cloudprovider.kubernetes.io/uninitialized"
	}
	return s
}

// TimeLimit implements graph.TimeLimited.
func (n *Node) TimeLimit() time.Duration {
	if m, ok := n.Machine.Found(); ok && strings.Contains(m.Type, ".metal") {
		return metalPatience
	}
	return nodePatience
}

// patience of a node, from when its machine runs and the API server answers.
// Machines without a hypervisor take many minutes before they boot.
const (
	nodePatience  = 10 * time.Minute
	metalPatience = 30 * time.Minute
)

// nodeTakes is how long a Node usually takes to join, from when its machine runs.
const nodeTakes = 60 * time.Second
