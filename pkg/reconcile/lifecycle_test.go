package reconcile_test

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
)

// A cluster that is planned, applied, planned again, deleted: the plan after
// the apply is empty, and the account after the deletion is as it was before.
func TestLifecycle(t *testing.T) {
	for _, file := range examples(t) {
		t.Run(name(file), func(t *testing.T) {
			m := load(t, file, nil)
			synctest.Test(t, func(t *testing.T) {
				a := account(m, lag)
				before := a.Inventory()
				mustApply(t, m, a)
				for _, s := range mustPlan(t, m, a).Steps {
					require.False(t, s.Does(), "%s: %s %v", s.Node, s.Action, s.Diff)
				}
				mustDelete(t, m, a)
				require.Equal(t, before, a.Inventory())
			})
		})
	}
}
