package adopt

import (
	"context"
	"errors"
	"fmt"
	"slices"

	infrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/api/v1beta2"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/autoscaling"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/secrets"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/run"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// Handover gives the cluster to a management cluster: it creates the Cluster API objects
// there, records who manages the cluster from now on, and lets the controllers work. It
// changes nothing in AWS but that record, with which Apply and Delete refuse to work on the
// cluster. It can be stopped at any time, and run again.
//
// If the cluster is not as the manifest says, the error is a RefusedError: controllers would
// change it.
func Handover(ctx context.Context, c *run.Cluster, o cluster.HandoverOptions) error {
	if err := CheckHandover(c); err != nil {
		return err
	}
	l := begin(c, nil)
	if err := l.Lock(ctx, "handover"); err != nil {
		return err
	}
	defer l.Unlock(ctx)
	if m := l.Cloud.Lock.Manager(); m != nil && m.ID != o.To.ID {
		return l.IsManaged(m)
	}
	token, err := l.joinToken(ctx)
	if err != nil {
		return err
	}
	all, err := l.objects(ctx, token)
	if err != nil {
		return err
	}
	if !all.Plan.Empty() {
		return &plan.RefusedError{
			Reasons: []error{
				fmt.Errorf(
					"the cluster is not as the manifest says, and controllers would change it: 'clusterawsadm cluster plan' shows what, and 'clusterawsadm cluster create' makes it so",
				),
			},
		}
	}
	if err := o.Create(ctx, all.Items); err != nil {
		return err
	}
	if err := l.Cloud.Lock.SetManager(ctx, &o.To); err != nil {
		return &plan.HalfwayError{Err: fmt.Errorf("record that %s manages the cluster: %w", o.To.Name, err)}
	}
	if err := o.Release(ctx); err != nil {
		return &plan.HalfwayError{Err: err}
	}
	return nil
}

// CheckHandover returns a RefusedError for clusters with pools that CAPA 2.13.0 cannot manage.
// For node groups with a launch template, it reads an image of the template, which does not have
// one if EKS picks it (ReconcileLaunchTemplate); with an image, it needs the Kubernetes version of
// the node group (reconcileNodegroupVersion), which EKS does not know then. For pools whose
// machines load their Ignition configuration by a presigned URL, it makes another URL, and a
// version of the launch template for it, in every reconciliation (CreateForMachinePool).
func CheckHandover(c *run.Cluster) error {
	if c.Manifest == nil {
		return &plan.RefusedError{Reasons: []error{errors.New("a handover needs the manifest of the cluster")}}
	}
	for _, p := range c.Manifest.Pools {
		if why := staysBehind(c, p); why != "" {
			return &plan.RefusedError{Reasons: []error{fmt.Errorf("%s: 'clusterawsadm cluster export' prints their objects", why)}}
		}
	}
	return nil
}

// staysBehind says why a pool cannot be handed over; "" if it can.
func staysBehind(c *run.Cluster, p manifest.Pool) string {
	switch {
	case p.Managed != nil && p.Managed.Spec.AWSLaunchTemplate != nil:
		return "AWSManagedMachinePool/" + p.Managed.Name + ": node groups with a launch template cannot be handed over, because CAPA 2.13.0 fails on those that it has not made"
	case loadsIgnition(p) && c.Manifest.Infra.Spec.S3Bucket != nil && c.Manifest.Infra.Spec.S3Bucket.PresignedURLDuration != nil:
		return "AWSMachinePool/" + p.Scaling.Name + ": pools with ignition.storageType: ClusterObjectStore and a presignedURLDuration cannot be handed over, because CAPA makes a version of their launch templates in every reconciliation"
	}
	return ""
}

// loadsIgnition reports whether machines of a pool load their Ignition configuration from the
// bucket.
func loadsIgnition(p manifest.Pool) bool {
	return p.Scaling != nil && p.Scaling.Spec.Ignition != nil && p.Scaling.Spec.Ignition.StorageType != infrav1.IgnitionStorageTypeOptionUnencryptedUserData
}

// joinToken returns the bootstrap token of a self-managed cluster; "" if it has no pools.
func (l *looking) joinToken(ctx context.Context) (string, error) {
	if l.Cluster.IsEKS() || len(l.Cluster.Manifest.Pools) == 0 {
		return "", nil
	}
	stored, err := secrets.PKIParameters(cloud.ReadOnly(ctx), l.Cloud)
	if err != nil {
		return "", fmt.Errorf("read the bootstrap token: %w", err)
	}
	return string(stored.Parts[secrets.TokenName]), nil
}

// adopt applies a plan that only records what exists, and renews what is announced.
func (l *looking) adopt(ctx context.Context, announced []plan.Step) error {
	if err := l.Look(ctx); err != nil {
		return err
	}
	if err := l.checkAdopts(announced); err != nil {
		return err
	}
	if l.Plan.Empty() {
		return nil
	}
	return l.Apply(ctx)
}

// checkAdopts refuses a plan that does more than to record what exists, and to renew what is
// announced.
func (l *looking) checkAdopts(announced []plan.Step) error {
	var reasons []error
	for _, s := range l.Plan.Steps {
		if !s.Does() || adopts(s) {
			continue
		}
		if renewsToken(s) {
			if !slices.ContainsFunc(announced, func(a plan.Step) bool { return a.Resource == s.Resource }) {
				reasons = append(reasons, fmt.Errorf("%s: the controllers have renewed the bootstrap token in the meantime: run the command again", s.Resource))
			}
			continue
		}
		what := string(s.Action)
		for _, d := range s.Diff {
			what += fmt.Sprintf(", %s %s → %s", d.Field, d.Have, d.Want)
		}
		reasons = append(reasons, fmt.Errorf("%s: the cluster is not as its objects say: %s", s.Resource, what))
	}
	if len(reasons) > 0 {
		return &plan.RefusedError{Reasons: reasons}
	}
	return nil
}

// adopts reports whether a step only records what exists: tags, and the parameters of this
// program.
func adopts(s plan.Step) bool {
	switch s.Action {
	case plan.Settle, plan.Await:
		return true
	case plan.Create:
		return slices.Contains([]string{secrets.PKIKind, secrets.InitMarkerKind, secrets.BootstrapNamesKind, secrets.DeletionProtectionKind}, s.Resource.Kind()) ||
			len(s.Diff) > 0 && onlyTags(s.Diff)
	case plan.Update:
		return s.Resource.Kind() == secrets.PKIKind || onlyTags(s.Diff)
	case plan.Keep, plan.Existing, plan.Leave, plan.Conflict, plan.Remove:
	}
	return false
}

// onlyTags reports whether all differences are tags, as those of existing subnets.
func onlyTags(d plan.Diff) bool {
	return !slices.ContainsFunc(d, func(c plan.Change) bool { return !isTag(c) })
}

// isTag reports whether a difference is a tag of a resource, or one that new nodes of a node group get.
func isTag(c plan.Change) bool { return c.IsTag() || autoscaling.IsNodeTag(c) }
