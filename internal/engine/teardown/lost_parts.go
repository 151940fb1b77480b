package teardown

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/ec2"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/eks"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/iam"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/kind"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/secrets"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/podrole"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// lostParts notes what belongs to resources that are deleted, and that the deletion does not
// find, because it has lost its tags or somebody else made it: what was made only for one of
// them, the parts of an EKS cluster, and the machine of the init marker.
func (s *foreignSearch) lostParts(ctx context.Context, own []kind.Found) error {
	used := map[string]string{} // by ID: what uses it
	for _, f := range own {
		_, isGroup := f.State.(eks.NodeGroupState)
		for _, id := range f.Uses {
			// Other tools make launch templates without tags for node groups, and nothing
			// waits for one.
			if id != "" && !s.known[id] && (!isGroup || !strings.HasPrefix(id, "lt-")) {
				used[id] = f.Kind.Name + " " + f.ID
			}
		}
		if c, is := f.State.(eks.ClusterState); is {
			if err := s.partsOf(ctx, c.Name); err != nil {
				return err
			}
		}
	}
	if err := s.lostUsed(ctx, used); err != nil {
		return err
	}
	if err := s.lostOfEKS(ctx, own); err != nil {
		return err
	}
	if err := s.lostFlowLog(ctx); err != nil {
		return err
	}
	return s.lostFirst(ctx)
}

// lostOfEKS notes the IAM roles that runs have made for the EKS cluster, by their path or name, and the OIDC provider, if they have lost their tags:
// a deletion would leave them, and what is found by the role of Karpenter. Who may not read IAM has made none.
func (s *foreignSearch) lostOfEKS(ctx context.Context, own []kind.Found) error {
	users := map[string]string{} // by the name of a role
	clusters := map[string]bool{}
	if name := s.of.EKSName(); name != "" {
		clusters[name] = true
	}
	for _, f := range own {
		var role string
		switch x := f.State.(type) {
		case eks.ClusterState:
			role, clusters[x.Name] = x.RoleARN, true
			if err := s.lostOIDCProvider(ctx, x); err != nil {
				return err
			}
		case eks.NodeGroupState:
			role = x.RoleARN
		case eks.FargateProfileState:
			role = x.RoleARN
		}
		if name := iam.RoleName(role); iam.HasGeneratedName(name, s.c.Cluster) {
			users[name] = f.Kind.Name + " " + f.ID
		}
	}
	for _, cluster := range slices.Sorted(maps.Keys(clusters)) {
		names, err := iam.RolesWithPath(ctx, s.c, podrole.Path(cluster, s.c.Region))
		if err != nil && !cloud.Denied(err) {
			return err
		}
		for _, name := range names {
			users[name] = "EKS cluster " + cluster
		}
	}
	return s.lostRoles(ctx, users)
}

// lostRoles notes the roles that exist and may have lost their tags. users has what uses each role, by the name of the role.
func (s *foreignSearch) lostRoles(ctx context.Context, users map[string]string) error {
	for _, name := range slices.Sorted(maps.Keys(users)) {
		role, err := iam.GetRole(ctx, s.c, name)
		if err != nil && !cloud.Denied(err) {
			return err
		}
		if role != nil && !role.IsOwned(s.c) {
			s.untagged(iam.RoleKind, role.ID, "use by "+users[name], role.Tags)
		}
	}
	return nil
}

// lostFlowLog notes the flow log that the manifest names, if it has lost its tags. Nothing prevents the deletion of a VPC that has one.
func (s *foreignSearch) lostFlowLog(ctx context.Context) error {
	n := s.g.Resource(plan.ID(ec2.FlowLogKind))
	if n == nil || n.Observed() != nil {
		return nil
	}
	wanted, is := n.Desired().(*ec2.FlowLog)
	if !is {
		return nil
	}
	have, err := wanted.Other(ctx, s.c)
	if err == nil && have != nil {
		s.untagged(ec2.FlowLogKind, have.ID, have.VPC, have.Tags)
	}
	return err
}

