package class

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/blang/semver/v4"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest/class/gotmpl"
)

// checkClass applies the rules of the ClusterClass webhook.
func (e *expander) checkClass() {
	spec := &e.class.Spec
	e.reference(spec.Infrastructure.TemplateRef, e.inClass("infrastructure.templateRef"), "AWSClusterTemplate", "AWSManagedClusterTemplate")
	e.reference(spec.ControlPlane.TemplateRef, e.inClass("controlPlane.templateRef"), "KubeadmControlPlaneTemplate", "AWSManagedControlPlaneTemplate")
	machine := spec.ControlPlane.MachineInfrastructure.TemplateRef
	switch {
	case !machine.IsDefined():
	case spec.ControlPlane.TemplateRef.Kind == "AWSManagedControlPlaneTemplate":
		e.fail(e.inClass("controlPlane.machineInfrastructure"), "the control plane of EKS has no machines of the cluster", "remove it")
	default:
		e.reference(machine, e.inClass("controlPlane.machineInfrastructure.templateRef"), "AWSMachineTemplate")
	}
	seen := map[string]bool{}
	for i, d := range spec.Workers.MachineDeployments {
		at := e.inClass(indexed("workers.machineDeployments", i))
		if seen[d.Class] {
			e.fail(at.Below("class"), fmt.Sprintf("duplicate class %q", d.Class), "keep one of them")
		}
		seen[d.Class] = true
		if e.usesClass(d.Class) {
			e.reference(d.Bootstrap.TemplateRef, at.Below("bootstrap.templateRef"), "KubeadmConfigTemplate", "EKSConfigTemplate", "NodeadmConfigTemplate")
			e.reference(d.Infrastructure.TemplateRef, at.Below("infrastructure.templateRef"), "AWSMachineTemplate")
		}
	}
	if external := spec.Upgrade.External.GenerateUpgradePlanExtension; external != "" {
		e.fail(e.inClass("upgrade.external"), fmt.Sprintf("the runtime extension %q needs a management cluster", external), "remove it")
	}
	names := map[string]bool{}
	for i := range spec.Patches {
		p := &spec.Patches[i]
		at := e.inClass(indexed("patches", i))
		if names[p.Name] {
			e.fail(at.Below("name"), fmt.Sprintf("duplicate patch %q", p.Name), "rename one of them")
		}
		names[p.Name] = true
		e.checkPatch(p, at)
	}
}

// usesClass reports whether the topology has a MachineDeployment of a class.
func (e *expander) usesClass(class string) bool {
	return slices.ContainsFunc(e.topology.Workers.MachineDeployments, func(d clusterv1.MachineDeploymentTopology) bool { return d.Class == class })
}

// reference checks that a template exists and is of one of the kinds.
func (e *expander) reference(r clusterv1.ClusterClassTemplateReference, at Place, kinds ...string) {
	if !slices.Contains(kinds, r.Kind) {
		if what, fix := e.in.Foreign(r.Kind); what != "" {
			e.fail(at.Below("kind"), what, fix)
			return
		}
		e.fail(at.Below("kind"), fmt.Sprintf("must be %s, not %s", strings.Join(kinds, " or "), r.Kind), "change the reference")
		return
	}
	t, reported := e.in.Template(r.Kind, r.APIVersion, r.Name)
	e.broken = e.broken || t == nil
	if t == nil && !reported {
		e.fail(at.Below("name"), fmt.Sprintf("there is no %s/%s of %s in the input", r.Kind, r.Name, r.APIVersion), "add it, or change the reference")
	}
}

func (e *expander) checkPatch(p *clusterv1.ClusterClassPatch, at Place) {
	switch {
	case p.External != nil:
		e.fail(
			at.Below("external"),
			fmt.Sprintf("the patch %q uses a runtime extension, which needs a management cluster", p.Name),
			"write its changes as jsonPatches",
		)
		return
	case len(p.Definitions) == 0:
		e.fail(at, fmt.Sprintf("the patch %q has no definitions", p.Name), "add them")
		return
	}
	e.checkTemplate(p.EnabledIf, at.Below("enabledIf"))
	for j, d := range p.Definitions {
		e.checkSelector(d.Selector, at.Below(indexed("definitions", j)).Below("selector"))
		for k := range d.JSONPatches {
			e.checkJSONPatch(&d.JSONPatches[k], at.Below(indexed("definitions", j)).Below(indexed("jsonPatches", k)))
		}
	}
}

