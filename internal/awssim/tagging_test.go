package awssim

import (
	"fmt"
	"regexp"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/aws/aws-sdk-go-v2/aws"
	elb "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2"
	tagging "github.com/aws/aws-sdk-go-v2/service/resourcegroupstaggingapi"
	"github.com/aws/aws-sdk-go-v2/service/resourcegroupstaggingapi/types"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	ssmtypes "github.com/aws/aws-sdk-go-v2/service/ssm/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// anonymous removes IDs from a text.
func anonymous(s string) string {
	return regexp.MustCompile(`\b[a-z]+-0[0-9a-f]{16}\b|\b[0-9a-f]{16}\b`).ReplaceAllString(s, "(ID)")
}

func TestTaggingFindsEverything(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := furnished(Options{})
		eksReady(t, a, "demo")
		served(t, elb.NewFromConfig(a.Config()))
		_, err := ssm.NewFromConfig(a.Config()).PutParameter(t.Context(), &ssm.PutParameterInput{
			Name: aws.String(
				"/a/b",
			),
			Value: aws.String("c"),
			Type:  ssmtypes.ParameterTypeString,
			Tags:  []ssmtypes.Tag{{Key: aws.String("team"), Value: aws.String("blue")}},
		})
		require.NoError(t, err)
		a.Edit(func(s *State) {
			for _, b := range s.ELB.LoadBalancers {
				b.Tags = map[string]string{"team": "red", "size": "L"}
			}
			s.S3.Buckets["demo"] = &Bucket{Name: "demo", Tags: map[string]string{"team": ""}}
			s.EC2.VPCs[testVPC].Tags = map[string]string{"team": "green"}
		})
		c := tagging.NewFromConfig(a.Config())
		find := func(kinds []string, filters ...types.TagFilter) (arns []string) {
			out, err := c.GetResources(t.Context(), &tagging.GetResourcesInput{ResourceTypeFilters: kinds, TagFilters: filters})
			require.NoError(t, err)
			assert.Empty(t, *out.PaginationToken, "the last page has an empty token, and not none")
			for _, r := range out.ResourceTagMappingList {
				arns = append(arns, anonymous(*r.ResourceARN))
			}
			return arns
		}
		filter := func(key string, values ...string) types.TagFilter { return types.TagFilter{Key: &key, Values: values} }
		cluster, bucket, parameter := "arn:aws:eks:us-east-1:123456789012:cluster/demo", "arn:aws:s3:::demo", "arn:aws:ssm:us-east-1:123456789012:parameter/a/b"
		balancer, vpc := "arn:aws:elasticloadbalancing:us-east-1:123456789012:loadbalancer/net/demo-apiserver/(ID)", "arn:aws:ec2:us-east-1:123456789012:vpc/"+anonymous(
			testVPC,
		)
		all := []string{cluster, bucket, parameter, balancer, vpc}
		slices.Sort(all)
		assert.Equal(t, all, find(nil, filter("team")), "a key alone is any value")
		assert.Equal(t, []string{cluster, balancer}, sorted(find(nil, filter("team", "red"))), "one value")
		assert.Len(t, find(nil, filter("team", "red", "blue")), 3, "values are alternatives")
		assert.Equal(t, []string{balancer}, find(nil, filter("team", "red"), filter("size", "L")), "filters are not")
		assert.Equal(t, []string{cluster}, find([]string{"eks:cluster"}, filter("team")))
		assert.Equal(t, []string{bucket, parameter}, find([]string{"s3", "ssm:parameter"}, filter("team")))
		assert.Empty(t, find(nil, filter("nobody")))
	})
}

func sorted(list []string) []string {
	slices.SortFunc(list, func(x, y string) int { return len(x) - len(y) })
	return list
}

func TestTaggingPages(t *testing.T) {
	a := New(Options{})
	a.Edit(func(s *State) {
		for i := range 120 {
			id := fmt.Sprintf("vol-0%016x", i)
			s.EC2.Volumes[id] = &Volume{Thing: Thing{ID: id, Tags: map[string]string{"k": "v"}}}
		}
	})
	c := tagging.NewFromConfig(a.Config())
	first, err := c.GetResources(t.Context(), &tagging.GetResourcesInput{})
	require.NoError(t, err)
	assert.Len(t, first.ResourceTagMappingList, 50)
	most, err := c.GetResources(t.Context(), &tagging.GetResourcesInput{ResourcesPerPage: aws.Int32(100)})
	require.NoError(t, err)
	assert.Len(t, most.ResourceTagMappingList, 100)
	rest, err := c.GetResources(t.Context(), &tagging.GetResourcesInput{ResourcesPerPage: aws.Int32(100), PaginationToken: most.PaginationToken})
	require.NoError(t, err)
	assert.Len(t, rest.ResourceTagMappingList, 20)
	assert.Empty(t, *rest.PaginationToken)
	_, err = c.GetResources(t.Context(), &tagging.GetResourcesInput{ResourcesPerPage: aws.Int32(101)})
	hasCode(t, err, "InvalidParameterException")
	_, err = c.GetResources(t.Context(), &tagging.GetResourcesInput{PaginationToken: aws.String("x")})
	hasCode(t, err, "PaginationTokenExpiredException")
	_, err = c.GetResources(t.Context(), &tagging.GetResourcesInput{TagFilters: []types.TagFilter{{}}})
	hasCode(t, err, "InvalidParameterException")
	_, err = c.GetResources(t.Context(), &tagging.GetResourcesInput{ResourceARNList: []string{"arn:aws:s3:::x"}})
	isNotSimulated(t, err)
}
