package topology_test

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest/loader"
	"github.com/clusterawsadm/clusterawsadm/internal/enginetest"
	"github.com/clusterawsadm/clusterawsadm/pkg/input"
)

// listing returns the quick start with an AWSCluster of v1beta1 that lists subnets.
func listing(t *testing.T, subnets ...string) *manifest.Cluster {
	t.Helper()
	raw, err := enginetest.Read(enginetest.Quickstart)
	require.NoError(t, err)
	const lines = "  controlPlaneLoadBalancer:\n    loadBalancerType: nlb\n"
	text := strings.Replace(string(raw), lines, "  network:\n    subnets:\n    - "+strings.Join(subnets, "\n    - ")+"\n", 1)
	require.NotEqual(t, string(raw), text)
	text = strings.Replace(text, "infrastructure.cluster.x-k8s.io/v1beta2\nkind: AWSCluster\n", "infrastructure.cluster.x-k8s.io/v1beta1\nkind: AWSCluster\n", 1)
	m, err := loader.Load([]input.Source{{Name: "quickstart.yaml", Data: []byte(text)}}, input.LoadOptions{})
	require.NoError(t, err)
	return m
}

// Subnets need no id in v1beta1 of AWSCluster. They have the names of CAPA, and may be listed in another
// order.
func TestSubnetsWithoutAnID(t *testing.T) {
	listed := []string{
		"{availabilityZone: us-east-1a, cidrBlock: 10.0.0.0/24}",
		"{availabilityZone: us-east-1a, cidrBlock: 10.0.1.0/24, isPublic: true}",
		"{availabilityZone: us-east-1b, cidrBlock: 10.0.2.0/24}",
		"{availabilityZone: us-east-1b, cidrBlock: 10.0.3.0/24, isPublic: true}",
		"{availabilityZone: us-east-1b, cidrBlock: 10.0.4.0/24}",
	}
	synctest.Test(t, func(t *testing.T) {
		m := listing(t, listed...)
		var ids []string
		for _, s := range m.Infra.Spec.NetworkSpec.Subnets {
			ids = append(ids, s.ID)
		}
		assert.Equal(t, []string{
			"quickstart-subnet-private-us-east-1a", "quickstart-subnet-public-us-east-1a", "quickstart-subnet-private-us-east-1b-10-0-2-0-24",
			"quickstart-subnet-public-us-east-1b", "quickstart-subnet-private-us-east-1b-10-0-4-0-24",
		}, ids)
		a := enginetest.Account(m, enginetest.Lag)
		enginetest.MustApply(t, m, a)
		enginetest.RequireNoChange(t, m, a)
		slices.Reverse(listed)
		enginetest.RequireNoChange(t, listing(t, listed...), a)
		enginetest.MustDelete(t, m, a)
		require.Empty(t, a.Inventory())
	})
}
