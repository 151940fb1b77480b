package rules

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"

	ekscontrolplanev1 "sigs.k8s.io/cluster-api-provider-aws/v2/controlplane/eks/api/v1beta2"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
)

// checkAddonIdentities compares the associations of add-ons with spec.addons.
func (c *checks) checkAddonIdentities(plane *ekscontrolplanev1.AWSManagedControlPlaneSpec) {
	given := map[string]*string{}
	if plane.Addons != nil {
		for _, a := range *plane.Addons {
			given[a.Name] = a.ServiceAccountRoleArn
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.cluster.EKS.AddonIdentities)) {
		switch role, known := given[name]; {
		case !known:
			c.fail(c.infra.AnnotationProblem(manifest.AnnotationAddonPodIdentities, "the manifest has no add-on "+name, "add it to spec.addons, or correct the name"))
		case role != nil && *role != "":
			c.fail(c.infra.AnnotationProblem(
				manifest.AnnotationAddonPodIdentities,
				"the add-on "+name+" has a serviceAccountRoleARN, too",
				"remove serviceAccountRoleARN: EKS replaces it by the associations",
			))
		}
	}
}

// checkHybrid checks the networks of hybrid nodes against the rest of the cluster ("Prerequisite setup
// for hybrid nodes", EKS user guide).
func (c *checks) checkHybrid(plane *ekscontrolplanev1.AWSManagedControlPlaneSpec) {
	remote := c.cluster.EKS.Remote
	if remote == nil || len(remote.Nodes) == 0 {
		return
	}
	o, name := c.infra, manifest.AnnotationRemoteNodeNetworks
	if c.cluster.Infra.Spec.NetworkSpec.VPC.IPv6 != nil {
		c.fail(o.AnnotationProblem(name, "EKS supports hybrid nodes in IPv4 clusters only", "remove it, or spec.network.vpc.ipv6"))
	}
	if a := plane.AccessConfig; a == nil || a.AuthenticationMode == "" || a.AuthenticationMode == ekscontrolplanev1.EKSAuthenticationModeConfigMap {
		c.fail(o.AnnotationProblem(name, "hybrid nodes need access entries", "set spec.accessConfig.authenticationMode: api"))
	}
	taken := map[string]string{}
	if vpc := c.cluster.Infra.Spec.NetworkSpec.VPC; vpc.ID == "" {
		taken[cmp.Or(vpc.CidrBlock, defaultBlock)] = "the VPC"
	}
	for _, b := range c.cluster.Infra.Spec.NetworkSpec.VPC.SecondaryCidrBlocks {
		taken[b.IPv4CidrBlock] = "the VPC"
	}
	for _, block := range c.cluster.Object.Spec.ClusterNetwork.Services.CIDRBlocks {
		taken[block] = "the Services"
	}
	for _, block := range slices.Concat(remote.Nodes, remote.Pods) {
		p, err := netip.ParsePrefix(block)
		for _, other := range slices.Sorted(maps.Keys(taken)) {
			if q, wrong := netip.ParsePrefix(other); err == nil && wrong == nil && q.Overlaps(p) {
				c.fail(o.AnnotationProblem(name, fmt.Sprintf("%s overlaps with %s of %s", block, other, taken[other]), "set blocks that do not overlap"))
			}
		}
	}
}

// warnPodIdentity warns about associations in a cluster without the agent that gives pods their
// credentials ("Set up the Amazon EKS Pod Identity Agent", EKS user guide).
func (c *checks) warnPodIdentity(plane *ekscontrolplanev1.AWSManagedControlPlaneSpec) {
	c.checkAddonIdentities(plane)
	for _, a := range c.cluster.EKS.PodIdentities {
		c.checkPodRole(manifest.AnnotationPodIdentities, "the association of "+a.Namespace+"/"+a.ServiceAccount, a.PodRole)
		c.warnNoPods(a)
	}
	for _, name := range slices.Sorted(maps.Keys(c.cluster.EKS.AddonIdentities)) {
		for _, a := range c.cluster.EKS.AddonIdentities[name] {
			c.checkPodRole(manifest.AnnotationAddonPodIdentities, "the association of "+a.ServiceAccount, a.PodRole)
		}
	}
	if len(c.cluster.EKS.PodIdentities)+len(c.cluster.EKS.AddonIdentities) == 0 {
		return
	}
	if !c.cluster.EKS.HasPodIdentityAgent() {
		given := manifest.AnnotationPodIdentities
		if len(c.cluster.EKS.PodIdentities) == 0 {
			given = manifest.AnnotationAddonPodIdentities
		}
		c.warn(
			c.infra.ProblemOf(
				manifest.OwnAnnotations+given,
				"pods get no credentials from pod identity associations without its agent",
				"add the add-on eks-pod-identity-agent",
			),
		)
	}
}
