package elb_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/elb"
	"github.com/clusterawsadm/clusterawsadm/internal/enginetest"
)

// In an account with 50 clusters, others are deleted while a run looks for its own load balancers. AWS describes no tags
// of a call that has one deleted load balancer in it. Then the run lists them again, instead of asking for each.
func TestTagsWhileOthersAreDeleted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := awssim.New(awssim.Options{Region: "us-east-1"})
		arn := func(i int) string {
			return fmt.Sprintf("arn:aws:elasticloadbalancing:us-east-1:123456789012:loadbalancer/net/lb-%02d/%016d", i, i)
		}
		a.Edit(func(s *awssim.State) {
			for i := range 50 {
				s.ELB.LoadBalancers[arn(i)] = &awssim.LoadBalancer{
					ARN: arn(i), Name: fmt.Sprintf("lb-%02d", i), Type: "network", Scheme: "internet-facing", Born: time.Now().Add(-time.Hour),
					Tags: map[string]string{fmt.Sprintf("%sc%d", cloud.ClusterTagPrefix, i): cloud.Owned},
				}
			}
		})
		c, ctx := cloud.New(a.Process().Config(), "c20", cloud.Options{}), cloud.InSnapshot(t.Context())
		all, err := elb.LoadBalancers(ctx, c)
		require.NoError(t, err)
		require.Len(t, all, 50)
		a.Edit(func(s *awssim.State) {
			for i := range 7 {
				delete(s.ELB.LoadBalancers, arn(7*i))
			}
		})
		time.Sleep(5 * time.Second)
		calls := len(a.Calls())
		own, err := elb.OwnLoadBalancers(ctx, c)
		require.NoError(t, err)
		require.Len(t, own, 1)
		assert.Equal(t, arn(20), own[0].ID)
		n := 0
		for _, c := range enginetest.Since(a, calls) {
			if c.Operation == "DescribeTags" {
				n++
			}
		}
		// Which load balancers are in a group is chance: one to three of the three groups have a deleted one.
		assert.GreaterOrEqual(t, n, 4, "a group that fails is asked for again")
		assert.LessOrEqual(t, n, 6, "each group is asked for twice at most")
	})
}
