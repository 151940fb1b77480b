package topology

import (
	"fmt"
	"maps"
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
	"github.com/clusterawsadm/clusterawsadm/internal/engine/diagnose"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/incluster"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest/rules"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// eksPlane is what the other stages need of the parts of an EKS cluster.
type eksPlane struct {
	server   *graph.Ref[incluster.APIServerState] // nil where the run does not wait for it
	access   nodeAccess
	mappings []incluster.Mapping // desired entries of the ConfigMap aws-auth
	remarks  []string
	// podNetwork is what machines and pools wait for before they start.
	podNetwork []graph.Edge
}

// addEKSCluster adds the control plane of EKS.
func addEKSCluster(g *graph.Graph, in inputs, net network, groups securityGroups, interfaces graph.Resource) (*graph.Ref[eks.ClusterState], error) {
	desired := newEKSCluster(g, in, net, groups, &in.m.EKS.ControlPlane.Spec)
	if err := in.addNATAddresses(desired, net); err != nil {
		return nil, err
	}
	return graph.Add(g, "eks-cluster", desired, in.infra("spec"), graph.With(graph.Exists(interfaces))), nil
}

// machinesJoin reports whether self-managed machines can join during the run. A run that does not use
// the API server does not write aws-auth, and EKS refuses nodes that it does not name.
func (in inputs) machinesJoin(plane *graph.Ref[eks.ClusterState]) bool {
	if !in.usesAPIServer() {
		return false
	}
	return slices.ContainsFunc(in.groupsOfMachines(plane), func(x group) bool { return x.count > 0 }) ||
		slices.ContainsFunc(in.m.Pools, func(x manifest.Pool) bool { return x.Scaling != nil && x.Replicas() > 0 })
}

// addEKSParts adds the parts of an EKS cluster, each after what it needs
// (docs/adr/0033-create-before-destroy.md): the VPC CNI and its settings before nodes, and
// Fargate profiles before the add-ons whose pods they select.
func addEKSParts(g *graph.Graph, in inputs, p platform, api *incluster.API, machines bool) (out eksPlane, err error) {
	spec := &in.m.EKS.ControlPlane.Spec
	entries := addAccessEntries(g, in, p.eks, spec)
	if in.usesAPIServer() { // the caller may need an entry
		out.server = addServer(g, in, api, nil, nil, entries...)
	}
	p.podNetwork = addPodNetwork(g, in, p.net, p.eks, spec, kubernetes{api: api, server: out.server})
	nodes, err := addNodeGroups(g, in, p, api)
	if err != nil {
		return out, err
	}
	profiles, err := addFargateProfiles(g, in, p.net, p.eks)
	if err != nil {
		return out, err
	}
	out.access = addNodeAccess(g, in, p.eks, spec)
	if in.movesToAPI(spec) {
		graph.Expect(
			g,
			"eks-authentication",
			&eks.Authentication{Cluster: p.eks, Entries: append(out.access.entries, resources(entries)...)},
			in.infra("spec.accessConfig.authenticationMode"),
		)
	}
	addEKSAddons(g, in, p, spec, profiles, nodes || machines)
	addKarpenter(g, in, p.eks)
	addPodIdentities(g, in, p.eks)
	if spec.AssociateOIDCProvider {
		graph.Add(g, "oidc-provider", &eks.OIDCProvider{
			Cluster: p.eks, Tags: in.eksTags(in.m.Name + "-oidc"),
		}, in.infra("spec.associateOIDCProvider"))
	}
	out.podNetwork, out.mappings = p.podNetwork, out.access.mappings
	if err := in.checkAddonRoles(spec); err != nil {
		return out, err
	}
	out.remarks = slices.Concat(out.access.remarks, in.addonRoleRemarks(spec), in.leavingRemarks())
	return out, nil
}

func resources[S graph.State](refs []*graph.Ref[S]) (out []graph.Resource) {
	for _, r := range refs {
		out = append(out, r)
	}
	return out
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

func newEKSCluster(g *graph.Graph, in inputs, net network, groups securityGroups, plane *ekscontrolplanev1.AWSManagedControlPlaneSpec) *eks.Cluster {
	e := &eks.Cluster{
		Name:                  plane.EKSClusterName,
		Version:               minorVersion(in.m.Version),
		ClusterTag:            in.cloudProviderKey(),
		Role:                  addRole(g, in, in.controlPlaneRole(plane)),
		Auto:                  addAutoMode(g, in),
		Zones:                 in.zonesOfEKS(),
		MostPublicBlocks:      rules.MostPublicBlocks,
		Public:                plane.EndpointAccess.Public,
		Private:               plane.EndpointAccess.Private,
		IPv6:                  net.ipv6,
		DeletionProtection:    in.m.EKS.DeletionProtection,
		ZonalShift:            in.m.EKS.ZonalShift,
		Tier:                  in.m.EKS.Tier,
		Remote:                (*eks.RemoteNetworks)(in.m.EKS.Remote),
		ForceUpgrade:          in.m.EKS.ForceUpgrade,
		SkipSelfManagedAddons: !plane.BootstrapSelfManagedAddons,
		Support:               strings.ToUpper(string(plane.UpgradePolicy)),
		Adopt:                 in.o.Adopt,
		Tags: in.eksTags(
			plane.EKSClusterName,
			cloud.Tags{cloud.ClusterTagPrefix + plane.EKSClusterName: cloud.Owned},
		), // as CAPA, which puts the name of the EKS cluster there
	}
	for _, s := range net.subnets {
		if !s.edge && (!plane.RestrictPrivateSubnets || !s.public) {
			e.Subnets = append(e.Subnets, s.ref)
		}
	}
	e.Groups = append(e.Groups, groups[infrav1.SecurityGroupEKSNodeAdditional])
	for _, block := range plane.EndpointAccess.PublicCIDRs {
		e.PublicCIDRs = append(e.PublicCIDRs, masked(*block))
	}
	slices.Sort(e.PublicCIDRs)
	if !e.IPv6 {
		blocks := in.m.Object.Spec.ClusterNetwork.Services.CIDRBlocks
		if i := slices.IndexFunc(blocks, func(block string) bool { return !strings.Contains(block, ":") }); i >= 0 {
			e.ServiceCIDR = blocks[i]
		}
	}
	e.Logging = logs(plane.Logging)
	e.Key = in.m.EKS.EncryptionKey()
	if a := plane.AccessConfig; a != nil {
		e.Authentication, e.CreatorIsAdmin = strings.ToUpper(string(a.AuthenticationMode)), a.BootstrapClusterCreatorAdminPermissions
		if in.movesToAPI(plane) {
			e.MovesToAPI, e.Authentication = true, strings.ToUpper(string(ekscontrolplanev1.EKSAuthenticationModeAPIAndConfigMap))
		}
	}
	return e
}

// controlPlaneRole is the role of the control plane.
func (in inputs) controlPlaneRole(plane *ekscontrolplanev1.AWSManagedControlPlaneSpec) roleSpec {
	r := roleSpec{
		name: text(plane.RoleName), path: plane.RolePath, boundary: plane.RolePermissionsBoundary, services: []string{iam.ServiceEKS},
		policies: ControlPlanePolicies(), more: list(plane.RoleAdditionalPolicies), at: "spec.roleName",
	}
	if in.m.EKS.HasAutoMode() {
		r.policies, r.tagsSessions = append(r.policies, eks.AutoModeClusterPolicies()...), true
	}
	return r
}

// addAutoMode adds the role of the nodes of EKS Auto Mode, and returns its settings; nil if the manifest does not set it.
func addAutoMode(g *graph.Graph, in inputs) *eks.AutoMode {
	m := in.m.EKS.AutoMode
	if m == nil {
		return nil
	}
	out := &eks.AutoMode{Enabled: m.Enabled, NodePools: m.NodePools}
	if m.Role != "" {
		out.Role = addRole(g, in, roleSpec{
			name: m.Role, services: []string{iam.ServiceEC2}, policies: eks.AutoModeNodePolicies(), at: manifest.AnnotationPath(manifest.AnnotationAutoModeRole),
		})
	}
	return out
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
	tagsSessions             bool
	policies                 []string // names of AWS managed policies
	more                     []string // ARNs
}

// addRole adds a role, once for each name: managed if the user permits it, otherwise
// looked up (docs/adr/0015-eks-roles.md).
func addRole(g *graph.Graph, in inputs, r roleSpec) *graph.Ref[iam.RoleState] {
	id := plan.ID("role/" + r.name)
	if added, ok := g.Resource(id).(*graph.Ref[iam.RoleState]); ok {
		return added
	}
	if !in.m.EKS.EnableIAM {
		return graph.UseAs(g, id, iam.RoleByName(r.name, howToCreateRole(r.name)), iam.RoleState{Name: r.name, Existing: true}, in.infra(r.at))
	}
	role := &iam.Role{
		Name:         r.name,
		Path:         r.path,
		Boundary:     r.boundary,
		Services:     r.services,
		TagsSessions: r.tagsSessions,
		ClusterTag:   in.cloudProviderKey(),
		Tags:         in.eksTags(r.name),
	}
	for _, name := range r.policies {
		role.Policies = append(role.Policies, "arn:"+in.m.Partition()+":iam::aws:policy/"+name)
	}
	role.Policies, role.Given = append(role.Policies, r.more...), r.more
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
	case name == manifest.DefaultAutoModeRole:
		return "create it with --set CAPA_EKS_IAM=true, or in the console of IAM with the policies " + strings.Join(eks.AutoModeNodePolicies(), " and ") +
			", or name another role in clusterawsadm/auto-mode-role"
	case name == ekscontrolplanev1.DefaultEKSControlPlaneRole:
		return gate + command + "'"
	}
	return gate + "set the name of an existing role"
}

// addEKSAddons adds the add-ons that EKS installs, except for the VPC CNI. With nodes, the
// cluster will have nodes, on which add-ons run. The nodes come after the pod network: without it,
// such an add-on would wait for them in vain.
func addEKSAddons(
	g *graph.Graph,
	in inputs,
	p platform,
	plane *ekscontrolplanev1.AWSManagedControlPlaneSpec,
	profiles []fargateProfile,
	nodes bool,
) {
	if plane.Addons == nil {
		return
	}
	for i, a := range *plane.Addons {
		if a.Name != vpcCNI {
			after, onFargate := profilesOf(a.Name, profiles)
			if nodes && !onFargate {
				after = slices.Concat(after, p.podNetwork)
			}
			addEKSAddon(g, in, p.eks, i, a, nodes || onFargate, after)
		}
	}
}

// vpcCNI is the name of the add-on with the VPC CNI.
const vpcCNI = "vpc-cni"

// addEKSAddon adds the i-th add-on of the manifest. With runs, its pods will have somewhere to
// run.
func addEKSAddon(
	g *graph.Graph,
	in inputs,
	cluster *graph.Ref[eks.ClusterState],
	i int,
	a ekscontrolplanev1.Addon,
	runs bool,
	after []graph.Edge,
) graph.Resource {
	x := &eks.Addon{
		Cluster: cluster, Name: a.Name, Version: a.Version, Configuration: a.Configuration, RoleARN: text(a.ServiceAccountRoleArn),
		Conflicts: "OVERWRITE", Preserve: a.PreserveOnDelete, Nodes: runs, Adopt: in.o.Adopt, Tags: in.eksTags(a.Name, in.ownedByName()),
	}
	x.SetsIdentities = in.m.EKS.AddonIdentities != nil
	for _, identity := range in.m.EKS.AddonIdentities[a.Name] {
		role := podRole(g, in, manifest.AnnotationAddonPodIdentities, identity.PodRole, identity.Purpose())
		x.Identities = append(x.Identities, eks.AddonIdentity{ServiceAccount: identity.ServiceAccount, Role: role})
	}
	if a.ConflictResolution != nil {
		x.Conflicts = strings.ToUpper(string(*a.ConflictResolution))
	}
	opts := []graph.Option{in.infra(fmt.Sprintf("spec.addons[%d]", i)), graph.With(after)}
	if in.usesAPIServer() {
		opts = append(opts, graph.Diagnosed(diagnose.EKSAddon(cluster, len(in.m.EKS.Fargate) > 0)))
		if !in.m.HasServices() && len(in.m.EKS.Fargate) == 0 { // on Fargate, pods need no kube-proxy DaemonSet
			opts = append(opts, graph.Hopeless(diagnose.WithoutServices(cluster)))
		}
	}
	return graph.Add(g, plan.ID("addon/"+a.Name), x, opts...)
}

// checkAddonRoles refuses roles of other accounts, which cannot be passed to EKS ("Grant a user permissions to pass a role to an
// AWS service", IAM user guide).
func (in inputs) checkAddonRoles(plane *ekscontrolplanev1.AWSManagedControlPlaneSpec) error {
	if plane.Addons == nil || in.inv.Account == "" {
		return nil
	}
	for i, a := range *plane.Addons {
		if parts := strings.Split(text(a.ServiceAccountRoleArn), ":"); len(parts) > 4 && parts[4] != in.inv.Account {
			return fmt.Errorf(
				"%s: the role is of the account %s, and a role cannot be passed to EKS in another account, %s: use a role of this account that assumes the other one",
				in.m.Origin(in.m.InfraObject(), fmt.Sprintf("spec.addons[%d].serviceAccountRoleARN", i)), parts[4], in.inv.Account,
			)
		}
	}
	return nil
}

// addonRoleRemarks name add-ons whose roles do not exist. That is no error: the trust policy of
// such a role names the OIDC provider of the cluster, so that it may be created later.
func (in inputs) addonRoleRemarks(plane *ekscontrolplanev1.AWSManagedControlPlaneSpec) (out []string) {
	if plane.Addons == nil {
		return nil
	}
	for i, a := range *plane.Addons {
		if role := text(a.ServiceAccountRoleArn); in.inv.MissingRoles[role] {
			out = append(
				out,
				fmt.Sprintf(
					"%s: the role %s does not exist: until it is created, the pods of the add-on have no permissions",
					in.m.Origin(in.m.InfraObject(), fmt.Sprintf("spec.addons[%d].serviceAccountRoleARN", i)),
					role,
				),
			)
		}
	}
	return out
}

// leavingRemarks say what the cluster loses with parts that are not in the manifest any more.
func (in inputs) leavingRemarks() (out []string) {
	uses := map[string]string{
		"vpc-cni": "without its DaemonSet aws-node, pods on new nodes get no addresses", "kube-proxy": "without its DaemonSet, new nodes do not forward Services",
		"coredns": "without its Deployment, pods cannot resolve names",
	}
	for _, name := range slices.Sorted(maps.Keys(in.inv.EKS.Leaving.Addons)) {
		if preserved := in.inv.EKS.Leaving.Addons[name]; uses[name] != "" && !preserved {
			out = append(
				out,
				fmt.Sprintf(
					"the add-on %s is not in the manifest any more: EKS deletes it with its objects in the cluster, and %s; to keep the objects, run once with preserveOnDelete: true before you remove it",
					name,
					uses[name],
				),
			)
		}
	}
	if others := in.inv.EKS.Leaving.Others; len(others) > 0 {
		out = append(out, fmt.Sprintf(
			"%s: neither in the manifest, nor with the tags of the cluster: runs leave them as they are, AWS bills their nodes and pods, and "+
				"'cluster delete' is refused while they exist; to take them over, run 'clusterawsadm cluster import %s --adopt', which also writes a manifest with them",
			strings.Join(others, ", "), in.m.Name,
		))
	}
	if m, have := in.m.EKS.AutoMode, in.inv.EKS.Cluster; m != nil && !m.Enabled && have != nil && have.Auto.Enabled {
		out = append(out, in.m.Origin(in.m.InfraObject(), manifest.AnnotationPath(manifest.AnnotationAutoMode))+
			": EKS Auto Mode is turned off: EKS terminates all of its instances, its load balancers and volumes have no controller any more, and pods need other nodes, with a pod network",
		)
	}
	if admins := in.inv.EKS.Leaving.Admins; len(admins) > 0 {
		out = append(
			out,
			fmt.Sprintf(
				"%s: the policy AmazonEKSClusterAdminPolicy is taken from %s, and no other access entry has it: nobody can administer the cluster, and runs cannot use its API server, unless the ConfigMap aws-auth lets somebody in",
				in.m.Origin(in.m.InfraObject(), "spec.accessEntries"),
				strings.Join(admins, ", "),
			),
		)
	}
	return out
}

// addIdentityProvider adds the OIDC identity provider for users, after all other changes
// to the cluster.
func addIdentityProvider(g *graph.Graph, in inputs, cluster *graph.Ref[eks.ClusterState]) {
	after := resourcesOf(g, "node-group", "fargate-profile", "access-entry", "addon")
	if other := in.inv.EKS.Leaving.IdentityProvider; other != "" { // EKS takes one
		after = append(after, eks.RetireIdentityProvider(g, plan.ID(eks.IdentityProviderKind+"/"+other), other, cluster, after))
	}
	c := in.m.EKS.ControlPlane.Spec.OIDCIdentityProviderConfig
	if c == nil {
		return
	}
	id := plan.ID(eks.IdentityProviderKind + "/" + c.IdentityProviderConfigName)
	graph.Add(g, id, &eks.IdentityProvider{
		Cluster: cluster, Name: c.IdentityProviderConfigName, Issuer: c.IssuerURL, Client: c.ClientID, UserClaim: text(c.UsernameClaim),
		UserPrefix: text(c.UsernamePrefix), GroupsClaim: text(c.GroupsClaim), GroupsPrefix: text(c.GroupsPrefix), RequiredClaims: c.RequiredClaims,
		After: after, Tags: in.eksTags(c.IdentityProviderConfigName, cloud.Tags(c.Tags)),
	}, in.infra("spec.oidcIdentityProviderConfig"))
}

// eksName is the name of the EKS cluster; "" for none.
func (in inputs) eksName() string {
	if in.m.EKS == nil {
		return ""
	}
	return in.m.EKS.ControlPlane.Spec.EKSClusterName
}
