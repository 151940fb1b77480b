package reconcile_test

import (
	"strings"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
)

// plane returns the only EKS control plane.
func plane(s *awssim.State) *awssim.EKSCluster {
	for _, c := range s.EKS.Clusters {
		return c
	}
	return nil
}

func nodeGroup(s *awssim.State, arn string) *awssim.EKSNodeGroup {
	for _, g := range plane(s).NodeGroups {
		if g.ARN == arn {
			return g
		}
	}
	return nil
}

func addon(s *awssim.State, arn string) *awssim.EKSAddon {
	for _, a := range plane(s).Addons {
		if a.ARN == arn {
			return a
		}
	}
	return nil
}

// accessEntry returns the entry with the ARN, or the one that was created in its place:
// the end of an ARN is random.
func accessEntry(s *awssim.State, arn string) *awssim.EKSAccess {
	for _, e := range plane(s).Access {
		if e.ARN[:strings.LastIndex(e.ARN, "/")] == arn[:strings.LastIndex(arn, "/")] {
			return e
		}
	}
	return nil
}

func fargateProfile(s *awssim.State, arn string) *awssim.EKSFargate {
	for _, f := range plane(s).Fargate {
		if f.ARN == arn {
			return f
		}
	}
	return nil
}

// identityProvider returns the only provider, whatever its ARN: a change creates it
// again.
func identityProvider(s *awssim.State) *awssim.EKSProvider {
	for _, p := range plane(s).Providers {
		return p
	}
	return nil
}

func iamRole(s *awssim.State, arn string) *awssim.Role {
	return s.IAM.Roles[arn[strings.LastIndex(arn, "/")+1:]]
}

// eksTagsOf returns the tags of the EKS resource with that ARN.
func eksTagsOf(s *awssim.State, arn string) map[string]string {
	c := plane(s)
	switch {
	case c.ARN == arn:
		return c.Tags
	case nodeGroup(s, arn) != nil:
		return nodeGroup(s, arn).Tags
	case addon(s, arn) != nil:
		return addon(s, arn).Tags
	case accessEntry(s, arn) != nil:
		return accessEntry(s, arn).Tags
	case fargateProfile(s, arn) != nil:
		return fargateProfile(s, arn).Tags
	}
	if p := s.IAM.Providers[arn]; p != nil {
		return p.Tags
	}
	if r := iamRole(s, arn); r != nil {
		return r.Tags
	}
	return nil
}

