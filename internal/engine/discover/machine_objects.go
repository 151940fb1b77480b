package discover

import (
	"slices"
	"strings"

	infrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/api/v1beta2"
	eksbootstrapv1 "sigs.k8s.io/cluster-api-provider-aws/v2/bootstrap/eks/api/v1beta2"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/topology"
)

// foreignGroups is the comment at a list of security groups that a run does not make.
const foreignGroups = "Security groups of somebody else, by their IDs. Not known: whether filters have found them."

// unknownReplacement is the comment at an object whose machines may be replaced.
const unknownReplacement = "Not known: how machines are replaced (rollout, deletion, remediation), MachineHealthChecks."

func bootstrapVersion() string { return bootstrapv1.GroupVersion.String() }

// machineObjects returns the objects of a group of machines.
func (s *SelfManaged) machineObjects(g machineGroup) []Object {
	if g.controlPlane {
		completeInit(&g.boot)
		s.completeAddresses(&g.boot)
	}
	switch g.kind {
	case planeKind:
		return s.controlPlane(g)
	case deploymentKind:
		return s.deployment(g)
	}
	return s.machine(g)
}

func (s *SelfManaged) controlPlane(g machineGroup) []Object {
	template := map[string]any{"spec": map[string]any{"infrastructureRef": reference(infrav1.GroupVersion.Group, "AWSMachineTemplate", g.name)}}
	setMap(template, "metadata", g.metadata())
	plane := object(controlplanev1.GroupVersion.String(), planeKind, g.name, map[string]any{
		"version": g.version, "replicas": g.replicas(), "kubeadmConfigSpec": tree(g.boot), "machineTemplate": template,
	})
	g.commentBoot(&plane, "spec.kubeadmConfigSpec")
	plane.comment("spec", unknownReplacement)
	g.commentMarks(&plane, "spec.machineTemplate")
	return []Object{plane, g.template()}
}

// template returns the AWSMachineTemplate of a group.
func (g machineGroup) template() Object {
	out := object(infraVersion(), "AWSMachineTemplate", g.name, map[string]any{"template": map[string]any{"spec": tree(g.spec)}})
	g.commentMachine(&out, "spec.template.spec")
	return out
}

func (s *SelfManaged) deployment(g machineGroup) []Object {
	kind, version, spec := g.config()
	machine := s.machineSpec(g, kind+"Template", "AWSMachineTemplate")
	config := object(version, kind+"Template", g.name, map[string]any{"template": map[string]any{"spec": spec}})
	g.commentBoot(&config, "spec.template.spec")
	template := map[string]any{"spec": machine}
	setMap(template, "metadata", g.metadata())
	out := object(coreVersion(), deploymentKind, g.name, map[string]any{
		"clusterName": s.Name, "replicas": g.replicas(), "selector": map[string]any{"matchLabels": map[string]any{}}, "template": template,
	})
	g.commentMarks(&out, "spec.template")
	out.comment("spec", unknownReplacement)
	return []Object{out, g.template(), config}
}

// machine returns the objects of a stand-alone Machine. Its AWSMachine has the name of the
// instance.
func (s *SelfManaged) machine(g machineGroup) []Object {
	name := g.machines[0].Tags["Name"]
	labels := anyMap(g.marks.synced)
	labels[clusterv1.ClusterNameLabel] = s.Name
	if g.controlPlane {
		labels[clusterv1.MachineControlPlaneLabel] = ""
	}
	kind, version, boot := g.config()
	spec := s.machineSpec(g, kind, "AWSMachine")
	spec["infrastructureRef"] = reference(infrav1.GroupVersion.Group, "AWSMachine", name)
	out := object(coreVersion(), machineKind, g.name, spec)
	out.Labels = labels
	g.commentMarks(&out, "spec")
	machine := object(infraVersion(), "AWSMachine", name, tree(g.spec))
	g.commentMachine(&machine, "spec")
	config := object(version, kind, g.name, boot)
	g.commentBoot(&config, "spec")
	return []Object{out, machine, config}
}

// config returns the kind, the version and the spec of the bootstrap configuration.
func (g machineGroup) config() (kind, version string, spec map[string]any) {
	switch {
	case g.eks == nil:
		return "KubeadmConfig", bootstrapVersion(), tree(g.boot)
	case g.eks.Config != nil:
		return "EKSConfig", eksbootstrapv1.GroupVersion.String(), tree(g.eks.Config)
	}
	return "NodeadmConfig", eksbootstrapv1.GroupVersion.String(), tree(g.eks.Nodeadm)
}

// machineSpec returns the spec of the Machines of a group.
func (s *SelfManaged) machineSpec(g machineGroup, config, infra string) map[string]any {
	out := map[string]any{
		"clusterName":       s.Name,
		"bootstrap":         map[string]any{"configRef": reference(bootstrapv1.GroupVersion.Group, config, g.name)},
		"infrastructureRef": reference(infrav1.GroupVersion.Group, infra, g.name),
	}
	set(out, "version", g.version, "")
	set(out, "failureDomain", g.zone, "")
	return out
}

// metadata returns the metadata of the Machines of a group: their labels for Nodes.
func (g machineGroup) metadata() map[string]any {
	out := map[string]any{}
	setMap(out, "labels", anyMap(g.marks.synced))
	return out
}

// commentMarks adds the comment about labels and taints of the Nodes of a group.
func (g machineGroup) commentMarks(o *Object, path string) {
	set := registeredByEKS(g.eks)
	if g.eks == nil {
		set = registeredByKubeadm(g.boot.JoinConfiguration.NodeRegistration, g.controlPlane)
	}
	o.comment(path, g.marks.comment(g.asked, set))
}

// commentBoot says what is not known of the bootstrap configuration of a group.
func (g machineGroup) commentBoot(o *Object, path string) {
	fields := g.unknownFields(true)
	switch {
	case !g.recorded && g.read && len(g.leftOut) > 0:
		o.comment(path, "Left out: "+strings.Join(g.leftOut, ", ")+".\nMachines that are added get what is written here.")
	case !g.recorded && g.read:
	case !g.recorded:
		o.comment(
			path,
			"Not known: whether the machines have other files, commands, users or arguments of\nthe kubelet. Machines that are added get what is written here.",
		)
	case len(fields) == 0 && len(g.rewritten) > 0:
		o.comment(
			path,
			"Written anew, from what the machines booted with: "+strings.Join(g.rewritten, ", ")+".\nThe text is not that of their template: a run would replace them.",
		)
	case len(fields) > 0:
		o.comment(
			path,
			"Not known: the values of "+strings.Join(fields, ", ")+", which the machines\nwere made with. Machines that are added get what is written here.",
		)
	}
}

// commentMachine says what is not known of the AWSMachine of a group.
func (g machineGroup) commentMachine(o *Object, path string) {
	o.comment(path+".additionalSecurityGroups", foreignGroups)
	switch fields := g.unknownFields(false); {
	case len(fields) > 0:
		o.comment(path, "Not known: the values of "+strings.Join(fields, ", ")+".")
	case !g.recorded && g.spec.SpotMarketOptions != nil:
		o.comment(path, "Not known: the highest price of spot instances.")
	}
}

// unknownFields lists the fields of the bootstrap configuration, or of the AWSMachine, whose
// values are not known.
func (g machineGroup) unknownFields(boot bool) (out []string) {
	for _, name := range g.unknown {
		field, isBoot := strings.CutPrefix(name, topology.BootPrefix)
		if isBoot == boot {
			out = append(out, field)
		}
	}
	return slices.Compact(out)
}
