package incluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/ec2"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
	"github.com/clusterawsadm/clusterawsadm/internal/text"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// EtcdMembers are the etcd members: each has to have a machine before more machines join.
// The member of a machine that was lost still counts for the quorum, and while it is there, etcd
// adds no other one, not even a learner.
type EtcdMembers struct {
	API          *API
	Certificates string // folder of etcd's certificates on the machines
	After        []graph.Edge
	Signs        []string // why members may have no machine

	silent []etcdMember // that have a machine and did not answer in the last round
}

// EtcdMembersState says whether the members have been checked. Only a pod in the
// cluster can do that, so it is not checked before Update.
type EtcdMembersState struct{ Checked bool }

// CloudID implements graph.State.
func (EtcdMembersState) CloudID() string { return "members of etcd" }

var (
	_ graph.Desired[EtcdMembersState] = (*EtcdMembers)(nil)
	_ graph.Updater[EtcdMembersState] = (*EtcdMembers)(nil)
)

// Needs implements graph.Desired.
func (e *EtcdMembers) Needs() []graph.Edge { return append(e.API.needs(), e.After...) }

// Find implements graph.Desired.
func (e *EtcdMembers) Find(context.Context, *cloud.Clients) (*EtcdMembersState, error) {
	return &EtcdMembersState{}, nil
}

// Diff implements graph.Desired.
func (e *EtcdMembers) Diff(have *EtcdMembersState) (d plan.Diff) {
	if have.Checked {
		return d
	}
	known := "unknown until etcd is asked"
	if len(e.Signs) > 0 {
		known = "maybe without a machine: " + strings.Join(e.Signs, "; ")
	}
	d.Set("members", known, "one for each machine")
	return d
}

// Update implements graph.Updater. Each call is one round, as for EtcdMember.
func (e *EtcdMembers) Update(ctx context.Context, c *cloud.Clients, _ *EtcdMembersState, _ plan.Diff) (*EtcdMembersState, error) {
	t, err := e.API.etcdctl(ctx, c, "members", e.Certificates, nil)
	if err != nil {
		return nil, err
	}
	if err := e.round(ctx, t); err != nil {
		return nil, e.API.retryUnavailable(ctx, err)
	}
	return &EtcdMembersState{true}, nil
}

func (e *EtcdMembers) round(ctx context.Context, t *etcdctl) error {
	if err := e.stillSilent(ctx, t); err != nil {
		return err
	}
	if err := t.removedLost(ctx); err != nil {
		return err
	}
	members, _, err := t.members(ctx)
	if err != nil {
		return err
	}
	if err := t.removeLost(ctx, members); err != nil {
		return err
	}
	if err := t.deleteLostNodes(ctx, members); err != nil {
		return err
	}
	if e.silent = t.silent(members); len(e.silent) > 0 {
		return awaitsAnswer(e.silent)
	}
	left, err := leftPods(ctx, t.k, t.machines.List)
	if err != nil {
		return err
	}
	for _, name := range left {
		if err := t.deletePod(ctx, name); err != nil {
			return err
		}
	}
	return nil
}

// silent returns the members that have a machine, but do not answer: etcd adds no other member, and a
// machine that is launched now could not join.
func (t *etcdctl) silent(members []etcdMember) (silent []etcdMember) {
	for _, m := range members {
		if !t.answers(m) {
			silent = append(silent, m)
		}
	}
	return silent
}

func awaitsAnswer(silent []etcdMember) error {
	var names []string
	for _, m := range silent {
		names = append(names, m.title())
	}
	return graph.NotYet(fmt.Errorf("etcd on %s to answer: before that, it adds no member for a machine that joins", text.Several(names)))
}

// stillSilent returns an error while the members that did not answer when they were listed do not answer,
// and have their machines.
func (e *EtcdMembers) stillSilent(ctx context.Context, t *etcdctl) error {
	for _, m := range e.silent {
		if t.holder(m) != nil { // as when it was found silent
			continue
		}
		if why, err := t.lost(ctx, m); why != "" || err != nil {
			return err
		}
	}
	if silent := t.silent(e.silent); len(silent) > 0 {
		return awaitsAnswer(silent)
	}
	return nil
}

// removedLost returns an error if the pod that removes a lost member exists: it has not ended yet, or
// the members have to be listed again.
func (t *etcdctl) removedLost(ctx context.Context) error {
	_, err := t.done(ctx, "lost")
	switch {
	case errors.Is(err, errNoPod):
		return nil
	case err != nil:
		return err
	}
	return graph.NotYet(errors.New("the other members of etcd to be checked"))
}

