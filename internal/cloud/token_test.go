package cloud_test

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
)

// Within a run, the same words give the same token. Other words, also if they concatenate
// to the same string, and other runs give other tokens.
func TestToken(t *testing.T) {
	c, other := newWire(nil).clients(), newWire(nil).clients()
	first := *c.Token("run", "machine/0")
	require.Equal(t, first, *c.Token("run", "machine/0"))
	require.Len(t, *c.Token("run"), 32)
	seen := map[string]bool{}
	for _, words := range [][]string{{"a", "b"}, {"ab"}, {"a", "", "b"}, {"b", "a"}, {"ab", ""}, {}} {
		require.False(t, seen[*c.Token(words...)], "%q", words)
		seen[*c.Token(words...)] = true
		require.NotEqual(t, *c.Token(words...), *other.Token(words...))
	}
}

func TestTags(t *testing.T) {
	tags := cloud.Tags{"b": "2", "a": "1"}
	require.Equal(t, cloud.Tags{"a": "1", "b": "3", "c": "4"}, tags.With(cloud.Tags{"b": "3", "c": "4"}))
	require.Equal(t, cloud.Tags{"a": "1", "b": "2"}, tags, "With does not change the original")
	require.Equal(t, cloud.Tags{"x": "y"}, cloud.Tags(nil).With(cloud.Tags{"x": "y"}))
	require.Equal(t, []types.Tag{{Key: aws.String("a"), Value: aws.String("1")}, {Key: aws.String("b"), Value: aws.String("2")}}, tags.EC2())
	require.Equal(t, tags, cloud.FromEC2(tags.EC2()))
	on := tags.On(types.ResourceTypeInstance, types.ResourceTypeVolume)
	require.Len(t, on, 2)
	require.Equal(t, types.ResourceTypeVolume, on[1].ResourceType)
	c := newWire(nil).clients()
	require.Equal(t, "sigs.k8s.io/cluster-api-provider-aws/cluster/demo", c.OwnerTag())
	require.Equal(t, []types.Filter{
		{Name: aws.String("state"), Values: []string{"available"}},
		{Name: aws.String("tag:sigs.k8s.io/cluster-api-provider-aws/cluster/demo"), Values: []string{"owned"}},
	}, c.OwnedFilters(cloud.Filter("state", "available")))
	require.Equal(t, "/clusterawsadm/demo/pki/ca.crt", c.ParameterPath("pki", "ca.crt"))
}
