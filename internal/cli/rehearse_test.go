package cli

import (
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
)

// A rehearsal creates and deletes a cluster in a copy of the simulated account.
func TestRehearse(t *testing.T) {
	s := newSession(t)
	s.simulates(func(*testing.T, *awssim.AWS) {})
	s.variables["CLUSTERAWSADM_SIMULATE_SPEED"] = "500"
	file := s.variables["CLUSTERAWSADM_SIMULATE_STATE"]
	before, err := os.ReadFile(file)
	require.NoError(t, err)
	s.types(0, "cluster", "rehearse", "-f", "../../configs/quickstart.yaml", "-v", "4")
	for _, want := range []string{`create +\d+m`, `delete +\d+m`, `Calls by service: EC2 \d+, `, `Left in the account: nothing`} {
		assert.Regexp(t, want, s.out.String())
	}
	assert.Contains(t, s.err.String(), "EC2 CreateVpc ", "calls are logged as in other commands")
	after, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.Equal(t, before, after, "the account itself is not changed")
}