// removeLost starts to remove a member that has no machine, if there is one, and returns an error
// until there is none. Members that do not answer go first: without them, the others need fewer
// members for their quorum. One that still answers, because its machine is only being terminated, is
// removed while that keeps the quorum.
func (t *etcdctl) removeLost(ctx context.Context, members []etcdMember) (refused error) {
	why := make([]string, len(members))
	for n, m := range members {
		var err error
		if why[n], err = t.lost(ctx, m); err != nil {
			refused = cmp.Or(refused, err)
			why[n] = ""
		}
	}
	for _, answers := range []bool{false, true} {
		for n, m := range members {
			if why[n] == "" || t.answers(m) != answers {
				continue
			}
			if answers {
				if err := checkQuorum(members, n, t.healthy); err != nil {
					refused = cmp.Or(refused, err)
					continue
				}
			}
			return cmp.Or(t.create(ctx, "lost", nil, []command{{"remove", t.at(t.local(), "member", "remove", m.hex())}}),
				graph.NotYet(fmt.Errorf("the member of etcd on %s to be removed, %s", m.title(), why[n])))
		}
	}
	return refused
}

// answers reports whether the etcd of a member is ready.
func (t *etcdctl) answers(m etcdMember) bool {
	return slices.ContainsFunc(t.healthy, func(p corev1.Pod) bool { return p.Spec.NodeName == m.Name })
}

// lost says why a member has no machine; "" if it has one.
func (t *etcdctl) lost(ctx context.Context, m etcdMember) (why string, err error) {
	if i := t.holder(m); i != nil {
		return t.reused(ctx, m, i)
	}
	for _, i := range t.machines.List {
		if !withoutEtcd(i) && m.on(*i, t.nodes.Of(*i)) {
			why = fmt.Sprintf("whose machine %s is %s", i.ID, i.Status)
		}
	}
	if i := t.stranger(m); why == "" && i != nil {
		return notThere + hasAddress(i), nil
	}
	if node := t.nodes.byName[m.Name]; why == "" && node != nil {
		return t.lostWith(ctx, node)
	}
	return cmp.Or(why, notThere), nil
}

// lostWith is lost for the member on a Node that no machine of the cluster has: its machine may exist
// without the tags of the cluster.
func (t *etcdctl) lostWith(ctx context.Context, node *NodeState) (why string, err error) {
	id := node.Instance()
	if id == "" {
		if node.Ready { // for less than a minute after its machine was lost
			return "", graph.NotYet(fmt.Errorf("the Node %s to have a machine, or not to be ready", node.Name))
		}
		return notThere, nil
	}
	existing, err := ec2.InstanceTags(ctx, t.cloud, []string{id})
	if _, exists := existing[id]; exists || err != nil {
		return "", err
	}
	return "whose machine " + id + " does not exist any more", nil
}

// title names a member.
func (m etcdMember) title() string {
	if m.Name != "" {
		return m.Name
	}
	return strings.Join(m.PeerURLs, ", ") + ", which has never started"
}

// deleteLostNodes deletes the Nodes of lost machines of the control plane, which are no members any
// more. A cloud controller manager does the same, if the cluster has one.
func (t *etcdctl) deleteLostNodes(ctx context.Context, members []etcdMember) error {
	lost, err := lostNodes(ctx, t.cloud, t.nodes, t.machines.List, ofControlPlane)
	if err != nil {
		return err
	}
	for _, s := range lost {
		if slices.ContainsFunc(members, func(m etcdMember) bool { return m.Name == s.Name }) {
			continue
		}
		if err := t.k.Delete(ctx, nodePath(s.Name)); err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("node %s: %w", s.Name, err)
		}
	}
	return nil
}

// ofControlPlane reports whether a Node of the control plane does not report any more.
func ofControlPlane(s *NodeState) bool {
	_, is := s.Labels[controlPlaneLabel]
	return is && s.Unreachable
}

// controlPlaneLabel is the key of the label and of the taint of kubeadm's control planes.
const controlPlaneLabel = "node-role.kubernetes.io/control-plane"

// FindLostMembers lists the signs that a member of etcd has no machine, as far as the API server shows
// them: a Node of the control plane without a machine, a machine that was launched after the
// first Node had joined, and has no Node, and a pod of a run that was stopped while it removed a member.
// machines are those of the control plane.
func FindLostMembers(ctx context.Context, c *cloud.Clients, api *API, machines []ec2.InstanceState) (signs []string, err error) {
	nodes, err := Nodes(ctx, c, api)
	if err != nil {
		return nil, err
	}
	present := make([]*ec2.InstanceState, 0, len(machines))
	for i := range machines {
		present = append(present, &machines[i])
	}
	lost, err := lostNodes(ctx, c, nodes, present, ofControlPlane)
	if err != nil {
		return nil, err
	}
	for _, s := range lost {
		signs = append(signs, fmt.Sprintf("that of the Node %s, whose machine %s does not exist any more", s.Name, cmp.Or(s.Instance(), s.IP)))
	}
	for _, m := range machines {
		if first := nodes.First(); nodes.Of(m) == nil && !first.IsZero() && m.LaunchedAt.After(first) {
			signs = append(signs, fmt.Sprintf("%s (%s) has not joined, and etcd adds no member while another one does not answer", m.ID, m.PrivateDNS))
		}
	}
	k, err := api.Client(c)
	if err != nil || k == nil {
		return signs, err
	}
	left, err := leftPods(ctx, k, present)
	for _, name := range left {
		signs = append(signs, fmt.Sprintf("a run was stopped while pod kube-system/%s checked them", name))
	}
	return signs, err
}
