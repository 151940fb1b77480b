package look

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	awsec2 "github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/ec2"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/eks"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/runcommand"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/run"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/topology"
	"github.com/clusterawsadm/clusterawsadm/internal/text"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
)

// Exec runs a command on a machine of the cluster with SSM Run Command, and waits for its end.
func Exec(ctx context.Context, c *run.Cluster, node string, command []string, limit time.Duration) (cluster.Execution, error) {
	v := newView(c)
	m, _, err := v.machine(ctx, node)
	if err != nil {
		return cluster.Execution{}, err
	}
	out, err := runcommand.Exec(ctx, v.Cloud, m.ID, command, limit)
	if err != nil {
		err = fmt.Errorf("%s: %w", m.ID, err)
	}
	return out, err
}

// machine finds the machine that a user names, and returns it with all machines of the cluster. It has to run.
func (v *view) machine(ctx context.Context, node string) (ec2.InstanceState, []ec2.InstanceState, error) {
	all, err := v.machines(cloud.InSnapshot(cloud.ReadOnly(ctx)))
	if err != nil {
		return ec2.InstanceState{}, nil, err
	}
	if len(all) == 0 {
		return ec2.InstanceState{}, nil, cluster.ErrNotFound
	}
	switch found := named(all, node); {
	case len(found) == 1 && found[0].Status != string(awsec2.InstanceStateNameRunning):
		return found[0], all, fmt.Errorf("machine %s (%s) does not run: it is %s", node, found[0].ID, found[0].Status)
	case len(found) == 1:
		return found[0], all, nil
	case len(found) > 1:
		return ec2.InstanceState{}, nil, fmt.Errorf("%s is the name of several machines: %s", node, text.Several(idsOf(found)))
	}
	return ec2.InstanceState{}, nil, v.noMachine(node, all)
}

// named returns the machines that have a name.
func named(all []ec2.InstanceState, name string) (found []ec2.InstanceState) {
	for _, m := range all {
		if slices.Contains(namesOf(m), name) {
			found = append(found, m)
		}
	}
	return found
}

// noMachine is the error for a name that no machine of the cluster has.
func (v *view) noMachine(name string, all []ec2.InstanceState) error {
	return fmt.Errorf("cluster %s has no machine %s: it has %s", v.Cluster.Name, name, text.Several(shown(all)))
}

// machines lists all machines of the cluster. Those of EKS node groups and of autoscalers have only the cloud provider tag,
// which contains the name of the cluster in Kubernetes.
func (v *view) machines(ctx context.Context) ([]ec2.InstanceState, error) {
	name := v.Owner.Kubernetes
	if name == "" {
		e, err := eks.Tagged(ctx, v.Cloud)
		if err != nil && !cloud.Denied(err) {
			return nil, err
		}
		if name = v.Cluster.Name; e != nil {
			name = e.Name
		}
	}
	all, err := ec2.MachinesOf(ctx, v.Cloud, name)
	slices.SortFunc(all, func(a, b ec2.InstanceState) int {
		return cmp.Or(cmp.Compare(shownAs(a), shownAs(b)), cmp.Compare(a.ID, b.ID))
	})
	return all, err
}

// namesOf lists the names of a machine: its ID, its ID in the graph with or without kind, the Name tag, the name of its
// Node and its address.
func namesOf(m ec2.InstanceState) []string {
	resource := m.Tags.Printable(cloud.ResourceTag)
	_, short, _ := strings.Cut(resource, "/")
	host, _, _ := strings.Cut(m.PrivateDNS, ".")
	names := []string{m.ID, resource, short, m.Tags.Printable("Name"), m.PrivateDNS, host, m.PrivateIP}
	return slices.DeleteFunc(names, func(name string) bool { return name == "" })
}

// shownAs is the name of a machine in messages.
func shownAs(m ec2.InstanceState) string {
	if _, short, _ := strings.Cut(m.Tags.Printable(cloud.ResourceTag), "/"); short != "" {
		return short
	}
	return cmp.Or(m.Tags.Printable(cloud.ResourceTag), m.PrivateDNS, m.ID)
}

func shown(all []ec2.InstanceState) (names []string) {
	for _, m := range all {
		names = append(names, shownAs(m))
	}
	return names
}

func idsOf(all []ec2.InstanceState) (ids []string) {
	for _, m := range all {
		ids = append(ids, m.ID)
	}
	return ids
}

// StartSession starts a session of Session Manager with a machine of the cluster.
func StartSession(ctx context.Context, c *run.Cluster, node string) (cluster.Session, error) {
	v := newView(c)
	m, _, err := v.machine(ctx, node)
	if err != nil {
		return cluster.Session{}, err
	}
	return runcommand.StartSession(ctx, v.Cloud, m.ID)
}

// ReachOf returns the addresses and the key pair that a connection with SSH to a machine of the cluster needs.
func ReachOf(ctx context.Context, c *run.Cluster, node string) (cluster.Reach, error) {
	v := newView(c)
	m, all, err := v.machine(ctx, node)
	if err != nil {
		return cluster.Reach{}, err
	}
	r := cluster.Reach{Machine: m.ID, Address: m.PrivateIP, Key: m.Key}
	for _, x := range all {
		if x.Tags[cloud.RoleTag] == topology.RoleBastion && x.Status == string(awsec2.InstanceStateNameRunning) && x.ID != m.ID {
			r.Bastion = x.PublicIP
		}
	}
	return r, nil
}
