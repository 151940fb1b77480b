package autoscaling

import (
	"cmp"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling/types"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim/core"
)

func (svc *Service) simulate() {
	settings := []string{
		"AutoScalingGroupName", "MinSize", "MaxSize", "DesiredCapacity", "VPCZoneIdentifier", "LaunchTemplate", "MixedInstancesPolicy",
		"DefaultCooldown", "DefaultInstanceWarmup", "HealthCheckGracePeriod", "HealthCheckType", "CapacityRebalance", "MaxInstanceLifetime",
		"NewInstancesProtectedFromScaleIn", "TerminationPolicies",
	}
	core.On(svc.Account, svc.createAutoScalingGroup, slices.Concat(settings, []string{"Tags", "LifecycleHookSpecificationList"})...)
	core.On(svc.Account, svc.updateAutoScalingGroup, slices.Concat(settings, []string{"DeletionProtection"})...)
	core.On(svc.Account, svc.describeAutoScalingGroups, "AutoScalingGroupNames", "Filters", "MaxRecords", "NextToken")
	core.On(svc.Account, svc.deleteAutoScalingGroup, "AutoScalingGroupName", "ForceDelete")
	core.On(svc.Account, svc.setDesiredCapacity, "AutoScalingGroupName", "DesiredCapacity")
	core.On(svc.Account, svc.terminateInstanceInAutoScalingGroup, "InstanceId", "ShouldDecrementDesiredCapacity")
	core.On(svc.Account, svc.describeScalingActivities, "AutoScalingGroupName", "ActivityIds", "MaxRecords", "NextToken")
	svc.simulateTags()
	svc.simulateHooks()
	svc.simulateInstanceRefreshes()
}

// group returns the group with that name.
func (svc *Service) group(name *string) (*Group, error) {
	g, ok := svc.state.Groups[aws.ToString(name)]
	if !ok {
		return nil, invalid("AutoScalingGroup name not found - AutoScalingGroup '%s' not found", aws.ToString(name))
	}
	return g, nil
}

// changeable returns a group that is not being deleted.
func (svc *Service) changeable(name *string) (*Group, error) {
	g, err := svc.group(name)
	if err == nil && g.Deleting {
		return nil, invalid("The AutoScaling group may not be modified while it is pending delete")
	}
	return g, err
}

func (svc *Service) createAutoScalingGroup(in *autoscaling.CreateAutoScalingGroupInput) (*autoscaling.CreateAutoScalingGroupOutput, error) {
	name := aws.ToString(in.AutoScalingGroupName)
	if name == "" || len(name) > 255 || strings.Contains(name, ":") {
		return nil, invalid("the name %q of a group has 1 to 255 characters and no colon", name)
	}
	if old, exists := svc.state.Groups[name]; exists {
		pending := ""
		if old.Deleting {
			pending = " and is pending delete.  Please wait until Autoscaling completes the deletion process before creating another group with the same name."
		}
		return nil, core.Fail("AlreadyExists", "AutoScalingGroup by this name already exists - A group with the name %s already exists%s", name, pending)
	}
	if in.MinSize == nil || in.MaxSize == nil {
		return nil, invalid("a group needs a minimum and a maximum size")
	}
	g := &Group{
		Name: name, Born: svc.Now(), Looked: svc.Now(), Cooldown: 300, HealthCheck: "EC2", Policies: []string{"Default"},
		Suspended: map[string]bool{}, Tags: map[string]Tag{}, Hooks: map[string]*Hook{}, Desired: *in.MinSize,
	}
	if err := svc.configure(g, core.Recast[autoscaling.UpdateAutoScalingGroupInput](in)); err != nil {
		return nil, err
	}
	if err := svc.tagScaling(g, name, in.Tags); err != nil {
		return nil, err
	}
	for _, h := range in.LifecycleHookSpecificationList {
		if err := svc.putHook(g, core.Recast[autoscaling.PutLifecycleHookInput](h)); err != nil {
			return nil, err
		}
	}
	if most := 500; len(svc.state.Groups) >= most { // "Quotas for Auto Scaling resources and groups"
		return nil, core.Fail("LimitExceeded", "you have already reached the limit of %d groups", most)
	}
	id := svc.Hash()
	g.ARN = svc.RegionalARN("autoscaling", "autoScalingGroup:"+id[:8]+"-"+id[8:12]+"-"+id[12:]+"-autoscaling:autoScalingGroupName/"+name)
	svc.state.Groups[name] = g
	return &autoscaling.CreateAutoScalingGroupOutput{}, nil
}

