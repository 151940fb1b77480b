package run_test

import (
	"strings"
	"testing"
	"testing/synctest"

	"github.com/aws/aws-sdk-go-v2/service/kms/types"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/run"
	"github.com/clusterawsadm/clusterawsadm/internal/enginetest"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
)

// A key of KMS that will be deleted takes the EKS cluster with it: each plan warns of it, with the command that cancels the deletion.
func TestKeyThatWillBeDeleted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := enginetest.LoadQuick(t, "eks-iam.yaml")
		a := enginetest.Prepared(t, m)
		enginetest.MustApply(t, m, a)
		for _, state := range []string{"Enabled", "PendingDeletion"} {
			a.Edit(func(s *awssim.State) {
				for _, k := range s.KMS.Keys {
					k.State = types.KeyState(state)
				}
			})
			var warned []string
			target := cluster.Target{Config: a.Config(), Owner: "test", Warn: func(s string) { warned = append(warned, s) }}
			_, err := run.Open(m, target).Plan(t.Context())
			require.NoError(t, err)
			told := strings.Contains(strings.Join(warned, "\n"), "aws kms cancel-key-deletion --key-id arn:aws:kms:")
			require.Equal(t, state != "Enabled", told, "%s: %v", state, warned)
		}
	})
}
