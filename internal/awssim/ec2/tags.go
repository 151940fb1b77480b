package ec2

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim/core"
)

// mostTags is the maximum number of tags of a resource, without those of AWS.
const mostTags = 50

func (svc *Service) simulateTags() {
	core.On(svc.Account, svc.createTags, "Resources", "Tags")
	core.On(svc.Account, svc.deleteTags, "Resources", "Tags")
	core.On(svc.Account, svc.describeTags, "Filters", "NextToken", "MaxResults")
}

// tagsOf validates the tags of a call.
func tagsOf(tags []types.Tag) (map[string]string, error) {
	all := map[string]string{}
	for _, t := range tags {
		k, v := aws.ToString(t.Key), aws.ToString(t.Value)
		switch _, twice := all[k]; {
		case k == "" || utf8.RuneCountInString(k) > 127:
			return nil, core.Fail("InvalidParameterValue", "tag keys have 1 to 127 characters: %q", k)
		case utf8.RuneCountInString(v) > 256:
			return nil, core.Fail("InvalidParameterValue", "tag values have at most 256 characters: %q", v)
		case strings.HasPrefix(strings.ToLower(k), "aws:"):
			return nil, core.Fail("InvalidParameterValue", "tag keys starting with 'aws:' are reserved for internal use: %q", k)
		case twice:
			return nil, core.Fail("InvalidParameterValue", "duplicate tag key '%s' specified", k)
		}
		all[k] = v
	}
	if len(all) > mostTags {
		return nil, core.Fail("TagLimitExceeded", "a resource can have %d tags", mostTags)
	}
	return all, nil
}

// specified validates the tag specifications of a call that creates resources of those
// types.
func specified(specs []types.TagSpecification, kinds ...types.ResourceType) (map[types.ResourceType]map[string]string, error) {
	all := map[types.ResourceType]map[string]string{}
	for _, s := range specs {
		if _, twice := all[s.ResourceType]; twice || !slices.Contains(kinds, s.ResourceType) {
			return nil, core.Fail("InvalidParameterValue", "'%s' is not a valid taggable resource type for this operation, or there twice", s.ResourceType)
		}
		if len(s.Tags) == 0 {
			return nil, core.Fail("InvalidParameterValue", "tag specification must have at least one tag")
		}
		tags, err := tagsOf(s.Tags)
		if err != nil {
			return nil, err
		}
		all[s.ResourceType] = tags
	}
	return all, nil
}

// tagged validates the tag specifications of a call that creates one type of resource.
func tagged(specs []types.TagSpecification, kind types.ResourceType) (map[string]string, error) {
	all, err := specified(specs, kind)
	if err != nil || all[kind] == nil {
		return map[string]string{}, err
	}
	return all[kind], nil
}

// tagsOut converts tags for answers. AWS does not guarantee an order.
func tagsOut(tags map[string]string) []types.Tag {
	out := make([]types.Tag, 0, len(tags))
	for _, k := range slices.Sorted(maps.Keys(tags)) {
		out = append(out, types.Tag{Key: aws.String(k), Value: aws.String(tags[k])})
	}
	return out
}

// withID returns the resource with an ID, if it can have tags.
func (svc *Service) withID(id string) (resource, error) {
	k := svc.kindOf(id)
	if id == "" {
		return nil, core.Fail("MissingParameter", "the request must contain the parameter %sId", k.name)
	}
	for _, t := range svc.tables {
		if t.kind().prefix != k.prefix || k.apart {
			continue
		}
		if r := t.get(id); r != nil && svc.refers(r) {
			return r, nil
		}
	}
	return nil, k.notFound(id)
}

// toTag returns the resources of a call, all or none.
func (svc *Service) toTag(ids []string) (all []resource, err error) {
	if len(ids) == 0 || len(ids) > most {
		return nil, core.Fail("InvalidParameterValue", "1 to %d resources can be tagged in one call", most)
	}
	for _, id := range ids {
		r, err := svc.withID(id)
		if err != nil {
			return nil, err
		}
		all = append(all, r)
	}
	return all, nil
}

