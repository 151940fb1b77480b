package run_test

import (
	"slices"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	"github.com/clusterawsadm/clusterawsadm/internal/enginetest"
)

// Every call uses the last role of the manifest's chain; each role is assumed with the
// one before.
func TestIdentityChain(t *testing.T) {
	const file = "multi-tenancy.yaml"
	m := enginetest.Quick(enginetest.Load(t, file, nil))
	synctest.Test(t, func(t *testing.T) {
		a := enginetest.Account(m, 0)
		enginetest.Prepare(t, a, m)
		before := len(a.Calls())
		enginetest.MustApply(t, m, a)
		var chain []awssim.AssumedRole
		a.Edit(func(s *awssim.State) { chain = slices.Clone(s.IAM.Assumed) })
		const company, team = "arn:aws:iam::123456789012:role/company-clusters", "arn:aws:iam::123456789012:role/team-a-clusters"
		require.Len(t, chain, 2)
		require.Equal(t, company, chain[0].RoleARN)
		require.Equal(t, team, chain[1].RoleARN)
		require.Equal(t, "team-a", chain[1].Session)
		require.Equal(t, "cluster-of-team-a", chain[1].ExternalID)
		require.Contains(t, chain[1].By, "company-clusters")
		for _, c := range enginetest.Since(a, before) {
			if c.Operation != "AssumeRole" {
				require.Contains(t, c.Role, "team-a-clusters", c.Operation)
			}
		}
	})
}
