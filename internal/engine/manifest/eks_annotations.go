package manifest

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"

	ekscontrolplanev1 "sigs.k8s.io/cluster-api-provider-aws/v2/controlplane/eks/api/v1beta2"
	"sigs.k8s.io/yaml"
)

// EKSSettings are the settings of a control plane of EKS that its annotations have. A nil or empty
// field is not set, and is not changed.
type EKSSettings struct {
	DeletionProtection, ZonalShift *bool
	ForceUpgrade                   bool   // upgrade although EKS has an insight with an error
	Tier                           string // of the control plane: "standard", "tier-xl", …
	Remote                         *RemoteNetworks
	PodIdentities                  []PodIdentity // in the order of the manifest
	// AddonIdentities are the pod identity associations of add-ons, by the name of the add-on; nil if the manifest does not set
	// them.
	AddonIdentities map[string][]AddonIdentity
}

// AddonIdentity associates a service account of an add-on with an IAM role.
type AddonIdentity struct{ ServiceAccount, RoleARN string }

// RemoteNetworks are the CIDR blocks of hybrid nodes and of their pods, sorted.
type RemoteNetworks struct{ Nodes, Pods []string }

// PodIdentity associates a service account with an IAM role.
type PodIdentity struct {
	Namespace      string `json:"namespace"`
	ServiceAccount string `json:"serviceAccount"`
	RoleARN        string `json:"roleARN"`
}

// NodeGroupSettings are the settings of a node group that its annotations have.
type NodeGroupSettings struct {
	// ForceUpdate says that EKS replaces nodes even if pods cannot be evicted.
	ForceUpdate    bool
	InstanceTypes  []string // EKS chooses between them
	UpdateStrategy string   // "DEFAULT", "MINIMAL" or ""
	// RepairMaxUnhealthy and RepairMaxParallel are limits of node repair; nil if the manifest has none.
	RepairMaxUnhealthy, RepairMaxParallel *Share
}

// Share is a limit on the nodes of a group: either a number of nodes or a percentage of the group.
type Share struct{ Count, Percentage int32 }

// eksSettings reads the annotations of an AWSManagedControlPlane.
func (l *loader) eksSettings(o *object) EKSSettings {
	force := l.flag(o, forceUpdate)
	return EKSSettings{
		DeletionProtection: l.flag(o, deletionProtection),
		ZonalShift:         l.flag(o, zonalShift),
		ForceUpgrade:       force != nil && *force,
		Tier:               l.choice(o, controlPlaneTier, "standard", "tier-xl", "tier-2xl", "tier-4xl", "tier-8xl"),
		Remote:             l.remoteNetworks(o),
		PodIdentities:      l.podIdentities(o),
		AddonIdentities:    l.addonIdentities(o),
	}
}

// remoteNetworks reads the networks of hybrid nodes. EKS takes blocks of RFC 1918 between /8 and /32
// (RemoteNodeNetwork and RemotePodNetwork in its API reference), in IPv4 clusters with access entries
// ("Prerequisite setup for hybrid nodes", EKS user guide).
func (l *loader) remoteNetworks(o *object) *RemoteNetworks {
	nodes, some := l.list(o, remoteNodeNetworks)
	pods, more := l.list(o, remotePodNetworks)
	if !some && !more {
		return nil
	}
	var known []netip.Prefix
	for name, blocks := range map[string][]string{remoteNodeNetworks: nodes, remotePodNetworks: pods} {
		for _, block := range blocks {
			p, err := netip.ParsePrefix(block)
			if err != nil || !p.Addr().Is4() || !p.Addr().IsPrivate() || p.Bits() < 8 || p != p.Masked() {
				l.failAnnotation(o, name, block+" is not a block of private IPv4 addresses between /8 and /32", "set blocks such as 10.80.0.0/16")
				continue
			}
			if i := slices.IndexFunc(known, p.Overlaps); i >= 0 {
				l.failAnnotation(o, name, fmt.Sprintf("%s overlaps with %s", block, known[i]), "set blocks that do not overlap")
			}
			known = append(known, p)
		}
	}
	if len(nodes) == 0 && len(pods) > 0 {
		l.failAnnotation(o, remotePodNetworks, "networks of pods need networks of nodes", "set "+ownAnnotations+remoteNodeNetworks+", too")
	}
	slices.Sort(nodes)
	slices.Sort(pods)
	return &RemoteNetworks{Nodes: nodes, Pods: pods}
}

