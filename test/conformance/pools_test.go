package conformance

import (
	"errors"
	"fmt"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	scaling "github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
)

// launchTemplates sends queries about launch templates, and returns the ID of one for
// Auto Scaling groups.
func (s *suite) launchTemplates() string {
	data := func(kind types.InstanceType) *types.RequestLaunchTemplateData {
		return &types.RequestLaunchTemplateData{
			ImageId: &s.image, InstanceType: kind, SecurityGroupIds: []string{s.group}, // no user data: moto's groups cannot launch with it
			MetadataOptions: &types.LaunchTemplateInstanceMetadataOptionsRequest{HttpTokens: types.LaunchTemplateHttpTokensStateRequired},
			TagSpecifications: []types.LaunchTemplateTagSpecificationRequest{
				{ResourceType: types.ResourceTypeInstance, Tags: []types.Tag{{Key: aws.String("Name"), Value: aws.String("pool")}}},
			},
		}
	}
	create := func() (*ec2.CreateLaunchTemplateOutput, error) { // the SDK sets a client token in its input
		return s.ec2.CreateLaunchTemplate(
			s.ctx,
			&ec2.CreateLaunchTemplateInput{
				LaunchTemplateName: aws.String("pool"),
				LaunchTemplateData: data("t3.medium"),
				TagSpecifications:  tagged("launch-template", "pool"),
			},
		)
	}
	made, err := create()
	s.need(err)
	id := *made.LaunchTemplate.LaunchTemplateId
	s.see("launch template: create", err, *made.LaunchTemplate.DefaultVersionNumber, *made.LaunchTemplate.LatestVersionNumber)
	_, err = create()
	s.see("launch template: create again", err)
	_, err = s.ec2.CreateLaunchTemplate(s.ctx, &ec2.CreateLaunchTemplateInput{LaunchTemplateName: aws.String("a pool"), LaunchTemplateData: data("t3.medium")})
	s.see("launch template: create with a blank in its name", err)
	for _, kind := range []types.InstanceType{"t3.large", "m5.large"} {
		v, err := s.ec2.CreateLaunchTemplateVersion(s.ctx, &ec2.CreateLaunchTemplateVersionInput{LaunchTemplateId: &id, LaunchTemplateData: data(kind)})
		s.need(err)
		s.see("launch template: version of "+string(kind), err, *v.LaunchTemplateVersion.VersionNumber)
	}
	versions := func(question string, in ec2.DescribeLaunchTemplateVersionsInput) {
		out, err := s.ec2.DescribeLaunchTemplateVersions(s.ctx, &in)
		if err != nil {
			s.see(question, err)
			return
		}
		var said []string
		for _, v := range out.LaunchTemplateVersions {
			said = append(said, fmt.Sprintf("%d:%s", *v.VersionNumber, v.LaunchTemplateData.InstanceType))
		}
		slices.Sort(said)
		s.see(question, nil, said)
	}
	versions("launch template: its versions", ec2.DescribeLaunchTemplateVersionsInput{LaunchTemplateId: &id})
	versions("launch template: the latest", ec2.DescribeLaunchTemplateVersionsInput{LaunchTemplateName: aws.String("pool"), Versions: []string{"$Latest"}})
	versions(
		"launch template: the latest and the default",
		ec2.DescribeLaunchTemplateVersionsInput{LaunchTemplateId: &id, Versions: []string{"$Latest", "$Default"}},
	)
	versions("launch template: a version that is not there", ec2.DescribeLaunchTemplateVersionsInput{LaunchTemplateId: &id, Versions: []string{"9"}})
	versions("launch template: versions of one that is not there", ec2.DescribeLaunchTemplateVersionsInput{LaunchTemplateId: aws.String("lt-0123456789abcdef0")})
	gone, err := s.ec2.DeleteLaunchTemplateVersions(s.ctx, &ec2.DeleteLaunchTemplateVersionsInput{LaunchTemplateId: &id, Versions: []string{"2"}})
	if err != nil {
		s.see("launch template: delete a version", errors.New("no answer that can be read")) // moto returns an HTML page
	} else {
		s.see("launch template: delete a version", nil, len(gone.SuccessfullyDeletedLaunchTemplateVersions), len(gone.UnsuccessfullyDeletedLaunchTemplateVersions))
	}
	found, err := s.ec2.DescribeLaunchTemplates(s.ctx, &ec2.DescribeLaunchTemplatesInput{Filters: filter("tag:Name", "pool")})
	s.need(err)
	s.see("launch template: find by tag", err, len(found.LaunchTemplates), *found.LaunchTemplates[0].LatestVersionNumber, names(found.LaunchTemplates[0].Tags))
	_, err = s.ec2.DescribeLaunchTemplates(s.ctx, &ec2.DescribeLaunchTemplatesInput{LaunchTemplateNames: []string{"none"}})
	s.see("launch template: describe one that is not there", err)
	return id
}

