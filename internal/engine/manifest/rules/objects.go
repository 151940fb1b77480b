package rules

import (
	"encoding/base64"
	"fmt"
	"iter"
	"maps"
	"net/netip"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest/crd"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest/rules/apiserver"
	"github.com/clusterawsadm/clusterawsadm/internal/regex"
)

// checkObjects checks the objects of resource sets as the API server does when they are applied, after the cluster is there (the
// types in k8s.io/api, and pkg/apis/core/validation and pkg/apis/apps/validation of Kubernetes).
func (c *checks) checkObjects() {
	c.checkNamespaces()
	server := c.apiServer()
	var accepted []*manifest.Document
	for _, set := range c.cluster.ResourceSets {
		for _, d := range set.Documents {
			o, before := object{c, d}, len(c.problems)
			o.checkName()
			o.checkTexts()
			o.checkLabels()
			o.checkContainers()
			o.checkPorts()
			if len(c.problems) == before { // one mistake is one line
				o.checkType(server)
			}
			if len(c.problems) == before {
				accepted = append(accepted, d)
			}
		}
	}
	made, workloads := c.made(), c.workloads(accepted)
	c.checkAllocations(server, accepted)
	c.checkPods(workloads, made)
	c.checkPlacement(workloads)
	c.checkFiles(workloads, made)
	c.checkCalledServices(accepted, workloads, made)
	c.checkPodNetworks()
}

// apiServer returns what is known of the API server to which the objects are applied.
func (c *checks) apiServer() apiserver.Server {
	server := apiserver.Server{Minor: c.versionOf("").minor, Defaults: !c.managed, Gates: !c.managed, NodePort: [2]int32{firstNodePort, lastNodePort}}
	otherBlocks := false
	if c.cluster.ControlPlane != nil {
		config := c.cluster.ControlPlane.Object.Spec.KubeadmConfigSpec
		for _, a := range config.ClusterConfiguration.APIServer.ExtraArgs {
			switch a.Name {
			case "runtime-config":
				server.Defaults = false
			case "feature-gates":
				server.Gates = false
			case "service-node-port-range":
				server.NodePort = [2]int32{}
			case "service-cluster-ip-range":
				otherBlocks = true
			}
		}
		if config.InitConfiguration.Patches.Directory != "" { // patches may set the same arguments
			server.Defaults, server.Gates, server.NodePort, otherBlocks = false, false, [2]int32{}, true
		}
	} else {
		server.Defaults, server.Gates = false, false
	}
	if blocks := c.cluster.Object.Spec.ClusterNetwork.Services.CIDRBlocks; !c.managed || len(blocks) > 0 {
		for _, text := range Services(c.cluster) {
			if b, err := netip.ParsePrefix(text); err == nil {
				server.Services = append(server.Services, b.Masked())
			}
		}
	}
	if otherBlocks || c.hasObject(func(d *manifest.Document) bool { return d.Kind() == "ServiceCIDR" }) {
		server.Services = nil // it has more blocks
	}
	server.Schemas = c.schemas()
	return server
}

// hasObject reports whether resource sets have an object that is selected.
func (c *checks) hasObject(selected func(*manifest.Document) bool) bool {
	return slices.ContainsFunc(c.cluster.ResourceSets, func(s manifest.ResourceSet) bool { return slices.ContainsFunc(s.Documents, selected) })
}

// schemas returns the schemas of the kinds that CustomResourceDefinitions of the manifest define, if it has objects of them.
func (c *checks) schemas() map[schema.GroupVersionKind]*crd.Schema {
	all, used := map[schema.GroupVersionKind]*crd.Schema{}, map[schema.GroupVersionKind]bool{}
	for _, set := range c.cluster.ResourceSets {
		for _, d := range set.Documents {
			used[schema.FromAPIVersionAndKind(manifest.StringField(d.Object, "apiVersion"), d.Kind())] = true
		}
	}
	for _, set := range c.cluster.ResourceSets {
		for _, d := range set.Documents {
			var o apiextensionsv1.CustomResourceDefinition
			if d.Kind() != "CustomResourceDefinition" || runtime.DefaultUnstructuredConverter.FromUnstructured(d.Object, &o) != nil {
				continue
			}
			for _, v := range o.Spec.Versions {
				of := schema.GroupVersionKind{Group: o.Spec.Group, Version: v.Name, Kind: o.Spec.Names.Kind}
				if v.Schema == nil || v.Schema.OpenAPIV3Schema == nil || !used[of] {
					continue
				}
				if s, err := crd.Compile(v.Schema.OpenAPIV3Schema); err == nil {
					all[of] = s
				}
			}
		}
	}
	return all
}

