//go:build e2e

package lives_test

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/test/awsmodel"
)

// TestAPIModels checks the input of every call against AWS's own models of its services,
// which the AWS CLI has.
func TestAPIModels(t *testing.T) {
	folder, err := awsmodel.Folder(t.Context())
	require.NoError(t, err)
	models, err := awsmodel.Load(folder)
	require.NoError(t, err)
	require.Contains(
		t,
		strings.Join(models.Check("EKS", "CreateCluster", &eks.CreateClusterInput{Name: aws.String("a b")}), "\n"),
		`"a b" does not match the pattern`,
	)
	var mu sync.Mutex
	calls, operations, problems := 0, map[string]bool{}, map[string]bool{}
	t.Run("lives", func(t *testing.T) {
		everyLife(t, func(*manifest.Cluster) judgement {
			return func(service, op string, in any) bool {
				mu.Lock()
				defer mu.Unlock()
				calls++
				operations[service+" "+op] = true
				for _, p := range models.Check(service, op, in) {
					problems[service+" "+p] = true
				}
				return true
			}
		})
	})
	assert.Empty(t, slices.Sorted(maps.Keys(problems)))
	assert.Greater(t, len(operations), 150)
	t.Logf("%d calls of %d operations", calls, len(operations))
}
