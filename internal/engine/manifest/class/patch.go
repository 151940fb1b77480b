package class

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"

	jsonpatch "github.com/evanphx/json-patch/v5"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/yaml"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest/class/gotmpl"
)

// target is a template that patches may change, with the variables for it.
type target struct {
	*item
	role   role
	class  string // of the MachineDeployment
	values variableSet
	data   map[string]any // of all variables, for templates
	budget *gotmpl.Budget
}

// role is the purpose of a template, for selectors.
type role int

const (
	roleInfrastructure role = iota
	roleControlPlane        // the control plane, or the template of its machines
	roleDeployment          // a template of a MachineDeployment
)

// patch applies the patches of the class to all templates, in the order of the class.
func (e *expander) patch() {
	if len(e.class.Spec.Patches) == 0 {
		return
	}
	targets := e.targets()
	for i, p := range e.class.Spec.Patches {
		for _, t := range targets {
			e.patchOne(t, p, e.inClass(indexed("patches", i)))
		}
	}
	if len(e.problems) > 0 {
		return
	}
	for _, t := range targets {
		t.applyExcept(t.unpatchedFields())
	}
}

func (e *expander) targets() []*target {
	all := []*target{
		e.target(e.infrastructure, roleInfrastructure, nil, nil),
		e.target(e.plane, roleControlPlane, e.planes, e.planeBuiltin()),
	}
	if e.planeMachine != nil {
		all = append(all, e.target(e.planeMachine, roleControlPlane, e.planes, e.planeBuiltin()))
	}
	for _, d := range e.deployments {
		for _, i := range []*item{d.bootstrap, d.infrastructure} {
			t := e.target(i, roleDeployment, e.workers[d.topology.Name], e.deploymentBuiltin(d))
			t.class = d.topology.Class
			all = append(all, t)
		}
	}
	return all
}

// target prepares a template: it contains the labels and annotations of the object, and
// overrides take precedence over the values of the Cluster.
func (e *expander) target(i *item, r role, overrides variableSet, builtin map[string]any) *target {
	for _, name := range []string{"labels", "annotations"} {
		to := []string{"metadata", name}
		if i.plain {
			to = []string{"spec", "template", "metadata", name}
		}
		setAt(i.doc, deepCopy(valueAt(i.Value, "metadata", name)), to...)
	}
	t := &target{item: i, role: r, values: maps.Clone(e.global), budget: e.budget}
	maps.Copy(t.values, overrides)
	all := e.clusterBuiltin()
	maps.Copy(all, builtin)
	t.values[builtinName] = variable{value: all}
	t.data = map[string]any{}
	for name, v := range t.values {
		t.data[name] = v.value
	}
	return t
}

// unpatchedFields lists the fields that no patch changes.
func (t *target) unpatchedFields() [][]string {
	kept := [][]string{
		{"metadata", "labels", clusterv1.ClusterNameLabel},
		{"metadata", "labels", clusterv1.ClusterTopologyOwnedLabel},
		{"metadata", "labels", clusterv1.ClusterTopologyMachineDeploymentNameLabel},
		{"metadata", "annotations", clusterv1.TemplateClonedFromNameAnnotation},
		{"metadata", "annotations", clusterv1.TemplateClonedFromGroupKindAnnotation},
	}
	if t.role != roleControlPlane || !t.plain {
		return kept
	}
	machine := func(names ...string) []string { return append([]string{"spec", "machineTemplate"}, names...) }
	return append(kept,
		[]string{"spec", "replicas"}, []string{"spec", "version"}, []string{"spec", "rollout", "after"}, []string{"spec", "rolloutAfter"},
		machine("metadata"), machine("infrastructureRef"), machine("spec", "infrastructureRef"),
		machine("readinessGates"), machine("spec", "readinessGates"), machine("taints"), machine("spec", "taints"),
		machine("nodeDrainTimeout"), machine("nodeVolumeDetachTimeout"), machine("nodeDeletionTimeout"),
		machine("spec", "deletion", "nodeDrainTimeoutSeconds"), machine("spec", "deletion", "nodeVolumeDetachTimeoutSeconds"),
		machine("spec", "deletion", "nodeDeletionTimeoutSeconds"),
	)
}

// applyExcept replaces the object by the patched template, except for the unpatched
// fields.
func (i *item) applyExcept(unpatched [][]string) {
	before := Object{Value: clone(i.Value), Places: maps.Clone(i.Places)}
	i.transfer(i.parts())
	for _, names := range unpatched {
		if !exists(before.Value, names...) {
			continue
		}
		setAt(i.Value, valueAt(before.Value, names...), names...)
		path := dotted(names...)
		i.removePlaces(path)
		for p, place := range before.Places {
			_, known := i.Places[p]
			if isBelow(p, path) || isBelow(path, p) && !known {
				i.Places[p] = place
			}
		}
	}
}

// patchOne applies one patch of the class to one template.
func (e *expander) patchOne(t *target, p clusterv1.ClusterClassPatch, at Place) {
	var matching []int
	for j, d := range p.Definitions {
		if t.matches(d.Selector) {
			matching = append(matching, j)
		}
	}
	if len(matching) == 0 {
		return
	}
	enabled, err := t.enabled(p.EnabledIf)
	if err != nil {
		e.fail(at.Below("enabledIf"), e.describePatch(t, p)+err.Error(), templateFix(err))
		return
	}
	if !enabled {
		return
	}
	for _, j := range matching {
		for k, op := range p.Definitions[j].JSONPatches {
			place := at.Below(indexed("definitions", j)).Below(indexed("jsonPatches", k))
			if !e.apply(t, p, op, place) {
				return
			}
		}
	}
}

