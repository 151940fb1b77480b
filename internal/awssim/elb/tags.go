package elb

import (
	"errors"
	"maps"

	"github.com/aws/aws-sdk-go-v2/aws"
	elb "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2"
	"github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2/types"
	"github.com/aws/smithy-go"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim/core"
)

func (svc *Service) simulateTags() {
	core.On(svc.Account, svc.addTags, "ResourceArns", "Tags")
	core.On(svc.Account, svc.removeTags, "ResourceArns", "TagKeys")
	core.On(svc.Account, svc.describeTags, "ResourceArns")
}

// readTags adds the tags of a call to those of a resource.
func readTags(old map[string]string, tags []types.Tag) (map[string]string, error) {
	return core.ReadTags(tagRules(), old, tags, func(t types.Tag) (*string, *string) { return t.Key, t.Value })
}

// tagged returns the tags of resources, at most 20.
func (svc *Service) tagged(arns []string) ([]*map[string]string, error) {
	if len(arns) == 0 || len(arns) > 20 {
		return nil, core.Fail("ValidationError", "1 to 20 resource ARNs must be specified, not %d", len(arns))
	}
	out := make([]*map[string]string, 0, len(arns))
	for _, arn := range arns {
		b, errB := svc.loadBalancer(&arn)
		g, errG := svc.targetGroup(&arn)
		l, errL := svc.listener(&arn)
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

// firstNotFound returns the most specific of several "not found" errors.
func firstNotFound(errs ...error) error {
	for _, err := range errs {
		var api smithy.APIError
		if errors.As(err, &api) && api.ErrorCode() != "ValidationError" {
			return err
		}
	}
	return errs[0]
}

func (svc *Service) addTags(in *elb.AddTagsInput) (*elb.AddTagsOutput, error) {
	things, err := svc.tagged(in.ResourceArns)
	if err != nil {
		return nil, err
	}
	all := make([]map[string]string, len(things))
	for i, tags := range things {
		if all[i], err = readTags(*tags, in.Tags); err != nil {
			return nil, err
		}
	}
	for i, tags := range things {
		*tags = all[i]
	}
	return &elb.AddTagsOutput{}, nil
}

func (svc *Service) removeTags(in *elb.RemoveTagsInput) (*elb.RemoveTagsOutput, error) {
	things, err := svc.tagged(in.ResourceArns)
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

func (svc *Service) describeTags(in *elb.DescribeTagsInput) (*elb.DescribeTagsOutput, error) {
	things, err := svc.tagged(in.ResourceArns)
	if err != nil {
		return nil, err
	}
	out := &elb.DescribeTagsOutput{}
	for i, tags := range things {
		out.TagDescriptions = append(out.TagDescriptions, types.TagDescription{
			ResourceArn: aws.String(in.ResourceArns[i]),
			Tags:        core.WriteTags(*tags, func(k, v *string) types.Tag { return types.Tag{Key: k, Value: v} }),
		})
	}
	return out, nil
}

// Tagged lists the resources of Elastic Load Balancing.
func (svc *Service) Tagged() (all []core.Tagged) {
	for arn, b := range svc.state.LoadBalancers {
		all = append(all, core.Tagged{ARN: arn, Tags: b.Tags, Born: b.Born})
	}
	for arn, g := range svc.state.TargetGroups {
		all = append(all, core.Tagged{ARN: arn, Tags: g.Tags, Born: g.Born})
	}
	for arn, l := range svc.state.Listeners {
		all = append(all, core.Tagged{ARN: arn, Tags: l.Tags, Born: l.Born})
	}
	for name, b := range svc.state.Classic {
		all = append(all, core.Tagged{ARN: svc.RegionalARN("elasticloadbalancing", "loadbalancer/"+name), Tags: b.Tags, Born: b.Born})
	}
	return all
}
