package awssim

import (
	"cmp"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
)

func (a *AWS) simulateAutoScaling() {
	on(a, a.createAutoScalingGroup, "AutoScalingGroupName", "MinSize", "MaxSize", "DesiredCapacity", "VPCZoneIdentifier", "LaunchTemplate", "MixedInstancesPolicy",
		"DefaultCooldown", "DefaultInstanceWarmup", "HealthCheckGracePeriod", "HealthCheckType", "CapacityRebalance", "MaxInstanceLifetime",
		"NewInstancesProtectedFromScaleIn", "TerminationPolicies", "Tags", "LifecycleHookSpecificationList")
	on(a, a.updateAutoScalingGroup, "AutoScalingGroupName", "MinSize", "MaxSize", "DesiredCapacity", "VPCZoneIdentifier", "LaunchTemplate", "MixedInstancesPolicy",
		"DefaultCooldown", "DefaultInstanceWarmup", "HealthCheckGracePeriod", "HealthCheckType", "CapacityRebalance", "MaxInstanceLifetime",
		"NewInstancesProtectedFromScaleIn", "TerminationPolicies")
	on(a, a.describeAutoScalingGroups, "AutoScalingGroupNames", "Filters", "MaxRecords", "NextToken")
	on(a, a.deleteAutoScalingGroup, "AutoScalingGroupName", "ForceDelete")
	on(a, a.setDesiredCapacity, "AutoScalingGroupName", "DesiredCapacity")
	on(a, a.terminateInstanceInAutoScalingGroup, "InstanceId", "ShouldDecrementDesiredCapacity")
	on(a, a.describeScalingActivities, "AutoScalingGroupName", "ActivityIds", "MaxRecords", "NextToken")
	a.simulateScalingTags()
	a.simulateScalingHooks()
	a.simulateInstanceRefreshes()
}

// scalingGroup returns the group of that name.
func (a *AWS) scalingGroup(name *string) (*ScalingGroup, error) {
	g, ok := a.state.AutoScaling.Groups[aws.ToString(name)]
	if !ok {
		return nil, invalidGroup("AutoScalingGroup name not found - AutoScalingGroup '%s' not found", aws.ToString(name))
	}
	return g, nil
}

// changeable returns a group that a call may change.
func (a *AWS) changeable(name *string) (*ScalingGroup, error) {
	g, err := a.scalingGroup(name)
	if err == nil && g.Deleting {
		return nil, invalidGroup("The AutoScaling group may not be modified while it is pending delete")
	}
	return g, err
}

func (a *AWS) createAutoScalingGroup(in *autoscaling.CreateAutoScalingGroupInput) (*autoscaling.CreateAutoScalingGroupOutput, error) {
	name := aws.ToString(in.AutoScalingGroupName)
	if name == "" || len(name) > 255 || strings.Contains(name, ":") {
		return nil, invalidGroup("the name %q of a group has 1 to 255 characters and no colon", name)
	}
	if old, exists := a.state.AutoScaling.Groups[name]; exists {
		pending := ""
		if old.Deleting {
			pending = " and is pending delete.  Please wait until Autoscaling completes the deletion process before creating another group with the same name."
		}
		return nil, fail("AlreadyExists", "AutoScalingGroup by this name already exists - A group with the name %s already exists%s", name, pending)
	}
	if in.MinSize == nil || in.MaxSize == nil {
		return nil, invalidGroup("a group needs a minimum and a maximum size")
	}
	g := &ScalingGroup{
		Name: name, Born: a.now(), Looked: a.now(), Cooldown: 300, HealthCheck: "EC2", Policies: []string{"Default"},
		Suspended: map[string]bool{}, Tags: map[string]ScalingTag{}, Hooks: map[string]*ScalingHook{}, Desired: *in.MinSize,
	}
	if err := a.configure(g, recast[autoscaling.UpdateAutoScalingGroupInput](in)); err != nil {
		return nil, err
	}
	if err := a.tagScaling(g, name, in.Tags); err != nil {
		return nil, err
	}
	for _, h := range in.LifecycleHookSpecificationList {
		if err := a.putHook(g, recast[autoscaling.PutLifecycleHookInput](h)); err != nil {
			return nil, err
		}
	}
	if most := 500; len(a.state.AutoScaling.Groups) >= most { // "Quotas for Auto Scaling resources and groups"
		return nil, fail("LimitExceeded", "you have already reached the limit of %d groups", most)
	}
	id := a.hash()
	g.ARN = a.regionalARN("autoscaling", "autoScalingGroup:"+id[:8]+"-"+id[8:12]+"-"+id[12:]+"-autoscaling:autoScalingGroupName/"+name)
	a.state.AutoScaling.Groups[name] = g
	return &autoscaling.CreateAutoScalingGroupOutput{}, nil
}

