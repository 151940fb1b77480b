package cluster

import (
	"bytes"
	"cmp"
	"context"
	"slices"
	"strconv"

	"golang.org/x/sync/errgroup"

	"github.com/clusterawsadm/clusterawsadm/internal/cli/env"
	"github.com/clusterawsadm/clusterawsadm/internal/crash"
	"github.com/clusterawsadm/clusterawsadm/internal/render"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
	"github.com/clusterawsadm/clusterawsadm/pkg/reconcile"
)

// candidate is a cluster that could be imported.
type candidate struct {
	name, kind string
	imported   *reconcile.Imported
	err        error // why there is no manifest
}

// importsAtATime is the number of clusters that are read at a time.
const importsAtATime = 4

// runAll lists the clusters of the region with what an import would make of them.
func (o *importOptions) runAll(ctx context.Context) (err error) {
	if o.output.to != "" || o.adopt || o.keys != "" || o.bootData != "" {
		return env.Usagef("--all writes no manifest and sets no tags: --to, --adopt, --pki-from and --boot-data-from are for one NAME")
	}
	s, err := o.open(ctx, o.Region)
	if err != nil {
		return err
	}
	defer s.Close(&err)
	all, err := candidates(ctx, s)
	if err != nil {
		return err
	}
	if len(all) == 0 {
		o.Env.Story("no clusters found in %s", s.target.Config.Region)
		return nil
	}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(importsAtATime)
	for i := range all {
		g.Go(func() error {
			return crash.Catch(func() error {
				all[i].imported, all[i].err = reconcile.Import(ctx, all[i].name, s.target, cluster.ImportOptions{})
				return ctx.Err()
			})
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	var rows [][]string
	for _, x := range all {
		if x.isPartOf(all) {
			continue
		}
		rows = append(rows, x.row())
		if x.err != nil {
			o.Env.Story("%s: %v", x.name, x.err)
		}
	}
	return render.Table(o.Env.Out, []string{"NAME", "TYPE", "MANIFEST", "OBJECTS", "LEFT OUT", "CHANGES", "TAGS"}, rows)
}

// candidates lists the EKS clusters of the region, and the self-managed clusters with tags of Cluster API.
func candidates(ctx context.Context, s *session) (all []candidate, err error) {
	names, err := reconcile.EKSClusters(ctx, s.target)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		all = append(all, candidate{name: name, kind: "eks"})
	}
	tagged, err := reconcile.List(ctx, s.target)
	for _, c := range tagged {
		if !c.EKS {
			all = append(all, candidate{name: c.Name, kind: "kubeadm"})
		}
	}
	slices.SortStableFunc(all, func(x, y candidate) int { return cmp.Compare(x.name, y.name) })
	return all, err
}

// isPartOf reports whether resources with the tags of Cluster API belong to an EKS cluster of the list, which does not have them.
func (x candidate) isPartOf(all []candidate) bool {
	return x.kind == "kubeadm" && slices.ContainsFunc(all, func(y candidate) bool { return y.kind == "eks" && y.imported != nil && y.imported.Name == x.name })
}

// row describes what the import would make of a cluster. CHANGES are those that 'cluster create' would make, TAGS the resources
// that do not have the tags of the cluster yet.
func (x candidate) row() []string {
	if x.err != nil {
		return []string{x.name, x.kind, "no", "-", "-", "-", "-"}
	}
	i := x.imported
	objects := bytes.Count(i.Manifest, []byte("\nkind: "))
	return []string{
		x.name,
		x.kind,
		"yes",
		strconv.Itoa(objects),
		strconv.Itoa(len(i.LeftOut)),
		strconv.Itoa(len(i.Differences)),
		strconv.Itoa(tagged(i.Plan) - len(i.Differences)),
	}
}
