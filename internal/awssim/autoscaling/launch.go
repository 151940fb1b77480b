package autoscaling

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling/types"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim/core"
)

func joined(ids []string) string { return strings.Join(ids, ",") }

// scaleOut launches instances until one launch fails.
func (svc *Service) scaleOut(g *Group, n int) {
	for range n {
		i, err := svc.launchFor(g)
		if err != nil {
			g.note(&Activity{
				ID:          svc.Hash(),
				Description: "Launching a new EC2 instance.  Status Reason: " + core.Reason(err) + " Launching EC2 instance failed.",
				Cause:       "the group is too small",
				Message:     core.Reason(err) + " Launching EC2 instance failed.",
				Status:      types.ScalingActivityStatusCodeFailed,
				Began:       svc.Now(),
				Ended:       svc.Now(),
			})
			g.Retry = svc.Now().Add(ScalingRetries)
			return
		}
		g.Instances = append(g.Instances, i)
		g.begin(
			svc,
			i,
			"Launching a new EC2 instance: "+i.ID,
			fmt.Sprintf("an instance was started in response to a difference between desired and actual capacity, increasing the capacity to %d", len(g.active())),
		)
	}
}

// launchFor launches one instance, in the zone with the fewest instances or, if that
// fails, in another.
func (svc *Service) launchFor(g *Group) (*Instance, error) {
	t := svc.ec2.LaunchTemplate(g.Template.ID)
	if t == nil {
		return nil, errors.New("the launch template of the group does not exist any more")
	}
	v := t.Version(g.Template.Version)
	if v == nil {
		return nil, t.NoVersion(g.Template.Version)
	}
	ref, spot := TemplateRef{t.ID, fmt.Sprint(v.Number)}, g.wantsSpot()
	var err error
	for _, subnet := range svc.emptiest(g) {
		for _, kind := range g.kinds() {
			var i *Instance
			if i, err = svc.launchIn(g, ref, subnet, kind, spot); err == nil {
				return i, nil
			}
		}
	}
	return nil, err
}

func (svc *Service) launchIn(g *Group, t TemplateRef, subnet, kind string, spot bool) (*Instance, error) {
	launched, err := svc.ec2.Launch(g.request(t, subnet, kind, spot))
	if err != nil {
		return nil, err
	}
	e := launched[0]
	for k, tag := range g.Tags {
		if tag.Propagate {
			e.Tags[k] = tag.Value
		}
	}
	e.Tags["aws:autoscaling:groupName"], e.Tags["aws:ec2launchtemplate:id"], e.Tags["aws:ec2launchtemplate:version"] = g.Name, t.ID, t.Version
	return &Instance{
		ID: e.ID, Zone: e.Zone, Subnet: e.Subnet, Type: e.Type, Template: t, State: types.LifecycleStatePending, Since: svc.Now(), Spot: e.Spot, Protected: g.Protect,
	}, nil
}

// wantsSpot reports whether the next instance is a spot instance, by the group's
// instances distribution.
func (g *Group) wantsSpot() bool {
	if g.Mixed == nil || g.Mixed.InstancesDistribution == nil {
		return false
	}
	d, share := g.Mixed.InstancesDistribution, int32(100)
	if d.OnDemandPercentageAboveBaseCapacity != nil {
		share = *d.OnDemandPercentageAboveBaseCapacity
	}
	base := min(aws.ToInt32(d.OnDemandBaseCapacity), g.Desired)
	onDemand := base + ((g.Desired-base)*share+99)/100
	for _, i := range g.active() {
		if !i.Spot {
			onDemand--
		}
	}
	return onDemand <= 0
}

// emptiest returns the subnets of a group, those in zones with few instances first.
// Prices and capacity are not simulated.
func (svc *Service) emptiest(g *Group) []string {
	zones, subnets := map[string]int{}, map[string]int{}
	for _, i := range g.active() {
		zones[i.Zone]++
		subnets[i.Subnet]++
	}
	zone := func(id string) string {
		if s := svc.ec2.Subnet(id); s != nil {
			return s.Zone
		}
		return ""
	}
	list := slices.Clone(g.Subnets)
	slices.SortStableFunc(list, func(x, y string) int {
		return cmp.Or(cmp.Compare(zones[zone(x)], zones[zone(y)]), cmp.Compare(subnets[x], subnets[y]))
	})
	return list
}

