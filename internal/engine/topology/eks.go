package topology

import (
	"fmt"
	"slices"
	"strings"

	infrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/api/v1beta2"
	ekscontrolplanev1 "sigs.k8s.io/cluster-api-provider-aws/v2/controlplane/eks/api/v1beta2"
	expinfrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/exp/api/v1beta2"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/eks"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/iam"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/bootdata"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/teardown"
	"github.com/clusterawsadm/clusterawsadm/internal/ordered"
)

// mark is the tag by which Cluster API tells what of EKS and IAM is its own.
func (b *builder) mark() string { return cloud.CloudProviderTagPrefix + b.m.KubernetesName() }

// eks adds the control plane of EKS and what hangs on it (facts E.1).
func (b *builder) eks() {
	plane := &b.m.EKS.ControlPlane.Spec
	b.roles, b.entered = map[string]*graph.Ref[iam.RoleState]{}, map[string]bool{}
	b.plane = graph.Add(b.Graph, "eks-cluster", b.eksCluster(plane), b.infra("spec"), graph.With(graph.Exists(b.lb.leftovers)))
	b.endpoint = bootdata.Endpoint{EKS: b.plane, Port: eksPort}
	nodes := b.nodeGroups()
	b.fargateProfiles()
	b.accessEntries(plane)
	b.nodeAccess(plane)
	b.addons(plane, nodes)
	if plane.AssociateOIDCProvider {
		graph.Add(b.Graph, "oidc-provider", &eks.OIDCProvider{
			Cluster: b.plane, Tags: b.eksTags("oidc-provider", b.m.Name+"-oidc"),
		}, b.infra("spec.associateOIDCProvider"))
	}
	b.retireEKS()
	b.identityProvider(plane)
}

// eksPort is where EKS's API servers listen.
const eksPort = 443

// eksTags are the tags of a thing of EKS or IAM.
func (b *builder) eksTags(node graph.ID, name string, more ...cloud.Tags) cloud.Tags {
	return b.tags(node, name, roleCommon, append(more, cloud.Tags{b.mark(): cloud.Owned})...)
}

func (b *builder) eksCluster(plane *ekscontrolplanev1.AWSManagedControlPlaneSpec) *eks.Cluster {
	e := &eks.Cluster{
		Name: plane.EKSClusterName, Version: minorVersion(b.m.Version), Mark: b.mark(), Role: b.iamRole(roleSpec{
			name: text(plane.RoleName), path: plane.RolePath, boundary: plane.RolePermissionsBoundary, services: []string{"eks.amazonaws.com"},
			policies: []string{"AmazonEKSClusterPolicy"}, more: list(plane.RoleAdditionalPolicies), at: "spec.roleName",
		}),
		Public: plane.EndpointAccess.Public, Private: plane.EndpointAccess.Private, IPv6: b.net.ipv6,
		BareOfAddons: !plane.BootstrapSelfManagedAddons, Support: strings.ToUpper(string(plane.UpgradePolicy)), Tags: b.eksTags("eks-cluster", plane.EKSClusterName),
	}
	for _, s := range b.net.subnets {
		if !plane.RestrictPrivateSubnets || !s.public {
			e.Subnets = append(e.Subnets, s.ref)
		}
	}
	e.Groups = append(e.Groups, b.groups[infrav1.SecurityGroupEKSNodeAdditional])
	for _, block := range plane.EndpointAccess.PublicCIDRs {
		e.PublicCIDRs = append(e.PublicCIDRs, *block)
	}
	slices.Sort(e.PublicCIDRs)
	if !e.IPv6 {
		for _, block := range b.m.Object.Spec.ClusterNetwork.Services.CIDRBlocks {
			e.ServiceCIDR = block
			break
		}
	}
	e.Logging = logs(plane.Logging)
	if k := plane.EncryptionConfig; k != nil && k.Provider != nil && len(k.Resources) > 0 {
		e.Key = *k.Provider
	}
	if a := plane.AccessConfig; a != nil {
		e.Authentication, e.CreatorIsAdmin = strings.ToUpper(string(a.AuthenticationMode)), a.BootstrapClusterCreatorAdminPermissions
	}
	return e
}

// logs are the types of logs that are kept, sorted.
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

func text(p *string) string {
	if p == nil {
		return ""
	}
	return *p
}

func list(p *[]string) []string {
	if p == nil {
		return nil
	}
	return *p
}

// roleSpec is a role that something of EKS needs.
type roleSpec struct {
	name, path, boundary, at string
	services                 []string
	policies                 []string // names of AWS's
	more                     []string // ARNs
}

