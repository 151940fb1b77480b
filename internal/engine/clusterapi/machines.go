package clusterapi

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"

	"github.com/blang/semver/v4"
	infrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/api/v1beta2"
	eksbootstrapv1 "sigs.k8s.io/cluster-api-provider-aws/v2/bootstrap/eks/api/v1beta2"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
)

// Annotations with which CAPA records what it has done. Without them, it would do it again.
const (
	tagsAnnotation       = "sigs.k8s.io/cluster-api-provider-aws-last-applied-tags"
	volumeTagsAnnotation = "sigs.k8s.io/cluster-api-provider-last-applied-tags-on-volumes"
)

// parts are the objects of one machine, before it is known which instance it is.
type parts struct {
	machine   *clusterv1.Machine
	infra     *infrav1.AWSMachine
	bootstrap manifest.Object // nil if the machine has a dataSecretName
	owner     Owner
}

// addMachines adds the objects of all machines: Machine, AWSMachine and the bootstrap
// configuration. Those of stand-alone Machines are in the manifest, and get their IDs.
func (b *builder) addMachines() error {
	for _, have := range b.s.Machines {
		if x := b.find("Machine", have.Group); x != nil {
			b.fillSingle(x, have)
			continue
		}
		p, err := b.partsOf(have)
		if err != nil {
			return err
		}
		name := have.name()
		p.machine.Name, p.infra.Name = name, name
		typeMeta(p.machine, clusterv1.GroupVersion, "Machine")
		typeMeta(p.infra, infrav1.GroupVersion, "AWSMachine")
		p.machine.Spec.InfrastructureRef = reference(p.infra)
		p.machine.Spec.ProviderID = have.providerID()
		b.identify(p.infra, have)
		b.add(p.machine, &p.owner)
		b.add(p.infra, &Owner{p.machine, true})
		if p.bootstrap != nil {
			p.bootstrap.SetName(name)
			p.machine.Spec.Bootstrap = clusterv1.Bootstrap{ConfigRef: reference(p.bootstrap), DataSecretName: &name}
			b.add(p.bootstrap, &Owner{p.machine, true})
		}
	}
	return nil
}

// partsOf returns the objects of a machine of a control plane or a deployment.
func (b *builder) partsOf(have Machine) (parts, error) {
	if cp := b.m.ControlPlane; cp != nil && cp.Object.Name == have.Group {
		return b.controlPlaneParts(have)
	}
	for _, d := range b.m.Deployments {
		if d.Object.Name == have.Group {
			return b.workerParts(d)
		}
	}
	return parts{}, fmt.Errorf("machine %s: the manifest has no object %s", have.ID, have.Group)
}

// name is the name of the Machine and of the objects that belong to it.
func (m Machine) name() string {
	_, name, _ := strings.Cut(m.Tags[infrav1.MachineNameTagKey], "/")
	if name == "" {
		name = m.Tags["Name"]
	}
	return name
}

// providerID is the ID of the machine on its Node.
func (m Machine) providerID() string { return "aws:///" + m.Zone + "/" + m.ID }

// fillSingle writes the IDs of a machine into the objects of a stand-alone Machine.
func (b *builder) fillSingle(x *Item, have Machine) {
	m, ok := x.Object.(*clusterv1.Machine)
	if !ok {
		return
	}
	m.Spec.ProviderID = have.providerID()
	if ref := m.Spec.Bootstrap.ConfigRef; ref.IsDefined() && m.Spec.Bootstrap.DataSecretName == nil {
		m.Spec.Bootstrap.DataSecretName = &m.Name
		if config := b.find(ref.Kind, ref.Name); config != nil {
			config.Owner = &Owner{m, true}
		}
	}
	if infra := b.find(m.Spec.InfrastructureRef.Kind, m.Spec.InfrastructureRef.Name); infra != nil {
		infra.Owner = &Owner{m, true}
		if a, ok := infra.Object.(*infrav1.AWSMachine); ok {
			b.identify(a, have)
		}
	}
}

// identify writes the instance into an AWSMachine, and records the tags it has.
func (b *builder) identify(a *infrav1.AWSMachine, have Machine) {
	id := have.providerID()
	a.Spec.ProviderID, a.Spec.InstanceID = &id, &have.ID
	tags := b.tags(a.Spec.AdditionalTags)
	if len(tags) == 0 {
		return
	}
	volumes := map[string]infrav1.Tags{}
	for _, v := range have.Volumes {
		volumes[v] = tags
	}
	if a.Annotations == nil {
		a.Annotations = map[string]string{}
	}
	a.Annotations[tagsAnnotation] = text(tags)
	a.Annotations[volumeTagsAnnotation] = text(volumes)
}

