package reconcile_test

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"clusterawsadm/internal/awssim"
)

func TestZZ(t *testing.T) {
	for _, file := range examples(t) {
		for _, fault := range []awssim.Fault{awssim.Denied, awssim.KillBefore, awssim.KillAfter, awssim.LostAfter} {
			t.Run(name(file)+"/"+string(fault), func(t *testing.T) {
				t.Parallel()
				m := quick(load(t, file, nil))
				for n := 1; ; n += 3 {
					done := false
					synctest.Test(t, func(t *testing.T) {
						a := account(m, lag)
						prepare(t, file, a, m)
						before := a.Detailed()
						calls := len(a.Calls())
						err := disturbed(t, m, a, n, fault)
						if err == nil && len(a.Calls())-calls < n { done = true }
						if n%2 == 0 {
							mustApply(t, m, a)
							requireEmpty(t, m, a)
						}
						mustDelete(t, m, a)
						require.Equal(t, before, a.Detailed(), "call %d", n)
					})
					if done || t.Failed() { break }
				}
			})
		}
	}
}