// eksTampers are the changes to EKS resources.
func eksTampers() map[string]tamper {
	all := map[string]tamper{
		"eks-cluster version":                    func(s *awssim.State, _, _ string) { plane(s).Version = "1.33" },
		"eks-cluster endpointAccess.public":      func(s *awssim.State, _, _ string) { plane(s).Public, plane(s).Private = !plane(s).Public, true },
		"eks-cluster endpointAccess.private":     func(s *awssim.State, _, _ string) { plane(s).Private = !plane(s).Private },
		"eks-cluster endpointAccess.publicCIDRs": func(s *awssim.State, _, _ string) { plane(s).PublicCIDRs = []string{"192.0.2.0/24"} },
		"eks-cluster logging":                    func(s *awssim.State, _, _ string) { plane(s).Logging = map[string]bool{"scheduler": true} },
		"eks-cluster upgradePolicy":              func(s *awssim.State, _, _ string) { plane(s).Support = flip(plane(s).Support, "STANDARD", "EXTENDED") },
		"eks-cluster authenticationMode":         func(s *awssim.State, _, _ string) { plane(s).Authentication = "API_AND_CONFIG_MAP" },
		"eks-cluster subnet":                     func(s *awssim.State, _, _ string) { plane(s).Subnets = plane(s).Subnets[1:] },
		"eks-cluster securityGroup":              func(s *awssim.State, _, _ string) { plane(s).Groups = nil },
		"eks-cluster encryptionKey":              func(s *awssim.State, _, _ string) { plane(s).Key = "" },
		"node-group scaling.minSize":             func(s *awssim.State, id, _ string) { nodeGroup(s, id).Least = 0 },
		"node-group scaling.maxSize":             func(s *awssim.State, id, _ string) { nodeGroup(s, id).Most += 3 },
		"node-group scaling.desiredSize":         func(s *awssim.State, id, _ string) { nodeGroup(s, id).Desired++ },
		"node-group updateConfig": func(s *awssim.State, id, _ string) {
			nodeGroup(s, id).MaxUnavailable, nodeGroup(s, id).MaxUnavailablePercentage = 7, 0
		},
		"node-group nodeRepair": func(s *awssim.State, id, _ string) { nodeGroup(s, id).Repair = !nodeGroup(s, id).Repair },
		"node-group label":      func(s *awssim.State, id, _ string) { nodeGroup(s, id).Labels = map[string]string{"tampered": "yes"} },
		"node-group taint":      func(s *awssim.State, id, _ string) { nodeGroup(s, id).Taints = nil },
		"node-group version": func(s *awssim.State, id, _ string) {
			nodeGroup(s, id).Version, nodeGroup(s, id).Release = "1.33", "1.33.0-20260921"
		},
		"node-group launchTemplate.version": func(s *awssim.State, id, _ string) { nodeGroup(s, id).TemplateVersion = "77" },
		"node-group lifecycleHook": func(s *awssim.State, id, field string) {
			delete(s.AutoScaling.Groups[nodeGroup(s, id).Scaling].Hooks, strings.TrimPrefix(field, "lifecycleHook "))
		},
		"node-group nodeTag": func(s *awssim.State, id, field string) {
			delete(s.AutoScaling.Groups[nodeGroup(s, id).Scaling].Tags, strings.TrimPrefix(field, "nodeTag "))
		},
		"addon version":               func(s *awssim.State, id, _ string) { addon(s, id).Version = "v0.0.1-eksbuild.1" },
		"addon configuration":         func(s *awssim.State, id, _ string) { addon(s, id).Configuration = `{"tampered":true}` },
		"addon serviceAccountRoleARN": func(s *awssim.State, id, _ string) { addon(s, id).RoleARN += tampered },
		"access-entry type": func(s *awssim.State, id, _ string) {
			accessEntry(s, id).Type = flip(accessEntry(s, id).Type, "EC2_LINUX", "STANDARD")
		},
		"access-entry username": func(s *awssim.State, id, _ string) { accessEntry(s, id).User = tampered },
		"access-entry group":    func(s *awssim.State, id, _ string) { accessEntry(s, id).Groups = []string{tampered} },
		"access-entry policy":   func(s *awssim.State, id, _ string) { accessEntry(s, id).Policies = nil },
		"role policy": func(s *awssim.State, id, _ string) {
			iamRole(s, id).Attached = []string{"arn:aws:iam::aws:policy/ReadOnlyAccess"}
		},
		"oidc-provider audience": func(s *awssim.State, id, _ string) { s.IAM.Providers[id].Clients = nil },
	}
	for field, of := range map[string]func(*awssim.EKSProvider) *string{
		"issuerUrl":      func(p *awssim.EKSProvider) *string { return &p.Issuer },
		"clientId":       func(p *awssim.EKSProvider) *string { return &p.Client },
		"usernameClaim":  func(p *awssim.EKSProvider) *string { return &p.UserClaim },
		"usernamePrefix": func(p *awssim.EKSProvider) *string { return &p.UserPrefix },
		"groupsClaim":    func(p *awssim.EKSProvider) *string { return &p.GroupsClaim },
		"groupsPrefix":   func(p *awssim.EKSProvider) *string { return &p.GroupsPrefix },
	} {
		all["identity-provider "+field] = func(s *awssim.State, _, _ string) { *of(identityProvider(s)) = tampered }
	}
	all["identity-provider requiredClaim"] = func(s *awssim.State, _, _ string) { identityProvider(s).RequiredClaims = nil }
	all["identity-provider tag"] = func(s *awssim.State, _, field string) {
		identityProvider(s).Tags[strings.TrimPrefix(field, "tag ")] = tampered
	}
	for _, kind := range []string{"eks-cluster", "node-group", "addon", "access-entry", "fargate-profile", "oidc-provider", "role"} {
		all[kind+" tag"] = func(s *awssim.State, id, field string) {
			eksTagsOf(s, id)[strings.TrimPrefix(field, "tag ")] = tampered
		}
	}
	return all
}

func flip(value, one, other string) string {
	if value == one {
		return other
	}
	return one
}

// eksConflicts are changes that EKS does not permit.
func eksConflicts() map[string]tamper {
	return map[string]tamper{
		"eks-cluster ipFamily":    func(s *awssim.State, _, _ string) { plane(s).Family = flip(plane(s).Family, "ipv4", "ipv6") },
		"eks-cluster serviceCIDR": func(s *awssim.State, _, _ string) { plane(s).ServiceCIDR = "10.99.0.0/16" },
		"eks-cluster role":        func(s *awssim.State, _, _ string) { plane(s).RoleARN += tampered },
		"node-group role":         func(s *awssim.State, id, _ string) { nodeGroup(s, id).RoleARN += tampered },
		"node-group amiType":      func(s *awssim.State, id, _ string) { nodeGroup(s, id).Kind = "BOTTLEROCKET_x86_64" },
		"node-group capacityType": func(s *awssim.State, id, _ string) {
			nodeGroup(s, id).Capacity = flip(nodeGroup(s, id).Capacity, "SPOT", "ON_DEMAND")
		},
		"node-group instanceTypes":  func(s *awssim.State, id, _ string) { nodeGroup(s, id).InstanceTypes = []string{"m5.xlarge"} },
		"node-group diskSize":       func(s *awssim.State, id, _ string) { nodeGroup(s, id).DiskSize = 77 },
		"node-group sshKey":         func(s *awssim.State, id, _ string) { nodeGroup(s, id).SSHKey = tampered },
		"node-group subnets":        func(s *awssim.State, id, _ string) { nodeGroup(s, id).Subnets = []string{"subnet-00000000000000009"} },
		"node-group launchTemplate": func(s *awssim.State, id, _ string) { nodeGroup(s, id).Template = "lt-00000000000000009" },
		"fargate-profile role":      func(s *awssim.State, id, _ string) { fargateProfile(s, id).RoleARN += tampered },
		"fargate-profile subnets": func(s *awssim.State, id, _ string) {
			fargateProfile(s, id).Subnets = []string{"subnet-00000000000000009"}
		},
		"fargate-profile selectors": func(s *awssim.State, id, _ string) { fargateProfile(s, id).Selectors = nil },
	}
}
