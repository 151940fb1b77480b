package ec2

import (
	"context"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
)

// checkHost says why a machine cannot be launched on the Dedicated Host that the manifest names.
func (i *Instance) checkHost(ctx context.Context, c *cloud.Clients) (refusal string, err error) {
	id := aws.ToString(i.Spec.HostID)
	if id == "" {
		return i.withoutHost(ctx, c)
	}
	host, err := cloud.Remember(ctx, c, "host "+id, func(ctx context.Context) (*types.Host, error) {
		out, err := c.EC2.DescribeHosts(ctx, &ec2.DescribeHostsInput{HostIds: []string{id}})
		if err != nil || len(out.Hosts) == 0 {
			return nil, cloud.IgnoreNotFound(err)
		}
		return &out.Hosts[0], nil
	})
	if err != nil {
		return "", err
	}
	what := "hostID: the Dedicated Host " + id
	switch {
	case host == nil:
		return what + " does not exist in this account and region: correct the ID", nil
	case host.State != types.AllocationStateAvailable:
		return fmt.Sprintf("%s has the state %s: name another", what, host.State), nil
	}
	return inAnotherZone(what, aws.ToString(host.AvailabilityZone), i.Subnet), nil
}

// withoutHost says that no Dedicated Host takes a machine with the tenancy host that names none: EC2 then places it on a host with
// auto-placement in its zone ("Understand auto-placement and affinity", EC2 user guide).
func (i *Instance) withoutHost(ctx context.Context, c *cloud.Clients) (refusal string, err error) {
	if i.Spec.Tenancy != string(types.TenancyHost) {
		return "", nil
	}
	hosts, err := cloud.Remember(ctx, c, "hosts with auto-placement", func(ctx context.Context) ([]types.Host, error) {
		p := ec2.NewDescribeHostsPaginator(c.EC2, &ec2.DescribeHostsInput{Filter: []types.Filter{
			cloud.Filter("auto-placement", string(types.AutoPlacementOn)), cloud.Filter("state", string(types.AllocationStateAvailable)),
		}})
		return cloud.Pages(ctx, p, func(o *ec2.DescribeHostsOutput) []types.Host { return o.Hosts })
	})
	if err != nil {
		return "", err
	}
	zone, where := zoneOf(i.Subnet), c.Region
	if zone != "" {
		where = zone
	}
	for _, h := range hosts {
		if takesType(h, i.Spec.InstanceType) && (zone == "" || aws.ToString(h.AvailabilityZone) == "" || *h.AvailabilityZone == zone) {
			return "", nil
		}
	}
	return fmt.Sprintf(
		"tenancy: host without hostID needs a Dedicated Host with auto-placement for this kind of machine, and %s has none: set hostID, or allocate one "+
			"(aws ec2 allocate-hosts --auto-placement on)",
		where,
	), nil
}

// takesType reports whether a host is for an instance type, or for its family.
func takesType(h types.Host, name string) bool {
	if h.HostProperties == nil {
		return true
	}
	one, family := aws.ToString(h.HostProperties.InstanceType), aws.ToString(h.HostProperties.InstanceFamily)
	of, _, _ := strings.Cut(name, ".")
	return one == name || one == "" && (family == "" || family == of)
}

// inAnotherZone says that something that machines are launched into is in another zone than one of their subnets; "" if it is
// not, or if the zones are not known.
func inAnotherZone(what, zone string, subnets ...*graph.Ref[SubnetState]) string {
	for _, ref := range subnets {
		if other := zoneOf(ref); zone != "" && other != "" && other != zone {
			return fmt.Sprintf("%s is in the zone %s, and the subnet of the machine in %s: change one of them", what, zone, other)
		}
	}
	return ""
}

// zoneOf returns the zone of a subnet, which may not exist yet; "" if it is not known.
func zoneOf(ref *graph.Ref[SubnetState]) string {
	if ref == nil {
		return ""
	}
	if s, found := ref.Found(); found {
		return s.Zone
	}
	if s, ok := ref.Desired().(*Subnet); ok {
		return s.Zone
	}
	return ""
}
