package convert

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// The rules of Cluster API: Convert_v1beta1_…_To_v1beta2_… in api/core/v1beta1/conversion.go,
// and those of v1alpha3 and v1alpha4 in its releases up to v1.6.

// spec returns the spec, or a part of it.
func (o *object) spec(path string) *node {
	if path == "" {
		return o.root.at("spec")
	}
	return o.root.at("spec." + path)
}

// seconds converts a duration, such as 10m, to a number of seconds.
func (o *object) seconds(prefix, path string) func(*entry) {
	return func(e *entry) {
		text, note := e.value.resolved().plain(), func(what, fix string) { o.note(e.line, join(prefix, path), what, fix) }
		name, isVariable := strings.CutPrefix(text, "${")
		if isVariable {
			variable, _, _ := strings.Cut(strings.TrimSuffix(name, "}"), ":")
			variable, _, _ = strings.Cut(variable, "=")
			if i := strings.IndexAny(text, "=-"); i > 0 {
				if whole, ok := inSeconds(strings.TrimSuffix(text[i+1:], "}")); ok {
					text = text[:i+1] + whole + "}"
				}
			}
			e.set(number(text))
			note(fmt.Sprintf("the variable %s is a number of seconds in v1beta2, such as 600", variable), "change its values")
			return
		}
		whole, ok := inSeconds(text)
		if !ok {
			note(fmt.Sprintf("%q is not a duration", text), "write a number of seconds")
			return
		}
		if d, _ := time.ParseDuration(text); d%time.Second != 0 {
			note(fmt.Sprintf("%s is not a whole number of seconds: it is %s now", text, whole), "")
		}
		e.set(number(whole))
	}
}

// inSeconds converts a duration as upstream does: it is cut to seconds and limited.
func inSeconds(text string) (string, bool) {
	d, err := time.ParseDuration(text)
	if err != nil {
		return "", false
	}
	return strconv.FormatInt(min(int64(d/time.Second), 1<<31-1), 10), true
}

// contractRef converts a reference: v1beta2 has the group of the object and not its version.
func (o *object) contractRef(in *node, path string) {
	ref := in.at(path)
	if ref == nil || ref.kind != yaml.MappingNode {
		return
	}
	kind := ref.scalarAt("kind")
	switch e := ref.entry("apiVersion"); {
	case ref.entry("apiGroup") != nil:
	case e != nil:
		group, _, _ := strings.Cut(e.value.plain(), "/")
		group = strings.TrimPrefix(group, "exp.")
		was := e.value.plain()
		e.key = "apiGroup"
		e.replaceText(func(text string) string { return strings.Replace(text, was, group, 1) })
	case groupOf(kind) != "" && len(ref.entries) > 0:
		ref.put("apiGroup", &entry{column: -1, value: scalar(groupOf(kind))}, 0)
	}
	o.namespace(ref, join("spec", path))
	o.forget(ref, "namespace", "uid", "resourceVersion", "fieldPath")
}

// namespace reports a reference to another namespace.
func (o *object) namespace(ref *node, path string) {
	other := ref.scalarAt("namespace")
	if own := o.root.scalarAt("metadata.namespace"); other != "" && own != "" && other != own {
		o.note(ref.entry("namespace").line, join(path, "namespace"), "a reference has no namespace in v1beta2: the object must be in that of the "+o.kind, "")
	}
}

// versionedRef changes the version of a reference to an object that is converted, too.
func (o *object) versionedRef(ref *node) {
	e := ref.entry("apiVersion")
	if e == nil {
		return
	}
	group, old := isOld(e.value.resolved().plain())
	if old && kinds()[group][ref.scalarAt("kind")] != nil {
		o.version(e, group)
	}
}

// templateRef converts a reference of a ClusterClass or of a health check.
func (o *object) templateRef(in *node, prefix, from, to string) {
	o.move(in, prefix, from, to)
	ref := in.at(to)
	if ref == nil {
		return
	}
	o.versionedRef(ref)
	o.namespace(ref, join(prefix, to))
	o.forget(ref, "namespace", "uid", "resourceVersion", "fieldPath")
}

