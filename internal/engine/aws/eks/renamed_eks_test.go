package eks_test

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/internal/enginetest"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
)

// An EKS cluster is not renamed: a plan with another name, namespace or control plane is refused, and does not create a second one.
func TestRenamedEKSCluster(t *testing.T) {
	const spec, plane = "  sshKeyName: \"\"\n", "kind: AWSManagedControlPlane\n"
	for what, oldnew := range map[string][]string{
		"another name":          {spec, spec + "  eksClusterName: other\n"},
		"another control plane": {"kind: AWSManagedControlPlane\n    name: eks\n", "kind: AWSManagedControlPlane\n    name: other\n", plane + "metadata:\n  name: eks\n", plane + "metadata:\n  name: other\n"},
		"another namespace":     {"metadata:\n  name: eks", "metadata:\n  namespace: prod\n  name: eks"},
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := enginetest.LoadQuick(t, enginetest.EKSSmall)
				a := enginetest.Prepared(t, m)
				enginetest.MustApply(t, m, a)
				renamed, calls := enginetest.Rewritten(t, enginetest.EKSSmall, oldnew...), len(a.Calls())
				_, err := enginetest.Open(renamed, a.Process()).Plan(t.Context())
				require.ErrorContains(t, err, "the cluster has the EKS cluster default_eks already, which EKS does not rename: set spec.eksClusterName: default_eks")
				_, err = enginetest.Open(renamed, a.Process()).Apply(t.Context(), cluster.Options{})
				require.ErrorContains(t, err, "which EKS does not rename")
				require.Empty(t, enginetest.Writes(enginetest.Since(a, calls)))
				enginetest.MustDeleteAll(t, renamed, a)
				a.Edit(func(s *awssim.State) { require.Empty(t, s.EKS.Clusters, "the deletion finds it by its tags") })
			})
		})
	}
}

// A cluster does not change from machines with kubeadm to EKS, or back: its objects would be lost.
func TestOtherControlPlane(t *testing.T) {
	machines := func(t *testing.T) *manifest.Cluster {
		t.Helper()
		return enginetest.Rewritten(t, enginetest.Quickstart, "name: quickstart\n", "name: eks\n", "clusterName: quickstart\n", "clusterName: eks\n")
	}
	ofEKS := func(t *testing.T) *manifest.Cluster {
		t.Helper()
		return enginetest.LoadQuick(t, enginetest.EKSSmall)
	}
	for what, x := range map[string]struct {
		before, after func(t *testing.T) *manifest.Cluster
		want          string
	}{
		"EKS for machines": {machines, ofEKS, "the cluster has a control plane of machines (i-"},
		"machines for EKS": {ofEKS, machines, "the cluster has the EKS cluster default_eks, whose objects a control plane of machines would not have"},
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := x.before(t)
				a := enginetest.Account(m, enginetest.Lag)
				for _, other := range []*manifest.Cluster{m, x.after(t)} {
					enginetest.Prepare(t, a, other)
				}
				enginetest.MustApply(t, m, a)
				calls := len(a.Calls())
				_, err := enginetest.Open(x.after(t), a.Process()).Apply(t.Context(), cluster.Options{})
				require.ErrorContains(t, err, x.want)
				require.Empty(t, enginetest.Writes(enginetest.Since(a, calls)))
				enginetest.RequireNoChange(t, m, a)
				enginetest.MustDeleteAll(t, x.after(t), a)
			})
		})
	}
}
