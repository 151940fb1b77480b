package ec2_test

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	"github.com/clusterawsadm/clusterawsadm/internal/enginetest"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// The default rules of the security group of a new VPC are removed, also if somebody adds
// them again.
func TestDefaultGroupIsEmptied(t *testing.T) {
	m := enginetest.Load(t, "two-zones.yaml", nil)
	synctest.Test(t, func(t *testing.T) {
		a := enginetest.Account(m, enginetest.Lag)
		enginetest.MustApply(t, m, a)
		var group *awssim.SecurityGroup
		a.Edit(func(s *awssim.State) {
			for _, g := range s.EC2.SecurityGroups {
				if v := s.EC2.VPCs[g.VPC]; g.Name == "default" && !v.Default {
					group = g
				}
			}
		})
		require.NotNil(t, group)
		require.Empty(t, group.Ingress)
		require.Empty(t, group.Egress)

		a.Edit(func(*awssim.State) {
			group.Egress = []awssim.Rule{{ID: "sgr-1", Protocol: "-1", From: -1, To: -1, CIDR: "0.0.0.0/0"}}
		})
		var changed []string
		for _, s := range enginetest.MustPlan(t, m, a).Steps {
			if s.Does() {
				require.Equal(t, plan.Update, s.Action)
				changed = append(changed, string(s.Resource))
			}
		}
		require.Equal(t, []string{"default-group"}, changed)
		enginetest.MustApply(t, m, a)
		require.Empty(t, group.Egress)
	})
}
