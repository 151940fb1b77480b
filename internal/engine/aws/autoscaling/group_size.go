package autoscaling

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/ec2"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/cost"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// GroupSize is the size of an Auto Scaling group that exists. A maximum of 0 empties it, and no autoscaler raises it.
type GroupSize struct {
	Name              string
	Min, Max, Desired int32
	Server            cost.Server // a machine that it launches
	Needed            []graph.Edge
}

var (
	_ graph.Desired[GroupState] = (*GroupSize)(nil)
	_ graph.Updater[GroupState] = (*GroupSize)(nil)
	_ graph.Timed               = (*GroupSize)(nil)
	_ cost.Desired              = (*GroupSize)(nil)
)

// Needs implements graph.Desired.
func (g *GroupSize) Needs() []graph.Edge { return g.Needed }

// Takes implements graph.Timed.
func (g *GroupSize) Takes() (create, remove time.Duration) {
	if g.Max > 0 {
		return ec2.InstanceCreateTime, 0
	}
	return ec2.InstanceDeleteTime, 0
}

// Find implements graph.Desired.
func (g *GroupSize) Find(ctx context.Context, c *cloud.Clients) (*GroupState, error) {
	all, err := Groups(ctx, c)
	if err != nil {
		return nil, err
	}
	for i := range all {
		if all[i].ID == g.Name {
			return &all[i], nil
		}
	}
	return nil, fmt.Errorf("the Auto Scaling group %s does not exist any more", g.Name)
}

// Diff implements graph.Desired. An autoscaler may have changed the number of machines since the limits were raised.
func (g *GroupSize) Diff(have *GroupState) (d plan.Diff) {
	d.Set("minSize", have.Min, g.Min)
	d.Set("maxSize", have.Max, g.Max)
	if len(d) > 0 || g.Max == 0 {
		d.Set("replicas", have.Desired, g.Desired)
	}
	switch {
	case len(d) > 0: // the machines follow
	case g.Max == 0:
		d.Await("machines", len(have.Instances), 0)
	case have.Serving() < int(have.Desired) && !have.Suspends("Launch"):
		d.Await("machines", fmt.Sprintf("%d in service", have.Serving()), fmt.Sprintf("%d in service", have.Desired))
	}
	return d
}

// Update implements graph.Updater.
func (g *GroupSize) Update(ctx context.Context, c *cloud.Clients, have *GroupState, _ plan.Diff) (*GroupState, error) {
	after := *have
	after.Min, after.Max, after.Desired = g.Min, g.Max, g.Desired
	_, err := c.AutoScaling.UpdateAutoScalingGroup(ctx, &autoscaling.UpdateAutoScalingGroupInput{
		AutoScalingGroupName: aws.String(g.Name), MinSize: &g.Min, MaxSize: &g.Max, DesiredCapacity: &g.Desired,
	})
	return &after, err
}

// Costs implements cost.Desired.
func (g *GroupSize) Costs(ctx context.Context, c *cloud.Clients, have graph.State) (now, then []cost.Item, err error) {
	s, ok := have.(*GroupState)
	if !ok || s == nil {
		return nil, nil, nil
	}
	now, err = s.Costs(ctx, c)
	switch {
	case g.Max == 0:
		return now, nil, err
	case len(s.Instances) > 0:
		return now, now, err
	}
	return nil, g.Server.All(int(g.Desired)), nil
}

// WhyNotEmptied returns the reason why a group cannot be emptied now, or "".
func (s *GroupState) WhyNotEmptied(ctx context.Context, c *cloud.Clients) (string, error) {
	if s.Suspends("Terminate") {
		return "its process Terminate is suspended, so that its machines stay", nil
	}
	for _, i := range s.Instances {
		if i.Protected && !strings.HasPrefix(i.State, "Terminat") { // that one goes, and its protection cannot be changed
			return fmt.Sprintf("machine %s is protected from scale-in: aws autoscaling set-instance-protection --region %s --auto-scaling-group-name %s "+
				"--instance-ids %[1]s --no-protected-from-scale-in turns it off", i.ID, c.Region, s.ID), nil
		}
	}
	last, err := lastRefresh(ctx, c, s.ID)
	if err == nil && last.Running {
		return "its machines are being replaced (" + last.String() + "): wait until that has ended", nil
	}
	return "", err
}

// TemplateID returns the ID of the launch template.
func (s *GroupState) TemplateID() string {
	id, _, _ := strings.Cut(s.Template, ":")
	return id
}
