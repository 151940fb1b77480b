package ec2

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/kind"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// KeyPairByName looks up a key pair. It describes all key pairs of the cluster in one
// call.
func KeyPairByName(name string, all []string) graph.Lookup[Named] {
	return func(ctx context.Context, c *cloud.Clients) (*Named, error) {
		out, err := cloud.Remember(ctx, c, "key pairs", func(ctx context.Context) (*ec2.DescribeKeyPairsOutput, error) {
			return c.EC2.DescribeKeyPairs(ctx, &ec2.DescribeKeyPairsInput{Filters: []types.Filter{cloud.Filter("key-name", all...)}})
		})
		if err != nil {
			return nil, err
		}
		for _, k := range out.KeyPairs {
			if aws.ToString(k.KeyName) == name {
				n := Named{Name: name}
				return &n, nil
			}
		}
		return nil, fmt.Errorf(
			`key pair %q does not exist in %s: create it (aws ec2 create-key-pair), set another one in sshKeyName, or set sshKeyName: "" for none`,
			name,
			c.Region,
		)
	}
}

// keyPairKind declares key pairs. A cluster uses existing ones and never
// creates any.
func keyPairKind() *kind.Kind {
	return &kind.Kind{Name: "key-pair", Area: plan.AreaPrerequisites, ReadActions: []string{"ec2:DescribeKeyPairs"}}
}
