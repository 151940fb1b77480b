package convert

import (
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"
)

func clusterClass(o *object) {
	spec := o.spec("")
	if spec == nil {
		return
	}
	o.templateRef(spec, "spec", "infrastructure.ref", "infrastructure.templateRef")
	o.move(spec, "spec", "infrastructureNamingStrategy", "infrastructure.naming")
	if plane := spec.at("controlPlane"); plane != nil {
		const at = "spec.controlPlane"
		o.templateRef(plane, at, "ref", "templateRef")
		o.templateRef(plane, at, "machineInfrastructure.ref", "machineInfrastructure.templateRef")
		o.group(plane, at)
	}
	for _, list := range []string{"machineDeployments", "machinePools"} {
		for i, group := range spec.at("workers." + list).items() {
			at := fmt.Sprintf("spec.workers.%s[%d]", list, i)
			o.move(group, at, "template.metadata", "metadata")
			o.move(group, at, "template.bootstrap", "bootstrap")
			o.move(group, at, "template.infrastructure", "infrastructure")
			o.forget(group, "template")
			o.templateRef(group, at, "bootstrap.ref", "bootstrap.templateRef")
			o.templateRef(group, at, "infrastructure.ref", "infrastructure.templateRef")
			o.group(group, at)
			o.strategy(group, at, "healthCheck.remediation.maxInFlight")
		}
	}
	for _, v := range spec.at("variables").items() {
		o.move(v, "spec.variables", "metadata", "deprecatedV1Beta1Metadata")
	}
	for i, patch := range spec.at("patches").items() {
		at := fmt.Sprintf("spec.patches[%d]", i)
		o.move(patch, at, "external.generateExtension", "external.generatePatchesExtension")
		o.move(patch, at, "external.validateExtension", "external.validateTopologyExtension")
		for k, definition := range patch.at("definitions").items() {
			o.definition(definition, fmt.Sprintf("%s.definitions[%d]", at, k))
		}
	}
}

// selectors returns the selectors of the patches of a ClusterClass.
func (o *object) selectors() (all []*node) {
	for _, patch := range o.spec("patches").items() {
		for _, definition := range patch.at("definitions").items() {
			if s := definition.at("selector"); s != nil {
				all = append(all, s)
			}
		}
	}
	return all
}

// definition converts the patches of one kind of template: their paths are those of v1beta2.
func (o *object) definition(in *node, at string) {
	selector := in.at("selector")
	if selector == nil {
		return
	}
	kind := selector.scalarAt("kind")
	if _, old := isOld(selector.scalarAt("apiVersion")); !old {
		return
	}
	o.versionedRef(selector)
	for i, patch := range in.at("jsonPatches").items() {
		o.patch(kind, patch, fmt.Sprintf("%s.jsonPatches[%d]", at, i))
	}
}

// movedPath is a path of a template in v1beta1, and where it is in v1beta2. Without the latter, a patch
// cannot be converted.
type movedPath struct{ from, to, what string }

