package bootstrap

import (
	"bytes"
	"encoding/json"

	bootstrapv1 "sigs.k8s.io/cluster-api-provider-aws/v2/cmd/clusterawsadm/api/bootstrap/v1beta1"
	iamv1 "sigs.k8s.io/cluster-api-provider-aws/v2/iam/api/v1beta1"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

// completeMark is an annotation. It says that the file is what YAML printed:
// its fields have got their defaults already, and mean what they say. Without
// it, the presence of spec.eks would turn on
// spec.nodes.ec2ContainerRegistryReadOnly, whatever that says, and the names
// that v1alpha1 leaves empty would be filled in: what was printed would not
// mean what it was printed from. It is an annotation because a comment would
// not survive the tools that people send YAML through. Cluster API Provider
// AWS's own clusterawsadm ignores it.
const completeMark = bootstrapv1.GroupName + "/defaulted"

// complete tells whether an object has the mark.
func complete(object map[string]any) bool {
	return at(object, "metadata", "annotations")[completeMark] == "true"
}

// isOnlyMark tells whether there is nothing but the mark in an object's
// metadata.
func isOnlyMark(object map[string]any) bool {
	return complete(object) && len(at(object, "metadata")) == 1 && len(at(object, "metadata", "annotations")) == 1
}

// asWritten undoes the defaults that go over what an object with the mark says.
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

// YAML prints the configuration as a file that means the same: loading it gives
// the same configuration, and the same template. It is v1beta1, whatever the
// version it was read from.
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

// same tells whether a text means this configuration.
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

// object is the configuration as JSON knows it. Lists that mean something else
// when they are empty than when they are absent are there when they are empty,
// which their types would have them not be.
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

// at is an object inside an object, nil where there is none.
func at(object map[string]any, path ...string) map[string]any {
	for _, name := range path {
		object, _ = object[name].(map[string]any)
	}
	return object
}
