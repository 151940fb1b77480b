package manifest

import (
	"cmp"
	"context"
	"slices"
	"strings"

	infrav1beta1 "sigs.k8s.io/cluster-api-provider-aws/v2/api/v1beta1"
	infrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/api/v1beta2"
	ekscontrolplanev1 "sigs.k8s.io/cluster-api-provider-aws/v2/controlplane/eks/api/v1beta2"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	controlplaneconversion "sigs.k8s.io/cluster-api/controlplane/kubeadm/webhooks/conversion"
	coreconversion "sigs.k8s.io/cluster-api/core/webhooks/conversion"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest/class"
)

// withClasses adds the kinds of ClusterClasses.
func withClasses(all map[string]kind) map[string]kind {
	template := func(older, newest decode) kind {
		k := kind{schema: true, versions: map[string]decode{versionNew: newest}}
		if older != nil {
			k.versions[versionOld] = older
		}
		return k
	}
	all[kindClusterClass] = template(upgraded(coreconversion.ConvertClusterClassV1Beta1ToHub), decodeAs[clusterv1.ClusterClass])
	all[kindControlPlaneTemplate] = template(upgraded(controlplaneconversion.ConvertKubeadmControlPlaneTemplateV1Beta1ToHub), decodeAs[controlplanev1.KubeadmControlPlaneTemplate])
	all[kindAWSClusterTemplate] = template(upgraded(toHub[*infrav1beta1.AWSClusterTemplate, *infrav1.AWSClusterTemplate]), decodeAs[infrav1.AWSClusterTemplate])
	all[kindManagedClusterTemplate] = template(nil, decodeAs[infrav1.AWSManagedClusterTemplate])
	all[kindManagedPlaneTemplate] = template(nil, decodeAs[ekscontrolplanev1.AWSManagedControlPlaneTemplate])
	for name, k := range all {
		k.group, _ = groupOf(name)
		all[name] = k
	}
	return all
}

// topology is the state of the expansion of a Cluster's topology.
type topology struct {
	*loader
	cluster   *object
	namespace string                      // of the ClusterClass
	templates map[*object]*class.Template // nil for those that are invalid
	sources   map[key]*object             // the objects that were read, by kind and name
}

// expandTopology replaces a Cluster's topology, its ClusterClass and templates by the
// plain objects they describe.
func (l *loader) expandTopology(ctx context.Context) {
	if l.incomplete {
		return
	}
	for _, o := range l.ofKind(kindCluster) {
		if valueAt(o.value, "spec.topology") == nil {
			continue
		}
		t := &topology{loader: l, cluster: o, templates: map[*object]*class.Template{}, sources: map[key]*object{}}
		if !t.expand(ctx) {
			l.unexpanded = true
		}
	}
}

// expand reports whether the topology could be expanded. If not, the problems were
// reported.
func (t *topology) expand(ctx context.Context) bool {
	cluster, ok := read[clusterv1.Cluster](ctx, t.loader, t.cluster)
	if !ok {
		return false
	}
	name := cluster.GetClassKey()
	t.namespace = name.Namespace
	o := t.find(kindClusterClass, name.Name)
	if o == nil {
		t.missingObject(t.cluster, inVersion(t.cluster, "spec.topology.classRef.name"), kindClusterClass, name.Name)
		return false
	}
	t.checkUnsupported(o)
	classes, ok := read[clusterv1.ClusterClass](ctx, t.loader, o)
	t.removeObject(o)
	if !ok {
		return false
	}
	result, problems := class.Expand(ctx, class.Input{Cluster: cluster, Class: classes, Template: func(kind, apiVersion, name string) (*class.Template, bool) {
		return t.template(ctx, kind, apiVersion, name)
	}})
	for _, p := range problems {
		t.fail(t.problem(p))
	}
	t.takeTemplates(classes)
	if result == nil {
		return false
	}
	t.replace(result)
	return true
}

// read validates an object of a topology and returns its typed value.
func read[T any](ctx context.Context, l *loader, o *object) (*T, bool) {
	if !l.valid(ctx, o) {
		return nil, false
	}
	newest, ok := l.decodeOrDrop(ctx, o)
	v, isT := newest.(*T)
	return v, ok && isT
}

