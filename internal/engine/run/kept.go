package run

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/ec2"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/kind"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/teardown"
	"github.com/clusterawsadm/clusterawsadm/internal/kube"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// split separates the resources that a deletion keeps. The origin of a kept resource says
// why.
func (d *Deleting) split(all teardown.Leftovers) (going, kept teardown.Leftovers) {
	for _, x := range all {
		why := d.whyKept(x)
		if why != "" && x.Kind.Name == ec2.InterfacesKind {
			continue // there may be none
		}
		if why != "" {
			x.Origin += "; " + why
			kept = append(kept, x)
		} else {
			going = append(going, x)
		}
	}
	return going, kept
}

// whyKept says why a deletion keeps a resource; "" if it does not.
func (d *Deleting) whyKept(x teardown.Leftover) string {
	vpc := ec2.VPCOf(append(slices.Clone(x.Refers), x.ID))
	switch {
	case x.Kind.Name == ec2.VolumeKind:
		return d.whyVolumeKept(x)
	case x.Created && !d.collects(x.Kind.Name):
		return "garbage collection of such resources is off (" + teardown.CollectAnnotation + ")"
	case vpc != "" && !d.vpcs[vpc]:
		return fmt.Sprintf("in %s, which is not the cluster's VPC: --vpc %[1]s deletes it", vpc)
	}
	return ""
}

func (d *Deleting) whyVolumeKept(x teardown.Leftover) string {
	policy := d.policies[x.ID]
	switch {
	case d.options.Volumes == cluster.KeepVolumes:
		return "all volumes are kept (--keep-volumes)"
	case d.options.Volumes == cluster.DeleteVolumes, x.Tags[reclaimTag] != "", policy == "Delete":
		return ""
	case !x.Created:
		return "AWS does not delete it with its machine (its DeleteOnTermination is off, or it is a restored one): --delete-volumes deletes it"
	case policy != "":
		return "its reclaim policy is " + policy + ": --delete-volumes deletes it"
	}
	return "its reclaim policy is not known: --delete-volumes deletes it"
}

// collects reports whether a deletion deletes the resources of a kind that controllers
// in the cluster created.
func (d *Deleting) collects(kind string) bool {
	return d.Cluster.Manifest == nil || teardown.Collects(d.Cluster.Manifest.Infra.Annotations, kind)
}

// readPolicies reads the reclaim policies of the volumes, if there are any.
func (d *Deleting) readPolicies(ctx context.Context, k *kube.Client, all teardown.Leftovers) (err error) {
	if !slices.ContainsFunc(all, func(x teardown.Leftover) bool { return x.Kind.Name == ec2.VolumeKind }) {
		return nil
	}
	d.policies, err = teardown.ReclaimPolicies(ctx, k)
	if err != nil && ctx.Err() == nil {
		d.Warn("the reclaim policies of the cluster's volumes cannot be read: %s", kube.Reason(err))
		return nil
	}
	return err
}

// reclaimTag marks the volumes that a deletion will delete. If the run ends after the
// machines are deleted, the next one cannot read their reclaim policy any more.
const reclaimTag = "clusterawsadm/reclaim"

// markVolumes sets reclaimTag on the volumes to be deleted.
func (d *Deleting) markVolumes(ctx context.Context) {
	var ids []string
	for _, s := range d.Plan.Steps {
		if s.Action == plan.Remove && s.Resource.Kind() == ec2.VolumeKind && d.policies[s.CloudID] != "" {
			ids = append(ids, s.CloudID)
		}
	}
	if err := ec2.Tag(ctx, d.Cloud, ids, cloud.Tags{reclaimTag: "delete"}); err != nil {
		d.Warn("the volumes could not be marked for deletion (%v): if this run is interrupted, the next one keeps them", err)
	}
}

