package eks

import (
	"maps"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/eks/types"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim/core"
)

func (svc *Service) simulateTags() {
	core.On(svc.Account, svc.tagResource, "ResourceArn", "Tags")
	core.On(svc.Account, svc.untagResource, "ResourceArn", "TagKeys")
	core.On(svc.Account, svc.listTags, "ResourceArn")
}

// tagsOf returns the tags of the EKS resource with an ARN.
func (svc *Service) tagsOf(arn *string) (*map[string]string, error) {
	all := map[string]*map[string]string{}
	for _, c := range svc.state.Clusters {
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
			all[svc.podIdentityARN(c, x)] = &x.Tags
		}
	}
	tags, ok := all[aws.ToString(arn)]
	if !ok {
		return nil, &types.NotFoundException{Message: aws.String("Resource was not found: " + aws.ToString(arn))}
	}
	return tags, nil
}

func (svc *Service) tagResource(in *eks.TagResourceInput) (*eks.TagResourceOutput, error) {
	tags, err := svc.tagsOf(in.ResourceArn)
	if err != nil {
		return nil, err
	}
	all := maps.Clone(*tags)
	if all == nil {
		all = map[string]string{}
	}
	maps.Copy(all, in.Tags)
	if all, err = checkTags(all); err != nil {
		return nil, &types.BadRequestException{Message: aws.String(err.Error())}
	}
	*tags = all
	return &eks.TagResourceOutput{}, nil
}

func (svc *Service) untagResource(in *eks.UntagResourceInput) (*eks.UntagResourceOutput, error) {
	tags, err := svc.tagsOf(in.ResourceArn)
	if err != nil {
		return nil, err
	}
	for _, k := range in.TagKeys {
		delete(*tags, k)
	}
	return &eks.UntagResourceOutput{}, nil
}

func (svc *Service) listTags(in *eks.ListTagsForResourceInput) (*eks.ListTagsForResourceOutput, error) {
	tags, err := svc.tagsOf(in.ResourceArn)
	if err != nil {
		return nil, err
	}
	return &eks.ListTagsForResourceOutput{Tags: maps.Clone(*tags)}, nil
}

// Tagged lists the clusters, their add-ons and their pod identities.
func (svc *Service) Tagged() (all []core.Tagged) {
	for _, c := range svc.state.Clusters {
		all = append(all, core.Tagged{ARN: c.ARN, Tags: c.Tags, Born: c.Born})
		for _, d := range c.Addons {
			all = append(all, core.Tagged{ARN: d.ARN, Tags: d.Tags, Born: d.Born})
		}
		for _, p := range c.PodIdentities {
			all = append(all, core.Tagged{ARN: svc.podIdentityARN(c, p), Tags: p.Tags, Born: p.Born})
		}
	}
	return all
}
