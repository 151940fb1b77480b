package loader

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	infrav1beta1 "sigs.k8s.io/cluster-api-provider-aws/v2/api/v1beta1"
	infrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/api/v1beta2"
	ekscontrolplanev1 "sigs.k8s.io/cluster-api-provider-aws/v2/controlplane/eks/api/v1beta2"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	controlplaneconversion "sigs.k8s.io/cluster-api/controlplane/kubeadm/webhooks/conversion"
	coreconversion "sigs.k8s.io/cluster-api/core/webhooks/conversion"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest/class"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest/crd"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest/hooks"
)

// withClasses adds the kinds of ClusterClasses.
func withClasses(all map[string]kind) map[string]kind {
	template := func(older, newest decode) kind {
		k := kind{schema: true, versions: map[string]decode{manifest.VersionNew: newest}}
		if older != nil {
			k.versions[manifest.VersionOld] = older
		}
		return k
	}
	all[manifest.KindClusterClass] = template(upgraded(coreconversion.ConvertClusterClassV1Beta1ToHub), decodeAs[clusterv1.ClusterClass])
	all[manifest.KindControlPlaneTemplate] = template(
		upgraded(controlplaneconversion.ConvertKubeadmControlPlaneTemplateV1Beta1ToHub),
		decodeAs[controlplanev1.KubeadmControlPlaneTemplate],
	)
	all[manifest.KindAWSClusterTemplate] = template(
		upgraded(toHub[*infrav1beta1.AWSClusterTemplate, *infrav1.AWSClusterTemplate]),
		decodeAs[infrav1.AWSClusterTemplate],
	)
	all[manifest.KindManagedClusterTemplate] = template(nil, decodeAs[infrav1.AWSManagedClusterTemplate])
	all[manifest.KindManagedPlaneTemplate] = template(nil, decodeAs[ekscontrolplanev1.AWSManagedControlPlaneTemplate])
	for name, k := range all {
		k.group, _ = manifest.GroupOf(name)
		all[name] = k
	}
	return all
}

// topology is the state of the expansion of a Cluster's topology.
type topology struct {
	*loader
	cluster   *manifest.Entry
	namespace string                              // of the ClusterClass
	templates map[*manifest.Entry]*class.Template // nil for those that are invalid
	sources   map[key]*manifest.Entry             // the objects that were read, by kind and name
}

// expandTopology replaces a Cluster's topology, its ClusterClass and templates by the
// plain objects they describe.
func (l *loader) expandTopology(ctx context.Context) {
	if l.incomplete {
		return
	}
	for _, o := range l.ofKind(manifest.KindCluster) {
		if manifest.ValueAt(o.Value, "spec.topology") == nil {
			continue
		}
		t := &topology{loader: l, cluster: o, templates: map[*manifest.Entry]*class.Template{}, sources: map[key]*manifest.Entry{}}
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
	if t.topologies == nil {
		t.topologies = map[string]*clusterv1.Topology{}
	}
	t.topologies[cluster.Name] = cluster.Spec.Topology.DeepCopy()
	name := cluster.GetClassKey()
	t.namespace = name.Namespace
	o := t.find(manifest.KindClusterClass, name.Name)
	if o == nil {
		t.missingClass(name.Name)
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
	}, Foreign: foreign})
	for _, p := range problems {
		t.fail(t.problem(p))
	}
	t.takeTemplates(classes)
	if result == nil {
		return false
	}
	t.checkReferences()
	t.replace(result)
	return true
}

// checkReferences checks spec.infrastructureRef and spec.controlPlaneRef of a Cluster with a topology. Cluster API sets both itself, and does
// not reconcile the topology if one refers to an object that it has not created ("is not topology owned", getCurrentInfrastructureClusterState
// in core/reconcilers/topology/cluster/current_state.go). A Cluster that was exported from a management cluster has a uid, and may refer to
// objects that are not in the input.
func (t *topology) checkReferences() {
	for _, path := range []string{"spec.infrastructureRef", "spec.controlPlaneRef"} {
		ref, _ := manifest.ValueAt(t.cluster.Value, path).(map[string]any)
		kind, name := manifest.StringField(ref, "kind"), manifest.StringField(ref, "name")
		if name == "" {
			continue
		}
		var found *manifest.Entry
		for _, o := range t.ofKind(kind) {
			if o.Name == name && homeOf(o) == homeOf(t.cluster) {
				found = o
			}
		}
		const fix = "remove it: Cluster API sets it to the object that it makes"
		switch {
		case found != nil && !isTopologyOwned(found):
			t.fail(
				t.cluster.Problem(
					path,
					fmt.Sprintf("the Cluster has spec.topology, and %s/%s is none of its objects: Cluster API does not go on with it", kind, name),
					fix,
				),
			)
		case found == nil && manifest.ValueAt(t.cluster.Value, "metadata.uid") == nil:
			t.warn(t.cluster.Problem(path, "has no effect beside spec.topology, and Cluster API does not go on with a Cluster whose "+kind+" it has not made", fix))
		}
	}
}

