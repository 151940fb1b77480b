package eks_test

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	"github.com/clusterawsadm/clusterawsadm/internal/enginetest"
)

// EKS refuses release versions that it has not published: with another date, with another patch version of Kubernetes, or with another commit
// of Bottlerocket. The simulated EKS refuses them, too.
func TestReleaseThatDoesNotExist(t *testing.T) {
	for release, why := range map[string]string{
		"1.34.0-20260922": "no AMI has the name amazon-eks-node-al2023-x86_64-standard-1.34-v20260922",
		"1.34.9-20260921": "is for Kubernetes 1.34.0: set 1.34.0-20260921",
		"1.34.0-20260921": "",
		"1.34.0-20260603": "",
	} {
		t.Run(release, func(t *testing.T) {
			m := enginetest.OfVersion(t, 34)
			m.Pools[0].Managed.Spec.AMIVersion = &release
			synctest.Test(t, func(t *testing.T) {
				a := enginetest.Prepared(t, m)
				if why == "" {
					enginetest.MustPlan(t, m, a)
				} else {
					require.Contains(t, enginetest.Refused(t, m, a), why)
				}
			})
		})
	}
}

// EKS does not go back to an older release. A node group that already has the release is not checked.
func TestReleaseGoesBack(t *testing.T) {
	m := enginetest.OfVersion(t, 34)
	m.Pools[0].Managed.Spec.AMIVersion = new("1.34.0-20260921")
	synctest.Test(t, func(t *testing.T) {
		a := enginetest.Prepared(t, m)
		enginetest.MustApply(t, m, a)
		m.Pools[0].Managed.Spec.AMIVersion = new("1.34.0-20260603")
		_, err := enginetest.Open(m, a.Process()).Plan(t.Context())
		require.ErrorContains(t, err, "EKS does not go back to 1.34.0-20260603")
		m.Pools[0].Managed.Spec.AMIVersion = new("1.34.0-20260921")
		a.Edit(func(s *awssim.State) { clear(s.EC2.Images) })
		enginetest.RequireNoChange(t, m, a)
	})
}
