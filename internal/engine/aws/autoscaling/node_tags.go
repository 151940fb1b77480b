package autoscaling

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling/types"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/identity"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/kind"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// nodeTagField begins the name of a difference of a tag that new nodes get.
const nodeTagField = "nodeTag "

// DiffNodeTags compares the tags that an Auto Scaling group sets on new nodes. former lists the keys of tags to remove; other tags stay.
func DiffNodeTags(have map[string]string, want cloud.Tags, former []string, d *plan.Diff) {
	for _, key := range append(slices.Sorted(maps.Keys(want)), former...) {
		d.Set(nodeTagField+key, have[key], want[key])
	}
}

// IsNodeTag reports whether a difference is one of a tag that new nodes get.
func IsNodeTag(c plan.Change) bool { return strings.HasPrefix(c.Field, nodeTagField) }

// HasNodeTags reports whether a tag of new nodes differs.
func HasNodeTags(d plan.Diff) bool { return slices.ContainsFunc(d, IsNodeTag) }

// NodeTags returns the tags of an Auto Scaling group that its new machines get.
func NodeTags(ctx context.Context, c *cloud.Clients, group string) (map[string]string, error) {
	return cloud.Remember(ctx, c, "tags of auto scaling group "+group, func(ctx context.Context) (map[string]string, error) {
		out, err := c.AutoScaling.DescribeAutoScalingGroups(ctx, &autoscaling.DescribeAutoScalingGroupsInput{AutoScalingGroupNames: []string{group}})
		if err != nil {
			return nil, err
		}
		tags := map[string]string{}
		for _, g := range out.AutoScalingGroups {
			for _, t := range g.Tags {
				if aws.ToBool(t.PropagateAtLaunch) {
					tags[aws.ToString(t.Key)] = aws.ToString(t.Value)
				}
			}
		}
		return tags, nil
	})
}

// ChangeNodeTags makes the changes that d lists to the tags which an Auto Scaling group sets on new nodes.
func ChangeNodeTags(ctx context.Context, c *cloud.Clients, group string, want cloud.Tags, d plan.Diff) error {
	var tags plan.Diff
	for _, x := range d {
		key, is := strings.CutPrefix(x.Field, nodeTagField)
		value, wanted := want[key]
		switch {
		case is && wanted:
			tags.Tags(nil, cloud.Tags{key: value})
		case is:
			tags.Untag(cloud.Tags{key: x.Have}, []string{key})
		}
	}
	return changeTags(ctx, c, group, groupTags(group, want, true), tags)
}

// changeTags makes the changes of tags that d lists on an Auto Scaling group.
func changeTags(ctx context.Context, c *cloud.Clients, group string, want []types.Tag, d plan.Diff) error {
	_, err := identity.ChangeTags(nil, nil, d, func() error {
		_, err := c.AutoScaling.CreateOrUpdateTags(ctx, &autoscaling.CreateOrUpdateTagsInput{Tags: want})
		return err
	}, func(keys []string) error {
		in := &autoscaling.DeleteTagsInput{}
		for _, key := range keys {
			in.Tags = append(in.Tags, types.Tag{Key: &key, ResourceId: &group, ResourceType: aws.String(groupResource)})
		}
		_, err := c.AutoScaling.DeleteTags(ctx, in)
		return err
	})
	return err
}

// groupResource is the resource type of an Auto Scaling group in requests that change tags.
const groupResource = "auto-scaling-group"

// groupTags returns tags of a group. Machines get those that propagate.
func groupTags(group string, tags cloud.Tags, propagate bool) (out []types.Tag) {
	for _, t := range tags.EC2() {
		out = append(out, types.Tag{
			Key: t.Key, Value: t.Value, PropagateAtLaunch: &propagate, ResourceId: &group, ResourceType: aws.String(groupResource),
		})
	}
	return out
}

// NodeTagsKind is the name of the kind of tags that nodes of a node group get.
const NodeTagsKind = "node-tags"

// nodeTagsKind declares the tags that nodes of a node group get. They are part of the state of the
// node group.
func nodeTagsKind() *kind.Kind {
	return &kind.Kind{
		Name: NodeTagsKind, Area: plan.AreaWorkers, ReadActions: []string{"autoscaling:DescribeAutoScalingGroups"}, Statement: kind.EKS,
		Actions: []string{"autoscaling:CreateOrUpdateTags", "autoscaling:DeleteTags"},
	}
}
