package permission

import (
	"maps"
	"slices"
	"strings"

	infrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/api/v1beta2"
	ekscontrolplanev1 "sigs.k8s.io/cluster-api-provider-aws/v2/controlplane/eks/api/v1beta2"
	expinfrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/exp/api/v1beta2"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
)

// Of returns the scope of one cluster. What its identities are not allowed to
// become by their own trust policies is not in our hands.
func Of(m *manifest.Cluster) Scope {
	roles, prefixes, keys := map[string]bool{}, map[string]bool{}, map[string]bool{}
	s := Scope{Partition: m.Partition(), Region: m.Region, Buckets: []string{}}
	for _, spec := range machineSpecs(m) {
		if spec.IAMInstanceProfile != "" {
			roles["*"+spec.IAMInstanceProfile] = true // a role has the name of its profile, as a rule, and may have a path
		}
		if p := spec.CloudInit.SecretPrefix; p != "" {
			prefixes[p] = true
		}
		for _, v := range append(slices.Clone(spec.NonRootVolumes), value(spec.RootVolume)) {
			if v.EncryptionKey != "" {
				keys[s.key(v.EncryptionKey)] = true
			}
		}
	}
	maps.Copy(roles, hookRoles(m))
	s.Templates = slices.ContainsFunc(m.Pools, func(p manifest.Pool) bool {
		return p.Template() != nil || len(p.Hooks()) > 0
	})
	s.NoPools = !slices.ContainsFunc(m.Pools, func(p manifest.Pool) bool { return p.Scaling != nil })
	s.Kind = SelfManaged
	if m.EKS != nil {
		s.Kind = EKS
		s.ofEKS(m, keys)
	}
	s.Roles, s.Prefixes, s.Keys = names(roles), names(prefixes), names(keys)
	if f := m.FlowLogs; f != nil {
		s.LogBuckets = f.Bucket != "" || f.Removed
		if f.Role != "" {
			s.FlowLogs = []string{f.Role}
		}
	}
	s.Unused = unused(m)
	if b := m.Infra.Spec.S3Bucket; b != nil {
		s.Buckets = []string{b.Name}
	}
	for _, id := range m.Identity {
		if id.Role != nil {
			s.Assume = append(s.Assume, id.Role.RoleArn)
		}
	}
	return s
}

// unused lists actions that only clusters with rare parts need. A policy has room for 6,144 characters.
func unused(m *manifest.Cluster) (actions []string) {
	specs := machineSpecs(m)
	is := func(has func(infrav1.AWSMachineSpec) bool) bool { return slices.ContainsFunc(specs, has) }
	if !is(func(s infrav1.AWSMachineSpec) bool { return s.HostID != nil || s.Tenancy == "host" }) {
		actions = append(actions, "ec2:DescribeHosts")
	}
	if !is(func(s infrav1.AWSMachineSpec) bool { return s.CapacityReservationID != nil }) {
		actions = append(actions, "ec2:DescribeCapacityReservations")
	}
	if m.Infra.Spec.NetworkSpec.VPC.ID == "" {
		actions = append(actions, "ec2:DescribeNetworkAcls")
	}
	if m.FlowLogs == nil {
		actions = append(actions, "ec2:CreateFlowLogs")
	}
	if m.EKS != nil {
		actions = append(actions, unusedOfEKS(m)...)
	}
	return actions
}

// unusedOfEKS is unused, for what only EKS has.
func unusedOfEKS(m *manifest.Cluster) (actions []string) {
	addons := m.EKS.ControlPlane.Spec.Addons
	if !m.EKS.HasPodIdentities() && !m.EKS.HasPodIdentityAgent() {
		actions = append(actions, "eks:ListPodIdentityAssociations")
	}
	if !m.EKS.HasPodIdentities() && len(m.EKS.AddonIdentities) == 0 { // those of an earlier manifest are found, and what their deletion lacks is told
		actions = append(
			actions,
			"eks:CreatePodIdentityAssociation",
			"eks:DeletePodIdentityAssociation",
			"eks:DescribePodIdentityAssociation",
			"eks:UpdatePodIdentityAssociation",
		)
	}
	if addons == nil || !slices.ContainsFunc(*addons, func(a ekscontrolplanev1.Addon) bool { return a.Configuration != "" }) && len(m.EKS.AddonIdentities) == 0 {
		actions = append(actions, "eks:DescribeAddonConfiguration")
	}
	entries := m.EKS.ControlPlane.Spec.AccessEntries
	if !slices.ContainsFunc(entries, func(e ekscontrolplanev1.AccessEntry) bool { return strings.Contains(e.PrincipalARN, ":user/") }) {
		actions = append(actions, "iam:GetUser")
	}
	if !m.EKS.EnableIAM && len(m.EKS.PodRoles(m.Region)) == 0 {
		actions = append(actions, "iam:GetPolicy")
	}
	if !setsBoundary(m) {
		actions = append(actions, "iam:PutRolePermissionsBoundary")
	}
	if !m.EKS.HasKarpenter() { // no other role has what these are for, unless somebody has added it
		actions = append(
			actions,
			"iam:DeleteRolePolicy",
			"iam:GetRolePolicy",
			"iam:ListInstanceProfilesForRole",
			"iam:ListRolePolicies",
			"iam:PutRolePolicy",
		)
	}
	return actions
}

