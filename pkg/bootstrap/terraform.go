package bootstrap

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/awslabs/goformation/v7/cloudformation/iam"
	"github.com/awslabs/goformation/v7/cloudformation/tags"

	"github.com/clusterawsadm/clusterawsadm/internal/regex"
)

// terraform returns the template in Terraform's JSON syntax, for the provider
// hashicorp/aws. The names of resources are their logical IDs.
func (t *Template) terraform() ([]byte, error) {
	f := &terraformFile{template: t, resource: map[string]map[string]any{}, data: map[string]map[string]any{}}
	for _, id := range slices.Sorted(maps.Keys(t.Resources)) {
		f.add(id, t.Resources[id])
	}
	if len(f.errs) > 0 {
		return nil, errors.Join(f.errs...)
	}
	file := map[string]any{"resource": f.resource}
	if len(f.data) > 0 {
		file["data"] = f.data
	}
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	err := encoder.Encode(file)
	return bytes.TrimSuffix(out.Bytes(), []byte("\n")), err
}

type terraformFile struct {
	template       *Template
	resource, data map[string]map[string]any // by type and name
	errs           []error
}

func (f *terraformFile) put(kind, name string, attributes map[string]any) {
	for key, v := range attributes {
		if v == nil || v == "" {
			delete(attributes, key)
		}
	}
	if f.resource[kind] == nil {
		f.resource[kind] = map[string]any{}
	}
	f.resource[kind][name] = attributes
}

func (f *terraformFile) add(id string, r Resource) {
	switch r := r.(type) {
	case *iam.ManagedPolicy:
		f.put("aws_iam_policy", id, map[string]any{
			"name": f.optional(r.ManagedPolicyName), "description": f.optional(r.Description), "policy": f.document(r.PolicyDocument),
		})
		for _, role := range r.Roles {
			f.attach("role", f.referred(role), f.text(role), id, "${aws_iam_policy."+id+".arn}")
		}
		for _, group := range r.Groups {
			f.attach("group", f.referred(group), f.text(group), id, "${aws_iam_policy."+id+".arn}")
		}
	case *iam.Role:
		f.put("aws_iam_role", id, map[string]any{
			"name": f.optional(r.RoleName), "path": f.optional(r.Path), "permissions_boundary": f.optional(r.PermissionsBoundary),
			"assume_role_policy": f.document(r.AssumeRolePolicyDocument), "tags": f.tags(r.Tags),
		})
		for _, p := range r.Policies {
			f.put("aws_iam_role_policy", id, map[string]any{
				"name": f.text(p.PolicyName), "role": "${aws_iam_role." + id + ".name}", "policy": f.document(p.PolicyDocument),
			})
		}
		f.attachAll("role", id, r.ManagedPolicyArns)
	case *iam.User:
		f.user(id, r)
	case *iam.Group:
		if r.GroupName == nil {
			f.errs = append(f.errs, errors.New("a group in Terraform needs a name: set spec.bootstrapUser.groupName"))
		}
		f.put("aws_iam_group", id, map[string]any{"name": f.optional(r.GroupName)})
	case *iam.InstanceProfile:
		f.put("aws_iam_instance_profile", id, map[string]any{"name": f.optional(r.InstanceProfileName), "role": f.text(r.Roles[0])})
	}
}

func (f *terraformFile) user(id string, u *iam.User) {
	f.put("aws_iam_user", id, map[string]any{"name": f.optional(u.UserName), "tags": f.tags(u.Tags)})
	groups := make([]string, 0, len(u.Groups))
	for _, g := range u.Groups {
		groups = append(groups, f.text(g))
	}
	name := "${aws_iam_user." + id + ".name}"
	f.put("aws_iam_user_group_membership", id, map[string]any{"user": name, "groups": groups})
	for _, p := range u.Policies {
		f.put("aws_iam_user_policy", id, map[string]any{"name": f.text(p.PolicyName), "user": name, "policy": f.document(p.PolicyDocument)})
	}
	f.attachAll("user", id, u.ManagedPolicyArns)
}

// attachAll attaches policies by their ARNs.
func (f *terraformFile) attachAll(kind, id string, arns []string) {
	for i, arn := range arns {
		if slices.Contains(arns[:i], arn) {
			continue
		}
		name := regex.Of(`[^A-Za-z0-9_-]`).ReplaceAllString(arn[strings.LastIndexByte(arn, '/')+1:], "_")
		if function, _ := intrinsic(arn); function != "" {
			name = "policy"
		}
		f.attach(kind, id, "${aws_iam_"+kind+"."+id+".name}", name, f.text(arn))
	}
}

// attach attaches a policy to a role, group or user.
func (f *terraformFile) attach(kind, id, to, policy, arn string) {
	resource := "aws_iam_" + kind + "_policy_attachment"
	name := id + "_" + policy
	for n := 2; f.resource[resource][name] != nil; n++ {
		name = id + "_" + policy + "_" + strconv.Itoa(n)
	}
	f.put(resource, name, map[string]any{kind: to, "policy_arn": arn})
}

func (f *terraformFile) tags(of []tags.Tag) any {
	if len(of) == 0 {
		return nil
	}
	out := map[string]string{}
	for _, t := range of {
		out[f.text(t.Key)] = f.text(t.Value)
	}
	return out
}

func (f *terraformFile) optional(s *string) any {
	if s == nil {
		return nil
	}
	return f.text(*s)
}

// referred returns the logical ID that a string refers to.
func (f *terraformFile) referred(s string) string {
	_, argument := intrinsic(s)
	return fmt.Sprint(argument)
}

// document returns a policy document as a Terraform string.
func (f *terraformFile) document(d any) string {
	var raw bytes.Buffer
	encoder := json.NewEncoder(&raw)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(d); err != nil {
		f.errs = append(f.errs, err)
	}
	return regex.Of(`"[A-Za-z0-9+/]{8,}={0,2}"`).ReplaceAllStringFunc(escape(strings.TrimSpace(raw.String())), func(s string) string {
		name, argument := intrinsic(strings.Trim(s, `"`))
		if name == "" {
			return s
		}
		quoted, err := json.Marshal(f.function(name, argument))
		if err != nil {
			f.errs = append(f.errs, err)
		}
		return string(quoted)
	})
}

// escape escapes ${ and %{ for Terraform: variables of IAM policies use the same syntax.
func escape(s string) string { return strings.NewReplacer("${", "$${", "%{", "%%{").Replace(s) }

// text converts a string of the template to a Terraform string.
func (f *terraformFile) text(s string) string {
	if name, argument := intrinsic(s); name != "" {
		return f.function(name, argument)
	}
	return escape(s)
}