// tags returns the tags that the user gives to a machine, or to the machines of a pool.
func (b *builder) tags(additional infrav1.Tags) infrav1.Tags {
	return merged(b.m.Infra.Spec.AdditionalTags, additional)
}

// text encodes a value for an annotation.
func text(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		return "{}" // maps of strings can always be encoded
	}
	return string(data)
}

// controlPlaneParts returns the objects of a machine of a KubeadmControlPlane. Its
// controller replaces machines whose objects differ from those it would create.
func (b *builder) controlPlaneParts(have Machine) (parts, error) {
	kcp, template := b.m.ControlPlane.Object, b.m.ControlPlane.Template
	spec, err := joinSpec(kcp)
	if err != nil {
		return parts{}, err
	}
	labels := merged(kcp.Spec.MachineTemplate.ObjectMeta.Labels, map[string]string{
		clusterv1.ClusterNameLabel: b.m.Name, clusterv1.MachineControlPlaneLabel: "", clusterv1.MachineControlPlaneNameLabel: labelValue(kcp.Name),
	})
	annotations := kcp.Spec.MachineTemplate.ObjectMeta.Annotations
	config := &bootstrapv1.KubeadmConfig{ObjectMeta: meta("", labels, merged(annotations)), Spec: *spec}
	typeMeta(config, bootstrapv1.GroupVersion, "KubeadmConfig")
	deletion := kcp.Spec.MachineTemplate.Spec.Deletion
	m := &clusterv1.Machine{
		ObjectMeta: meta("", labels, merged(annotations, map[string]string{controlplanev1.PreTerminateHookCleanupAnnotation: ""})),
		Spec: clusterv1.MachineSpec{
			ClusterName: b.m.Name, Version: kcp.Spec.Version, FailureDomain: have.Zone, Taints: kcp.Spec.MachineTemplate.Spec.Taints,
			ReadinessGates: readinessGates(kcp),
			Deletion: clusterv1.MachineDeletionSpec{
				NodeDrainTimeoutSeconds: deletion.NodeDrainTimeoutSeconds, NodeDeletionTimeoutSeconds: deletion.NodeDeletionTimeoutSeconds,
				NodeVolumeDetachTimeoutSeconds: deletion.NodeVolumeDetachTimeoutSeconds,
			},
		},
	}
	return parts{
		machine: m, infra: copyOf(template, labels, annotations), bootstrap: config,
		owner: Owner{b.find("KubeadmControlPlane", kcp.Name).Object, true},
	}, nil
}

// readinessGates are the conditions that the controller requires of its machines.
func readinessGates(kcp *controlplanev1.KubeadmControlPlane) (gates []clusterv1.MachineReadinessGate) {
	conditions := []string{
		controlplanev1.KubeadmControlPlaneMachineNodeKubeadmLabelsAndTaintsSetCondition,
		controlplanev1.KubeadmControlPlaneMachineAPIServerPodHealthyCondition,
		controlplanev1.KubeadmControlPlaneMachineControllerManagerPodHealthyCondition,
		controlplanev1.KubeadmControlPlaneMachineSchedulerPodHealthyCondition,
	}
	if !kcp.Spec.KubeadmConfigSpec.ClusterConfiguration.Etcd.External.IsDefined() {
		conditions = append(
			conditions,
			controlplanev1.KubeadmControlPlaneMachineEtcdPodHealthyCondition,
			controlplanev1.KubeadmControlPlaneMachineEtcdMemberHealthyCondition,
		)
	}
	known := map[string]bool{}
	for _, c := range conditions {
		gates, known[c] = append(gates, clusterv1.MachineReadinessGate{ConditionType: c}), true
	}
	for _, g := range kcp.Spec.MachineTemplate.Spec.ReadinessGates {
		if !known[g.ConditionType] {
			gates, known[g.ConditionType] = append(gates, g), true
		}
	}
	return gates
}

// localMode is a feature gate of kubeadm that Cluster API sets for the Kubernetes versions
// from 1.31 until before 1.36.
const localMode = "ControlPlaneKubeletLocalMode"

