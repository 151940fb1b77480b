package loader

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/internal/regex"
)

// eksSettings reads the annotations of an AWSManagedControlPlane.
func (l *loader) eksSettings(o *manifest.Entry) manifest.EKSSettings {
	force, addresses := l.flag(o, manifest.AnnotationForceUpdate), l.flag(o, manifest.AnnotationNATAddresses)
	return manifest.EKSSettings{
		DeletionProtection: l.flag(o, manifest.AnnotationDeletionProtection),
		ZonalShift:         l.flag(o, manifest.AnnotationZonalShift),
		ForceUpgrade:       force != nil && *force,
		NATAddresses:       addresses != nil && *addresses,
		Tier:               l.choice(o, manifest.AnnotationControlPlaneTier),
		Remote:             l.remoteNetworks(o),
		PodIdentities:      l.podIdentities(o),
		AddonIdentities:    l.addonIdentities(o),
		AutoMode:           l.autoMode(o),
		Karpenter:          l.karpenter(o),
	}
}

// remoteNetworks reads the networks of hybrid nodes. EKS takes blocks of RFC 1918 between /8 and /32
// (RemoteNodeNetwork and RemotePodNetwork in its API reference), in IPv4 clusters with access entries
// ("Prerequisite setup for hybrid nodes", EKS user guide).
func (l *loader) remoteNetworks(o *manifest.Entry) *manifest.RemoteNetworks {
	nodes, some := l.list(o, manifest.AnnotationRemoteNodeNetworks)
	pods, more := l.list(o, manifest.AnnotationRemotePodNetworks)
	if !some && !more {
		return nil
	}
	var known []netip.Prefix
	for name, blocks := range map[string][]string{manifest.AnnotationRemoteNodeNetworks: nodes, manifest.AnnotationRemotePodNetworks: pods} {
		for _, block := range blocks {
			p, err := netip.ParsePrefix(block)
			if err != nil || !p.Addr().Is4() || !p.Addr().IsPrivate() || p.Bits() < 8 || p != p.Masked() {
				l.fail(o.AnnotationProblem(name, block+" is not a block of private IPv4 addresses between /8 and /32", "set blocks such as 10.80.0.0/16"))
				continue
			}
			if i := slices.IndexFunc(known, p.Overlaps); i >= 0 {
				l.fail(o.AnnotationProblem(name, fmt.Sprintf("%s overlaps with %s", block, known[i]), "set blocks that do not overlap"))
			}
			known = append(known, p)
		}
	}
	if len(nodes) == 0 && len(pods) > 0 {
		l.fail(
			o.AnnotationProblem(
				manifest.AnnotationRemotePodNetworks,
				"networks of pods need networks of nodes",
				"set "+manifest.OwnAnnotations+manifest.AnnotationRemoteNodeNetworks+", too",
			),
		)
	}
	slices.Sort(nodes)
	slices.Sort(pods)
	return &manifest.RemoteNetworks{Nodes: nodes, Pods: pods}
}

// podIdentities reads the pod identity associations, which are YAML.
func (l *loader) podIdentities(o *manifest.Entry) (all []manifest.PodIdentity) {
	value, set := o.Annotation(manifest.AnnotationPodIdentities)
	if !set {
		return nil
	}
	const fix = "write a list of namespace, serviceAccount, and roleARN or policyARNs"
	if err := yaml.UnmarshalStrict([]byte(value), &all); err != nil {
		l.fail(o.AnnotationProblem(manifest.AnnotationPodIdentities, "it is not a list of associations", fix))
		return nil
	}
	accounts := map[string]bool{}
	for i, a := range all {
		account := a.Namespace + "/" + a.ServiceAccount
		switch {
		case a.Namespace == "" || a.ServiceAccount == "" || a.IsEmpty():
			l.fail(o.AnnotationProblem(manifest.AnnotationPodIdentities, fmt.Sprintf("association %d lacks a field", i+1), fix))
		case accounts[account]:
			l.fail(
				o.AnnotationProblem(manifest.AnnotationPodIdentities, "the service account "+account+" is in it twice", "a service account has one role: name it once"),
			)
		}
		accounts[account] = true
	}
	return all
}

