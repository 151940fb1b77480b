package discover

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	infrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/api/v1beta2"
	eksbootstrapv1 "sigs.k8s.io/cluster-api-provider-aws/v2/bootstrap/eks/api/v1beta2"
	ekscontrolplanev1 "sigs.k8s.io/cluster-api-provider-aws/v2/controlplane/eks/api/v1beta2"
	expinfrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/exp/api/v1beta2"
	capaeks "sigs.k8s.io/cluster-api-provider-aws/v2/pkg/eks"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/ec2"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/eks"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/topology"
)

// Objects returns the Cluster API objects of the cluster.
func (e *EKS) Objects() []Object {
	plane := e.planeName()
	_, eksName := objectName(e.Cluster.Name, e.Name, longestClusterName)
	control := object(ekscontrolplanev1.GroupVersion.String(), "AWSManagedControlPlane", plane, e.controlPlane(eksName))
	control.Annotations = e.annotations()
	if e.Owned {
		control.comment("spec", unknownIdentity)
	}
	out := []Object{
		object(clusterv1.GroupVersion.String(), "Cluster", e.Name, e.clusterSpec(plane)),
		object(infrav1.GroupVersion.String(), "AWSManagedCluster", e.Name, map[string]any{}),
		control,
	}
	for _, g := range e.NodeGroups {
		out = append(out, e.pool(g)...)
	}
	for _, f := range e.Fargate {
		out = append(out, e.fargateProfile(f))
	}
	for _, g := range e.Workers.readGroups() {
		out = append(out, e.Workers.machineObjects(g)...)
	}
	for _, p := range e.Workers.Pools {
		out = append(out, e.Workers.pool(p)...)
	}
	return append(out, charts(e.Workers.Charts)...)
}

// planeName returns the name of the AWSManagedControlPlane.
func (e *EKS) planeName() string {
	name, _ := objectName(e.Cluster.Name, e.Name, longestClusterName)
	return name
}

// Limits of the lengths of names in EKS.
const (
	longestClusterName   = 100
	longestNodeGroupName = 63
	longestProfileName   = 100
)

// defaultNamespace is the namespace of objects that name none.
const defaultNamespace = "default"

// objectName returns the name of an object from whose name CAPA makes a name in EKS. If
// there is no such object, it returns another name for it, and the name in EKS, which the
// object then has to contain.
func objectName(inEKS, otherwise string, longest int) (name, explicit string) {
	name, ok := strings.CutPrefix(inEKS, defaultNamespace+"_")
	if made, err := capaeks.GenerateEKSName(name, defaultNamespace, longest); ok && err == nil && made == inEKS && len(validation.IsDNS1123Subdomain(name)) == 0 {
		return name, ""
	}
	return otherwise, inEKS
}

// kubernetesName makes a name for an object of another name.
func kubernetesName(name string) string {
	name = strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, strings.ToLower(name))
	return strings.Trim(name, "-")
}

func (e *EKS) clusterSpec(plane string) map[string]any {
	spec := map[string]any{
		"controlPlaneRef":   reference(ekscontrolplanev1.GroupVersion.Group, "AWSManagedControlPlane", plane),
		"infrastructureRef": reference(infrav1.GroupVersion.Group, "AWSManagedCluster", e.Name),
	}
	if block := e.Cluster.ServiceCIDR; block != "" && !e.Cluster.IPv6 {
		spec["clusterNetwork"] = map[string]any{"services": map[string]any{"cidrBlocks": []any{block}}}
	}
	return spec
}