// An API server gives Services node ports from this range by default (DefaultServiceNodePortRange in pkg/controlplane/reconcilers of
// Kubernetes).
const firstNodePort, lastNodePort = 30000, 32767

// checkType checks whether the API server serves the kind, and whether it would refuse the object. Fields that the kind does not have are
// removed from the object, with a warning, so that the others can be applied.
func (o object) checkType(server apiserver.Server) {
	if r, bad := server.Unserved(o.Object); bad {
		o.refuse(r.What, r.Fix)
		return
	}
	found := server.Refusals(o.Object)
	for _, r := range found {
		if r.Unknown() {
			o.warn(o.problem(fmt.Sprintf("%s: %s: %s: it is left out", o.Title(), r.Field, r.What), r.Fix))
			r.Drop(o.Object)
		}
	}
	if slices.ContainsFunc(found, apiserver.Refusal.Unknown) {
		found = server.Refusals(o.Object)
	}
	for _, r := range found {
		o.refuse(strings.TrimPrefix(r.Field+": "+r.What, ": "), r.Fix)
	}
}

// checkNamespaces warns about objects in a namespace that nothing in the manifest makes: the API server refuses them until something does
// (NamespaceLifecycle, "Admission Control in Kubernetes"). Charts and add-ons of EKS may make others.
func (c *checks) checkNamespaces() {
	if c.madeElsewhere() {
		return
	}
	made := map[string]bool{"": true}
	for _, name := range firstNamespaces() {
		made[name] = true
	}
	for _, set := range c.cluster.ResourceSets {
		for _, d := range set.Documents {
			if d.Kind() == "Namespace" {
				made[d.Metadata("name")] = true
			}
		}
	}
	for _, set := range c.cluster.ResourceSets {
		for _, d := range set.Documents {
			if name := d.Metadata("namespace"); !made[name] {
				made[name] = true // one warning for each
				c.warn(d.ProblemAt(
					"metadata.namespace",
					fmt.Sprintf(
						"nothing in the manifest makes the namespace %s of %s, and the API server refuses objects in a namespace that does not exist",
						name,
						d.Title(),
					),
					"bring the Namespace too",
				))
			}
		}
	}
}

// object is an object of a resource set.
type object struct {
	*checks
	*manifest.Document
}

func (o object) refuse(what, fix string) {
	o.fail(o.problem(fmt.Sprintf("the API server refuses %s: %s", o.Title(), what), fix))
}

// refuseAt refuses the object because of a field.
func (o object) refuseAt(path, what, fix string) {
	o.fail(o.ProblemAt(path, fmt.Sprintf("the API server refuses %s: %s", o.Title(), what), fix))
}

// problem returns a problem at the field that the text names first, such as spec.replicas, or at the object.
func (o object) problem(what, fix string) manifest.Problem {
	for _, path := range regex.Of(`[a-zA-Z]+[.\[][^\s:,;"]+`).FindAllString(what, -1) {
		if first, _, _ := strings.Cut(strings.ReplaceAll(path, "[", "."), "."); o.Object[first] != nil {
			return o.ProblemAt(path, what, fix)
		}
	}
	return o.ProblemAt("", what, fix)
}

// at returns a part of the object; nil if it is not a mapping.
func (o object) at(path ...string) map[string]any {
	m := o.Object
	for _, key := range path {
		m, _ = m[key].(map[string]any)
	}
	return m
}

// checkName checks the name. Those of RBAC may have any characters but slashes and percent signs.
func (o object) checkName() {
	name := o.Metadata("name")
	if o.Group() == "rbac.authorization.k8s.io" || o.Kind() == "APIService" {
		return
	}
	if bad := validation.IsDNS1123Subdomain(name); len(bad) > 0 {
		o.refuse(fmt.Sprintf("metadata.name is %q: %s", name, bad[0]), "change the name")
	}
}

// checkTexts checks fields whose values are texts: YAML reads 1 and true as a number and a truth value.
func (o object) checkTexts() {
	fields := [][]string{{"metadata", "labels"}, {"metadata", "annotations"}}
	if o.Group() == "" {
		switch o.Kind() {
		case "ConfigMap":
			fields = append(fields, []string{"data"})
		case "Secret":
			fields = append(fields, []string{"data"}, []string{"stringData"})
		}
	}
	for _, field := range fields {
		values := o.at(field...)
		for _, key := range slices.Sorted(maps.Keys(values)) {
			path := strings.Join(field, ".") + "." + key
			text, is := values[key].(string)
			if !is && values[key] != nil {
				o.refuse(fmt.Sprintf("%s is %v, not a text", path, values[key]), "put the value in quotes")
				continue
			}
			if _, err := base64.StdEncoding.DecodeString(text); o.Kind() == "Secret" && path == "data."+key && err != nil {
				o.refuse(path+" is not base64", "encode it, or write it in stringData")
			}
		}
	}
}