// addonIdentities reads the pod identity associations of add-ons, which are YAML.
func (l *loader) addonIdentities(o *manifest.Entry) map[string][]manifest.AddonIdentity {
	value, set := o.Annotation(manifest.AnnotationAddonPodIdentities)
	if !set {
		return nil
	}
	const fix = "write a list of addon, serviceAccount, and roleARN or policyARNs"
	var list []struct {
		Addon          string `json:"addon"`
		ServiceAccount string `json:"serviceAccount"`
		manifest.PodRole
	}
	if err := yaml.UnmarshalStrict([]byte(value), &list); err != nil {
		l.fail(o.AnnotationProblem(manifest.AnnotationAddonPodIdentities, "it is not a list of associations", fix))
		return nil
	}
	all := map[string][]manifest.AddonIdentity{}
	for i, x := range list {
		same := func(y manifest.AddonIdentity) bool { return y.ServiceAccount == x.ServiceAccount }
		switch {
		case x.Addon == "" || x.ServiceAccount == "" || x.IsEmpty():
			l.fail(o.AnnotationProblem(manifest.AnnotationAddonPodIdentities, fmt.Sprintf("association %d lacks a field", i+1), fix))
		case slices.ContainsFunc(all[x.Addon], same):
			l.fail(
				o.AnnotationProblem(
					manifest.AnnotationAddonPodIdentities,
					fmt.Sprintf("the service account %s of %s is in it twice", x.ServiceAccount, x.Addon),
					"name it once",
				),
			)
		}
		all[x.Addon] = append(all[x.Addon], manifest.AddonIdentity{ServiceAccount: x.ServiceAccount, PodRole: x.PodRole})
	}
	return all
}

// nodeGroupSettings reads the annotations of an AWSManagedMachinePool.
func (l *loader) nodeGroupSettings(o *manifest.Entry) manifest.NodeGroupSettings {
	force := l.flag(o, manifest.AnnotationForceUpdate)
	s := manifest.NodeGroupSettings{
		ForceUpdate:        force != nil && *force,
		UpdateStrategy:     strings.ToUpper(l.choice(o, manifest.AnnotationUpdateStrategy)),
		RepairMaxUnhealthy: l.share(o, manifest.AnnotationRepairMaxUnhealthy),
		RepairMaxParallel:  l.share(o, manifest.AnnotationRepairMaxParallel),
	}
	s.InstanceTypes, _ = l.list(o, manifest.AnnotationInstanceTypes)
	for _, t := range s.InstanceTypes {
		if !regex.Of(`^[a-z0-9-]+\.[a-z0-9-]+$`).MatchString(t) {
			l.fail(o.AnnotationProblem(manifest.AnnotationInstanceTypes, t+" is not an instance type", "write types such as m6i.large, m5.large"))
		}
	}
	if _, one := manifest.ValueAt(o.Value, "spec.instanceType").(string); one && len(s.InstanceTypes) > 0 {
		l.fail(o.AnnotationProblem(manifest.AnnotationInstanceTypes, "the node group has spec.instanceType, too", "set one of them"))
	}
	if _, template := manifest.ValueAt(o.Value, "spec.awsLaunchTemplate.instanceType").(string); template && len(s.InstanceTypes) > 0 {
		l.fail(o.AnnotationProblem(manifest.AnnotationInstanceTypes, "the launch template has an instanceType, too", "set one of them"))
	}
	if on, _ := manifest.ValueAt(o.Value, "spec.nodeRepairConfig.enabled").(bool); !on && (s.RepairMaxParallel != nil || s.RepairMaxUnhealthy != nil) {
		limit := manifest.AnnotationRepairMaxParallel
		if s.RepairMaxParallel == nil {
			limit = manifest.AnnotationRepairMaxUnhealthy
		}
		l.warn(o.ProblemOf(manifest.OwnAnnotations+limit, "the limits of node repair have no effect: node repair is off", "set spec.nodeRepairConfig.enabled: true"))
	}
	return s
}

// share reads an annotation that is a number of nodes or a percentage. EKS takes numbers from 1 on, and
// percentages up to 100 (NodeRepairConfig in its API reference).
func (l *loader) share(o *manifest.Entry, name string) *manifest.Share {
	value, set := o.Annotation(name)
	if !set {
		return nil
	}
	number, percent := strings.CutSuffix(value, "%")
	n, err := strconv.ParseInt(number, 10, 32)
	if err != nil || n < 1 || percent && n > 100 {
		l.fail(o.AnnotationProblem(name, "it is neither a number of nodes nor a percentage", `write a number such as "2", or a percentage such as "20%"`))
		return nil
	}
	if percent {
		return &manifest.Share{Percentage: int32(n)}
	}
	return &manifest.Share{Count: int32(n)}
}
