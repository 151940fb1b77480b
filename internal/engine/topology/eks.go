package topology

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	infrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/api/v1beta2"
	ekscontrolplanev1 "sigs.k8s.io/cluster-api-provider-aws/v2/controlplane/eks/api/v1beta2"
	expinfrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/exp/api/v1beta2"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/ec2"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/eks"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/iam"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/bootdata"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/incluster"
)

// eksPlane is the control plane of EKS, and what the other stages need of it.
type eksPlane struct {
	platform platform
	mappings []incluster.Mapping // desired entries of the ConfigMap aws-auth
	remarks  []string
}

// addEKS adds the control plane of EKS and its parts.
func addEKS(g *graph.Graph, b base) (out eksPlane, err error) {
	spec := &b.m.EKS.ControlPlane.Spec
	p := platform{base: b}
	p.eks = graph.Add(g, "eks-cluster", newEKSCluster(g, b, spec), b.infra("spec"), graph.With(graph.Exists(b.interfaces)))
	p.endpoint = bootdata.Endpoint{EKS: p.eks, Port: eksPort}
	groups, nodes, err := addNodeGroups(g, p)
	if err != nil {
		return out, err
	}
	profiles, err := addFargateProfiles(g, p)
	if err != nil {
		return out, err
	}
	entries := addAccessEntries(g, p, spec)
	access := addNodeAccess(g, p, spec)
	if b.movesToAPI(spec) {
		graph.Expect(g, "eks-authentication", &eks.Authentication{Cluster: p.eks, Entries: slices.Concat(entries, access.entries)}, b.infra("spec.accessConfig.authenticationMode"))
	}
	addons := addEKSAddons(g, p, spec, nodes)
	if spec.AssociateOIDCProvider {
		graph.Add(g, "oidc-provider", &eks.OIDCProvider{
			Cluster: p.eks, Tags: b.eksTags(b.m.Name + "-oidc"),
		}, b.infra("spec.associateOIDCProvider"))
	}
	retired := retireEKS(g, p, access.roles)
	addIdentityProvider(g, p, spec, slices.Concat(groups, profiles, entries, access.entries, addons, retired))
	return eksPlane{p, access.mappings, slices.Concat(access.remarks, b.addonRoleRemarks(spec))}, nil
}

// movesToAPI reports whether the manifest has the authentication mode API, and the cluster
// exists with another one.
func (in inputs) movesToAPI(plane *ekscontrolplanev1.AWSManagedControlPlaneSpec) bool {
	have, api := in.inv.EKS.Cluster, string(ekscontrolplanev1.EKSAuthenticationModeAPI)
	return have != nil && have.Authentication != "" && !strings.EqualFold(have.Authentication, api) &&
		plane.AccessConfig != nil && strings.EqualFold(string(plane.AccessConfig.AuthenticationMode), api)
}

// eksPort is where EKS's API servers listen.
const eksPort = 443

// eksTags are the tags of a resource of EKS or IAM.
func (in inputs) eksTags(name string, more ...cloud.Tags) cloud.Tags {
	return in.namedTags(name, roleCommon, append(more, in.cloudProvider(cloud.Owned))...)
}

// nodeTags are the tags of a node group or a Fargate profile. CAPA removes all others.
func (in inputs) nodeTags(cluster string, more map[string]string) cloud.Tags {
	return cloud.Tags(in.spec.AdditionalTags).With(more).With(cloud.Tags{cloud.CloudProviderTagPrefix + cluster: cloud.Owned})
}

// zonesOfEKS lists the zones of the subnets of an existing EKS cluster, sorted.
func (in inputs) zonesOfEKS() []string {
	if in.inv.EKS.Cluster == nil {
		return nil
	}
	return in.zonesWith(func(s ec2.SubnetState) bool { return slices.Contains(in.inv.EKS.Cluster.Subnets, s.ID) })
}

