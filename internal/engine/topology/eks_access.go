package topology

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	ekscontrolplanev1 "sigs.k8s.io/cluster-api-provider-aws/v2/controlplane/eks/api/v1beta2"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/eks"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/incluster"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// addAccessEntries adds the access entries of the manifest.
func addAccessEntries(
	g *graph.Graph,
	in inputs,
	cluster *graph.Ref[eks.ClusterState],
	plane *ekscontrolplanev1.AWSManagedControlPlaneSpec,
) (added []*graph.Ref[eks.AccessEntryState]) {
	users := roleUsers(g, in, cluster)
	for i, e := range plane.AccessEntries {
		id := plan.ID("access-entry/" + e.PrincipalARN)
		x := &eks.AccessEntry{
			Cluster: cluster, Principal: e.PrincipalARN, Type: cmp.Or(strings.ToUpper(string(e.Type)), "STANDARD"), User: e.Username, Groups: e.KubernetesGroups,
			Users: users, Adopt: in.o.Adopt, Tags: in.eksTags(e.PrincipalARN[strings.LastIndex(e.PrincipalARN, "/")+1:], in.ownedByName()),
		}
		for _, policy := range e.AccessPolicies {
			x.Policies = append(x.Policies, eks.AccessPolicy{ARN: policy.PolicyARN, Namespaces: policy.AccessScope.Namespaces})
		}
		slices.SortStableFunc(x.Policies, func(x, y eks.AccessPolicy) int { return strings.Compare(x.ARN, y.ARN) })
		added = append(added, graph.Add(g, id, x, in.infra(fmt.Sprintf("spec.accessEntries[%d]", i))))
	}
	return added
}

// roleUsers lists the nodes and pods that authenticate with a role: those of node groups and
// Fargate profiles, and the machines and pools of the manifest.
func roleUsers(g *graph.Graph, in inputs, cluster *graph.Ref[eks.ClusterState]) (users []eks.RoleUser) {
	for _, pool := range in.m.Pools {
		if x := pool.Managed; x != nil {
			who := fmt.Sprintf("the node group %s (%s)", x.Spec.EKSNodegroupName, in.originOfNodeGroup(pool))
			users = append(users, eks.RoleUser{Who: who, Role: addRole(g, in, nodeRole(&x.Spec)), Type: eks.EntryTypeOf(imageType(&x.Spec))})
		}
	}
	for _, x := range in.m.EKS.Fargate {
		who := fmt.Sprintf("the Fargate profile %s (%s)", x.Spec.ProfileName, in.originOfFargate(x))
		users = append(users, eks.RoleUser{Who: who, Role: addRole(g, in, fargateRole(&x.Spec)), Type: eks.EntryOfFargate})
	}
	for _, x := range in.groupsAndPools(cluster) {
		if role := in.inv.NodeRoles[x.spec.IAMInstanceProfile]; role != "" {
			users = append(
				users,
				eks.RoleUser{
					Who:  fmt.Sprintf("the machines of %s (%s)", x.name, in.m.Origin(x.specAt, x.specPath+".iamInstanceProfile")),
					ARN:  role,
					Type: eks.EntryOfLinux,
				},
			)
		}
	}
	return users
}

// nodeAccess permits the machines that are in no node group to join the cluster: by an
// access entry for each of their roles, or by the ConfigMap aws-auth if the cluster uses
// only that.
type nodeAccess struct {
	entries  []graph.Resource
	roles    map[string]bool     // ARNs of the roles that have one of these entries
	mappings []incluster.Mapping // for the ConfigMap, with those of the manifest
	remarks  []string
}

// hasMode reports whether a cluster has the authentication mode.
func hasMode(plane *ekscontrolplanev1.AWSManagedControlPlaneSpec, m ekscontrolplanev1.EKSAuthenticationMode) bool {
	mode := ekscontrolplanev1.EKSAuthenticationModeConfigMap // the default of AWS
	if a := plane.AccessConfig; a != nil && a.AuthenticationMode != "" {
		mode = a.AuthenticationMode
	}
	return strings.EqualFold(string(mode), string(m))
}

// usesAWSAuth reports whether EKS reads the ConfigMap aws-auth. Runs then also remove the entries that they have written and the manifest no longer has.
func (in inputs) usesAWSAuth() bool {
	return in.m.EKS != nil && !hasMode(&in.m.EKS.ControlPlane.Spec, ekscontrolplanev1.EKSAuthenticationModeAPI)
}

