package loader

import (
	"cmp"
	"maps"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest/crd"
)

// PublishedKind is a kind that a manifest may have.
type PublishedKind struct {
	Name     string
	Group    string   // "" of the kinds of Kubernetes itself
	Versions []string // the newest one first
	// Ignored says why objects of the kind have no effect; "" if they have one.
	Ignored string
}

// APIVersion returns a version with its group, as the field apiVersion has it.
func (k PublishedKind) APIVersion(version string) string {
	if k.Group == "" {
		return version
	}
	return k.Group + "/" + version
}

// PublishedKinds returns all kinds that a manifest may have, by name.
func PublishedKinds() (all []PublishedKind) {
	for name, k := range withClasses(kinds()) {
		versions := slices.SortedFunc(maps.Keys(k.versions), func(a, b string) int { return cmp.Compare(b, a) })
		all = append(all, PublishedKind{Name: name, Group: k.group, Versions: versions})
	}
	slices.SortFunc(all, func(a, b PublishedKind) int { return cmp.Compare(a.Name, b.Name) })
	return all
}

// IgnoredKinds returns kinds of Cluster API whose objects are read and ignored, with the reason.
func IgnoredKinds() map[string]string { return recordKinds() }

// PublishedSchema returns the schema of a version of a kind with the descriptions of its fields.
func PublishedSchema(kind, version string) (*apiextensionsv1.JSONSchemaProps, error) {
	switch kind {
	case manifest.KindHelmChart:
		return chartSchema(), nil
	case manifest.KindConfigMap, manifest.KindSecret, manifest.KindNamespace:
		return builtinSchema(kind), nil
	}
	return crd.Described(kind, version)
}

// builtinSchema is the schema of a kind of Kubernetes itself, with the fields that a manifest sets.
func builtinSchema(kind string) *apiextensionsv1.JSONSchemaProps {
	texts := func(description string) apiextensionsv1.JSONSchemaProps {
		return apiextensionsv1.JSONSchemaProps{
			Type: "object", Description: description,
			AdditionalProperties: &apiextensionsv1.JSONSchemaPropsOrBool{Allows: true, Schema: &apiextensionsv1.JSONSchemaProps{Type: "string"}},
		}
	}
	s := &apiextensionsv1.JSONSchemaProps{Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{
		"apiVersion": {Type: "string"}, "kind": {Type: "string"}, "metadata": {Type: "object"},
	}}
	immutable := apiextensionsv1.JSONSchemaProps{Type: "boolean", Description: "The API server refuses changes of the data."}
	keep := true
	switch kind {
	case manifest.KindConfigMap:
		s.Description = "A ConfigMap that a ClusterResourceSet or a file of a KubeadmConfig refers to."
		s.Properties["data"], s.Properties["binaryData"] = texts("Text by key."), texts("Base64 by key.")
		s.Properties["immutable"] = immutable
	case manifest.KindSecret:
		s.Description = "A Secret that another object refers to, or the keys of a cluster: NAME-ca, NAME-etcd, NAME-proxy, NAME-sa."
		s.Properties["data"], s.Properties["stringData"] = texts("Base64 by key."), texts("Text by key; it takes precedence over data.")
		s.Properties["type"] = apiextensionsv1.JSONSchemaProps{Type: "string", Description: "The type, such as addons.cluster.x-k8s.io/resource-set."}
		s.Properties["immutable"] = immutable
	default:
		s.Description = "A Namespace of the management cluster. It has no effect in AWS."
		s.Properties["spec"] = apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: &keep}
	}
	return s
}

// FieldNote says what this program does with a field.
type FieldNote struct {
	Path    string // [] stands for any item of a list
	Value   string // the note is about this value only; empty means any
	Refused bool   // a manifest with the field is refused
	Ignored bool   // the field has no effect
	Effect  Effect // of a change; it holds for the fields below, too, unless they have their own
	Text    string // may be empty
}

// FieldNotes returns what this program does with the fields of a kind: those that it ignores, refuses, or treats in
// another way than the description of the field says.
func FieldNotes(kind string) (notes []FieldNote) {
	for _, row := range unsupportedFields() {
		if slices.Contains(row.kinds, kind) {
			notes = append(notes, FieldNote{Path: row.path, Value: row.value, Refused: row.refuse, Ignored: !row.refuse, Text: row.remark})
		}
	}
	for _, row := range fieldEffects() {
		if slices.Contains(row.kinds, kind) {
			notes = append(notes, FieldNote{Path: row.path, Effect: row.effect, Text: row.text})
		}
	}
	return notes
}

// FieldAnnotation is an annotation of this program, for a setting that CAPA has no field for.
type FieldAnnotation struct {
	Name   string // with prefix
	Text   string
	Values []string // all that it may have; nil if there are more
}

