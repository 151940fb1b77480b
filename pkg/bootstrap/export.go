package bootstrap

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/awslabs/goformation/v7/cloudformation/iam"
	"github.com/awslabs/goformation/v7/intrinsics"

	"github.com/clusterawsadm/clusterawsadm/internal/regex"
	"github.com/clusterawsadm/clusterawsadm/internal/suggest"
)

// Documents returns the names of the policies.
func Documents() []string {
	return []string{ControllersPolicy, ControllersPolicyEKS, ControlPlanePolicy, NodePolicy, CSIPolicy, EKSConsolePolicy}
}

// Format is an output format of policies.
type Format string

// The formats.
const (
	CloudFormation Format = "cloudformation" // the resource, with Type and Properties
	IAMJSON        Format = "iam-json"       // the policy document, as for aws iam create-policy
	Terraform      Format = "terraform"      // the content of a *.tf.json file
)

// Formats returns all formats, the default first.
func Formats() []string { return []string{string(CloudFormation), string(IAMJSON), string(Terraform)} }

// Policies returns the policy with that name, indented and without a newline at the end.
// For "", it returns all policies in the configuration by name; with the format
// Terraform, all resources in the template, because there the policies alone are not
// useful.
func (c *Config) Policies(name string, f Format) ([]byte, error) {
	t := c.Template()
	if f == Terraform && name == "" {
		return t.terraform()
	}
	policies := t.policies(name)
	if name != "" && policies[name] == nil {
		return nil, c.missing(name)
	}
	switch f {
	case Terraform:
		alone := *policies[name]
		alone.Roles, alone.Groups = nil, nil
		return (&Template{Resources: map[string]Resource{name: &alone}}).terraform()
	case IAMJSON:
		documents := map[string]any{} // these contain no intrinsic functions, which only come from a configuration
		for id, p := range policies {
			documents[id] = p.PolicyDocument
		}
		return oneOrAll(documents, name)
	case CloudFormation:
		return oneOrAll(policies, name)
	default:
		return nil, fmt.Errorf("unknown format %q", f)
	}
}

// policies returns the managed policy with that name, or all policies for "".
func (t *Template) policies(name string) map[string]*iam.ManagedPolicy {
	out := map[string]*iam.ManagedPolicy{}
	for id, r := range t.Resources {
		if p, ok := r.(*iam.ManagedPolicy); ok && (name == "" || name == id) {
			out[id] = p
		}
	}
	return out
}

// missing returns the reason why a policy does not exist.
func (c *Config) missing(name string) error {
	path, setting := "", ""
	switch name {
	case ControllersPolicyEKS:
		path, setting = "spec.eks.disable", "spec.eks.disable is set"
	case ControlPlanePolicy:
		path, setting = "spec.controlPlane.disableCloudProviderPolicy", "spec.controlPlane.disableCloudProviderPolicy is set"
	case NodePolicy:
		path, setting = "spec.nodes.disableCloudProviderPolicy", "spec.nodes.disableCloudProviderPolicy is set"
	case CSIPolicy:
		path, setting = "spec.controlPlane", "set spec.controlPlane.enableCSIPolicy: true to get it"
	case EKSConsolePolicy:
		path, setting = "spec.eks", "set spec.eks.enableUserEKSConsolePolicy: true to get it"
		if c.Spec.EKS.Disable {
			path, setting = "spec.eks.disable", "spec.eks.disable is set"
		}
	default:
		text := fmt.Sprintf("there is no policy document %q: use one of %s", name, strings.Join(Documents(), ", "))
		if near := suggest.Nearest(name, Documents()); near != "" {
			text = fmt.Sprintf("there is no policy document %q: did you mean %s?", name, near)
		}
		return fmt.Errorf("%s", text)
	}
	if at := c.At(path); at.File != "" {
		return fmt.Errorf("%s: this configuration has no %s: %s", at, name, setting)
	}
	return fmt.Errorf("this configuration has no %s: %s", name, setting)
}

// oneOrAll encodes the value with that name, or all values by name for "".
func oneOrAll[T any](values map[string]T, name string) ([]byte, error) {
	var v any = values
	if name != "" {
		v = values[name]
	}
	raw, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	err = json.Indent(&out, decoded(raw), "", "  ")
	return out.Bytes(), err
}

// decoded decodes the intrinsic functions in a JSON text, and keeps the order of fields.
func decoded(text []byte) []byte {
	return regex.Of(`"[A-Za-z0-9+/]{8,}={0,2}"`).ReplaceAllFunc(text, func(s []byte) []byte {
		if out, err := intrinsics.ProcessJSON(s, nil); err == nil {
			return out
		}
		return s
	})
}

// intrinsic returns the name and the argument of the intrinsic function that a string
// encodes, or "" for any other string.
func intrinsic(s string) (name string, argument any) {
	quoted, err := json.Marshal(s)
	if err != nil || bytes.Equal(decoded(quoted), quoted) {
		return "", nil
	}
	raw, err := base64.StdEncoding.DecodeString(s)
	var function map[string]any
	if err != nil || json.Unmarshal(raw, &function) != nil {
		return "", nil
	}
	for name, argument := range function { // there is only one
		return name, argument
	}
	return "", nil
}
