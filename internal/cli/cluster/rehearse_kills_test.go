package cluster

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/cli/account"
	"github.com/clusterawsadm/clusterawsadm/internal/cli/env"
)

// What another run leaves, makes twice or does not make is told, by the call at which the first
// one was killed.
func TestKillsThatMatter(t *testing.T) {
	assert.Empty(t, compared([]string{"subnet a", "vpc"}, []string{"subnet a", "vpc"}))
	problem := compared([]string{"subnet a", "vpc"}, []string{"vpc", "vpc"})
	assert.Equal(t, "left: vpc; missing: subnet a", problem)

	var out bytes.Buffer
	f := &flags{Flags: account.Flags{Env: &env.Env{Out: &out}}}
	k := &kills{done: 5, complete: 1, problems: [][]string{{"create, after EC2 CreateVpc (call 7)", problem}}}
	require.EqualError(t, k.print(f), "1 of 4 killed runs, run again, do not have the result of a run that was not killed")
	assert.Contains(t, out.String(), "create, after EC2 CreateVpc (call 7)   left: vpc; missing: subnet a")
}
