package secrets_test

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	"github.com/clusterawsadm/clusterawsadm/internal/enginetest"
)

// The keys of a cluster with machines cannot be created again: if they are lost, the run
// is refused.
func TestLostKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := enginetest.Quick(enginetest.Load(t, enginetest.Quickstart, nil))
		a := enginetest.Account(m, 0)
		enginetest.MustApply(t, m, a)
		a.Edit(func(s *awssim.State) {
			enginetest.EditKeys(s, "quickstart", func(keys map[string]string) { delete(keys, "ca.key") })
		})
		enginetest.RequireRefused(t, m, a, "certificates", "keys")
		enginetest.MustDelete(t, m, a)
		require.Empty(t, a.Inventory())
	})
}
