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
	mostTrust    = 2048  // characters of the trust policy of a role by default
	mostAttached = 10    // managed policies of a role by default
)

// mostInline returns how many characters all inline policies of an object may have.
func mostInline(kind string) (most int, word string) {
	switch kind {
	case "AWS::IAM::Role":
		return 10240, "role"
	case "AWS::IAM::User":
		return 2048, "user"
	case "AWS::IAM::Group":
		return 5120, "group"
	}
	return 0, ""
}

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

// TooLarge lists what in a template exceeds the limits of IAM and CloudFormation.
func TooLarge(template string) (problems []string, err error) {
	objects, err := parse(template)
	return tooLarge(template, objects), err
}

func tooLarge(template string, objects []object) (problems []string) {
	add := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	if n := len(template); n > mostTemplate {
		add("the template has %d bytes, the limit is %d: shorten extraStatements", n, mostTemplate)
	}
	for _, o := range objects {
		if n := size(o.properties["PolicyDocument"]); n > mostPolicy {
			add("policy %s has %d characters, the limit is %d: move statements to a policy of your own, and add it to extraPolicyAttachments", o.name, n, mostPolicy)
		}
		most, word := mostInline(o.kind)
		if n := inlineSize(o.properties["Policies"]); word != "" && n > most {
			add("the inline policies of %s %s have %d characters, the limit is %d: shorten extraStatements", word, o.name, n, most)
		}
		if n := size(o.properties["AssumeRolePolicyDocument"]); n > mostTrust {
			add("the trust policy of role %s has %d characters, the limit is %d: shorten trustStatements", o.name, n, mostTrust)
		}
	}
	return problems
}

// inlineSize counts the characters of the documents of inline policies.
func inlineSize(policies any) (n int) {
	list, _ := policies.([]any)
	for _, p := range list {
		if policy, ok := p.(map[string]any); ok {
			n += size(policy["PolicyDocument"])
		}
	}
	return n
}

// check compares a template with the limits.
func (s *Stack) check(w Wanted, objects []object) error {
	e := &ConflictError{Problems: tooLarge(w.Template, objects)}
	attached := attachments(objects)
	for _, o := range objects {
		if n := attached[o.logical]; n > mostAttached {
			s.o.Note(
				fmt.Sprintf(
					"warning: %d managed policies are to be attached to role %s; AWS allows %d unless the quota L-0DA4ABF3 of the account was raised",
					n,
					o.name,
					mostAttached,
				),
			)
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
