package ec2

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
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
	return i.inAnotherZone(what, aws.ToString(host.AvailabilityZone)), nil
}

// inAnotherZone says that something that the machine is launched into is in another zone than its subnet; "" if it is
// not, or if one of the zones is not known.
func (i *Instance) inAnotherZone(what, zone string) string {
	if i.Subnet == nil || zone == "" {
		return ""
	}
	subnet, _ := i.Subnet.Found()
	if subnet.Zone == "" || subnet.Zone == zone {
		return ""
	}
	return fmt.Sprintf("%s is in the zone %s, and the subnet of the machine in %s: change one of them", what, zone, subnet.Zone)
}
