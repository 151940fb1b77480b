package convert

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/clusterawsadm/clusterawsadm/pkg/input"
)

// Groups and versions of Cluster API and of its provider for AWS.
const (
	groupCore           = "cluster.x-k8s.io"
	groupAddons         = "addons.cluster.x-k8s.io"
	groupBootstrap      = "bootstrap.cluster.x-k8s.io"
	groupControlPlane   = "controlplane.cluster.x-k8s.io"
	groupInfrastructure = "infrastructure.cluster.x-k8s.io"
	groupPools          = "exp.cluster.x-k8s.io" // of MachinePools, in v1alpha3
	newest              = "v1beta2"
)

// rule converts an object whose apiVersion has been changed already. The rules of all older versions
// are the same: no field has changed its meaning and kept its name.
type rule func(o *object)

// kinds returns the groups of the kinds, and their rules.
func kinds() map[string]map[string]rule {
	none := func(*object) {}
	return map[string]map[string]rule{
		groupCore: {
			"Cluster": cluster, "ClusterClass": clusterClass, "Machine": machine, "MachineSet": machineSet, "MachineDeployment": machineDeployment,
			"MachinePool": machinePool, "MachineHealthCheck": healthCheck, "MachineDrainRule": none,
		},
		groupAddons:    {"ClusterResourceSet": none, "ClusterResourceSetBinding": none},
		groupBootstrap: {"KubeadmConfig": kubeadmConfig, "KubeadmConfigTemplate": kubeadmConfigTemplate, "EKSConfig": none, "EKSConfigTemplate": none},
		groupControlPlane: {
			"KubeadmControlPlane": kubeadmControlPlane, "KubeadmControlPlaneTemplate": kubeadmControlPlaneTemplate, "AWSManagedControlPlane": eksControlPlane,
		},
		groupInfrastructure: {
			"AWSCluster": awsCluster, "AWSClusterTemplate": awsClusterTemplate, "AWSMachine": awsMachine, "AWSMachineTemplate": awsMachineTemplate,
			"AWSClusterControllerIdentity": identity, "AWSClusterRoleIdentity": identity, "AWSClusterStaticIdentity": staticIdentity, "AWSManagedCluster": none,
			"AWSMachinePool": awsMachinePool, "AWSManagedMachinePool": awsManagedMachinePool, "AWSFargateProfile": none,
		},
	}
}

// isOld reports whether an API version is one that is converted, and returns its group.
func isOld(apiVersion string) (group string, old bool) {
	group, version, ok := strings.Cut(apiVersion, "/")
	if !ok || !slices.Contains([]string{groupCore, groupAddons, groupBootstrap, groupControlPlane, groupInfrastructure, groupPools}, group) {
		return "", false
	}
	return strings.TrimPrefix(group, "exp."), slices.Contains([]string{"v1alpha3", "v1alpha4", "v1beta1"}, version)
}

// isTooOld reports whether an API version of Cluster API is older than those that are converted.
func isTooOld(apiVersion string) bool {
	group, version, _ := strings.Cut(apiVersion, "/")
	return slices.Contains([]string{groupCore, groupBootstrap, groupInfrastructure}, group) && slices.Contains([]string{"v1alpha1", "v1alpha2"}, version)
}

// groupOf returns the group of a kind, or "".
func groupOf(kind string) string {
	for group, kinds := range kinds() {
		if kinds[kind] != nil {
			return group
		}
	}
	return ""
}

// needed reports whether a document has an object of an older version, or one that refers to others
// by their version.
func needed(n *yaml.Node) bool {
	apiVersion, kind := field(n, "apiVersion"), field(n, "kind")
	if _, old := isOld(apiVersion); old || isNewest(kind) {
		return true
	}
	return slices.ContainsFunc(itemsOf(n), needed)
}

// isNewest reports whether an object of the newest version may need a change: it refers to others by
// their version, or has subnets without an id, which v1beta2 of AWSCluster has permitted up to v2.3.
func isNewest(kind string) bool {
	return slices.Contains([]string{"ClusterClass", "MachineHealthCheck", "Cluster", "AWSCluster", "AWSClusterTemplate"}, kind)
}

func field(n *yaml.Node, key string) string {
	if n.Kind != yaml.MappingNode {
		return ""
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key && n.Content[i+1].Kind == yaml.ScalarNode {
			return n.Content[i+1].Value
		}
	}
	return ""
}

// itemsOf returns the objects of a list, such as List or ClusterList.
func itemsOf(n *yaml.Node) []*yaml.Node {
	if n.Kind != yaml.MappingNode || !strings.HasSuffix(field(n, "kind"), "List") {
		return nil
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == "items" && n.Content[i+1].Kind == yaml.SequenceNode {
			return n.Content[i+1].Content
		}
	}
	return nil
}

// objects converts the objects of a document.
type objects struct {
	*converter

	notes []input.Problem
	count int
}

// object is one object.
type object struct {
	*objects

	root       *node
	kind, name string
	old        bool // it is of an older version
}

func (all *objects) all(root *node) {
	if items := root.at("items"); items != nil && strings.HasSuffix(root.scalarAt("kind"), "List") {
		group, old := isOld(root.scalarAt("apiVersion"))
		if old {
			all.version(root.entry("apiVersion"), group)
		}
		for _, item := range items.items() {
			all.all(item)
		}
		return
	}
	all.one(root)
}

// version changes an apiVersion to the newest one.
func (all *objects) version(e *entry, group string) {
	was := e.value.resolved().plain()
	e.replaceText(func(text string) string { return strings.Replace(text, mask(was), group+"/"+newest, 1) })
}

