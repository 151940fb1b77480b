package awssim

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/eks/types"
	"github.com/stretchr/testify/require"

	ekssim "github.com/clusterawsadm/clusterawsadm/internal/awssim/eks"
)

// EKS lists all updates that have ever been, by their IDs, and says what the one in progress changes ("Update existing cluster to new Kubernetes
// version", EKS user guide).
func TestUpdatesAreListed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := furnished(Options{})
		c := eksWithNetwork(t, a, "demo")
		demo := aws.String("demo")
		first, err := c.UpdateClusterConfig(t.Context(), &eks.UpdateClusterConfigInput{Name: demo, DeletionProtection: aws.Bool(true)})
		require.NoError(t, err)
		time.Sleep(ekssim.ConfigTakes)
		began, err := c.UpdateClusterVersion(t.Context(), &eks.UpdateClusterVersionInput{Name: demo, Version: aws.String("1.34")})
		require.NoError(t, err)
		list, err := c.ListUpdates(t.Context(), &eks.ListUpdatesInput{Name: demo})
		require.NoError(t, err)
		require.Contains(t, list.UpdateIds, *first.Update.Id)
		require.Contains(t, list.UpdateIds, *began.Update.Id)
		one, err := c.DescribeUpdate(t.Context(), &eks.DescribeUpdateInput{Name: demo, UpdateId: began.Update.Id})
		require.NoError(t, err)
		require.Equal(t, types.UpdateStatusInProgress, one.Update.Status)
		require.Equal(t, []types.UpdateParam{{Type: types.UpdateParamTypeVersion, Value: aws.String("1.34")}}, one.Update.Params)
		_, err = c.ListUpdates(t.Context(), &eks.ListUpdatesInput{Name: demo, NodegroupName: aws.String("nobody")})
		hasCode(t, err, "ResourceNotFoundException")
	})
}
