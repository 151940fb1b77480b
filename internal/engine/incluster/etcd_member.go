package incluster

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/ec2"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
	"github.com/clusterawsadm/clusterawsadm/internal/kube"
	"github.com/clusterawsadm/clusterawsadm/internal/text"
)

// EtcdMember is the member of etcd on a machine of the control plane that is to
// go. It is removed while the machine still runs: a member that is only gone
// goes on being counted (facts D.9).
//
// etcd is spoken to by its own etcdctl, in pods on another machine of the
// control plane: there the certificates are that it wants to see, and nothing
// has to be reached but the API server.
type EtcdMember struct {
	API          *API
	Machine      ec2.InstanceState
	Leaving      []ec2.InstanceState // machines of the control plane that are to go, this among them
	Certificates string              // folder of etcd's certificates on the machines
	After        []graph.Edge
}

// EtcdMemberState is a machine that may be a member: only etcd itself knows.
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
	there, err := ec2.InstanceInventory(ctx, c)
	if err != nil || there.ByID[e.Machine.ID] == nil {
		return nil, err
	}
	return &EtcdMemberState{e.Machine.ID}, nil
}

// Diff implements graph.Desired: it has to go.
func (e *EtcdMember) Diff(*EtcdMemberState) graph.Diff { return nil }

// Delete implements graph.Deleter: one round. The first pod looks who is a
// member and who leads; the second removes the member. Both are named after the
// machine, so that the next round, of whatever run, finds them.
func (e *EtcdMember) Delete(ctx context.Context, c *cloud.Clients, _ *EtcdMemberState) error {
	t, err := e.API.etcdctl(ctx, c, e.Machine.ID, e.Certificates, e.Leaving)
	if err != nil {
		return err
	}
	return e.API.patiently(ctx, e.round(ctx, t))
}

func (e *EtcdMember) round(ctx context.Context, t *etcdctl) error {
	switch gone, err := t.done(ctx, "remove"); {
	case err != nil && !errors.Is(err, errNotBegun):
		return err
	case err == nil && gone != nil:
		return t.clean(ctx)
	}
	members, leader, err := t.look(ctx)
	if err != nil {
		return err
	}
	own := t.nodes.Of(e.Machine)
	mine := slices.IndexFunc(members, func(m etcdMember) bool { return m.on(e.Machine, own) })
	if mine < 0 {
		return t.clean(ctx)
	}
	if err := mayGo(members, mine, t.healthy); err != nil {
		return err
	}
	return e.remove(ctx, t, members, members[mine], leader)
}

// remove starts to remove a member, which hands on what it leads.
func (e *EtcdMember) remove(ctx context.Context, t *etcdctl, members []etcdMember, mine etcdMember, leader uint64) error {
	var before []command
	heir := slices.IndexFunc(members, func(m etcdMember) bool { return m.Name == t.pod.Spec.NodeName })
	if leader == mine.ID && heir >= 0 && len(mine.ClientURLs) > 0 {
		before = []command{{"move-leader", t.at(mine.ClientURLs[0], "move-leader", members[heir].hex())}}
	}
	return t.start(ctx, "remove", before, []command{{"remove", t.at(localEtcd, "member", "remove", mine.hex())}})
}

// etcdMember is a member of etcd, as etcdctl prints it.
type etcdMember struct {
	ID                   uint64
	Name                 string // of its node; "" until it has started
	PeerURLs, ClientURLs []string
	IsLearner            bool
}

func (m etcdMember) hex() string { return strconv.FormatUint(m.ID, 16) }

// on reports whether a member is that of a machine.
func (m etcdMember) on(machine ec2.InstanceState, node *NodeState) bool {
	if m.Name != "" {
		return m.Name == machine.PrivateDNS || node != nil && m.Name == node.Name
	}
	return slices.ContainsFunc(m.PeerURLs, func(peer string) bool {
		u, err := url.Parse(peer)
		return err == nil && net.ParseIP(u.Hostname()).Equal(net.ParseIP(machine.PrivateIP))
	})
}

// readMembers reads what etcdctl has printed, among whatever it has logged.
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

// mayGo returns an error unless etcd keeps its quorum without a member, as far
// as the others are healthy. Learners count as if they voted: they soon may.
func mayGo(members []etcdMember, mine int, healthy []podObject) error {
	if len(members) == 1 {
		return errors.New("it is the last member of etcd: without it the cluster forgets everything")
	}
	if members[mine].IsLearner {
		return nil
	}
	quorum, well := (len(members)-1)/2+1, 0
	var ill []string
	for n, m := range members {
		switch is := slices.ContainsFunc(healthy, func(p podObject) bool { return p.Spec.NodeName == m.Name }); {
		case n == mine:
		case is && !m.IsLearner:
			well++
		default:
			ill = append(ill, cmp.Or(m.Name, m.hex()))
		}
	}
	if well < quorum {
		return graph.NotYet(fmt.Errorf("%s of etcd to be healthy, or it loses its quorum: %s is not", text.Count(len(ill), "member"), text.Several(ill)))
	}
	return nil
}

// healthyMembers lists the pods of etcd that are ready, each on its node.
func healthyMembers(ctx context.Context, k *kube.Client) (out []podObject, err error) {
	var list struct{ Items []podObject }
	err = k.Get(ctx, "/api/v1/namespaces/kube-system/pods?labelSelector=component=etcd,tier=control-plane", &list)
	for _, p := range list.Items {
		for _, x := range p.Status.Conditions {
			if x.Type == "Ready" && x.Status == "True" && len(p.Spec.Containers) > 0 {
				out = append(out, p)
			}
		}
	}
	return out, err
}
