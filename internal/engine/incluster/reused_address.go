package incluster

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/ec2"
)

// AWS gives the address of a lost machine to another one, which then has the name of its Node and of its
// member of etcd. Its kubelet does not change the provider ID of a Node that it finds.

// inherited returns the Node that has the name of a machine and the provider ID of another one; nil for none.
func (l *NodeList) inherited(m ec2.InstanceState) *NodeState {
	s := l.byName[m.PrivateDNS]
	if l.Of(m) != nil || s == nil || s.Instance() == m.ID || !strings.HasPrefix(s.Instance(), "i-") {
		return nil
	}
	return s
}

// FindReusedAddresses returns those of the machines that have the Node of a machine that does not exist
// any more, by ID, and says so. Such a Node never becomes theirs: a kubelet registers its Node only when it
// starts.
func FindReusedAddresses(ctx context.Context, c *cloud.Clients, nodes *NodeList, machines []ec2.InstanceState) (map[string]string, error) {
	var ids []string
	for _, m := range machines {
		if s := nodes.inherited(m); s != nil {
			ids = append(ids, s.Instance())
		}
	}
	if len(ids) == 0 {
		return nil, nil
	}
	existing, err := ec2.InstanceTags(ctx, c, ids)
	if err != nil {
		return nil, err
	}
	why := map[string]string{}
	for _, m := range machines {
		s := nodes.inherited(m)
		if s == nil {
			continue
		}
		if _, exists := existing[s.Instance()]; !exists {
			why[m.ID] = fmt.Sprintf("it has the address of %s, which does not exist any more, and so the Node %s of that", s.Instance(), s.Name)
		}
	}
	return why, nil
}

// holder returns the machine, other than a worker or bastion, that has the name or the address of a member; nil for none.
func (t *etcdctl) holder(m etcdMember) *ec2.InstanceState {
	for _, i := range t.machines.List {
		if !withoutEtcd(i) && !i.IsTerminating() && m.on(*i, t.nodes.Of(*i)) {
			return i
		}
	}
	return nil
}

// stranger returns the worker or bastion that has the name or the address of a member; nil for none.
func (t *etcdctl) stranger(m etcdMember) *ec2.InstanceState {
	for _, all := range []map[string]*ec2.InstanceState{t.machines.ByID, t.machines.OfGroups} {
		for _, i := range all {
			if withoutEtcd(i) && !i.IsTerminating() && m.on(*i, nil) {
				return i
			}
		}
	}
	return nil
}

// withoutEtcd reports whether a machine is a worker or a bastion.
func withoutEtcd(i *ec2.InstanceState) bool {
	role := i.Tags[cloud.RoleTag]
	return role == "node" || role == "bastion" || i.Tags[ec2.GroupTag] != ""
}

// reused returns the reason if a member belongs to a lost machine, and another machine now has its address. The
// provider ID of the Node shows it. If the Node is gone, the machine has not joined, and the member is lost if
// its etcd does not answer.
func (t *etcdctl) reused(ctx context.Context, m etcdMember, by *ec2.InstanceState) (why string, err error) {
	if m.Name == "" || t.nodes.Of(*by) != nil {
		return "", nil
	}
	if s := t.nodes.byName[m.Name]; s != nil {
		why, err = t.lostWith(ctx, s)
	} else if !t.answers(m) {
		var is bool
		if is, err = t.probe(ctx, m); err == nil && !is {
			why = notThere
		}
	}
	if why != "" {
		why += hasAddress(by)
	}
	return why, err
}

const notThere = "whose machine does not exist any more"

func hasAddress(by *ec2.InstanceState) string { return fmt.Sprintf(" (%s has its address)", by.ID) }

// probe reports whether the etcd of a member answers at its own address. That of a machine which has not
// registered its Node yet has no pod in the API.
func (t *etcdctl) probe(ctx context.Context, m etcdMember) (is bool, err error) {
	if len(m.ClientURLs) == 0 {
		return false, nil
	}
	status := "status-" + m.hex()
	printed, err := t.done(ctx, "probe")
	_, mine := printed[status]
	switch {
	case mine && err == nil:
		return true, nil
	case mine && errors.Is(err, errSilent):
		return false, nil
	case err == nil, errors.Is(err, errSilent), errors.Is(err, errNoPod):
		return false, t.start(ctx, "probe", nil, []command{{status, t.at(m.ClientURLs[0], "endpoint", "status", "-w", "json")}})
	}
	return false, err
}

// errSilent says that etcdctl has had no answer from the member that it asked.
var errSilent = errors.New("no answer")
