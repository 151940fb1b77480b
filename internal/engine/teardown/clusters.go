package teardown

import (
	"context"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
)

// Clusters counts what carries the tag of each cluster of the region, by the
// cluster's name and by kind. Machines and NAT gateways keep their tags for an
// hour after they are gone; those are not counted.
func Clusters(ctx context.Context, c *cloud.Clients) (map[string]map[string]int, error) {
	tags, err := clusterTags(ctx, c)
	if err != nil {
		return nil, err
	}
	live, err := liveThings(ctx, c, tags)
	if err != nil {
		return nil, err
	}
	found := map[string]map[string]int{}
	for _, t := range tags {
		if lingers(t.ResourceType) && !live[aws.ToString(t.ResourceId)] {
			continue
		}
		name := strings.TrimPrefix(aws.ToString(t.Key), cloud.ClusterTagPrefix)
		if found[name] == nil {
			found[name] = map[string]int{}
		}
		found[name][KindOf(t.ResourceType)]++
	}
	return found, nil
}

// lingers reports whether things of a kind keep their tags for a while after
// they are gone.
func lingers(t types.ResourceType) bool {
	return t == types.ResourceTypeInstance || t == types.ResourceTypeNatgateway
}

func clusterTags(ctx context.Context, c *cloud.Clients) ([]types.TagDescription, error) {
	p := ec2.NewDescribeTagsPaginator(c.EC2, &ec2.DescribeTagsInput{
		Filters: []types.Filter{cloud.Filter("key", cloud.ClusterTagPrefix+"*"), cloud.Filter("value", cloud.Owned)},
	})
	return cloud.Pages(ctx, p.HasMorePages, func(ctx context.Context) (*ec2.DescribeTagsOutput, error) { return p.NextPage(ctx) },
		func(o *ec2.DescribeTagsOutput) []types.TagDescription { return typed(o.Tags) })
}

// liveThings returns the IDs of machines and NAT gateways that are not gone.
func liveThings(ctx context.Context, c *cloud.Clients, tags []types.TagDescription) (map[string]bool, error) {
	live := map[string]bool{}
	for _, t := range tags {
		live[string(t.ResourceType)] = true // which kinds there are to be asked for
	}
	tagged := cloud.Filter("tag-key", cloud.ClusterTagPrefix+"*")
	if live[string(types.ResourceTypeInstance)] {
		in := &ec2.DescribeInstancesInput{Filters: []types.Filter{tagged, cloud.Filter("instance-state-name", "pending", "running", "stopping", "stopped", "shutting-down")}}
		for p := ec2.NewDescribeInstancesPaginator(c.EC2, in); p.HasMorePages(); {
			page, err := p.NextPage(ctx)
			if err != nil {
				return nil, err
			}
			for _, r := range page.Reservations {
				for _, i := range r.Instances {
					live[aws.ToString(i.InstanceId)] = true
				}
			}
		}
	}
	if live[string(types.ResourceTypeNatgateway)] {
		in := &ec2.DescribeNatGatewaysInput{Filter: []types.Filter{tagged, cloud.Filter("state", "pending", "available", "deleting")}}
		for p := ec2.NewDescribeNatGatewaysPaginator(c.EC2, in); p.HasMorePages(); {
			page, err := p.NextPage(ctx)
			if err != nil {
				return nil, err
			}
			for _, n := range page.NatGateways {
				live[aws.ToString(n.NatGatewayId)] = true
			}
		}
	}
	return live, nil
}

// typed says of what type tagged things are by their IDs: emulators have names
// of their own for some types.
func typed(tags []types.TagDescription) []types.TagDescription {
	for n, t := range tags {
		switch prefix, _, _ := strings.Cut(aws.ToString(t.ResourceId), "-"); prefix {
		case "nat":
			tags[n].ResourceType = types.ResourceTypeNatgateway
		case "eipalloc":
			tags[n].ResourceType = types.ResourceTypeElasticIp
		}
	}
	return tags
}

// KindOf returns the first word of node IDs for a kind of EC2's.
func KindOf(t types.ResourceType) string {
	switch t { //nolint:exhaustive // EC2 has a hundred kinds; the rest keep their names
	case types.ResourceTypeNatgateway:
		return "nat-gateway"
	case types.ResourceTypeInstance:
		return "machine"
	case types.ResourceTypeEgressOnlyInternetGateway:
		return "egress-only-gateway"
	}
	return string(t)
}
