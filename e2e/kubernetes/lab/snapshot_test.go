package lab

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// snapshot returns a line for each running instance, and for each security group and
// attribute of each load balancer.
func (a *account) snapshot(t *testing.T) (lines []string) {
	t.Helper()
	instances, err := a.Instances(t.Context())
	require.NoError(t, err)
	for _, i := range instances {
		if i.State == "running" {
			lines = append(lines, i.ID)
		}
	}
	var balancers struct {
		All []struct {
			ARN    string   `xml:"LoadBalancerArn"`
			Groups []string `xml:"SecurityGroups>member"`
		} `xml:"DescribeLoadBalancersResult>LoadBalancers>member"`
	}
	require.NoError(t, a.elb(t.Context(), "DescribeLoadBalancers", &balancers))
	for _, b := range balancers.All {
		for _, g := range b.Groups {
			lines = append(lines, b.ARN+" "+g)
		}
		var attributes struct {
			All []struct{ Key, Value string } `xml:"DescribeLoadBalancerAttributesResult>Attributes>member"`
		}
		require.NoError(t, a.elb(t.Context(), "DescribeLoadBalancerAttributes", &attributes, "LoadBalancerArn", b.ARN))
		for _, x := range attributes.All {
			lines = append(lines, fmt.Sprintf("%s %s=%s", b.ARN, x.Key, x.Value))
		}
	}
	slices.Sort(lines)
	return lines
}
