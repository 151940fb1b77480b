package cloud

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
)

// Tag keys. All but those that begin with clusterawsadm/ are those of Cluster API Provider AWS (CAPA), byte for
// byte: see its package api/v1beta2, tags.go.
const (
	// ClusterTagPrefix is followed by the name of the cluster. The value is Owned.
	ClusterTagPrefix = "sigs.k8s.io/cluster-api-provider-aws/cluster/"
	// RoleTag names the purpose of a resource.
	RoleTag = "sigs.k8s.io/cluster-api-provider-aws/role"
	// CloudProviderTagPrefix is followed by the name of the cluster. The AWS cloud
	// controller manager finds resources by this tag.
	CloudProviderTagPrefix = "kubernetes.io/cluster/"
	// ResourceTag is the identity tag: the ID of the resource in the graph. A user may
	// change the Name tag; this tag stays.
	ResourceTag = "clusterawsadm/resource"
	// TemplateTag holds a digest of the settings of a machine that cannot change in
	// place. If the digest of the manifest differs, the machine is outdated.
	TemplateTag = "clusterawsadm/template"
	// TemplateFieldsTag holds the settings behind TemplateTag, abbreviated, so that a plan can
	// say which of them have changed.
	TemplateFieldsTag = "clusterawsadm/template-fields"
	// JoinFailedTag marks a worker on which kubeadm join has failed. It is replaced like
	// an outdated machine.
	JoinFailedTag = "clusterawsadm/join-failed"
	// Owned is the value of the cluster tag of a resource that is deleted with the
	// cluster.
	Owned = "owned"
)

// Tags are the tags of one resource, by key.
type Tags map[string]string

// Printable returns the value of a tag; "" if it has a control character or one that changes the
// direction of the text. This program writes none of them: in an ID, a line break would look
// like another resource.
func (t Tags) Printable(key string) string {
	if strings.ContainsFunc(t[key], func(r rune) bool {
		return unicode.IsControl(r) || unicode.In(r, unicode.Bidi_Control, unicode.Zl, unicode.Zp)
	}) {
		return ""
	}
	return t[key]
}

// With returns the tags of t and more. If both have a key, the value is that of more.
func (t Tags) With(more Tags) Tags {
	out := maps.Clone(t)
	if out == nil {
		out = Tags{}
	}
	maps.Copy(out, more)
	return out
}

// Without returns the tags of t without those with these keys.
func (t Tags) Without(keys []string) Tags {
	out := maps.Clone(t)
	for _, k := range keys {
		delete(out, k)
	}
	return out
}

// Owners returns the names of the clusters that own the resource by the tag of Cluster API Provider AWS, sorted.
func (t Tags) Owners() (names []string) {
	for _, key := range slices.Sorted(maps.Keys(t)) {
		if name, is := strings.CutPrefix(key, ClusterTagPrefix); is && t[key] == Owned {
			names = append(names, name)
		}
	}
	return names
}

// EC2 returns the tags in the form of EC2, sorted by key.
func (t Tags) EC2() []types.Tag {
	var out []types.Tag
	for _, k := range slices.Sorted(maps.Keys(t)) {
		out = append(out, types.Tag{Key: aws.String(k), Value: aws.String(t[k])})
	}
	return out
}

// On returns the tags in the form that EC2 create calls take, for each kind of resource.
func (t Tags) On(kinds ...types.ResourceType) (out []types.TagSpecification) {
	for _, kind := range kinds {
		out = append(out, types.TagSpecification{ResourceType: kind, Tags: t.EC2()})
	}
	return out
}

// TagCommand returns the command of the AWS CLI that adds tags to a resource: to one of EC2 by its ID, to a queue of SQS by its URL, to others by
// their ARN. The tags are pairs of a key and a value.
func TagCommand(id string, pairs ...string) string {
	form, before := "Key=%s,Value=%s", "aws ec2 create-tags --resources "+id
	_, name, _ := strings.Cut(id, "/")
	of := func(service string) bool {
		return strings.HasPrefix(id, "arn:") && strings.Contains(id, ":"+service+":")
	}
	switch {
	case of("eks"):
		form, before = "%s=%s", "aws eks tag-resource --resource-arn "+id
	case of("iam") && strings.Contains(id, ":oidc-provider/"):
		before = "aws iam tag-open-id-connect-provider --open-id-connect-provider-arn " + id
	case of("iam"):
		before = "aws iam tag-role --role-name " + name[strings.LastIndex(name, "/")+1:]
	case of("events"):
		before = "aws events tag-resource --resource-arn " + id
	case strings.HasPrefix(id, "https://"):
		form, before = "%s=%s", "aws sqs tag-queue --queue-url "+id
	case strings.HasPrefix(id, "arn:"):
		before = "aws elbv2 add-tags --resource-arns " + id
	}
	command := before + " --tags"
	for pair := range slices.Chunk(pairs, 2) {
		command += fmt.Sprintf(" "+form, pair[0], pair[1])
	}
	return command
}

// FromEC2 converts the tags of an EC2 resource.
func FromEC2(tags []types.Tag) Tags {
	return TagsFrom(tags, func(t types.Tag) (key, value *string) { return t.Key, t.Value })
}

// TagsFrom converts the tags of a resource from the type that the SDK has for its service.
func TagsFrom[T any](tags []T, pair func(T) (key, value *string)) Tags {
	out := make(Tags, len(tags))
	for _, t := range tags {
		key, value := pair(t)
		out[aws.ToString(key)] = aws.ToString(value)
	}
	return out
}

// Filter returns one EC2 filter.
func Filter(name string, values ...string) types.Filter {
	return types.Filter{Name: aws.String(name), Values: values}
}

// OwnerTag is the key of the owned tag of this cluster.
func (c *Clients) OwnerTag() string { return ClusterTagPrefix + c.Cluster }

// OwnedFilters returns EC2 filters that match only resources that the cluster owns.
func (c *Clients) OwnedFilters(more ...types.Filter) []types.Filter {
	return append(more, Filter("tag:"+c.OwnerTag(), Owned))
}