func newEKSCluster(g *graph.Graph, b base, plane *ekscontrolplanev1.AWSManagedControlPlaneSpec) *eks.Cluster {
	e := &eks.Cluster{
		Name: plane.EKSClusterName, Version: minorVersion(b.m.Version), ClusterTag: b.cloudProviderKey(), Role: addRole(g, b.inputs, roleSpec{
			name: text(plane.RoleName), path: plane.RolePath, boundary: plane.RolePermissionsBoundary, services: []string{"eks.amazonaws.com"},
			policies: ControlPlanePolicies(), more: list(plane.RoleAdditionalPolicies), at: "spec.roleName",
		}),
		Zones: b.zonesOfEKS(), Public: plane.EndpointAccess.Public, Private: plane.EndpointAccess.Private, IPv6: b.net.ipv6,
		DeletionProtection: b.m.EKS.DeletionProtection, ZonalShift: b.m.EKS.ZonalShift,
		SkipSelfManagedAddons: !plane.BootstrapSelfManagedAddons, Support: strings.ToUpper(string(plane.UpgradePolicy)), Adopt: b.o.Adopt,
		Tags: b.eksTags(plane.EKSClusterName, cloud.Tags{cloud.ClusterTagPrefix + plane.EKSClusterName: cloud.Owned}), // as CAPA, which puts the name of the EKS cluster there
	}
	for _, s := range b.net.subnets {
		if !s.edge && (!plane.RestrictPrivateSubnets || !s.public) {
			e.Subnets = append(e.Subnets, s.ref)
		}
	}
	e.Groups = append(e.Groups, b.groups[infrav1.SecurityGroupEKSNodeAdditional])
	for _, block := range plane.EndpointAccess.PublicCIDRs {
		e.PublicCIDRs = append(e.PublicCIDRs, masked(*block))
	}
	slices.Sort(e.PublicCIDRs)
	if !e.IPv6 {
		blocks := b.m.Object.Spec.ClusterNetwork.Services.CIDRBlocks
		if i := slices.IndexFunc(blocks, func(block string) bool { return !strings.Contains(block, ":") }); i >= 0 {
			e.ServiceCIDR = blocks[i]
		}
	}
	e.Logging = logs(plane.Logging)
	if k := plane.EncryptionConfig; k != nil && k.Provider != nil && len(k.Resources) > 0 {
		e.Key = *k.Provider
	}
	if a := plane.AccessConfig; a != nil {
		e.Authentication, e.CreatorIsAdmin = strings.ToUpper(string(a.AuthenticationMode)), a.BootstrapClusterCreatorAdminPermissions
		if b.movesToAPI(plane) {
			e.MovesToAPI, e.Authentication = true, strings.ToUpper(string(ekscontrolplanev1.EKSAuthenticationModeAPIAndConfigMap))
		}
	}
	return e
}

// ControlPlanePolicies are the names of the AWS managed policies of the role of every control
// plane.
func ControlPlanePolicies() []string { return []string{"AmazonEKSClusterPolicy"} }

// NodePolicies are the names of the AWS managed policies of the role of every node group.
func NodePolicies() []string {
	return []string{"AmazonEKSWorkerNodePolicy", "AmazonEKS_CNI_Policy", "AmazonEC2ContainerRegistryReadOnly"}
}

// masked returns a block without the bits of a host, as EKS stores it: 192.0.2.0/24 for
// 192.0.2.7/24.
func masked(block string) string {
	if p, err := netip.ParsePrefix(block); err == nil {
		return p.Masked().String()
	}
	return block
}

