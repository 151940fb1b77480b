package awssim

import (
	"errors"
	"maps"

	"github.com/aws/aws-sdk-go-v2/aws"
	elb "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2"
	"github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2/types"
	"github.com/aws/smithy-go"
)

func (a *AWS) simulateELBTags() {
	on(a, a.addELBTags, "ResourceArns", "Tags")
	on(a, a.removeELBTags, "ResourceArns", "TagKeys")
	on(a, a.describeELBTags, "ResourceArns")
}

// tagged returns where the tags of things are, at most 20 of them.
func (a *AWS) tagged(arns []string) ([]*map[string]string, error) {
	if len(arns) == 0 || len(arns) > 20 {
		return nil, fail("ValidationError", "1 to 20 resource ARNs must be specified, not %d", len(arns))
	}
	out := make([]*map[string]string, 0, len(arns))
	for _, arn := range arns {
		b, errB := a.loadBalancer(&arn)
		g, errG := a.targetGroup(&arn)
		l, errL := a.listener(&arn)
		switch {
		case b != nil:
			out = append(out, &b.Tags)
		case g != nil:
			out = append(out, &g.Tags)
		case l != nil:
			out = append(out, &l.Tags)
		default:
			return nil, firstNotFound(errB, errG, errL)
		}
	}
	return out, nil
}

// firstNotFound returns the error that says more than that the ARN is of
// another kind.
func firstNotFound(errs ...error) error {
	for _, err := range errs {
		var api smithy.APIError
		if errors.As(err, &api) && api.ErrorCode() != "ValidationError" {
			return err
		}
	}
	return errs[0]
}

func (a *AWS) addELBTags(in *elb.AddTagsInput) (*elb.AddTagsOutput, error) {
	things, err := a.tagged(in.ResourceArns)
	if err != nil {
		return nil, err
	}
	all := make([]map[string]string, len(things))
	for i, tags := range things {
		if all[i], err = readTags(elbTagRules(), *tags, in.Tags, func(t types.Tag) (*string, *string) { return t.Key, t.Value }); err != nil {
			return nil, err
		}
	}
	for i, tags := range things {
		*tags = all[i]
	}
	return &elb.AddTagsOutput{}, nil
}

func (a *AWS) removeELBTags(in *elb.RemoveTagsInput) (*elb.RemoveTagsOutput, error) {
	things, err := a.tagged(in.ResourceArns)
	if err != nil {
		return nil, err
	}
	for _, tags := range things {
		left := maps.Clone(*tags)
		for _, k := range in.TagKeys {
			delete(left, k)
		}
		*tags = left
	}
	return &elb.RemoveTagsOutput{}, nil
}

func (a *AWS) describeELBTags(in *elb.DescribeTagsInput) (*elb.DescribeTagsOutput, error) {
	things, err := a.tagged(in.ResourceArns)
	if err != nil {
		return nil, err
	}
	out := &elb.DescribeTagsOutput{}
	for i, tags := range things {
		out.TagDescriptions = append(out.TagDescriptions, types.TagDescription{
			ResourceArn: aws.String(in.ResourceArns[i]),
			Tags:        writeTags(*tags, func(k, v *string) types.Tag { return types.Tag{Key: k, Value: v} }),
		})
	}
	return out, nil
}

// elbTagged lists the resources of Elastic Load Balancing.
func (a *AWS) elbTagged() (all []Tagged) {
	for arn, b := range a.state.ELB.LoadBalancers {
		all = append(all, Tagged{ARN: arn, Tags: b.Tags, Born: b.Born})
	}
	for arn, g := range a.state.ELB.TargetGroups {
		all = append(all, Tagged{ARN: arn, Tags: g.Tags, Born: g.Born})
	}
	for arn, l := range a.state.ELB.Listeners {
		all = append(all, Tagged{ARN: arn, Tags: l.Tags, Born: l.Born})
	}
	for name, b := range a.state.ELB.Classic {
		all = append(all, Tagged{ARN: a.regionalARN("elasticloadbalancing", "loadbalancer/"+name), Tags: b.Tags, Born: b.Born})
	}
	return all
}