// setsBoundary reports whether the manifest gives a role of EKS a permissions boundary.
func setsBoundary(m *manifest.Cluster) bool {
	return m.EKS.ControlPlane.Spec.RolePermissionsBoundary != "" ||
		slices.ContainsFunc(m.Pools, func(p manifest.Pool) bool { return p.Managed != nil && p.Managed.Spec.RolePermissionsBoundary != "" }) ||
		slices.ContainsFunc(m.EKS.Fargate, func(f *expinfrav1.AWSFargateProfile) bool { return f.Spec.RolePermissionsBoundary != "" })
}

// ofEKS adds the roles and the key of a cluster of EKS.
func (s *Scope) ofEKS(m *manifest.Cluster, keys map[string]bool) {
	plane := m.EKS.ControlPlane.Spec
	s.EKSRoles = eksRoles(m)
	if plane.Addons != nil {
		for _, a := range *plane.Addons {
			if a.ServiceAccountRoleArn != nil {
				s.AddonRoles = append(s.AddonRoles, *a.ServiceAccountRoleArn)
			}
		}
	}
	s.PodRoles = podRoles(m.EKS)
	if m.EKS.HasKarpenter() {
		s.Karpenter = plane.EKSClusterName
	}
	if m.EKS.EnableIAM {
		s.MadeRoles = s.EKSRoles
	}
	if len(m.EKS.PodRoles(m.Region)) > 0 || m.EKS.HasKarpenter() {
		made := strings.TrimPrefix(m.EKS.PodRolePath(m.Region), "/") + "*"
		s.PodRoles = append(s.PodRoles, "arn:"+s.Partition+":iam::*:role/"+made)
		s.MadeRoles = append(slices.Clone(s.MadeRoles), made)
	}
	if key := m.EKS.EncryptionKey(); key != "" {
		keys[s.key(key)] = true
	}
}

// eksRoles lists the roles of a control plane, of node groups and of Fargate, for ARNs: they may have a path.
func eksRoles(m *manifest.Cluster) []string {
	plane, roles := m.EKS.ControlPlane.Spec, map[string]bool{}
	if plane.RoleName != nil {
		roles["*"+*plane.RoleName] = true
	}
	if a := m.EKS.AutoMode; a != nil && a.Role != "" {
		roles["*"+a.Role] = true
	}
	for _, f := range m.EKS.Fargate {
		roles["*"+f.Spec.RoleName] = true
	}
	for _, p := range m.Pools {
		if p.Managed != nil {
			roles["*"+p.Managed.Spec.RoleName] = true
		}
	}
	return names(roles)
}

// podRoles lists the roles of pod identity associations, each once.
func podRoles(e *manifest.EKS) (roles []string) {
	add := func(arn string) {
		if arn != "" && !slices.Contains(roles, arn) {
			roles = append(roles, arn)
		}
	}
	for _, p := range e.PodIdentities {
		add(p.RoleARN)
	}
	for _, name := range slices.Sorted(maps.Keys(e.AddonIdentities)) {
		for _, p := range e.AddonIdentities[name] {
			add(p.RoleARN)
		}
	}
	return roles
}

// machineSpecs lists what all machines of a cluster are to be like.
func machineSpecs(m *manifest.Cluster) (out []infrav1.AWSMachineSpec) {
	if m.ControlPlane != nil {
		out = append(out, m.ControlPlane.Template.Spec.Template.Spec)
	}
	for _, d := range m.Deployments {
		out = append(out, d.Template.Spec.Template.Spec)
	}
	for _, x := range m.Machines {
		out = append(out, x.Infra.Spec)
	}
	for _, p := range m.Pools {
		if t := p.Template(); t != nil {
			out = append(out, infrav1.AWSMachineSpec{
				IAMInstanceProfile: t.IamInstanceProfile, RootVolume: t.RootVolume, NonRootVolumes: t.NonRootVolumes, CapacityReservationID: t.CapacityReservationID,
			})
		}
	}
	return out
}

// hookRoles are the roles that lifecycle hooks of pools name, with which Auto
// Scaling tells others of its machines.
func hookRoles(m *manifest.Cluster) map[string]bool {
	roles := map[string]bool{}
	for _, p := range m.Pools {
		for _, hook := range p.Hooks() {
			if hook.RoleARN != nil {
				_, name, _ := strings.Cut(*hook.RoleARN, ":role/")
				roles[name] = true
			}
		}
	}
	return roles
}

// key returns the ARN of a KMS key. An alias names a key only to who looks it
// up, and a policy does not: any key, then.
func (s Scope) key(name string) string {
	switch {
	case strings.HasPrefix(name, "arn:") && !strings.Contains(name, ":alias/"):
		return name
	case strings.Contains(name, "alias/"):
		return s.arn("kms", "key/*")
	}
	return s.arn("kms", "key/"+name)
}

func value(v *infrav1.Volume) infrav1.Volume {
	if v == nil {
		return infrav1.Volume{}
	}
	return *v
}

func names(set map[string]bool) []string { return slices.Sorted(maps.Keys(set)) }
