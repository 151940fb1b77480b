package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
	"github.com/clusterawsadm/clusterawsadm/pkg/input"
	"github.com/clusterawsadm/clusterawsadm/pkg/reconcile"
)

// A simulated account has a file for each region, and --all-regions shows all.
func TestListAllSimulatedRegions(t *testing.T) {
	s := newSession(t)
	s.standing()
	beside := filepath.Join(filepath.Dir(s.HomeDir), "account-eu-west-1.json")
	text, err := os.ReadFile(s.generated(t))
	require.NoError(t, err)
	west := strings.NewReplacer("us-east-1", "eu-west-1", "demo", "west").Replace(string(text))
	m, err := reconcile.Load([]input.Source{{Name: "west.yaml", Data: []byte(west)}}, input.LoadOptions{})
	require.NoError(t, err)
	synctest.Test(t, func(t *testing.T) {
		a := awssim.New(awssim.Options{Region: "eu-west-1"})
		_, err := reconcile.Open(m, cluster.Target{Config: a.Config(), Owner: "a test"}).Apply(t.Context(), cluster.Options{})
		require.NoError(t, err)
		f, err := os.Create(beside)
		require.NoError(t, err)
		require.NoError(t, a.Save(f))
		require.NoError(t, f.Close())
	})
	s.types(0, "cluster", "list", "--all-regions")
	assert.Regexp(t, `demo +us-east-1`, s.out.String())
	assert.Regexp(t, `west +eu-west-1`, s.out.String())
	s.types(0, "cluster", "list", "--region", "eu-west-1")
	assert.NotContains(t, s.out.String(), "demo")
	assert.Contains(t, s.out.String(), "west")
	s.variables["CLUSTERAWSADM_SIMULATE_STATE"] = beside
	s.types(0, "cluster", "list")
	assert.Contains(t, s.out.String(), "west", "without --region, the region is that of the file")
}