// clusterVPCs returns the VPCs whose resources the deletion deletes. A tag alone is no
// proof that a resource is the cluster's: the machines of a cluster may have permission to
// set tags of EC2. They cannot set those of load balancers and of EKS.
func (d *Deleting) clusterVPCs(all teardown.Leftovers) (map[string]bool, error) {
	if m := d.Cluster.Manifest; len(d.options.VPCs) == 0 && m != nil && m.Infra.Spec.NetworkSpec.VPC.ID != "" {
		return set([]string{m.Infra.Spec.NetworkSpec.VPC.ID}), nil
	}
	e := d.evidence(all)
	if len(d.options.VPCs) > 0 {
		return set(d.options.VPCs), d.checkNamed(e.owned, e.mentioned)
	}
	for _, vpc := range slices.Sorted(maps.Keys(e.subnets)) { // a cluster has subnets of its own only in its own VPC
		if !e.owned[vpc] {
			return nil, lostVPC(d.Cloud, e.subnets[vpc], vpc)
		}
	}
	if vpcs := first(e.trusted, e.owned, e.mentioned); vpcs != nil {
		return vpcs, nil
	}
	ids := slices.Sorted(maps.Keys(e.mentioned))
	return nil, fmt.Errorf(
		"resources with the tags of cluster %s are in several VPCs (%s): pass the cluster's with --vpc; it can be given several times",
		d.Cluster.Name,
		strings.Join(ids, ", "),
	)
}

// evidence is what resources with the tags of a cluster say of VPCs.
type evidence struct {
	owned     map[string]bool   // the VPC has the owned tag, and more
	trusted   map[string]bool   // a load balancer or an EKS cluster is in it
	mentioned map[string]bool   // any resource is in it
	subnets   map[string]string // one owned subnet of each VPC
}

// evidence collects what the resources of the cluster say of VPCs.
func (d *Deleting) evidence(all teardown.Leftovers) evidence {
	e := evidence{map[string]bool{}, map[string]bool{}, map[string]bool{}, map[string]string{}}
	tagged := map[string]cloud.Tags{}
	for _, f := range d.existing(all) {
		if s, is := f.State.(ec2.SubnetState); is && f.Tags[d.Cloud.OwnerTag()] == cloud.Owned {
			e.subnets[s.VPC] = s.ID
		}
		if _, is := f.State.(ec2.VPCState); is {
			tagged[f.ID] = f.Tags
			continue
		}
		if vpc := ec2.VPCOf(append(slices.Clone(f.Refers), f.ID)); vpc != "" {
			e.mentioned[vpc] = true
			e.trusted[vpc] = e.trusted[vpc] || f.Kind.Area == plan.AreaLoadBalancer || f.Owner.EKS
		}
	}
	for vpc, tags := range tagged {
		e.owned[vpc] = e.mentioned[vpc] || madeForCluster(tags)
		e.mentioned[vpc] = e.owned[vpc]
	}
	return e
}

// madeForCluster reports whether the tags of a VPC say that a run or CAPA has made it for a
// cluster. The owned tag alone does not: a VPC that has no other, and nothing of the cluster in
// it, is kept, whether the cluster exists or not.
func madeForCluster(tags cloud.Tags) bool {
	return tags[cloud.ResourceTag] != "" || tags[cloud.RoleTag] != ""
}

// checkNamed refuses a VPC of Options.VPCs that is probably a mistake: nothing of the cluster is
// in it, and another VPC has the cluster's tag. The deletion would leave that one, and delete
// the keys of its machines.
func (d *Deleting) checkNamed(owned, mentioned map[string]bool) error {
	for _, vpc := range d.options.VPCs {
		for _, other := range slices.Sorted(maps.Keys(owned)) {
			if !mentioned[vpc] && owned[other] && !slices.Contains(d.options.VPCs, other) {
				return &plan.RefusedError{
					Reasons: []error{
						fmt.Errorf("no resource of cluster %s is in %s, but %s has its tag: name that VPC, or remove its tag %s", d.Cluster.Name, vpc, other, d.Cloud.OwnerTag()),
					},
				}
			}
		}
	}
	return nil
}

// first returns the first set with one element; an empty set if all are empty, and nil if
// none has one element.
func first(sets ...map[string]bool) map[string]bool {
	most := 0
	for _, s := range sets {
		maps.DeleteFunc(s, func(_ string, is bool) bool { return !is })
		if len(s) == 1 {
			return s
		}
		most = max(most, len(s))
	}
	if most == 0 {
		return map[string]bool{}
	}
	return nil
}

// existing lists the resources of the graph that belong to the cluster, and those that were
// found by its tags.
func (d *Deleting) existing(all teardown.Leftovers) (found []kind.Found) {
	for _, n := range d.Built.Resources() {
		if f, ok := kind.FromState(aws.Kinds(), n.Observed()); ok && n.Role() != graph.RoleExisting {
			found = append(found, f)
		}
	}
	for _, x := range all {
		if !x.Created {
			found = append(found, x.Found)
		}
	}
	return found
}

func set(list []string) map[string]bool {
	out := map[string]bool{}
	for _, x := range list {
		out[x] = true
	}
	return out
}
