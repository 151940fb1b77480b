package teardown_test

import (
	"slices"
	"testing"
	"testing/synctest"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/look"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/run"
	"github.com/clusterawsadm/clusterawsadm/internal/enginetest"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// protectedBy returns the quick start with a value of the annotation.
func protectedBy(t *testing.T, value string) *manifest.Cluster {
	const infra = "kind: AWSCluster\nmetadata:\n"
	return enginetest.Rewritten(t, enginetest.Quickstart, infra, infra+"  annotations: {clusterawsadm/deletion-protection: '"+value+"'}\n")
}

// A protected cluster is not deleted with its manifest, with one without the annotation, with one whose "false" was not
// applied yet, by name, or in a dry run. A create with "false" ends the protection.
func TestDeletionProtection(t *testing.T) {
	plain := enginetest.LoadQuick(t, enginetest.Quickstart)
	on, off := protectedBy(t, "true"), protectedBy(t, "false")
	synctest.Test(t, func(t *testing.T) {
		a := enginetest.Account(on, enginetest.Lag)
		enginetest.MustApply(t, on, a)
		enginetest.RequireNoChange(t, on, a)
		path := "/clusterawsadm/" + on.Name + "/deletion-protection"
		a.Edit(func(s *awssim.State) {
			require.NotNil(t, s.SSM.Parameters[path])
			assert.Equal(t, "owned", s.SSM.Parameters[path].Tags[cloud.ClusterTagPrefix+on.Name])
		})
		refuse := func(what string, c *run.Cluster) {
			before := enginetest.WithoutLock(a)
			_, err := c.Delete(t.Context(), cluster.Options{})
			require.ErrorAs(t, err, new(*plan.RefusedError), what)
			require.ErrorContains(
				t,
				err,
				"is protected from deletion: set the annotation clusterawsadm/deletion-protection of its AWSCluster to \"false\" and run create, "+
					"or run: aws ssm delete-parameter --region us-east-1 --name "+path,
				what,
			)
			require.NotContains(t, err.Error(), "\n", what)
			_, err = c.PlanDelete(t.Context(), cluster.Options{})
			require.ErrorAs(t, err, new(*plan.RefusedError), what)
			require.Equal(t, before, enginetest.WithoutLock(a), what)
		}
		refuse("its manifest", enginetest.Open(on, a.Process()))
		refuse("by name", enginetest.ByName(on.Name, a))
		status, err := look.Status(t.Context(), enginetest.ByName(on.Name, a))
		require.NoError(t, err, "its status is shown all the same")
		assert.True(t, slices.ContainsFunc(status.Resources, func(r cluster.ResourceStatus) bool { return r.Resource == "deletion-protection" && r.State == "ok" }))
		refuse("not applied", enginetest.Open(off, a.Process()))
		enginetest.MustApply(t, plain, a) // a manifest without the annotation changes nothing
		refuse("another manifest", enginetest.Open(plain, a.Process()))

		p := enginetest.MustPlan(t, off, a)
		require.Equal(t, 1, p.Count(plan.Remove))
		enginetest.MustApply(t, off, a)
		enginetest.RequireNoChange(t, off, a)
		enginetest.MustDelete(t, plain, a)
		require.Empty(t, a.Inventory())
	})
}

// The command in the refusal ends the protection.
func TestDeletionProtectionEndsByHand(t *testing.T) {
	on, plain := protectedBy(t, "true"), enginetest.LoadQuick(t, enginetest.Quickstart)
	synctest.Test(t, func(t *testing.T) {
		a := enginetest.Account(on, enginetest.Lag)
		enginetest.MustApply(t, on, a)
		_, err := ssm.NewFromConfig(a.Config()).
			DeleteParameter(t.Context(), &ssm.DeleteParameterInput{Name: aws.String("/clusterawsadm/" + on.Name + "/deletion-protection")})
		require.NoError(t, err)
		_, err = enginetest.Open(on, a.Process()).Delete(t.Context(), cluster.Options{})
		require.ErrorAs(t, err, new(*plan.RefusedError), "the manifest still says so")
		require.ErrorContains(t, err, `is protected from deletion: set the annotation clusterawsadm/deletion-protection to "false"`)
		enginetest.MustDelete(t, plain, a)
		require.Empty(t, a.Inventory())
	})
}

// A cluster that does not exist is not protected, and a manifest can take back what no run has stored.
func TestDeletionProtectionThatNoRunHasStored(t *testing.T) {
	plain, on := enginetest.LoadQuick(t, enginetest.Quickstart), protectedBy(t, "true")
	synctest.Test(t, func(t *testing.T) {
		a := enginetest.Account(plain, enginetest.Lag)
		_, err := enginetest.Open(on, a.Process()).Delete(t.Context(), cluster.Options{})
		require.NoError(t, err)
		enginetest.MustApply(t, plain, a)
		_, err = enginetest.Open(on, a.Process()).Delete(t.Context(), cluster.Options{})
		require.ErrorAs(t, err, new(*plan.RefusedError))
		enginetest.MustDelete(t, protectedBy(t, "false"), a)
		require.Empty(t, a.Inventory())
	})
}

// A create may die at, or lose, each of its writes to Parameter Store. After the next create, the cluster is protected. After a
// create with the annotation "false", it is not.
func TestDeletionProtectionMayDie(t *testing.T) {
	plain, values := enginetest.LoadQuick(t, enginetest.Quickstart), map[string]*manifest.Cluster{"true": protectedBy(t, "true"), "false": protectedBy(t, "false")}
	for value, m := range values {
		for _, fault := range []awssim.Fault{awssim.LostBefore, awssim.LostAfter, awssim.KillBefore, awssim.KillAfter} {
			hit := true
			for n := 1; hit; n++ {
				synctest.Test(t, func(t *testing.T) {
					a := enginetest.Account(plain, enginetest.Lag)
					enginetest.MustApply(t, plain, a)
					if value == "false" {
						enginetest.MustApply(t, values["true"], a)
					}
					p, writes := a.Process(), 0
					p.Fault = func(_ int, _, op string) awssim.Fault {
						if op == "PutParameter" || op == "DeleteParameter" {
							if writes++; writes == n {
								return fault
							}
						}
						return awssim.None
					}
					_, err := enginetest.Open(m, p).Apply(t.Context(), cluster.Options{})
					if hit = writes >= n; !hit {
						require.NoError(t, err)
					}
					enginetest.MustApply(t, m, a)
					_, err = enginetest.ByName(m.Name, a).PlanDelete(t.Context(), cluster.Options{})
					require.Equal(t, value == "true", err != nil, "%s: write %d %s: %v", value, n, fault, err)
				})
			}
			require.False(t, hit)
		}
	}
}
