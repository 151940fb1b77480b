package run

import (
	"context"
	"fmt"
	"slices"

	"filippo.io/age"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/topology"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// leavingControlPlane lists the machines of the control plane that the plan replaces or removes: in
// a rollout, an upgrade, or because there are fewer replicas.
func (l *Looking) leavingControlPlane() (ids []string) {
	for _, m := range l.Inventory.Machines {
		leaves := func(s plan.Step) bool { return s.CloudID == m.ID && s.Action == plan.Remove }
		if m.Tags[cloud.RoleTag] == topology.RoleControlPlane && !m.IsTerminating() && slices.ContainsFunc(l.Plan.Steps, leaves) {
			ids = append(ids, m.ID)
		}
	}
	return ids
}

// prepareBackup checks, before the first write, that the backup of Target.Backup can be stored and
// encrypted. It returns nil if no backup is asked for, or none is needed.
func (p *planning) prepareBackup(ctx context.Context) ([]age.Recipient, error) {
	want := p.Cluster.Target.Backup
	if want == nil {
		return nil, nil
	}
	if len(p.leavingControlPlane()) == 0 {
		if !p.Plan.Empty() {
			p.Warn("no backup is made: the plan replaces no machine of the control plane ('cluster backup' makes one at any time)")
		}
		return nil, nil
	}
	ctx = cloud.ReadOnly(ctx)
	if err := checkNew(ctx, p.Cloud, want.To); err != nil {
		return nil, fmt.Errorf("backup: %w", err)
	}
	recipients, err := recipientsOf(ctx, p.Cloud, want.Keys)
	if err != nil {
		return nil, fmt.Errorf("backup: %w", err)
	}
	return recipients, nil
}

// backUpFirst makes a backup for recipients; none for no backup. If that fails, the run changes nothing.
func (p *planning) backUpFirst(ctx context.Context, recipients []age.Recipient) error {
	if len(recipients) == 0 {
		return nil
	}
	info, err := p.backupFor(ctx, p.Cluster.Target.Backup.To, recipients)
	if err != nil {
		return &plan.RefusedError{Reasons: []error{fmt.Errorf("backup, before the first change: %w", err)}}
	}
	p.Warn("the cluster is backed up in %s: revision %d of etcd", p.Cluster.Target.Backup.To, info.Snapshot.Revision)
	return nil
}
