package stack

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"unicode"

	"sigs.k8s.io/yaml"
)

// Limits: see "CloudFormation quotas" and "IAM and AWS STS quotas" in the user guides.
const (
	mostTemplate = 51200 // bytes of a template in a request
	mostPolicy   = 6144  // characters of a managed policy, without white space
	mostInline   = 10240 // characters of all inline policies of a role
	mostAttached = 10    // managed policies of a role by default
)

// object is an IAM object in a template.
type object struct {
	logical, kind string
	name          string // "" if AWS chooses it or computes it from a function
	properties    map[string]any
}

// kinds returns the types of resources in the template, their names in messages, and the
// properties with their names.
func kinds() map[string]struct{ word, name string } {
	return map[string]struct{ word, name string }{
		"AWS::IAM::Role":            {"role", "RoleName"},
		"AWS::IAM::ManagedPolicy":   {"policy", "ManagedPolicyName"},
		"AWS::IAM::InstanceProfile": {"instance profile", "InstanceProfileName"},
		"AWS::IAM::User":            {"user", "UserName"},
		"AWS::IAM::Group":           {"group", "GroupName"},
	}
}

// parse returns the resources of a template, by logical ID.
func parse(template string) (list []object, err error) {
	var t struct {
		Resources map[string]struct {
			Type       string
			Properties map[string]any
		}
	}
	if err := yaml.Unmarshal([]byte(template), &t); err != nil {
		return nil, fmt.Errorf("template: %w", err)
	}
	for _, id := range slices.Sorted(maps.Keys(t.Resources)) {
		r := t.Resources[id]
		o := object{logical: id, kind: r.Type, properties: r.Properties}
		o.name, _ = r.Properties[kinds()[r.Type].name].(string)
		list = append(list, o)
	}
	return list, nil
}

// check compares a template with the limits.
func (s *Stack) check(w Wanted, objects []object) error {
	e := &ConflictError{}
	if n := len(w.Template); n > mostTemplate {
		e.Problems = append(e.Problems, fmt.Sprintf("the template has %d bytes, the limit is %d: shorten extraStatements", n, mostTemplate))
	}
	for _, o := range objects {
		if n := size(o.properties["PolicyDocument"]); n > mostPolicy {
			e.Problems = append(e.Problems, fmt.Sprintf("policy %s has %d characters, the limit is %d: move statements to a policy of your own, and add it to extraPolicyAttachments", o.name, n, mostPolicy))
		}
		if n := size(o.properties["Policies"]); o.kind == "AWS::IAM::Role" && n > mostInline {
			e.Problems = append(e.Problems, fmt.Sprintf("the inline policies of role %s have %d characters, the limit is %d: shorten extraStatements", o.name, n, mostInline))
		}
	}
	attached := attachments(objects)
	for _, o := range objects {
		if n := attached[o.logical]; n > mostAttached {
			s.o.Note(fmt.Sprintf("warning: %d managed policies are to be attached to role %s; AWS allows %d unless the quota L-0DA4ABF3 of the account was raised", n, o.name, mostAttached))
		}
	}
	if len(e.Problems) > 0 {
		return e
	}
	return nil
}

// attachments counts the managed policies of roles, by logical ID.
func attachments(objects []object) map[string]int {
	count := map[string]int{}
	for _, o := range objects {
		list, _ := o.properties["ManagedPolicyArns"].([]any)
		count[o.logical] += len(list)
		roles, _ := o.properties["Roles"].([]any)
		for _, r := range roles {
			if ref, ok := r.(map[string]any); ok && o.kind == "AWS::IAM::ManagedPolicy" {
				id, _ := ref["Ref"].(string)
				count[id]++
			}
		}
	}
	return count
}

// size counts the characters of a document as IAM does.
func size(document any) (n int) {
	if document == nil {
		return 0
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if e.Encode(document) != nil {
		return 0
	}
	for _, r := range b.String() {
		if !unicode.IsSpace(r) {
			n++
		}
	}
	return n
}