// one converts one object.
func (all *objects) one(root *node) {
	if root == nil || root.kind != yaml.MappingNode {
		return
	}
	o := &object{objects: all, root: root, kind: root.scalarAt("kind"), name: root.scalarAt("metadata.name")}
	apiVersion := root.entry("apiVersion")
	if apiVersion == nil {
		return
	}
	group, old := isOld(root.scalarAt("apiVersion"))
	convert := kinds()[group][o.kind]
	switch {
	case !old && isNewest(o.kind):
		o.references()
		return
	case !old:
		return
	case convert == nil && groupOf(o.kind) != "":
		o.note(apiVersion.line, "apiVersion", fmt.Sprintf("there is no kind %s in %s", o.kind, group), "use "+groupOf(o.kind)+"/"+newest)
		return
	case convert == nil:
		o.note(apiVersion.line, "apiVersion", fmt.Sprintf("%s is of another provider, and stays as it is", o.kind), "ask the provider for its newest version")
		return
	}
	o.old = true
	all.count++
	all.version(apiVersion, group)
	convert(o)
	o.prune()
	if e := root.entry("status"); e != nil {
		root.remove(e) // controllers write it
	}
}

// note reports what is not carried, or has another meaning.
func (o *object) note(line int, path, what, fix string) {
	o.notes = append(
		o.notes,
		input.Problem{Position: input.Position{File: o.file, Line: line}, Object: strings.TrimSuffix(o.kind+"/"+o.name, "/"), Path: path, What: what, Fix: fix},
	)
}

// drop removes a field with a note.
func (o *object) drop(in *node, path, prefix, what, fix string) {
	if in.at(path) == nil {
		return
	}
	e, _ := in.take(path)
	if !e.value.isEmpty() || e.value.resolved().kind == yaml.ScalarNode {
		o.note(e.line, join(prefix, path), what, fix)
	}
}

// forget removes a field that has no meaning.
func (o *object) forget(in *node, paths ...string) {
	for _, path := range paths {
		if in.at(path) != nil || in.entry(path) != nil {
			in.take(path)
		}
	}
}

func join(prefix, path string) string {
	if prefix == "" {
		return path
	}
	return prefix + "." + path
}

// move moves a field to another path of the same mapping.
func (o *object) move(in *node, prefix, from, to string, change ...func(*entry)) {
	o.moveTo(in, in, prefix, from, to, change...)
}

// moveTo moves a field to a path of another mapping.
func (o *object) moveTo(in, target *node, prefix, from, to string, change ...func(*entry)) {
	for in != nil && in.resolved() == target.resolved() { // the mappings that both paths have in common stay
		first, rest, deeper := strings.Cut(from, ".")
		second, below, also := strings.Cut(to, ".")
		if !deeper || !also || first != second || in.at(first) == nil {
			break
		}
		in, from, to, prefix = in.at(first), rest, below, join(prefix, first)
		target = in
	}
	if in == nil || in.at(from) == nil {
		return
	}
	e, index := in.take(from)
	if e == nil || e.value.resolved().tag == "!!null" {
		return
	}
	for _, f := range change {
		f(e)
	}
	if in.resolved() != target.resolved() {
		index = len(target.resolved().entries)
	}
	if !target.put(to, e, index) {
		o.note(e.line, join(prefix, from), to+" is set already, so this field is dropped", "keep one of them")
	}
}

// prune removes values that the newest version refuses and that say nothing, such as {} and "".
func (o *object) prune() {
	if schema := schemaOf(o.kind); schema != nil {
		o.empties(o.root, schema)
	}
}

// empties removes empty values below a mapping where the schema requires one that is not empty.
func (o *object) empties(n *node, schema *schema) {
	n = n.resolved()
	switch n.kind { //nolint:exhaustive // all others have nothing below
	case yaml.MappingNode:
		for _, e := range slices.Clone(n.entries) {
			below := schema.property(e.key)
			if below == nil {
				continue
			}
			o.empties(e.value, below)
			if below.refusesEmpty(e.value) && !slices.Contains(schema.Required, e.key) {
				n.remove(e)
			}
		}
	case yaml.SequenceNode:
		for _, e := range n.entries {
			if schema.Items != nil && schema.Items.Schema != nil {
				o.empties(e.value, schema.item())
			}
		}
	}
}

// find records which Cluster has which infrastructure, before anything is converted.
func (c *converter) find(text string) {
	c.clusters = map[string]string{}
	for _, in := range split(text) {
		_, body, masked := prepared(in.text)
		root, err := document(masked)
		if err != nil || root == nil {
			continue
		}
		s := newSource(body, masked, in.first)
		s.expand = true
		_, n, _ := s.root(root)
		if s.odd || n == nil {
			continue
		}
		c.findIn(n)
	}
}

func (c *converter) findIn(n *node) {
	for _, item := range n.at("items").items() {
		c.findIn(item)
	}
	if n.scalarAt("kind") != "Cluster" {
		return
	}
	if n.at("spec.topology") != nil { // of the templates of its class
		if _, several := c.clusters[""]; several { // then the name of the template is used
			c.clusters[""] = ""
		} else {
			c.clusters[""] = n.scalarAt("metadata.name")
		}
	}
	for _, ref := range []string{"spec.infrastructureRef", "spec.controlPlaneRef"} {
		if v := n.at(ref); v != nil {
			c.clusters[v.scalarAt("kind")+"/"+v.scalarAt("name")] = n.scalarAt("metadata.name")
		}
	}
}

// Kinds returns the kinds that are converted, in order.
func Kinds() (all []string) {
	for _, of := range kinds() {
		all = slices.AppendSeq(all, maps.Keys(of))
	}
	slices.Sort(all)
	return all
}
