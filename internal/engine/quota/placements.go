package quota

import (
	"context"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/ec2"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// Placements returns why the placement groups of a plan do not take its machines: with the strategy spread, a group takes seven in
// a zone, and with the strategy cluster, it is in one zone. It asks AWS only about such groups, and says nothing if AWS does not answer.
func Placements(ctx context.Context, c *cloud.Clients, g *graph.Graph, p plan.Plan) (reasons []*plan.ResourceError) {
	groups := &placements{old: map[string][]leave{}, running: map[[2]string]int{}, zones: map[string]string{}, read: map[string]bool{}}
	for _, x := range leaving(g, p) {
		groups.old[x.group] = append(groups.old[x.group], x)
	}
	told := map[string]bool{}
	for _, s := range p.Steps {
		i, ok := g.Resource(s.Resource).Desired().(*ec2.Instance)
		if !ok || s.Action != plan.Create {
			continue
		}
		at := i.Place(ctx, c)
		if why := groups.take(ctx, c, at, g.Resource(s.Resource)); why != "" && !told[at.Group] {
			told[at.Group] = true
			reasons = append(reasons, &plan.ResourceError{Resource: s.Resource, Origin: s.Origin, Err: errors.New(why)})
		}
	}
	return reasons
}

// placements counts the machines in placement groups.
type placements struct {
	old     map[string][]leave // the machines that leave, by the group of their successors
	running map[[2]string]int  // by placement group and zone
	zones   map[string]string  // the zone of a placement group with the strategy cluster
	read    map[string]bool    // the placement groups whose machines are counted
}

// take adds a machine to its placement group. It returns why the group does not take it.
func (x *placements) take(ctx context.Context, c *cloud.Clients, at ec2.Place, machine graph.Resource) string {
	if at.Zone == "" || at.Strategy != types.PlacementStrategySpread && at.Strategy != types.PlacementStrategyCluster {
		return ""
	}
	if !x.read[at.Group] {
		x.read[at.Group] = true
		have, err := ec2.MachinesIn(ctx, c, at.Group)
		if err != nil {
			return ""
		}
		for _, m := range have {
			x.running[[2]string{at.Group, m.Zone}]++
			x.zones[at.Group] = m.Zone
		}
	}
	if at.Strategy == types.PlacementStrategyCluster {
		zone, used := x.zones[at.Group]
		if x.zones[at.Group] = at.Zone; used && zone != at.Zone {
			return fmt.Sprintf(
				"placementGroupName: the placement group %s has the strategy cluster, so all of its machines are in one zone, and these are in %s and %s: "+
					"set one failureDomain, or use another group",
				at.Group,
				zone,
				at.Zone,
			)
		}
		return ""
	}
	place := [2]string{at.Group, at.Zone}
	x.running[place]++
	left := 0
	for _, m := range leftBefore(machine, x.old[groupOf(machine.ID())]) {
		if m.zone == at.Zone {
			left++
		}
	}
	if n := x.running[place] - left; n > ec2.MostInSpread {
		return fmt.Sprintf(
			"placementGroupName: the placement group %s has the strategy spread, so at most %d running machines in a zone, and there would be more in %s: "+
				"use more groups or zones, or fewer machines",
			at.Group,
			ec2.MostInSpread,
			at.Zone,
		)
	}
	return ""
}