// checkTemplate parses a template, to report errors even if it is not used.
func (e *expander) checkTemplate(text string, at Place) {
	if _, err := gotmpl.Parse(text); err != nil {
		e.fail(at, err.Error(), templateFix(err))
	}
}

func (e *expander) checkJSONPatch(p *clusterv1.JSONPatch, at Place) {
	if !slices.Contains([]string{"add", "replace", "remove"}, p.Op) {
		e.fail(at.Below("op"), fmt.Sprintf("the operation %q is not supported", p.Op), "use add, replace or remove")
	}
	if p.Path != "/spec" && !strings.HasPrefix(p.Path, "/spec/") {
		e.fail(at.Below("path"), fmt.Sprintf("%q does not begin with /spec/", p.Path), "templates can be changed below /spec only")
	}
	for token := range strings.SplitSeq(p.Path, "/") {
		if n, err := strconv.Atoi(token); err == nil && (p.Op != "add" || n != 0) {
			e.fail(at.Below("path"), fmt.Sprintf("%q has an index", p.Path), "only insertions at the start (0) or the end (-) of a list are supported")
		}
	}
	if p.Op == "add" || p.Op == "replace" {
		e.checkValue(p, at)
	}
}

func (e *expander) checkValue(p *clusterv1.JSONPatch, at Place) {
	switch from := p.ValueFrom; {
	case p.Value == nil && from == nil:
		e.fail(at, "the patch has no value", "set value or valueFrom")
	case p.Value != nil && from != nil:
		e.fail(at, "the patch has two values", "set value or valueFrom, not both")
	case from == nil:
	case from.Variable == "" && from.Template == "":
		e.fail(at.Below("valueFrom"), "valueFrom is empty", "set variable or template")
	case from.Variable != "" && from.Template != "":
		e.fail(at.Below("valueFrom"), "valueFrom has both variable and template", "set variable or template, not both")
	case from.Template != "":
		e.checkTemplate(from.Template, at.Below("valueFrom.template"))
	default:
		e.checkVariable(from.Variable, at.Below("valueFrom.variable"))
	}
}

func (e *expander) checkVariable(path string, at Place) {
	steps, err := split(path)
	if err != nil {
		e.fail(at, err.Error(), "write it as a.b[0].c")
		return
	}
	var names []string
	for _, v := range e.class.Spec.Variables {
		names = append(names, v.Name)
	}
	if name, _ := steps[0].(string); name != builtinName && !slices.Contains(names, name) && !e.discovers() {
		e.fail(at, fmt.Sprintf("the ClusterClass has no variable %q", name), availableNames("its variables are ", slices.Values(names)))
	}
}

// discovers reports whether a runtime extension defines variables of the class, too.
func (e *expander) discovers() bool {
	return slices.ContainsFunc(e.class.Spec.Patches, func(p clusterv1.ClusterClassPatch) bool {
		return p.External != nil && p.External.DiscoverVariablesExtension != ""
	})
}

// checkSelector rejects a selector that can match nothing.
func (e *expander) checkSelector(s clusterv1.PatchSelector, at Place) {
	m := s.MatchResources
	spec := &e.class.Spec
	infrastructure, plane := isTrue(m.InfrastructureCluster), isTrue(m.ControlPlane)
	if infrastructure && !selectorMatches(s, spec.Infrastructure.TemplateRef) {
		e.fail(
			at.Below("matchResources.infrastructureCluster"),
			fmt.Sprintf("the class's infrastructure is not a %s of %s", s.Kind, s.APIVersion),
			"change the selector",
		)
	}
	if plane && !selectorMatches(s, spec.ControlPlane.TemplateRef, spec.ControlPlane.MachineInfrastructure.TemplateRef) {
		e.fail(
			at.Below("matchResources.controlPlane"),
			fmt.Sprintf("neither the class's control plane nor its machines are a %s of %s", s.Kind, s.APIVersion),
			"change the selector",
		)
	}
	e.checkClassNames(s, at)
	workers := m.MachineDeploymentClass != nil && len(m.MachineDeploymentClass.Names) > 0
	pools := m.MachinePoolClass != nil && len(m.MachinePoolClass.Names) > 0
	if !infrastructure && !plane && !workers && !pools {
		e.fail(at, "the selector matches nothing", "set matchResources")
	}
}

func isTrue(b *bool) bool { return b != nil && *b }

// selectorMatches reports whether a selector matches one of the templates.
func selectorMatches(s clusterv1.PatchSelector, refs ...clusterv1.ClusterClassTemplateReference) bool {
	return slices.ContainsFunc(refs, func(r clusterv1.ClusterClassTemplateReference) bool {
		return s.Kind == r.Kind && s.APIVersion == r.APIVersion
	})
}

