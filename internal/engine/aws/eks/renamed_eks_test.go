package eks_test

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

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
				a := enginetest.Prepared(t, enginetest.EKSSmall, m)
				enginetest.MustApply(t, m, a)
				renamed, calls := enginetest.Rewritten(t, enginetest.EKSSmall, oldnew...), len(a.Calls())
				_, err := enginetest.Open(renamed, a.Process()).Plan(t.Context())
				require.ErrorContains(t, err, "the cluster has the EKS cluster default_eks already, which EKS does not rename: set spec.eksClusterName: default_eks")
				_, err = enginetest.Open(renamed, a.Process()).Apply(t.Context(), cluster.Options{})
				require.ErrorContains(t, err, "which EKS does not rename")
				require.Empty(t, enginetest.Writes(enginetest.Since(a, calls)))
			})
		})
	}
}