func (a *AWS) updateAutoScalingGroup(in *autoscaling.UpdateAutoScalingGroupInput) (*autoscaling.UpdateAutoScalingGroupOutput, error) {
	g, err := a.changeable(in.AutoScalingGroupName)
	if err != nil {
		return nil, err
	}
	if g.OfEKS {
		return nil, notSimulated("UpdateAutoScalingGroup: the group of a node group of EKS")
	}
	changed := *g
	if err := a.configure(&changed, *in); err != nil {
		return nil, err
	}
	*g = changed
	return &autoscaling.UpdateAutoScalingGroupOutput{}, nil
}

// describeAutoScalingGroups tells of the groups that there are: names of
// others are no error.
func (a *AWS) describeAutoScalingGroups(in *autoscaling.DescribeAutoScalingGroupsInput) (*autoscaling.DescribeAutoScalingGroupsOutput, error) {
	if err := records(in.MaxRecords); err != nil {
		return nil, err
	}
	keep, err := scalingFilters(in.Filters)
	if err != nil {
		return nil, err
	}
	var list []types.AutoScalingGroup
	for _, g := range byKey(a.state.AutoScaling.Groups) {
		asked := len(in.AutoScalingGroupNames) == 0 || slices.Contains(in.AutoScalingGroupNames, g.Name)
		if asked && a.visible(g.Born) && keep(g) {
			list = append(list, a.scalingGroupOut(g))
		}
	}
	part, next, err := page(a, list, in.NextToken, or(in.MaxRecords, 50), 100)
	return &autoscaling.DescribeAutoScalingGroupsOutput{AutoScalingGroups: part, NextToken: next}, err
}

// records checks how long a page is asked to be.
func records(n *int32) error {
	if most := int32(100); n != nil && (*n < 1 || *n > most) {
		return invalidGroup("1 validation error detected: Value '%d' at 'maxRecords' failed to satisfy constraint: Member must have value between 1 and %d", *n, most)
	}
	return nil
}

func or(n *int32, usual int32) *int32 {
	if n == nil {
		return &usual
	}
	return n
}

// scalingFilters returns what decides whether a group passes all filters.
func scalingFilters(filters []types.Filter) (func(*ScalingGroup) bool, error) {
	for _, f := range filters {
		name := aws.ToString(f.Name)
		if name != "tag-key" && name != "tag-value" && !strings.HasPrefix(name, "tag:") {
			return nil, invalidGroup("Filter type %s is not correct. Allowed Filter types are: tag-key, tag-value, tag:<key>", name)
		}
	}
	passes := func(f types.Filter, key, value string) bool {
		switch name := aws.ToString(f.Name); name {
		case "tag-key":
			return slices.Contains(f.Values, key)
		case "tag-value":
			return slices.Contains(f.Values, value)
		default:
			return name == "tag:"+key && (len(f.Values) == 0 || slices.Contains(f.Values, value))
		}
	}
	return func(g *ScalingGroup) bool {
		return !slices.ContainsFunc(filters, func(f types.Filter) bool {
			return !slices.ContainsFunc(sortedKeys(g.Tags), func(k string) bool { return passes(f, k, g.Tags[k].Value) })
		})
	}, nil
}

// deleteAutoScalingGroup begins the end of a group. With force its instances
// go first, without a word of its hooks; without, there may be none.
func (a *AWS) deleteAutoScalingGroup(in *autoscaling.DeleteAutoScalingGroupInput) (*autoscaling.DeleteAutoScalingGroupOutput, error) {
	g, err := a.scalingGroup(in.AutoScalingGroupName)
	if err != nil {
		return nil, err
	}
	if g.OfEKS {
		return nil, notSimulated("DeleteAutoScalingGroup: the group of a node group of EKS")
	}
	if !aws.ToBool(in.ForceDelete) {
		busy := slices.ContainsFunc(g.Instances, func(i *ScalingInstance) bool { return i.State != types.LifecycleStateInService })
		switch {
		case busy:
			return nil, fail("ScalingActivityInProgress", "You cannot delete an AutoScalingGroup while there are scaling activities in progress for that group.")
		case len(g.Instances) > 0:
			return nil, fail("ResourceInUse", "You cannot delete an AutoScalingGroup while there are instances or pending Spot instance request(s) still in the group.")
		}
	}
	g.Deleting = true
	for _, i := range g.Instances {
		a.dismiss(g, i, "the group is deleted")
	}
	return &autoscaling.DeleteAutoScalingGroupOutput{}, nil
}

