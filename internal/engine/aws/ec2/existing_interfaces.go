package ec2

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
)

// checkInterfaces says why EC2 would not launch a machine with the network interfaces that the manifest names. The interfaces have to
// exist, must not be in use, and have to be in the VPC of the cluster. All have to be in one zone, and the zone has to offer the instance
// type. Sources: InvalidNetworkInterfaceID.NotFound, InvalidNetworkInterface.InUse and Unsupported in "Error codes for the Amazon EC2
// API", and "Elastic network interfaces" in the EC2 user guide.
func (i *Instance) checkInterfaces(ctx context.Context, c *cloud.Clients) (refusal string, err error) {
	ids := i.Spec.NetworkInterfaces
	if len(ids) == 0 {
		return "", nil
	}
	all, err := cloud.Remember(ctx, c, "network interfaces "+strings.Join(ids, " "), func(ctx context.Context) ([]types.NetworkInterface, error) {
		out, err := c.EC2.DescribeNetworkInterfaces(ctx, &ec2.DescribeNetworkInterfacesInput{Filters: []types.Filter{cloud.Filter("network-interface-id", ids...)}})
		if err != nil {
			return nil, err
		}
		return out.NetworkInterfaces, nil
	})
	if err != nil {
		return "", err
	}
	vpc, zone := vpcOf(i.Subnet), ""
	for n, id := range ids {
		at := slices.IndexFunc(all, func(x types.NetworkInterface) bool { return aws.ToString(x.NetworkInterfaceId) == id })
		if at < 0 {
			return fmt.Sprintf("the network interface %s does not exist in this account and region: correct the ID", id), nil
		}
		x := all[at]
		if user, err := i.userOf(ctx, c, x); user != "" || err != nil {
			return user, err
		}
		switch in, its := aws.ToString(x.VpcId), aws.ToString(x.AvailabilityZone); {
		case vpc == "":
			return fmt.Sprintf("the network interface %s is in the VPC %s, and the run creates another one: remove it, or use that VPC", id, in), nil
		case in != vpc:
			return fmt.Sprintf("the network interface %s is in the VPC %s, and the cluster in %s: use one of that VPC", id, in, vpc), nil
		case n > 0 && its != zone:
			return fmt.Sprintf("the network interface %s is in the zone %s, and %s in %s: a machine is in one zone", id, its, ids[0], zone), nil
		default:
			zone = its
		}
	}
	return i.notOfferedIn(ctx, c, zone)
}

// userOf says that something uses a network interface; "" if nothing does. It is also "" if a machine of the cluster uses the interface,
// because that may be the machine that is checked.
func (i *Instance) userOf(ctx context.Context, c *cloud.Clients, x types.NetworkInterface) (string, error) {
	if x.Status == types.NetworkInterfaceStatusAvailable || x.Status == "" {
		return "", nil
	}
	id, user := aws.ToString(x.NetworkInterfaceId), interfaceOf(x).Instance
	if user == "" {
		return fmt.Sprintf("the network interface %s is in use: use another one", id), nil
	}
	tags, err := InstanceTags(ctx, c, []string{user})
	if err != nil || tags[user][c.OwnerTag()] == cloud.Owned {
		return "", err
	}
	return fmt.Sprintf("the network interface %s is in use by the instance %s: detach it, or use another one", id, user), nil
}

// notOfferedIn says that a zone does not offer the instance type.
func (i *Instance) notOfferedIn(ctx context.Context, c *cloud.Clients, zone string) (string, error) {
	name, t := i.Spec.InstanceType, i.Type
	if t.Zones == nil {
		found, err := InstanceTypes(ctx, c, []string{name})
		if err != nil {
			return "", err
		}
		t = found[name]
	}
	if t.Zones == nil || slices.Contains(t.Zones, zone) {
		return "", nil
	}
	return fmt.Sprintf(
		"the network interface %s is in the zone %s, which does not offer the instance type %s, but %s do: use an interface there, or another type",
		i.Spec.NetworkInterfaces[0],
		zone,
		name,
		strings.Join(t.Zones, ", "),
	), nil
}