// checkClassNames rejects names of classes that do not exist.
func (e *expander) checkClassNames(s clusterv1.PatchSelector, at Place) {
	if s.MatchResources.MachineDeploymentClass == nil {
		return
	}
	for i, name := range s.MatchResources.MachineDeploymentClass.Names {
		if !slices.ContainsFunc(e.class.Spec.Workers.MachineDeployments, func(d clusterv1.MachineDeploymentClass) bool {
			return matchesName(name, d.Class) && selectorMatches(s, d.Bootstrap.TemplateRef, d.Infrastructure.TemplateRef)
		}) {
			e.fail(
				at.Below(indexed("matchResources.machineDeploymentClass.names", i)),
				fmt.Sprintf("no MachineDeployment class has the name %q and a %s of %s", name, s.Kind, s.APIVersion),
				"change the selector",
			)
		}
	}
}

// checkVersions checks the versions that the class allows: each is newer than the one before, and skips no minor version (validateKubernetesVersions in
// core/webhooks/admission/clusterclass.go of Cluster API).
func (e *expander) checkVersions() {
	var before *semver.Version
	for i, text := range e.class.Spec.KubernetesVersions {
		at := e.inClass(indexed("kubernetesVersions", i))
		v, err := semver.ParseTolerant(text)
		if err != nil {
			e.fail(at, fmt.Sprintf("%q is not a Kubernetes version such as v1.34.2", text), "change the value")
			continue
		}
		switch {
		case before == nil:
		case v.Compare(*before) < 0 || v.String() == before.String():
			e.fail(at, fmt.Sprintf("%s is not newer than v%s before it", text, before), "sort the versions, the oldest first")
		case v.Minor > before.Minor+1:
			e.fail(at, fmt.Sprintf("%s after v%s skips a minor version", text, before), fmt.Sprintf("add a version of 1.%d", before.Minor+1))
		}
		before = &v
	}
}

// checkTopology applies the rules of the Cluster webhook for topologies.
func (e *expander) checkTopology() {
	e.checkVersions()
	version := e.inCluster("version")
	if _, err := semver.Parse(strings.TrimPrefix(e.topology.Version, "v")); err != nil {
		e.fail(version, fmt.Sprintf("%q is not a Kubernetes version such as v1.34.2", e.topology.Version), "change the value")
	}
	if !strings.HasPrefix(e.topology.Version, "v") {
		e.topology.Version = "v" + e.topology.Version
	}
	if allowed := e.class.Spec.KubernetesVersions; len(allowed) > 0 && !slices.Contains(allowed, e.topology.Version) {
		e.fail(version, fmt.Sprintf("the ClusterClass does not allow %s", e.topology.Version), "use one of "+strings.Join(allowed, ", "))
	}
	names := map[string]bool{}
	for i, d := range e.topology.Workers.MachineDeployments {
		at := e.inCluster(indexed("workers.machineDeployments", i))
		if names[d.Name] {
			e.fail(at.Below("name"), fmt.Sprintf("duplicate machine deployment %q", d.Name), "rename one of them")
		}
		names[d.Name] = true
		class, _ := e.classOf(d.Class)
		switch {
		case class == nil:
			e.fail(at.Below("class"), fmt.Sprintf("the ClusterClass has no MachineDeployment class %q", d.Class), "use one of "+strings.Join(e.classNames(), ", "))
		case d.Replicas != nil && (isAutoscaled(d.Metadata) || isAutoscaled(class.Metadata)): // validateAutoscalerAnnotationsForCluster of Cluster API
			e.fail(at.Below("replicas"), "cannot be set beside the annotations of the cluster autoscaler", "remove it, or the annotations")
		}
	}
	if len(e.topology.Workers.MachinePools) > 0 {
		e.fail(
			e.inCluster("workers.machinePools"),
			"Cluster API Provider AWS has no template for machine pools, so a class cannot contain them",
			"add a MachinePool to the manifest",
		)
	}
}

// isAutoscaled reports whether annotations have bounds for the cluster autoscaler.
func isAutoscaled(m clusterv1.ObjectMeta) bool {
	_, least := m.Annotations[clusterv1.AutoscalerMinSizeAnnotation]
	_, most := m.Annotations[clusterv1.AutoscalerMaxSizeAnnotation]
	return least || most
}

func (e *expander) classNames() []string {
	var names []string
	for _, d := range e.class.Spec.Workers.MachineDeployments {
		names = append(names, d.Class)
	}
	return names
}
