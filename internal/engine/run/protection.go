package run

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/crash"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/kind"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/secrets"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// mostProtectionReads is for how many resources of a kind a run reads whether AWS protects
// them from deletion: for machines, each read is a call. Those of the control plane come
// first.
const mostProtectionReads = 50

// checkDeletionProtection returns an error if the cluster is protected in the account. The protection applies to all
// manifests of the cluster, and to a deletion by name.
func (d *Deleting) checkDeletionProtection(ctx context.Context) error {
	stored, err := secrets.ReadDeletionProtection(cloud.InSnapshot(cloud.ReadOnly(ctx)), d.Cloud)
	if err != nil || stored == nil {
		return err
	}
	return d.isProtected("set the annotation %s of its AWSCluster to \"false\" and run create, or run: aws ssm delete-parameter --region %s --name %s",
		manifest.OwnAnnotations+manifest.AnnotationDeletionProtection, d.Cluster.Region, stored.Path)
}

// checkWantedProtection returns an error if the manifest protects the cluster, even if no run has stored that yet. A
// deletion that would delete nothing is not refused.
func (d *Deleting) checkWantedProtection() error {
	m := d.Cluster.Manifest
	if m == nil || d.Plan.Empty() {
		return nil
	}
	on := m.DeletionProtection
	if m.EKS != nil {
		on = m.EKS.DeletionProtection
	}
	if on == nil || !*on {
		return nil
	}
	return d.isProtected("set the annotation %s to \"false\"", manifest.OwnAnnotations+manifest.AnnotationDeletionProtection)
}

func (d *Deleting) isProtected(fix string, args ...any) error {
	err := &plan.ResourceError{
		Resource: secrets.DeletionProtectionKind,
		Err:      fmt.Errorf("cluster %s is protected from deletion: "+fix, append([]any{d.Cluster.Name}, args...)...),
	}
	if m := d.Cluster.Manifest; m != nil {
		err.Origin = m.Origin(m.InfraObject(), manifest.AnnotationPath(manifest.AnnotationDeletionProtection))
	}
	return err
}

// checkProtection returns a RefusedError if the plan deletes resources that are protected
// from deletion: AWS would say so only after others are deleted. It names the commands that
// turn the protection off.
func (l *Looking) checkProtection(ctx context.Context) error {
	ctx = cloud.InSnapshot(cloud.ReadOnly(ctx))
	found := l.protectable()
	reasons, denied := make([]string, len(found)), map[string]string{}
	var mu sync.Mutex
	var failed error
	var g crash.Group
	for i, f := range found {
		g.Go(func() {
			why, err := f.Kind.Protection(ctx, l.Cloud, f.State)
			mu.Lock()
			defer mu.Unlock()
			reasons[i] = why
			switch {
			case cloud.Denied(err):
				denied[f.Kind.Name] = cloud.Code(err)
			case err != nil:
				failed = cmp.Or(failed, err)
			}
		})
	}
	g.Wait()
	for kind, code := range denied {
		l.Warn("whether each %s is protected from deletion is not known (%s): if it is, AWS refuses its deletion during the run", kind, code)
	}
	if failed != nil {
		return failed
	}
	return plan.RefusalFor(slices.DeleteFunc(reasons, func(why string) bool { return why == "" }))
}

// protectable lists the resources to be deleted that AWS may protect.
func (l *Looking) protectable() (found []kind.Found) {
	kinds, counts := aws.Kinds(), map[string]int{}
	for _, s := range l.Plan.Steps {
		n := l.Built.Resource(s.Resource)
		if s.Action != plan.Remove || n == nil {
			continue
		}
		if f, is := kind.FromState(kinds, n.Observed()); is && f.Kind.Protected() {
			f.State = n.Observed()
			found = append(found, f)
		}
	}
	slices.SortStableFunc(found, func(a, b kind.Found) int {
		return cmp.Compare(a.Tags[cloud.RoleTag], b.Tags[cloud.RoleTag]) // "control-plane" is before "node"
	})
	return slices.DeleteFunc(found, func(f kind.Found) bool {
		counts[f.Kind.Name]++
		return counts[f.Kind.Name] > mostProtectionReads
	})
}
