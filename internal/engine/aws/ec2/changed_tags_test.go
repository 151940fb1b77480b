package ec2_test

import (
	"testing"
	"testing/synctest"

	infrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/api/v1beta2"

	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	"github.com/clusterawsadm/clusterawsadm/internal/enginetest"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// A tag with an empty value is a tag: it is added, changed and restored like others, also on the volumes of machines.
func TestTagsWithEmptyValues(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := enginetest.LoadQuick(t, enginetest.Quickstart)
		a := enginetest.Prepared(t, m)
		enginetest.MustApply(t, m, a)
		for _, value := range []string{"", "x", ""} {
			m.Infra.Spec.AdditionalTags = infrav1.Tags{"empty": value}
			p := enginetest.MustPlan(t, m, a)
			require.Positive(t, p.Count(plan.Update))
			enginetest.MustApply(t, m, a)
			enginetest.RequireNoChange(t, m, a)
			a.Edit(func(s *awssim.State) {
				for _, v := range s.EC2.VPCs {
					if v.Tags["clusterawsadm/resource"] != "" {
						require.Contains(t, v.Tags, "empty")
						require.Equal(t, value, v.Tags["empty"])
					}
				}
				for _, v := range s.EC2.Volumes {
					require.Contains(t, v.Tags, "empty")
					require.Equal(t, value, v.Tags["empty"])
				}
			})
		}
		a.Edit(func(s *awssim.State) {
			for _, v := range s.EC2.VPCs {
				delete(v.Tags, "empty")
			}
		})
		p := enginetest.MustPlan(t, m, a)
		require.Equal(t, 1, p.Count(plan.Update))
		require.Equal(t, plan.Diff{{Field: "tag empty", Want: `""`, Remedy: plan.InPlace}}, p.Steps[0].Diff[:1], "%v", enginetest.Steps(p))
	})
}
