package run_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	"github.com/clusterawsadm/clusterawsadm/internal/enginetest"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// A run survives 45 seconds without a network, whatever it does at the time.
func TestOutage(t *testing.T) {
	m := enginetest.LoadQuick(t, enginetest.Quickstart)
	for from := 2 * time.Second; from < 150*time.Second; from += 13 * time.Second {
		t.Run(fmt.Sprint(from), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := enginetest.Account(m, enginetest.Lag)
				before, began, p := a.Inventory(), time.Now(), a.Process()
				p.Fault = func(int, string, string) awssim.Fault {
					if age := time.Since(began); age >= from && age < from+45*time.Second {
						return awssim.Unsent
					}
					return awssim.None
				}
				_, err := enginetest.Open(m, p).Apply(t.Context(), cluster.Options{})
				require.NoError(t, err)
				enginetest.RequireNoChange(t, m, a)
				enginetest.MustDelete(t, m, a)
				require.Equal(t, before, a.Inventory())
			})
		})
	}
}

// If the first call cannot be sent, the region may be wrong: that is reported at once.
func TestUnreachable(t *testing.T) {
	m := enginetest.LoadQuick(t, enginetest.Quickstart)
	synctest.Test(t, func(t *testing.T) {
		a := enginetest.Account(m, 0)
		began, p := time.Now(), a.Process()
		p.Fault = func(int, string, string) awssim.Fault { return awssim.Unsent }
		_, err := enginetest.Open(m, p).Apply(t.Context(), cluster.Options{})
		require.ErrorContains(t, err, "no such host")
		require.Less(t, time.Since(began), 2*time.Second)
	})
}

// An interrupt ends a run within two seconds, even if AWS does not answer any more.
func TestInterruptedSilence(t *testing.T) {
	m := enginetest.LoadQuick(t, enginetest.Quickstart)
	for _, op := range []string{"CreateVpc", "CreateNatGateway", "RunInstances", "DescribeNatGateways"} {
		t.Run(op, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := enginetest.Account(m, enginetest.Lag)
				before, p := a.Inventory(), a.Process()
				ctx, interrupt := context.WithCancel(t.Context())
				var interrupted time.Time
				silent := false
				p.Fault = func(_ int, _, called string) awssim.Fault {
					if called == op && !silent {
						silent = true
						go func() {
							time.Sleep(10 * time.Second)
							interrupted = time.Now()
							interrupt()
						}()
					}
					if silent {
						return awssim.Silent
					}
					return awssim.None
				}
				_, err := enginetest.Open(m, p).Apply(ctx, cluster.Options{})
				require.Error(t, err)
				require.LessOrEqual(t, time.Since(interrupted), 2*time.Second)
				enginetest.MustApply(t, m, a)
				enginetest.RequireNoChange(t, m, a)
				enginetest.MustDelete(t, m, a)
				require.Equal(t, before, a.Inventory())
			})
		})
	}
}

// A run whose answers are all cut fails: nobody has refused it.
func TestCutIsNoRefusal(t *testing.T) {
	m := enginetest.LoadQuick(t, enginetest.Quickstart)
	synctest.Test(t, func(t *testing.T) {
		p := enginetest.Account(m, 0).Process()
		p.Fault = func(int, string, string) awssim.Fault { return awssim.Cut }
		_, err := enginetest.Open(m, p).Plan(t.Context())
		require.ErrorContains(t, err, "unexpected EOF")
		require.NotErrorAs(t, err, new(*plan.RefusedError))
	})
}