func (svc *Service) createTags(in *ec2.CreateTagsInput) (*ec2.CreateTagsOutput, error) {
	tags, err := tagsOf(in.Tags)
	if err != nil {
		return nil, err
	}
	if len(tags) == 0 {
		return nil, core.Fail("MissingParameter", "the request must contain the parameter tagSet")
	}
	things, err := svc.toTag(in.Resources)
	if err != nil {
		return nil, err
	}
	for _, t := range things {
		more := maps.Clone(t.thing().Tags)
		maps.Copy(more, tags)
		if len(more) > mostTags {
			return nil, core.Fail("TagLimitExceeded", "the resource %s can have %d tags", t.thing().ID, mostTags)
		}
		if err := t.takesTags(tags); err != nil {
			return nil, err
		}
	}
	for _, t := range things {
		maps.Copy(t.thing().Tags, tags)
	}
	return &ec2.CreateTagsOutput{}, nil
}

// deleteTags deletes tags: those with a value only if it matches, and all if the call has
// none.
func (svc *Service) deleteTags(in *ec2.DeleteTagsInput) (*ec2.DeleteTagsOutput, error) {
	things, err := svc.toTag(in.Resources)
	if err != nil {
		return nil, err
	}
	for _, t := range things {
		if len(in.Tags) == 0 {
			maps.DeleteFunc(t.thing().Tags, func(k, _ string) bool { return !strings.HasPrefix(k, "aws:") })
		}
		for _, tag := range in.Tags {
			k := aws.ToString(tag.Key)
			if tag.Value == nil || t.thing().Tags[k] == *tag.Value {
				delete(t.thing().Tags, k)
			}
		}
	}
	return &ec2.DeleteTagsOutput{}, nil
}

func (svc *Service) describeTags(in *ec2.DescribeTagsInput) (*ec2.DescribeTagsOutput, error) {
	field := func(get func(types.TagDescription) string) func(types.TagDescription) []string {
		return func(t types.TagDescription) []string { return []string{get(t)} }
	}
	keep, err := matching(in.Filters, fields[types.TagDescription]{
		"key":           field(func(t types.TagDescription) string { return aws.ToString(t.Key) }),
		"value":         field(func(t types.TagDescription) string { return aws.ToString(t.Value) }),
		"resource-id":   field(func(t types.TagDescription) string { return aws.ToString(t.ResourceId) }),
		"resource-type": field(func(t types.TagDescription) string { return string(t.ResourceType) }),
	}, func(t types.TagDescription) map[string]string {
		return map[string]string{aws.ToString(t.Key): aws.ToString(t.Value)}
	})
	if err != nil {
		return nil, err
	}
	var found []types.TagDescription
	for t := range svc.taggable() {
		if !svc.shows(t) {
			continue
		}
		for k, v := range t.thing().Tags {
			d := types.TagDescription{Key: aws.String(k), Value: aws.String(v), ResourceId: aws.String(t.thing().ID), ResourceType: t.kind().tags}
			if keep(d) {
				found = append(found, d)
			}
		}
	}
	slices.SortStableFunc(found, func(x, y types.TagDescription) int {
		return cmp.Or(strings.Compare(*x.ResourceId, *y.ResourceId), strings.Compare(*x.Key, *y.Key))
	})
	part, next, err := paged(svc, found, query{token: in.NextToken, size: in.MaxResults})
	return &ec2.DescribeTagsOutput{Tags: part, NextToken: next}, err
}

// Tagged lists the resources of EC2 that can have tags.
func (svc *Service) Tagged() (all []core.Tagged) {
	for t := range svc.taggable() {
		all = append(all, core.Tagged{ARN: svc.RegionalARN("ec2", string(t.kind().tags)+"/"+t.thing().ID), Tags: t.thing().Tags, Born: t.thing().Born})
	}
	// AWS's ARNs of public resources have no account ID; that this API omits it too is
	// not verified.
	public := "arn:" + svc.Partition() + ":ec2:" + svc.Region + "::"
	for id, i := range svc.state.Images {
		if i.Owner == svc.Number() {
			all = append(all, core.Tagged{ARN: public + "image/" + id, Tags: i.Tags, Born: i.Born})
		}
	}
	for id, s := range svc.state.Snapshots {
		all = append(all, core.Tagged{ARN: public + "snapshot/" + id, Tags: s.Tags, Born: s.Born})
	}
	return all
}