// joinSpec is the configuration with which a machine joins the control plane. It is also
// that of the first machine: the controller compares both as if they had joined.
func joinSpec(kcp *controlplanev1.KubeadmControlPlane) (*bootstrapv1.KubeadmConfigSpec, error) {
	spec := kcp.Spec.KubeadmConfigSpec.DeepCopy()
	spec.InitConfiguration = bootstrapv1.InitConfiguration{}
	if spec.JoinConfiguration.ControlPlane == nil {
		spec.JoinConfiguration.ControlPlane = &bootstrapv1.JoinControlPlane{}
	}
	v, err := semver.ParseTolerant(kcp.Spec.Version)
	if err != nil {
		return nil, fmt.Errorf("version of KubeadmControlPlane/%s: %w", kcp.Name, err)
	}
	if _, set := spec.ClusterConfiguration.FeatureGates[localMode]; !set && v.Major == 1 && v.Minor >= 31 && v.Minor < 36 {
		if spec.ClusterConfiguration.FeatureGates == nil {
			spec.ClusterConfiguration.FeatureGates = map[string]bool{}
		}
		spec.ClusterConfiguration.FeatureGates[localMode] = true
	}
	return spec, nil
}

// workerParts returns the objects of a machine of a MachineDeployment.
func (b *builder) workerParts(d manifest.Deployment) (parts, error) {
	set, err := b.setOf(d)
	if err != nil {
		return parts{}, err
	}
	labels := merged(set.Spec.Template.Labels, map[string]string{
		clusterv1.ClusterNameLabel: b.m.Name, clusterv1.MachineSetNameLabel: labelValue(set.Name), clusterv1.MachineDeploymentNameLabel: d.Object.Name,
	})
	annotations := set.Spec.Template.Annotations
	m := &clusterv1.Machine{ObjectMeta: meta("", labels, merged(annotations)), Spec: *set.Spec.Template.Spec.DeepCopy()}
	return parts{
		machine: m, infra: copyOf(d.Template, labels, annotations), bootstrap: bootstrapOf(d, labels, annotations), owner: Owner{set, true},
	}, nil
}

// copyOf returns the AWSMachine of a template.
func copyOf(t *infrav1.AWSMachineTemplate, labels, annotations map[string]string) *infrav1.AWSMachine {
	given := t.Spec.Template.ObjectMeta
	return &infrav1.AWSMachine{
		ObjectMeta: meta("", merged(given.Labels, labels), merged(given.Annotations, annotations, clonedFrom(t))),
		Spec:       *t.Spec.Template.Spec.DeepCopy(),
	}
}

// bootstrapOf returns the bootstrap configuration of a template; nil if the deployment has
// none.
func bootstrapOf(d manifest.Deployment, labels, annotations map[string]string) manifest.Object {
	switch {
	case d.Bootstrap != nil:
		x := &bootstrapv1.KubeadmConfig{ObjectMeta: meta("", labels, merged(annotations, clonedFrom(d.Bootstrap))), Spec: *d.Bootstrap.Spec.Template.Spec.DeepCopy()}
		typeMeta(x, bootstrapv1.GroupVersion, "KubeadmConfig")
		return x
	case d.EKSBootstrap != nil:
		x := &eksbootstrapv1.EKSConfig{ //nolint:staticcheck // deprecated, and what the manifest has
			ObjectMeta: meta("", labels, merged(annotations, clonedFrom(d.EKSBootstrap))),
			Spec:       *d.EKSBootstrap.Spec.Template.Spec.DeepCopy(),
		}
		typeMeta(x, eksbootstrapv1.GroupVersion, "EKSConfig")
		return x
	case d.NodeadmBootstrap != nil:
		x := &eksbootstrapv1.NodeadmConfig{
			ObjectMeta: meta("", labels, merged(annotations, clonedFrom(d.NodeadmBootstrap))),
			Spec:       *d.NodeadmBootstrap.Spec.Template.Spec.DeepCopy(),
		}
		typeMeta(x, eksbootstrapv1.GroupVersion, "NodeadmConfig")
		return x
	}
	return nil
}

// merged merges maps; later ones take precedence.
func merged(all ...map[string]string) map[string]string {
	out := map[string]string{}
	for _, m := range all {
		maps.Copy(out, m)
	}
	return out
}
