package clusterapi

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	infrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/api/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// Manifest returns the objects that a user would write for a cluster, from all of its
// objects in a management cluster. It omits objects that controllers make, the Secrets with
// the keys of the cluster, and fields that controllers fill in.
func Manifest(all []unstructured.Unstructured) ([]unstructured.Unstructured, error) {
	i := slices.IndexFunc(all, func(o unstructured.Unstructured) bool { return o.GetKind() == "Cluster" })
	if i < 0 {
		return nil, fmt.Errorf("there is no Cluster among the objects")
	}
	name, templates := all[i].GetName(), referenced(all)
	var out []unstructured.Unstructured
	for _, o := range all {
		if !written(&o, templates) {
			continue
		}
		x := unstructured.Unstructured{Object: map[string]any{"apiVersion": o.GetAPIVersion(), "kind": o.GetKind()}}
		x.SetName(o.GetName())
		if o.GetNamespace() != "default" {
			x.SetNamespace(o.GetNamespace())
		}
		x.SetLabels(without(o.GetLabels(), func(key string) bool { return key == clusterv1.ClusterNameLabel }))
		x.SetAnnotations(without(o.GetAnnotations(), controllersAnnotation))
		for _, part := range []string{"spec", "data", "binaryData", "type"} {
			if v, ok := o.Object[part]; ok {
				x.Object[part] = v
			}
		}
		clean(&x, name)
		out = append(out, x)
	}
	slices.SortStableFunc(out, func(a, b unstructured.Unstructured) int { return rank(&a) - rank(&b) })
	return out, nil
}

// referenced returns "Kind/name" of all templates that a control plane or a deployment uses:
// others are left over from upgrades.
func referenced(all []unstructured.Unstructured) map[string]bool {
	found := map[string]bool{}
	for _, o := range all {
		for _, path := range [][]string{
			{"spec", "machineTemplate", "spec", "infrastructureRef"},
			{"spec", "template", "spec", "infrastructureRef"},
			{"spec", "template", "spec", "bootstrap", "configRef"},
			{"spec", "infrastructureRef"},
			{"spec", "bootstrap", "configRef"},
		} {
			ref, ok, _ := unstructured.NestedMap(o.Object, path...)
			if ok && owned(&o) != "MachineSet" {
				found[fmt.Sprintf("%v/%v", ref["kind"], ref["name"])] = true
			}
		}
	}
	return found
}

// owned is the kind of the controller that owns an object; "" if there is none.
func owned(o *unstructured.Unstructured) string {
	for _, ref := range o.GetOwnerReferences() {
		if ref.Controller != nil && *ref.Controller {
			return ref.Kind
		}
	}
	return ""
}

// written reports whether a user wrote an object.
func written(o *unstructured.Unstructured, templates map[string]bool) bool {
	switch o.GetKind() {
	case "MachineSet", "ClusterResourceSetBinding", "MachinePoolMachine":
		return false
	case "Secret":
		kind, _, _ := unstructured.NestedString(o.Object, "type")
		return kind != string(clusterv1.ClusterSecretType)
	case "Machine":
		return owned(o) == ""
	case "AWSMachineTemplate", "KubeadmConfigTemplate", "EKSConfigTemplate", "NodeadmConfigTemplate":
		return templates[o.GetKind()+"/"+o.GetName()]
	case "AWSMachine", "KubeadmConfig", "EKSConfig", "NodeadmConfig":
		return templates[o.GetKind()+"/"+o.GetName()] && !ofMachine(o)
	}
	return true
}

// ofMachine reports whether an object belongs to a machine of a control plane or of a
// deployment.
func ofMachine(o *unstructured.Unstructured) bool {
	_, cloned := o.GetAnnotations()[clusterv1.TemplateClonedFromNameAnnotation]
	_, plane := o.GetLabels()[clusterv1.MachineControlPlaneNameLabel]
	return cloned || plane
}

// without returns labels or annotations without some of them; nil if none is left.
func without(all map[string]string, drop func(key string) bool) map[string]string {
	all = maps.Clone(all)
	maps.DeleteFunc(all, func(key, _ string) bool { return drop(key) })
	if len(all) == 0 {
		return nil
	}
	return all
}

