package autoscaling

import (
	"context"
	"fmt"
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/autoscaling"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/ec2"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// CheckCreation implements graph.CheckedCreation: the name of a group is unique in its account and region (CreateAutoScalingGroup, API reference).
func (g *Group) CheckCreation(ctx context.Context, c *cloud.Clients) (refusal string, err error) {
	out, err := c.AutoScaling.DescribeAutoScalingGroups(ctx, &autoscaling.DescribeAutoScalingGroupsInput{AutoScalingGroupNames: []string{g.Name}})
	if err != nil {
		return "", err
	}
	for _, x := range out.AutoScalingGroups {
		if s := groupState(x); !s.IsOwned(c) {
			return fmt.Sprintf("an Auto Scaling group named %s exists that is not the cluster's: delete it, or give the pool another name", g.Name), nil
		}
	}
	return "", nil
}

// Check implements graph.Checked: Auto Scaling refuses instance types that do not exist, or that have
// another architecture than the image of the launch template. Machines that fetch their boot data need a way to do so.
func (g *Group) Check(ctx context.Context, c *cloud.Clients) (refusal string, err error) {
	if g.Content != nil && g.Content.StoredAs() != "" && g.initial() > 0 {
		for _, s := range g.Subnets {
			if refusal, err = ec2.NoWayOut(ctx, c, s, nil); refusal != "" || err != nil {
				return refusal, err
			}
		}
	}
	if refusal, err = g.checkAbsent(ctx, c); refusal != "" || err != nil {
		return refusal, err
	}
	if refusal, err = g.checkReservation(ctx, c); refusal != "" || err != nil {
		return refusal, err
	}
	if refusal, err = g.checkTenancy(ctx, c); refusal != "" || err != nil {
		return refusal, err
	}
	if refusal, err = CheckHooks(ctx, c, g.Spec.AWSLifecycleHooks); refusal != "" || err != nil {
		return refusal, err
	}
	return g.checkOverrides(ctx, c)
}

func (g *Group) checkAbsent(ctx context.Context, c *cloud.Clients) (refusal string, err error) {
	return ec2.CheckAbsent(ctx, c, g.Content, g.Find, func(have *GroupState) bool {
		return g.added(have) == 0 && !g.Diff(have).Has("machines", "subnet", "launchTemplate", "mixedInstancesPolicy")
	})
}

// checkReservation looks at the capacity reservation in which the machines are launched.
func (g *Group) checkReservation(ctx context.Context, c *cloud.Clients) (refusal string, err error) {
	return g.Content.CheckReservation(ctx, c, g.Subnets, g.initial() > 0)
}

// checkTenancy looks at the tenancy of the VPC in which the machines are launched.
func (g *Group) checkTenancy(ctx context.Context, c *cloud.Clients) (refusal string, err error) {
	var names []string
	if p := g.Spec.MixedInstancesPolicy; p != nil {
		for _, o := range p.Overrides {
			names = append(names, o.InstanceType)
		}
	}
	if g.initial() == 0 {
		return "", nil
	}
	return g.Content.CheckTenancy(ctx, c, names, g.Subnets)
}

// Addresses implements ec2.AddressUser.
func (g *Group) Addresses(_ plan.Step, have graph.State) ec2.AddressUse {
	return ec2.AddressUse{Subnets: g.Subnets, Takes: int(g.added(have))}
}

func (g *Group) checkOverrides(ctx context.Context, c *cloud.Clients) (refusal string, err error) {
	if g.Spec.MixedInstancesPolicy == nil || len(g.Spec.MixedInstancesPolicy.Overrides) == 0 {
		return "", nil
	}
	var names []string
	for _, o := range g.Spec.MixedInstancesPolicy.Overrides {
		names = append(names, o.InstanceType)
	}
	slices.Sort(names)
	names = slices.Compact(names)
	found, err := ec2.InstanceTypes(ctx, c, names)
	if err != nil {
		return "", err
	}
	image := ec2.ImageState{}
	if g.Content != nil && g.Content.Image != nil {
		image, _ = g.Content.Image.Found()
	}
	for _, name := range names {
		if refusal := g.unfit(name, found[name], image); refusal != "" {
			return "mixedInstancesPolicy.overrides: " + refusal, nil
		}
		if t := found[name]; t.VCPUs == 0 && t.Zones != nil {
			return fmt.Sprintf("mixedInstancesPolicy.overrides: there is no instance type %s in %s", name, c.Region), nil
		}
	}
	return "", nil
}

// unfit says why machines of an instance type do not start from the image of the group; "" if they do, or if the type is not known.
func (g *Group) unfit(name string, t ec2.InstanceType, image ec2.ImageState) string {
	switch want := image.Architecture; {
	case t.VCPUs == 0:
		return ""
	case g.Content != nil && t.TooManyVolumes(name, len(g.Content.Spec.NonRootVolumes), 1) != "":
		return t.TooManyVolumes(name, len(g.Content.Spec.NonRootVolumes), 1) + ": remove some, or use another type"
	case want != "" && t.Architecture != want:
		return fmt.Sprintf("the instance type %s is %s, and the image is %s: use types of one architecture", name, t.Architecture, want)
	}
	return t.Unfit(name, image)
}
