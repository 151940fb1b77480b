package replica

import (
	"cmp"
	"context"
	"maps"

	"github.com/aws/aws-sdk-go-v2/aws"
	elb "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2"

	sim "github.com/clusterawsadm/clusterawsadm/internal/awssim/elb"
)

// readListeners adds the listeners of a load balancer to those found.
func readListeners(ctx context.Context, c *elb.Client, b *sim.LoadBalancer, found map[string]*sim.Listener) error {
	var arns []string
	err := pages(ctx, elb.NewDescribeListenersPaginator(c, &elb.DescribeListenersInput{LoadBalancerArn: &b.ARN}), func(p *elb.DescribeListenersOutput) {
		for _, l := range p.Listeners {
			own := &sim.Listener{
				ARN:          aws.ToString(l.ListenerArn),
				LoadBalancer: b.ARN,
				Protocol:     string(l.Protocol),
				Port:         aws.ToInt32(l.Port),
				Tags:         map[string]string{},
				Born:         b.Born,
			}
			for _, a := range l.DefaultActions {
				own.TargetGroup = cmp.Or(own.TargetGroup, aws.ToString(a.TargetGroupArn))
			}
			found[own.ARN], arns = own, append(arns, own.ARN)
		}
	})
	if err != nil {
		return err
	}
	tags, err := balancerTags(ctx, c, arns)
	for _, arn := range arns {
		maps.Copy(found[arn].Tags, tags[arn])
	}
	return err
}
