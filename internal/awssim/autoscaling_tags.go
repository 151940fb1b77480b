package awssim

import (
	"maps"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
)

// mostGroupTags is how many tags a group can have.
const mostGroupTags = 50

const scalingGroupType = "auto-scaling-group"

func (a *AWS) simulateScalingTags() {
	on(a, a.createOrUpdateScalingTags, "Tags")
	on(a, a.deleteScalingTags, "Tags")
	on(a, a.describeScalingTags, "Filters", "MaxRecords", "NextToken")
}

// tagScaling sets tags of a group. A call that makes the group need not name
// it in each tag.
func (a *AWS) tagScaling(g *ScalingGroup, name string, tags []types.Tag) error {
	all := maps.Clone(g.Tags)
	for _, t := range tags {
		k, v := aws.ToString(t.Key), aws.ToString(t.Value)
		switch {
		case first(aws.ToString(t.ResourceId), name) != g.Name || first(aws.ToString(t.ResourceType), scalingGroupType) != scalingGroupType:
			return invalidGroup("the tag %q is not one of the group %s", k, g.Name)
		case k == "" || len(k) > 128 || len(v) > 256:
			return invalidGroup("the tag %q is not valid", k)
		case strings.HasPrefix(strings.ToLower(k), "aws:"):
			return invalidGroup("tag keys starting with 'aws:' are reserved: %q", k)
		}
		all[k] = ScalingTag{v, aws.ToBool(t.PropagateAtLaunch)}
	}
	if len(all) > mostGroupTags {
		return fail("LimitExceeded", "a group can have %d tags", mostGroupTags)
	}
	g.Tags = all
	return nil
}

// ofGroup returns the group that a tag is of.
func (a *AWS) ofGroup(t types.Tag) (*ScalingGroup, error) {
	if aws.ToString(t.ResourceId) == "" || aws.ToString(t.ResourceType) != scalingGroupType {
		return nil, invalidGroup("a tag names the group it is of, and the type %s", scalingGroupType)
	}
	return a.changeable(t.ResourceId)
}

func (a *AWS) createOrUpdateScalingTags(in *autoscaling.CreateOrUpdateTagsInput) (*autoscaling.CreateOrUpdateTagsOutput, error) {
	for _, t := range in.Tags {
		g, err := a.ofGroup(t)
		if err == nil {
			err = a.tagScaling(g, g.Name, []types.Tag{t})
		}
		if err != nil {
			return nil, err
		}
	}
	return &autoscaling.CreateOrUpdateTagsOutput{}, nil
}

func (a *AWS) deleteScalingTags(in *autoscaling.DeleteTagsInput) (*autoscaling.DeleteTagsOutput, error) {
	for _, t := range in.Tags {
		g, err := a.ofGroup(t)
		if err != nil {
			return nil, err
		}
		if old, ok := g.Tags[aws.ToString(t.Key)]; ok && (t.Value == nil || *t.Value == old.Value) {
			delete(g.Tags, aws.ToString(t.Key))
		}
	}
	return &autoscaling.DeleteTagsOutput{}, nil
}

func (g *ScalingGroup) tagsOut() []types.TagDescription {
	return each(sortedKeys(g.Tags), func(k string) types.TagDescription {
		return types.TagDescription{
			Key: aws.String(k), Value: aws.String(g.Tags[k].Value), PropagateAtLaunch: aws.Bool(g.Tags[k].Propagate),
			ResourceId: aws.String(g.Name), ResourceType: aws.String(scalingGroupType),
		}
	})
}

func (a *AWS) describeScalingTags(in *autoscaling.DescribeTagsInput) (*autoscaling.DescribeTagsOutput, error) {
	if err := records(in.MaxRecords); err != nil {
		return nil, err
	}
	var list []types.TagDescription
	for _, g := range byKey(a.state.AutoScaling.Groups) {
		for _, t := range g.tagsOut() {
			fits := map[string]string{"auto-scaling-group": g.Name, "key": *t.Key, "value": *t.Value}
			keep := true
			for _, f := range in.Filters {
				of, known := fits[aws.ToString(f.Name)]
				if !known {
					return nil, notSimulated("the filter %q of Auto Scaling's tags", aws.ToString(f.Name))
				}
				keep = keep && slices.Contains(f.Values, of)
			}
			if keep {
				list = append(list, t)
			}
		}
	}
	part, next, err := page(a, list, in.NextToken, or(in.MaxRecords, 50), 100)
	return &autoscaling.DescribeTagsOutput{Tags: part, NextToken: next}, err
}
