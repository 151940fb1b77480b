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
