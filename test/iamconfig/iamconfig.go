// Package iamconfig generates AWSIAMConfigurations for tests: with any combination of
// fields, with null and empty values, with unknown fields, and with values that AWS
// rejects. About a quarter of them are v1alpha1.
package iamconfig

import (
	"encoding/base64"
	"encoding/json"
	"fmt"

	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"
)

type (
	object = map[string]any
	list   = []any
)

// Draw generates a configuration, and a file with it: YAML, JSON, or YAML with another
// document after it. Some of its texts are from the arguments.
func Draw(t *rapid.T, texts ...string) (configuration map[string]any, file []byte) {
	t.Helper()
	c := configurations{T: t, texts: append([]string{
		"on", "n", "2012-10-17", "0x10", "1e3", "~", "a: b", "{}", "${aws:username}", "Zm9vYmFy", "é", " a b ", "<&>",
		Encoded(`{"Fn::Sub": "arn:${AWS::Partition}:iam::aws:policy/Foo"}`), Encoded(`{ "Ref": "AWSIAMRoleNodes" }`),
		Encoded(`{"Fn::Join": ["", ["a", "b"]]}`), Encoded(`{"Nope": 1}`), Encoded(`[1]`),
	}, texts...)}
	configuration = c.draw()
	return configuration, c.file(configuration)
}

// Encoded returns a text as the intrinsic functions in a configuration are encoded.
func Encoded(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }

type configurations struct {
	*rapid.T

	texts []string
}

func (c configurations) draw() object {
	version := rapid.SampledFrom([]string{"v1beta1", "v1beta1", "v1beta1", "v1alpha1"}).Draw(c.T, "version")
	o := object{"apiVersion": "bootstrap.aws.infrastructure.cluster.x-k8s.io/" + version, "kind": "AWSIAMConfiguration"}
	c.maybe(o, "spec", 9, func() any { return c.spec() })
	return o
}

// maybe sets a field in that many of ten cases, rarely to null.
func (c configurations) maybe(o object, field string, often int, value func() any) {
	switch n := rapid.IntRange(0, 99).Draw(c.T, field+"?"); {
	case n < often*10:
		o[field] = value()
	case n == 99:
		o[field] = nil
	}
}

func (c configurations) bools(o object, fields ...string) {
	for _, f := range fields {
		c.maybe(o, f, 4, func() any { return rapid.Bool().Draw(c.T, f) })
	}
}

// word returns a text, sometimes one that YAML 1.1 or CloudFormation could interpret as
// another type.
func (c configurations) word(label string) string {
	return rapid.OneOf(
		rapid.StringMatching(`[a-z][a-z0-9.*-]{0,12}`),
		rapid.SampledFrom(c.texts),
	).Draw(c.T, label)
}

func (c configurations) words(label string) any {
	out := list{}
	for i := range rapid.IntRange(0, 3).Draw(c.T, label+" length") {
		out = append(out, c.word(fmt.Sprintf("%s[%d]", label, i)))
	}
	return out
}

func (c configurations) tags() any {
	out := object{}
	for range rapid.IntRange(0, 3).Draw(c.T, "tags") {
		out[c.word("key")] = c.word("value")
	}
	return out
}

func (c configurations) statements() any {
	out := list{}
	for range rapid.IntRange(0, 3).Draw(c.T, "statements") {
		s := object{}
		c.maybe(s, "Sid", 3, func() any { return c.word("Sid") })
		c.maybe(s, "Effect", 9, func() any { return rapid.SampledFrom([]string{"Allow", "Deny", "allow"}).Draw(c.T, "Effect") })
		c.maybe(s, "Action", 8, func() any { return c.wordOrWords("Action") })
		c.maybe(s, "Resource", 7, func() any { return c.words("Resource") })
		c.maybe(s, "Principal", 4, func() any { return c.principals() })
		c.maybe(s, "NotPrincipal", 1, func() any { return c.principals() })
		c.maybe(s, "Condition", 4, func() any { return c.condition() })
		c.maybe(s, "effect", 1, func() any { return "Allow" })
		c.maybe(s, "resource", 1, func() any { return "*" })
		out = append(out, s)
	}
	return out
}

func (c configurations) wordOrWords(label string) any {
	if rapid.Bool().Draw(c.T, label+" is one") {
		return c.word(label)
	}
	return c.words(label)
}

func (c configurations) principals() any {
	out := object{}
	for _, kind := range []string{"AWS", "Federated", "Service"} {
		if rapid.Bool().Draw(c.T, kind) {
			out[kind] = c.wordOrWords(kind)
		}
	}
	return out
}

