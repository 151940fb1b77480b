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
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/kind"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// nodeTagField begins the name of a difference of a tag that new nodes get.
const nodeTagField = "nodeTag "

// DiffNodeTags compares the tags that new nodes of a group get. Further tags stay.
func DiffNodeTags(have map[string]string, want cloud.Tags, d *plan.Diff) {
	for _, key := range slices.Sorted(maps.Keys(want)) {
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

// SetNodeTags sets tags of an Auto Scaling group that its new machines get.
func SetNodeTags(ctx context.Context, c *cloud.Clients, group string, tags cloud.Tags) error {
	_, err := c.AutoScaling.CreateOrUpdateTags(ctx, &autoscaling.CreateOrUpdateTagsInput{Tags: groupTags(group, tags, true)})
	return err
}

// groupTags returns tags of a group. Machines get those that propagate.
func groupTags(group string, tags cloud.Tags, propagate bool) (out []types.Tag) {
	for _, t := range tags.EC2() {
		out = append(out, types.Tag{
			Key: t.Key, Value: t.Value, PropagateAtLaunch: &propagate, ResourceId: &group, ResourceType: aws.String("auto-scaling-group"),
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
		Name: NodeTagsKind, Area: plan.AreaWorkers, ReadActions: []string{"autoscaling:DescribeAutoScalingGroups"}, Statement: kind.LaunchTemplates,
		Actions: []string{"autoscaling:CreateOrUpdateTags"},
	}
}
