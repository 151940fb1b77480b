package bootstrap

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"github.com/awslabs/goformation/v7/cloudformation/iam"
	"github.com/awslabs/goformation/v7/intrinsics"

	"github.com/clusterawsadm/clusterawsadm/internal/suggest"
)

// Documents are the policies that can be asked for by name.
func Documents() []string {
	return []string{ControllersPolicy, ControllersPolicyEKS, ControlPlanePolicy, NodePolicy, CSIPolicy, EKSConsolePolicy}
}

// A Format is a shape in which policies are printed.
type Format string

// The formats.
const (
	CloudFormation Format = "cloudformation" // the resource, with Type and Properties
	IAMJSON        Format = "iam-json"       // the bare document, as aws iam create-policy takes it
	Terraform      Format = "terraform"      // a file to be called *.tf.json
)

// Formats are all formats, the default first.
func Formats() []string { return []string{string(CloudFormation), string(IAMJSON), string(Terraform)} }

// Policies prints the policy of that name, indented and without a newline at
// the end; for "", all that the configuration brings, by name. To Terraform
// "" is everything that is in the template, since policies alone are of no use
// there.
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
		documents := map[string]any{} // which have no intrinsic functions: those of a configuration do not get here
		for id, p := range policies {
			documents[id] = p.PolicyDocument
		}
		return oneOrAll(documents, name)
	case CloudFormation:
		return oneOrAll(policies, name)
	default:
		return nil, fmt.Errorf("there is no format %q", f)
	}
}

// policies are the managed policies of that name, or for "" all.
func (t *Template) policies(name string) map[string]*iam.ManagedPolicy {
	out := map[string]*iam.ManagedPolicy{}
	for id, r := range t.Resources {
		if p, ok := r.(*iam.ManagedPolicy); ok && (name == "" || name == id) {
			out[id] = p
		}
	}
	return out
}

// missing says why there is no such policy.
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

// oneOrAll prints the value of that name, or for "" all by their names.
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

// decoded has the intrinsic functions of a JSON text decoded, and leaves the
// order of its fields alone.
func decoded(text []byte) []byte {
	return regexp.MustCompile(`"[A-Za-z0-9+/]{8,}={0,2}"`).ReplaceAllFunc(text, func(s []byte) []byte {
		if out, err := intrinsics.ProcessJSON(s, nil); err == nil {
			return out
		}
		return s
	})
}

// intrinsic is the name and the argument of the intrinsic function that a
// string encodes; "" for any other string.
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
	for name, argument := range function { // of which there is one
		return name, argument
	}
	return "", nil
}
