// Package class expands the topology of a Cluster to the plain objects that Cluster API's
// topology controller would create. The input is a ClusterClass with templates, variables
// and patches; the result is an infrastructure cluster, a control plane, and
// MachineDeployments with their own templates.
//
// Names: Cluster API adds five random characters to the names of the objects. Here, the
// same input must give the same names in every run. By default, names have no random
// part: <cluster> for the infrastructure cluster, the control plane and its machine
// template, and <cluster>-<topology name> for a MachineDeployment and its templates. If
// the class has a naming template, .random is five characters of a hash of the cluster,
// the kind and the topology name.
//
// The package does not read files: positions are objects of the input and paths in them.
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

	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest/class/gotmpl"
)

// Place is an object of the input and a path in it.
type Place struct {
	Kind, Name string
	Path       string // "" means the whole object
}

// Below returns the place of a path below p.
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

// Problem is an error in a class or in a topology.
type Problem struct {
	Place
	What string // lower case, no full stop
	Fix  string
}

// Template is a template of the input.
type Template struct {
	Kind, Name string
	APIVersion string              // in which the class refers to it, and that selectors of patches name
	Value      map[string]any      // with the defaults of its schema
	Written    map[string]struct{} // the paths that the manifest sets
}

// Input is the input of Expand.
type Input struct {
	Cluster *clusterv1.Cluster
	Class   *clusterv1.ClusterClass
	// Template returns a template, or nil if it does not exist or is invalid. If reported
	// is true, the problem has been reported.
	Template func(kind, apiVersion, name string) (t *Template, reported bool)
	// Foreign says what a kind is that this program does not take, and what to do; "" for one that it does not know.
	Foreign func(kind string) (what, fix string)
}

// Object is a plain object.
type Object struct {
	Value  map[string]any
	Places map[string]Place // where values come from, by path in Value; always has ""
}

// Result is an expanded topology.
type Result struct {
	Infrastructure *Object
	ControlPlane   *Object
	Objects        []*Object // all objects, these two first
}

// Expand returns the plain objects. If there are problems or invalid templates, the
// result is nil.
func Expand(ctx context.Context, in Input) (*Result, []Problem) {
	e := &expander{in: in, cluster: in.Cluster, class: in.Class, topology: &in.Cluster.Spec.Topology, budget: gotmpl.NewBudget()}
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

// expander is the state of one expansion.
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
	checks                              []*Object // MachineHealthChecks

	budget   *gotmpl.Budget // for all templates
	problems []Problem
	broken   bool // a template is missing or invalid
}

func (e *expander) fail(at Place, what, fix string) {
	e.problems = append(e.problems, Problem{at, what, fix})
}

// inCluster returns a place in the topology of the Cluster.
func (e *expander) inCluster(path string) Place {
	return Place{"Cluster", e.cluster.Name, "spec.topology"}.Below(path)
}

// inClass returns a place in the spec of the ClusterClass.
func (e *expander) inClass(path string) Place {
	return Place{"ClusterClass", e.class.Name, "spec"}.Below(path)
}

func (e *expander) result() *Result {
	r := &Result{Infrastructure: &e.infrastructure.Object, ControlPlane: &e.plane.Object}
	r.Objects = []*Object{r.Infrastructure, r.ControlPlane}
	if e.planeMachine != nil {
		r.Objects = append(r.Objects, &e.planeMachine.Object)
	}
	for _, d := range e.deployments {
		r.Objects = append(r.Objects, &d.Object, &d.bootstrap.Object, &d.infrastructure.Object)
	}
	r.Objects = append(r.Objects, e.checks...)
	return r
}

// indexed appends an index to a path.
func indexed(path string, i int) string { return path + "[" + strconv.Itoa(i) + "]" }

// clone returns a copy of a JSON value.
func clone(m map[string]any) map[string]any { return runtime.DeepCopyJSON(m) }

// toUntyped converts a typed object to JSON values, with integers as int64.
func toUntyped(v any) (map[string]any, error) {
	raw, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	m := map[string]any{}
	return m, kjson.UnmarshalCaseSensitivePreserveInts(raw, &m)
}

// value decodes JSON, with integers as int64. An empty input is null.
func value(raw []byte) (any, error) {
	if len(raw) == 0 {
		return nil, nil // null is a value
	}
	var v any
	return v, kjson.UnmarshalCaseSensitivePreserveInts(raw, &v)
}

// merged merges maps; the first one with a key takes precedence.
func merged(all ...map[string]string) map[string]string {
	out := map[string]string{}
	for _, m := range slices.Backward(all) {
		maps.Copy(out, m)
	}
	return out
}