func (c configurations) condition() any {
	out := object{}
	for _, operator := range []string{"StringEquals", "Bool", "NumericLessThan"} {
		c.maybe(out, operator, 5, func() any {
			return rapid.SampledFrom([]any{
				object{"aws:PrincipalTag/x": "y"},
				object{"aws:MultiFactorAuthPresent": true},
				object{"s3:max-keys": 10.5},
				object{"s3:max-keys": 1e6},
				object{"aws:SourceIp": list{"10.0.0.0/8", "::1/128"}},
				object{},
				"text", 7.0,
			}).Draw(c.T, operator)
		})
	}
	return out
}

// role returns a role with all fields, also in v1alpha1.
func (c configurations) role(more func(object)) any {
	o := object{}
	c.bools(o, "disable")
	c.maybe(o, "extraPolicyAttachments", 4, func() any { return c.words("extraPolicyAttachments") })
	c.maybe(o, "extraStatements", 3, c.statements)
	c.maybe(o, "trustStatements", 3, c.statements)
	c.maybe(o, "tags", 3, c.tags)
	c.maybe(o, "path", 2, func() any { return c.word("path") })
	c.maybe(o, "permissionsBoundary", 2, func() any { return c.word("permissionsBoundary") })
	c.maybe(o, "enable", 1, func() any { return true })
	more(o)
	return o
}

func (c configurations) spec() any {
	o := object{}
	text := func(of object, often int, fields ...string) {
		for _, f := range fields {
			c.maybe(of, f, often, func() any { return rapid.SampledFrom([]string{"", c.word(f)}).Draw(c.T, f) })
		}
	}
	text(o, 3, "namePrefix", "nameSuffix", "stackName", "region")
	c.maybe(o, "partition", 5, func() any {
		return rapid.SampledFrom([]string{"", "aws", "aws-cn", "aws-us-gov", "x-aws-us-gov-y", "aws-iso"}).Draw(c.T, "partition")
	})
	c.maybe(o, "controlPlane", 6, func() any {
		return c.role(func(o object) {
			c.bools(o, "disableClusterAPIControllerPolicyAttachment", "disableCloudProviderPolicy", "enableCSIPolicy")
		})
	})
	c.maybe(o, "clusterAPIControllers", 6, func() any {
		return c.role(func(o object) {
			c.maybe(o, "allowedEC2InstanceProfiles", 5, func() any { return c.words("allowedEC2InstanceProfiles") })
		})
	})
	c.maybe(o, "nodes", 6, func() any {
		return c.role(func(o object) { c.bools(o, "disableCloudProviderPolicy", "ec2ContainerRegistryReadOnly") })
	})
	c.maybe(o, "bootstrapUser", 6, func() any {
		u := object{}
		c.bools(u, "enable")
		text(u, 4, "userName", "groupName")
		c.maybe(u, "extraPolicyAttachments", 3, func() any { return c.words("extraPolicyAttachments") })
		c.maybe(u, "extraGroups", 3, func() any { return c.words("extraGroups") })
		c.maybe(u, "extraStatements", 4, c.statements)
		c.maybe(u, "tags", 3, c.tags)
		return u
	})
	c.maybe(o, "eks", 6, func() any {
		e := object{}
		c.maybe(e, "disable", 3, func() any { return rapid.Bool().Draw(c.T, "disable") })
		c.bools(e, "iamRoleCreation", "enableUserEKSConsolePolicy", "enable")
		text(e, 3, "kmsAliasPrefix")
		for _, f := range []string{"defaultControlPlaneRole", "managedMachinePool", "fargate"} {
			c.maybe(e, f, 5, func() any { return c.role(func(object) {}) })
		}
		return e
	})
	c.maybe(o, "stackTags", 2, c.tags)
	c.maybe(o, "eventBridge", 4, func() any { e := object{}; c.bools(e, "enable"); return e })
	c.maybe(o, "secureSecretBackends", 5, func() any {
		return rapid.SampledFrom([]any{
			list{}, list{"ssm-parameter-store"}, list{"ssm-parameter-store", "secrets-manager"}, list{"nope", "secrets-manager", "secrets-manager"},
		}).Draw(c.T, "secureSecretBackends")
	})
	c.maybe(o, "s3Buckets", 4, func() any { b := object{}; c.bools(b, "enable"); text(b, 5, "namePrefix"); return b })
	c.bools(o, "allowAssumeRole")
	return o
}

func (c configurations) file(o object) []byte {
	text, err := json.Marshal(o)
	if err == nil && rapid.IntRange(0, 3).Draw(c.T, "JSON") > 0 {
		text, err = yaml.JSONToYAML(text)
		if rapid.IntRange(0, 9).Draw(c.T, "second document") == 0 {
			text = append(text, "---\nkind: Other\n"...)
		}
	}
	if err != nil {
		c.Fatal(err)
	}
	return text
}
