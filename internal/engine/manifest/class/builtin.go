package class

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// namespace returns the namespace of the Cluster.
func (e *expander) namespace() string {
	if e.cluster.Namespace == "" {
		return corev1.NamespaceDefault
	}
	return e.cluster.Namespace
}

// clusterBuiltin returns the variables under builtin.cluster.
func (e *expander) clusterBuiltin() map[string]any {
	class := e.cluster.GetClassKey()
	if class.Namespace == "" {
		class.Namespace = e.namespace()
	}
	topology := map[string]any{
		"classRef": map[string]any{"name": class.Name, "namespace": class.Namespace},
		"class":    class.Name, "classNamespace": class.Namespace,
	}
	put(topology, "version", e.topology.Version)
	cluster := map[string]any{
		"name": e.cluster.Name, "namespace": e.namespace(), "topology": topology,
		"metadata": metadataBuiltin(merged(e.owned(), e.cluster.Labels), e.cluster.Annotations),
	}
	network := map[string]any{}
	put(network, "serviceDomain", e.cluster.Spec.ClusterNetwork.ServiceDomain)
	putList(network, "services", e.cluster.Spec.ClusterNetwork.Services.CIDRBlocks)
	putList(network, "pods", e.cluster.Spec.ClusterNetwork.Pods.CIDRBlocks)
	if len(network) > 0 {
		cluster["network"] = network
	}
	return map[string]any{"cluster": cluster}
}

// planeBuiltin returns the variables under builtin.controlPlane.
func (e *expander) planeBuiltin() map[string]any {
	name, _ := valueAt(e.plane.Value, "metadata", "name").(string)
	plane := map[string]any{
		"name": name, "version": e.topology.Version,
		"metadata": metadataBuiltin(stringMap(valueAt(e.plane.Value, "metadata", "labels")), stringMap(valueAt(e.plane.Value, "metadata", "annotations"))),
	}
	putNumber(plane, "replicas", e.topology.ControlPlane.Replicas)
	if e.planeMachine != nil {
		plane["machineTemplate"] = map[string]any{"infrastructureRef": map[string]any{"name": valueAt(e.planeMachine.Value, "metadata", "name")}}
	}
	return map[string]any{"controlPlane": plane}
}

// deploymentBuiltin returns the variables under builtin.machineDeployment.
func (e *expander) deploymentBuiltin(d *deployment) map[string]any {
	m := map[string]any{
		"version": e.topology.Version, "class": d.topology.Class, "name": d.typed.Name, "topologyName": d.topology.Name,
		"metadata":          metadataBuiltin(d.typed.Labels, d.typed.Annotations),
		"bootstrap":         map[string]any{"configRef": map[string]any{"name": valueAt(d.bootstrap.Value, "metadata", "name")}},
		"infrastructureRef": map[string]any{"name": valueAt(d.infrastructure.Value, "metadata", "name")},
	}
	putNumber(m, "replicas", d.topology.Replicas)
	return map[string]any{"machineDeployment": m}
}

// metadataBuiltin omits empty values, and annotations that programs write for themselves.
func metadataBuiltin(labels, annotations map[string]string) map[string]any {
	m := map[string]any{}
	kept := maps.Clone(annotations)
	delete(kept, corev1.LastAppliedConfigAnnotation)
	delete(kept, conversionData)
	if len(labels) > 0 {
		m["labels"] = anyMap(labels)
	}
	if len(kept) > 0 {
		m["annotations"] = anyMap(kept)
	}
	return m
}

// conversionData is the annotation in which conversions store the fields that the older
// API version does not have.
const conversionData = "cluster.x-k8s.io/conversion-data"

func put(m map[string]any, name, text string) {
	if text != "" {
		m[name] = text
	}
}

func putList(m map[string]any, name string, texts []string) {
	if len(texts) == 0 {
		return
	}
	list := make([]any, 0, len(texts))
	for _, t := range texts {
		list = append(list, t)
	}
	m[name] = list
}

func putNumber(m map[string]any, name string, n *int32) {
	if n != nil {
		m[name] = int64(*n)
	}
}

func anyMap(m map[string]string) map[string]any {
	out := make(map[string]any, len(m))
	for k, v := range m {
		out[k] = v
	}
	return out
}

func stringMap(v any) map[string]string {
	m, _ := v.(map[string]any)
	out := make(map[string]string, len(m))
	for k, v := range m {
		if text, ok := v.(string); ok {
			out[k] = text
		}
	}
	return out
}

// owned returns the labels of all objects of a topology.
func (e *expander) owned() map[string]string {
	return map[string]string{clusterv1.ClusterNameLabel: e.cluster.Name, clusterv1.ClusterTopologyOwnedLabel: ""}
}
