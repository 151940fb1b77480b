package replica

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"

	sim "github.com/clusterawsadm/clusterawsadm/internal/awssim/ec2"
)

func (r *reader) addresses(ctx context.Context) error {
	out, err := ec2.NewFromConfig(r.Config).DescribeAddresses(ctx, &ec2.DescribeAddressesInput{})
	if err != nil {
		return err
	}
	r.to.EC2.Addresses = sim.Table[*sim.Address]{}
	for _, a := range out.Addresses {
		own := &sim.Address{
			Thing: r.thing(a.AllocationId, tagsOf(a.Tags)), PublicIP: aws.ToString(a.PublicIp), Association: aws.ToString(a.AssociationId),
			Interface: aws.ToString(a.NetworkInterfaceId), Instance: aws.ToString(a.InstanceId),
		}
		r.to.EC2.Addresses[own.ID] = own
	}
	return nil
}