// addNodeAccess adds the access entries of machines.
func addNodeAccess(g *graph.Graph, in inputs, cluster *graph.Ref[eks.ClusterState], plane *ekscontrolplanev1.AWSManagedControlPlaneSpec) nodeAccess {
	is := func(m ekscontrolplanev1.EKSAuthenticationMode) bool { return hasMode(plane, m) }
	out := nodeAccess{roles: map[string]bool{}}
	groups := map[string]group{} // by name of their instance profile
	for _, x := range in.groupsAndPools(cluster) {
		if x.eks != nil && x.eks.Nodeadm != nil && !x.spec.CloudInit.InsecureSkipSecretsManager {
			out.remark(
				"%s: nodeadm reads the user data itself, which therefore holds the NodeadmConfig and not a link to a secret; cloudInit.insecureSkipSecretsManager: true says the same",
				in.m.Origin(x.specAt, x.specPath+".cloudInit"),
			)
		}
		if _, seen := groups[x.spec.IAMInstanceProfile]; !seen {
			groups[x.spec.IAMInstanceProfile] = x
		}
	}
	for _, profile := range slices.Sorted(maps.Keys(groups)) {
		switch x := groups[profile]; {
		case profile == "":
			out.remark("%s: without iamInstanceProfile the machines cannot join: it is its role that is let into the cluster", in.m.Origin(x.specAt, x.specPath))
		case is(ekscontrolplanev1.EKSAuthenticationModeConfigMap):
			out.mapRole(in, profile)
		default:
			out.addEntry(g, in, cluster, x)
		}
	}
	if !is(ekscontrolplanev1.EKSAuthenticationModeAPI) {
		out.mappings = append(out.mappings, givenMappings(plane.IAMAuthenticatorConfig)...)
	}
	return out
}

func (a *nodeAccess) remark(format string, args ...any) {
	a.remarks = append(a.remarks, fmt.Sprintf(format, args...))
}

// mapRole adds the role of an instance profile to the ConfigMap aws-auth.
func (a *nodeAccess) mapRole(in inputs, profile string) {
	switch role := in.inv.NodeRoles[profile]; {
	case role != "":
		a.mappings = append(
			a.mappings,
			incluster.Mapping{ARN: withoutPath(role), Username: "system:node:{{EC2PrivateDNSName}}", Groups: []string{"system:bootstrappers", "system:nodes"}},
		)
	case in.inv.NodeRoles != nil:
		a.remark(
			"%s: the role of instance profile %s cannot be looked up (iam:GetInstanceProfile): let it into the cluster in spec.iamAuthenticatorConfig.mapRoles",
			in.m.Origin(in.m.InfraObject(), "spec.accessConfig"),
			profile,
		)
	}
}

// withoutPath returns the ARN of a role without its path, which the ConfigMap must not contain
// ("Troubleshoot IAM", EKS user guide: aws-auth).
func withoutPath(role string) string {
	prefix, path, ok := strings.Cut(role, ":role/")
	if !ok {
		return role
	}
	return prefix + ":role/" + path[strings.LastIndex(path, "/")+1:]
}

// addEntry adds the access entry of a group's role, unless it has one.
func (a *nodeAccess) addEntry(g *graph.Graph, in inputs, cluster *graph.Ref[eks.ClusterState], x group) {
	profile := x.spec.IAMInstanceProfile
	id, role, at := plan.ID("access-entry/"+profile), in.inv.NodeRoles[profile], in.m.Origin(x.specAt, x.specPath+".iamInstanceProfile")
	switch {
	case role == "" && in.inv.NodeRoles != nil:
		a.remark(
			"%s: the role of instance profile %s cannot be looked up (iam:GetInstanceProfile): let it into the cluster with an entry of type ec2_linux in spec.accessEntries",
			at,
			profile,
		)
	case !hasEntry(g, role) && !a.roles[role]:
		a.roles[role] = role != ""
		a.entries = append(a.entries, graph.Add(g, id, &eks.AccessEntry{
			Cluster: cluster, Principal: role, Type: eks.EntryOfLinux, Adopt: in.o.Adopt, Tags: in.eksTags(profile),
		}, graph.From(at)))
	}
}

// hasEntry reports whether a role has an access entry: the manifest has one for
// it, or EKS creates one itself, as for the roles of node groups.
func hasEntry(g *graph.Graph, role string) bool {
	return g.Resource(roleID(role)) != nil || g.Resource(plan.ID("access-entry/"+role)) != nil
}

// givenMappings returns the mappings of the manifest.
func givenMappings(c *ekscontrolplanev1.IAMAuthenticatorConfig) (out []incluster.Mapping) {
	if c == nil {
		return nil
	}
	for _, m := range c.RoleMappings {
		out = append(out, incluster.Mapping{ARN: m.RoleARN, Username: m.UserName, Groups: m.Groups})
	}
	for _, m := range c.UserMappings {
		out = append(out, incluster.Mapping{Users: true, ARN: m.UserARN, Username: m.UserName, Groups: m.Groups})
	}
	return out
}