// setDesiredCapacity does not honour the cooldown unless asked to, which is
// not simulated.
func (a *AWS) setDesiredCapacity(in *autoscaling.SetDesiredCapacityInput) (*autoscaling.SetDesiredCapacityOutput, error) {
	g, err := a.changeable(in.AutoScalingGroupName)
	if err != nil {
		return nil, err
	}
	n := aws.ToInt32(in.DesiredCapacity)
	switch {
	case g.OfEKS:
		return nil, notSimulated("SetDesiredCapacity: the group of a node group of EKS")
	case n > g.Max:
		return nil, invalidGroup("New SetDesiredCapacity value %d is above max value %d for the AutoScalingGroup.", n, g.Max)
	case n < g.Min:
		return nil, invalidGroup("New SetDesiredCapacity value %d is below min value %d for the AutoScalingGroup.", n, g.Min)
	}
	g.Desired = n
	return &autoscaling.SetDesiredCapacityOutput{}, nil
}

func (a *AWS) terminateInstanceInAutoScalingGroup(in *autoscaling.TerminateInstanceInAutoScalingGroupInput) (*autoscaling.TerminateInstanceInAutoScalingGroupOutput, error) {
	for _, g := range byKey(a.state.AutoScaling.Groups) {
		for _, i := range g.Instances {
			if i.ID != aws.ToString(in.InstanceId) || g.OfEKS {
				continue
			}
			if aws.ToBool(in.ShouldDecrementDesiredCapacity) {
				if g.Desired-1 < g.Min {
					return nil, invalidGroup("Currently, desiredSize equals minSize (%d). Terminating instance without replacement will violate group's min size constraint. Either set shouldDecrementDesiredCapacity flag to false or lower group's min size.", g.Min)
				}
				g.Desired--
			}
			if i.leaving() {
				return nil, fail("ScalingActivityInProgress", "the instance %s is being terminated", i.ID)
			}
			a.retire(g, i, "a user asked for it")
			out := types.Activity{}
			for _, x := range g.Activities {
				if x.ID == i.Activity {
					out = g.activityOut(x)
				}
			}
			return &autoscaling.TerminateInstanceInAutoScalingGroupOutput{Activity: &out}, nil
		}
	}
	return nil, invalidGroup("Instance Id not found - No managed instance found for instance ID: %s", aws.ToString(in.InstanceId))
}

func (g *ScalingGroup) activityOut(x *ScalingActivity) types.Activity {
	out := types.Activity{
		ActivityId: aws.String(x.ID), AutoScalingGroupName: aws.String(g.Name), AutoScalingGroupARN: aws.String(g.ARN), AutoScalingGroupState: nil,
		Description: aws.String(x.Description), Cause: aws.String(x.Cause), StatusMessage: text(x.Message), StatusCode: x.Status,
		StartTime: aws.Time(x.Began), Progress: aws.Int32(50),
	}
	if !x.Ended.IsZero() {
		out.EndTime, out.Progress = aws.Time(x.Ended), aws.Int32(100)
	}
	return out
}

// describeScalingActivities tells what groups did, the newest first. Groups
// that are gone have left no activities here; AWS keeps them for six weeks.
func (a *AWS) describeScalingActivities(in *autoscaling.DescribeScalingActivitiesInput) (*autoscaling.DescribeScalingActivitiesOutput, error) {
	if err := records(in.MaxRecords); err != nil {
		return nil, err
	}
	groups := byKey(a.state.AutoScaling.Groups)
	if in.AutoScalingGroupName != nil {
		g, err := a.scalingGroup(in.AutoScalingGroupName)
		if err != nil {
			return nil, err
		}
		groups = []*ScalingGroup{g}
	}
	var list []types.Activity
	for _, g := range groups {
		for _, x := range slices.Backward(g.Activities) {
			if len(in.ActivityIds) == 0 || slices.Contains(in.ActivityIds, x.ID) {
				list = append(list, g.activityOut(x))
			}
		}
	}
	slices.SortStableFunc(list, func(x, y types.Activity) int { return cmp.Compare(y.StartTime.UnixNano(), x.StartTime.UnixNano()) })
	part, next, err := page(a, list, in.NextToken, in.MaxRecords, 100)
	return &autoscaling.DescribeScalingActivitiesOutput{Activities: part, NextToken: next}, err
}

func invalidGroup(format string, args ...any) error { return fail("ValidationError", format, args...) }

// ScalingGroupNamed returns the group of a name, or nil.
func (a *AWS) ScalingGroupNamed(name string) *ScalingGroup { return a.state.AutoScaling.Groups[name] }

// AddScalingGroup adds a group that another service keeps at its size.
func (a *AWS) AddScalingGroup(g *ScalingGroup) { a.state.AutoScaling.Groups[g.Name] = g }

// RemoveScalingGroup removes a group, and leaves its instances alone.
func (a *AWS) RemoveScalingGroup(name string) { delete(a.state.AutoScaling.Groups, name) }