// describePatch names the patch and its target, for errors.
func (e *expander) describePatch(t *target, p clusterv1.ClusterClassPatch) string {
	return fmt.Sprintf("the patch %q for %s/%s: ", p.Name, t.template.Kind, t.template.Name)
}

// templateFix returns the fix for an error of a template.
func templateFix(err error) string {
	if strings.Contains(err.Error(), "is not supported") {
		return "write it without this function"
	}
	return ""
}

// matches reports whether a selector matches the template.
func (t *target) matches(s clusterv1.PatchSelector) bool {
	if t.template.APIVersion != s.APIVersion || t.template.Kind != s.Kind {
		return false
	}
	m := s.MatchResources
	switch t.role {
	case roleInfrastructure:
		return m.InfrastructureCluster != nil && *m.InfrastructureCluster
	case roleControlPlane:
		return m.ControlPlane != nil && *m.ControlPlane
	case roleDeployment:
		if m.MachineDeploymentClass == nil {
			return false
		}
		for _, name := range m.MachineDeploymentClass.Names {
			if matchesName(name, t.class) {
				return true
			}
		}
	}
	return false
}

// matchesName compares a name with a pattern that has at most one *, at one end.
func matchesName(pattern, name string) bool {
	if end, ok := strings.CutPrefix(pattern, "*"); ok && strings.HasSuffix(name, end) {
		return true
	}
	start, ok := strings.CutSuffix(pattern, "*")
	return ok && strings.HasPrefix(name, start) || pattern == name
}

// enabled evaluates the condition of a patch.
func (t *target) enabled(condition string) (bool, error) {
	if condition == "" {
		return true, nil
	}
	v, err := t.render(condition)
	return v == true, err
}

// render evaluates a template and parses the result as YAML.
func (t *target) render(template string) (any, error) {
	data, err := t.floats()
	if err != nil {
		return nil, err
	}
	text, err := t.budget.Render(template, data)
	if err != nil {
		return nil, err
	}
	raw, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		return nil, fmt.Errorf("the result of the template is not YAML: %w", err)
	}
	return value(raw)
}

// floats returns a copy of the data with all numbers as float64, as Cluster API passes it
// to templates.
func (t *target) floats() (map[string]any, error) {
	raw, err := json.Marshal(t.data)
	if err == nil {
		err = t.budget.Take(len(raw))
	}
	if err != nil {
		return nil, err
	}
	m := map[string]any{}
	return m, json.Unmarshal(raw, &m)
}

// valueOf returns the value of a patch and where it comes from.
func (t *target) valueOf(p clusterv1.JSONPatch, at Place) (v any, says Place, err error) {
	switch {
	case p.Value != nil:
		v, err = value(p.Value.Raw)
		return v, at.Below("value"), err
	case p.ValueFrom.Variable != "":
		return t.lookup(p.ValueFrom.Variable, at.Below("valueFrom.variable"))
	default:
		v, err = t.render(p.ValueFrom.Template)
		return v, at.Below("valueFrom.template"), err
	}
}

// apply applies one JSON patch to the template, records where its value comes from, and
// reports success.
func (e *expander) apply(t *target, p clusterv1.ClusterClassPatch, op clusterv1.JSONPatch, at Place) bool {
	operation := map[string]any{"op": op.Op, "path": op.Path}
	var v any
	says := at
	if op.Op != "remove" {
		var err error
		if v, says, err = t.valueOf(op, at); err != nil {
			e.fail(at.Below("valueFrom"), e.describePatch(t, p)+err.Error(), templateFix(err))
			return false
		}
		operation["value"] = v
	}
	patched, err := applied(t.doc, operation)
	if err != nil {
		e.fail(at.Below("path"), e.describePatch(t, p)+fmt.Sprintf("%s %s cannot be applied: %s", op.Op, op.Path, withoutRepetition(err)), patchFix(op))
		return false
	}
	t.updatePlaces(op, v, says)
	t.doc = patched
	return true
}

func applied(doc, operation map[string]any) (map[string]any, error) {
	operations, err := json.Marshal([]any{operation})
	if err != nil {
		return nil, err
	}
	patch, err := jsonpatch.DecodePatch(operations)
	if err != nil {
		return nil, err
	}
	raw, err := json.Marshal(doc)
	if err != nil {
		return nil, err
	}
	if raw, err = patch.Apply(raw); err != nil {
		return nil, err
	}
	v, err := value(raw)
	if err != nil {
		return nil, err
	}
	m, ok := v.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("the result is not an object")
	}
	return m, nil
}

// withoutRepetition removes repetitions from the error of the JSON patch library.
func withoutRepetition(err error) string {
	what := err.Error()
	if _, rest, ok := strings.Cut(what, "does not apply: "); ok {
		what = rest
	}
	return strings.TrimSuffix(what, ": missing value")
}

func patchFix(op clusterv1.JSONPatch) string {
	switch op.Op {
	case "add":
		return "add the parent of the field first, or set it in the template"
	case "replace":
		return "use add for a field that the template does not set"
	default:
		return "remove only fields that the template sets"
	}
}
