package loader

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

	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest/rules"
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
	o.Used = true
	c, ok := o.Typed.(*clusterv1.Cluster)
	if !ok {
		return
	}
	l.cluster.Object, l.cluster.Topology = c, l.topologies[c.Name]
	l.cluster.Name = c.Name
	l.cluster.Namespace = cmp.Or(c.Namespace, metav1.NamespaceDefault)
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
	l.checkServed()
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
	problems, warnings := rules.Check(l.cluster, l.objects)
	l.problems = append(l.problems, l.notYetReported(problems)...)
	l.warnings = append(l.warnings, warnings...)
	l.warnUnused()
}

// fillNamespaces sets the namespace of the Cluster on objects without a namespace, as
// kubectl apply -n does.
func (l *loader) fillNamespaces() {
	for _, o := range l.objects {
		meta, ok := o.Typed.(metav1.Object)
		if ok && meta.GetNamespace() == "" && !l.kinds[o.Kind].clusterScoped {
			meta.SetNamespace(l.cluster.Namespace)
		}
	}
}

// findCluster returns the one Cluster object of the input.
func (l *loader) findCluster() *manifest.Entry {
	found := l.ofKind(manifest.KindCluster)
	switch len(found) {
	case 1:
		return found[0]
	case 0:
		l.noCluster()
		return nil
	default:
		for _, o := range found[1:] {
			l.fail(o.Problem("", "the input has more than one Cluster, the first is "+found[0].Title(), "choose one with --cluster NAME"))
		}
		return nil
	}
}

func (l *loader) ofKind(kind string) []*manifest.Entry {
	var found []*manifest.Entry
	for _, o := range l.objects {
		if o.Kind == kind {
			found = append(found, o)
		}
	}
	return found
}

// resolveInfrastructure finds the AWSCluster and the region.
func (l *loader) resolveInfrastructure(o *manifest.Entry, c *clusterv1.Cluster) {
	if !c.Spec.InfrastructureRef.IsDefined() {
		l.fail(o.Problem("spec.infrastructureRef", "the Cluster names no AWSCluster", "set it"))
		return
	}
	r := contract(o, "spec.infrastructureRef", c.Spec.InfrastructureRef)
	infra := resolved[infrav1.AWSCluster](l, r, manifest.KindAWSCluster)
	l.refuseOthers(manifest.KindAWSCluster, r)
	if infra == nil {
		return
	}
	l.useInfrastructure(l.lookup(manifest.KindAWSCluster, r.name), infra)
}

// refuseOthers refuses all objects of a kind except the one that the Cluster refers to.
func (l *loader) refuseOthers(kind string, r reference) {
	if r.kind == kind && l.lookup(kind, r.name) == nil {
		return // the reference may be what is wrong
	}
	for _, other := range l.ofKind(kind) {
		if r.kind == kind && other.Name != r.name {
			other.Used = true
			l.fail(other.Problem("", fmt.Sprintf("there is more than one %s; the Cluster uses %[1]s/%s", kind, r.name), "remove this one"))
		}
	}
}

// useInfrastructure sets the infrastructure and the region, and records the object that
// they come from.
func (l *loader) useInfrastructure(o *manifest.Entry, infra *infrav1.AWSCluster) {
	l.infra = o
	l.cluster.SetInfra(infra, o)
	_, l.cluster.External = infra.Annotations[clusterv1.ManagedByAnnotation]
	l.cluster.SetRegion(cmp.Or(infra.Spec.Region, l.options.Region))
	if l.cluster.Region == "" {
		if slices.Contains(l.invalid[o], "spec.region") { // it is set, and is no text
			return
		}
		l.fail(o.Problem("spec.region", "no region is set", "set it, or use --region"))
	}
	l.cluster.FlowLogs = l.flowLogs(o)
	if o.Kind == manifest.KindAWSCluster {
		l.cluster.DeletionProtection = l.flag(o, manifest.AnnotationDeletionProtection)
	}
}

// resolveControlPlane finds the KubeadmControlPlane and its template.
func (l *loader) resolveControlPlane(o *manifest.Entry, c *clusterv1.Cluster) {
	if !c.Spec.ControlPlaneRef.IsDefined() {
		return
	}
	r := contract(o, "spec.controlPlaneRef", c.Spec.ControlPlaneRef)
	plane := resolved[controlplanev1.KubeadmControlPlane](l, r, manifest.KindControlPlane)
	if plane == nil {
		return
	}
	from := l.lookup(manifest.KindControlPlane, r.name)
	l.cluster.Version = plane.Spec.Version
	l.cluster.ControlPlane = &manifest.ControlPlane{
		Object: plane,
		Template: resolved[infrav1.AWSMachineTemplate](l,
			contract(from, "spec.machineTemplate.spec.infrastructureRef", plane.Spec.MachineTemplate.Spec.InfrastructureRef), manifest.KindAWSMachineTemplate),
	}
}

