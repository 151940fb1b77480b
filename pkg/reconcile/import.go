package reconcile

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
	"github.com/clusterawsadm/clusterawsadm/pkg/input"

	"github.com/clusterawsadm/clusterawsadm/pkg/plan"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/eks"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/discover"
)

// Importer is an import, and what its adoption needs.
type Importer struct {
	cluster.Imported
	cluster *Cluster
	keys    []byte // Secrets with the keys of the cluster, which Adopt stores: never shown
}

// Import makes a manifest of a cluster in the region of the target's Config. An EKS cluster may
// be that of any tool; its name is that of the EKS cluster or of its Cluster object. A
// self-managed cluster is one that runs or Cluster API have made. It changes nothing. If there
// is no such cluster, the error is ErrNotFound.
func Import(ctx context.Context, name string, t cluster.Target, o cluster.ImportOptions) (*Importer, error) {
	i, err := importCluster(cloud.ReadOnly(ctx), name, t, o)
	return i, err
}

func importCluster(ctx context.Context, name string, t cluster.Target, o cluster.ImportOptions) (*Importer, error) {
	c := cloud.New(t.Config, name, clientOptions(t))
	c.Snapshot()
	found, err := discover.FindEKS(cloud.InSnapshot(ctx), c, name)
	switch {
	case err != nil:
		return nil, fmt.Errorf("EKS cluster: %w", err)
	case found == nil:
		return importSelfManaged(ctx, c, t, o)
	}
	return importEKS(ctx, *found, t, o.LoadOptions)
}

func importEKS(ctx context.Context, theCluster eks.ClusterState, t cluster.Target, o input.LoadOptions) (*Importer, error) {
	c := cloud.New(t.Config, discover.ClusterName(theCluster), clientOptions(t))
	c.Snapshot()
	found, err := discover.ReadEKS(cloud.InSnapshot(ctx), c, theCluster)
	if err != nil {
		return nil, err
	}
	i := &Importer{Imported: cluster.Imported{Name: found.Name}}
	if err := i.leaveOutIndescribable(found); err != nil {
		return nil, err
	}
	i.readNodeBootData(ctx, c, found)
	readEKSNodes(ctx, c, found)
	o.EKSEnableIAM = o.EKSEnableIAM || found.OwnsRoles()
	for {
		if i.Manifest, err = discover.YAML(i.head(found), found.Objects()); err != nil {
			return nil, err
		}
		r, err := i.check(ctx, t, o)
		if err != nil {
			return nil, err
		}
		if !slices.ContainsFunc(r.plan.Steps, func(s plan.Step) bool { return i.leavesOut(found, s) }) && !pinImages(found.Workers, r) {
			i.compareTemplates(r)
			if err := i.compareNodeTemplates(ctx, found.Templates); err != nil {
				return nil, err
			}
			if err := i.comparePools(ctx, found.Workers.Pools); err != nil {
				return nil, err
			}
			return i, i.checkComplete(found.Owned)
		}
	}
}

// check loads the manifest and plans it.
func (i *Importer) check(ctx context.Context, t cluster.Target, o input.LoadOptions) (*run, error) {
	sources := []input.Source{{Name: i.Name + ".yaml", Data: i.Manifest}}
	if len(i.keys) > 0 {
		sources = append(sources, input.Source{Name: "keys", Data: i.keys})
	}
	m, err := Load(sources, o) //nolint:contextcheck // it reads what is in memory
	if err != nil {
		return nil, fmt.Errorf("no manifest can describe the cluster: %w", err)
	}
	i.cluster = Open(m, t)
	i.cluster.adopts = true
	r := i.cluster.begin(cluster.Options{})
	if err := r.look(ctx); err != nil {
		return nil, err
	}
	i.Plan, i.Differences = r.plan, nil
	for at, s := range r.plan.Steps {
		if s.Does() && !adopts(s) {
			i.Differences = append(i.Differences, i.Plan.Steps[at])
		}
	}
	return r, nil
}