// isTopologyOwned reports whether an object has the label of the objects that Cluster API creates for a topology.
func isTopologyOwned(o *manifest.Entry) bool {
	labels, _ := manifest.ValueAt(o.Value, "metadata.labels").(map[string]any)
	_, owned := labels[clusterv1.ClusterTopologyOwnedLabel]
	return owned
}

// missingClass reports that there is no ClusterClass of that name in the namespace in which Cluster API looks for it.
func (t *topology) missingClass(name string) {
	path, field := inVersion(t.cluster, "spec.topology.classRef.name"), inVersion(t.cluster, "spec.topology.classRef.namespace")
	home := homeOf(t.cluster)
	looked := cmp.Or(t.namespace, home)
	for _, o := range t.ofKind(manifest.KindClusterClass) {
		if o.Name != name {
			continue
		}
		fix := fmt.Sprintf("it is in %s: set %s: %s", homeOf(o), field, homeOf(o))
		if homeOf(o) == home {
			fix = fmt.Sprintf("it is in %s: remove %s", home, field)
		}
		t.fail(t.cluster.Problem(path, fmt.Sprintf("there is no ClusterClass/%s in the namespace %s", name, looked), fix))
		return
	}
	t.missingObject(t.cluster, path, manifest.KindClusterClass, name)
}

// read validates an object of a topology and returns its typed value.
func read[T any](ctx context.Context, l *loader, o *manifest.Entry) (*T, bool) {
	if !l.valid(ctx, o) {
		return nil, false
	}
	newest, ok := l.decodeOrDrop(ctx, o)
	v, isT := newest.(*T)
	return v, ok && isT
}

// valid validates an object with its schema and sets the defaults of the schema.
func (l *loader) valid(ctx context.Context, o *manifest.Entry) bool {
	before := len(l.problems)
	delete(o.Value, "status")
	dropCreationTimestamps(o.Value)
	if !l.admitMetadata(o) {
		return false
	}
	s, err := crd.For(o.Kind, o.Version)
	if err != nil {
		l.fail(o.Problem("", err.Error(), ""))
		return false
	}
	l.prune(o, s)
	s.Fill(o.Value)
	hooks.WriteRequired(o.Kind, o.Version, o.Value)
	l.failFields(o, validate(ctx, o, s))
	return len(l.problems) == before
}

// find returns an object in the namespace of the class, which is that of the Cluster by
// default.
func (t *topology) find(kind, name string) *manifest.Entry {
	if o := t.sources[key{kind: kind, name: name}]; o != nil {
		return o
	}
	for _, namespace := range []string{t.namespace, cmp.Or(t.namespace, metav1.NamespaceDefault), ""} {
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
	if !t.checkTemplateVersion(o, apiVersion) || !t.valid(ctx, o) || !t.storeTemplate(ctx, o, apiVersion) {
		return nil, true
	}
	made := &class.Template{Kind: kind, APIVersion: apiVersion, Name: name, Value: o.Value, Written: map[string]struct{}{}}
	for path := range o.Lines {
		made.Written[path] = struct{}{}
	}
	t.templates[o] = made
	return made, true
}

// checkTemplateVersion compares the version of a template with the one that the ClusterClass refers to. Cluster API reads the
// template in the latter (core/reconcilers/topology/cluster/patches/inline/json_patch_generator.go compares it with the
// selectors of the patches), and the API server converts. Here, no template of CAPA is converted to v1beta1, which has
// fewer fields, and no others.
func (t *topology) checkTemplateVersion(o *manifest.Entry, apiVersion string) bool {
	written := manifest.StringField(o.Value, "apiVersion")
	if written == apiVersion {
		return true
	}
	p := o.Problem("apiVersion", "the template has the version "+written+", but the ClusterClass refers to "+apiVersion, "use the same version in both")
	gv, err := schema.ParseGroupVersion(apiVersion)
	if _, known := t.kinds[o.Kind].versions[gv.Version]; err != nil || gv.Group != t.kinds[o.Kind].group || !known {
		t.fail(p)
		return false
	}
	t.warn(p)
	return true
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
		if o == nil || slices.ContainsFunc(t.objects, func(other *manifest.Entry) bool {
			return other.Kind != manifest.KindClusterClass && mentions(other.Value, r.Kind, r.Name)
		}) {
			continue
		}
		t.removeObject(o)
	}
}

// mentions reports whether a value contains a reference to an object.
func mentions(value any, kind, name string) bool {
	found := false
	references(value, func(n objectName) { found = found || n == objectName{kind, name} })
	return found
}

// removeObject removes an object from the input.
func (l *loader) removeObject(o *manifest.Entry) {
	l.objects = slices.DeleteFunc(l.objects, func(other *manifest.Entry) bool { return other == o })
	for k, other := range l.byKey {
		if other == o {
			delete(l.byKey, k)
		}
	}
}