// podIdentities reads the pod identity associations, which are YAML.
func (l *loader) podIdentities(o *object) (all []PodIdentity) {
	value, set := o.annotation(podIdentities)
	if !set {
		return nil
	}
	const fix = "write a list of namespace, serviceAccount and roleARN"
	if err := yaml.UnmarshalStrict([]byte(value), &all); err != nil {
		l.failAnnotation(o, podIdentities, "it is not a list of associations", fix)
		return nil
	}
	accounts := map[string]bool{}
	for i, a := range all {
		account := a.Namespace + "/" + a.ServiceAccount
		switch {
		case a.Namespace == "" || a.ServiceAccount == "" || a.RoleARN == "":
			l.failAnnotation(o, podIdentities, fmt.Sprintf("association %d lacks a field", i+1), fix)
		case accounts[account]:
			l.failAnnotation(o, podIdentities, "the service account "+account+" is in it twice", "a service account has one role: name it once")
		}
		accounts[account] = true
		l.checkARN(o, "metadata.annotations", a.RoleARN, roleARN())
	}
	return all
}

// addonIdentities reads the pod identity associations of add-ons, which are YAML.
func (l *loader) addonIdentities(o *object) map[string][]AddonIdentity {
	value, set := o.annotation(addonPodIdentities)
	if !set {
		return nil
	}
	const fix = "write a list of addon, serviceAccount and roleARN"
	var list []struct {
		Addon          string `json:"addon"`
		ServiceAccount string `json:"serviceAccount"`
		RoleARN        string `json:"roleARN"`
	}
	if err := yaml.UnmarshalStrict([]byte(value), &list); err != nil {
		l.failAnnotation(o, addonPodIdentities, "it is not a list of associations", fix)
		return nil
	}
	all := map[string][]AddonIdentity{}
	for i, x := range list {
		same := func(y AddonIdentity) bool { return y.ServiceAccount == x.ServiceAccount }
		switch {
		case x.Addon == "" || x.ServiceAccount == "" || x.RoleARN == "":
			l.failAnnotation(o, addonPodIdentities, fmt.Sprintf("association %d lacks a field", i+1), fix)
		case slices.ContainsFunc(all[x.Addon], same):
			l.failAnnotation(o, addonPodIdentities, fmt.Sprintf("the service account %s of %s is in it twice", x.ServiceAccount, x.Addon), "name it once")
		}
		all[x.Addon] = append(all[x.Addon], AddonIdentity{x.ServiceAccount, x.RoleARN})
		l.checkARN(o, "metadata.annotations", x.RoleARN, roleARN())
	}
	return all
}

// checkAddonIdentities compares the associations of add-ons with spec.addons.
func (l *loader) checkAddonIdentities(plane *ekscontrolplanev1.AWSManagedControlPlaneSpec) {
	given := map[string]*string{}
	if plane.Addons != nil {
		for _, a := range *plane.Addons {
			given[a.Name] = a.ServiceAccountRoleArn
		}
	}
	for _, name := range slices.Sorted(maps.Keys(l.cluster.EKS.AddonIdentities)) {
		switch role, known := given[name]; {
		case !known:
			l.failAnnotation(l.infra, addonPodIdentities, "the manifest has no add-on "+name, "add it to spec.addons, or correct the name")
		case role != nil && *role != "":
			l.failAnnotation(
				l.infra,
				addonPodIdentities,
				"the add-on "+name+" has a serviceAccountRoleARN, too",
				"remove serviceAccountRoleARN: EKS replaces it by the associations",
			)
		}
	}
}

// nodeGroupSettings reads the annotations of an AWSManagedMachinePool.
func (l *loader) nodeGroupSettings(o *object) NodeGroupSettings {
	force := l.flag(o, forceUpdate)
	s := NodeGroupSettings{
		ForceUpdate:        force != nil && *force,
		UpdateStrategy:     strings.ToUpper(l.choice(o, updateStrategy, "default", "minimal")),
		RepairMaxUnhealthy: l.share(o, repairMaxUnhealthy),
		RepairMaxParallel:  l.share(o, repairMaxParallel),
	}
	s.InstanceTypes, _ = l.list(o, instanceTypes)
	for _, t := range s.InstanceTypes {
		if !regexp.MustCompile(`^[a-z0-9-]+\.[a-z0-9-]+$`).MatchString(t) {
			l.failAnnotation(o, instanceTypes, t+" is not an instance type", "write types such as m6i.large, m5.large")
		}
	}
	if _, one := valueAt(o.value, "spec.instanceType").(string); one && len(s.InstanceTypes) > 0 {
		l.failAnnotation(o, instanceTypes, "the node group has spec.instanceType, too", "set one of them")
	}
	if _, template := valueAt(o.value, "spec.awsLaunchTemplate.instanceType").(string); template && len(s.InstanceTypes) > 0 {
		l.failAnnotation(o, instanceTypes, "the launch template has an instanceType, too", "set one of them")
	}
	if on, _ := valueAt(o.value, "spec.nodeRepairConfig.enabled").(bool); !on && (s.RepairMaxParallel != nil || s.RepairMaxUnhealthy != nil) {
		l.warn(o.problem("metadata.annotations", "the limits of node repair have no effect: node repair is off", "set spec.nodeRepairConfig.enabled: true"))
	}
	return s
}

