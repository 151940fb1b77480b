package iamjudge

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// Account is the account of all resources.
const Account = "123456789012"

// call is one call of an API.
type call struct {
	service   string // as IAM abbreviates it
	operation string
	region    string
	values    map[string][]string // all texts in the input, by the name of their field
}

// prefixes are the services, by their ID in the SDK.
func prefixes() map[string]string {
	return map[string]string{
		"Auto Scaling":              "autoscaling",
		"EC2":                       "ec2",
		"EKS":                       "eks",
		"Elastic Load Balancing":    "elasticloadbalancing",
		"Elastic Load Balancing v2": "elasticloadbalancing",
		"IAM":                       "iam",
		"EventBridge":               "events",
		"SQS":                       "sqs",
		"KMS":                       "kms",
		"S3":                        "s3",
		"Secrets Manager":           "secretsmanager",
		"Service Quotas":            "servicequotas",
		"SSM":                       "ssm",
		"STS":                       "sts",
	}
}

// Requests returns all that IAM is asked in a call: its own actions, each on all its
// resources, and the dependent ones.
func (j *Judge) Requests(service, operation, region string, in any) (out []Request, err error) {
	c := call{service: prefixes()[service], operation: operation, region: region, values: map[string][]string{}}
	raw, err := json.Marshal(in)
	if err != nil {
		return nil, err
	}
	var decoded any
	if err := json.Unmarshal(raw, &decoded); err != nil {
		return nil, err
	}
	c.collect("", decoded)
	for _, name := range c.actions() {
		dependencies, err := j.data.dependencies(c, name)
		if err != nil {
			return nil, err
		}
		for _, d := range append(dependencies, dependency{action: name}) {
			more, err := j.data.requests(d.as(c), d.action, d.context)
			if err != nil {
				return nil, err
			}
			out = append(out, more...)
		}
	}
	return out, nil
}

// collect collects all texts in a part of the input.
func (c call) collect(field string, part any) {
	switch x := part.(type) {
	case string:
		if x != "" {
			c.values[field] = append(c.values[field], x)
		}
	case []any:
		for _, e := range x {
			c.collect(field, e)
		}
	case map[string]any:
		for name, e := range x {
			c.collect(name, e)
		}
	}
}

// actions returns the actions of a call, where they are not the name of the operation.
// Source for S3: "Required permissions for Amazon S3 API operations" in its user guide.
func (c call) actions() []string {
	switch c.service + " " + c.operation {
	case "sts GetCallerIdentity": // needs no permission, by its page in the API reference
		return nil
	case "s3 HeadBucket", "s3 ListObjectsV2":
		return []string{"s3:ListBucket"}
	case "s3 HeadObject":
		return []string{"s3:GetObject"}
	case "s3 ListObjectVersions":
		return []string{"s3:ListBucketVersions"}
	case "s3 DeleteObjects":
		if len(c.values["VersionId"]) > 0 {
			return []string{"s3:DeleteObject", "s3:DeleteObjectVersion"}
		}
		return []string{"s3:DeleteObject"}
	}
	return []string{c.service + ":" + c.operation}
}

// requests returns the requests for one action: one for each resource.
func (a *authorization) requests(c call, name string, context map[string]string) (out []Request, err error) {
	x, ok := a.actions[strings.ToLower(name)]
	if !ok {
		return nil, fmt.Errorf("IAM does not have the action %s", name)
	}
	all := map[string]string{"aws:RequestedRegion": c.region}
	if strings.HasPrefix(name, "iam:") {
		all["aws:RequestedRegion"] = "us-east-1" // IAM is a global service
	}
	maps.Copy(all, context)
	for _, resource := range a.resources(c, x, name) {
		out = append(out, Request{Action: name, Resource: resource, Context: all})
	}
	return out, nil
}

// resources returns the ARNs of the resources of an action: of all types that it requires,
// and of the others of which the input has a name. "*" is for actions without resources.
func (a *authorization) resources(c call, x action, name string) (out []string) {
	service, _, _ := strings.Cut(name, ":")
	for _, r := range x.ResourceTypes {
		arns, complete := c.fill(a.arns[service+":"+strings.ToLower(r.Name)])
		if r.Required || complete {
			out = append(out, arns...)
		}
	}
	if len(out) == 0 && len(x.ResourceTypes) > 0 { // one of several, and the input does not say which
		out, _ = c.fill(a.arns[service+":"+strings.ToLower(x.ResourceTypes[0].Name)])
	}
	if len(out) == 0 {
		return []string{"*"}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// key returns the KMS key in the input, as a name or an ARN.
func (c call) key() string {
	for _, field := range []string{"KmsKeyId", "KeyArn"} {
		if c.has(field) {
			return c.values[field][0]
		}
	}
	return ""
}

// fill puts the names in the input into the format of an ARN. A resource that does not
// exist yet has no name; complete reports whether all names are known.
func (c call) fill(format string) (arns []string, complete bool) {
	if strings.Contains(format, ":kms:") && strings.HasPrefix(c.key(), "arn:") {
		return []string{c.key()}, true // may be in another account
	}
	arns, complete = []string{format}, true
	for _, match := range regexp.MustCompile(`\$\{(\w+)\}`).FindAllStringSubmatch(format, -1) {
		variable, names := match[0], c.names(match[1])
		if len(names) == 0 {
			names, complete = []string{"new"}, false
		}
		var next []string
		for _, arn := range arns {
			for _, name := range names {
				next = append(next, strings.Replace(arn, variable, name, 1))
			}
		}
		arns = next
	}
	for i, arn := range arns {
		if strings.Contains(arn, ":parameter/aws/service/") { // the parameters that AWS publishes are in no account
			arns[i] = strings.Replace(arn, ":"+Account+":", "::", 1)
		}
	}
	return arns, complete
}
