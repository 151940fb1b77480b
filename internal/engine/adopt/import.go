package adopt

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/eks"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/discover"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest/loader"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/run"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
	"github.com/clusterawsadm/clusterawsadm/pkg/input"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// Imported is an import, and what its adoption needs.
type Imported struct {
	cluster.Imported
	Cluster *run.Cluster // with the manifest
	keys    []byte       // Secrets with the keys of the cluster, which Adopt stores: never shown
}

// Import makes a manifest of a cluster in the region of the target's Config. An EKS cluster may
// be that of any tool; its name is that of the EKS cluster or of its Cluster object. A
// self-managed cluster is one that runs or Cluster API have made. It changes nothing. If there
// is no such cluster, the error is ErrNotFound.
func Import(ctx context.Context, name string, t cluster.Target, o cluster.ImportOptions) (*Imported, error) {
	ctx = cloud.ReadOnly(ctx)
	c := cloud.New(t.Config, name, run.ClientOptions(t))
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

func importEKS(ctx context.Context, theCluster eks.ClusterState, t cluster.Target, o input.LoadOptions) (*Imported, error) {
	c := cloud.New(t.Config, discover.ClusterName(theCluster), run.ClientOptions(t))
	c.Snapshot()
	found, err := discover.ReadEKS(cloud.InSnapshot(ctx), c, theCluster)
	if err != nil {
		return nil, err
	}
	i := &Imported{Imported: cluster.Imported{Name: found.Name}}
	if err := i.leaveOutIndescribable(found); err != nil {
		return nil, err
	}
	if err := i.leaveOutNodes(ctx, c, theCluster.Name); err != nil {
		return nil, err
	}
	i.readNodeBootData(ctx, c, found)
	readEKSNodes(ctx, c, found)
	o.EKSEnableIAM = o.EKSEnableIAM || found.OwnsRoles()
	for {
		if i.Manifest, err = discover.YAML(i.head(found), found.Objects()); err != nil {
			return nil, err
		}
		l, err := i.check(ctx, t, o)
		if err != nil {
			return nil, err
		}
		if !slices.ContainsFunc(l.Plan.Steps, func(s plan.Step) bool { return i.leavesOut(found, s) }) && !pinImages(found.Workers, l) {
			i.compareTemplates(l)
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
func (i *Imported) check(ctx context.Context, t cluster.Target, o input.LoadOptions) (*looking, error) {
	sources := []input.Source{{Name: i.Name + ".yaml", Data: i.Manifest}}
	if len(i.keys) > 0 {
		sources = append(sources, input.Source{Name: "keys", Data: i.keys})
	}
	m, err := loader.Load(sources, o) //nolint:contextcheck // it reads what is in memory
	if err != nil {
		return nil, fmt.Errorf("no manifest can describe the cluster: %w", err)
	}
	i.Cluster = run.Open(m, t)
	i.Cluster.Adopts = true
	l := begin(i.Cluster, nil)
	if err := l.Look(ctx); err != nil {
		return nil, err
	}
	i.Plan, i.Differences = l.Plan, nil
	for at, s := range l.Plan.Steps {
		if s.Does() && !adopts(s) {
			i.Differences = append(i.Differences, i.Plan.Steps[at])
		}
	}
	return l, nil
}

// leaveOutIndescribable removes the node groups that no manifest can describe. A run deletes
// those of the cluster that are not in its manifest: then the import is refused.
func (i *Imported) leaveOutIndescribable(found *discover.EKS) error {
	var reasons []error
	for _, g := range slices.Clone(found.NodeGroups) {
		switch why := found.Indescribable(g); {
		case why == "":
		case found.Owns(eks.NodeGroupKind, g.Name):
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

// leaveOutNodes notes the nodes that the manifest does not have: it describes only node groups, and what Cluster API has made.
func (i *Imported) leaveOutNodes(ctx context.Context, c *cloud.Clients, kubernetes string) error {
	lines, err := discover.OtherNodes(cloud.InSnapshot(ctx), c, kubernetes)
	i.LeftOut = append(i.LeftOut, lines...)
	return err
}

// leavesOut removes the resource of a step from what is found, if a run with the manifest
// would change more of it than its tags, and if it can do without it.
func (i *Imported) leavesOut(found *discover.EKS, s plan.Step) bool {
	kind, name, _ := strings.Cut(string(s.Resource), "/")
	if !s.Does() || adopts(s) || found.Owns(kind, name) || !found.Without(kind, name) {
		return false
	}
	i.LeftOut = append(i.LeftOut, fmt.Sprintf("%s: a run would change it (%s)", s.Resource, fieldsOf(s.Diff)))
	return true
}

// fieldsOf prints the fields that differ, without tags.
func fieldsOf(d plan.Diff) string {
	var out []string
	for _, c := range d {
		if !isTag(c) {
			out = append(out, fmt.Sprintf("%s %s → %s", c.Field, cmp.Or(c.Have, "none"), cmp.Or(c.Want, "none")))
		}
	}
	return strings.Join(out, ", ")
}

// checkComplete refuses a manifest of a cluster of Cluster API's with which a run would
// delete something: machines, which AWS does not say enough about.
func (i *Imported) checkComplete(owned bool) error {
	var reasons []error
	for _, s := range i.Differences {
		if s.Action == plan.Remove && owned {
			reasons = append(
				reasons,
				fmt.Errorf("no manifest can be made of %s (%s): the configuration that its machines get when they boot is not read", s.Resource, s.CloudID),
			)
		}
	}
	if len(reasons) > 0 {
		return &plan.RefusedError{Reasons: reasons}
	}
	return nil
}

// head is the comment at the beginning of the manifest.
func (i *Imported) head(found *discover.EKS) []string {
	lines := []string{fmt.Sprintf("EKS cluster %s in %s, imported with 'clusterawsadm cluster import'.", found.Cluster.Name, found.Region), ""}
	return slices.Concat(lines, found.Remarks(), leftOutComment(i.LeftOut))
}

// leftOutComment lists the parts of the cluster that are left out.
func leftOutComment(leftOut []string) (lines []string) {
	if len(leftOut) > 0 {
		lines = []string{"", "These parts of the cluster are not in the manifest, and runs leave them as they are:"}
	}
	for _, x := range leftOut {
		lines = append(lines, "- "+x)
	}
	return lines
}

// Adopt sets the tags by which runs find the resources of the cluster, and which say that
// they delete them with it. It changes nothing else. If a run with the manifest would change
// more, the error is a RefusedError.
func (i *Imported) Adopt(ctx context.Context, o cluster.Options) (cluster.Result, error) {
	l := begin(i.Cluster, o.Observe)
	if err := plan.RefusalFor(i.Unknown); err != nil {
		return l.result(err)
	}
	if err := l.Lock(ctx, "import"); err != nil {
		return l.result(err)
	}
	defer l.Unlock(ctx)
	if m := l.Cloud.Lock.Manager(); m != nil {
		return l.result(l.IsManaged(m))
	}
	return l.result(l.adopt(ctx, nil))
}
