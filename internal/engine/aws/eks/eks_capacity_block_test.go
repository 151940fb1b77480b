package eks_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	ekssim "github.com/clusterawsadm/clusterawsadm/internal/awssim/eks"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/internal/enginetest"
)

const (
	templatesFile = "eks-templates.yaml"
	blockID       = "cr-0123456789abcdef0"
	blockGroup    = "node-group/default_eks-templates-web"
)

// inBlock returns an example whose node group web is in a Capacity Block, in one zone. replicas are "0" or more.
func inBlock(t *testing.T, replicas string, oldnew ...string) *manifest.Cluster {
	t.Helper()
	return withMarket(t, "    marketType: CapacityBlock\n", replicas, oldnew...)
}

func withMarket(t *testing.T, market, replicas string, oldnew ...string) *manifest.Cluster {
	t.Helper()
	return enginetest.Rewritten(t, templatesFile, append([]string{
		"  replicas: 2\n",
		"  replicas: " + replicas + "\n",
		"    minSize: 1\n    maxSize: 4\n",
		"    minSize: 0\n    maxSize: 4\n  availabilityZones: [us-east-1a]\n",
		"    instanceType: t3.large\n",
		"    instanceType: p5.48xlarge\n" + market + "    capacityReservationId: " + blockID + "\n",
	}, oldnew...)...)
}

// The nodes of a group with a launch template have its key pair.
func TestKeyPairOfALaunchTemplate(t *testing.T) {
	m := enginetest.Rewritten(t, templatesFile, "    instanceType: t3.large\n", "    instanceType: t3.large\n    sshKeyName: default\n")
	synctest.Test(t, func(t *testing.T) {
		a := enginetest.Account(m, enginetest.Lag)
		enginetest.Prepare(t, a, m)
		enginetest.MustApply(t, m, a)
		enginetest.RequireNoChange(t, m, a)
		a.Edit(func(s *awssim.State) {
			for _, n := range onlyCluster(t, s).NodeGroups["default_eks-templates-web"].Instances {
				assert.Equal(t, "default", s.EC2.Instances[n].Key)
			}
		})
		enginetest.MustDelete(t, m, a)
	})
}

// bring adds a Capacity Block to the account.
func bring(a *awssim.AWS, edit func(r *awssim.Reservation)) {
	a.Edit(func(s *awssim.State) {
		r := &awssim.Reservation{Type: "p5.48xlarge", Zone: "us-east-1a", Block: true}
		if edit != nil {
			edit(r)
		}
		s.EC2.Reservations[blockID] = r
	})
}

// A node group in a Capacity Block is created before the block begins, without nodes, and has nodes when it has begun. Its nodes are
// not replaced while it has any.
func TestNodeGroupInCapacityBlock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		empty, full := inBlock(t, "0"), inBlock(t, "2")
		a := enginetest.Account(empty, enginetest.Lag)
		begin := time.Now().Add(48 * time.Hour)
		enginetest.Prepare(t, a, empty)
		bring(a, func(r *awssim.Reservation) { r.Start, r.End = begin, begin.Add(24*time.Hour) })
		require.Contains(t, enginetest.Refused(t, full, a), "begins on "+begin.UTC().Format(time.RFC3339)+": EC2 launches no machine before; begin with 0 replicas")
		enginetest.MustApply(t, empty, a)
		enginetest.RequireNoChange(t, empty, a)
		group := func() (g ekssim.NodeGroup) {
			a.Edit(func(s *awssim.State) { g = *onlyCluster(t, s).NodeGroups["default_eks-templates-web"] })
			return g
		}
		assert.Equal(t, "CAPACITY_BLOCK", group().Capacity)
		assert.Empty(t, group().Instances)

		time.Sleep(time.Until(begin) + time.Minute)
		enginetest.MustApply(t, full, a)
		enginetest.RequireNoChange(t, full, a)
		require.Len(t, group().Instances, 2)
		enginetest.RequireRefused(t, inBlock(t, "2", "      size: 50\n", "      size: 60\n"), a, blockGroup, "launchTemplate.version")
		enginetest.MustApply(t, empty, a)
		larger := inBlock(t, "0", "      size: 50\n", "      size: 60\n")
		enginetest.MustApply(t, larger, a)
		enginetest.RequireNoChange(t, larger, a)
		enginetest.MustDelete(t, larger, a)
	})
}

// What the account shows against the block is told before the first write.
func TestCapacityBlocksThatDoNotFit(t *testing.T) {
	for name, c := range map[string]struct {
		edit func(r *awssim.Reservation)
		want string
	}{
		"type":  {func(r *awssim.Reservation) { r.Type = "p4d.24xlarge" }, "is for the instance type p4d.24xlarge, and the machine has p5.48xlarge"},
		"zone":  {func(r *awssim.Reservation) { r.Zone = "us-east-1b" }, "is in the zone us-east-1b, and the subnet of the machine in us-east-1a"},
		"block": {func(r *awssim.Reservation) { r.Block = false }, "is not a Capacity Block: remove marketType: CapacityBlock, or name a Capacity Block"},
		"ended": {func(r *awssim.Reservation) { r.End = time.Now().Add(-time.Hour) }, "has ended on "},
		"state": {func(r *awssim.Reservation) { r.State = "payment-failed" }, "is payment-failed: name another"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := inBlock(t, "2")
				a := enginetest.Account(m, enginetest.Lag)
				enginetest.Prepare(t, a, m)
				bring(a, c.edit)
				refused := enginetest.Refused(t, m, a)
				require.Contains(t, refused, "awsLaunchTemplate.capacityReservationId: the capacity reservation "+blockID+" "+c.want)
				require.Contains(t, refused, blockGroup)
			})
		})
	}
}

// The manifest names the market in the launch template; without a Capacity Block, its ID is that of an ordinary reservation.
func TestMarketOfCapacityBlock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := withMarket(t, "", "1")
		a := enginetest.Account(m, enginetest.Lag)
		enginetest.Prepare(t, a, m)
		bring(a, nil)
		require.Contains(t, enginetest.Refused(t, m, a), "is a Capacity Block: set marketType: CapacityBlock")
	})
}
