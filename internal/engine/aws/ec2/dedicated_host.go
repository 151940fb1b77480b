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
	subnet := SubnetState{}
	if i.Subnet != nil {
		subnet, _ = i.Subnet.Found()
	}
	switch zone := ""; {
	case host == nil:
		return fmt.Sprintf("hostID: the Dedicated Host %s does not exist in this account and region: correct the ID", id), nil
	case host.State != types.AllocationStateAvailable:
		return fmt.Sprintf("hostID: the Dedicated Host %s has the state %s: name another", id, host.State), nil
	default:
		if zone = aws.ToString(host.AvailabilityZone); zone != "" && subnet.Zone != "" && zone != subnet.Zone {
			return fmt.Sprintf("hostID: the Dedicated Host %s is in the zone %s, and the subnet of the machine in %s: change one of them", id, zone, subnet.Zone), nil
		}
	}
	return "", nil
}
