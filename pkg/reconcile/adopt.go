package reconcile

import (
	"context"
	"io/fs"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/adopt"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// Objects returns the Cluster API objects with which a management cluster takes the cluster
// over. The cluster has to be complete: a machine that is missing is a RefusedError.
func (c *Cluster) Objects(ctx context.Context) (cluster.Objects, error) {
	return adopt.Objects(ctx, c.run)
}

// Handover gives the cluster to a management cluster: it creates the Cluster API objects
// there, records who manages the cluster from now on, and lets the controllers work. It
// changes nothing in AWS but that record, with which Apply and Delete refuse to work on the
// cluster. It can be stopped at any time, and run again.
//
// If the cluster is not as the manifest says, the error is a RefusedError: controllers would
// change it.
func (c *Cluster) Handover(ctx context.Context, o cluster.HandoverOptions) error {
	return adopt.Handover(ctx, c.run, o)
}

// CheckHandover returns a RefusedError for clusters with pools that CAPA 2.13.0 cannot manage.
func (c *Cluster) CheckHandover() error { return adopt.CheckHandover(c.run) }

// PlanTakeback returns the steps of Takeback that do more than to record what exists: another
// bootstrap token, and another version of a launch template with which machines that a pool
// adds can join. No machine is replaced. It changes nothing. If Takeback would be refused, the
// error is a RefusedError.
//
// Cluster API stores a bootstrap token in the launch template of a pool. The token is valid for 15
// minutes. While the controllers run, they replace it before it expires.
func (c *Cluster) PlanTakeback(ctx context.Context, from plan.Manager) ([]plan.Step, error) {
	return adopt.PlanTakeback(ctx, c.run, from)
}

// Takeback takes the cluster back from a management cluster, whose controllers must not work
// on it any more. It gives resources the tags by which runs find them, and records that runs
// manage the cluster again. It stores the keys of a self-managed cluster, which are in
// Secrets: the manifest has to contain them. It also carries out the announced steps, which
// PlanTakeback has returned. If the cluster differs from the manifest in anything else, the
// error is a RefusedError.
func (c *Cluster) Takeback(ctx context.Context, from plan.Manager, announced []plan.Step) (cluster.Result, error) {
	return adopt.Takeback(ctx, c.run, from, announced)
}

// Forget takes the cluster back from a management cluster that does not exist any more: it
// removes the record that it manages the cluster, and changes nothing else. It returns the
// management cluster; nil if none manages the cluster. If confirm returns false, the error is
// ErrDeclined, and nothing is changed. If the controllers there do run, they work against
// all later runs.
func (c *Cluster) Forget(ctx context.Context, confirm func(plan.Manager) (bool, error)) (*plan.Manager, error) {
	return adopt.Forget(ctx, c.run, confirm)
}

// ManifestOf returns the manifest of a cluster, as YAML, from all of its objects in a
// management cluster: without those that controllers make, and without what controllers
// write into the others. It contains no keys of the cluster.
func ManifestOf(objects []map[string]any) ([]byte, error) { return adopt.ManifestOf(objects) }

// Imported is the manifest of a cluster that exists in AWS.
type Imported struct {
	cluster.Imported
	from *adopt.Imported
}

// Import makes a manifest of a cluster in the region of the target's Config. An EKS cluster may
// be that of any tool; its name is that of the EKS cluster or of its Cluster object. A
// self-managed cluster is one that runs or Cluster API have made. It changes nothing. If there
// is no such cluster, the error is ErrNotFound.
func Import(ctx context.Context, name string, t cluster.Target, o cluster.ImportOptions) (*Imported, error) {
	i, err := adopt.Import(ctx, name, t, o)
	if err != nil {
		return nil, err
	}
	return &Imported{i.Imported, i}, nil
}

// EKSClusters lists the names of all EKS clusters in the region of the target's Config, sorted, whoever has made them. Import
// takes each of them.
func EKSClusters(ctx context.Context, t cluster.Target) ([]string, error) {
	return adopt.EKSClusters(ctx, t)
}

// Cluster prepares work on the cluster with the manifest.
func (i *Imported) Cluster() *Cluster { return open(i.from.Cluster, nil) }

// Adopt sets the tags by which runs find the resources of the cluster, and which say that
// they delete them with it. It changes nothing else. If a run with the manifest would change
// more, the error is a RefusedError.
func (i *Imported) Adopt(ctx context.Context, o cluster.Options) (cluster.Result, error) {
	return i.from.Adopt(ctx, o)
}

// KeyFiles reads the keys of a cluster for ImportOptions.Keys from a copy of /etc/kubernetes/pki.
func KeyFiles(pki fs.FS) (map[string][]byte, error) { return adopt.KeyFiles(pki) }