// deletion moves the timeouts of a machine.
func (o *object) deletion(in *node, prefix, to string) {
	for _, field := range []string{"nodeDrainTimeout", "nodeVolumeDetachTimeout", "nodeDeletionTimeout"} {
		o.move(in, prefix, field, join(to, field+"Seconds"), o.seconds(prefix, field))
	}
}

// machineSpec converts the spec of a machine, or of the template of one.
func (o *object) machineSpec(in *node, prefix string) {
	if in == nil {
		return
	}
	relative := strings.TrimPrefix(prefix, "spec")
	relative = strings.TrimPrefix(relative, ".")
	spec := o.spec("")
	o.contractRef(spec, strings.TrimPrefix(join(relative, "bootstrap.configRef"), "."))
	o.contractRef(spec, strings.TrimPrefix(join(relative, "infrastructureRef"), "."))
	o.drop(
		in,
		"bootstrap.data",
		prefix,
		"bootstrap data in a machine is not possible since v1alpha4",
		"put it into a Secret and name it in bootstrap.dataSecretName",
	)
	o.deletion(in, prefix, "deletion")
}

// machineTemplate converts spec.template of a MachineDeployment, MachineSet or MachinePool.
func (o *object) machineTemplate() {
	template := o.spec("template")
	if template == nil {
		return
	}
	for _, field := range []string{"name", "generateName", "namespace", "ownerReferences"} {
		o.drop(template, "metadata."+field, "spec.template", "the field has had no effect, and does not exist any more", "")
	}
	o.machineSpec(template.at("spec"), "spec.template.spec")
	o.move(o.spec(""), "spec", "minReadySeconds", "template.spec.minReadySeconds")
}

func machine(o *object) { o.machineSpec(o.spec(""), "spec") }

func machineSet(o *object) {
	o.move(o.spec(""), "spec", "deletePolicy", "deletion.order")
	o.move(o.spec(""), "spec", "machineNamingStrategy", "machineNaming")
	o.machineTemplate()
}

func machineDeployment(o *object) {
	spec := o.spec("")
	o.strategy(spec, "spec", "remediation.maxInFlight")
	o.move(spec, "spec", "rolloutAfter", "rollout.after")
	o.move(spec, "spec", "machineNamingStrategy", "machineNaming")
	const without = "the field has had no effect, and does not exist any more"
	o.drop(spec, "progressDeadlineSeconds", "spec", without, "")
	o.drop(spec, "revisionHistoryLimit", "spec", "the field does not exist any more: Cluster API keeps one MachineSet beside the current one", "")
	o.machineTemplate()
}

func machinePool(o *object) {
	o.drop(o.spec(""), "strategy", "spec", "the field has had no effect, and does not exist any more", "")
	o.machineTemplate()
}

// strategy converts the strategy of a MachineDeployment, of a class or of a topology.
func (o *object) strategy(in *node, prefix, inFlight string) {
	if in == nil {
		return
	}
	o.move(in, prefix, "strategy.rollingUpdate.deletePolicy", "deletion.order")
	o.move(in, prefix, "strategy.remediation.maxInFlight", inFlight)
	o.forget(in, "strategy.remediation")
	o.move(in, prefix, "strategy", "rollout.strategy")
	rolling(in)
}

// rolling sets the type of a rollout. It has been optional; there is one that has parameters.
func rolling(in *node) {
	strategy := in.at("rollout.strategy")
	if strategy != nil && strategy.at("rollingUpdate") != nil && strategy.at("type") == nil {
		strategy.put("type", &entry{column: -1, value: scalar("RollingUpdate"), line: strategy.line}, 0)
	}
}

