//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/test/moto"
)

// TestEKS has a cluster of EKS with a node group made and deleted, its roles
// with it. No second run looks at it: moto has no add-ons and no access entries.
// The node group has the key that moto gives to all that ask
// for none, also to those with launch templates, which can have none.
func TestEKS(t *testing.T) {
	server := moto.Start(t)
	server.Reset(t)
	server.Bootstrap(t)
	text, err := os.ReadFile(example("eks"))
	require.NoError(t, err)
	manifest, kind := filepath.Join(t.TempDir(), "eks.yaml"), "  instanceType: t3.large\n"
	require.Contains(t, string(text), kind)
	require.NoError(
		t,
		os.WriteFile(manifest, []byte(strings.Replace(string(text), kind, kind+"  remoteAccess: {public: true, sshKeyName: eksKeypair}\n", 1)), 0o600),
	)
	_, err = ec2.NewFromConfig(server.Config).CreateKeyPair(t.Context(), &ec2.CreateKeyPairInput{KeyName: aws.String("eksKeypair")})
	require.NoError(t, err)
	before := append(inventory(t, server), eksThings(t, server)...)
	s := newShell(t, server, "CAPA_EKS_IAM=true")

	s.run(t, 2, "plan", "-f", manifest, "--detailed-exitcode")
	s.run(t, 0, "create", "-f", manifest, "--yes")
	assert.Contains(t, eksThings(t, server), "node group default_eks/default_eks-pool-0 of 2")
	kubeconfig, _ := s.run(t, 0, "kubeconfig", "eks")
	assert.Contains(t, kubeconfig, "- default_eks")

	s.run(t, 0, "delete", "eks", "--yes")
	assert.Equal(t, before, append(inventory(t, server), eksThings(t, server)...), "the account is as it was before")
}

// eksThings lists clusters, node groups and roles.
func eksThings(t *testing.T, server *moto.Server) (all []string) {
	t.Helper()
	c := eks.NewFromConfig(server.Config)
	clusters, err := c.ListClusters(t.Context(), &eks.ListClustersInput{})
	require.NoError(t, err)
	for _, name := range clusters.Clusters {
		all = append(all, "EKS cluster "+name)
		groups, err := c.ListNodegroups(t.Context(), &eks.ListNodegroupsInput{ClusterName: &name})
		require.NoError(t, err)
		for _, group := range groups.Nodegroups {
			g, err := c.DescribeNodegroup(t.Context(), &eks.DescribeNodegroupInput{ClusterName: &name, NodegroupName: &group})
			require.NoError(t, err)
			all = append(all, fmt.Sprintf("node group %s/%s of %d", name, group, *g.Nodegroup.ScalingConfig.DesiredSize))
		}
	}
	roles, err := iam.NewFromConfig(server.Config).ListRoles(t.Context(), &iam.ListRolesInput{})
	require.NoError(t, err)
	for _, r := range roles.Roles {
		all = append(all, "role "+*r.RoleName)
	}
	return all
}
