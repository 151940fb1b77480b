package incluster

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/ec2"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
	"github.com/clusterawsadm/clusterawsadm/internal/kube"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// Node is the Node of a machine.
type Node struct {
	API     *API
	Server  *graph.Ref[APIServerState]
	Machine *graph.Ref[ec2.InstanceState]
	// Ready waits until pods can run on it, which takes a pod network; otherwise it is
	// enough that it has joined.
	Ready bool
	// External waits until the AWS cloud controller manager has set the Node's provider
	// ID.
	External bool
	// Parts waits also for the components of the control plane on it: the API server, the
	// controller manager, the scheduler, and etcd if it runs there.
	Parts bool
	// Replaceable says that the run may replace the machine if kubeadm join fails on it.
	Replaceable bool
	// Labels are labels that the Node has to have.
	Labels map[string]string
}

// NodeState is a Node that has joined.
type NodeState struct {
	Name, ProviderID, Version string // "aws:///us-east-1a/i-0123", "v1.34.2"
	IP                        string // internal IP address
	Ready                     bool
	Message                   string // why it is not ready
	Uninitialized             bool   // no cloud controller manager has initialized it
	Cordoned                  bool
	Missing                   string    // components of the control plane that are not ready, if Parts is set
	Unreachable               bool      // its kubelet does not report any more
	Retired                   string    // ID of the machine, once a drain has begun
	WasCordoned               bool      // before the drain, by somebody else
	Draining, Drained         time.Time // since when; zero: not drained
	Group                     string    // EKS node group; "" for none
	Labels                    map[string]string
	Hooks                     map[string]string // annotations of Hooks
	Created                   time.Time
	Conditions                []corev1.NodeCondition
}

// Roles are the roles of the Node, as kubectl shows them: "control-plane".
func (s NodeState) Roles() (roles []string) {
	for _, label := range slices.Sorted(maps.Keys(s.Labels)) {
		if role, is := strings.CutPrefix(label, "node-role.kubernetes.io/"); is && role != "" {
			roles = append(roles, role)
		}
	}
	return roles
}

