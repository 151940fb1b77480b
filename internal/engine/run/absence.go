package run

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/ec2"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/kind"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/bootdata"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/teardown"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// proveAbsence looks again for everything that the run has deleted, and for everything
// else that has the tags or the name of the cluster. What exists is a LeftoverError.
func (d *Deleting) proveAbsence(ctx context.Context) error {
	absent, still, err := d.executor.LookAgain(ctx, d.Built.Graph, func(n graph.Resource) bool { return kindOf(n.ID()) == nil })
	if err != nil {
		return fmt.Errorf("check after the deletion: %w", err)
	}
	d.absent = nil // of an earlier proof in this run
	for _, a := range absent {
		id := a.Resource.ID()
		d.absent = append(d.absent, cluster.Absence{Resource: id, CloudID: a.CloudID, Asked: asks(kindOf(id)), At: a.At})
	}
	var left []string
	for _, n := range still {
		left = append(left, fmt.Sprintf("%s %s", n.ID(), n.CloudID()))
	}
	tagged, _, err := teardown.Search(cloud.InSnapshot(ctx), d.Cloud, d.Owner, nil, false)
	if err != nil {
		return fmt.Errorf("check after the deletion: %w", err)
	}
	tagged, _ = d.split(tagged)
	if unnamed := slices.DeleteFunc(slices.Clone(tagged), func(l teardown.Leftover) bool { return !l.Kind.ByNameOnly }); len(unnamed) > 0 && !d.again {
		return d.deleteUnnamed(ctx, unnamed)
	}
	for _, l := range tagged {
		if l.Kind.Name != ec2.InterfacesKind && !slices.ContainsFunc(still, func(n graph.Resource) bool { return n.CloudID() == l.ID }) {
			left = append(left, l.String())
		}
	}
	if len(left) > 0 {
		return &plan.LeftoverError{Left: left}
	}
	return nil
}

// deleteUnnamed deletes resources of the cluster that the manifest does not name any more, such as the role of an add-on that was removed from
// it. A deletion by manifest does not look for roles at first, unless its plan is shown: the manifest names them. Then the absence is proved again.
func (d *Deleting) deleteUnnamed(ctx context.Context, all teardown.Leftovers) error {
	d.again = true
	for _, l := range all {
		d.Warn("the manifest does not name %s, which is deleted, too", l.String())
	}
	g := graph.New()
	teardown.Add(g, all)
	if _, err := d.executor.PlanDelete(ctx, g); err != nil {
		return Refused(err)
	}
	if err := d.executor.Delete(ctx, g); err != nil {
		return d.stuck(ctx, err)
	}
	return d.proveAbsence(ctx)
}

// findLate is proveAbsence after a wait, in which a request of a killed run may have created
// something, such as another VPC.
func (d *Deleting) findLate(ctx context.Context) error {
	d.Cloud.Snapshot()
	all, err := d.searchByTag(ctx)
	if err == nil {
		d.vpcs, err = d.clusterVPCs(all)
	}
	if err != nil {
		return fmt.Errorf("check after the deletion: %w", err)
	}
	return d.proveAbsence(ctx)
}

// asks lists the actions with which resources of a kind are read.
func asks(k *kind.Kind) (actions []string) {
	for _, a := range slices.Concat(k.ReadActions, k.Actions) {
		_, operation, _ := strings.Cut(a, ":")
		if slices.ContainsFunc([]string{"Describe", "Get", "List"}, func(verb string) bool { return strings.HasPrefix(operation, verb) }) {
			actions = append(actions, a)
		}
	}
	slices.Sort(actions)
	return slices.Compact(actions)
}

// kindOf returns the AWS kind of a resource; nil for objects in the cluster, and for
// network interfaces that AWS deletes itself.
func kindOf(id plan.ID) *kind.Kind {
	for _, k := range slices.Concat(aws.Kinds(), bootdata.Kinds()) {
		if k.Name == id.Unretired().Kind() && k.Name != ec2.InterfacesKind {
			return k
		}
	}
	return nil
}
