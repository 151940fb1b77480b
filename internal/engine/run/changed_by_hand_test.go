package run_test

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	"github.com/clusterawsadm/clusterawsadm/internal/enginetest"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// A machine that somebody has changed is no reason to change the manifest: the advice is to change the machine back, or to terminate it.
func TestMachineChangedByHand(t *testing.T) {
	m := enginetest.LoadQuick(t, enginetest.ThreeZones)
	synctest.Test(t, func(t *testing.T) {
		a := enginetest.Prepared(t, m)
		enginetest.MustApply(t, m, a)
		worker := enginetest.MachineWith(a, "node")
		var had, profile string
		a.Edit(func(s *awssim.State) {
			i := s.EC2.Instances[worker]
			had, profile, i.Type, i.Profile = i.Type, i.Profile, "m5.4xlarge", ""
		})
		_, err := enginetest.Open(m, a.Process()).Plan(t.Context())
		require.ErrorAs(t, err, new(*plan.RefusedError))
		for _, told := range []string{
			"somebody has changed the machine since it was launched",
			"aws ec2 modify-instance-attribute --instance-id " + worker + " --instance-type Value=" + had,
			"aws ec2 associate-iam-instance-profile --instance-id " + worker + " --iam-instance-profile Name=",
			"or terminate it, and the next run launches another machine",
		} {
			require.ErrorContains(t, err, told)
		}
		require.NotContains(t, err.Error(), "set the existing value in the manifest")
		a.Edit(func(s *awssim.State) { s.EC2.Instances[worker].Type, s.EC2.Instances[worker].Profile = had, profile })
		enginetest.RequireNoChange(t, m, a)
	})
}