// lostOIDCProvider notes the OIDC provider of a cluster if the deletion does not delete it and it has lost its tags.
func (s *foreignSearch) lostOIDCProvider(ctx context.Context, cluster eks.ClusterState) error {
	provider, err := eks.OIDCProviderOf(ctx, s.c, cluster)
	if err != nil && !cloud.Denied(err) {
		return err
	}
	if provider != nil && !provider.IsOwned(s.c) && !s.known[provider.ID] {
		s.untagged(eks.OIDCProviderKind, provider.ID, "EKS cluster "+cluster.Name, provider.Tags)
	}
	return nil
}

// untagged notes a resource that nothing waits for, if it may have lost its tags.
func (s *foreignSearch) untagged(of, id, in string, tags cloud.Tags) {
	if s.of.MayHaveLost(tags) {
		s.add(plan.ForeignResource{Kind: of, ID: id, In: in, Owner: "without tags: give it one if it is somebody else's"}, tags)
	}
}

// lostFirst notes the machine of the init marker if the deletion does not find it.
func (s *foreignSearch) lostFirst(ctx context.Context) error {
	first, err := secrets.InitializedBy(ctx, s.c)
	if err != nil || first == "" || s.known[first] {
		return err
	}
	tags, err := ec2.InstanceTags(ctx, s.c, []string{first})
	// A marker that names a machine of another cluster is wrong: who is told to delete what it names would delete a machine of that cluster.
	if t, exists := tags[first]; exists && err == nil && len(t.Owners()) == 0 {
		s.note("instance", first, "the control plane", t)
	}
	return err
}

// lostUsed notes those of the resources that exist and may have lost their tags.
func (s *foreignSearch) lostUsed(ctx context.Context, used map[string]string) error {
	if len(used) == 0 {
		return nil
	}
	found, err := describeTags(ctx, s.c, cloud.Filter("resource-id", slices.Sorted(maps.Keys(used))...))
	if err != nil {
		return err
	}
	tags := map[string]cloud.Tags{}
	for _, t := range found {
		tags[*t.ResourceId] = tags[*t.ResourceId].With(tagMap(t))
	}
	for id, by := range used {
		if len(tags[id]) == 0 && kindOfID(id) == ec2.LaunchTemplateKind {
			if exists, err := ec2.LaunchTemplateExists(ctx, s.c, id); err != nil {
				return err
			} else if !exists {
				continue
			}
		}
		if s.of.MayHaveLost(tags[id]) {
			s.note(kindOfID(id), id, "use by "+by, tags[id])
		}
	}
	return nil
}

// kindOfID returns the kind of an EC2 resource.
func kindOfID(id string) string {
	for prefix, name := range map[string]string{"eipalloc-": "elastic-ip", "lt-": ec2.LaunchTemplateKind} {
		if len(id) > len(prefix) && id[:len(prefix)] == prefix {
			return name
		}
	}
	return "resource"
}

// partsOf notes the node groups and Fargate profiles of an EKS cluster that the deletion does
// not delete: EKS does not delete the cluster before them.
func (s *foreignSearch) partsOf(ctx context.Context, cluster string) error {
	parts, err := eks.PartsToDelete(ctx, s.c, cluster)
	if err != nil {
		return err
	}
	kinds := aws.Kinds()
	known := map[string]bool{}
	for _, n := range s.g.Resources() {
		switch f, _ := kind.FromState(kinds, n.Observed()); x := f.State.(type) {
		case eks.NodeGroupState:
			known["node group "+x.Name] = true
		case eks.FargateProfileState:
			known["profile "+x.Name] = true
		}
	}
	for _, name := range parts.NodeGroups {
		if known["node group "+name] {
			continue
		}
		if x, err := eks.NodeGroupByName(ctx, s.c, cluster, name); err != nil {
			return err
		} else if x != nil {
			s.foreignPart("node group", x.ID, cluster, x.Tags)
		}
	}
	for _, name := range parts.Fargate {
		if known["profile "+name] {
			continue
		}
		if x, err := eks.FargateProfileByName(ctx, s.c, cluster, name); err != nil {
			return err
		} else if x != nil {
			s.foreignPart("Fargate profile", x.ID, cluster, x.Tags)
		}
	}
	return nil
}

func (s *foreignSearch) foreignPart(what, arn, cluster string, tags cloud.Tags) {
	s.add(plan.ForeignResource{Kind: what, ID: arn, In: "EKS cluster " + cluster, Owner: ownerOf(tags)}, tags)
}
