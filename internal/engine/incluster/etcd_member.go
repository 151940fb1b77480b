package incluster

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/ec2"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
	"github.com/clusterawsadm/clusterawsadm/internal/kube"
	"github.com/clusterawsadm/clusterawsadm/internal/text"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// EtcdMember is the etcd member on a machine of the control plane that is to be
// terminated. It is removed while the machine still runs: a member whose machine is
// terminated still counts for the quorum.
//
// Members are removed with etcdctl, in pods on another machine of the control plane: the
// client certificates are there, and the run only has to reach the API server.
type EtcdMember struct {
	API          *API
	Machine      ec2.InstanceState
	Leaving      []ec2.InstanceState // machines of the control plane that are to be terminated, including this one
	Certificates string              // folder of etcd's certificates on the machines
	After        []graph.Edge
}

// EtcdMemberState is a machine that may be a member: only etcd knows.
type EtcdMemberState struct{ Machine string }

// CloudID implements graph.State.
func (s EtcdMemberState) CloudID() string { return s.Machine }

var (
	_ graph.Desired[EtcdMemberState] = (*EtcdMember)(nil)
	_ graph.Deleter[EtcdMemberState] = (*EtcdMember)(nil)
)

// Needs implements graph.Desired.
func (e *EtcdMember) Needs() []graph.Edge { return append(e.API.needs(), e.After...) }

// Find implements graph.Desired.
func (e *EtcdMember) Find(ctx context.Context, c *cloud.Clients) (*EtcdMemberState, error) {
	machines, err := ec2.InstanceInventory(ctx, c)
	if err != nil || machines.ByID[e.Machine.ID] == nil {
		return nil, err
	}
	return &EtcdMemberState{e.Machine.ID}, nil
}

// Diff implements graph.Desired: the member is retired, so nothing differs.
func (e *EtcdMember) Diff(*EtcdMemberState) plan.Diff { return nil }

// Delete implements graph.Deleter. Each call is one round. The first pod lists the
// members and the leader; the second removes the member. Both are named after the
// machine, so that the next round finds them, also in another run.
func (e *EtcdMember) Delete(ctx context.Context, c *cloud.Clients, _ *EtcdMemberState) error {
	t, err := e.API.etcdctl(ctx, c, e.Machine.ID, e.Certificates, e.Leaving)
	if err != nil {
		return err
	}
	return e.API.retryUnavailable(ctx, e.round(ctx, t))
}

func (e *EtcdMember) round(ctx context.Context, t *etcdctl) error {
	switch removed, err := t.done(ctx, "remove"); {
	case err != nil && !errors.Is(err, errNoPod):
		return err
	case err == nil && removed != nil:
		return t.clean(ctx)
	}
	if err := t.removedLost(ctx); err != nil {
		return err
	}
	members, leader, err := t.members(ctx)
	if err != nil {
		return err
	}
	if err := t.removeLost(ctx, members); err != nil { // they count for the quorum, and cannot help to keep it
		return err
	}
	node := t.nodes.Of(e.Machine)
	member := slices.IndexFunc(members, func(m etcdMember) bool { return m.on(e.Machine, node) })
	if member < 0 {
		return t.clean(ctx)
	}
	if err := checkQuorum(members, member, t.healthy); err != nil {
		return err
	}
	return e.remove(ctx, t, members, members[member], leader)
}

// remove starts to remove a member. If it is the leader, the leadership is moved first.
func (e *EtcdMember) remove(ctx context.Context, t *etcdctl, members []etcdMember, member etcdMember, leader uint64) error {
	var before []command
	successor := slices.IndexFunc(members, func(m etcdMember) bool { return m.Name == t.pod.Spec.NodeName })
	if leader == member.ID && successor >= 0 && len(member.ClientURLs) > 0 {
		before = []command{{"move-leader", t.at(member.ClientURLs[0], "move-leader", members[successor].hex())}}
	}
	return t.start(ctx, "remove", before, []command{{"remove", t.at(t.local(), "member", "remove", member.hex())}})
}

// etcdMember is a member of etcd, as etcdctl prints it.
type etcdMember struct {
	ID                   uint64
	Name                 string // of its node; "" until it has started
	PeerURLs, ClientURLs []string
	IsLearner            bool
}

func (m etcdMember) hex() string { return strconv.FormatUint(m.ID, 16) }

// on reports whether a member is on a machine.
func (m etcdMember) on(machine ec2.InstanceState, node *NodeState) bool {
	if m.Name != "" {
		return m.Name == machine.PrivateDNS || node != nil && m.Name == node.Name
	}
	return slices.ContainsFunc(m.PeerURLs, func(peer string) bool {
		u, err := url.Parse(peer)
		if err != nil {
			return false
		}
		a, err := netip.ParseAddr(u.Hostname())
		return err == nil && slices.Contains(machine.Addresses(), a)
	})
}

// readMembers parses the output of etcdctl, which may be mixed with log messages.
func readMembers(printed map[string]string) (members []etcdMember, leader uint64, err error) {
	var list struct{ Members []etcdMember }
	var status []struct{ Status struct{ Leader uint64 } }
	for container, into := range map[string]any{"members": &list, "leader": &status} {
		for line := range strings.Lines(printed[container]) {
			if strings.HasPrefix(line, "{\"header") || strings.HasPrefix(line, "[{\"Endpoint") {
				err = errors.Join(err, json.Unmarshal([]byte(line), into))
			}
		}
	}
	if err == nil && (len(list.Members) == 0 || len(status) == 0) {
		err = fmt.Errorf("etcdctl printed %q, %q", printed["members"], printed["leader"])
	}
	if err != nil {
		return nil, 0, fmt.Errorf("members of etcd: %w", err)
	}
	return list.Members, status[0].Status.Leader, nil
}

// checkQuorum returns an error unless etcd keeps its quorum without a member, counting
// the healthy ones. Learners count as voters: they may soon be.
func checkQuorum(members []etcdMember, without int, healthy []corev1.Pod) error {
	if len(members) == 1 {
		return errors.New("it is the last member of etcd: without it all data of the cluster is lost")
	}
	if members[without].IsLearner {
		return nil
	}
	quorum, voters := plan.Quorum(len(members)-1), 0
	var unhealthy []string
	for n, m := range members {
		switch is := slices.ContainsFunc(healthy, func(p corev1.Pod) bool { return p.Spec.NodeName == m.Name }); {
		case n == without:
		case is && !m.IsLearner:
			voters++
		default:
			unhealthy = append(unhealthy, cmp.Or(m.Name, m.hex()))
		}
	}
	if voters < quorum {
		return graph.NotYet(fmt.Errorf("%s of etcd to be healthy, or it loses its quorum: %s is not", text.Count(len(unhealthy), "member"), text.Several(unhealthy)))
	}
	return nil
}

// healthyMembers lists the pods of etcd that are ready, each on its Node.
func healthyMembers(ctx context.Context, k *kube.Client) (out []corev1.Pod, err error) {
	var list corev1.PodList
	err = k.Get(ctx, podsPath+"?labelSelector=component=etcd,tier=control-plane", &list)
	for _, p := range list.Items {
		if isReady(&p) && len(p.Spec.Containers) > 0 {
			out = append(out, p)
		}
	}
	return out, err
}
