package awssim

import (
	"maps"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/eks/types"
)

func (a *AWS) simulateEKSTags() {
	on(a, a.tagEKS, "ResourceArn", "Tags")
	on(a, a.untagEKS, "ResourceArn", "TagKeys")
	on(a, a.listEKSTags, "ResourceArn")
}

// eksTagged returns the tags of whatever of EKS has that ARN.
func (a *AWS) eksTagged(arn *string) (*map[string]string, error) {
	all := map[string]*map[string]string{}
	for _, c := range a.state.EKS.Clusters {
		all[c.ARN] = &c.Tags
		for _, x := range c.Addons {
			all[x.ARN] = &x.Tags
		}
		for _, x := range c.NodeGroups {
			all[x.ARN] = &x.Tags
		}
		for _, x := range c.Fargate {
			all[x.ARN] = &x.Tags
		}
		for _, x := range c.Access {
			all[x.ARN] = &x.Tags
		}
		for _, x := range c.Providers {
			all[x.ARN] = &x.Tags
		}
		for _, x := range c.PodIdentities {
			all[a.podIdentityARN(c, x)] = &x.Tags
		}
	}
	tags, ok := all[aws.ToString(arn)]
	if !ok {
		return nil, &types.NotFoundException{Message: aws.String("Resource was not found: " + aws.ToString(arn))}
	}
	return tags, nil
}

func (a *AWS) tagEKS(in *eks.TagResourceInput) (*eks.TagResourceOutput, error) {
	tags, err := a.eksTagged(in.ResourceArn)
	if err != nil {
		return nil, err
	}
	all := maps.Clone(*tags)
	if all == nil {
		all = map[string]string{}
	}
	maps.Copy(all, in.Tags)
	if all, err = eksTags(all); err != nil {
		return nil, &types.BadRequestException{Message: aws.String(err.Error())}
	}
	*tags = all
	return &eks.TagResourceOutput{}, nil
}

func (a *AWS) untagEKS(in *eks.UntagResourceInput) (*eks.UntagResourceOutput, error) {
	tags, err := a.eksTagged(in.ResourceArn)
	if err != nil {
		return nil, err
	}
	for _, k := range in.TagKeys {
		delete(*tags, k)
	}
	return &eks.UntagResourceOutput{}, nil
}

func (a *AWS) listEKSTags(in *eks.ListTagsForResourceInput) (*eks.ListTagsForResourceOutput, error) {
	tags, err := a.eksTagged(in.ResourceArn)
	if err != nil {
		return nil, err
	}
	return &eks.ListTagsForResourceOutput{Tags: maps.Clone(*tags)}, nil
}

// eksResources lists the clusters, their add-ons and their pod identities.
func (a *AWS) eksResources() (all []Tagged) {
	for _, c := range a.state.EKS.Clusters {
		all = append(all, Tagged{ARN: c.ARN, Tags: c.Tags, Born: c.Born})
		for _, d := range c.Addons {
			all = append(all, Tagged{ARN: d.ARN, Tags: d.Tags, Born: d.Born})
		}
		for _, p := range c.PodIdentities {
			all = append(all, Tagged{ARN: a.podIdentityARN(c, p), Tags: p.Tags, Born: p.Born})
		}
	}
	return all
}
