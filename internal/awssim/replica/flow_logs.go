package replica

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	sim "github.com/clusterawsadm/clusterawsadm/internal/awssim/ec2"
)

// flowLogs reads the flow logs of VPCs that deliver to log groups and buckets.
func (r *reader) flowLogs(ctx context.Context, c *ec2.Client, n *sim.State) error {
	return pages(ctx, ec2.NewDescribeFlowLogsPaginator(c, &ec2.DescribeFlowLogsInput{}), func(p *ec2.DescribeFlowLogsOutput) {
		for _, f := range p.FlowLogs {
			if n.VPCs[aws.ToString(f.ResourceId)] == nil || f.LogDestinationType == types.LogDestinationTypeKinesisDataFirehose {
				continue
			}
			own := &sim.FlowLog{
				Thing: r.thing(f.FlowLogId, tagsOf(f.Tags)), VPC: aws.ToString(f.ResourceId), Traffic: string(f.TrafficType),
				Role: aws.ToString(f.DeliverLogsPermissionArn), Failed: aws.ToString(f.DeliverLogsErrorMessage),
			}
			if f.LogDestinationType == types.LogDestinationTypeS3 {
				own.Bucket = aws.ToString(f.LogDestination)
			} else {
				own.LogGroup = aws.ToString(f.LogGroupName)
			}
			n.FlowLogs[own.ID] = own
		}
	})
}
