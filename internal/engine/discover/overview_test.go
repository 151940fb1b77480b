package discover_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/discover"
	"github.com/clusterawsadm/clusterawsadm/internal/enginetest"
)

// overviews reads the clusters of an account.
func overviews(t *testing.T, p *awssim.Process) (map[string]*discover.Overview, error) {
	t.Helper()
	c := cloud.New(p.Config(), "", cloud.Options{Kubernetes: p.Kubernetes})
	return discover.Overviews(cloud.InSnapshot(context.WithoutCancel(t.Context())), c)
}

// A list says of each cluster what AWS shows of it: machines, nodes of node groups, the version, and since when.
func TestOverviews(t *testing.T) {
	owned := enginetest.LoadQuick(t, enginetest.ThreeZones)
	managed := enginetest.LoadQuick(t, "eks.yaml")
	synctest.Test(t, func(t *testing.T) {
		a := awssim.New(awssim.Options{Region: owned.Region, EKSRoles: true})
		a.Edit(func(s *awssim.State) { s.EC2.Limits.Addresses = 10 })
		enginetest.MustApply(t, owned, a)
		began := time.Now()
		enginetest.MustApply(t, managed, a)
		time.Sleep(enginetest.Booting)
		found, err := overviews(t, a.Process())
		require.NoError(t, err)
		require.Len(t, found, 2)

		o := found[owned.Name]
		require.NotNil(t, o)
		assert.Equal(t, discover.Machines{Running: 3, All: 3}, o.ControlPlane)
		assert.Equal(t, discover.Machines{Running: 3, All: 3}, o.Workers)
		assert.Equal(t, "v1.34.2", o.Version)
		assert.False(t, o.EKS)
		assert.Zero(t, o.Stopped)
		assert.False(t, o.Since.IsZero())
		assert.True(t, o.Since.Before(began))

		e := found[managed.Name]
		require.NotNil(t, e)
		assert.True(t, e.EKS)
		assert.Equal(t, "ACTIVE", e.Status)
		assert.Regexp(t, `^v1\.\d+$`, e.Version)
		assert.Zero(t, e.ControlPlane)
		assert.Positive(t, e.Workers.All)
		assert.Equal(t, e.Workers.All, e.Workers.Running)
		assert.False(t, e.Since.Before(began))

		leaving := enginetest.MachineWith(a, "control-plane")
		a.Edit(func(s *awssim.State) {
			s.EC2.Instances[leaving].Terminating, s.EC2.Instances[leaving].Terminated = time.Now(), time.Now().Add(time.Hour)
		})
		found, err = overviews(t, a.Process())
		require.NoError(t, err)
		assert.Equal(t, 2, found[owned.Name].ControlPlane.Running, "one is shutting down")
	})
}

// Each read of a list may be refused, and the error names it.
func TestOverviewsRefused(t *testing.T) {
	m := enginetest.LoadQuick(t, "eks.yaml")
	owned := enginetest.LoadQuick(t, enginetest.ThreeZones)
	synctest.Test(t, func(t *testing.T) {
		a := awssim.New(awssim.Options{Region: m.Region, EKSRoles: true})
		a.Edit(func(s *awssim.State) { s.EC2.Limits.Addresses = 10 })
		enginetest.MustApply(t, m, a)
		enginetest.MustApply(t, owned, a)
		for _, call := range [][2]string{
			{"EC2", "DescribeInstances"},
			{"EC2", "DescribeImages"},
			{"EKS", "ListClusters"},
			{"EKS", "DescribeCluster"},
			{"EKS", "ListNodegroups"},
			{"EKS", "DescribeNodegroup"},
		} {
			_, err := overviews(t, enginetest.Refusing(a, call[0], call[1], awssim.Denied))
			require.ErrorContains(t, err, call[1])
		}
	})
}