func (e *EKS) controlPlane(eksName string) map[string]any {
	c := e.Cluster
	spec := map[string]any{"region": e.Region, "sshKeyName": "", "version": "v" + c.Version}
	set(spec, "eksClusterName", eksName, "")
	set(spec, "roleName", roleName(c.RoleARN), ekscontrolplanev1.DefaultEKSControlPlaneRole)
	setList(spec, "roleAdditionalPolicies", e.additionalPolicies(c.RoleARN, topology.ControlPlanePolicies()))
	setMap(spec, "network", e.network())
	e.Workers.setBastion(spec)
	setMap(spec, "endpointAccess", e.endpointAccess())
	setMap(spec, "logging", e.logging())
	setMap(spec, "additionalTags", e.additionalTags())
	if c.Key != "" {
		spec["encryptionConfig"] = map[string]any{"provider": c.Key, "resources": []any{"secrets"}}
	}
	if c.Authentication != "" {
		spec["accessConfig"] = map[string]any{"authenticationMode": strings.ToLower(c.Authentication)}
	}
	if c.WithoutSelfManagedAddons() {
		spec["bootstrapSelfManagedAddons"] = false
	}
	if c.Support == "STANDARD" {
		spec["upgradePolicy"] = "standard"
	}
	if e.OIDC != nil {
		spec["associateOIDCProvider"] = true
	}
	if e.Identity != nil {
		spec["oidcIdentityProviderConfig"] = e.identityProvider()
	}
	setList(spec, "accessEntries", e.accessEntries())
	setList(spec, "addons", e.addons())
	if blocks := slices.Sorted(maps.Keys(e.VPC.Blocks)); len(blocks) > 0 && len(e.podSubnets()) > 0 {
		spec["secondaryCidrBlock"] = blocks[0]
	}
	return spec
}

func (e *EKS) endpointAccess() map[string]any {
	out := map[string]any{}
	if !e.Cluster.Public || e.Cluster.Private {
		out["public"], out["private"] = e.Cluster.Public, e.Cluster.Private
	}
	blocks := slices.DeleteFunc(slices.Sorted(slices.Values(e.Cluster.PublicCIDRs)), ec2.IsAnywhere)
	setList(out, "publicCIDRs", anys(blocks))
	return out
}

func (e *EKS) logging() map[string]any {
	if len(e.Cluster.Logging) == 0 {
		return nil
	}
	out := map[string]any{}
	for kind, field := range map[string]string{
		"api": "apiServer", "audit": "audit", "authenticator": "authenticator", "controllerManager": "controllerManager", "scheduler": "scheduler",
	} {
		out[field] = slices.Contains(e.Cluster.Logging, kind)
	}
	return out
}

// additionalTags returns the tags of the user that the cluster and all that it owns have.
func (e *EKS) additionalTags() map[string]any {
	out := map[string]any{}
	if !e.Owned {
		return out
	}
	for k, v := range e.Cluster.Tags {
		everywhere := !e.ownsVPC() || e.VPC.Tags[k] == v
		for _, g := range e.NodeGroups {
			everywhere = everywhere && (g.Tags[k] == v || !e.Owns(eks.NodeGroupKind, g.Name))
		}
		if everywhere && byUser(k) {
			out[k] = v
		}
	}
	return out
}

// tagsOf returns the tags of the user that a part of the cluster has in addition. Of a part that another
// tool has made, those are the ones with which it differs: nodes do not have its other tags.
func (e *EKS) tagsOf(kind, name string, part cloud.Tags) map[string]any {
	out, common := map[string]any{}, e.additionalTags()
	for k, v := range part {
		if e.Owned && byUser(k) && common[k] != v && (e.Owns(kind, name) || common[k] != nil) {
			out[k] = v
		}
	}
	return out
}

// byUser reports whether neither AWS nor Cluster API nor this program sets a tag.
func byUser(key string) bool {
	return key != "Name" && !slices.ContainsFunc([]string{"aws:", "clusterawsadm/", "sigs.k8s.io/cluster-api-provider-aws/", cloud.CloudProviderTagPrefix},
		func(prefix string) bool { return strings.HasPrefix(key, prefix) })
}

func (e *EKS) identityProvider() map[string]any {
	p := e.Identity
	out := map[string]any{"identityProviderConfigName": p.Name, "issuerUrl": p.Issuer, "clientId": p.Client}
	set(out, "usernameClaim", p.UserClaim, "")
	set(out, "usernamePrefix", p.UserPrefix, "")
	set(out, "groupsClaim", p.GroupsClaim, "")
	set(out, "groupsPrefix", p.GroupsPrefix, "")
	setMap(out, "requiredClaims", anyMap(p.RequiredClaims))
	setMap(out, "tags", e.tagsOf(eks.IdentityProviderKind, p.Name, p.Tags))
	return out
}

// accessEntries lists the entries of users. EKS and runs make those of nodes.
func (e *EKS) accessEntries() (out []any) {
	for _, a := range e.AccessEntries {
		if a.Type != "STANDARD" {
			continue
		}
		x := map[string]any{"principalARN": a.Principal}
		set(x, "username", a.User, a.Principal)
		setList(x, "kubernetesGroups", anys(a.Groups))
		var policies []any
		for _, p := range a.Policies {
			scope := map[string]any{"type": "cluster"}
			if len(p.Namespaces) > 0 {
				scope = map[string]any{"type": "namespace", "namespaces": anys(p.Namespaces)}
			}
			policies = append(policies, map[string]any{"policyARN": p.ARN, "accessScope": scope})
		}
		setList(x, "accessPolicies", policies)
		out = append(out, x)
	}
	return out
}

