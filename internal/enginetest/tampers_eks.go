package enginetest

import (
	"strings"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
)

// IdentityProvider returns the only provider, whatever its ARN: a change creates it
// again.
func IdentityProvider(s *awssim.State) *awssim.EKSProvider {
	for _, p := range Plane(s).Providers {
		return p
	}
	return nil
}

// eventRule returns the only rule of EventBridge.
func eventRule(s *awssim.State) *awssim.EventRule {
	for _, r := range s.EventBridge.Rules {
		return r
	}
	return nil
}

// queueOf returns the only queue.
func queueOf(s *awssim.State) *awssim.Queue {
	for _, q := range s.SQS.Queues {
		return q
	}
	return nil
}

// EKSTampers are the changes to EKS resources.
func EKSTampers() map[string]Tamper {
	all := map[string]Tamper{
		"eks-cluster autoMode": func(s *awssim.State, _, _ string) { Plane(s).Auto = nil },
		"eks-cluster nodePool": func(s *awssim.State, _, _ string) { Plane(s).Auto.NodePools = []string{"general-purpose"} },
		"addon podIdentityAssociation": func(s *awssim.State, _, _ string) {
			for _, p := range Plane(s).PodIdentities {
				if p.Owner != "" {
					p.RoleARN = "arn:aws:iam::123456789012:role/shop-orders"
				}
			}
		},
		"eks-cluster version":                    func(s *awssim.State, _, _ string) { Plane(s).Version = "1.33" },
		"eks-cluster endpointAccess.public":      func(s *awssim.State, _, _ string) { Plane(s).Public = !Plane(s).Public },
		"eks-cluster endpointAccess.private":     func(s *awssim.State, _, _ string) { Plane(s).Private = !Plane(s).Private },
		"eks-cluster endpointAccess.publicCIDRs": func(s *awssim.State, _, _ string) { Plane(s).PublicCIDRs = []string{"192.0.2.0/24"} },
		"eks-cluster logging":                    func(s *awssim.State, _, _ string) { Plane(s).Logging = map[string]bool{"scheduler": true} },
		"eks-cluster upgradePolicy": func(s *awssim.State, _, _ string) {
			Plane(s).Support = flip(Plane(s).Support, "STANDARD", "EXTENDED")
		},
		"eks-cluster authenticationMode": func(s *awssim.State, _, _ string) { Plane(s).Authentication = "API_AND_CONFIG_MAP" },
		"eks-cluster subnet":             func(s *awssim.State, _, _ string) { Plane(s).Subnets = Plane(s).Subnets[1:] },
		"eks-cluster securityGroup":      func(s *awssim.State, _, _ string) { Plane(s).Groups = nil },
		"eks-cluster encryptionKey":      func(s *awssim.State, _, _ string) { Plane(s).Key = "" },
		"node-group scaling.minSize":     func(s *awssim.State, id, _ string) { NodeGroup(s, id).Least = 0 },
		"node-group scaling.maxSize":     func(s *awssim.State, id, _ string) { NodeGroup(s, id).Most += 3 },
		"node-group scaling.desiredSize": func(s *awssim.State, id, _ string) { NodeGroup(s, id).Desired++ },
		"node-group updateConfig": func(s *awssim.State, id, _ string) {
			NodeGroup(s, id).MaxUnavailable, NodeGroup(s, id).MaxUnavailablePercentage = 7, 0
		},
		"node-group nodeRepair": func(s *awssim.State, id, _ string) {
			NodeGroup(s, id).Repair = !NodeGroup(s, id).Repair
		},
		"node-group label": func(s *awssim.State, id, _ string) {
			NodeGroup(s, id).Labels = map[string]string{"tampered": "yes"}
		},
		"node-group taint": func(s *awssim.State, id, _ string) { NodeGroup(s, id).Taints = nil },
		"node-group version": func(s *awssim.State, id, _ string) {
			NodeGroup(s, id).Version, NodeGroup(s, id).Release = "1.33", "1.33.0-20260921"
		},
		"node-group launchTemplate.version": func(s *awssim.State, id, _ string) { NodeGroup(s, id).TemplateVersion = "77" },
		"node-group lifecycleHook": func(s *awssim.State, id, field string) {
			delete(s.AutoScaling.Groups[NodeGroup(s, id).Scaling].Hooks, strings.TrimPrefix(field, "lifecycleHook "))
		},
		"node-group nodeTag": func(s *awssim.State, id, field string) {
			delete(s.AutoScaling.Groups[NodeGroup(s, id).Scaling].Tags, strings.TrimPrefix(field, "nodeTag "))
		},
		"addon version":               func(s *awssim.State, id, _ string) { Addon(s, id).Version = "v0.0.1-eksbuild.1" },
		"addon configuration":         func(s *awssim.State, id, _ string) { Addon(s, id).Configuration = `{"tampered":true}` },
		"addon serviceAccountRoleARN": func(s *awssim.State, id, _ string) { Addon(s, id).RoleARN += tampered },
		"access-entry type": func(s *awssim.State, id, _ string) {
			AccessEntry(s, id).Type = flip(AccessEntry(s, id).Type, "EC2_LINUX", "STANDARD")
		},
		"access-entry username": func(s *awssim.State, id, _ string) { AccessEntry(s, id).User = tampered },
		"access-entry group":    func(s *awssim.State, id, _ string) { AccessEntry(s, id).Groups = []string{tampered} },
		"access-entry policy":   func(s *awssim.State, id, _ string) { AccessEntry(s, id).Policies = nil },
		"pod-identity role":     func(s *awssim.State, id, _ string) { PodIdentity(s, id).RoleARN += tampered },
		"event-rule events":     func(s *awssim.State, _, _ string) { eventRule(s).Pattern = `{"source":["aws.ec2"]}` },
		"event-rule state":      func(s *awssim.State, _, _ string) { eventRule(s).State = "DISABLED" },
		"event-rule target":     func(s *awssim.State, _, _ string) { clear(eventRule(s).Targets) },
		"event-rule tag": func(s *awssim.State, _, field string) {
			eventRule(s).Tags[strings.TrimPrefix(field, "tag ")] = tampered
		},
		"queue encrypted": func(s *awssim.State, _, _ string) { queueOf(s).Attributes["SqsManagedSseEnabled"] = "false" },
		"queue policy":    func(s *awssim.State, _, _ string) { delete(queueOf(s).Attributes, "Policy") },
		"queue retention": func(s *awssim.State, _, _ string) { queueOf(s).Attributes["MessageRetentionPeriod"] = "60" },
		"queue tag":       func(s *awssim.State, _, field string) { queueOf(s).Tags[strings.TrimPrefix(field, "tag ")] = tampered },
		"role inlinePolicy": func(s *awssim.State, id, _ string) {
			name := id[strings.LastIndex(id, "/")+1:]
			s.IAM.Roles[name].Inline[name] = `{"Version":"2012-10-17","Statement":[{"Effect":"Deny","Action":"*","Resource":"*"}]}`
		},
		"role policy": func(s *awssim.State, id, _ string) {
			IAMRole(s, id).Attached = []string{"arn:aws:iam::aws:policy/ReadOnlyAccess"}
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
		all["identity-provider "+field] = func(s *awssim.State, _, _ string) { *of(IdentityProvider(s)) = tampered }
	}
	all["identity-provider requiredClaim"] = func(s *awssim.State, _, _ string) { IdentityProvider(s).RequiredClaims = nil }
	all["identity-provider tag"] = func(s *awssim.State, _, field string) {
		IdentityProvider(s).Tags[strings.TrimPrefix(field, "tag ")] = tampered
	}
	for _, kind := range []string{"eks-cluster", "node-group", "addon", "access-entry", "pod-identity", "fargate-profile", "oidc-provider", "role"} {
		all[kind+" tag"] = func(s *awssim.State, id, field string) {
			EKSTagsOf(s, id)[strings.TrimPrefix(field, "tag ")] = tampered
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
func eksConflicts() map[string]Tamper {
	return map[string]Tamper{
		"eks-cluster ipFamily": func(s *awssim.State, _, _ string) {
			Plane(s).Family = flip(Plane(s).Family, "ipv4", "ipv6")
		},
		"eks-cluster serviceCIDR": func(s *awssim.State, _, _ string) { Plane(s).ServiceCIDR = "10.99.0.0/16" },
		"eks-cluster role":        func(s *awssim.State, _, _ string) { Plane(s).RoleARN += tampered },
		"node-group role":         func(s *awssim.State, id, _ string) { NodeGroup(s, id).RoleARN += tampered },
		"node-group amiType":      func(s *awssim.State, id, _ string) { NodeGroup(s, id).Kind = "BOTTLEROCKET_x86_64" },
		"node-group capacityType": func(s *awssim.State, id, _ string) {
			NodeGroup(s, id).Capacity = flip(NodeGroup(s, id).Capacity, "SPOT", "ON_DEMAND")
		},
		"node-group instanceTypes": func(s *awssim.State, id, _ string) { NodeGroup(s, id).InstanceTypes = []string{"m5.xlarge"} },
		"node-group diskSize":      func(s *awssim.State, id, _ string) { NodeGroup(s, id).DiskSize = 77 },
		"node-group sshKey":        func(s *awssim.State, id, _ string) { NodeGroup(s, id).SSHKey = tampered },
		"node-group subnets": func(s *awssim.State, id, _ string) {
			NodeGroup(s, id).Subnets = []string{"subnet-00000000000000009"}
		},
		"node-group launchTemplate": func(s *awssim.State, id, _ string) { NodeGroup(s, id).Template = "lt-00000000000000009" },
		"fargate-profile role":      func(s *awssim.State, id, _ string) { FargateProfile(s, id).RoleARN += tampered },
		"fargate-profile subnets": func(s *awssim.State, id, _ string) {
			FargateProfile(s, id).Subnets = []string{"subnet-00000000000000009"}
		},
		"fargate-profile selectors": func(s *awssim.State, id, _ string) { FargateProfile(s, id).Selectors = nil },
	}
}
