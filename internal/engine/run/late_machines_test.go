package run_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/run"
	"github.com/clusterawsadm/clusterawsadm/internal/enginetest"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
)

// The plan reports machines that are added too late to join.
func TestLateMachinesAreReported(t *testing.T) {
	m := enginetest.LoadQuick(t, enginetest.ThreeZones)
	synctest.Test(t, func(t *testing.T) {
		a := enginetest.Account(m, 0)
		enginetest.MustApply(t, m, a)
		four := int32(4)
		m.Deployments[0].Object.Spec.Replicas = &four
		var told []string
		plan := func() {
			told = nil
			_, err := run.Open(m, cluster.Target{Config: a.Config(), Warn: func(s string) { told = append(told, s) }}).Plan(t.Context())
			require.NoError(t, err)
		}
		plan()
		require.Empty(t, told)
		time.Sleep(26 * time.Hour)
		plan()
		require.Len(t, told, 1)
		require.Contains(t, told[0], "1 machine will be added")
		require.Contains(t, told[0], "was created 26h3m0s ago and is valid for 2h0m0s")
	})
}
