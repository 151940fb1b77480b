package topology

import (
	"cmp"
	"slices"
	"strings"

	infrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/api/v1beta2"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/ec2"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/secrets"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// removeFormerTags makes the run remove the tags that earlier runs have set and that are not in the manifest any more. It returns the record of the
// tags in the manifest. Existing subnets have a record of their own (ec2.SubnetTags).
func removeFormerTags(g *graph.Graph, in inputs) secrets.TagKeys {
	wanted, given, ofUser := map[plan.ID][]string{}, map[plan.ID][]string{}, in.userTags()
	if len(ofUser)+len(in.inv.TagKeys) == 0 {
		return nil
	}
	for _, r := range g.Resources() {
		if r.Role() != graph.RoleManaged || r.ID().Kind() == ec2.SubnetTagsKind {
			continue
		}
		id := tagged(r.ID())
		if _, seen := wanted[id]; !seen {
			wanted[id] = r.Wanted().TagKeys()
			if len(wanted[id]) > 0 {
				given[id] = slices.DeleteFunc(slices.Clone(wanted[id]), func(key string) bool { return !ofUser[key] })
			}
		}
		graph.Untag(r, in.formerTags(id, wanted[id]))
	}
	return secrets.NewTagKeys(given)
}

// formerTags lists the keys of the tags to remove from a resource: those that earlier runs have set, without the wanted ones.
func (in inputs) formerTags(id plan.ID, wanted []string) []string {
	return slices.DeleteFunc(in.inv.TagKeys.Of(id), func(key string) bool { return slices.Contains(wanted, key) })
}

// tagged returns the ID with which the tags of a resource are recorded. Machines are recorded by group.
func tagged(id plan.ID) plan.ID { return plan.ID(cmp.Or(id.Group(), string(id))) }

// userTags returns the keys of the tags in the manifest. A key that this program or Cluster API Provider AWS uses itself has the value false.
func (in inputs) userTags() map[string]bool {
	all := []infrav1.Tags{in.spec.AdditionalTags}
	for _, s := range in.spec.NetworkSpec.Subnets {
		all = append(all, s.Tags)
	}
	for _, g := range in.groupsAndPools(nil) {
		all = append(all, g.spec.AdditionalTags)
	}
	for _, p := range in.m.Pools {
		if p.Managed != nil {
			all = append(all, p.Managed.Spec.AdditionalTags)
		}
	}
	if e := in.m.EKS; e != nil {
		for _, f := range e.Fargate {
			all = append(all, f.Spec.AdditionalTags)
		}
		if p := e.ControlPlane.Spec.OIDCIdentityProviderConfig; p != nil {
			all = append(all, p.Tags)
		}
	}
	keys := map[string]bool{}
	for _, tags := range all {
		for key := range tags {
			keys[key] = key != "Name" && key != infrav1.MachineNameTagKey && !strings.HasPrefix(key, cloud.CloudProviderTagPrefix) &&
				!strings.HasPrefix(
					key,
					"clusterawsadm/",
				) && !strings.HasPrefix(key, "kubernetes.io/role/") && !strings.HasPrefix(key, "sigs.k8s.io/cluster-api-provider-aws/")
		}
	}
	return keys
}
