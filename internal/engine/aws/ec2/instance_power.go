package ec2

import (
	"cmp"
	"context"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/identity"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/cost"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// Power is a machine that exists, and that runs or is stopped. A machine that is stopped keeps its volumes and its private
// addresses, and loses its public address, unless that is an Elastic IP address ("Stop and start Amazon EC2 instances",
// EC2 user guide).
type Power struct {
	ID     string
	On     bool
	Needed []graph.Edge
}

var (
	_ graph.Desired[InstanceState] = (*Power)(nil)
	_ graph.Updater[InstanceState] = (*Power)(nil)
	_ graph.Timed                  = (*Power)(nil)
	_ cost.Desired                 = (*Power)(nil)
)

// Needs implements graph.Desired.
func (p *Power) Needs() []graph.Edge { return p.Needed }

// Takes implements graph.Timed.
func (p *Power) Takes() (create, remove time.Duration) {
	if p.On {
		return InstanceCreateTime, 0
	}
	return InstanceStopTime, 0
}

// InstanceStopTime is how long AWS usually takes to stop an instance.
const InstanceStopTime = 40 * time.Second

// Find implements graph.Desired. A machine that does not exist any more is terminated.
func (p *Power) Find(ctx context.Context, c *cloud.Clients) (*InstanceState, error) {
	all, err := InstanceInventory(ctx, c)
	if err != nil {
		return nil, err
	}
	if s := all.ByID[p.ID]; s != nil {
		return s, nil
	}
	return &InstanceState{Object: identity.Object{ID: p.ID}, Status: string(types.InstanceStateNameTerminated)}, nil
}

// Diff implements graph.Desired. EC2 starts a machine only when it is stopped, and stops it only when it runs. What
// somebody has terminated is neither started nor stopped.
func (p *Power) Diff(have *InstanceState) (d plan.Diff) {
	want, from := types.InstanceStateNameStopped, types.InstanceStateNameRunning
	if p.On {
		want, from = from, want
	}
	switch {
	case have.IsTerminating():
	case have.Status == string(from):
		d.Set("state", have.Status, string(want))
	default:
		d.Await("state", have.Status, string(want))
	}
	return d
}

// Update implements graph.Updater. Machines that are stopped or started at the same time share one call.
func (p *Power) Update(ctx context.Context, c *cloud.Clients, have *InstanceState, _ plan.Diff) (*InstanceState, error) {
	after, what := *have, "stop"
	after.Status, after.Stopped, after.PublicIP = string(types.InstanceStateNameStopping), true, ""
	if p.On {
		what = "start"
		after.Status, after.Stopped = string(types.InstanceStateNamePending), false
	}
	refused, err := cloud.Batch(ctx, c, what, p.ID, func(ctx context.Context, ids []string) ([]error, error) {
		return callForAll(ids, cloud.Rejected, func(ids []string) error { return p.call(ctx, c, ids) }), nil
	})
	return &after, cmp.Or(err, refused)
}

func (p *Power) call(ctx context.Context, c *cloud.Clients, ids []string) (err error) {
	if p.On {
		_, err = c.EC2.StartInstances(ctx, &ec2.StartInstancesInput{InstanceIds: ids})
	} else {
		_, err = c.EC2.StopInstances(ctx, &ec2.StopInstancesInput{InstanceIds: ids})
	}
	return err
}

// Costs implements cost.Desired. Whether a machine that is stopped will have a public address is not known.
func (p *Power) Costs(ctx context.Context, c *cloud.Clients, have graph.State) (now, then []cost.Item, err error) {
	s, ok := have.(*InstanceState)
	if !ok || s == nil {
		return nil, nil, nil
	}
	if now, err = s.Costs(ctx, c); err != nil {
		return now, now, err
	}
	after := *s
	if after.Stopped = !p.On; after.Stopped {
		after.PublicIP = ""
	}
	then, err = after.Costs(ctx, c)
	return now, then, err
}

// StopProtection returns a message with the command that turns the stop protection of a machine off; "" if the machine has none.
func StopProtection(ctx context.Context, c *cloud.Clients, id string) (string, error) {
	on, err := instanceAttribute(ctx, c, id, types.InstanceAttributeNameDisableApiStop)
	if !on || err != nil {
		return "", err
	}
	return "it has stop protection: aws ec2 modify-instance-attribute --region " + c.Region + " --instance-id " + id + " --no-disable-api-stop turns it off", nil
}