func (e *EKS) addons() (out []any) {
	for _, a := range e.Addons {
		x := map[string]any{"name": a.Name, "version": a.Version}
		set(x, "configuration", a.Configuration, "")
		set(x, "serviceAccountRoleARN", a.RoleARN, "")
		out = append(out, x)
	}
	return out
}

// pool returns the MachinePool and the AWSManagedMachinePool of a node group, and the bootstrap
// configuration of its own launch template.
func (e *EKS) pool(g eks.NodeGroupState) []Object {
	name, eksName := objectName(g.Name, kubernetesName(g.Name), longestNodeGroupName)
	version := ""
	if g.Version != "" && g.ImageType != string(expinfrav1.Custom) {
		version = "v" + g.Version + ".0"
	}
	spec := e.nodeGroup(g, eksName)
	group := object(expinfrav1.GroupVersion.String(), "AWSManagedMachinePool", name, spec)
	group.Annotations = nodeGroupAnnotations(g)
	var config []Object
	var ref map[string]any
	if t, own := e.Templates[g.Name]; own {
		if e.images[t.Image].version != "" {
			version = e.images[t.Image].version
		}
		spec["awsLaunchTemplate"] = e.launchTemplate(t)
		group.comment("spec.awsLaunchTemplate.additionalSecurityGroups", foreignGroups)
		if image := e.images[t.Image]; image.version != "" && image.lookup == "" {
			group.comment("spec.awsLaunchTemplate.ami", newerImage)
		}
		if config = e.templateConfig(t, name); len(config) > 0 {
			ref = reference(eksbootstrapv1.GroupVersion.Group, config[0].Kind, config[0].Name)
		}
	}
	group.comment("spec", strings.Join(groupNotes(g, e.Templates), "\n"))
	return append([]Object{machinePool(e.Name, name, version, g.Desired, "AWSManagedMachinePool", ref), group}, config...)
}

// groupNotes says what the manifest of a node group does not describe.
func groupNotes(g eks.NodeGroupState, own map[string]ec2.TemplateContent) (notes []string) {
	if _, ok := own[g.Name]; g.Template != "" && !ok {
		note := fmt.Sprintf(
			"Another tool has made the launch template %s (%s, version %s) of the nodes:\nruns leave it as it is. Volumes, user data, security groups and metadata options are there.",
			g.TemplateName,
			g.Template,
			g.TemplateVersion,
		)
		if g.ImageType == string(expinfrav1.Custom) {
			note += "\nThe AMI is there, too: runs do not upgrade the nodes."
		}
		notes = append(notes, note)
	}
	return notes
}

func (e *EKS) nodeGroup(g eks.NodeGroupState, eksName string) map[string]any {
	spec := map[string]any{"scaling": map[string]any{"minSize": int64(g.MinSize), "maxSize": int64(g.MaxSize)}}
	set(spec, "eksNodegroupName", eksName, "")
	set(spec, "roleName", roleName(g.RoleARN), expinfrav1.DefaultEKSNodegroupRole)
	setList(spec, "roleAdditionalPolicies", e.additionalPolicies(g.RoleARN, topology.NodePolicies()))
	set(spec, "amiType", g.ImageType, "")
	if g.Capacity == "SPOT" {
		spec["capacityType"] = "spot"
	}
	if len(g.InstanceTypes) == 1 {
		spec["instanceType"] = g.InstanceTypes[0]
	}
	if g.DiskSize > 0 && g.DiskSize != defaultDisk {
		spec["diskSize"] = int64(g.DiskSize)
	}
	if !same(g.Subnets, e.privateSubnets()) {
		spec["subnetIDs"] = anys(g.Subnets)
	}
	setMap(spec, "additionalTags", e.tagsOf(eks.NodeGroupKind, g.Name, g.Tags))
	setMap(spec, "labels", anyMap(g.Labels))
	setList(spec, "taints", taints(g))
	switch {
	case g.MaxUnavailablePercentage > 0:
		spec["updateConfig"] = map[string]any{"maxUnavailablePercentage": int64(g.MaxUnavailablePercentage)}
	case g.MaxUnavailable > 1:
		spec["updateConfig"] = map[string]any{"maxUnavailable": int64(g.MaxUnavailable)}
	}
	setList(spec, "lifecycleHooks", translate(e.Hooks[g.Name], func(h expinfrav1.AWSLifecycleHook) any { return tree(h) }))
	if g.Repair {
		spec["nodeRepairConfig"] = map[string]any{"enabled": true}
	}
	if g.SSHKey != "" {
		access := map[string]any{"sshKeyName": g.SSHKey}
		if len(g.SSHFrom) == 0 {
			access["public"] = true
		}
		spec["remoteAccess"] = access
	}
	return spec
}

