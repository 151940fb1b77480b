package run

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/autoscaling"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/ec2"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/secrets"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/teardown"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/topology"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// findLostTags returns an error if the plan creates machines of a cluster in whose
// security groups there are instances that seem to be machines without their tags. A run
// does not find those, and would replace machines that work. If it is the machine that
// runs kubeadm init, it would create a second cluster. The same holds for the bastion and its group.
func (l *Looking) findLostTags(ctx context.Context) error {
	ctx = cloud.InSnapshot(cloud.ReadOnly(ctx))
	created, groups := map[string][]plan.ID{}, map[string][]string{}
	for _, s := range l.Plan.Steps {
		of := ec2.MachineKind
		if s.Resource == topology.BastionGroup || s.Resource.Kind() == topology.BastionKind {
			of = topology.BastionKind
		}
		switch {
		case s.Resource.Kind() == of && s.Action == plan.Create:
			created[of] = append(created[of], s.Resource)
		case s.Resource.Kind() == ec2.SecurityGroupKind && s.CloudID != plan.Unknown && s.CloudID != "":
			groups[of] = append(groups[of], s.CloudID)
		}
	}
	for _, of := range []string{ec2.MachineKind, topology.BastionKind} {
		if len(created[of]) == 0 || len(groups[of]) == 0 {
			continue
		}
		if err := l.findLostIn(ctx, groups[of], created[of]); err != nil {
			return err
		}
	}
	return nil
}

// findLostIn is findLostTags for machines with some security groups.
func (l *Looking) findLostIn(ctx context.Context, groups []string, created []plan.ID) error {
	all, err := ec2.Interfaces(ctx, l.Cloud, cloud.Filter("group-id", groups...))
	if err != nil {
		return fmt.Errorf("network interfaces of the cluster: %w", err)
	}
	ids := instancesOf(all)
	if len(ids) == 0 {
		return nil
	}
	tags, err := ec2.InstanceTags(ctx, l.Cloud, ids)
	if err != nil {
		return fmt.Errorf("instances in the security groups of the cluster: %w", err)
	}
	first, err := secrets.InitializedBy(ctx, l.Cloud)
	if err != nil {
		return err
	}
	return l.lostTags(tags, first, created)
}

// instancesOf returns the IDs of the instances that have the interfaces.
func instancesOf(all []ec2.Interface) (ids []string) {
	for _, i := range all {
		if i.Instance != "" {
			ids = append(ids, i.Instance)
		}
	}
	return slices.Compact(slices.Sorted(slices.Values(ids)))
}

// lostParts lists the kinds of which a run must not create a second resource if the first one has only lost its tags: AWS refuses the second
// one, or bills for both.
func lostParts() []string {
	return []string{"internet-gateway", "egress-only-gateway", "carrier-gateway", "elastic-ip", "nat-gateway", "route-table", autoscaling.GroupKind}
}

// findLostParts returns an error if the plan creates a resource in an existing network, and one of the same kind is there that has lost its
// tags.
func (l *Looking) findLostParts(ctx context.Context) error {
	ctx = cloud.InSnapshot(cloud.ReadOnly(ctx))
	created := map[string]bool{}
	for _, s := range l.Plan.Steps {
		if s.Action == plan.Create && slices.Contains(lostParts(), s.Resource.Kind()) {
			created[s.Resource.Kind()] = true
		}
	}
	if len(created) == 0 || l.Built.VPC == nil || l.Cluster.Manifest == nil {
		return nil
	}
	if _, exists := l.Built.VPC.Found(); !exists {
		return nil
	}
	all, err := teardown.FindForeign(ctx, l.Cloud, l.Built.Graph, l.Owner, nil)
	if err != nil {
		return fmt.Errorf("resources that may have lost their tags: %w", err)
	}
	var reasons []error
	for _, f := range all {
		if created[f.Kind] && f.Restore != "" {
			reasons = append(
				reasons,
				fmt.Errorf("%s %s in %s does not have the tags of the cluster, and the plan creates another one. If it is the cluster's, restore them:\n"+
					"  %s\notherwise give it a tag", f.Kind, f.ID, f.In, f.Restore),
			)
		}
	}
	if len(reasons) == 0 {
		return nil
	}
	return &plan.RefusedError{Reasons: reasons}
}

// findLostVPC returns an error if there are subnets of the cluster, but no VPC: a run would
// create a second network. If no run has had the lock before, none has created subnets.
func findLostVPC(ctx context.Context, c *cloud.Clients, deep depth) error {
	if deep == identity || c.Lock != nil && c.Lock.IsFirst() {
		return nil
	}
	subnets, err := ec2.Subnets(ctx, c)
	if err != nil {
		return fmt.Errorf("subnets of the cluster: %w", err)
	}
	if len(subnets) == 0 {
		return nil
	}
	return &plan.RefusedError{Reasons: []error{lostVPC(c, subnets[0].ID, subnets[0].VPC)}}
}

// lostVPC is the error for a VPC that has lost its tags.
func lostVPC(c *cloud.Clients, subnet, vpc string) error {
	return fmt.Errorf("subnet %s has the tags of the cluster, but its VPC, %s, does not. If it is the VPC of the cluster, restore its tags:\n"+
		"  %s\notherwise remove the tag %s from the subnet",
		subnet, vpc, cloud.TagCommand(vpc, c.OwnerTag(), cloud.Owned, cloud.ResourceTag, "vpc"), c.OwnerTag())
}

// lostTags returns a RefusedError with the instances that have lost tags. first is the
// machine that runs kubeadm init, and created are the machines that would replace them.
func (l *Looking) lostTags(tags map[string]cloud.Tags, first string, created []plan.ID) error {
	var reasons []error
	for _, id := range slices.Sorted(maps.Keys(tags)) {
		if id != first && !l.Owner.MayHaveLost(tags[id]) || tags[id][l.Cloud.OwnerTag()] == cloud.Owned {
			continue
		}
		replaces := created[min(len(reasons), len(created)-1)]
		role := "node"
		switch {
		case id == first:
			role = "control-plane"
		case replaces.Kind() == topology.BastionKind:
			role = topology.RoleBastion
		}
		reasons = append(
			reasons,
			fmt.Errorf("instance %s uses the security groups of the cluster, but does not have its tags. If it is a machine of the cluster, restore them:\n"+
				"  %s\notherwise give it a Name tag or other security groups",
				id, cloud.TagCommand(id, l.Cloud.OwnerTag(), cloud.Owned, cloud.RoleTag, role, cloud.ResourceTag, string(replaces))),
		)
	}
	if len(reasons) == 0 {
		return nil
	}
	return &plan.RefusedError{Reasons: reasons}
}
