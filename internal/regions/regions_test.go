package regions_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/regions"
)

func TestRemark(t *testing.T) {
	require.Empty(t, regions.Remark("eu-west-1"))
	require.Empty(t, regions.Remark("us-gov-west-1"))
	require.Empty(t, regions.Remark(""), "the environment has it")
	require.Equal(t, "region us-est-1 is not one of those that were known when this program was built: did you mean us-east-1?", regions.Remark("us-est-1"))
	require.Equal(t, "region moon is not one of those that were known when this program was built", regions.Remark("moon"))
	all := regions.All()
	require.Len(t, slices.Compact(slices.Sorted(slices.Values(all))), len(all))
}

func TestMalformed(t *testing.T) {
	for region, want := range map[string]string{
		"":            "",
		"us-east-1":   "",
		"us-est-1":    "", // it may be newer than this program
		"eu-newest-3": "",
		"US-EAST-1":   "US-EAST-1 is not the name of a region: AWS writes it as us-east-1",
		"us-east-1a":  "us-east-1a is a zone, and not a region: the region is us-east-1",
		"us_east_1":   `"us_east_1" is not the name of a region: did you mean us-east-1?`,
		"moon":        `"moon" is not the name of a region, such as us-east-1`,
	} {
		require.Equal(t, want, regions.Malformed(region), region)
	}
}
