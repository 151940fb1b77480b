package replica

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
)

func (r *reader) keyPairs(ctx context.Context) error {
	out, err := ec2.NewFromConfig(r.Config).DescribeKeyPairs(ctx, &ec2.DescribeKeyPairsInput{})
	if err != nil {
		return err
	}
	r.to.EC2.KeyPairs = map[string]bool{}
	for _, k := range out.KeyPairs {
		r.to.EC2.KeyPairs[aws.ToString(k.KeyName)] = true
	}
	return nil
}
