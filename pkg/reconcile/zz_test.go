package reconcile_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"clusterawsadm/internal/awssim"
	"clusterawsadm/pkg/reconcile"
)

func TestZZ(t *testing.T) {
	for _, file := range examples(t) {
		for _, fault := range []awssim.Fault{awssim.Denied, awssim.KillAfter, awssim.LostAfter} {
			t.Run(name(file)+"/"+string(fault), func(t *testing.T) {
				t.Parallel()
				m := quick(load(t, file, nil))
				for n := 1; ; n += 3 {
					done := false
					synctest.Test(t, func(t *testing.T) {
						a := account(m, lag)
						prepare(t, file, a, m)
						before := a.Detailed()
						mustApply(t, m, a)
						p := a.Process()
						ctx, cancel := context.WithCancel(t.Context())
						defer cancel()
						p.Killed = cancel
						p.Fault = func(call int, _, _ string) awssim.Fault {
							if call == n { return fault }
							return awssim.None
						}
						var err error
						if n%2 == 0 {
							_, err = open(m, p).Delete(ctx, reconcile.Options{})
						} else {
							_, err = reconcile.OpenByName(m.Name, reconcile.Target{Config: p.Config(), Who: "test"}).Delete(ctx, reconcile.Options{})
						}
						done = err == nil && p.Calls() < n
						if n%4 < 2 {
							mustDelete(t, m, a)
						} else {
							_, err = byName(m.Name, a).Delete(t.Context(), reconcile.Options{})
							require.NoError(t, err)
						}
						require.Equal(t, before, a.Detailed(), "call %d", n)
					})
					if done || t.Failed() { break }
				}
			})
		}
	}
}
