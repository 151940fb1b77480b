package secrets_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/run"
	"github.com/clusterawsadm/clusterawsadm/internal/enginetest"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
)

// ListSecrets shows neither new secrets nor deletions for five minutes. A deletion right
// after a create that was interrupted deletes all of them: they contain the keys of the
// cluster. It does not take those that are only still listed for left over.
func TestSecretsAreListedLate(t *testing.T) {
	for what, open := range map[string]func(*testing.T, *awssim.AWS) *run.Cluster{
		"by manifest": func(t *testing.T, a *awssim.AWS) *run.Cluster {
			t.Helper()
			return enginetest.Open(enginetest.Quick(enginetest.Load(t, enginetest.ThreeZones, nil)), a.Process())
		},
		"by name": func(_ *testing.T, a *awssim.AWS) *run.Cluster { return enginetest.ByName("three-zones", a) },
	} {
		for _, age := range []time.Duration{0, 6 * time.Minute} {
			t.Run(what+" after "+age.String(), func(t *testing.T) {
				m := enginetest.Quick(enginetest.Load(t, enginetest.ThreeZones, nil))
				synctest.Test(t, func(t *testing.T) {
					a := enginetest.Account(m, enginetest.Lag)
					ctx, stop := context.WithCancel(t.Context())
					p := a.Process()
					p.Fault = func(_ int, _, op string) awssim.Fault {
						if op == "RunInstances" {
							stop()
						}
						return awssim.None
					}
					_, err := run.Open(m, cluster.Target{Config: p.Config(), Owner: "test"}).Apply(ctx, cluster.Options{})
					require.Error(t, err)
					a.Edit(func(s *awssim.State) { require.NotEmpty(t, s.Secrets.Secrets) })
					time.Sleep(age)
					_, err = open(t, a).Delete(t.Context(), cluster.Options{})
					require.NoError(t, err)
					require.Empty(t, a.Inventory())
				})
			})
		}
	}
}

// A cluster may be created again right after it was deleted, although Parameter Store does
// not accept the names of deleted parameters at once.
func TestCreateAgainAtOnce(t *testing.T) {
	for _, file := range []string{enginetest.Quickstart, "eks.yaml"} {
		synctest.Test(t, func(t *testing.T) {
			m := enginetest.LoadQuick(t, file)
			a := enginetest.Prepared(t, m)
			before := a.Inventory()
			for range 2 {
				enginetest.MustApply(t, m, a)
				enginetest.MustDelete(t, m, a)
				require.Equal(t, before, a.Inventory())
			}
		})
	}
}