// resolveDeployments finds the MachineDeployments of the cluster.
func (l *loader) resolveDeployments() {
	for _, o := range l.ofKind(manifest.KindDeployment) {
		o.Used = true
		d, ok := o.Typed.(*clusterv1.MachineDeployment)
		if !ok || !l.belongs(o, d.Spec.ClusterName) {
			continue
		}
		machine := d.Spec.Template.Spec
		deployment := manifest.Deployment{Object: d}
		deployment.Template = resolved[infrav1.AWSMachineTemplate](l,
			contract(o, "spec.template.spec.infrastructureRef", machine.InfrastructureRef), manifest.KindAWSMachineTemplate)
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
	for _, o := range l.ofKind(manifest.KindMachine) {
		o.Used = true
		m, ok := o.Typed.(*clusterv1.Machine)
		if !ok || !l.belongs(o, m.Spec.ClusterName) {
			continue
		}
		machine := manifest.Machine{Object: m}
		_, machine.ControlPlane = m.Labels[clusterv1.MachineControlPlaneLabel]
		machine.Infra = resolved[infrav1.AWSMachine](l, contract(o, "spec.infrastructureRef", m.Spec.InfrastructureRef), manifest.KindAWSMachine)
		b := asBootstrap(l.bootstrap(o, "spec.bootstrap", m.Spec.Bootstrap, false))
		machine.Bootstrap, machine.EKSBootstrap, machine.NodeadmBootstrap = b.Kubeadm, b.EKS, b.Nodeadm
		l.cluster.Machines = append(l.cluster.Machines, machine)
		if machine.ControlPlane && l.cluster.Version == "" && !l.managed {
			l.cluster.Version = m.Spec.Version
		}
	}
}

// needControlPlane reports a self-managed cluster without control plane, unless a Machine that may be one is invalid.
func (l *loader) needControlPlane(o *manifest.Entry) {
	machines := l.cluster.Machines
	isOne := func(m manifest.Machine) bool { return m.ControlPlane }
	if l.managed || l.cluster.ControlPlane != nil || slices.ContainsFunc(machines, isOne) || len(l.ofKind(manifest.KindMachine)) != len(machines) ||
		l.cluster.Object.Spec.ControlPlaneRef.IsDefined() {
		return
	}
	l.fail(
		o.Problem(
			"spec.controlPlaneRef",
			"the cluster has no control plane",
			"set a KubeadmControlPlane, or add Machines with the label cluster.x-k8s.io/control-plane",
		),
	)
}

// belongs checks that an object to which nothing refers belongs to the Cluster of the
// input: by spec.clusterName and by its namespace.
func (l *loader) belongs(o *manifest.Entry, name string) bool {
	if o.Namespace != "" && o.Namespace != l.cluster.Namespace {
		l.fail(
			o.Problem("metadata.namespace", fmt.Sprintf("is in the namespace %s, but the Cluster is in %s", o.Namespace, l.cluster.Namespace), "use one namespace"),
		)
		return false
	}
	if name == l.cluster.Name {
		return true
	}
	l.fail(o.Problem("spec.clusterName", fmt.Sprintf("names the cluster %q, but the Cluster of the input is %q", name, l.cluster.Name), "use one name"))
	return false
}

// warnUnused warns about objects that no other object refers to. If no Cluster uses a ClusterClass, there is a warning about the class, and none
// about its templates.
func (l *loader) warnUnused() {
	var classes []any
	for _, o := range l.ofKind(manifest.KindClusterClass) {
		classes = append(classes, o.Value)
	}
	for _, o := range l.objects {
		switch {
		case o.Kind == manifest.KindDrainRule:
			l.warn(o.Problem("", "has an effect only in a management cluster", ""))
		case o.Used, o.Kind == manifest.KindNamespace, mentions(classes, o.Kind, o.Name):
		case o.Kind == manifest.KindClusterClass:
			l.warn(o.Problem("", "no Cluster of the input uses it, so it has no effect", "remove it, or refer to it"))
		case l.ignoredUser(o) != nil:
			p := o.Problem("", fmt.Sprintf("has no effect: %s, which is ignored, refers to it", l.ignoredUser(o).Title()), "")
			p.Several = "have no effect: objects that are ignored refer to them"
			l.warn(p)
		default:
			l.warn(o.Problem("", "nothing in the input refers to it, so it has no effect", "remove it, or refer to it"))
		}
	}
}

// ignoredUser returns an object that is ignored and has the name of a ConfigMap or a Secret as a value, such as a HelmRelease of Flux with
// valuesFrom; nil if there is none.
func (l *loader) ignoredUser(o *manifest.Entry) *aside {
	if o.Kind != manifest.KindConfigMap && o.Kind != manifest.KindSecret {
		return nil
	}
	for _, a := range l.asides {
		if !a.failed && contains(a.Value["spec"], o.Name) {
			return a
		}
	}
	return nil
}

// contains reports whether a text is one of the values below a value.
func contains(value any, text string) bool {
	switch v := value.(type) {
	case string:
		return v == text
	case []any:
		return slices.ContainsFunc(v, func(x any) bool { return contains(x, text) })
	case map[string]any:
		for _, x := range v {
			if contains(x, text) {
				return true
			}
		}
	}
	return false
}

// keepObjects records the admitted objects. Objects from Options.Identities are those of a
// management cluster, and not part of the manifest.
func (l *loader) keepObjects() {
	for _, o := range l.objects {
		x, ok := o.Typed.(manifest.Object)
		if !ok || o.Foreign {
			continue
		}
		k := l.kinds[o.Kind]
		version := "v1"
		if k.schema {
			version = manifest.VersionNew
		}
		x.GetObjectKind().SetGroupVersionKind(apischema.GroupVersionKind{Group: k.group, Version: version, Kind: o.Kind})
		l.cluster.Keep(x)
	}
}

// notYetReported returns the problems of fields of which a schema or a webhook has said nothing: they often have the same
// rule.
func (l *loader) notYetReported(problems []manifest.Problem) []manifest.Problem {
	return slices.DeleteFunc(problems, func(p manifest.Problem) bool {
		return p.Path != "" && slices.ContainsFunc(l.problems, func(other manifest.Problem) bool {
			return other.Object == p.Object && other.Path == p.Path && other.Position == p.Position
		})
	})
}
