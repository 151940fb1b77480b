// Package class expands a Cluster with a topology into the plain objects that
// Cluster API's topology controller would make of it: ClusterClass, templates,
// variables and patches go in; an infrastructure cluster, a control plane and
// MachineDeployments with their own templates come out.
//
// Names. Cluster API ends the names of what it makes with five random
// characters. Here the same input must give the same names in every run, so
// the random part is left out where Cluster API's own scheme is used:
// <cluster> for the infrastructure cluster, the control plane and its machine
// template, <cluster>-<topology name> for a MachineDeployment and its
// templates. Where the class has a naming template, .random is five characters
// of a hash of the cluster, the kind and the topology name.
//
// The package knows nothing of files: whatever it makes or finds wrong names
// its place as an object of the input and a path in it.
package class

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	kjson "sigs.k8s.io/json"
)

// Place is where something of the input stands.
type Place struct {
	Kind, Name string
	Path       string // "" is the whole object
}

// Below is a place further down.
func (p Place) Below(path string) Place {
	switch {
	case path == "":
	case p.Path == "" || strings.HasPrefix(path, "["):
		p.Path += path
	default:
		p.Path += "." + path
	}
	return p
}

// Problem is something that is wrong with a class or with its use.
type Problem struct {
	Place
	What string // lower case, no full stop
	Fix  string
}

// Template is a template of the input.
type Template struct {
	Kind, Name string
	Value      map[string]any      // with the defaults of its schema
	Written    map[string]struct{} // the paths that the input sets
}

// Input is what a topology is expanded from.
type Input struct {
	Cluster *clusterv1.Cluster
	Class   *clusterv1.ClusterClass
	// Template finds a template. It is nil when there is none of that name, and
	// when it is wrong, which was told already.
	Template func(kind, apiVersion, name string) (t *Template, told bool)
}

// Object is a plain object.
type Object struct {
	Value  map[string]any
	Places map[string]Place // of what the input says, by path in Value; "" is always there
}

// Result is a topology expanded.
type Result struct {
	Infrastructure *Object
	ControlPlane   *Object
	Objects        []*Object // all of them, these two first
	Warnings       []Problem
}

// Expand makes the plain objects. With problems, or wrong templates, there is
// no result.
func Expand(ctx context.Context, in Input) (*Result, []Problem) {
	e := &expander{in: in, cluster: in.Cluster, class: in.Class, topology: &in.Cluster.Spec.Topology}
	e.checkClass()
	e.checkTopology()
	e.variables(ctx)
	if len(e.problems) > 0 || e.broken {
		return nil, e.problems
	}
	e.build()
	if len(e.problems) == 0 {
		e.patch()
	}
	if len(e.problems) > 0 {
		return nil, e.problems
	}
	return e.result(), nil
}

// expander is one expansion under way.
type expander struct {
	in       Input
	cluster  *clusterv1.Cluster
	class    *clusterv1.ClusterClass
	topology *clusterv1.Topology

	global  variableSet
	planes  variableSet            // overrides of the control plane
	workers map[string]variableSet // overrides by topology name

	infrastructure, plane, planeMachine *item
	deployments                         []*deployment

	problems []Problem
	warnings []Problem
	broken   bool // a template is missing or wrong
}

func (e *expander) fail(at Place, what, fix string) {
	e.problems = append(e.problems, Problem{at, what, fix})
}

func (e *expander) warn(at Place, what, fix string) {
	e.warnings = append(e.warnings, Problem{at, what, fix})
}

// inCluster is a place in the Cluster's topology.
func (e *expander) inCluster(path string) Place {
	return Place{"Cluster", e.cluster.Name, "spec.topology"}.Below(path)
}

// inClass is a place in the ClusterClass's spec.
func (e *expander) inClass(path string) Place {
	return Place{"ClusterClass", e.class.Name, "spec"}.Below(path)
}

func (e *expander) result() *Result {
	r := &Result{Infrastructure: &e.infrastructure.Object, ControlPlane: &e.plane.Object, Warnings: e.warnings}
	r.Objects = []*Object{r.Infrastructure, r.ControlPlane}
	if e.planeMachine != nil {
		r.Objects = append(r.Objects, &e.planeMachine.Object)
	}
	for _, d := range e.deployments {
		r.Objects = append(r.Objects, &d.Object, &d.bootstrap.Object, &d.infrastructure.Object)
	}
	return r
}

// indexed is a path with an index.
func indexed(path string, i int) string { return path + "[" + strconv.Itoa(i) + "]" }

// clone copies a JSON value.
func clone(m map[string]any) map[string]any { return runtime.DeepCopyJSON(m) }

// untyped is a typed object as JSON, with whole numbers kept.
func untyped(v any) (map[string]any, error) {
	raw, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	m := map[string]any{}
	return m, kjson.UnmarshalCaseSensitivePreserveInts(raw, &m)
}

// value decodes JSON, with whole numbers kept. Nothing is null.
func value(raw []byte) (any, error) {
	if len(raw) == 0 {
		return nil, nil // null is a value
	}
	var v any
	return v, kjson.UnmarshalCaseSensitivePreserveInts(raw, &v)
}

// merged lays maps over each other; the first wins.
func merged(all ...map[string]string) map[string]string {
	out := map[string]string{}
	for _, m := range slices.Backward(all) {
		maps.Copy(out, m)
	}
	return out
}
