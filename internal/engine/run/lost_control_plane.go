package run

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/ec2"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/eks"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/topology"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// loses reports whether the account shows that the control plane of the cluster is lost. What restores
// or replaces it begins here, and with topology.Options.NewEtcd.
func (l *Looking) loses() bool {
	return l.Cluster.Manifest != nil && !l.Cluster.IsEKS() && l.Inventory.LostControlPlane()
}

// pauseOfLooks is the pause between two looks for the machines of the control plane.
const pauseOfLooks = 5 * time.Second

// awaitControlPlane looks for the machines of the control plane again if the account does not show any
// of a cluster that was begun: AWS may take a minute to show a new machine
// (https://docs.aws.amazon.com/ec2/latest/devguide/eventual-consistency.html).
func (l *Looking) awaitControlPlane(ctx context.Context) error {
	if !l.loses() {
		return nil
	}
	failed, err := ec2.FailedToLaunch(cloud.ReadOnly(ctx), l.Cloud, l.Inventory.InitMachine)
	if err != nil {
		return fmt.Errorf("instance %s: %w", l.Inventory.InitMachine, err)
	}
	if failed {
		l.Inventory.NeverRan = true
		return l.buildFrom(l.topologyOptions(whole))
	}
	l.Warn("no machine of the control plane is visible: looking for them again, for up to %s", cloud.ConsistencyDelay)
	for began := l.Cloud.Clock.Now(); l.loses() && l.Cloud.Clock.Since(began) < cloud.ConsistencyDelay; {
		if err := l.Cloud.Clock.Sleep(ctx, pauseOfLooks); err != nil {
			return err
		}
		if err := l.build(ctx, whole); err != nil {
			return err
		}
	}
	return nil
}

// checkControlPlane returns an error if a run would begin a second cluster, because all machines of
// the control plane are gone. It is permitted by the name of the cluster in Target.NewEtcd.
func (l *Looking) checkControlPlane(ctx context.Context) error {
	allowed := l.Cluster.Target.NewEtcd
	switch {
	case allowed != "" && allowed != l.Cluster.Name:
		return fmt.Errorf("--new-etcd names the cluster %s, and this one is %s", allowed, l.Cluster.Name)
	case !l.loses() || l.Inventory.NeverRan || !l.launchesControlPlane():
		return l.checkNewEtcd()
	}
	ctx = cloud.InSnapshot(cloud.ReadOnly(ctx))
	first := l.Inventory.InitMachine
	tags, err := ec2.InstanceTags(ctx, l.Cloud, []string{first})
	if err != nil {
		return fmt.Errorf("instance %s: %w", first, err)
	}
	if have, exists := tags[first]; exists {
		return l.hiddenMachine(first, have)
	}
	if allowed != "" || l.restores() {
		return nil
	}
	gone, err := l.goneMachines(ctx)
	if err != nil {
		return err
	}
	return &plan.LostControlPlaneError{Cluster: l.Cluster.Name, Marker: l.Cloud.ParameterPath("init"), Machines: gone}
}

// restores reports whether the run begins a restore of etcd, or continues one.
func (l *Looking) restores() bool {
	return l.restore != nil || l.Inventory.Restore != nil && !l.Inventory.Restore.Done
}

// launchesControlPlane reports whether the plan launches machines of the control plane.
func (l *Looking) launchesControlPlane() bool {
	return slices.ContainsFunc(l.Built.Machines, func(m topology.Machine) bool {
		return m.ControlPlane && slices.ContainsFunc(l.Plan.Steps, func(s plan.Step) bool { return s.Resource == m.Instance.ID() && s.Action == plan.Create })
	})
}

// checkNewEtcd returns an error if a new etcd was asked for, but the cluster has one. After a run that
// has begun one, it may be asked for again.
func (l *Looking) checkNewEtcd() error {
	if l.Cluster.Target.NewEtcd == "" || !l.Inventory.EtcdSince.IsZero() {
		return nil
	}
	var ids []string
	for _, m := range l.Inventory.Machines {
		if m.Tags[cloud.RoleTag] == topology.RoleControlPlane {
			ids = append(ids, m.ID)
		}
	}
	if len(ids) == 0 {
		return fmt.Errorf("the cluster has not lost its control plane, because it was not begun yet: run without --new-etcd")
	}
	return fmt.Errorf("the cluster has not lost its control plane (%s): run without --new-etcd", strings.Join(ids, ", "))
}

// warnOfLostObjects warns if the EKS cluster has existed, and the plan creates another one, which is empty: nothing restores its objects.
func (l *Looking) warnOfLostObjects(ctx context.Context) error {
	at := slices.IndexFunc(l.Plan.Steps, func(s plan.Step) bool { return s.Resource.Kind() == eks.ClusterKind && s.Action == plan.Create })
	if at < 0 {
		return nil
	}
	if s := l.Plan.Steps[at]; s.After != "" {
		l.Warn("AWS is deleting the EKS cluster, and with it all its Kubernetes objects: when it is gone, the run creates an empty one")
		return nil
	}
	worked, err := l.lastWorked(ctx)
	if err == nil && !worked.IsZero() {
		l.Warn("a run found the EKS cluster at %s. It does not exist any more, and its Kubernetes objects are lost: the run creates an empty one",
			worked.UTC().Format(time.RFC3339))
	}
	return err
}

// hiddenMachine is the error for the machine of the init marker if it exists, but is not among the
// machines of the cluster.
func (l *Looking) hiddenMachine(id string, tags cloud.Tags) error {
	if tags[l.Cloud.OwnerTag()] == cloud.Owned {
		return fmt.Errorf("the machine %s of the control plane exists, but not in the VPC of the manifest: set spec.network.vpc to the VPC of the cluster", id)
	}
	return fmt.Errorf("the machine %s of the control plane exists, but does not have the tags of the cluster. Restore them:\n"+
		"  %s", id, cloud.TagCommand(id, l.Cloud.OwnerTag(), cloud.Owned, cloud.RoleTag, topology.RoleControlPlane))
}

// goneMachines describes the machines of the control plane that were terminated. AWS shows them for
// about an hour; after that, only the first one is known, from the init marker.
func (l *Looking) goneMachines(ctx context.Context) (out []string, err error) {
	all, err := ec2.TerminatedInstances(ctx, l.Cloud)
	if err != nil {
		return nil, fmt.Errorf("terminated machines of the cluster: %w", err)
	}
	return l.describeGone(all), nil
}

// describeGone describes those of the terminated machines that were of the control plane, and the first
// one also if AWS does not show it any more. Those of an etcd that was lost earlier do not count.
func (l *Looking) describeGone(all []*ec2.InstanceState) (out []string) {
	first := l.Inventory.InitMachine
	named := slices.ContainsFunc(l.Inventory.Machines, func(m ec2.InstanceState) bool { return m.ID == first })
	for _, m := range all {
		if m.Tags[cloud.RoleTag] == topology.RoleControlPlane && m.LaunchedAt.After(l.Inventory.EtcdSince) {
			named = named || m.ID == first
			out = append(out, fmt.Sprintf("%s (%s, %s)", m.ID, cmp.Or(m.Tags.Printable("Name"), "no name"), m.Status))
		}
	}
	if !named && first != "" {
		out = append(out, first+" (AWS does not show it any more)")
	}
	slices.Sort(out)
	return out
}