// position returns the position of a place in the topology. Objects of the topology are
// not in l.objects any more.
func (t *topology) position(p class.Place) manifest.Position {
	if o := t.object(p); o != nil {
		return o.Position(inVersion(o, p.Path))
	}
	return t.cluster.Position("spec.topology")
}

// inVersion converts a path of the newest API version to the version of the manifest.
func inVersion(o *manifest.Entry, path string) string {
	if o.Version != manifest.VersionOld {
		return path
	}
	switch o.Kind {
	case manifest.KindCluster:
		return strings.NewReplacer(".rollout.after", ".rolloutAfter", "].rollout", "].strategy", ".healthCheck", ".machineHealthCheck",
			".deletion.nodeDrainTimeoutSeconds", ".nodeDrainTimeout", ".deletion.nodeVolumeDetachTimeoutSeconds", ".nodeVolumeDetachTimeout",
			".deletion.nodeDeletionTimeoutSeconds", ".nodeDeletionTimeout", ".classRef.namespace", ".classNamespace", ".classRef.name", ".class").Replace(path)
	case manifest.KindClusterClass:
		return strings.NewReplacer("].bootstrap.templateRef", "].template.bootstrap.ref", "].infrastructure.templateRef", "].template.infrastructure.ref",
			"].bootstrap", "].template.bootstrap", "].infrastructure", "].template.infrastructure",
			".templateRef", ".ref", "].rollout", "].strategy", ".healthCheck", ".machineHealthCheck", ".naming.", ".namingStrategy.",
			".deletion.nodeDrainTimeoutSeconds", ".nodeDrainTimeout", ".deletion.nodeVolumeDetachTimeoutSeconds", ".nodeVolumeDetachTimeout",
			".deletion.nodeDeletionTimeoutSeconds", ".nodeDeletionTimeout").Replace(path)
	default:
		return path
	}
}

func (t *topology) object(p class.Place) *manifest.Entry {
	if p.Kind == manifest.KindCluster {
		return t.cluster
	}
	return t.sources[key{kind: p.Kind, name: p.Name}]
}

// problem adds the position to a problem of the class.
func (t *topology) problem(p class.Problem) manifest.Problem {
	path := p.Path
	if o := t.object(p.Place); o != nil {
		path = inVersion(o, path)
	}
	return manifest.Problem{Position: t.position(p.Place), Object: p.Kind + "/" + p.Name, Path: path, What: p.What, Fix: p.Fix}
}

// replace adds the plain objects to the input, and sets the references of the Cluster to
// them.
func (t *topology) replace(r *class.Result) {
	o := t.cluster
	spec, _ := o.Value["spec"].(map[string]any)
	delete(spec, "topology")
	metadata, _ := o.Value["metadata"].(map[string]any)
	labels, _ := metadata["labels"].(map[string]any)
	if labels == nil {
		labels = map[string]any{}
		metadata["labels"] = labels
	}
	labels[clusterv1.ClusterNameLabel], labels[clusterv1.ClusterTopologyOwnedLabel] = o.Name, ""
	made := map[*class.Object]*manifest.Entry{}
	for _, c := range r.Objects {
		made[c] = t.plain(c)
		t.addObject(made[c])
	}
	spec["infrastructureRef"] = refersTo(o, made[r.Infrastructure])
	spec["controlPlaneRef"] = refersTo(o, made[r.ControlPlane])
	for _, name := range []string{"spec.infrastructureRef", "spec.controlPlaneRef"} {
		o.Lines[name] = o.Position("spec.topology")
	}
}

// plain converts a generated object to an object of the input.
func (t *topology) plain(c *class.Object) *manifest.Entry {
	apiVersion := manifest.StringField(c.Value, "apiVersion")
	metadata, _ := c.Value["metadata"].(map[string]any)
	o := &manifest.Entry{
		Kind: manifest.StringField(c.Value, "kind"), Version: apiVersion[strings.LastIndex(apiVersion, "/")+1:],
		Name: manifest.StringField(metadata, "name"), Namespace: manifest.StringField(metadata, "namespace"),
		Value: c.Value, Lines: map[string]manifest.Position{},
	}
	for path, place := range c.Places {
		o.Lines[path] = t.position(place)
	}
	return o
}

// refersTo returns a reference in the form of the Cluster's API version.
func refersTo(o *manifest.Entry, other *manifest.Entry) map[string]any {
	apiVersion := manifest.StringField(other.Value, "apiVersion")
	ref := map[string]any{"kind": other.Kind, "name": other.Name}
	if o.Version == manifest.VersionOld {
		ref["apiVersion"] = apiVersion
		return ref
	}
	ref["apiGroup"], _, _ = strings.Cut(apiVersion, "/")
	return ref
}