// checks converts the fields of a health check.
func (o *object) checks(in *node, prefix string) {
	if in == nil {
		return
	}
	for _, list := range [][2]string{{"unhealthyConditions", "checks.unhealthyNodeConditions"}, {"unhealthyMachineConditions", "checks.unhealthyMachineConditions"}} {
		o.move(in, prefix, list[0], list[1])
		for _, item := range in.at(list[1]).items() {
			o.move(item, join(prefix, list[0]), "timeout", "timeoutSeconds", o.seconds(join(prefix, list[0]), "timeout"))
		}
	}
	o.move(in, prefix, "nodeStartupTimeout", "checks.nodeStartupTimeoutSeconds", o.seconds(prefix, "nodeStartupTimeout"))
	o.move(in, prefix, "maxUnhealthy", "remediation.triggerIf.unhealthyLessThanOrEqualTo")
	o.move(in, prefix, "unhealthyRange", "remediation.triggerIf.unhealthyInRange")
	o.templateRef(in, prefix, "remediationTemplate", "remediation.templateRef")
}

func healthCheck(o *object) { o.checks(o.spec(""), "spec") }

func cluster(o *object) {
	spec := o.spec("")
	o.contractRef(spec, "infrastructureRef")
	o.contractRef(spec, "controlPlaneRef")
	topology := o.spec("topology")
	if topology == nil {
		return
	}
	o.move(topology, "spec.topology", "class", "classRef.name")
	o.move(topology, "spec.topology", "classNamespace", "classRef.namespace")
	o.drop(topology, "rolloutAfter", "spec.topology", "the field has had no effect, and does not exist any more", "")
	o.definitionFrom(topology.at("variables"))
	if plane := topology.at("controlPlane"); plane != nil {
		o.group(plane, "spec.topology.controlPlane")
	}
	for _, list := range []string{"machineDeployments", "machinePools"} {
		for i, group := range topology.at("workers." + list).items() {
			prefix := fmt.Sprintf("spec.topology.workers.%s[%d]", list, i)
			o.group(group, prefix)
			o.strategy(group, prefix, "healthCheck.remediation.maxInFlight")
		}
	}
}

// group converts a group of machines of a topology or of a class.
func (o *object) group(in *node, prefix string) {
	o.deletion(in, prefix, "deletion")
	o.move(in, prefix, "machineHealthCheck.enable", "machineHealthCheck.enabled")
	o.checks(in.at("machineHealthCheck"), join(prefix, "machineHealthCheck"))
	o.move(in, prefix, "machineHealthCheck", "healthCheck")
	o.move(in, prefix, "namingStrategy", "naming")
	o.definitionFrom(in.at("variables.overrides"))
}

// definitionFrom removes a field of variables that could not be set any more in v1beta1.
func (o *object) definitionFrom(variables *node) {
	for _, v := range variables.items() {
		o.forget(v, "definitionFrom")
	}
}

// references changes the versions of references in an object that is of the newest version.
func (o *object) references() {
	if o.kind == "ClusterClass" {
		for _, ref := range o.classRefs() {
			o.versionedRef(ref)
		}
		for _, selector := range o.selectors() {
			o.versionedRef(selector)
		}
	}
	if ref := o.spec("remediation.templateRef"); ref != nil {
		o.versionedRef(ref)
	}
	before := len(o.notes)
	switch o.kind {
	case "AWSCluster":
		o.subnets(o.spec(""), "spec")
	case "AWSClusterTemplate":
		o.subnets(o.spec("template.spec"), "spec.template.spec")
	}
	if len(o.notes) > before {
		o.count++
	}
}

// classRefs returns the references to templates of a ClusterClass of the newest version.
func (o *object) classRefs() (refs []*node) {
	add := func(n *node, path string) {
		if ref := n.at(path); ref != nil {
			refs = append(refs, ref)
		}
	}
	spec := o.spec("")
	if spec == nil {
		return nil
	}
	for _, path := range []string{"infrastructure.templateRef", "controlPlane.templateRef", "controlPlane.machineInfrastructure.templateRef", "controlPlane.healthCheck.remediation.templateRef"} {
		add(spec, path)
	}
	for _, group := range slices.Concat(spec.at("workers.machineDeployments").items(), spec.at("workers.machinePools").items()) {
		for _, path := range []string{"bootstrap.templateRef", "infrastructure.templateRef", "healthCheck.remediation.templateRef"} {
			add(group, path)
		}
	}
	return refs
}