// Instance is the ID of the EC2 instance in the provider ID; "" if it has none.
func (s NodeState) Instance() string {
	return cloud.LastPart(s.ProviderID)
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
		return nil, nil // without its machine it cannot have joined
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

// Diff implements graph.Desired. Differences that Update closes come before those that
// the run waits for: a pod network may run only on Nodes with a label.
func (n *Node) Diff(have *NodeState) (d plan.Diff) {
	if d = n.updates(have); len(d) > 0 && have.Name != "" {
		return d
	}
	return append(n.awaited(have), d...)
}

// updates lists the differences that Update closes: a Node whose drain was cancelled is
// uncordoned, and missing labels are added.
func (n *Node) updates(have *NodeState) (d plan.Diff) {
	if have.Retired != "" {
		d.Set("unschedulable", have.Cordoned, have.Cordoned && have.WasCordoned)
		d.Set("annotation "+retiredAnnotation, have.Retired, "")
	}
	for _, name := range slices.Sorted(maps.Keys(have.Hooks)) {
		d.Set("annotation "+name, have.Hooks[name], "")
	}
	for _, k := range slices.Sorted(maps.Keys(n.Labels)) {
		d.Set("label", have.label(k), k+"="+n.Labels[k])
	}
	return d
}

// label returns a label in kubectl's notation; "" for none.
func (s *NodeState) label(key string) string {
	if v, ok := s.Labels[key]; ok {
		return key + "=" + v
	}
	return ""
}

// awaited lists the differences that the run waits for.
func (n *Node) awaited(have *NodeState) (d plan.Diff) {
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

// Update implements graph.Updater. It makes one request, so that no annotation is
// left on a Node that is used again.
func (n *Node) Update(ctx context.Context, c *cloud.Clients, have *NodeState, _ plan.Diff) (*NodeState, error) {
	k, err := n.API.Client(c)
	if err != nil {
		return nil, err
	}
	after, meta, annotations := *have, map[string]any{}, map[string]any{}
	change := map[string]any{"metadata": meta}
	for name := range have.Hooks {
		annotations[name] = nil
	}
	after.Hooks = nil
	if have.Retired != "" {
		maps.Copy(annotations, map[string]any{retiredAnnotation: nil, drainingAnnotation: nil, drainedAnnotation: nil, cordonedAnnotation: nil})
		if !have.WasCordoned {
			change["spec"], after.Cordoned = map[string]any{"unschedulable": nil}, false
		}
		after.Retired, after.WasCordoned, after.Draining, after.Drained = "", false, time.Time{}, time.Time{}
	}
	if len(annotations) > 0 {
		meta["annotations"] = annotations
	}
	if len(n.Labels) > 0 { // null would remove all labels
		meta["labels"], after.Labels = n.Labels, map[string]string{}
		maps.Copy(after.Labels, have.Labels)
		maps.Copy(after.Labels, n.Labels)
	}
	if err = k.Merge(ctx, nodePath(have.Name), change); apierrors.IsNotFound(err) {
		return nil, graph.NotYet(errors.New("it to be registered again"))
	}
	return &after, retryUnavailable(ctx, err)
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

// missingParts lists the components of the control plane that are not ready on a Node.
// They are static pods, for which the API server has mirror pods with these names.
func missingParts(ctx context.Context, c *cloud.Clients, api *API, node string) (string, error) {
	ready, err := cloud.Remember(ctx, c, "parts of the control plane", func(ctx context.Context) (map[string]bool, error) {
		k, err := api.Client(c)
		if err != nil || k == nil {
			return nil, err
		}
		var list corev1.PodList
		if err := k.Get(ctx, podsPath+"?labelSelector=tier=control-plane", &list); err != nil {
			return nil, retryUnavailable(ctx, err)
		}
		ready := map[string]bool{}
		for i := range list.Items {
			ready[list.Items[i].Name] = isReady(&list.Items[i])
		}
		return ready, nil
	})
	var missing []string
	for _, part := range []string{"kube-apiserver", "kube-controller-manager", "kube-scheduler"} {
		if !ready[part+"-"+node] {
			missing = append(missing, part)
		}
	}
	if is, exists := ready["etcd-"+node]; exists && !is { // it may run elsewhere
		missing = append(missing, "etcd")
	}
	return strings.Join(missing, ", "), err
}

// isReady reports whether a pod has the condition Ready.
func isReady(p *corev1.Pod) bool {
	return slices.ContainsFunc(p.Status.Conditions, func(x corev1.PodCondition) bool {
		return x.Type == corev1.PodReady && x.Status == corev1.ConditionTrue
	})
}

// NodeList is the list of a cluster's Nodes, and indexes of it.
type NodeList struct {
	list               []*NodeState
	byInstance, byName map[string]*NodeState
	byIP               map[netip.Addr]*NodeState
}

// Of returns the Node of a machine; nil for none. A Node names its machine in its
// provider ID. Before it has one, it is found by its name or address.
func (l *NodeList) Of(m ec2.InstanceState) *NodeState {
	if s := l.byInstance[m.ID]; s != nil {
		return s
	}
	for _, s := range []*NodeState{l.byName[m.PrivateDNS], l.At(m)} {
		if s != nil && s.ProviderID == "" {
			return s
		}
	}
	return nil
}

// At returns the Node that has an address of a machine, which may be IPv6; nil for none.
func (l *NodeList) At(m ec2.InstanceState) *NodeState {
	for _, a := range m.Addresses() {
		if s := l.byIP[a]; s != nil {
			return s
		}
	}
	return nil
}

// On returns the Node whose provider ID names an instance; nil for none.
func (l *NodeList) On(instance string) *NodeState { return l.byInstance[instance] }

// First returns when the oldest Node was created; zero if there is none.
func (l *NodeList) First() (first time.Time) {
	for _, s := range l.list {
		if first.IsZero() || s.Created.Before(first) {
			first = s.Created
		}
	}
	return first
}

// Nodes lists the Nodes of the cluster.
func Nodes(ctx context.Context, c *cloud.Clients, api *API) (*NodeList, error) {
	return cloud.Remember(ctx, c, "nodes", func(ctx context.Context) (*NodeList, error) {
		k, err := api.Client(c)
		if err != nil || k == nil {
			return newNodeList(), err
		}
		l, err := ListNodes(ctx, k)
		return l, retryUnavailable(ctx, err)
	})
}

// ListNodes lists the Nodes that an API server has.
func ListNodes(ctx context.Context, k *kube.Client) (*NodeList, error) {
	l := newNodeList()
	return l, eachNode(ctx, k, func(o *corev1.Node) { l.add(nodeState(o)) })
}

// eachNode calls a function with each Node that an API server has.
func eachNode(ctx context.Context, k *kube.Client, f func(*corev1.Node)) error {
	for next := ""; ; {
		var page corev1.NodeList
		if err := k.Get(ctx, "/api/v1/nodes?limit=500&continue="+next, &page); err != nil {
			return err
		}
		for i := range page.Items {
			f(&page.Items[i])
		}
		if next = page.Continue; next == "" {
			return nil
		}
	}
}

func newNodeList() *NodeList {
	return &NodeList{byInstance: map[string]*NodeState{}, byName: map[string]*NodeState{}, byIP: map[netip.Addr]*NodeState{}}
}

// All are the Nodes, in the order of the API server.
func (l *NodeList) All() []*NodeState { return l.list }

func (l *NodeList) add(s *NodeState) {
	l.list = append(l.list, s)
	l.byName[s.Name] = s
	if a, err := netip.ParseAddr(s.IP); err == nil {
		l.byIP[a] = s
	}
	if id := cmp.Or(s.Instance(), s.Retired); id != "" {
		l.byInstance[id] = s
	}
}

// nodeState converts a Node of the API.
func nodeState(o *corev1.Node) *NodeState {
	s := &NodeState{
		Name: o.Name, ProviderID: o.Spec.ProviderID, Version: o.Status.NodeInfo.KubeletVersion, Cordoned: o.Spec.Unschedulable,
		Group: o.Labels["eks.amazonaws.com/nodegroup"], Retired: o.Annotations[retiredAnnotation],
		WasCordoned: o.Annotations[cordonedAnnotation] != "", Labels: o.Labels,
		Created: o.CreationTimestamp.Time, Conditions: o.Status.Conditions,
	}
	s.Hooks = hooksOf(o.Annotations)
	s.Draining, _ = time.Parse(time.RFC3339, o.Annotations[drainingAnnotation])
	s.Drained, _ = time.Parse(time.RFC3339, o.Annotations[drainedAnnotation])
	for _, a := range o.Status.Addresses {
		if a.Type == corev1.NodeInternalIP && s.IP == "" {
			s.IP = a.Address
		}
	}
	for _, x := range o.Status.Conditions {
		if x.Type == corev1.NodeReady {
			s.Ready, s.Message, s.Unreachable = x.Status == corev1.ConditionTrue, x.Message, x.Status == corev1.ConditionUnknown
		}
	}
	s.Uninitialized = slices.ContainsFunc(o.Spec.Taints, func(t corev1.Taint) bool { return t.Key == cloudproviderTaint })
	return s
}

// cloudproviderTaint is the taint that a cloud controller manager removes when it
// has initialized a Node (k8s.io/cloud-provider/api).
const cloudproviderTaint = "node.cloudprovider.kubernetes.io/uninitialized"

// TimeLimit implements graph.TimeLimited.
func (n *Node) TimeLimit() time.Duration {
	if m, ok := n.Machine.Found(); ok && strings.Contains(m.Type, ".metal") {
		return metalPatience
	}
	return nodePatience
}

// The time limits of a Node, from when its machine runs and the API server responds.
// Bare-metal instances take many minutes to boot.
const (
	nodePatience  = 10 * time.Minute
	metalPatience = 30 * time.Minute
)

// nodeTakes is how long a Node usually takes to join, from when its machine runs.
const nodeTakes = 60 * time.Second
