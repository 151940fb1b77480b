package core_test

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim/core"
)

// A listing shows each item once, also if others are deleted between two pages.
func TestPagesOfAListThatChanges(t *testing.T) {
	a := core.New(core.Options{}, &core.State{})
	first, token, err := core.Page(a, []int{1, 2, 3, 4, 5}, nil, aws.Int32(2), 1000)
	require.NoError(t, err)
	assert.Equal(t, []int{1, 2}, first)
	for range 2 { // the answer may be lost, and the call repeated
		second, next, err := core.Page(a, []int{4, 5}, token, aws.Int32(2), 1000)
		require.NoError(t, err)
		assert.Equal(t, []int{3, 4}, second)
		third, end, err := core.Page(a, []int{}, next, aws.Int32(2), 1000)
		require.NoError(t, err)
		assert.Equal(t, []int{5}, third)
		assert.Nil(t, end)
	}
	_, _, err = core.Page(a, []string{"a"}, token, nil, 1000)
	assert.ErrorContains(t, err, "InvalidNextToken", "a token of another operation")
}