// movedPaths returns the paths of a kind that patches may have, the more specific first.
func movedPaths(kind string) (all []movedPath) {
	const gone, list, duration = "the field does not exist any more", "the arguments are a list in v1beta2", "the field is a number of seconds in v1beta2, below deletion"
	kubeadm := func(prefix string) {
		for _, path := range []string{"clusterConfiguration/networking", "clusterConfiguration/kubernetesVersion", "clusterConfiguration/clusterName", "useExperimentalRetryJoin"} {
			all = append(all, movedPath{prefix + path, "", gone})
		}
		for _, path := range []string{"apiServer", "controllerManager", "scheduler", "etcd/local"} {
			all = append(all, movedPath{prefix + "clusterConfiguration/" + path + "/extraArgs", "", list})
		}
		for _, path := range []string{"initConfiguration", "joinConfiguration"} {
			all = append(all, movedPath{prefix + path + "/nodeRegistration/kubeletExtraArgs", "", list})
		}
		all = append(
			all,
			movedPath{
				prefix + "clusterConfiguration/apiServer/timeoutForControlPlane",
				"",
				"it is initConfiguration.timeouts.controlPlaneComponentHealthCheckSeconds in v1beta2",
			},
			movedPath{prefix + "joinConfiguration/discovery/timeout", "", "it is joinConfiguration.timeouts.tlsBootstrapSeconds in v1beta2"},
		)
	}
	const spec = "/spec/template/spec/"
	switch kind {
	case "KubeadmConfigTemplate":
		kubeadm(spec)
	case "KubeadmControlPlaneTemplate":
		kubeadm(spec + "kubeadmConfigSpec/")
		for _, path := range []string{"nodeDrainTimeout", "nodeVolumeDetachTimeout", "nodeDeletionTimeout"} {
			all = append(all, movedPath{spec + "machineTemplate/" + path, "", duration})
		}
		all = append(all,
			movedPath{spec + "machineTemplate/taints", spec + "machineTemplate/spec/taints", ""},
			movedPath{spec + "remediationStrategy/retryPeriod", "", "it is remediation.retryPeriodSeconds in v1beta2"},
			movedPath{spec + "remediationStrategy/minHealthyPeriod", "", "it is remediation.minHealthyPeriodSeconds in v1beta2"},
			movedPath{spec + "remediationStrategy", spec + "remediation", ""},
			movedPath{spec + "machineNamingStrategy", spec + "machineNaming", ""},
			movedPath{spec + "rolloutStrategy", spec + "rollout/strategy", ""},
			movedPath{spec + "rolloutBefore", spec + "rollout/before", ""},
			movedPath{spec + "rolloutAfter", spec + "rollout/after", ""})
	case "AWSMachineTemplate":
		all = append(all, movedPath{spec + "failureDomain", "", gone}, movedPath{spec + "subnet/arn", "", gone})
	}
	return all
}

// patch converts the path of a JSON patch.
func (o *object) patch(kind string, in *node, at string) {
	e := in.entry("path")
	if e == nil {
		return
	}
	path := in.scalarAt("path")
	for _, m := range movedPaths(kind) {
		if o.patchAbove(in, e, m, path, at) {
			return
		}
		rest, found := strings.CutPrefix(path, m.from)
		switch {
		case !found || rest != "" && rest[0] != '/':
			continue
		case m.to != "":
			e.replaceText(func(text string) string { return strings.Replace(text, m.from, m.to, 1) })
		case !strings.HasSuffix(m.from, "xtraArgs") || !argument(in, e, m.from, rest):
			o.note(e.line, join(at, "path"), "the patch is not converted: "+m.what, "write its path and value as in v1beta2")
		}
		return
	}
}

// patchAbove reports a patch that sets a parent of a field that v1beta2 has moved, if its value contains that field.
func (o *object) patchAbove(in *node, e *entry, m movedPath, path, at string) bool {
	below, ok := strings.CutPrefix(m.from, strings.TrimSuffix(path, "/")+"/")
	if !ok || in.at("value").at(strings.ReplaceAll(below, "/", ".")) == nil && !strings.Contains(in.scalarAt("valueFrom.template"), lastOf(m.from)+":") {
		return false
	}
	o.note(e.line, join(at, "path"), fmt.Sprintf("the value of the patch sets %s as in v1beta1, and is not converted", below), "write it as in v1beta2")
	return true
}

func lastOf(path string) string { return path[strings.LastIndexByte(path, '/')+1:] }

// argument converts a patch that adds one argument with a value.
func argument(in *node, path *entry, list, rest string) bool {
	value := in.entry("value")
	name := strings.NewReplacer("~1", "/", "~0", "~").Replace(strings.TrimPrefix(rest, "/"))
	if in.scalarAt("op") != "add" || value == nil {
		return false
	}
	if name == "" { // all arguments
		if value.value.resolved().kind != yaml.MappingNode {
			return false
		}
		arguments(in, "value")
		return true
	}
	if strings.Contains(name, "/") || value.value.resolved().kind != yaml.ScalarNode {
		return false
	}
	argument := newMapping(in.resolved().flow)
	argument.entries = []*entry{
		{key: "name", column: -1, value: scalar(name)},
		{key: "value", column: -1, value: value.value},
	}
	path.replaceText(func(text string) string { return strings.Replace(text, list+rest, list+"/-", 1) })
	value.value = argument
	return true
}
