package ec2

import (
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim/core"
)

// chosen returns the instances of a call that stops or starts them: all of them exist, and no service of AWS manages
// one ("Amazon EC2 managed instances", EC2 user guide; code and text are not verified).
func (svc *Service) chosen(ids []string) (all []*Instance, err error) {
	if len(ids) == 0 || len(ids) > most {
		return nil, core.Fail("InvalidParameterValue", "1 to %d instances can be named in one call", most)
	}
	for _, id := range ids {
		i, err := lookup(svc, svc.state.Instances, &id)
		if err != nil {
			return nil, err
		}
		if i.Operator != "" {
			return nil, core.Fail("OperationNotPermitted", "The instance '%s' is managed by %s and cannot be stopped or started by you", i.ID, i.Operator)
		}
		all = append(all, i)
	}
	return all, nil
}

// StopInstances stops all instances in the call or none. Those that are stopped already stay so ("Stop and start Amazon EC2
// instances", EC2 user guide; StopInstances, EC2 API reference).
func (svc *Service) StopInstances(in *ec2.StopInstancesInput) (*ec2.StopInstancesOutput, error) {
	all, err := svc.chosen(in.InstanceIds)
	if err != nil {
		return nil, err
	}
	now := svc.Now()
	for _, i := range all {
		switch state := i.State(now); {
		case i.Spot: // this program requests one-time Spot Instances only
			return nil, core.Fail("UnsupportedOperation", "You can't stop the Spot Instance '%s' because it is associated with a one-time Spot Instance request. "+
				"You can only stop Spot Instances associated with persistent Spot Instance requests.", i.ID)
		case i.StopProtected:
			return nil, core.Fail("OperationNotPermitted", "The instance '%s' may not be stopped. Modify its 'disableApiStop' instance attribute and try again.", i.ID)
		case !slices.Contains([]types.InstanceStateName{types.InstanceStateNameRunning, types.InstanceStateNameStopping, types.InstanceStateNameStopped}, state):
			return nil, core.Fail("IncorrectInstanceState", "This instance '%s' is not in a state from which it can be stopped.", i.ID)
		}
	}
	out := &ec2.StopInstancesOutput{}
	for _, i := range all {
		before := i.State(now)
		if before == types.InstanceStateNameRunning {
			i.Stopped = now.Add(InstanceHalts)
			svc.releaseAddresses(i)
		}
		out.StoppingInstances = append(out.StoppingInstances, i.change(before, now))
	}
	return out, nil
}

// StartInstances starts all instances in the call or none. Those that are running already stay so. An instance that is
// stopped does not count for the quota of vCPUs, one that starts does.
func (svc *Service) StartInstances(in *ec2.StartInstancesInput) (*ec2.StartInstancesOutput, error) {
	all, err := svc.chosen(in.InstanceIds)
	if err != nil {
		return nil, err
	}
	now, needed := svc.Now(), map[string]int{}
	for _, i := range all {
		switch i.State(now) { //nolint:exhaustive // the others cannot be started
		case types.InstanceStateNameRunning, types.InstanceStateNamePending:
		case types.InstanceStateNameStopped:
			t, _ := svc.typeNamed(i.Type)
			needed[vcpuQuota(i.Type, i.Spot)] += t.vcpus()
		default:
			return nil, core.Fail("IncorrectInstanceState", "The instance '%s' is not in a state from which it can be started.", i.ID)
		}
	}
	for quota, n := range needed {
		if limit := svc.state.Limits.VCPUsOf(quota); quota != "" && svc.usedVCPUs(quota)+n > limit {
			return nil, vcpuLimitExceeded(false, limit)
		}
	}
	out := &ec2.StartInstancesOutput{}
	for _, i := range all {
		before := i.State(now)
		if before == types.InstanceStateNameStopped {
			i.Stopped, i.Started, i.Running = time.Time{}, now, now.Add(InstanceTakes)
			svc.renewAddresses(i)
		}
		out.StartingInstances = append(out.StartingInstances, i.change(before, now))
	}
	return out, nil
}

func (i *Instance) change(before types.InstanceStateName, now time.Time) types.InstanceStateChange {
	return types.InstanceStateChange{InstanceId: aws.String(i.ID), PreviousState: stateOut(before), CurrentState: stateOut(i.State(now))}
}

// releaseAddresses takes the public addresses of an instance that stops, except for Elastic IP addresses. Private ones stay
// ("Stop and start Amazon EC2 instances", EC2 user guide).
func (svc *Service) releaseAddresses(i *Instance) {
	for _, id := range i.Interfaces {
		if n := svc.state.Interfaces[id]; n != nil && n.PublicIP != "" && svc.addressOf(n) == nil {
			n.PublicIP, n.Renews = "", true
		}
	}
}

// renewAddresses gives other public addresses to an instance that starts, where it had some.
func (svc *Service) renewAddresses(i *Instance) {
	for _, id := range i.Interfaces {
		if n := svc.state.Interfaces[id]; n != nil && n.Renews {
			if n.Renews = false; n.PublicIP == "" {
				n.PublicIP = svc.PublicIP()
			}
		}
	}
}
