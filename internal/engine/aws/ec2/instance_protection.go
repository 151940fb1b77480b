package ec2

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
)

// instanceProtection implements kind.Functions.Protection. DescribeInstances does not return the
// attributes, and DescribeInstanceAttribute returns one of one instance. Stop protection also
// protects an instance from termination. Spot instances have neither.
func instanceProtection(ctx context.Context, c *cloud.Clients, s InstanceState) (string, error) {
	if s.Spot || s.Status == string(types.InstanceStateNameShuttingDown) {
		return "", nil
	}
	for _, name := range []types.InstanceAttributeName{types.InstanceAttributeNameDisableApiTermination, types.InstanceAttributeNameDisableApiStop} {
		on, err := instanceAttribute(ctx, c, s.ID, name)
		if err != nil {
			return "", err
		}
		if on {
			what, option := "termination", "--no-disable-api-termination"
			if name == types.InstanceAttributeNameDisableApiStop {
				what, option = "stop", "--no-disable-api-stop"
			}
			return fmt.Sprintf(
				"instance %s has %s protection: aws ec2 modify-instance-attribute --region %s --instance-id %[1]s %[4]s turns it off",
				s.ID,
				what,
				c.Region,
				option,
			), nil
		}
	}
	return "", nil
}

// instanceAttribute reads an attribute of an instance that is on or off.
func instanceAttribute(ctx context.Context, c *cloud.Clients, id string, name types.InstanceAttributeName) (bool, error) {
	return cloud.Remember(ctx, c, string(name)+" of "+id, func(ctx context.Context) (bool, error) {
		out, err := c.EC2.DescribeInstanceAttribute(ctx, &ec2.DescribeInstanceAttributeInput{InstanceId: &id, Attribute: name})
		if err != nil {
			return false, cloud.IgnoreNotFound(err)
		}
		for _, v := range []*types.AttributeBooleanValue{out.DisableApiTermination, out.DisableApiStop} {
			if v != nil && aws.ToBool(v.Value) {
				return true, nil
			}
		}
		return false, nil
	})
}
