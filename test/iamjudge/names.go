package iamjudge

import (
	"regexp"
	"slices"
	"strings"
)

// names returns the values of a variable in the format of an ARN, such as "RoleName".
func (c call) names(variable string) []string {
	switch variable {
	case "Partition":
		return []string{"aws"}
	case "Region":
		return []string{c.region}
	case "Account":
		return []string{Account}
	}
	fields, ok := fieldsOf()[variable]
	if !ok {
		fields = []string{variable}
	}
	var out []string
	for _, field := range fields {
		for _, value := range c.values[field] {
			out = append(out, c.name(variable, value))
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// fieldsOf lists the fields of inputs that have the value of a variable, where they have
// another name.
func fieldsOf() map[string][]string {
	return map[string][]string{
		"ParameterNameWithoutLeadingSlash": {"Name", "Names", "Path"},
		"SecretId":                         {"Name", "SecretId"},
		"BucketName":                       {"Bucket"},
		"ObjectName":                       {"Key"},
		"RoleNameWithPath":                 {"RoleName", "RoleArn"},
		"InstanceProfileNameWithPath":      {"InstanceProfileName"},
		"OidcProviderName":                 {"Url", "OpenIDConnectProviderArn"},
		"ClusterName":                      {"ClusterName", "Name"},
		"QueueName":                        {"QueueName", "QueueUrl"},
		"RuleName":                         {"Name", "Rule", "ResourceARN"},
		"KeyId":                            {"KeyId", "KmsKeyId", "KeyArn"},
		"ResourceId":                       nil, // of Systems Manager: only parameters are tagged
	}
}

// name returns the name in an ARN, of which the input has the name, the ARN or the URL.
func (c call) name(variable, value string) string {
	switch variable {
	case "ParameterNameWithoutLeadingSlash":
		return strings.TrimPrefix(value, "/")
	case "SecretId":
		if _, name, ok := strings.Cut(value, ":secret:"); ok {
			return name
		}
		return value + "-AbCdEf" // Secrets Manager adds six random letters to the name
	case "QueueName", "RuleName":
		return value[strings.LastIndex(value, "/")+1:]
	case "OidcProviderName":
		_, name, ok := strings.Cut(value, ":oidc-provider/")
		if !ok {
			name = strings.TrimPrefix(value, "https://")
		}
		return name
	case "RoleNameWithPath", "KeyId":
		if strings.HasPrefix(value, "arn:") {
			_, name, _ := strings.Cut(value, "/")
			return name
		}
		if m := podRoles().FindStringSubmatch(value); m != nil && variable != "KeyId" {
			return "clusterawsadm/" + m[2] + "/" + m[1] + "/" + value
		}
	}
	return value
}

// podRoles matches the names of the roles that are made for the pods of an EKS cluster: the cluster and the region are also their
// path, which is not in the input of most calls.
func podRoles() *regexp.Regexp {
	return regexp.MustCompile(`^(.+)-((?:af|ap|ca|cn|eu|il|me|mx|sa|us)-(?:[a-z]+-)+[0-9])-`)
}
