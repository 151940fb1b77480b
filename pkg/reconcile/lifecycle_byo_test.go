package reconcile_test

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	"github.com/clusterawsadm/clusterawsadm/pkg/reconcile"
)

const byoVPC = "../../configs/byo-vpc.yaml"

// Two clusters in one VPC that is somebody else's share its subnets: the tags
// that both need stay until the second one goes, and those that were there
// before stay for good.
func TestSharedSubnets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one, two := quick(load(t, byoVPC, nil)), rewritten(t, byoVPC, "byo-vpc", "second")
		a := account(one, 0)
		prepare(t, byoVPC, a, one)
		a.Edit(func(s *awssim.State) {
			for _, x := range s.EC2.Subnets { // that it is there before and after looks as if Cluster API had a cluster there
				delete(x.Tags, "kubernetes.io/cluster/"+one.Name)
			}
		})
		before := a.Detailed()
		mustApply(t, one, a)
		mustApply(t, two, a)
		requireNoChange(t, one, a)
		mustDelete(t, one, a)
		requireNoChange(t, two, a)
		_, err := byName(two.Name, a).Delete(t.Context(), reconcile.Options{})
		require.NoError(t, err)
		require.Equal(t, before, a.Detailed())
	})
}

// A secondary block of a VPC that is somebody else's stays, be it that the
// cluster has added it or not: others may use it.
func TestForeignBlockStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := rewritten(t, byoVPC, "    id: vpc-0123456789abcdef0\n", "    id: vpc-0123456789abcdef0\n      secondaryCidrBlocks: [{ipv4CidrBlock: 100.64.0.0/16}]\n")
		a := account(m, 0)
		prepare(t, byoVPC, a, m)
		a.Edit(func(s *awssim.State) {
			s.EC2.VPCs["vpc-0123456789abcdef0"].Secondary = []awssim.Association{{ID: "vpc-cidr-assoc-00000000000000001", CIDR: "100.64.0.0/16"}}
		})
		before := a.Detailed()
		mustApply(t, m, a)
		mustDelete(t, m, a)
		require.Equal(t, before, a.Detailed())
	})
}

// A bucket that was there before is not taken over, let alone emptied.
func TestBucketOfSomebodyElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := quick(load(t, "../../configs/flatcar.yaml", nil))
		a := account(m, 0)
		name := m.Infra.Spec.S3Bucket.Name
		a.Edit(func(s *awssim.State) {
			s.S3.Buckets[name] = &awssim.Bucket{Name: name, Objects: map[string]*awssim.Object{"payroll": {Key: "payroll", Body: []byte("secret")}}}
		})
		before := a.Detailed()
		_, err := open(m, a.Process()).Apply(t.Context(), reconcile.Options{})
		require.ErrorAs(t, err, new(*reconcile.RefusedError))
		require.ErrorContains(t, err, "bucket "+name)
		_, err = open(m, a.Process()).Delete(t.Context(), reconcile.Options{})
		require.Error(t, err)
		_, err = byName(m.Name, a).Delete(t.Context(), reconcile.Options{})
		require.NoError(t, err)
		require.Equal(t, before, a.Detailed())
	})
}

// A tag of the cluster that was on a subnet before, and that somebody takes
// off, is put there again, and then goes with the cluster.
func TestTagTakenOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := quick(load(t, byoVPC, nil))
		a := account(m, 0)
		prepare(t, byoVPC, a, m)
		mustApply(t, m, a)
		key := "kubernetes.io/cluster/" + m.Name
		a.Edit(func(s *awssim.State) { delete(s.EC2.Subnets["subnet-0000000000000001b"].Tags, key) })
		mustApply(t, m, a)
		requireNoChange(t, m, a)
		mustDelete(t, m, a)
		a.Edit(func(s *awssim.State) {
			for _, x := range s.EC2.Subnets {
				require.NotContains(t, x.Tags, key)
			}
		})
	})
}
