package manifest

import (
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"sigs.k8s.io/yaml"
)

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
				l.fail(o.annotationProblem(name, block+" is not a block of private IPv4 addresses between /8 and /32", "set blocks such as 10.80.0.0/16"))
				continue
			}
			if i := slices.IndexFunc(known, p.Overlaps); i >= 0 {
				l.fail(o.annotationProblem(name, fmt.Sprintf("%s overlaps with %s", block, known[i]), "set blocks that do not overlap"))
			}
			known = append(known, p)
		}
	}
	if len(nodes) == 0 && len(pods) > 0 {
		l.fail(o.annotationProblem(remotePodNetworks, "networks of pods need networks of nodes", "set "+ownAnnotations+remoteNodeNetworks+", too"))
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
		l.fail(o.annotationProblem(podIdentities, "it is not a list of associations", fix))
		return nil
	}
	accounts := map[string]bool{}
	for i, a := range all {
		account := a.Namespace + "/" + a.ServiceAccount
		switch {
		case a.Namespace == "" || a.ServiceAccount == "" || a.RoleARN == "":
			l.fail(o.annotationProblem(podIdentities, fmt.Sprintf("association %d lacks a field", i+1), fix))
		case accounts[account]:
			l.fail(o.annotationProblem(podIdentities, "the service account "+account+" is in it twice", "a service account has one role: name it once"))
		}
		accounts[account] = true
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
		l.fail(o.annotationProblem(addonPodIdentities, "it is not a list of associations", fix))
		return nil
	}
	all := map[string][]AddonIdentity{}
	for i, x := range list {
		same := func(y AddonIdentity) bool { return y.ServiceAccount == x.ServiceAccount }
		switch {
		case x.Addon == "" || x.ServiceAccount == "" || x.RoleARN == "":
			l.fail(o.annotationProblem(addonPodIdentities, fmt.Sprintf("association %d lacks a field", i+1), fix))
		case slices.ContainsFunc(all[x.Addon], same):
			l.fail(o.annotationProblem(addonPodIdentities, fmt.Sprintf("the service account %s of %s is in it twice", x.ServiceAccount, x.Addon), "name it once"))
		}
		all[x.Addon] = append(all[x.Addon], AddonIdentity{x.ServiceAccount, x.RoleARN})
	}
	return all
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
			l.fail(o.annotationProblem(instanceTypes, t+" is not an instance type", "write types such as m6i.large, m5.large"))
		}
	}
	if _, one := valueAt(o.value, "spec.instanceType").(string); one && len(s.InstanceTypes) > 0 {
		l.fail(o.annotationProblem(instanceTypes, "the node group has spec.instanceType, too", "set one of them"))
	}
	if _, template := valueAt(o.value, "spec.awsLaunchTemplate.instanceType").(string); template && len(s.InstanceTypes) > 0 {
		l.fail(o.annotationProblem(instanceTypes, "the launch template has an instanceType, too", "set one of them"))
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
		l.fail(o.annotationProblem(name, "it is neither a number of nodes nor a percentage", `write a number such as "2", or a percentage such as "20%"`))
		return nil
	}
	if percent {
		return &Share{Percentage: int32(n)}
	}
	return &Share{Count: int32(n)}
}