// iamRole adds a role, once for each name: ours to make where the user lets us,
// and looked up otherwise (docs/adr/0015-eks-roles.md).
func (b *builder) iamRole(r roleSpec) *graph.Ref[iam.RoleState] {
	if made, ok := b.roles[r.name]; ok {
		return made
	}
	id := graph.ID("role/" + r.name)
	if !b.m.EKS.EnableIAM {
		b.roles[r.name] = graph.Use(b.Graph, id, iam.RoleByName(r.name, makeRole(r.name)), b.infra(r.at))
		return b.roles[r.name]
	}
	partition := partition(b.spec, b.m.Region)
	role := &iam.Role{
		Name: r.name, Path: r.path, Boundary: r.boundary, Services: r.services, Mark: b.mark(), Tags: b.eksTags(id, r.name),
	}
	for _, name := range r.policies {
		role.Policies = append(role.Policies, "arn:"+partition+":iam::aws:policy/"+name)
	}
	role.Policies = append(role.Policies, r.more...)
	b.roles[r.name] = graph.Add(b.Graph, id, role, b.infra(r.at))
	return b.roles[r.name]
}

// makeRole says where a role comes from that is missing. Of CAPA's, the command
// makes by itself that of control planes alone.
func makeRole(name string) string {
	const gate, command = "have it made with --set CAPA_EKS_IAM=true, or ", "make it for all clusters of the account with 'clusterawsadm bootstrap iam create-cloudformation-stack"
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
	return gate + "name one that is there"
}

// addons adds what EKS is to install. It runs on nodes, as soon as there are
// some; what it installs nodes need to become ready.
func (b *builder) addons(plane *ekscontrolplanev1.AWSManagedControlPlaneSpec, nodes bool) {
	if plane.Addons == nil {
		return
	}
	for i, a := range *plane.Addons {
		id := graph.ID("addon/" + a.Name)
		x := &eks.Addon{
			Cluster: b.plane, Name: a.Name, Version: a.Version, Configuration: a.Configuration, RoleARN: text(a.ServiceAccountRoleArn),
			Conflicts: "OVERWRITE", Preserve: a.PreserveOnDelete, Nodes: nodes, Tags: b.eksTags(id, a.Name),
		}
		if a.ConflictResolution != nil {
			x.Conflicts = strings.ToUpper(string(*a.ConflictResolution))
		}
		graph.Add(b.Graph, id, x, b.infra(fmt.Sprintf("spec.addons[%d]", i)))
	}
}

func (b *builder) accessEntries(plane *ekscontrolplanev1.AWSManagedControlPlaneSpec) {
	for i, e := range plane.AccessEntries {
		id := graph.ID("access-entry/" + e.PrincipalARN)
		x := &eks.AccessEntry{
			Cluster: b.plane, Principal: e.PrincipalARN, Type: strings.ToUpper(string(e.Type)), User: e.Username, Groups: e.KubernetesGroups,
			Tags: b.eksTags(id, e.PrincipalARN[strings.LastIndex(e.PrincipalARN, "/")+1:]),
		}
		if x.Type == "" {
			x.Type = "STANDARD"
		}
		for _, p := range e.AccessPolicies {
			x.Policies = append(x.Policies, eks.EKSAccessPolicy{ARN: p.PolicyARN, Namespaces: p.AccessScope.Namespaces})
		}
		ordered.By(x.Policies, func(x, y eks.EKSAccessPolicy) int { return strings.Compare(x.ARN, y.ARN) })
		graph.Add(b.Graph, id, x, b.infra(fmt.Sprintf("spec.accessEntries[%d]", i)))
	}
}

func (b *builder) identityProvider(plane *ekscontrolplanev1.AWSManagedControlPlaneSpec) {
	p := plane.OIDCIdentityProviderConfig
	if p == nil {
		return
	}
	var after []graph.Resource
	for _, n := range b.Resources() {
		if slices.Contains([]string{"node-group", "fargate-profile", "addon", "access-entry"}, n.ID().Kind()) {
			after = append(after, n)
		}
	}
	id := graph.ID("identity-provider/" + p.IdentityProviderConfigName)
	graph.Add(b.Graph, id, &eks.IdentityProvider{
		Cluster: b.plane, Name: p.IdentityProviderConfigName, Issuer: p.IssuerURL, Client: p.ClientID, UserClaim: text(p.UsernameClaim),
		UserPrefix: text(p.UsernamePrefix), GroupsClaim: text(p.GroupsClaim), GroupsPrefix: text(p.GroupsPrefix), RequiredClaims: p.RequiredClaims,
		After: after, Tags: b.eksTags(id, p.IdentityProviderConfigName, cloud.Tags(p.Tags)),
	}, b.infra("spec.oidcIdentityProviderConfig"))
}

// retireEKS removes what hangs on the cluster, is ours, and is no longer
// wanted. What somebody else has put there stays, unlike in Cluster API.
func (b *builder) retireEKS() {
	for _, part := range []struct {
		kind  string
		names []string
	}{
		{"node-group", b.inv.EKS.NodeGroups}, {"fargate-profile", b.inv.EKS.Fargate}, {"addon", b.inv.EKS.Addons}, {"access-entry", b.inv.EKS.Accesses},
	} {
		for _, name := range part.names {
			id := graph.ID(part.kind + "/" + name)
			if b.Resource(id) == nil && (part.kind != "access-entry" || !b.entered[name]) {
				teardown.RetireEKS(b.Graph, id, part.kind, name, b.plane)
			}
		}
	}
}