// valid validates an object with its schema and sets the defaults of the schema.
func (l *loader) valid(ctx context.Context, o *object) bool {
	before := len(l.problems)
	delete(o.value, "status")
	dropCreationTimestamps(o.value)
	if !l.admitMetadata(o) {
		return false
	}
	s, err := schemaFor(o.kind, o.version)
	if err != nil {
		l.fail(o.problem("", err.Error(), ""))
		return false
	}
	for _, path := range s.Prune(o.value, true) {
		l.unknown(o, path, s.Siblings(path))
	}
	s.Fill(o.value)
	l.failFields(o, s.Validate(ctx, o.value))
	return len(l.problems) == before
}

// find returns an object in the namespace of the class, which is that of the Cluster by
// default.
func (t *topology) find(kind, name string) *object {
	if o := t.sources[key{kind: kind, name: name}]; o != nil {
		return o
	}
	for _, namespace := range []string{t.namespace, t.cluster.namespace, cmp.Or(t.cluster.namespace, "default"), ""} {
		if o := t.byKey[key{kind, namespace, name}]; o != nil {
			t.sources[key{kind: kind, name: name}] = o
			return o
		}
	}
	return nil
}

// template returns a template of the class. Its problems are reported once.
func (t *topology) template(ctx context.Context, kind, apiVersion, name string) (found *class.Template, reported bool) {
	o := t.find(kind, name)
	if o == nil {
		return nil, false
	}
	if known, seen := t.templates[o]; seen {
		return known, true
	}
	t.templates[o] = nil
	if written := stringField(o.value, "apiVersion"); written != apiVersion {
		t.fail(o.problem("apiVersion", "the template has the version "+written+", but the ClusterClass refers to "+apiVersion, "use the same version in both"))
		return nil, true
	}
	if !t.valid(ctx, o) || !t.storeTemplate(ctx, o) {
		return nil, true
	}
	made := &class.Template{Kind: kind, Name: name, Value: o.value, Written: map[string]struct{}{}}
	for path := range o.set {
		made.Written[path] = struct{}{}
	}
	t.templates[o] = made
	return made, true
}

// takeTemplates removes all templates of the class: they are not objects of the cluster,
// and often contain placeholders. A template that a plain object also uses stays.
func (t *topology) takeTemplates(c *clusterv1.ClusterClass) {
	refs := []clusterv1.ClusterClassTemplateReference{
		c.Spec.Infrastructure.TemplateRef,
		c.Spec.ControlPlane.TemplateRef,
		c.Spec.ControlPlane.MachineInfrastructure.TemplateRef,
	}
	for _, d := range c.Spec.Workers.MachineDeployments {
		refs = append(refs, d.Bootstrap.TemplateRef, d.Infrastructure.TemplateRef)
	}
	for _, r := range refs {
		o := t.find(r.Kind, r.Name)
		if o == nil || slices.ContainsFunc(t.objects, func(other *object) bool {
			return other.kind != kindClusterClass && mentions(other.value, r.Kind, r.Name)
		}) {
			continue
		}
		t.removeObject(o)
	}
}

