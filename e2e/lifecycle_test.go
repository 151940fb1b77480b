//go:build e2e

package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/test/moto"
)

// example returns the path of an example.
func example(name string) string { return filepath.Join("..", "configs", name+".yaml") }

// TestLifecycle creates, describes and deletes clusters. The other examples do not work
// with moto: two-zones is in another region, and moto does not store the hostname type of
// its subnets; the rest need existing resources.
func TestLifecycle(t *testing.T) {
	server := moto.Start(t)
	for _, name := range []string{"quickstart", "three-zones", "classic-elb", "bastion", "dual-stack", "ipv6", "flatcar", "node-groups", "single-machines", "public-only"} {
		t.Run(name, func(t *testing.T) {
			live(t, server, name, example(name))
		})
	}
}

// TestTemplates does the same with the templates of Cluster API Provider AWS, unchanged,
// if they exist.
func TestTemplates(t *testing.T) {
	folder := os.Getenv("CAPA_TEMPLATES")
	if folder == "" {
		folder = filepath.Join("..", "..", "shared", "capa-templates") // a clone may have them next to it
	}
	if _, err := os.Stat(folder); err != nil {
		t.Skip("there are no templates here; CAPA_TEMPLATES names a folder of them")
	}
	server := moto.Start(t)
	for _, name := range []string{"cluster-template", "cluster-template-flatcar", "cluster-template-dualstack-ipv4-primary"} {
		t.Run(name, func(t *testing.T) {
			live(t, server, "demo", filepath.Join(folder, name+".yaml"),
				"CLUSTER_NAME=demo", "AWS_SSH_KEY_NAME=default", "KUBERNETES_VERSION=v1.34.2", "AWS_S3_BUCKET_NAME=demo-ignition",
				"CONTROL_PLANE_MACHINE_COUNT=3", "WORKER_MACHINE_COUNT=2", "AWS_CONTROL_PLANE_MACHINE_TYPE=t3.large", "AWS_NODE_MACHINE_TYPE=t3.large")
		})
	}
}

func live(t *testing.T, server *moto.Server, cluster, manifest string, env ...string) {
	t.Helper()
	server.Reset(t)
	server.Bootstrap(t)
	_, err := ec2.NewFromConfig(server.Config).CreateKeyPair(t.Context(), &ec2.CreateKeyPairInput{KeyName: aws.String("default")})
	require.NoError(t, err)
	before := inventory(t, server)
	s := newShell(t, server, env...)

	s.run(t, 2, "plan", "-f", manifest, "--detailed-exitcode")
	assert.Equal(t, before, inventory(t, server), "a plan changes nothing")
	s.run(t, 0, "create", "-f", manifest, "--yes")
	s.run(t, 0, "plan", "-f", manifest, "--detailed-exitcode")
	answer, _ := s.run(t, 0, "create", "-f", manifest, "--yes", "-o", "json")
	var second struct{ Writes int }
	require.NoError(t, json.Unmarshal([]byte(answer), &second))
	assert.Zero(t, second.Writes, "a second run has nothing to do")

	tree, _ := s.run(t, 0, "describe", "-f", manifest)
	assert.Contains(t, tree, "resources are up to date")
	kubeconfig, _ := s.run(t, 0, "kubeconfig", cluster)
	assert.Contains(t, kubeconfig, "client-key-data:")
	list, _ := s.run(t, 0, "list")
	assert.Contains(t, list, cluster)

	s.run(t, 0, "delete", cluster, "--yes")
	assert.Equal(t, before, inventory(t, server), "the account is as it was before")
	_, story := s.run(t, 0, "delete", "-f", manifest, "--yes")
	assert.Contains(t, story, "Cluster "+cluster+" in us-east-1 has no resources")
}
