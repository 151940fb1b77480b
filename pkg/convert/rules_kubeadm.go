package convert

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

func kubeadmConfig(o *object) { o.kubeadm(o.spec(""), "spec") }

func kubeadmConfigTemplate(o *object) { o.kubeadm(o.spec("template.spec"), "spec.template.spec") }

func kubeadmControlPlane(o *object) {
	spec := o.spec("")
	o.move(spec, "spec", "infrastructureTemplate", "machineTemplate.infrastructureRef") // of v1alpha3
	o.move(spec, "spec", "nodeDrainTimeout", "machineTemplate.nodeDrainTimeout")        // of v1alpha3
	o.move(spec, "spec", "upgradeAfter", "rolloutAfter")                                // of v1alpha3
	o.move(spec, "spec", "machineTemplate.infrastructureRef", "machineTemplate.spec.infrastructureRef")
	o.contractRef(spec, "machineTemplate.spec.infrastructureRef")
	o.controlPlane(spec, "spec")
}

func kubeadmControlPlaneTemplate(o *object) {
	spec, prefix := o.spec("template.spec"), "spec.template.spec"
	if spec == nil {
		return
	}
	for _, field := range []string{"replicas", "version", "machineTemplate.infrastructureRef"} { // of v1alpha4
		o.drop(spec, field, prefix, "a template has no such field since v1beta1: the topology of the Cluster has it", "")
	}
	o.controlPlane(spec, prefix)
}

// controlPlane converts what a KubeadmControlPlane and its template have in common.
func (o *object) controlPlane(spec *node, prefix string) {
	if spec == nil {
		return
	}
	for _, field := range []string{"readinessGates", "taints"} {
		o.move(spec, prefix, "machineTemplate."+field, "machineTemplate.spec."+field)
	}
	if template := spec.at("machineTemplate"); template != nil {
		o.deletion(template, join(prefix, "machineTemplate"), "spec.deletion")
	}
	o.move(spec, prefix, "rolloutStrategy", "rollout.strategy")
	rolling(spec)
	o.move(spec, prefix, "rolloutBefore", "rollout.before")
	o.move(spec, prefix, "rolloutAfter", "rollout.after")
	if remediation := spec.at("remediationStrategy"); remediation != nil {
		for _, field := range []string{"retryPeriod", "minHealthyPeriod"} {
			o.move(remediation, join(prefix, "remediationStrategy"), field, field+"Seconds", o.seconds(join(prefix, "remediationStrategy"), field))
		}
	}
	o.move(spec, prefix, "remediationStrategy", "remediation")
	o.move(spec, prefix, "machineNamingStrategy", "machineNaming")
	o.kubeadm(spec.at("kubeadmConfigSpec"), join(prefix, "kubeadmConfigSpec"))
}

// kubeadm converts a kubeadm configuration.
func (o *object) kubeadm(in *node, prefix string) {
	if in == nil {
		return
	}
	if retry := in.at("useExperimentalRetryJoin"); retry != nil && retry.value == "true" {
		o.note(
			in.entry("useExperimentalRetryJoin").line,
			join(prefix, "useExperimentalRetryJoin"),
			"the field does not exist any more: kubeadm repeats a join by itself",
			"",
		)
	}
	o.forget(in, "useExperimentalRetryJoin")
	if configuration := in.at("clusterConfiguration"); configuration != nil {
		o.clusterConfiguration(configuration, join(prefix, "clusterConfiguration"))
	}
	o.timeouts(in, prefix)
	for _, path := range []string{"initConfiguration", "joinConfiguration"} {
		o.forget(in, path+".apiVersion", path+".kind")
		arguments(in, path+".nodeRegistration.kubeletExtraArgs")
	}
	for i, token := range in.at("initConfiguration.bootstrapTokens").items() {
		at := fmt.Sprintf("%s.initConfiguration.bootstrapTokens[%d]", prefix, i)
		o.move(token, at, "ttl", "ttlSeconds", o.seconds(at, "ttl"))
	}
}

func (o *object) clusterConfiguration(in *node, prefix string) {
	o.forget(in, "apiVersion", "kind")
	o.drop(in, "networking", prefix, "the field does not exist any more", "set spec.clusterNetwork of the Cluster")
	o.drop(in, "kubernetesVersion", prefix, "the field does not exist any more: the version of the machine is used", "")
	o.drop(in, "clusterName", prefix, "the field does not exist any more: the name of the Cluster is used", "")
	o.drop(in, "useHyperKubeImage", prefix, "the field does not exist since v1alpha4", "")
	o.drop(in, "dns.type", prefix, "the field does not exist since v1alpha4: the DNS server is CoreDNS", "")
	for _, path := range []string{"apiServer", "controllerManager", "scheduler", "etcd.local"} {
		arguments(in, path+".extraArgs")
	}
}

// timeouts moves the timeouts of kubeadm. That of the API server is one of both configurations.
func (o *object) timeouts(in *node, prefix string) {
	const server, health = "clusterConfiguration.apiServer.timeoutForControlPlane", "timeouts.controlPlaneComponentHealthCheckSeconds"
	o.move(
		in,
		prefix,
		"joinConfiguration.discovery.timeout",
		"joinConfiguration.timeouts.tlsBootstrapSeconds",
		o.seconds(prefix, "joinConfiguration.discovery.timeout"),
	)
	if in.at(server) == nil {
		return
	}
	o.move(in, prefix, server, "initConfiguration."+health, o.seconds(prefix, server))
	if e := in.at("initConfiguration.timeouts").entry("controlPlaneComponentHealthCheckSeconds"); e != nil && in.at("joinConfiguration."+health) == nil {
		same := *e.value
		same.column = -1
		in.put("joinConfiguration."+health, &entry{column: -1, line: e.line, value: &same}, len(in.entries))
	}
}

// arguments converts the arguments of a program from a mapping to a list. They are sorted by name,
// as upstream does it: machines boot with them in this order.
func arguments(in *node, path string) {
	parent, field := in, path
	if i := strings.LastIndexByte(path, '.'); i >= 0 {
		parent, field = in.at(path[:i]), path[i+1:]
	}
	if parent == nil {
		return
	}
	e := parent.entry(field)
	if e == nil {
		return
	}
	args := e.value.resolved()
	if args.kind != yaml.MappingNode {
		return
	}
	list := newList(parent.resolved().flow)
	for _, arg := range args.entries {
		name := &entry{
			key:    "name",
			column: -1,
			line:   arg.line,
			value:  &node{kind: yaml.ScalarNode, tag: "!!str", raw: arg.name, value: arg.key, column: -1, line: arg.line},
		}
		value := &entry{key: "value", column: -1, line: arg.line, value: arg.value, trail: arg.trail}
		if v := arg.value.resolved(); v.kind == yaml.ScalarNode && v.tag == "!!null" {
			value.value = &node{kind: yaml.ScalarNode, tag: "!!str", raw: `""`, column: -1}
		}
		if arg.name == "" {
			name.value.raw = arg.key
		}
		item := newMapping(list.flow)
		item.entries = []*entry{name, value}
		list.entries = append(list.entries, &entry{column: arg.column, line: arg.line, head: arg.head, value: item, tail: arg.tail})
	}
	slices.SortStableFunc(list.entries, func(x, y *entry) int {
		return strings.Compare(x.value.entries[0].value.value, y.value.entries[0].value.value)
	})
	target := e.value
	if target.kind == yaml.AliasNode {
		*args = node{kind: yaml.SequenceNode, tag: "!!seq", column: args.column, flow: args.flow, entries: list.entries, line: args.line}
		return
	}
	e.value = list
}
