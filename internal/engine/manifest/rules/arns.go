package rules

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/internal/regex"
)

// arnForm is the form of an ARN that a field takes: "Amazon Resource Names (ARNs)" in the AWS General
// Reference, and the resource types in the Service Authorization Reference.
type arnForm struct {
	service  string
	resource string // pattern of what follows the account
	regional bool   // it names the region of the cluster
	what     string // "a role"
	example  string // without the partition
}

func roleARN() arnForm {
	return arnForm{"iam", `role/[\w+=,.@/-]+`, false, "an IAM role", ":iam::123456789012:role/NAME"}
}

func principalARN() arnForm {
	return arnForm{"iam", `(role|user)/[\w+=,.@/-]+`, false, "an IAM role or user", ":iam::123456789012:role/NAME"}
}

func userARN() arnForm {
	return arnForm{"iam", `(user/[\w+=,.@/-]+|root)`, false, "an IAM user", ":iam::123456789012:user/NAME"}
}

func policyARN() arnForm {
	return arnForm{"iam", `policy/[\w+=,.@/-]+`, false, "an IAM policy", ":iam::aws:policy/NAME"}
}

func accessPolicyARN() arnForm {
	return arnForm{"eks", `cluster-access-policy/\w+`, false, "an access policy of EKS", ":eks::aws:cluster-access-policy/AmazonEKSViewPolicy"}
}

func keyARN() arnForm {
	return arnForm{"kms", `(key/[a-zA-Z0-9-]+|alias/[a-zA-Z0-9/_-]+)`, true, "a KMS key", ":kms:REGION:123456789012:key/ID"}
}

// checkARN checks an ARN: its form, its kind, its partition, and the region of a regional resource.
func (c *checks) checkARN(o *manifest.Entry, path, arn string, form arnForm) {
	if o == nil || arn == "" {
		return
	}
	partition := manifest.PartitionOf(c.cluster.Region)
	example := "arn:" + partition + strings.Replace(form.example, "REGION", c.cluster.Region, 1)
	parts := strings.SplitN(arn, ":", 6)
	switch {
	case len(parts) != 6 || parts[0] != "arn":
		c.fail(o.Problem(path, fmt.Sprintf("%q is not an ARN", arn), "write the ARN of "+form.what+", such as "+example))
	case parts[2] == "sts":
		c.fail(o.Problem(path, fmt.Sprintf("%s is a session of a role, not %s", arn, form.what), "write the ARN of the role: "+example))
	case parts[2] != form.service || !regexp.MustCompile(`^(`+form.resource+`)$`).MatchString(parts[5]):
		c.fail(o.Problem(path, fmt.Sprintf("%s is not the ARN of %s", arn, form.what), "write one such as "+example))
	case parts[1] != partition:
		c.fail(
			o.Problem(
				path,
				fmt.Sprintf("%s is of the partition %s, but the region %s is in %s", arn, parts[1], c.cluster.Region, partition),
				"write one such as "+example,
			),
		)
	case form.regional && parts[3] != c.cluster.Region:
		c.fail(o.Problem(path, fmt.Sprintf("%s is in the region %s, but the cluster is in %s", arn, parts[3], c.cluster.Region), "use one of this region"))
	case !regex.Of(`^(\d{12}|aws)$`).MatchString(parts[4]):
		c.fail(o.Problem(path, fmt.Sprintf("%s: %q is not the number of an account", arn, parts[4]), "write 12 digits"))
	}
}

// checkKey checks a KMS key: an ARN, an ID, or an alias.
func (c *checks) checkKey(o *manifest.Entry, path, key string) {
	switch {
	case key == "":
	case strings.HasPrefix(key, "arn:"):
		c.checkARN(o, path, key, keyARN())
	case !regex.Of(`^(alias/[a-zA-Z0-9/_-]+|mrk-[0-9a-f]{32}|[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})$`).MatchString(key): // KeyId of DescribeKey, KMS API reference
		c.fail(o.Problem(path, fmt.Sprintf("%q is not a KMS key", key), "write its ARN, its ID, or alias/NAME"))
	}
}

// checkIAMName checks the name of a role or an instance profile (CreateRole and CreateInstanceProfile, IAM API reference).
func (c *checks) checkIAMName(o *manifest.Entry, path, name, what string) {
	if name != "" && !regex.Of(`^[\w+=,.@-]{1,128}$`).MatchString(name) {
		c.fail(o.Problem(path, fmt.Sprintf("%q is not the name of %s", name, what), "use letters, digits and + = , . @ - _; a path is not part of the name"))
	}
}
