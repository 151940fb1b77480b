package bootstrap

import (
	"fmt"
	"strings"

	"github.com/awslabs/goformation/v7/cloudformation/iam"

	"github.com/clusterawsadm/clusterawsadm/internal/regex"
)

// function converts an intrinsic function of CloudFormation to Terraform.
func (f *terraformFile) function(name string, argument any) string {
	list, _ := argument.([]any)
	text, isText := argument.(string)
	switch {
	case name == "Ref" && isText:
		return f.ref(text)
	case name == "Fn::GetAtt" && isText:
		return f.attribute(text)
	case name == "Fn::GetAtt" && len(list) == 2:
		return f.attribute(fmt.Sprintf("%v.%v", list[0], list[1]))
	case name == "Fn::Sub" && isText:
		return f.sub(text)
	case name == "Fn::Join" && len(list) == 2:
		if items, ok := list[1].([]any); ok {
			return f.join(fmt.Sprint(list[0]), items)
		}
	}
	return f.refuse(name)
}

// refuse records that something cannot be expressed in Terraform.
func (f *terraformFile) refuse(what string) string {
	f.errs = append(f.errs, fmt.Errorf("the configuration contains an encoded %s, which Terraform does not support: write its value instead", what))
	return ""
}

func (f *terraformFile) ref(id string) string {
	source := func(kind, attribute string) string {
		if f.data[kind] == nil {
			f.data[kind] = map[string]any{"current": map[string]any{}}
		}
		return "${data." + kind + ".current." + attribute + "}"
	}
	switch id {
	case "AWS::Partition":
		return source("aws_partition", "partition")
	case "AWS::URLSuffix":
		return source("aws_partition", "dns_suffix")
	case "AWS::AccountId":
		return source("aws_caller_identity", "account_id")
	case "AWS::Region":
		return source("aws_region", "name")
	}
	if _, isPolicy := f.template.Resources[id].(*iam.ManagedPolicy); isPolicy {
		return f.attribute(id + ".Arn")
	}
	return f.attribute(id + ".name")
}

// attribute returns an attribute of another resource: "AWSIAMRoleNodes.Arn".
func (f *terraformFile) attribute(path string) string {
	id, attribute, _ := strings.Cut(path, ".")
	kind := ""
	switch f.template.Resources[id].(type) {
	case *iam.ManagedPolicy:
		kind = "aws_iam_policy"
	case *iam.Role:
		kind = "aws_iam_role"
	case *iam.User:
		kind = "aws_iam_user"
	case *iam.Group:
		kind = "aws_iam_group"
	case *iam.InstanceProfile:
		kind = "aws_iam_instance_profile"
	}
	name, known := map[string]string{"Arn": "arn", "PolicyArn": "arn", "RoleId": "unique_id", "name": "name"}[attribute]
	if kind == "" || !known {
		return f.refuse("reference to " + path)
	}
	return "${" + kind + "." + id + "." + name + "}"
}

// sub substitutes ${…} in a text; ${!…} is an escaped ${…}.
func (f *terraformFile) sub(text string) string {
	var b strings.Builder
	last := 0
	for _, m := range regex.Of(`\$\{(!?)([^}]*)\}`).FindAllStringSubmatchIndex(text, -1) {
		b.WriteString(escape(text[last:m[0]]))
		inner := text[m[4]:m[5]]
		switch {
		case m[2] != m[3]:
			b.WriteString("$${" + inner + "}")
		case strings.Contains(inner, "."):
			b.WriteString(f.attribute(inner))
		default:
			b.WriteString(f.ref(inner))
		}
		last = m[1]
	}
	b.WriteString(escape(text[last:]))
	return b.String()
}

func (f *terraformFile) join(separator string, items []any) string {
	parts := make([]string, 0, len(items))
	for _, item := range items {
		switch item := item.(type) {
		case string:
			parts = append(parts, escape(item))
		case map[string]any:
			for name, argument := range item {
				parts = append(parts, f.function(name, argument))
			}
		default:
			return f.refuse("Fn::Join")
		}
	}
	return strings.Join(parts, escape(separator))
}