// share reads an annotation that is a number of nodes or a percentage. EKS takes numbers from 1 on, and
// percentages up to 100 (NodeRepairConfig in its API reference).
func (l *loader) share(o *object, name string) *Share {
	value, set := o.annotation(name)
	if !set {
		return nil
	}
	number, percent := strings.CutSuffix(value, "%")
	n, err := strconv.ParseInt(number, 10, 32)
	if err != nil || n < 1 || percent && n > 100 {
		l.failAnnotation(o, name, "it is neither a number of nodes nor a percentage", `write a number such as "2", or a percentage such as "20%"`)
		return nil
	}
	if percent {
		return &Share{Percentage: int32(n)}
	}
	return &Share{Count: int32(n)}
}

// checkHybrid checks the networks of hybrid nodes against the rest of the cluster ("Prerequisite setup
// for hybrid nodes", EKS user guide).
func (l *loader) checkHybrid(plane *ekscontrolplanev1.AWSManagedControlPlaneSpec) {
	remote := l.cluster.EKS.Remote
	if remote == nil || len(remote.Nodes) == 0 {
		return
	}
	o, name := l.infra, remoteNodeNetworks
	if l.cluster.Infra.Spec.NetworkSpec.VPC.IPv6 != nil {
		l.failAnnotation(o, name, "EKS supports hybrid nodes in IPv4 clusters only", "remove it, or spec.network.vpc.ipv6")
	}
	if a := plane.AccessConfig; a == nil || a.AuthenticationMode == "" || a.AuthenticationMode == ekscontrolplanev1.EKSAuthenticationModeConfigMap {
		l.failAnnotation(o, name, "hybrid nodes need access entries", "set spec.accessConfig.authenticationMode: api")
	}
	taken := map[string]string{}
	if vpc := l.cluster.Infra.Spec.NetworkSpec.VPC; vpc.ID == "" {
		taken[cmp.Or(vpc.CidrBlock, defaultBlock)] = "the VPC"
	}
	for _, b := range l.cluster.Infra.Spec.NetworkSpec.VPC.SecondaryCidrBlocks {
		taken[b.IPv4CidrBlock] = "the VPC"
	}
	for _, block := range l.cluster.Object.Spec.ClusterNetwork.Services.CIDRBlocks {
		taken[block] = "the Services"
	}
	for _, block := range slices.Concat(remote.Nodes, remote.Pods) {
		p, err := netip.ParsePrefix(block)
		for _, other := range slices.Sorted(maps.Keys(taken)) {
			if q, wrong := netip.ParsePrefix(other); err == nil && wrong == nil && q.Overlaps(p) {
				l.failAnnotation(o, name, fmt.Sprintf("%s overlaps with %s of %s", block, other, taken[other]), "set blocks that do not overlap")
			}
		}
	}
}

// warnPodIdentity warns about associations in a cluster without the agent that gives pods their
// credentials ("Set up the Amazon EKS Pod Identity Agent", EKS user guide).
func (l *loader) warnPodIdentity(plane *ekscontrolplanev1.AWSManagedControlPlaneSpec) {
	l.checkAddonIdentities(plane)
	if len(l.cluster.EKS.PodIdentities)+len(l.cluster.EKS.AddonIdentities) == 0 {
		return
	}
	isAgent := func(a ekscontrolplanev1.Addon) bool { return a.Name == "eks-pod-identity-agent" }
	if plane.Addons == nil || !slices.ContainsFunc(*plane.Addons, isAgent) {
		l.warn(
			l.infra.problem("metadata.annotations", "pods get no credentials from pod identity associations without its agent", "add the add-on eks-pod-identity-agent"),
		)
	}
}