// pools sends queries about Auto Scaling groups, and deletes them.
func (s *suite) pools() {
	id, name := s.launchTemplates(), aws.String("pool")
	create := func(change func(*autoscaling.CreateAutoScalingGroupInput)) error {
		in := &autoscaling.CreateAutoScalingGroupInput{
			AutoScalingGroupName: name,
			MinSize:              aws.Int32(0),
			MaxSize:              aws.Int32(3),
			DesiredCapacity:      aws.Int32(1),
			VPCZoneIdentifier:    &s.subnet,
			LaunchTemplate:       &scaling.LaunchTemplateSpecification{LaunchTemplateId: &id, Version: aws.String("$Latest")},
			Tags: []scaling.Tag{
				{ResourceId: name, ResourceType: aws.String("auto-scaling-group"), Key: aws.String("team"), Value: aws.String("red"), PropagateAtLaunch: aws.Bool(true)},
			},
		}
		change(in)
		_, err := s.scaling.CreateAutoScalingGroup(s.ctx, in)
		return err
	}
	s.see("group: create from a template that is not there", create(func(in *autoscaling.CreateAutoScalingGroupInput) {
		in.LaunchTemplate.LaunchTemplateId = aws.String("lt-0123456789abcdef0")
	}))
	s.see("group: create from nothing", create(func(in *autoscaling.CreateAutoScalingGroupInput) { in.LaunchTemplate = nil }))
	s.see("group: create with more machines than it may have", create(func(in *autoscaling.CreateAutoScalingGroupInput) { in.DesiredCapacity = aws.Int32(4) }))
	s.need(create(func(*autoscaling.CreateAutoScalingGroupInput) {}))
	s.see("group: create", nil)
	s.settle()
	s.see("group: create again", create(func(*autoscaling.CreateAutoScalingGroupInput) {}))
	describe := func() (g scaling.AutoScalingGroup) {
		out, err := s.scaling.DescribeAutoScalingGroups(
			s.ctx,
			&autoscaling.DescribeAutoScalingGroupsInput{Filters: []scaling.Filter{{Name: aws.String("tag:team"), Values: []string{"red", "blue"}}}},
		)
		s.need(err)
		if len(out.AutoScalingGroups) == 1 {
			g = out.AutoScalingGroups[0]
		}
		return g
	}
	g := describe()
	s.see("group: describe", nil, *g.MinSize, *g.MaxSize, *g.DesiredCapacity, *g.HealthCheckType, *g.DefaultCooldown)
	i := g.Instances[0]
	s.see("group: its machine", nil, i.LifecycleState, *i.HealthStatus, *i.LaunchTemplate.Version, str(i.InstanceType))
	s.machineOf(*i.InstanceId)
	_, err := s.scaling.UpdateAutoScalingGroup(s.ctx, &autoscaling.UpdateAutoScalingGroupInput{AutoScalingGroupName: name, MinSize: aws.Int32(2)})
	s.see("group: raise the minimum", err)
	s.settle()
	s.see("group: then", nil, *describe().DesiredCapacity, len(describe().Instances))
	_, err = s.scaling.UpdateAutoScalingGroup(s.ctx, &autoscaling.UpdateAutoScalingGroupInput{AutoScalingGroupName: aws.String("none"), MinSize: aws.Int32(2)})
	s.see("group: change one that is not there", err)
	s.processes(name)
	_, err = s.scaling.DeleteAutoScalingGroup(s.ctx, &autoscaling.DeleteAutoScalingGroupInput{AutoScalingGroupName: name})
	s.see("group: delete with machines", err)
	_, err = s.scaling.DeleteAutoScalingGroup(s.ctx, &autoscaling.DeleteAutoScalingGroupInput{AutoScalingGroupName: name, ForceDelete: aws.Bool(true)})
	s.see("group: delete by force", err)
	s.settle()
	s.see("group: then it is gone", nil, describe().AutoScalingGroupName == nil)
	_, err = s.scaling.DeleteAutoScalingGroup(s.ctx, &autoscaling.DeleteAutoScalingGroupInput{AutoScalingGroupName: name})
	s.see("group: delete again", err)
	_, err = s.ec2.DeleteLaunchTemplate(s.ctx, &ec2.DeleteLaunchTemplateInput{LaunchTemplateId: &id})
	s.see("launch template: delete", err)
	_, err = s.ec2.DeleteLaunchTemplate(s.ctx, &ec2.DeleteLaunchTemplateInput{LaunchTemplateId: &id})
	s.see("launch template: delete again", err)
}

