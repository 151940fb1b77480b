package run

import (
	"context"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/ec2"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/incluster"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/topology"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// checkNodes compares the machines with the Nodes of the cluster. If machines are to be replaced, or a
// member of etcd may have no machine, it plans again: how to reach the API server is known only
// after the first plan.
func (l *Looking) checkNodes(ctx context.Context) error {
	lost, err := l.findLostMembers(ctx)
	if err != nil {
		return err
	}
	unhealthy, err := l.checkHealth(ctx)
	if err != nil || !lost && !unhealthy {
		return err
	}
	if err := l.buildFrom(l.topologyOptions(whole)); err != nil {
		return err
	}
	return l.plan(ctx)
}

// findLostMembers reports whether there are signs that a member of etcd has no machine.
func (l *Looking) findLostMembers(ctx context.Context) (bool, error) {
	if l.Cluster.Manifest == nil || l.Cluster.IsEKS() || l.Built.API == nil || !l.Cluster.Target.Drain || l.Cluster.Target.Wait == plan.Infrastructure {
		return false, nil
	}
	var machines []ec2.InstanceState
	for _, m := range l.Inventory.Machines {
		if m.Tags[cloud.RoleTag] == topology.RoleControlPlane {
			machines = append(machines, m)
		}
	}
	signs, err := incluster.FindLostMembers(cloud.InSnapshot(cloud.ReadOnly(ctx)), l.Cloud, l.Built.API, machines)
	if err != nil {
		l.unanswered = err
		return false, ctx.Err() // checkQuorum says what that means, or the plan
	}
	l.Inventory.LostMembers = signs
	return len(signs) > 0, nil
}

// checkHealth evaluates the MachineHealthChecks of the manifest, looks for machines that have the address of
// a lost one, and reports whether machines are to be replaced.
func (l *Looking) checkHealth(ctx context.Context) (bool, error) {
	switch {
	case l.Cluster.Manifest == nil:
		return false, nil
	case l.Built.API == nil || !l.Cluster.Target.Drain:
		if len(l.Cluster.Manifest.HealthChecks) > 0 {
			l.Warn("MachineHealthChecks are not evaluated: this run does not use the API server")
		}
		return false, nil
	}
	reading := cloud.InSnapshot(cloud.ReadOnly(ctx))
	nodes, err := incluster.Nodes(reading, l.Cloud, l.Built.API)
	if err != nil {
		return false, ctx.Err() // the API server does not answer, which the plan says
	}
	health := topology.CheckHealth(l.Cluster.Manifest, l.Inventory, nodes, l.topologyOptions(whole))
	reused, err := incluster.FindReusedAddresses(reading, l.Cloud, nodes, l.Inventory.Machines)
	if err != nil {
		return false, err
	}
	health.AddReused(l.Cluster.Manifest, l.Inventory, nodes, reused, l.topologyOptions(whole))
	for _, remark := range health.Remarks {
		l.Warn("%s", remark)
	}
	l.Inventory.Unhealthy = health.Unhealthy
	return len(health.Unhealthy) > 0, nil
}
