package replica

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"

	sim "github.com/clusterawsadm/clusterawsadm/internal/awssim/ec2"
)

func (r *reader) volumes(ctx context.Context) error {
	found := sim.Table[*sim.Volume]{}
	p := ec2.NewDescribeVolumesPaginator(ec2.NewFromConfig(r.Config), &ec2.DescribeVolumesInput{})
	err := pages(ctx, p, func(p *ec2.DescribeVolumesOutput) {
		for _, v := range p.Volumes {
			own := &sim.Volume{
				Thing: r.thing(v.VolumeId, tagsOf(v.Tags)), Zone: aws.ToString(v.AvailabilityZone), Type: string(v.VolumeType), Key: aws.ToString(v.KmsKeyId),
				Size: aws.ToInt32(v.Size), IOPS: aws.ToInt32(v.Iops), Throughput: aws.ToInt32(v.Throughput), Encrypted: aws.ToBool(v.Encrypted),
			}
			own.Born = r.since(v.CreateTime)
			for _, a := range v.Attachments {
				own.Instance, own.Device, own.DeleteWithInstance = aws.ToString(a.InstanceId), aws.ToString(a.Device), aws.ToBool(a.DeleteOnTermination)
			}
			found[own.ID] = own
		}
	})
	if err == nil {
		r.to.EC2.Volumes = found
	}
	return err
}
