package awssim

import (
	"fmt"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestTags(t *testing.T) {
	in(t, Options{}, func(t *testing.T, n *testbed) {
		ctx := t.Context()
		tag := func(id, key, value string) string {
			_, err := n.ec2.CreateTags(ctx, &ec2.CreateTagsInput{Resources: []string{n.vpc, id}, Tags: []types.Tag{{Key: &key, Value: &value}}})
			return code(err)
		}
		assert.Equal(t, "InvalidParameterValue", tag(n.subnet, "aws:x", "y"))
		assert.Equal(t, "InvalidParameterValue", tag(n.subnet, strings.Repeat("k", 129), "y"))
		assert.Equal(t, "InvalidParameterValue", tag(n.subnet, "k", strings.Repeat("v", 257)))
		assert.Equal(t, "InvalidSubnetID.NotFound", tag("subnet-00000000000000000", "k", "v"))
		list := func(filters ...types.Filter) []types.TagDescription {
			out, err := n.ec2.DescribeTags(ctx, &ec2.DescribeTagsInput{Filters: filters})
			require.NoError(t, err)
			return out.Tags
		}
		assert.Empty(t, list(filter("key", "k")...), "all or none")
		for k := range 49 {
			assert.Empty(t, tag(n.subnet, fmt.Sprintf("k%d", k), "v"))
		}
		assert.Equal(t, "TagLimitExceeded", tag(n.subnet, "one more", "v"))
		assert.Len(t, list(append(filter("resource-type", "subnet"), filter("value", "v")...)...), 49)
		_, err := n.ec2.DeleteTags(ctx, &ec2.DeleteTagsInput{Resources: []string{n.vpc, n.subnet}, Tags: []types.Tag{
			{Key: aws.String("k1")}, {Key: aws.String("k2"), Value: aws.String("other")},
		}})
		require.NoError(t, err)
		assert.Empty(t, list(filter("key", "k1")...))
		assert.Len(t, list(filter("key", "k2")...), 2)
	})
}