func (svc *Service) updateAutoScalingGroup(in *autoscaling.UpdateAutoScalingGroupInput) (*autoscaling.UpdateAutoScalingGroupOutput, error) {
	g, err := svc.changeable(in.AutoScalingGroupName)
	if err != nil {
		return nil, err
	}
	if g.OfEKS {
		return nil, core.NotSimulated("UpdateAutoScalingGroup: the group of a node group of EKS")
	}
	changed := *g
	if err := svc.configure(&changed, *in); err != nil {
		return nil, err
	}
	*g = changed
	return &autoscaling.UpdateAutoScalingGroupOutput{}, nil
}

// describeAutoScalingGroups ignores names of groups that do not exist, as AWS does.
func (svc *Service) describeAutoScalingGroups(in *autoscaling.DescribeAutoScalingGroupsInput) (*autoscaling.DescribeAutoScalingGroupsOutput, error) {
	if err := records(in.MaxRecords); err != nil {
		return nil, err
	}
	keep, err := scalingFilters(in.Filters)
	if err != nil {
		return nil, err
	}
	var list []types.AutoScalingGroup
	for _, g := range core.ByKey(svc.state.Groups) {
		asked := len(in.AutoScalingGroupNames) == 0 || slices.Contains(in.AutoScalingGroupNames, g.Name)
		if asked && svc.Visible(g.Born) && keep(g) {
			list = append(list, svc.groupOut(g))
		}
	}
	part, next, err := core.Page(svc.Account, list, in.NextToken, or(in.MaxRecords, 50), 100)
	return &autoscaling.DescribeAutoScalingGroupsOutput{AutoScalingGroups: part, NextToken: next}, err
}

// records validates MaxRecords.
func records(n *int32) error {
	if most := int32(100); n != nil && (*n < 1 || *n > most) {
		return invalid("1 validation error detected: Value '%d' at 'maxRecords' failed to satisfy constraint: Member must have value between 1 and %d", *n, most)
	}
	return nil
}

func or(n *int32, usual int32) *int32 {
	if n == nil {
		return &usual
	}
	return n
}

