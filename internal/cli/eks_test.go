package cli

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/eks/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	"github.com/clusterawsadm/clusterawsadm/internal/golden"
)

const (
	nodesRole = "arn:aws:iam::123456789012:role/nodes.cluster-api-provider-aws.sigs.k8s.io"
	planeRole = "arn:aws:iam::123456789012:role/plane"
)

// eksClusters creates a cluster "demo" with add-ons and a cluster "bare" without.
func eksClusters(t *testing.T, a *awssim.AWS) {
	var subnets []string
	a.Edit(func(s *awssim.State) {
		s.IAM.Roles["plane"] = &awssim.Role{Name: "plane", Service: "eks.amazonaws.com"}
		for id, subnet := range s.EC2.Subnets {
			if subnet.Zone == "us-east-1a" || subnet.Zone == "us-east-1b" { // EKS has no control plane in us-east-1e
				subnets = append(subnets, id)
			}
		}
	})
	c := eks.NewFromConfig(a.Config())
	for _, name := range []string{"bare", "demo"} {
		_, err := c.CreateCluster(t.Context(), &eks.CreateClusterInput{
			Name: &name, Version: aws.String("1.33"), RoleArn: aws.String(planeRole), BootstrapSelfManagedAddons: aws.Bool(false),
			ResourcesVpcConfig: &types.VpcConfigRequest{SubnetIds: subnets},
		})
		require.NoError(t, err)
	}
	time.Sleep(awssim.EKSClusterTakes)
	for i, in := range []*eks.CreateAddonInput{
		{AddonName: aws.String("vpc-cni"), ServiceAccountRoleArn: aws.String(nodesRole), Tags: map[string]string{"team": "red"}},
		{AddonName: aws.String("coredns")},
		{AddonName: aws.String("kube-proxy")},
	} {
		if i == 2 {
			time.Sleep(awssim.EKSAddonTakes)
		}
		in.ClusterName = aws.String("demo")
		_, err := c.CreateAddon(t.Context(), in)
		require.NoError(t, err)
	}
}

func TestEKSAddons(t *testing.T) {
	s := newSession(t)
	s.simulates(eksClusters)
	s.types(0, "eks", "addons", "list-installed", "-n", "demo")
	s.types(0, "eks", "addons", "list-installed", "-n", "demo", "-o", "json")
	s.types(0, "eks", "addons", "list-installed", "-n", "demo", "-o", "yaml", "extra", "arguments")
	s.types(0, "eks", "addons", "list-installed", "-n", "bare")
	s.types(0, "eks", "addons", "list-installed", "-n", "bare", "-o", "json")
	s.types(0, "eks", "addons", "list-available", "-n", "bare")
	s.types(1, "eks", "addons", "list-available", "-n", "nope", "-r", "us-east-1")
	s.types(1, "eks", "addons", "list-installed", "-n", "nope")
	s.types(1, "eks", "addons", "list-installed")
	s.types(1, "eks", "addons", "list-installed", "-n", "demo", "-o", "xml")
	s.terminal("")
	s.types(0, "eks", "addons", "list-installed", "-n", "demo")
	s.types(1, "eks", "addons", "list-available", "-n", "nope")
	golden.Assert(t, "eks.txt", s.transcript())

	require.Equal(t, 0, s.run("eks", "addons", "list-available", "-n", "demo", "-o", "json"))
	var answer struct {
		Cluster string
		Addons  []struct {
			Name, Type, Version string
			Architecture        []string
			Compatibilities     []struct {
				ClusterVersion   string
				DefaultVersion   bool
				PlatformVersions []string
			}
		}
	}
	require.NoError(t, json.Unmarshal(s.out.Bytes(), &answer), "stdout is the answer, and nothing else")
	names := map[string]bool{}
	for _, a := range answer.Addons {
		names[a.Name] = true
		require.Len(t, a.Compatibilities, 1)
		assert.Equal(t, "1.33", a.Compatibilities[0].ClusterVersion, "what is available for another version is not available")
	}
	assert.Contains(t, names, "metrics-server", "what is not installed is available")
	assert.Contains(t, names, "vpc-cni", "what is installed is, too")
}