// FieldAnnotations returns the annotations of this program that an object of a kind may have.
func FieldAnnotations(kind string) (all []FieldAnnotation) {
	for _, name := range manifest.AnnotationsOf(kind) {
		all = append(all, fieldAnnotation(kind, name))
	}
	return all
}

// fieldAnnotation returns an annotation of a kind by its name without prefix.
func fieldAnnotation(kind, name string) FieldAnnotation {
	a, special := annotationTexts()[kind+"/"+name]
	if !special {
		a = annotationTexts()[name]
	}
	a.Name = manifest.OwnAnnotations + name
	return a
}

// annotationTexts says what the annotations of this program mean, by name, or by kind and name if two kinds have it.
func annotationTexts() map[string]FieldAnnotation {
	yesOrNo := []string{"true", "false"}
	return map[string]FieldAnnotation{
		manifest.AnnotationAddonPodIdentities: {
			Text: `A list, as YAML, of the service accounts of add-ons with their IAM roles: addon, serviceAccount, and roleARN or policyARNs. "[]" removes them.`,
		},
		manifest.AnnotationAutoMode: {
			Text: `EKS Auto Mode: node pools of EKS, such as "general-purpose, system"; "none", on without these; "false", off.`,
		},
		manifest.AnnotationAutoModeRole: {Text: "The name or ARN of the role of the nodes in the node pools of EKS Auto Mode; AmazonEKSAutoNodeRole by default."},
		manifest.AnnotationControlPlaneTier: {
			Text:   "The tier of a provisioned control plane. The cost of a plan does not contain it.",
			Values: []string{"standard", "tier-xl", "tier-2xl", "tier-4xl", "tier-8xl"},
		},
		manifest.AnnotationKarpenter: {
			Text: `The namespace and the service account of Karpenter's controller, such as "kube-system/karpenter": the cluster gets Karpenter's roles, ` +
				"queue, rule of EventBridge, access entry and tags of subnets.",
		},
		manifest.KindAWSCluster + "/" + manifest.AnnotationDeletionProtection: {
			Text:   `"true" refuses every deletion of the cluster, also by name and by another manifest: it is stored in the account. "false" takes that back.`,
			Values: yesOrNo,
		},
		manifest.KindManagedPlane + "/" + manifest.AnnotationDeletionProtection: {Text: "EKS does not delete the cluster.", Values: yesOrNo},
		manifest.AnnotationNATAddresses: {
			Text: "The addresses of the NAT gateways, which are known after they are created, are added to endpointAccess.publicCIDRs: " +
				"nodes call the API server from them if it has no private endpoint.",
			Values: yesOrNo,
		},
		manifest.AnnotationPodIdentities: {
			Text: "A list, as YAML, of service accounts with their IAM roles: namespace, serviceAccount, and roleARN or policyARNs.",
		},
		manifest.AnnotationRemoteNodeNetworks: {Text: `Blocks of addresses of hybrid nodes, such as "10.80.0.0/16, 10.81.0.0/16"; "" removes them.`},
		manifest.AnnotationRemotePodNetworks:  {Text: `Blocks of addresses of the pods on hybrid nodes, such as "10.82.0.0/16"; "" removes them.`},
		manifest.AnnotationZonalShift:         {Text: "Application Recovery Controller may move traffic away from a zone.", Values: yesOrNo},
		manifest.AnnotationInstanceTypes:      {Text: `Several types instead of spec.instanceType, such as "m6i.large, m5.large": EKS chooses between them.`},
		manifest.AnnotationRepairMaxParallel:  {Text: `How many nodes are repaired at a time: "2" or "20%". It needs spec.nodeRepairConfig.enabled: true.`},
		manifest.AnnotationRepairMaxUnhealthy: {Text: `With more unhealthy nodes, none is repaired: "2" or "20%". It needs spec.nodeRepairConfig.enabled: true.`},
		manifest.AnnotationUpdateStrategy: {
			Text:   "The order of an update: minimal terminates old nodes before it launches new ones.",
			Values: []string{"default", "minimal"},
		},
		manifest.KindManagedPlane + "/" + manifest.AnnotationForceUpdate: {
			Text:   "An upgrade goes on although EKS has an upgrade insight with an error.",
			Values: yesOrNo,
		},
		manifest.KindManagedPool + "/" + manifest.AnnotationForceUpdate: {Text: "An update goes on although pods cannot be evicted.", Values: yesOrNo},
		manifest.AnnotationFlowLogs: {
			Text: "Where the flow log of the VPC is written to: the name of a group of CloudWatch Logs, or the ARN of a bucket of S3. " +
				`"none" deletes the flow log of an earlier run.`,
		},
		manifest.AnnotationFlowLogsRole:    {Text: "The ARN of the role with which AWS writes to a group of CloudWatch Logs."},
		manifest.AnnotationFlowLogsTraffic: {Text: "Which traffic the flow log records; ALL by default.", Values: []string{"ALL", "ACCEPT", "REJECT"}},
	}
}
