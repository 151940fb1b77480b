package incluster

import (
	"context"
	"errors"
	"slices"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/ec2"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
)

// EtcdMembers are the etcd members: each has to have a machine before more machines join.
// The member of a machine that was lost still counts for the quorum, and a learner
// without a machine prevents others from joining.
type EtcdMembers struct {
	API          *API
	Certificates string // folder of etcd's certificates on the machines
	After        []graph.Edge
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
func (e *EtcdMembers) Diff(have *EtcdMembersState) (d graph.Diff) {
	if !have.Checked {
		d.Set("members", "unknown until etcd is asked", "one for each machine")
	}
	return d
}

// Update implements graph.Updater. Each call is one round, as for EtcdMember.
func (e *EtcdMembers) Update(ctx context.Context, c *cloud.Clients, _ *EtcdMembersState, _ graph.Diff) (*EtcdMembersState, error) {
	t, err := e.API.etcdctl(ctx, c, "lost", e.Certificates, nil)
	if err != nil {
		return nil, err
	}
	if err := e.round(ctx, t); err != nil {
		return nil, e.API.retryUnavailable(ctx, err)
	}
	return &EtcdMembersState{true}, nil
}

func (e *EtcdMembers) round(ctx context.Context, t *etcdctl) error {
	switch removed, err := t.done(ctx, "remove"); {
	case err != nil && !errors.Is(err, errNoPod):
		return err
	case err == nil && removed != nil:
		if err := t.clean(ctx); err != nil {
			return err
		}
		return graph.NotYet(errors.New("the other members to be checked"))
	}
	members, _, err := t.members(ctx)
	if err != nil {
		return err
	}
	lost := slices.IndexFunc(members, func(m etcdMember) bool {
		return !slices.ContainsFunc(t.machines.List, func(i *ec2.InstanceState) bool { return m.on(*i, t.nodes.Of(*i)) })
	})
	if lost < 0 {
		return t.clean(ctx)
	}
	if err := checkQuorum(members, lost, t.healthy); err != nil {
		return err
	}
	return t.start(ctx, "remove", nil, []command{{"remove", t.at(localEtcd, "member", "remove", members[lost].hex())}})
}