// scaleIn terminates instances: in the zone with the most, that with the oldest version
// of the template, the oldest first ("Default termination policy").
func (svc *Service) scaleIn(g *Group, n int) {
	for range n {
		list := slices.DeleteFunc(g.active(), func(i *Instance) bool { return i.Protected })
		if len(list) == 0 {
			return
		}
		zones := map[string]int{}
		for _, i := range g.active() {
			zones[i.Zone]++
		}
		born := func(i *Instance) int64 {
			if e := svc.ec2.Instance(i.ID); e != nil {
				return e.Born.UnixNano()
			}
			return 0
		}
		svc.retire(g, slices.MinFunc(list, func(x, y *Instance) int {
			return cmp.Or(cmp.Compare(zones[y.Zone], zones[x.Zone]), cmp.Compare(len(x.Template.Version), len(y.Template.Version)),
				cmp.Compare(x.Template.Version, y.Template.Version), cmp.Compare(born(x), born(y)), cmp.Compare(x.ID, y.ID))
		}), "an instance was taken out of service in response to a difference between desired and actual capacity")
	}
}

// called is the name of a group in inventories: names of EKS end with a random part.
func (g *Group) called() string {
	if g.OfEKS {
		return g.Name[:len(g.Name)-37]
	}
	return g.Name
}

// Inventory lists the groups.
func (svc *Service) Inventory() (lines []string) {
	for _, g := range core.ByKey(svc.state.Groups) {
		line := "AutoScalingGroup " + g.called()
		if g.Deleting {
			line += " deleting"
		}
		lines = append(lines, line)
	}
	return lines
}

// Detailed is Inventory with the attributes of the groups.
func (svc *Service) Detailed() (lines []string) {
	for _, g := range core.ByKey(svc.state.Groups) {
		var hooks, instances, tags []string
		for _, h := range core.ByKey(g.Hooks) {
			hooks = append(hooks, fmt.Sprintf("%+v", *h))
		}
		for _, i := range g.Instances {
			instances = append(instances, fmt.Sprintf("%s/%s/v%s/%s", i.Zone, i.Type, i.Template.Version, i.State))
		}
		for _, k := range core.SortedKeys(g.Tags) {
			tags = append(tags, fmt.Sprintf("%s:%q/%t", k, g.Tags[k].Value, g.Tags[k].Propagate))
		}
		slices.Sort(instances)
		template, mixed := "gone", ""
		if t := svc.ec2.LaunchTemplate(g.Template.ID); t != nil {
			template = t.Name + ":" + g.Template.Version
		}
		if g.Mixed != nil {
			m := core.Recast[types.MixedInstancesPolicy](g.Mixed)
			m.LaunchTemplate.LaunchTemplateSpecification = nil
			mixed = core.Shown(m)
		}
		warmup := ""
		if g.Warmup != nil {
			warmup = fmt.Sprint(*g.Warmup)
		}
		lines = append(
			lines,
			core.LineOf(
				"AutoScalingGroup "+g.called(),
				"size",
				fmt.Sprintf("%d..%d/%d", g.Min, g.Max, g.Desired),
				"subnets",
				svc.ec2.Labels(g.Subnets),
				"template",
				template,
				"mixed",
				mixed,
				"cooldown",
				fmt.Sprint(g.Cooldown),
				"warmup",
				warmup,
				"grace",
				fmt.Sprint(g.Grace),
				"lifetime",
				fmt.Sprint(g.Lifetime),
				"check",
				g.HealthCheck,
				"rebalance",
				fmt.Sprint(g.Rebalance),
				"suspended",
				strings.Join(core.SortedKeys(g.Suspended), ","),
				"hooks",
				strings.Join(hooks, ","),
				"instances",
				strings.Join(instances, ","),
				"tags",
				strings.Join(tags, " "),
				"deleting",
				fmt.Sprint(g.Deleting),
			),
		)
	}
	return lines
}
