package autoscaling

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling/types"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim/core"
)

// mostTags is the maximum number of tags of a group.
const mostTags = 50

const scalingGroupType = "auto-scaling-group"

func (svc *Service) simulateTags() {
	core.On(svc.Account, svc.createOrUpdateScalingTags, "Tags")
	core.On(svc.Account, svc.deleteScalingTags, "Tags")
	core.On(svc.Account, svc.describeScalingTags, "Filters", "MaxRecords", "NextToken")
}

// tagScaling sets tags of a group. In a call that creates the group, tags need not have
// its name.
func (svc *Service) tagScaling(g *Group, name string, tags []types.Tag) error {
	all := maps.Clone(g.Tags)
	for _, t := range tags {
		k, v := aws.ToString(t.Key), aws.ToString(t.Value)
		switch {
		case cmp.Or(aws.ToString(t.ResourceId), name) != g.Name || cmp.Or(aws.ToString(t.ResourceType), scalingGroupType) != scalingGroupType:
			return invalid("the tag %q is not one of the group %s", k, g.Name)
		case k == "" || len(k) > 128 || len(v) > 256:
			return invalid("the tag %q is not valid", k)
		case strings.HasPrefix(strings.ToLower(k), "aws:"):
			return invalid("tag keys starting with 'aws:' are reserved: %q", k)
		}
		all[k] = Tag{v, aws.ToBool(t.PropagateAtLaunch)}
	}
	if len(all) > mostTags {
		return core.Fail("LimitExceeded", "a group can have %d tags", mostTags)
	}
	g.Tags = all
	return nil
}

// ofGroup returns the group of a tag.
func (svc *Service) ofGroup(t types.Tag) (*Group, error) {
	if aws.ToString(t.ResourceId) == "" || aws.ToString(t.ResourceType) != scalingGroupType {
		return nil, invalid("a tag names the group it is of, and the type %s", scalingGroupType)
	}
	return svc.changeable(t.ResourceId)
}

func (svc *Service) createOrUpdateScalingTags(in *autoscaling.CreateOrUpdateTagsInput) (*autoscaling.CreateOrUpdateTagsOutput, error) {
	for _, t := range in.Tags {
		g, err := svc.ofGroup(t)
		if err == nil {
			err = svc.tagScaling(g, g.Name, []types.Tag{t})
		}
		if err != nil {
			return nil, err
		}
	}
	return &autoscaling.CreateOrUpdateTagsOutput{}, nil
}

func (svc *Service) deleteScalingTags(in *autoscaling.DeleteTagsInput) (*autoscaling.DeleteTagsOutput, error) {
	for _, t := range in.Tags {
		g, err := svc.ofGroup(t)
		if err != nil {
			return nil, err
		}
		if old, ok := g.Tags[aws.ToString(t.Key)]; ok && (t.Value == nil || *t.Value == old.Value) {
			delete(g.Tags, aws.ToString(t.Key))
		}
	}
	return &autoscaling.DeleteTagsOutput{}, nil
}

func (g *Group) tagsOut() []types.TagDescription {
	return core.Each(core.SortedKeys(g.Tags), func(k string) types.TagDescription {
		return types.TagDescription{
			Key: aws.String(k), Value: aws.String(g.Tags[k].Value), PropagateAtLaunch: aws.Bool(g.Tags[k].Propagate),
			ResourceId: aws.String(g.Name), ResourceType: aws.String(scalingGroupType),
		}
	})
}

func (svc *Service) describeScalingTags(in *autoscaling.DescribeTagsInput) (*autoscaling.DescribeTagsOutput, error) {
	if err := records(in.MaxRecords); err != nil {
		return nil, err
	}
	var list []types.TagDescription
	for _, g := range core.ByKey(svc.state.Groups) {
		for _, t := range g.tagsOut() {
			fits := map[string]string{"auto-scaling-group": g.Name, "key": *t.Key, "value": *t.Value}
			keep := true
			for _, f := range in.Filters {
				of, known := fits[aws.ToString(f.Name)]
				if !known {
					return nil, core.NotSimulated("the filter %q of Auto Scaling's tags", aws.ToString(f.Name))
				}
				keep = keep && slices.Contains(f.Values, of)
			}
			if keep {
				list = append(list, t)
			}
		}
	}
	part, next, err := core.Page(svc.Account, list, in.NextToken, or(in.MaxRecords, 50), 100)
	return &autoscaling.DescribeTagsOutput{Tags: part, NextToken: next}, err
}
