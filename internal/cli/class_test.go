package cli

import (
	"os"
	"regexp"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A cluster with a class has the same plan as a cluster without, except for the origins.
func TestPlanOfAClass(t *testing.T) {
	plan := func(file string) string {
		_, err := os.Stat(file)
		require.NoError(t, err)
		s := newShell(t)
		require.Equal(t, 0, s.run("cluster", "plan", "--simulate", "-f", file), s.err.String())
		return regexp.MustCompile(`(?m)^ *#.*\n`).ReplaceAllString(s.out.String(), "")
	}
	want := plan("../../configs/quickstart.yaml")
	assert.Contains(t, want, "quickstart-md-0")
	assert.Equal(t, want, plan("../../configs/clusterclass.yaml"))
}