// controllersAnnotation reports whether a controller, kubectl or a handover sets an
// annotation.
func controllersAnnotation(key string) bool {
	for _, prefix := range []string{
		"kubectl.kubernetes.io/", "clusterawsadm/handover", "machinedeployment.clusters.x-k8s.io/", "sigs.k8s.io/cluster-api-provider",
		"cluster.x-k8s.io/cloned-from", "machine.cluster.x-k8s.io/certificates-expiry", "clusterctl.cluster.x-k8s.io/",
		"controlplane.cluster.x-k8s.io/remediation", "cluster.x-k8s.io/paused",
	} {
		if strings.HasPrefix(key, prefix) {
			return true
		}
	}
	return false
}

// clean removes what controllers write into the specification of an object.
func clean(o *unstructured.Unstructured, cluster string) {
	drop := func(paths ...string) {
		for _, p := range paths {
			unstructured.RemoveNestedField(o.Object, strings.Split(p, ".")...)
		}
	}
	switch o.GetKind() {
	case "Cluster":
		drop("spec.paused", "spec.controlPlaneEndpoint", "spec.topology")
	case "AWSCluster", "AWSManagedControlPlane", "AWSManagedCluster":
		drop("spec.controlPlaneEndpoint")
		cleanNetwork(o, cluster)
	case "MachinePool":
		drop("spec.providerIDList")
		dropBootData(o, "spec", "template", "spec", "bootstrap")
	case "AWSMachinePool", "AWSManagedMachinePool":
		drop("spec.providerID", "spec.providerIDList", "spec.awsLaunchTemplate.versionNumber")
	case "Machine":
		drop("spec.providerID")
		dropBootData(o, "spec", "bootstrap")
	case "AWSMachine":
		drop("spec.providerID", "spec.instanceID", "spec.cloudInit.secretPrefix", "spec.cloudInit.secretCount")
	case "KubeadmConfig":
		drop("spec.clusterConfiguration.controlPlaneEndpoint", "spec.joinConfiguration.discovery.bootstrapToken")
		for _, path := range []string{"spec.joinConfiguration.discovery", "spec.joinConfiguration", "spec.clusterConfiguration"} {
			if m, found, _ := unstructured.NestedMap(o.Object, strings.Split(path, ".")...); found && len(m) == 0 {
				drop(path) // the schema forbids empty ones
			}
		}
	}
}

// dropBootData removes the name of the Secret with boot data that a controller has made from
// a configuration.
func dropBootData(o *unstructured.Unstructured, path ...string) {
	if _, made, _ := unstructured.NestedMap(o.Object, append(path, "configRef")...); made {
		unstructured.RemoveNestedField(o.Object, append(path, "dataSecretName")...)
	}
}

// cleanNetwork removes IDs from the specification of the network. The VPC of a user keeps
// its ID. Subnets that CAPA has laid out itself are removed: they are found by their tags.
func cleanNetwork(o *unstructured.Unstructured, cluster string) {
	tags, _, _ := unstructured.NestedStringMap(o.Object, "spec", "network", "vpc", "tags")
	own := tags[infrav1.ClusterTagKey(cluster)] == string(infrav1.ResourceLifecycleOwned)
	for _, field := range []string{"tags", "internetGatewayId", "egressOnlyInternetGatewayId"} {
		unstructured.RemoveNestedField(o.Object, "spec", "network", "vpc", field)
	}
	if own {
		unstructured.RemoveNestedField(o.Object, "spec", "network", "vpc", "id")
	}
	subnets, _, _ := unstructured.NestedSlice(o.Object, "spec", "network", "subnets")
	laidOut := own
	for _, each := range subnets {
		s, _ := each.(map[string]any)
		id, _ := s["id"].(string)
		laidOut = laidOut && strings.HasPrefix(id, cluster+"-subnet-")
		for _, field := range []string{"resourceID", "routeTableId", "natGatewayId", "zoneType", "parentZoneName"} {
			delete(s, field)
		}
		if tags, ok := s["tags"].(map[string]any); ok && own {
			delete(tags, "Name") // CAPA names its subnets by their IDs
			if len(tags) == 0 {
				delete(s, "tags")
			}
		}
	}
	if laidOut {
		unstructured.RemoveNestedField(o.Object, "spec", "network", "subnets")
	} else if len(subnets) > 0 {
		_ = unstructured.SetNestedSlice(o.Object, subnets, "spec", "network", "subnets") // fails only if network is no object
	}
}
