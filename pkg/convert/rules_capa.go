package convert

import (
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"
)

// The rules of Cluster API Provider AWS: the files conversion.go of its packages v1beta1, and those of
// v1alpha3 and v1alpha4 in its releases v1.x.

func awsCluster(o *object) { o.infrastructure(o.spec(""), "spec") }

func awsClusterTemplate(o *object) {
	o.infrastructure(o.spec("template.spec"), "spec.template.spec")
}

func (o *object) infrastructure(spec *node, prefix string) {
	if spec == nil {
		return
	}
	o.move(spec, prefix, "networkSpec", "network")                                                                             // of v1alpha3
	if e := spec.at("controlPlaneLoadBalancer").entry("scheme"); e != nil && e.value.resolved().plain() == "Internet-facing" { // of v1alpha4
		e.replaceText(func(text string) string { return strings.Replace(text, "Internet-facing", "internet-facing", 1) })
	}
	o.subnets(spec, prefix)
}

// subnets gives an id to each subnet that has none: v1beta2 requires one. It is the name that CAPA
// gives to the subnet (getSubnetTagParams in pkg/cloud/services/network/subnets.go).
func (o *object) subnets(spec *node, prefix string) {
	what := "the name that the subnet has already"
	if spec.scalarAt("network.vpc.id") != "" {
		what = "a name for the subnet, which is found by its block"
	}
	all := spec.at("network.subnets").items()
	name := func(s *node) string {
		role := "private"
		if s.scalarAt("isPublic") == "true" {
			role = "public"
		}
		cluster := o.clusters[o.kind+"/"+o.name]
		if cluster == "" && o.kind == "AWSClusterTemplate" {
			cluster = o.clusters[""]
		}
		if cluster == "" {
			cluster = o.name
		}
		return fmt.Sprintf("%s-subnet-%s-%s", cluster, role, s.scalarAt("availabilityZone"))
	}
	count := map[string]int{}
	for _, s := range all {
		count[name(s)]++
	}
	for i, s := range all {
		if s.kind != yaml.MappingNode || s.scalarAt("id") != "" {
			continue
		}
		id := name(s)
		if count[id] > 1 {
			id += "-" + strings.NewReplacer(".", "-", "/", "-", ":", "-").Replace(s.scalarAt("cidrBlock"))
		}
		e := &entry{column: -1, value: scalar(id), line: s.line}
		s.put("id", e, 0)
		if len(s.entries) > 1 {
			e.head, s.entries[1].head = s.entries[1].head, ""
		}
		o.note(s.line, fmt.Sprintf("%s.network.subnets[%d].id", prefix, i), "v1beta2 requires an id: it is "+id+", "+what, "")
	}
}

func awsMachine(o *object) { o.machine(o.spec(""), "spec") }

func awsMachineTemplate(o *object) { o.machine(o.spec("template.spec"), "spec.template.spec") }

// machine converts the spec of an AWSMachine.
func (o *object) machine(spec *node, prefix string) {
	if spec == nil {
		return
	}
	o.drop(
		spec,
		"failureDomain",
		prefix,
		"an AWSMachine has no such field any more",
		"set failureDomain in the Machine, or in spec.template.spec of the MachineDeployment, or subnet here; a control plane is spread over the zones by itself",
	)
	o.image(spec, prefix)
	const arn = "there is no arn in v1beta2"
	o.drop(spec, "subnet.arn", prefix, arn, "use id")
	for i, group := range spec.at("additionalSecurityGroups").items() {
		o.drop(group, "arn", fmt.Sprintf("%s.additionalSecurityGroups[%d]", prefix, i), arn, "use id")
	}
}

// image removes fields of v1alpha3.
func (o *object) image(spec *node, prefix string) {
	o.drop(spec, "ami.arn", prefix, "the field does not exist since v1alpha4", "use id")
	o.drop(spec, "ami.filters", prefix, "the field does not exist since v1alpha4", "use id")
}

func awsMachinePool(o *object) {
	for i, subnet := range o.spec("subnets").items() {
		o.drop(subnet, "arn", fmt.Sprintf("spec.subnets[%d]", i), "there is no arn in v1beta2", "use id")
	}
	template := o.spec("awsLaunchTemplate")
	if template == nil {
		return
	}
	const prefix = "spec.awsLaunchTemplate"
	o.image(template, prefix)
	for i, group := range template.at("additionalSecurityGroups").items() {
		o.drop(group, "arn", fmt.Sprintf("%s.additionalSecurityGroups[%d]", prefix, i), "there is no arn in v1beta2", "use id")
	}
}

func awsManagedMachinePool(o *object) {
	o.move(o.spec(""), "spec", "updateConfig.maxUnavailablePrecentage", "updateConfig.maxUnavailablePercentage") // a spelling mistake in v1beta1
	awsMachinePool(o)
}

func eksControlPlane(o *object) {
	spec := o.spec("")
	if spec == nil {
		return
	}
	o.move(spec, "spec", "networkSpec", "network") // of v1alpha3
	o.move(spec, "spec", "disableVPCCNI", "vpcCni.disable")
	for i, addon := range spec.at("addons").items() {
		if addon.kind != yaml.MappingNode || addon.at("conflictResolution") != nil {
			continue
		}
		addon.put("conflictResolution", &entry{column: -1, value: scalar("none"), line: addon.line}, len(addon.entries))
		o.note(addon.line, fmt.Sprintf("spec.addons[%d].conflictResolution", i), "the default was none, and is overwrite in v1beta2: none is written", "")
	}
}

func identity(*object) {}

func staticIdentity(o *object) {
	e := o.spec("").entry("secretRef")
	if e == nil || e.value.resolved().kind != yaml.MappingNode { // of v1alpha3
		return
	}
	if namespace := e.value.at("namespace"); namespace != nil {
		o.note(e.line, "spec.secretRef.namespace", "the Secret must be in the namespace of the controller since v1alpha4", "")
	}
	name := e.value.resolved().entry("name")
	if name == nil {
		o.spec("").remove(e)
		return
	}
	v := *name.value
	v.column = -1
	e.value, e.trail = &v, name.trail
}