// defaultDisk is the size in GiB of the volumes of nodes, if a node group has none.
const defaultDisk = 20

func taints(g eks.NodeGroupState) (out []any) {
	effects := map[string]string{"NO_SCHEDULE": "no-schedule", "NO_EXECUTE": "no-execute", "PREFER_NO_SCHEDULE": "prefer-no-schedule"}
	for _, t := range g.Taints {
		out = append(out, map[string]any{"key": t.Key, "value": t.Value, "effect": effects[t.Effect]})
	}
	return out
}

func (e *EKS) fargateProfile(f eks.FargateProfileState) Object {
	name, eksName := objectName(f.Name, kubernetesName(f.Name), longestProfileName)
	spec := map[string]any{"clusterName": e.Name}
	set(spec, "profileName", eksName, "")
	set(spec, "roleName", roleName(f.RoleARN), expinfrav1.DefaultEKSFargateRole)
	if !same(f.Subnets, e.privateSubnets()) {
		spec["subnetIDs"] = anys(f.Subnets)
	}
	setMap(spec, "additionalTags", e.tagsOf(eks.FargateProfileKind, f.Name, f.Tags))
	var selectors []any
	for _, s := range f.Selectors {
		x := map[string]any{"namespace": s.Namespace}
		setMap(x, "labels", anyMap(s.Labels))
		selectors = append(selectors, x)
	}
	setList(spec, "selectors", selectors)
	return object(expinfrav1.GroupVersion.String(), "AWSFargateProfile", name, spec)
}

// roleName returns the name of a role: "nodes" for arn:aws:iam::123456789012:role/path/nodes.
func roleName(arn string) string { return arn[strings.LastIndexByte(arn, '/')+1:] }

// Remarks are sentences for the reader of the manifest.
func (e *EKS) Remarks() (out []string) {
	out = remarks(e.Owned)
	if e.OwnsRoles() {
		out = append(out, "The cluster has IAM roles of its own: use --set CAPA_EKS_IAM=true with each command.")
	}
	return append(out, unread(e.Unread)...)
}

// Indescribable returns why no manifest can describe a node group; "" if one can.
func (e *EKS) Indescribable(g eks.NodeGroupState) string {
	if g.ImageType != "" && !slices.Contains(imageTypes(), expinfrav1.ManagedMachineAMIType(g.ImageType)) {
		return fmt.Sprintf("an AWSManagedMachinePool cannot have the amiType %s", g.ImageType)
	}
	return ""
}

// imageTypes lists the values of amiType in an AWSManagedMachinePool.
func imageTypes() []expinfrav1.ManagedMachineAMIType {
	return []expinfrav1.ManagedMachineAMIType{
		expinfrav1.Al2x86_64, expinfrav1.Al2x86_64GPU, expinfrav1.Al2Arm64, expinfrav1.Custom,
		expinfrav1.BottleRocketArm64, expinfrav1.BottleRocketx86_64, expinfrav1.BottleRocketArm64Fips, expinfrav1.BottleRocketx86_64Fips,
		expinfrav1.BottleRocketArm64Nvidia, expinfrav1.BottleRocketx86_64Nvidia,
		expinfrav1.WindowsCore2019x86_64, expinfrav1.WindowsFull2019x86_64, expinfrav1.WindowsCore2022x86_64, expinfrav1.WindowsFull2022x86_64,
		expinfrav1.Al2023x86_64, expinfrav1.Al2023Arm64, expinfrav1.Al2023x86_64Neuron, expinfrav1.Al2023x86_64Nvidia, expinfrav1.Al2023Arm64Nvidia,
	}
}