// machineOf checks a machine that a group has launched.
func (s *suite) machineOf(id string) {
	out, err := s.ec2.DescribeInstances(s.ctx, &ec2.DescribeInstancesInput{InstanceIds: []string{id}})
	s.need(err)
	i := out.Reservations[0].Instances[0]
	var tags []string
	for _, t := range i.Tags {
		tags = append(tags, *t.Key)
	}
	slices.Sort(tags)
	s.see("group: the tags of its machine", nil, tags)
	s.see("group: the type of its machine", nil, i.InstanceType)
}

// processes sends queries about the parts of a group. moto has no instance refresh.
func (s *suite) processes(name *string) {
	_, err := s.scaling.SuspendProcesses(s.ctx, &autoscaling.SuspendProcessesInput{AutoScalingGroupName: name, ScalingProcesses: []string{"AZRebalance"}})
	s.see("group: suspend a process", err)
	_, err = s.scaling.ResumeProcesses(s.ctx, &autoscaling.ResumeProcessesInput{AutoScalingGroupName: name, ScalingProcesses: []string{"AZRebalance"}})
	s.see("group: resume a process", err)
	_, err = s.scaling.PutLifecycleHook(
		s.ctx,
		&autoscaling.PutLifecycleHookInput{
			AutoScalingGroupName: name,
			LifecycleHookName:    aws.String("up"),
			LifecycleTransition:  aws.String("autoscaling:EC2_INSTANCE_LAUNCHING"),
		},
	)
	s.see("lifecycle hook: put", err)
	hooks, err := s.scaling.DescribeLifecycleHooks(s.ctx, &autoscaling.DescribeLifecycleHooksInput{AutoScalingGroupName: name})
	s.need(err)
	h := hooks.LifecycleHooks[0]
	s.see("lifecycle hook: describe", err, *h.HeartbeatTimeout, str(h.DefaultResult))
	_, err = s.scaling.DeleteLifecycleHook(s.ctx, &autoscaling.DeleteLifecycleHookInput{AutoScalingGroupName: name, LifecycleHookName: aws.String("up")})
	s.see("lifecycle hook: delete", err)
	tag := scaling.Tag{
		ResourceId:        name,
		ResourceType:      aws.String("auto-scaling-group"),
		Key:               aws.String("team"),
		Value:             aws.String("blue"),
		PropagateAtLaunch: aws.Bool(false),
	}
	_, err = s.scaling.CreateOrUpdateTags(s.ctx, &autoscaling.CreateOrUpdateTagsInput{Tags: []scaling.Tag{tag}})
	s.see("group: tag", err)
	tags, err := s.scaling.DescribeTags(
		s.ctx,
		&autoscaling.DescribeTagsInput{Filters: []scaling.Filter{{Name: aws.String("auto-scaling-group"), Values: []string{*name}}}},
	)
	s.need(err)
	s.see("group: its tags", err, len(tags.Tags), str(tags.Tags[0].Value), aws.ToBool(tags.Tags[0].PropagateAtLaunch))
}