// mentions reports whether a value contains a reference to an object.
func mentions(value any, kind, name string) bool {
	switch v := value.(type) {
	case map[string]any:
		if v["kind"] == kind && v["name"] == name {
			return true
		}
		for _, below := range v {
			if mentions(below, kind, name) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(v, func(below any) bool { return mentions(below, kind, name) })
	}
	return false
}

// removeObject removes an object from the input.
func (l *loader) removeObject(o *object) {
	l.objects = slices.DeleteFunc(l.objects, func(other *object) bool { return other == o })
	for k, other := range l.byKey {
		if other == o {
			delete(l.byKey, k)
		}
	}
}

// position returns the position of a place in the topology. Objects of the topology are
// not in l.objects any more.
func (t *topology) position(p class.Place) Position {
	if o := t.object(p); o != nil {
		return o.position(inVersion(o, p.Path))
	}
	return t.cluster.position("spec.topology")
}

// inVersion converts a path of the newest API version to the version of the manifest.
func inVersion(o *object, path string) string {
	if o.version != versionOld {
		return path
	}
	switch o.kind {
	case kindCluster:
		return strings.NewReplacer(".rollout.after", ".rolloutAfter", "].rollout", "].strategy", ".healthCheck", ".machineHealthCheck",
			".deletion.nodeDrainTimeoutSeconds", ".nodeDrainTimeout", ".deletion.nodeVolumeDetachTimeoutSeconds", ".nodeVolumeDetachTimeout",
			".deletion.nodeDeletionTimeoutSeconds", ".nodeDeletionTimeout", ".classRef.name", ".class").Replace(path)
	case kindClusterClass:
		return strings.NewReplacer("].bootstrap.templateRef", "].template.bootstrap.ref", "].infrastructure.templateRef", "].template.infrastructure.ref",
			"].bootstrap", "].template.bootstrap", "].infrastructure", "].template.infrastructure",
			".templateRef", ".ref", "].rollout", "].strategy", ".healthCheck", ".machineHealthCheck", ".naming.", ".namingStrategy.",
			".deletion.nodeDrainTimeoutSeconds", ".nodeDrainTimeout", ".deletion.nodeVolumeDetachTimeoutSeconds", ".nodeVolumeDetachTimeout",
			".deletion.nodeDeletionTimeoutSeconds", ".nodeDeletionTimeout").Replace(path)
	default:
		return path
	}
}

func (t *topology) object(p class.Place) *object {
	if p.Kind == kindCluster {
		return t.cluster
	}
	return t.sources[key{kind: p.Kind, name: p.Name}]
}

// problem adds the position to a problem of the class.
func (t *topology) problem(p class.Problem) Problem {
	path := p.Path
	if o := t.object(p.Place); o != nil {
		path = inVersion(o, path)
	}
	return Problem{Position: t.position(p.Place), Object: p.Kind + "/" + p.Name, Path: path, What: p.What, Fix: p.Fix}
}

// replace adds the plain objects to the input, and sets the references of the Cluster to
// them.
func (t *topology) replace(r *class.Result) {
	o := t.cluster
	spec, _ := o.value["spec"].(map[string]any)
	delete(spec, "topology")
	metadata, _ := o.value["metadata"].(map[string]any)
	labels, _ := metadata["labels"].(map[string]any)
	if labels == nil {
		labels = map[string]any{}
		metadata["labels"] = labels
	}
	labels[clusterv1.ClusterNameLabel], labels[clusterv1.ClusterTopologyOwnedLabel] = o.name, ""
	made := map[*class.Object]*object{}
	for _, c := range r.Objects {
		made[c] = t.plain(c)
		t.addObject(made[c])
	}
	spec["infrastructureRef"] = o.refersTo(made[r.Infrastructure])
	spec["controlPlaneRef"] = o.refersTo(made[r.ControlPlane])
	for _, name := range []string{"spec.infrastructureRef", "spec.controlPlaneRef"} {
		o.set[name] = o.position("spec.topology")
	}
}

// plain converts a generated object to an object of the input.
func (t *topology) plain(c *class.Object) *object {
	apiVersion := stringField(c.Value, "apiVersion")
	metadata, _ := c.Value["metadata"].(map[string]any)
	o := &object{
		kind: stringField(c.Value, "kind"), version: apiVersion[strings.LastIndex(apiVersion, "/")+1:],
		name: stringField(metadata, "name"), namespace: stringField(metadata, "namespace"),
		value: c.Value, set: map[string]Position{},
	}
	for path, place := range c.Places {
		o.set[path] = t.position(place)
	}
	return o
}

// refersTo returns a reference in the form of the Cluster's API version.
func (o *object) refersTo(other *object) map[string]any {
	apiVersion := stringField(other.value, "apiVersion")
	ref := map[string]any{"kind": other.kind, "name": other.name}
	if o.version == versionOld {
		ref["apiVersion"] = apiVersion
		return ref
	}
	ref["apiGroup"], _, _ = strings.Cut(apiVersion, "/")
	return ref
}