// leaveOutIndescribable removes the node groups that no manifest can describe. A run deletes
// those of the cluster that are not in its manifest: then the import is refused.
func (i *Importer) leaveOutIndescribable(found *discover.EKS) error {
	var reasons []error
	for _, g := range slices.Clone(found.NodeGroups) {
		switch why := found.Indescribable(g); {
		case why == "":
		case found.Owned:
			reasons = append(reasons, fmt.Errorf("no manifest can be made of node-group/%s: %s", g.Name, why))
		default:
			found.Without(eks.NodeGroupKind, g.Name)
			i.LeftOut = append(i.LeftOut, fmt.Sprintf("node-group/%s: %s", g.Name, why))
		}
	}
	if len(reasons) > 0 {
		return &plan.RefusedError{Reasons: reasons}
	}
	return nil
}

// leavesOut removes the resource of a step from what is found, if a run with the manifest
// would change more of it than its tags, and if it can do without it.
func (i *Importer) leavesOut(found *discover.EKS, s plan.Step) bool {
	kind, name, _ := strings.Cut(string(s.Resource), "/")
	if !s.Does() || adopts(s) || found.Owned || !found.Without(kind, name) {
		return false
	}
	i.LeftOut = append(i.LeftOut, fmt.Sprintf("%s: a run would change it (%s)", s.Resource, fieldsOf(s.Diff)))
	return true
}

// fieldsOf prints the fields that differ, without tags.
func fieldsOf(d plan.Diff) string {
	var out []string
	for _, c := range d {
		if !strings.HasPrefix(c.Field, "tag ") {
			out = append(out, fmt.Sprintf("%s %s → %s", c.Field, cmp.Or(c.Have, "none"), cmp.Or(c.Want, "none")))
		}
	}
	return strings.Join(out, ", ")
}

// checkComplete refuses a manifest of a cluster of Cluster API's with which a run would
// delete something: machines, which AWS does not say enough about.
func (i *Importer) checkComplete(owned bool) error {
	var reasons []error
	for _, s := range i.Differences {
		if s.Action == plan.Remove && owned {
			reasons = append(reasons, fmt.Errorf("no manifest can be made of %s (%s): the configuration that its machines get when they boot is not read", s.Resource, s.CloudID))
		}
	}
	if len(reasons) > 0 {
		return &plan.RefusedError{Reasons: reasons}
	}
	return nil
}

// head is the comment at the beginning of the manifest.
func (i *Importer) head(found *discover.EKS) []string {
	lines := []string{fmt.Sprintf("EKS cluster %s in %s, imported with 'clusterawsadm cluster import'.", found.Cluster.Name, found.Region), ""}
	lines = append(lines, found.Remarks()...)
	if len(i.LeftOut) > 0 {
		lines = append(lines, "", "These parts of the cluster are not in the manifest, and runs leave them as they are:")
		for _, x := range i.LeftOut {
			lines = append(lines, "- "+x)
		}
	}
	return lines
}

// Cluster prepares work on the cluster with the manifest.
func (i *Importer) Cluster() *Cluster { return i.cluster }

// Adopt sets the tags by which runs find the resources of the cluster, and which say that
// they delete them with it. It changes nothing else. If a run with the manifest would change
// more, the error is a RefusedError.
func (i *Importer) Adopt(ctx context.Context, o cluster.Options) (cluster.Result, error) {
	r := i.cluster.begin(o)
	if err := plan.RefusalFor(i.Unknown); err != nil {
		return r.result(err)
	}
	if err := r.lock(ctx, "import"); err != nil {
		return r.result(err)
	}
	defer r.unlock(ctx)
	if m := r.cloud.Lock.Manager(); m != nil {
		return r.result(r.managed(m))
	}
	return r.result(r.adopt(ctx, nil))
}
