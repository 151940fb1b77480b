package manifest

import (
	"cmp"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"
	infrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/api/v1beta2"
	eksbootstrapv1 "sigs.k8s.io/cluster-api-provider-aws/v2/bootstrap/eks/api/v1beta2"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// assemble builds the Cluster value. It skips what depends on an invalid object: the
// problem of that object is reported already.
func (l *loader) assemble() {
	if l.incomplete || l.unexpanded {
		return
	}
	l.collectPayloads()
	o := l.findCluster()
	if o == nil {
		return
	}
	o.used = true
	c, ok := o.typed.(*clusterv1.Cluster)
	if !ok {
		return
	}
	l.cluster.Object = c
	l.cluster.Name = c.Name
	l.cluster.Namespace = cmp.Or(c.Namespace, "default")
	l.fillNamespaces()
	if l.managed = l.cluster.IsManaged(); l.managed {
		l.resolveEKS(o, c)
	} else {
		l.resolveInfrastructure(o, c)
		l.resolveControlPlane(o, c)
	}
	l.resolveDeployments()
	l.resolveMachines()
	l.resolvePools()
	l.resolveHealthChecks()
	l.nameRoles()
	l.nameSubnets()
	l.resolveAddons(c)
	l.resolveCharts(c)
	l.resolveIdentity()
	l.keepObjects()
	if l.dropped || l.consequence {
		return
	}
	l.resolveSecrets()
	if l.cluster.EKS != nil {
		l.admitNetwork(valueContext())
	}
	l.needControlPlane(o)
	l.checkAnnotations()
	problems, warnings := Check(l.cluster, l.objects)
	l.problems = append(l.problems, problems...)
	l.warnings = append(l.warnings, warnings...)
	l.warnUnused()
}

// fillNamespaces sets the namespace of the Cluster on objects without a namespace, as
// kubectl apply -n does.
func (l *loader) fillNamespaces() {
	for _, o := range l.objects {
		meta, ok := o.typed.(metav1.Object)
		if ok && meta.GetNamespace() == "" && !l.kinds[o.kind].clusterScoped {
			meta.SetNamespace(l.cluster.Namespace)
		}
	}
}

// findCluster returns the one Cluster object of the input.
func (l *loader) findCluster() *object {
	found := l.ofKind(kindCluster)
	switch len(found) {
	case 1:
		return found[0]
	case 0:
		l.noCluster()
		return nil
	default:
		for _, o := range found[1:] {
			l.fail(o.problem("", "the input has more than one Cluster, the first is "+found[0].title(), "choose one with --cluster NAME"))
		}
		return nil
	}
}

func (l *loader) ofKind(kind string) []*object {
	var found []*object
	for _, o := range l.objects {
		if o.kind == kind {
			found = append(found, o)
		}
	}
	return found
}

// resolveInfrastructure finds the AWSCluster and the region.
func (l *loader) resolveInfrastructure(o *object, c *clusterv1.Cluster) {
	if !c.Spec.InfrastructureRef.IsDefined() {
		l.fail(o.problem("spec.infrastructureRef", "the Cluster names no AWSCluster", "set it"))
		return
	}
	r := contract(o, "spec.infrastructureRef", c.Spec.InfrastructureRef)
	infra := resolved[infrav1.AWSCluster](l, r, kindAWSCluster)
	l.refuseOthers(kindAWSCluster, r)
	if infra == nil {
		return
	}
	l.useInfrastructure(l.lookup(kindAWSCluster, r.name), infra)
}

// refuseOthers refuses all objects of a kind except the one that the Cluster refers to.
func (l *loader) refuseOthers(kind string, r reference) {
	for _, other := range l.ofKind(kind) {
		if r.kind == kind && other.name != r.name {
			other.used = true
			l.fail(other.problem("", fmt.Sprintf("there is more than one %s; the Cluster uses %[1]s/%s", kind, r.name), "remove this one"))
		}
	}
}

// useInfrastructure sets the infrastructure and the region, and records the object that
// they come from.
func (l *loader) useInfrastructure(o *object, infra *infrav1.AWSCluster) {
	l.infra = o
	l.cluster.setInfra(infra, o)
	_, l.cluster.External = infra.Annotations[clusterv1.ManagedByAnnotation]
	l.cluster.SetRegion(cmp.Or(infra.Spec.Region, l.options.Region))
	if l.cluster.Region == "" {
		l.fail(o.problem("spec.region", "no region is set", "set it, or use --region"))
	}
	l.cluster.FlowLogs = l.flowLogs(o)
}

// resolveControlPlane finds the KubeadmControlPlane and its template.
func (l *loader) resolveControlPlane(o *object, c *clusterv1.Cluster) {
	if !c.Spec.ControlPlaneRef.IsDefined() {
		return
	}
	r := contract(o, "spec.controlPlaneRef", c.Spec.ControlPlaneRef)
	plane := resolved[controlplanev1.KubeadmControlPlane](l, r, kindControlPlane)
	if plane == nil {
		return
	}
	from := l.lookup(kindControlPlane, r.name)
	l.cluster.Version = plane.Spec.Version
	l.cluster.ControlPlane = &ControlPlane{
		Object: plane,
		Template: resolved[infrav1.AWSMachineTemplate](l,
			contract(from, "spec.machineTemplate.spec.infrastructureRef", plane.Spec.MachineTemplate.Spec.InfrastructureRef), kindAWSMachineTemplate),
	}
}

// resolveDeployments finds the MachineDeployments of the cluster.
func (l *loader) resolveDeployments() {
	for _, o := range l.ofKind(kindDeployment) {
		o.used = true
		d, ok := o.typed.(*clusterv1.MachineDeployment)
		if !ok || !l.belongs(o, d.Spec.ClusterName) {
			continue
		}
		machine := d.Spec.Template.Spec
		deployment := Deployment{Object: d}
		deployment.Template = resolved[infrav1.AWSMachineTemplate](l,
			contract(o, "spec.template.spec.infrastructureRef", machine.InfrastructureRef), kindAWSMachineTemplate)
		switch x := l.bootstrap(o, "spec.template.spec.bootstrap", machine.Bootstrap, true).(type) {
		case *bootstrapv1.KubeadmConfigTemplate:
			deployment.Bootstrap = x
		case *eksbootstrapv1.EKSConfigTemplate:
			deployment.EKSBootstrap = x
		case *eksbootstrapv1.NodeadmConfigTemplate:
			deployment.NodeadmBootstrap = x
		}
		l.cluster.Deployments = append(l.cluster.Deployments, deployment)
	}
}

// resolveMachines finds the stand-alone Machines of the cluster.
func (l *loader) resolveMachines() {
	for _, o := range l.ofKind(kindMachine) {
		o.used = true
		m, ok := o.typed.(*clusterv1.Machine)
		if !ok || !l.belongs(o, m.Spec.ClusterName) {
			continue
		}
		machine := Machine{Object: m}
		_, machine.ControlPlane = m.Labels[clusterv1.MachineControlPlaneLabel]
		machine.Infra = resolved[infrav1.AWSMachine](l, contract(o, "spec.infrastructureRef", m.Spec.InfrastructureRef), kindAWSMachine)
		b := asBootstrap(l.bootstrap(o, "spec.bootstrap", m.Spec.Bootstrap, false))
		machine.Bootstrap, machine.EKSBootstrap, machine.NodeadmBootstrap = b.Kubeadm, b.EKS, b.Nodeadm
		l.cluster.Machines = append(l.cluster.Machines, machine)
		if machine.ControlPlane && l.cluster.Version == "" && !l.managed {
			l.cluster.Version = m.Spec.Version
		}
	}
}

// needControlPlane reports a self-managed cluster without control plane, unless a Machine that may be one is invalid.
func (l *loader) needControlPlane(o *object) {
	machines := l.cluster.Machines
	isOne := func(m Machine) bool { return m.ControlPlane }
	if l.managed || l.cluster.ControlPlane != nil || slices.ContainsFunc(machines, isOne) || len(l.ofKind(kindMachine)) != len(machines) ||
		l.cluster.Object.Spec.ControlPlaneRef.IsDefined() {
		return
	}
	l.fail(
		o.problem(
			"spec.controlPlaneRef",
			"the cluster has no control plane",
			"set a KubeadmControlPlane, or add Machines with the label cluster.x-k8s.io/control-plane",
		),
	)
}

// belongs checks that an object to which nothing refers belongs to the Cluster of the
// input: by spec.clusterName and by its namespace.
func (l *loader) belongs(o *object, name string) bool {
	if o.namespace != "" && o.namespace != l.cluster.Namespace {
		l.fail(
			o.problem("metadata.namespace", fmt.Sprintf("is in the namespace %s, but the Cluster is in %s", o.namespace, l.cluster.Namespace), "use one namespace"),
		)
		return false
	}
	if name == l.cluster.Name {
		return true
	}
	l.fail(o.problem("spec.clusterName", fmt.Sprintf("names the cluster %q, but the Cluster of the input is %q", name, l.cluster.Name), "use one name"))
	return false
}

// warnUnused warns about objects to which nothing refers.
func (l *loader) warnUnused() {
	for _, o := range l.objects {
		switch {
		case o.kind == kindDrainRule:
			l.warn(o.problem("", "has an effect only in a management cluster", ""))
		case o.used, o.kind == kindNamespace:
		default:
			l.warn(o.problem("", "nothing in the input refers to it, so it has no effect", "remove it, or refer to it"))
		}
	}
}

// keepObjects records the admitted objects. Objects from Options.Identities are those of a
// management cluster, and not part of the manifest.
func (l *loader) keepObjects() {
	for _, o := range l.objects {
		x, ok := o.typed.(Object)
		if !ok || o.foreign {
			continue
		}
		k := l.kinds[o.kind]
		version := "v1"
		if k.schema {
			version = versionNew
		}
		x.GetObjectKind().SetGroupVersionKind(apischema.GroupVersionKind{Group: k.group, Version: version, Kind: o.kind})
		l.cluster.keep(x)
	}
}
