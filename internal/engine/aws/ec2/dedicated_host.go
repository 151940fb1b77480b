package ec2

import (
	"context"
	"fmt"

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
		return "", nil
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
