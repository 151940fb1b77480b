package run_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	"github.com/clusterawsadm/clusterawsadm/internal/enginetest"
)

// A group that somebody is deleting ("Delete in progress") comes to its end by itself: a run waits for it,
// and creates it again.
func TestGroupThatIsBeingDeletedIsCreatedAgain(t *testing.T) {
	m := enginetest.LoadQuick(t, enginetest.MachinePool)
	synctest.Test(t, func(t *testing.T) {
		a := enginetest.Prepared(t, m)
		enginetest.MustApply(t, m, a)
		time.Sleep(enginetest.Booting)
		client, ended := autoscaling.NewFromConfig(a.Process().Config()), 0
		for name := range groups(a) {
			_, err := client.DeleteAutoScalingGroup(t.Context(), &autoscaling.DeleteAutoScalingGroupInput{AutoScalingGroupName: &name, ForceDelete: aws.Bool(true)})
			require.NoError(t, err)
			ended++
		}
		require.Positive(t, ended)
		began := time.Now()
		enginetest.MustApply(t, m, a)
		require.Less(t, time.Since(began), 15*time.Minute)
		enginetest.RequireNoChange(t, m, a)
		left := groups(a)
		require.Len(t, left, ended)
		for name, deleting := range left {
			require.False(t, deleting, name)
		}
	})
}

// groups lists the Auto Scaling groups, and whether they are being deleted.
func groups(a *awssim.AWS) map[string]bool {
	out := map[string]bool{}
	a.Edit(func(s *awssim.State) {
		for name, g := range s.AutoScaling.Groups {
			out[name] = g.Deleting
		}
	})
	return out
}