// scalingFilters returns a function that reports whether a group matches all filters.
func scalingFilters(filters []types.Filter) (func(*Group) bool, error) {
	for _, f := range filters {
		name := aws.ToString(f.Name)
		if name != "tag-key" && name != "tag-value" && !strings.HasPrefix(name, "tag:") {
			return nil, invalid("Filter type %s is not correct. Allowed Filter types are: tag-key, tag-value, tag:<key>", name)
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
	return func(g *Group) bool {
		return !slices.ContainsFunc(filters, func(f types.Filter) bool {
			return !slices.ContainsFunc(core.SortedKeys(g.Tags), func(k string) bool { return passes(f, k, g.Tags[k].Value) })
		})
	}, nil
}

// deleteAutoScalingGroup starts the deletion of a group. With ForceDelete, its instances
// are terminated first, without lifecycle hooks; otherwise there may be none.
func (svc *Service) deleteAutoScalingGroup(in *autoscaling.DeleteAutoScalingGroupInput) (*autoscaling.DeleteAutoScalingGroupOutput, error) {
	g, err := svc.group(in.AutoScalingGroupName)
	if err != nil {
		return nil, err
	}
	if g.OfEKS {
		return nil, core.NotSimulated("DeleteAutoScalingGroup: the group of a node group of EKS")
	}
	// The code is not verified.
	if g.Deletion == types.DeletionProtectionPreventAllDeletion || g.Deletion == types.DeletionProtectionPreventForceDeletion && aws.ToBool(in.ForceDelete) {
		return nil, invalid("AutoScalingGroup '%s' cannot be deleted because its deletion protection is %s", g.Name, g.Deletion)
	}
	if !aws.ToBool(in.ForceDelete) {
		busy := slices.ContainsFunc(g.Instances, func(i *Instance) bool { return i.State != types.LifecycleStateInService })
		switch {
		case busy:
			return nil, core.Fail("ScalingActivityInProgress", "You cannot delete an AutoScalingGroup while there are scaling activities in progress for that group.")
		case len(g.Instances) > 0:
			return nil, core.Fail(
				"ResourceInUse",
				"You cannot delete an AutoScalingGroup while there are instances or pending Spot instance request(s) still in the group.",
			)
		}
	}
	g.Deleting = true
	for _, i := range g.Instances {
		svc.dismiss(g, i, "the group is deleted")
	}
	return &autoscaling.DeleteAutoScalingGroupOutput{}, nil
}

// setDesiredCapacity does not simulate HonorCooldown.
func (svc *Service) setDesiredCapacity(in *autoscaling.SetDesiredCapacityInput) (*autoscaling.SetDesiredCapacityOutput, error) {
	g, err := svc.changeable(in.AutoScalingGroupName)
	if err != nil {
		return nil, err
	}
	n := aws.ToInt32(in.DesiredCapacity)
	switch {
	case g.OfEKS:
		return nil, core.NotSimulated("SetDesiredCapacity: the group of a node group of EKS")
	case n > g.Max:
		return nil, invalid("New SetDesiredCapacity value %d is above max value %d for the AutoScalingGroup.", n, g.Max)
	case n < g.Min:
		return nil, invalid("New SetDesiredCapacity value %d is below min value %d for the AutoScalingGroup.", n, g.Min)
	}
	g.Desired = n
	return &autoscaling.SetDesiredCapacityOutput{}, nil
}

func (svc *Service) terminateInstanceInAutoScalingGroup(
	in *autoscaling.TerminateInstanceInAutoScalingGroupInput,
) (*autoscaling.TerminateInstanceInAutoScalingGroupOutput, error) {
	for _, g := range core.ByKey(svc.state.Groups) {
		for _, i := range g.Instances {
			if i.ID != aws.ToString(in.InstanceId) || g.OfEKS {
				continue
			}
			if aws.ToBool(in.ShouldDecrementDesiredCapacity) {
				if g.Desired-1 < g.Min {
					return nil, invalid(
						"Currently, desiredSize equals minSize (%d). Terminating instance without replacement will violate group's min size constraint. Either set shouldDecrementDesiredCapacity flag to false or lower group's min size.",
						g.Min,
					)
				}
				g.Desired--
			}
			if i.leaving() {
				return nil, core.Fail("ScalingActivityInProgress", "the instance %s is being terminated", i.ID)
			}
			svc.retire(g, i, "a user asked for it")
			out := types.Activity{}
			for _, x := range g.Activities {
				if x.ID == i.Activity {
					out = g.activityOut(x)
				}
			}
			return &autoscaling.TerminateInstanceInAutoScalingGroupOutput{Activity: &out}, nil
		}
	}
	return nil, invalid("Instance Id not found - No managed instance found for instance ID: %s", aws.ToString(in.InstanceId))
}

func (g *Group) activityOut(x *Activity) types.Activity {
	out := types.Activity{
		ActivityId: aws.String(x.ID), AutoScalingGroupName: aws.String(g.Name), AutoScalingGroupARN: aws.String(g.ARN), AutoScalingGroupState: nil,
		Description: aws.String(x.Description), Cause: aws.String(x.Cause), StatusMessage: core.Text(x.Message), StatusCode: x.Status,
		StartTime: aws.Time(x.Began), Progress: aws.Int32(50),
	}
	if !x.Ended.IsZero() {
		out.EndTime, out.Progress = aws.Time(x.Ended), aws.Int32(100)
	}
	return out
}

// describeScalingActivities lists the activities of groups, the newest first. Those of
// deleted groups are not kept; AWS keeps them for six weeks.
func (svc *Service) describeScalingActivities(in *autoscaling.DescribeScalingActivitiesInput) (*autoscaling.DescribeScalingActivitiesOutput, error) {
	if err := records(in.MaxRecords); err != nil {
		return nil, err
	}
	groups := core.ByKey(svc.state.Groups)
	if in.AutoScalingGroupName != nil {
		g, err := svc.group(in.AutoScalingGroupName)
		if err != nil {
			return nil, err
		}
		groups = []*Group{g}
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
	part, next, err := core.Page(svc.Account, list, in.NextToken, in.MaxRecords, 100)
	return &autoscaling.DescribeScalingActivitiesOutput{Activities: part, NextToken: next}, err
}

func invalid(format string, args ...any) error { return core.Fail("ValidationError", format, args...) }

// GroupNamed returns the group with that name, or nil.
func (svc *Service) GroupNamed(name string) *Group { return svc.state.Groups[name] }

// AddGroup adds a group whose size another service controls.
func (svc *Service) AddGroup(g *Group) { svc.state.Groups[g.Name] = g }

// RemoveGroup removes a group and keeps its instances.
func (svc *Service) RemoveGroup(name string) { delete(svc.state.Groups, name) }
