package stack_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	"github.com/clusterawsadm/clusterawsadm/pkg/bootstrap/stack"
)

// In the copy of an account, the stack of the bootstrap is the one of the account: it is unchanged,
// changed and deleted with the same result.
func TestStackInACopy(t *testing.T) {
	bare(t, func(t *testing.T, u *user) {
		_, err := u.apply(stack.Wanted{Tags: map[string]string{"team": "red"}})
		require.NoError(t, err)
		copied, remarks, err := awssim.Copy(t.Context(), u.aws.Config(), awssim.NewAsked(), awssim.Options{})
		require.NoError(t, err)
		assert.Empty(t, remarks)
		assert.Equal(t, u.aws.Detailed(), copied.Detailed())

		twin := &user{t: t, aws: copied, p: copied.Process()}
		outcome, err := twin.apply(stack.Wanted{})
		require.NoError(t, err)
		assert.Equal(t, stack.Unchanged, outcome)
		for _, x := range []*user{u, twin} {
			outcome, err = x.apply(stack.Wanted{Template: template(t, csi)})
			require.NoError(t, err)
			assert.Equal(t, stack.Updated, outcome)
		}
		assert.Equal(t, u.aws.Detailed(), copied.Detailed())
		existed, err := twin.stack().Delete(t.Context())
		require.NoError(t, err)
		assert.True(t, existed)
		assert.Empty(t, copied.Inventory())
	})
}

// A stack of another name is found by the roles that it has made. An account without a stack has
// none in its copy.
func TestStacksInACopy(t *testing.T) {
	bare(t, func(t *testing.T, u *user) {
		copied, _, err := awssim.Copy(t.Context(), u.aws.Config(), awssim.NewAsked(), awssim.Options{})
		require.NoError(t, err)
		assert.Empty(t, copied.Inventory())
		copied.Edit(func(s *awssim.State) { assert.Empty(t, s.CloudFormation.Stacks) })

		mine := stack.New(u.p.Config(), "of-the-platform-team", stack.Options{})
		_, err = mine.Apply(t.Context(), stack.Wanted{Template: template(t, nil)})
		require.NoError(t, err)
		copied, _, err = awssim.Copy(t.Context(), u.aws.Config(), awssim.NewAsked(), awssim.Options{})
		require.NoError(t, err)
		assert.Contains(t, copied.Inventory(), "Stack of-the-platform-team")
		assert.Equal(t, u.aws.Detailed(), copied.Detailed())
	})
}
