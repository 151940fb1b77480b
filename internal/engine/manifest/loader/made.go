package loader

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
)

// maker is an object from which Cluster API makes another one.
type maker struct{ kind, name string }

// theirOwners is what is said of several objects that were made from others.
const theirOwners = "are ignored: they belong to others of the input"

// labelsOfMakers returns the labels with which Cluster API says from what it has made a Machine and its parts.
func labelsOfMakers() map[string]string {
	return map[string]string{
		clusterv1.MachineControlPlaneNameLabel: manifest.KindControlPlane,
		clusterv1.MachineDeploymentNameLabel:   manifest.KindDeployment,
		clusterv1.MachinePoolNameLabel:         manifest.KindPool,
	}
}

// ownerOf returns the name of the owner of a kind that an object has; "" for none. Labels are often lost on the way from a management
// cluster to a file, and ownerReferences are not, or the other way round.
func ownerOf(o *manifest.Entry, kind string) string {
	all, _ := manifest.ValueAt(o.Value, "metadata.ownerReferences").([]any)
	for _, x := range all {
		if owner, _ := x.(map[string]any); manifest.StringField(owner, "kind") == kind {
			return manifest.StringField(owner, "name")
		}
	}
	return ""
}

// makerOf returns the object of the input from which Cluster API has made a Machine, one of its parts, or a MachineSet.
func (l *loader) makerOf(o *manifest.Entry) (maker, bool) {
	labels, _ := manifest.ValueAt(o.Value, "metadata.labels").(map[string]any)
	for label, kind := range labelsOfMakers() {
		names := []string{manifest.StringField(labels, label)}
		if kind != manifest.KindPool || o.Kind == manifest.KindMachine { // a pool owns the configuration that it refers to, too
			names = append(names, ownerOf(o, kind))
		}
		for _, name := range names {
			if name != "" && l.hasOrHad(kind, o.Namespace, name) {
				return maker{kind, name}, true
			}
		}
	}
	set := ownerOf(o, kindMachineSet)
	if set == "" {
		return maker{}, false
	}
	// Cluster API names a MachineSet "DEPLOYMENT-HASH" (computeNewMachineSetName in internal/controllers/machinedeployment).
	if i := strings.LastIndexByte(set, '-'); i > 0 && l.hasOrHad(manifest.KindDeployment, o.Namespace, set[:i]) {
		return maker{manifest.KindDeployment, set[:i]}, true
	}
	for _, s := range l.sets {
		if s.Name == set && s.Namespace == o.Namespace {
			return l.makerOf(s)
		}
	}
	return maker{}, false
}

// hasOrHad reports whether the input has an object, also one that is wrong.
func (l *loader) hasOrHad(kind, namespace, name string) bool {
	return l.byKey[key{kind, namespace, name}] != nil || l.asideNamed(kind, name) != nil
}

// ignoreSets ignores the MachineSets of MachineDeployments, and refuses others.
func (l *loader) ignoreSets() {
	for _, o := range l.sets {
		if made, is := l.makerOf(o); is {
			l.ignore(o, manifest.GroupCore, fmt.Sprintf("MachineSet is ignored: it belongs to %s/%s", made.kind, made.name), theirOwners)
			continue
		}
		labels, _ := manifest.ValueAt(o.Value, "metadata.labels").(map[string]any)
		if name := cmp.Or(manifest.StringField(labels, clusterv1.MachineDeploymentNameLabel), ownerOf(o, manifest.KindDeployment)); name != "" {
			what := fmt.Sprintf("the MachineSet belongs to MachineDeployment/%s, which is not in the input", name)
			l.absent(o.Problem("kind", what, "add the MachineDeployment: it describes the machines"))
		} else {
			const what = "a MachineSet without a MachineDeployment is not supported"
			l.fail(o.Problem("kind", what, "write a MachineDeployment: it has the same replicas, selector and template, and rolls out their changes, too"))
		}
		l.setAside(o, manifest.GroupCore, true)
	}
}

// ignoreMade ignores the MachineSets and the Machines that Cluster API makes from another object of the input, and the
// parts of these Machines: they are in what "kubectl get -o yaml" and "cluster export" print.
func (l *loader) ignoreMade() {
	l.ignoreSets()
	parts := map[key]bool{} // of Machines that are ignored
	ignored := map[*manifest.Entry]bool{}
	for _, o := range l.ofKind(manifest.KindMachine) {
		made, is := l.makerOf(o)
		if !is {
			continue
		}
		ignored[o] = true
		for _, path := range []string{"spec.infrastructureRef", "spec.bootstrap.configRef"} {
			ref, _ := manifest.ValueAt(o.Value, path).(map[string]any)
			parts[key{manifest.StringField(ref, "kind"), o.Namespace, manifest.StringField(ref, "name")}] = true
		}
		parts[key{manifest.KindMachine, o.Namespace, o.Name}] = true
		l.ignore(o, manifest.GroupCore, fmt.Sprintf("Machine is ignored: it belongs to %s/%s", made.kind, made.name), theirOwners)
	}
	for _, kind := range []string{manifest.KindAWSMachine, manifest.KindConfig, manifest.KindEKSConfig, manifest.KindNodeadm} {
		for _, o := range l.ofKind(kind) {
			_, is := l.makerOf(o)
			ofMachine := parts[key{manifest.KindMachine, o.Namespace, ownerOf(o, manifest.KindMachine)}]
			ignored[o] = is || ofMachine || parts[key{kind, o.Namespace, o.Name}]
		}
	}
	l.objects = slices.DeleteFunc(l.objects, func(o *manifest.Entry) bool {
		if ignored[o] {
			delete(l.byKey, key{o.Kind, o.Namespace, o.Name})
		}
		return ignored[o]
	})
}