// logs returns the enabled log types, sorted.
func logs(l *ekscontrolplanev1.ControlPlaneLoggingSpec) (out []string) {
	if l == nil {
		return nil
	}
	for name, on := range map[string]bool{
		"api": l.APIServer, "audit": l.Audit, "authenticator": l.Authenticator, "controllerManager": l.ControllerManager, "scheduler": l.Scheduler,
	} {
		if on {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// minorVersion is the version as EKS has it: "1.34" for "v1.34.2".
func minorVersion(version string) string {
	parts := strings.SplitN(strings.TrimPrefix(version, "v"), ".", 3)
	if len(parts) < 2 {
		return ""
	}
	return parts[0] + "." + parts[1]
}

func list(p *[]string) []string {
	if p == nil {
		return nil
	}
	return *p
}

// roleSpec is an IAM role that a resource of EKS needs.
type roleSpec struct {
	name, path, boundary, at string
	services                 []string
	policies                 []string // names of AWS managed policies
	more                     []string // ARNs
}

// addRole adds a role, once for each name: managed if the user permits it, otherwise
// looked up (docs/adr/0015-eks-roles.md).
func addRole(g *graph.Graph, in inputs, r roleSpec) *graph.Ref[iam.RoleState] {
	id := graph.ID("role/" + r.name)
	if added, ok := g.Resource(id).(*graph.Ref[iam.RoleState]); ok {
		return added
	}
	if !in.m.EKS.EnableIAM {
		return graph.Use(g, id, iam.RoleByName(r.name, howToCreateRole(r.name)), in.infra(r.at))
	}
	role := &iam.Role{
		Name: r.name, Path: r.path, Boundary: r.boundary, Services: r.services, ClusterTag: in.cloudProviderKey(), Tags: in.eksTags(r.name),
	}
	for _, name := range r.policies {
		role.Policies = append(role.Policies, "arn:"+in.m.Partition()+":iam::aws:policy/"+name)
	}
	role.Policies = append(role.Policies, r.more...)
	return graph.Add(g, id, role, in.infra(r.at))
}

// howToCreateRole returns the advice for a role that is missing. Of CAPA's roles, the
// command creates by default only that of control planes.
func howToCreateRole(name string) string {
	const gate, command = "create it with --set CAPA_EKS_IAM=true, or ", "create it for all clusters of the account with 'clusterawsadm bootstrap iam create-cloudformation-stack"
	setting := map[string]string{
		expinfrav1.DefaultEKSNodegroupRole: "spec.eks.managedMachinePool.disable: false",
		expinfrav1.DefaultEKSFargateRole:   "spec.eks.fargate.disable: false",
	}[name]
	switch {
	case setting != "":
		return gate + command + " --config FILE', where FILE says " + setting
	case name == ekscontrolplanev1.DefaultEKSControlPlaneRole:
		return gate + command + "'"
	}
	return gate + "set the name of an existing role"
}

// addEKSAddons adds the add-ons that EKS installs. With nodes, the cluster will have
// nodes: add-ons run there, and nodes need some of them to become ready.
func addEKSAddons(g *graph.Graph, p platform, plane *ekscontrolplanev1.AWSManagedControlPlaneSpec, nodes bool) (added []graph.Resource) {
	if plane.Addons == nil {
		return nil
	}
	for i, a := range *plane.Addons {
		id := graph.ID("addon/" + a.Name)
		x := &eks.Addon{
			Cluster: p.eks, Name: a.Name, Version: a.Version, Configuration: a.Configuration, RoleARN: text(a.ServiceAccountRoleArn),
			Conflicts: "OVERWRITE", Preserve: a.PreserveOnDelete, Nodes: nodes, Tags: p.eksTags(a.Name, p.ownedByName()),
		}
		if a.ConflictResolution != nil {
			x.Conflicts = strings.ToUpper(string(*a.ConflictResolution))
		}
		added = append(added, graph.Add(g, id, x, p.infra(fmt.Sprintf("spec.addons[%d]", i))))
	}
	return added
}

// addonRoleRemarks name add-ons whose roles do not exist. That is no error: the trust policy of
// such a role names the OIDC provider of the cluster, so that it may be created later.
func (in inputs) addonRoleRemarks(plane *ekscontrolplanev1.AWSManagedControlPlaneSpec) (out []string) {
	if plane.Addons == nil {
		return nil
	}
	for i, a := range *plane.Addons {
		if role := text(a.ServiceAccountRoleArn); in.inv.MissingRoles[role] {
			out = append(out, fmt.Sprintf("%s: the role %s does not exist: until it is created, the pods of the add-on have no permissions", in.m.Origin(in.m.InfraObject(), fmt.Sprintf("spec.addons[%d].serviceAccountRoleARN", i)), role))
		}
	}
	return out
}

// addIdentityProvider adds the OIDC identity provider for users, after all other changes
// to the cluster.
func addIdentityProvider(g *graph.Graph, p platform, plane *ekscontrolplanev1.AWSManagedControlPlaneSpec, after []graph.Resource) {
	c := plane.OIDCIdentityProviderConfig
	if c == nil {
		return
	}
	id := graph.ID("identity-provider/" + c.IdentityProviderConfigName)
	graph.Add(g, id, &eks.IdentityProvider{
		Cluster: p.eks, Name: c.IdentityProviderConfigName, Issuer: c.IssuerURL, Client: c.ClientID, UserClaim: text(c.UsernameClaim),
		UserPrefix: text(c.UsernamePrefix), GroupsClaim: text(c.GroupsClaim), GroupsPrefix: text(c.GroupsPrefix), RequiredClaims: c.RequiredClaims,
		After: after, Tags: p.eksTags(c.IdentityProviderConfigName, cloud.Tags(c.Tags)),
	}, p.infra("spec.oidcIdentityProviderConfig"))
}

// retireEKS retires the parts of the EKS cluster that are owned and not desired any more.
// Unlike in Cluster API, parts that others have added stay. nodeRoles are ARNs of roles
// whose access entries are named after instance profiles.
func retireEKS(g *graph.Graph, p platform, nodeRoles map[string]bool) (retired []graph.Resource) {
	for _, part := range []struct {
		kind   string
		names  []string
		retire func(*graph.Graph, graph.ID, string, *graph.Ref[eks.ClusterState])
	}{
		{"node-group", p.inv.EKS.NodeGroups, eks.RetireNodeGroup},
		{"fargate-profile", p.inv.EKS.Fargate, eks.RetireFargateProfile},
		{"addon", p.inv.EKS.Addons, eks.RetireAddon},
		{"access-entry", p.inv.EKS.AccessEntries, eks.RetireAccessEntry},
	} {
		for _, name := range part.names {
			id := graph.ID(part.kind + "/" + name)
			if g.Resource(id) == nil && (part.kind != "access-entry" || !nodeRoles[name]) {
				part.retire(g, id, name, p.eks)
				retired = append(retired, g.Resource(id))
			}
		}
	}
	return retired
}

// eksName is the name of the EKS cluster; "" for none.
func (in inputs) eksName() string {
	if in.m.EKS == nil {
		return ""
	}
	return in.m.EKS.ControlPlane.Spec.EKSClusterName
}
