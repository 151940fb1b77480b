package manifest

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	infrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/api/v1beta2"
	eksbootstrapv1 "sigs.k8s.io/cluster-api-provider-aws/v2/bootstrap/eks/api/v1beta2"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/clusterawsadm/clusterawsadm/internal/suggest"
)

// assemble builds the Cluster value. It skips what depends on an invalid object: the
// problem of that object is reported already.
func (l *loader) assemble() {
	if l.incomplete || l.unexpanded {
		return
	}
	l.collectPayloads()
	o := l.theCluster()
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
	if l.managed = isManaged(c); l.managed {
		l.resolveEKS(o, c)
	} else {
		l.resolveInfrastructure(o, c)
		l.resolveControlPlane(o, c)
	}
	l.resolveDeployments()
	l.resolveMachines()
	l.resolvePools()
	l.nameRoles()
	l.resolveAddons(c)
	l.resolveIdentity()
	if !l.dropped {
		l.checkWhole(o)
		l.warnUnused()
	}
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

// theCluster returns the one Cluster object of the input.
func (l *loader) theCluster() *object {
	found := l.ofKind(kindCluster)
	switch len(found) {
	case 1:
		return found[0]
	case 0:
		if len(l.problems) == 0 {
			l.fail(Problem{Position: l.begin, What: "there is no Cluster in the input", Fix: "add the object of kind Cluster"})
		}
		return nil
	default:
		for _, o := range found[1:] {
			l.fail(o.problem("", "the input has more than one Cluster, the first is "+found[0].title(), "pass one cluster at a time"))
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

// reference is a reference from one object to another.
type reference struct {
	from              *object
	path              string // path of the reference in from
	group, kind, name string
}

// contract converts a Cluster API reference.
func contract(from *object, path string, r clusterv1.ContractVersionedObjectReference) reference {
	return reference{from: from, path: path, group: r.APIGroup, kind: r.Kind, name: r.Name}
}

// follow returns the object that a reference names, which must be of one of the wanted
// kinds. If the result is nil, the problem was reported.
func (l *loader) follow(r reference, wanted ...string) *object {
	choice := strings.Join(wanted, " or ")
	if reason, ok := refused()[r.kind]; ok {
		l.fail(r.from.problem(r.path+".kind", fmt.Sprintf("%s cannot be used: %s", r.kind, reason), "use "+choice))
		return nil
	}
	if !slices.Contains(wanted, r.kind) {
		l.fail(r.from.problem(r.path+".kind", fmt.Sprintf("must be %s, not %s", choice, r.kind), "change the reference"))
		return nil
	}
	if group := l.kinds[r.kind].group; r.group != "" && r.group != group {
		l.fail(r.from.problem(r.path, fmt.Sprintf("%s is in the API group %s, not %s", r.kind, group, r.group), "change the reference"))
		return nil
	}
	if namespace, ok := at(r.from.value, r.from.oldName(r.path)+".namespace").(string); ok && namespace != l.cluster.Namespace {
		l.warn(r.from.problem(r.path+".namespace", fmt.Sprintf("the reference says %s, but Cluster API looks in the namespace of the Cluster, %s", namespace, l.cluster.Namespace), "remove it"))
	}
	o := l.lookup(r.kind, r.name)
	if o == nil {
		l.fail(r.from.problem(r.path+".name", fmt.Sprintf("there is no %s/%s in the input", r.kind, r.name), l.namesOf(r.kind, r.name)))
		return nil
	}
	o.used = true
	return o
}

// lookup returns the object with that kind and name in the namespace of the Cluster.
func (l *loader) lookup(kind, name string) *object {
	for _, namespace := range []string{l.cluster.Namespace, ""} {
		if o := l.byKey[key{kind, namespace, name}]; o != nil {
			return o
		}
	}
	return nil
}

// namesOf returns the fix for a name that does not exist.
func (l *loader) namesOf(kind, name string) string {
	var names []string
	for _, o := range l.ofKind(kind) {
		if o.namespace != "" && o.namespace != l.cluster.Namespace && o.name == name {
			return fmt.Sprintf("it is in the namespace %s, but the Cluster is in %s", o.namespace, l.cluster.Namespace)
		}
		names = append(names, o.name)
	}
	if len(names) == 0 {
		return fmt.Sprintf("add it: the input has no %s", kind)
	}
	if meant := suggest.Nearest(name, names); meant != "" {
		return fmt.Sprintf("did you mean %q?", meant)
	}
	slices.Sort(names)
	return "the input has " + strings.Join(names, ", ")
}

// resolved returns the typed object that a reference names. If the result is nil, the
// problem was reported.
func resolved[T any](l *loader, r reference, wanted string) *T {
	o := l.follow(r, wanted)
	if o == nil {
		return nil
	}
	t, _ := o.typed.(*T)
	return t
}

// resolveInfrastructure finds the AWSCluster and the region.
func (l *loader) resolveInfrastructure(o *object, c *clusterv1.Cluster) {
	if !c.Spec.InfrastructureRef.IsDefined() {
		l.fail(o.problem("spec.infrastructureRef", "the Cluster names no AWSCluster", "set it"))
		return
	}
	r := contract(o, "spec.infrastructureRef", c.Spec.InfrastructureRef)
	infra := resolved[infrav1.AWSCluster](l, r, kindAWSCluster)
	for _, other := range l.ofKind(kindAWSCluster) {
		if r.kind == kindAWSCluster && other.name != r.name {
			other.used = true
			l.fail(other.problem("", "there is more than one AWSCluster; the Cluster uses AWSCluster/"+r.name, "remove this one"))
		}
	}
	if infra == nil {
		return
	}
	l.useInfrastructure(l.lookup(kindAWSCluster, r.name), infra)
}

// useInfrastructure sets the infrastructure and the region, and records the object that
// they come from.
func (l *loader) useInfrastructure(o *object, infra *infrav1.AWSCluster) {
	l.cluster.Infra, l.infra = infra, o
	l.cluster.infra = o.title()
	l.cluster.SetRegion(cmp.Or(infra.Spec.Region, l.options.Region))
	if l.cluster.Region == "" {
		l.fail(o.problem("spec.region", "no region is set", "set it, or use --region"))
	}
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
	}
}

// belongs checks that an object to which nothing refers belongs to the Cluster of the
// input: by spec.clusterName and by its namespace.
func (l *loader) belongs(o *object, name string) bool {
	if o.namespace != "" && o.namespace != l.cluster.Namespace {
		l.fail(o.problem("metadata.namespace", fmt.Sprintf("is in the namespace %s, but the Cluster is in %s", o.namespace, l.cluster.Namespace), "use one namespace"))
		return false
	}
	if name == l.cluster.Name {
		return true
	}
	l.fail(o.problem("spec.clusterName", fmt.Sprintf("names the cluster %q, but the Cluster of the input is %q", name, l.cluster.Name), "use one name"))
	return false
}

// bootstrap returns the bootstrap configuration of a machine, or its template, which must
// fit the type of cluster. It returns nil if a Secret with user data is used instead,
// which is checked, and if the object is missing or invalid, which is reported.
func (l *loader) bootstrap(o *object, path string, b clusterv1.Bootstrap, template bool) any {
	if !b.ConfigRef.IsDefined() {
		l.dataSecret(o, path+".dataSecretName", b.DataSecretName)
		return nil
	}
	here, elsewhere := []string{kindConfig}, []string{kindEKSConfig, kindNodeadm}
	cluster, other := "this cluster is self-managed", "nodes of EKS"
	if l.managed {
		here, elsewhere = []string{kindNodeadm, kindEKSConfig}, here
		cluster, other = "EKS runs the control plane of this cluster", "nodes of self-managed clusters"
	}
	if template {
		here, elsewhere = templates(here), templates(elsewhere)
	}
	r := contract(o, path+".configRef", b.ConfigRef)
	if slices.Contains(elsewhere, r.kind) {
		if found := l.lookup(r.kind, r.name); found != nil {
			found.used = true
		}
		l.fail(o.problem(r.path+".kind", fmt.Sprintf("%s is for %s, and %s", r.kind, other, cluster), "use "+strings.Join(here, " or ")))
		return nil
	}
	if found := l.follow(r, here...); found != nil {
		return found.typed
	}
	return nil
}

// templates returns the kinds of the templates of kinds.
func templates(kinds []string) []string {
	var out []string
	for _, k := range kinds {
		out = append(out, k+"Template")
	}
	return out
}

func asBootstrap(typed any) (b Bootstrap) {
	switch x := typed.(type) {
	case *bootstrapv1.KubeadmConfig:
		b.Kubeadm = x
	case *eksbootstrapv1.EKSConfig: //nolint:staticcheck // deprecated, and what nodes of Amazon Linux 2 boot with
		b.EKS = x
	case *eksbootstrapv1.NodeadmConfig:
		b.Nodeadm = x
	}
	return b
}

// dataSecret checks the Secret that contains the user data.
func (l *loader) dataSecret(o *object, path string, name *string) {
	switch {
	case name == nil:
	case *name == "":
		l.fail(o.problem(path, "names no Secret, so the machines would have no user data", "set it, or set configRef"))
	default:
		l.secretKey(o, path, *name, "value")
	}
}

// secretKey checks that a Secret exists in the input and has a key.
func (l *loader) secretKey(o *object, path, name, entry string) {
	found := l.lookup(kindSecret, name)
	if found == nil {
		l.fail(o.problem(path, fmt.Sprintf("there is no Secret/%s in the input", name), l.namesOf(kindSecret, name)))
		return
	}
	found.used = true
	s := l.cluster.Secrets[name]
	if s == nil {
		return
	}
	if _, ok := s.Data[entry]; !ok {
		l.fail(o.problem(path, fmt.Sprintf("Secret/%s has no key %q", name, entry), "add the key to the Secret"))
	}
}

// warnUnused warns about objects to which nothing refers.
func (l *loader) warnUnused() {
	for _, o := range l.objects {
		switch {
		case o.kind == kindHealthCheck, o.kind == kindDrainRule:
			l.warn(o.problem("", "has an effect only in a management cluster", ""))
		case o.used, o.kind == kindNamespace:
		default:
			l.warn(o.problem("", "nothing in the input refers to it, so it has no effect", "remove it, or refer to it"))
		}
	}
}
