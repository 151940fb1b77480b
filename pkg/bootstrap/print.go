package bootstrap

import (
	"bytes"
	"encoding/json"

	bootstrapv1 "sigs.k8s.io/cluster-api-provider-aws/v2/cmd/clusterawsadm/api/bootstrap/v1beta1"
	iamv1 "sigs.k8s.io/cluster-api-provider-aws/v2/iam/api/v1beta1"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

// completeMark is the annotation of files that YAML has written: their fields have their
// defaults already. Without it, loading such a file could change its meaning: spec.eks
// would enable spec.nodes.ec2ContainerRegistryReadOnly, and names that v1alpha1 leaves
// empty would get defaults. It is an annotation because tools that process YAML remove
// comments. Upstream's clusterawsadm ignores it.
const completeMark = bootstrapv1.GroupName + "/defaulted"

// complete reports whether an object has the annotation.
func complete(object map[string]any) bool {
	return at(object, "metadata", "annotations")[completeMark] == "true"
}

// isOnlyMark reports whether the metadata of an object contains only the annotation.
func isOnlyMark(object map[string]any) bool {
	return complete(object) && len(at(object, "metadata")) == 1 && len(at(object, "metadata", "annotations")) == 1
}

// asWritten restores the values of an annotated object that defaults have overwritten.
func asWritten(object map[string]any, spec *bootstrapv1.AWSIAMConfigurationSpec) {
	if v, ok := at(object, "spec", "nodes")["ec2ContainerRegistryReadOnly"].(bool); ok {
		spec.Nodes.EC2ContainerRegistryReadOnly = v
	}
	if v, ok := at(object, "spec", "bootstrapUser")["groupName"].(string); ok {
		spec.BootstrapUser.GroupName = v
	}
	if v, ok := at(object, "spec", "s3Buckets")["namePrefix"].(string); ok {
		spec.S3Buckets.NamePrefix = v
	}
}

// YAML returns the configuration as a file with the same meaning: Load returns the same
// configuration and template. The file has version v1beta1, whatever the version of the
// original.
func (c *Config) YAML() ([]byte, error) {
	object, err := c.object()
	if err != nil {
		return nil, err
	}
	out, err := yaml.Marshal(object)
	if err != nil {
		return nil, err
	}
	if same, err := c.same(out); same || err != nil {
		return out, err
	}
	object["metadata"] = map[string]any{"annotations": map[string]any{completeMark: "true"}}
	if c.Spec.BootstrapUser.GroupName == "" {
		at(object, "spec", "bootstrapUser")["groupName"] = ""
	}
	return yaml.Marshal(object)
}

// same reports whether a text has the same meaning as the configuration.
func (c *Config) same(text []byte) (bool, error) {
	again, err := Load("", text, Options{})
	if err != nil {
		return false, err
	}
	a, err := c.object()
	if err != nil {
		return false, err
	}
	b, err := again.object()
	if err != nil {
		return false, err
	}
	first, err := json.Marshal(a)
	if err != nil {
		return false, err
	}
	second, err := json.Marshal(b)
	return bytes.Equal(first, second), err
}

// object returns the configuration as a JSON object. Lists whose empty value differs from
// no value are included even if they are empty, which their types would omit.
func (c *Config) object() (map[string]any, error) {
	text, err := json.Marshal(bootstrapv1.AWSIAMConfiguration{Spec: c.Spec})
	if err != nil {
		return nil, err
	}
	object := map[string]any{}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(text, &object); err != nil {
		return nil, err
	}
	object["apiVersion"], object["kind"] = bootstrapv1.SchemeGroupVersion.String(), kind
	for role, statements := range map[string][]iamv1.StatementEntry{
		"controlPlane":          c.Spec.ControlPlane.ExtraStatements,
		"clusterAPIControllers": c.Spec.ClusterAPIControllers.ExtraStatements,
		"nodes":                 c.Spec.Nodes.ExtraStatements,
		"bootstrapUser":         c.Spec.BootstrapUser.ExtraStatements,
	} {
		if statements != nil && len(statements) == 0 {
			at(object, "spec", role)["extraStatements"] = []any{}
		}
	}
	if p := c.Spec.ClusterAPIControllers.AllowedEC2InstanceProfiles; p != nil && len(p) == 0 {
		at(object, "spec", "clusterAPIControllers")["allowedEC2InstanceProfiles"] = []any{}
	}
	return object, nil
}

// at returns an object inside an object, or nil.
func at(object map[string]any, path ...string) map[string]any {
	for _, name := range path {
		object, _ = object[name].(map[string]any)
	}
	return object
}