// checkLabels checks the labels and annotations of an object, and of its pods.
func (o object) checkLabels() {
	for _, path := range [][]string{{"metadata"}, {"spec", "template", "metadata"}} {
		if len(path) > 1 && len(o.containers()) == 0 {
			continue // a kind of somebody else
		}
		of := o.at(path...)
		labels, _ := of["labels"].(map[string]any)
		for _, key := range slices.Sorted(maps.Keys(labels)) {
			if bad := badLabel(key, fmt.Sprint(labels[key])); bad != "" {
				at := strings.Join(path, ".") + ".labels"
				o.refuseAt(at+"."+key, at+": "+bad, "change it")
			}
		}
		annotations, _ := of["annotations"].(map[string]any)
		for _, key := range slices.Sorted(maps.Keys(annotations)) {
			if bad := validation.IsQualifiedName(strings.ToLower(key)); len(bad) > 0 {
				at := strings.Join(path, ".") + ".annotations"
				o.refuseAt(at+"."+key, fmt.Sprintf("%s: %q is not the key of an annotation: %s", at, key, bad[0]), "change it")
			}
		}
	}
}

// checkContainers checks names, variables and resources of containers.
func (o object) checkContainers() {
	seen := map[string]bool{}
	for at, c := range o.containersAt() {
		name := manifest.StringField(c, "name")
		if bad := validation.IsDNS1123Label(name); len(bad) > 0 {
			o.refuseAt(at+".name", fmt.Sprintf("%q is not the name of a container: %s", name, bad[0]), "change it")
		}
		if seen[name] {
			o.refuseAt(at+".name", fmt.Sprintf("two containers have the name %s", name), "change one of them")
		}
		seen[name] = true
		env, _ := c["env"].([]any)
		for i, x := range env {
			e, _ := x.(map[string]any)
			if _, is := e["value"].(string); !is && e["value"] != nil {
				o.refuseAt(
					fmt.Sprintf("%s.env[%d].value", at, i),
					fmt.Sprintf("the variable %v of the container %s is %v, not a text", e["name"], name, e["value"]), "put the value in quotes",
				)
			}
		}
		of, _ := c["resources"].(map[string]any)
		for _, field := range []string{"requests", "limits"} {
			amounts, _ := of[field].(map[string]any)
			for _, key := range slices.Sorted(maps.Keys(amounts)) {
				if _, err := resource.ParseQuantity(fmt.Sprint(amounts[key])); err != nil {
					what := fmt.Sprintf("resources.%s.%s of the container %s is %v, not a quantity", field, key, name, amounts[key])
					o.refuseAt(at+".resources."+field+"."+key, what, "write one such as 100m or 1Gi")
				}
			}
		}
	}
}

// containers are those of a pod, of a workload or of a CronJob.
func (o object) containers() (all []map[string]any) {
	for _, c := range o.containersAt() {
		all = append(all, c)
	}
	return all
}

// containersAt are the containers and their paths.
func (o object) containersAt() iter.Seq2[string, map[string]any] {
	return func(yield func(string, map[string]any) bool) {
		for _, path := range [][]string{{"spec"}, {"spec", "template", "spec"}, {"spec", "jobTemplate", "spec", "template", "spec"}} {
			for _, kind := range []string{"initContainers", "containers"} {
				list, _ := o.at(path...)[kind].([]any)
				for i, x := range list {
					if c, is := x.(map[string]any); is && !yield(fmt.Sprintf("%s.%s[%d]", strings.Join(path, "."), kind, i), c) {
						return
					}
				}
			}
		}
	}
}

// checkPorts checks the ports of a Service.
func (o object) checkPorts() {
	if o.Kind() != "Service" || o.Group() != "" {
		return
	}
	ports, _ := o.at("spec")["ports"].([]any)
	for i, x := range ports {
		p, _ := x.(map[string]any)
		if n, err := resource.ParseQuantity(fmt.Sprint(p["port"])); p["port"] != nil && (err != nil || n.Value() < 1 || n.Value() > mostPort) {
			o.refuseAt(fmt.Sprintf("spec.ports[%d].port", i), fmt.Sprintf("%v is not a port", p["port"]), fmt.Sprintf("use 1 to %d", mostPort))
		}
	}
}
