package autoscaling

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/ec2"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/cost"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
)

var (
	_ cost.Desired  = (*Group)(nil)
	_ cost.Existing = GroupState{}
)

// Costs implements cost.Desired: what the desired number of machines costs. Of several
// instance types, it is the first one.
func (g *Group) Costs(_ context.Context, _ *cloud.Clients, have graph.State) (now, then []cost.Item, err error) {
	if g.Content == nil {
		return nil, nil, nil
	}
	s, _ := have.(*GroupState)
	if s != nil {
		now = g.items(g.Content.Server(g.Template), int(s.Desired))
	}
	return now, g.items(g.Content.Server(nil), int(g.capacity(s))), nil
}

// items returns what n machines of the group cost.
func (g *Group) items(s cost.Server, n int) []cost.Item {
	_, mixed := g.launchSource()
	if mixed == nil {
		return s.All(n)
	}
	if all := mixed.LaunchTemplate.Overrides; len(all) > 0 {
		s.Type = aws.ToString(all[0].InstanceType)
	}
	spot := 0
	if d := mixed.InstancesDistribution; d != nil {
		base, share := min(n, int(aws.ToInt32(d.OnDemandBaseCapacity))), 100
		if d.OnDemandPercentageAboveBaseCapacity != nil {
			share = int(*d.OnDemandPercentageAboveBaseCapacity)
		}
		spot = (n - base) * (100 - share) / 100
	}
	return s.Items(n, spot)
}

// Costs implements cost.Existing, for a group that is deleted. It does not say which of its
// machines are spot instances: their price is that of On-Demand.
func (s GroupState) Costs(ctx context.Context, c *cloud.Clients) (all []cost.Item, err error) {
	volumes, err := ec2.VolumesOfMachines(ctx, c)
	for _, i := range s.Instances {
		server := cost.Server{Machine: cost.Machine{Type: i.Type}, Volumes: volumes[i.ID]}
		all = append(all, server.Items(1, 0)...)
	}
	return all, err
}
