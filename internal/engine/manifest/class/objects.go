package class

import (
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// item is an object created from a template.
type item struct {
	Object
	template *Template
	plain    bool             // the object that the template describes, not a copy of the template
	doc      map[string]any   // the template, for patches
	places   map[string]Place // where the values in doc come from
}

// createObject creates an object from a template: a copy of the template, or the object
// it describes.
func (e *expander) createObject(t *Template, plain bool, name string, labels, annotations map[string]string, at Place) *item {
	i := &item{template: t, plain: plain, doc: clone(t.Value), places: map[string]Place{}}
	for path := range t.Written {
		i.places[path] = Place{t.Kind, t.Name, path}
	}
	from := []string{"metadata"}
	kind := t.Kind
	if plain {
		from, kind = []string{"spec", "template", "metadata"}, strings.TrimSuffix(t.Kind, clusterv1.TemplateSuffix)
	}
	apiVersion, _ := t.Value["apiVersion"].(string)
	cloned := map[string]string{
		clusterv1.TemplateClonedFromNameAnnotation:      t.Name,
		clusterv1.TemplateClonedFromGroupKindAnnotation: t.Kind + "." + groupOf(apiVersion),
	}
	written := stringMap(metadataAt(t.Value, from, "annotations"))
	delete(written, corev1.LastAppliedConfigAnnotation)
	metadata := map[string]any{
		"name":        name,
		"labels":      anyMap(merged(e.owned(), labels, stringMap(metadataAt(t.Value, from, "labels")))),
		"annotations": anyMap(merged(cloned, annotations, written)),
	}
	if e.cluster.Namespace != "" {
		metadata["namespace"] = e.cluster.Namespace
	}
	i.Object = Object{
		Value:  map[string]any{"apiVersion": apiVersion, "kind": kind, "metadata": metadata},
		Places: map[string]Place{"": {t.Kind, t.Name, ""}, "metadata": at},
	}
	i.transfer(i.parts()[:1])
	if !plain {
		i.transfer([]part{{[]string{"spec"}, []string{"spec"}}})
	}
	return i
}

// metadataAt returns a field of the metadata at a path of names.
func metadataAt(v any, names []string, name string) any { return valueAt(valueAt(v, names...), name) }

func groupOf(apiVersion string) string {
	gv, err := schema.ParseGroupVersion(apiVersion)
	if err != nil {
		return ""
	}
	return gv.Group
}

// part is a part of the patched template to copy to the object.
type part struct{ from, to []string }

// parts lists the parts that patches can change, the spec first.
func (i *item) parts() []part {
	template := func(names ...string) []string { return append([]string{"spec", "template"}, names...) }
	own := func(name string) []string { return []string{"metadata", name} }
	if i.plain {
		return []part{
			{template("spec"), []string{"spec"}},
			{template("metadata", "labels"), own("labels")},
			{template("metadata", "annotations"), own("annotations")},
		}
	}
	return []part{
		{template("spec"), template("spec")},
		{template("metadata", "labels"), template("metadata", "labels")},
		{template("metadata", "annotations"), template("metadata", "annotations")},
		{own("labels"), own("labels")},
		{own("annotations"), own("annotations")},
	}
}

// transfer copies parts of the patched template to the object, with their places.
func (i *item) transfer(parts []part) {
	for _, p := range parts {
		if !exists(i.doc, p.from...) {
			continue
		}
		setAt(i.Value, deepCopy(valueAt(i.doc, p.from...)), p.to...)
		from, to := dotted(p.from...), dotted(p.to...)
		i.removePlaces(to)
		for path, place := range i.places {
			if isBelow(path, from) {
				i.Places[to+strings.TrimPrefix(path, from)] = place
			}
		}
	}
}

func deepCopy(v any) any {
	return clone(map[string]any{"": v})[""]
}

// build creates the objects, before patches.
func (e *expander) build() {
	class := e.class.Spec
	e.infrastructure = e.createObject(e.template(class.Infrastructure.TemplateRef), true,
		e.name("infrastructure", class.Infrastructure.Naming.Template, e.cluster.Name, "", e.inClass("infrastructure.naming.template")),
		nil, nil, e.inCluster(""))
	if machine := class.ControlPlane.MachineInfrastructure.TemplateRef; machine.IsDefined() {
		e.planeMachine = e.createObject(e.template(machine), false, e.shortened(e.cluster.Name, machine.Kind, ""), nil, nil, e.inCluster("controlPlane"))
	}
	e.controlPlane()
	for n := range e.topology.Workers.MachineDeployments {
		e.deployment(n)
	}
	e.healthChecks()
}

// template returns a template whose existence was checked with the class.
func (e *expander) template(r clusterv1.ClusterClassTemplateReference) *Template {
	t, _ := e.in.Template(r.Kind, r.APIVersion, r.Name)
	return t
}

// newContract reports whether a control plane uses Cluster API's v1beta2 contract, which
// has other fields. CAPA's v1beta2 types use the older contract.
func newContract(o *Object) bool {
	apiVersion, _ := o.Value["apiVersion"].(string)
	kind, _ := o.Value["kind"].(string)
	return kind == "KubeadmControlPlane" && strings.HasSuffix(apiVersion, "/"+clusterv1.GroupVersion.Version)
}

func (e *expander) controlPlane() {
	class, topology := e.class.Spec.ControlPlane, e.topology.ControlPlane
	labels := merged(e.owned(), topology.Metadata.Labels, class.Metadata.Labels)
	annotations := merged(topology.Metadata.Annotations, class.Metadata.Annotations)
	e.plane = e.createObject(e.template(class.TemplateRef), true,
		e.name("controlPlane", class.Naming.Template, e.cluster.Name, "", e.inClass("controlPlane.naming.template")),
		labels, annotations, e.inCluster("controlPlane.metadata"))
	if e.planeMachine != nil {
		e.planeMachines(labels, annotations)
	}
	if topology.Replicas != nil {
		e.plane.set(int64(*topology.Replicas), e.inCluster("controlPlane.replicas"), "spec", "replicas")
	}
	after := []string{"spec", "rollout", "after"}
	if !newContract(&e.plane.Object) {
		after = []string{"spec", "rolloutAfter"}
	}
	if !topology.Rollout.After.IsZero() {
		e.plane.set(topology.Rollout.After.UTC().Format(time.RFC3339), e.inCluster("controlPlane.rollout.after"), after...)
	}
	machine := []string{"spec", "machineTemplate"}
	if newContract(&e.plane.Object) {
		machine = append(machine, "spec")
	}
	e.planeLists(machine)
	e.planeTimeouts(machine)
	e.plane.set(e.topology.Version, e.inCluster("version"), "spec", "version")
}

// planeMachines sets the machine template of a control plane.
func (e *expander) planeMachines(labels, annotations map[string]string) {
	at0 := e.inClass("controlPlane.machineInfrastructure")
	ref := reference(&e.planeMachine.Object)
	if newContract(&e.plane.Object) {
		delete(ref, "apiVersion")
		e.plane.set(ref, at0, "spec", "machineTemplate", "spec", "infrastructureRef")
	} else {
		delete(ref, "apiGroup")
		if e.cluster.Namespace != "" {
			ref["namespace"] = e.cluster.Namespace
		}
		e.plane.set(ref, at0, "spec", "machineTemplate", "infrastructureRef")
	}
	metadata := valueAt(e.plane.Value, "spec", "machineTemplate", "metadata")
	result := map[string]any{"labels": anyMap(merged(labels, stringMap(valueAt(metadata, "labels"))))}
	if all := merged(annotations, stringMap(valueAt(metadata, "annotations"))); len(all) > 0 {
		result["annotations"] = anyMap(all)
	}
	e.plane.set(result, e.inCluster("controlPlane.metadata"), "spec", "machineTemplate", "metadata")
}

// reference returns a reference to an object, in the form of both contracts.
func reference(o *Object) map[string]any {
	apiVersion, _ := o.Value["apiVersion"].(string)
	return map[string]any{
		"apiVersion": apiVersion, "apiGroup": groupOf(apiVersion),
		"kind": o.Value["kind"], "name": valueAt(o.Value, "metadata", "name"),
	}
}

// planeLists sets the lists of the topology, or those of the class.
func (e *expander) planeLists(machine []string) {
	class, topology := e.class.Spec.ControlPlane, e.topology.ControlPlane
	e.planeList(
		append(machine, "readinessGates"),
		"readinessGates",
		topology.ReadinessGates != nil,
		topology.ReadinessGates,
		class.ReadinessGates != nil,
		class.ReadinessGates,
	)
	e.planeList(append(machine, "taints"), "taints", topology.Taints != nil, topology.Taints, class.Taints != nil, class.Taints)
}

func (e *expander) planeList(to []string, name string, own bool, list any, inherited bool, otherwise any) {
	place := e.inCluster("controlPlane." + name)
	if !own {
		list, own, place = otherwise, inherited, e.inClass("controlPlane."+name)
	}
	if !own {
		return
	}
	wrapped, err := toUntyped(map[string]any{"": list})
	if err != nil {
		e.fail(place, err.Error(), "")
		return
	}
	e.plane.set(wrapped[""], place, to...)
}

// planeTimeouts sets the timeouts of machine deletion: seconds in the newer contract,
// durations in the older one.
func (e *expander) planeTimeouts(machine []string) {
	class, topology := e.class.Spec.ControlPlane.Deletion, e.topology.ControlPlane.Deletion
	for _, t := range []struct {
		name       string
		own, class *int32
	}{
		{"nodeDrainTimeout", topology.NodeDrainTimeoutSeconds, class.NodeDrainTimeoutSeconds},
		{"nodeVolumeDetachTimeout", topology.NodeVolumeDetachTimeoutSeconds, class.NodeVolumeDetachTimeoutSeconds},
		{"nodeDeletionTimeout", topology.NodeDeletionTimeoutSeconds, class.NodeDeletionTimeoutSeconds},
	} {
		seconds, place := t.own, e.inCluster("controlPlane.deletion."+t.name+"Seconds")
		if seconds == nil {
			seconds, place = t.class, e.inClass("controlPlane.deletion."+t.name+"Seconds")
		}
		switch {
		case seconds == nil:
		case newContract(&e.plane.Object):
			e.plane.set(int64(*seconds), place, append(machine, "deletion", t.name+"Seconds")...)
		default:
			e.plane.set((time.Duration(*seconds) * time.Second).String(), place, append(machine, t.name)...)
		}
	}
}
