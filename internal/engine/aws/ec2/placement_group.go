package ec2

import (
	"context"
	"fmt"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/kind"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// PlacementGroupByName looks up a placement group. If the call fails, for lack of
// permission or in an emulator, the lookup assumes that it exists.
func PlacementGroupByName(name string) graph.Lookup[Named] {
	return func(ctx context.Context, c *cloud.Clients) (*Named, error) {
		n := Named{Name: name}
		out, err := placementGroup(ctx, c, name)
		switch {
		case err != nil && ctx.Err() == nil:
			return &n, nil // RunInstances reports an error if it does not exist
		case err != nil:
			return nil, err
		}
		for _, g := range out.PlacementGroups {
			if g.State == types.PlacementGroupStateAvailable || g.State == types.PlacementGroupStatePending {
				return &n, nil
			}
		}
		return nil, fmt.Errorf("placement group %q does not exist in %s: create it (aws ec2 create-placement-group), or set another one", name, c.Region)
	}
}

// placementGroup reads a placement group.
func placementGroup(ctx context.Context, c *cloud.Clients, name string) (*ec2.DescribePlacementGroupsOutput, error) {
	return cloud.Remember(ctx, c, "placement group "+name, func(ctx context.Context) (*ec2.DescribePlacementGroupsOutput, error) {
		return c.EC2.DescribePlacementGroups(ctx, &ec2.DescribePlacementGroupsInput{Filters: []types.Filter{cloud.Filter("group-name", name)}})
	})
}

// mostOfDedicated is how many partitions a placement group can have if its machines are Dedicated Instances.
const mostOfDedicated = 2

// MostInSpread is how many running machines a placement group with the strategy spread can have in a zone. Source: the rules and
// limitations in "Placement groups", EC2 user guide.
const MostInSpread = 7

// Place is the placement group and the zone of a machine.
type Place struct {
	Group, Zone string
	Strategy    types.PlacementStrategy // "" if it is not known
}

// Place returns where a machine would be; nothing if it is in no placement group, or if its zone is not known.
func (i *Instance) Place(ctx context.Context, c *cloud.Clients) (p Place) {
	name := i.Spec.PlacementGroupName
	if name == "" || len(i.Spec.NetworkInterfaces) > 0 {
		return p
	}
	p.Group = name
	if have, ok := i.Subnet.Found(); ok {
		p.Zone = have.Zone
	} else if own, ok := i.Subnet.Desired().(*Subnet); ok {
		p.Zone = own.Zone
	}
	if out, err := placementGroup(ctx, c, name); err == nil && len(out.PlacementGroups) > 0 && out.PlacementGroups[0].SpreadLevel != types.SpreadLevelHost {
		p.Strategy = out.PlacementGroups[0].Strategy
	}
	return p
}

// MachinesIn lists the running machines in a placement group, whoever owns them.
func MachinesIn(ctx context.Context, c *cloud.Clients, group string) ([]*InstanceState, error) {
	return cloud.Remember(ctx, c, "machines in the placement group "+group, func(ctx context.Context) ([]*InstanceState, error) {
		return describeInstances(ctx, c, []types.Filter{
			cloud.Filter("placement-group-name", group), cloud.Filter("instance-state-name", "pending", "running", "stopping", "shutting-down"),
		})
	})
}

// checkPlacement checks that a machine may be in its placement group, which exists. The group has the partition that the
// manifest names: only groups with the strategy "partition" have partitions. And the instance type supports the strategy of the
// group. Source: the rules and limitations in "Placement groups", EC2 user guide.
func (i *Instance) checkPlacement(ctx context.Context, c *cloud.Clients) (refusal string, err error) {
	name, partition := i.Spec.PlacementGroupName, i.Spec.PlacementGroupPartition
	if name == "" || aws.ToString(i.Spec.HostID) != "" {
		return "", nil
	}
	out, err := placementGroup(ctx, c, name)
	if err != nil || len(out.PlacementGroups) == 0 {
		return "", nil //nolint:nilerr // RunInstances refuses the launch
	}
	group := out.PlacementGroups[0]
	count := int64(aws.ToInt32(group.PartitionCount))
	tenancy, err := i.tenancy(ctx, c)
	if err != nil {
		return "", err
	}
	if tenancy == types.TenancyDedicated {
		if refusal := refusesDedicated(group.Strategy, count); refusal != "" {
			return fmt.Sprintf("tenancy dedicated: the placement group %s has %s", name, refusal), nil
		}
	}
	switch strategy := string(group.Strategy); {
	case partition > 0 && group.Strategy != types.PlacementStrategyPartition:
		return fmt.Sprintf("placementGroupPartition %d: the placement group %s has the strategy %s, so no partitions: remove it, or use another group",
			partition, name, strategy), nil
	case partition > 0 && count > 0 && partition > count:
		return fmt.Sprintf("placementGroupPartition %d: the placement group %s has %d partitions: use one of them", partition, name, count), nil
	case i.Type.VCPUs > 0 && !slices.Contains(i.Type.Strategies, strategy):
		return fmt.Sprintf("the instance type %s cannot be in a placement group with the strategy %s, such as %s: use another type or group",
			i.Spec.InstanceType, strategy, name), nil
	}
	return "", nil
}

// refusesDedicated says why a placement group takes no Dedicated Instances; "" if it does.
func refusesDedicated(strategy types.PlacementStrategy, partitions int64) string {
	switch {
	case strategy == types.PlacementStrategySpread:
		return "the strategy spread, which takes no Dedicated Instances: change one of them"
	case partitions > mostOfDedicated:
		return fmt.Sprintf("%d partitions, and with Dedicated Instances it has at most %d: use another group", partitions, mostOfDedicated)
	}
	return ""
}

// placementGroupKind declares placement groups. A cluster uses existing ones and never
// creates any.
func placementGroupKind() *kind.Kind {
	return &kind.Kind{Name: "placement-group", Area: plan.AreaPrerequisites, ReadActions: []string{"ec2:DescribePlacementGroups"}}
}
