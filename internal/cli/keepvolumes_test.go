package cli

import (
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	elb "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2"
	elbtypes "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	"github.com/clusterawsadm/clusterawsadm/internal/cli/env"
	"github.com/clusterawsadm/clusterawsadm/internal/golden"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
	"github.com/clusterawsadm/clusterawsadm/pkg/input"
	"github.com/clusterawsadm/clusterawsadm/pkg/reconcile"
)

// claimed creates resources as controllers in the cluster "demo" do: two volumes and a
// load balancer.
func claimed(t *testing.T, a *awssim.AWS) {
	t.Helper()
	var subnets []string
	a.Edit(func(s *awssim.State) {
		for id, n := range s.EC2.Subnets {
			if n.Tags["clusterawsadm/resource"] == "subnet/private/us-east-1a" {
				subnets = append(subnets, id)
			}
		}
	})
	owned := map[string]string{"kubernetes.io/cluster/demo": "owned"}
	for _, claim := range []string{"data-0", "data-1"} {
		tags := []types.Tag{}
		for k, v := range owned {
			tags = append(tags, types.Tag{Key: &k, Value: &v})
		}
		tags = append(tags, types.Tag{Key: aws.String("kubernetes.io/created-for/pvc/namespace"), Value: aws.String("default")},
			types.Tag{Key: aws.String("kubernetes.io/created-for/pvc/name"), Value: &claim})
		_, err := ec2.NewFromConfig(a.Config()).CreateVolume(t.Context(), &ec2.CreateVolumeInput{
			AvailabilityZone: aws.String(
				"us-east-1a",
			),
			Size:              aws.Int32(8),
			TagSpecifications: []types.TagSpecification{{ResourceType: types.ResourceTypeVolume, Tags: tags}},
		})
		require.NoError(t, err)
	}
	_, err := elb.NewFromConfig(a.Config()).CreateLoadBalancer(t.Context(), &elb.CreateLoadBalancerInput{
		Name:    aws.String("k8s-web"),
		Type:    elbtypes.LoadBalancerTypeEnumNetwork,
		Scheme:  elbtypes.LoadBalancerSchemeEnumInternal,
		Subnets: subnets,
		Tags: []elbtypes.Tag{
			{Key: aws.String("elbv2.k8s.aws/cluster"), Value: aws.String("demo")},
			{Key: aws.String("service.k8s.aws/stack"), Value: aws.String("default/web")},
		},
	})
	require.NoError(t, err)
}

// TestDeleteKeepsVolumes deletes a cluster and keeps its volumes.
func TestDeleteKeepsVolumes(t *testing.T) {
	s := newSession(t)
	text, err := os.ReadFile(s.generated(t))
	require.NoError(t, err)
	m, err := reconcile.Load([]input.Source{{Name: "demo.yaml", Data: text}}, input.LoadOptions{})
	require.NoError(t, err)
	s.simulates(func(t *testing.T, a *awssim.AWS) {
		c := reconcile.Open(m, cluster.Target{Config: a.Config(), Owner: "a test"})
		_, err := c.Apply(t.Context(), cluster.Options{})
		require.NoError(t, err)
		claimed(t, a)
		time.Sleep(10 * time.Minute) // until the API server responds
	})
	delete(s.variables, "CLUSTERAWSADM_SIMULATE_SPEED") // time jumps
	where := []string{"cluster", "delete", "demo", "--region", "us-east-1"}

	require.Equal(t, 0, s.run(append(where, "--dry-run", "--delete-volumes", "-o", "json")...), s.err.String())
	var plan struct {
		Steps []struct{ Resource, Action, Origin string }
	}
	require.NoError(t, json.Unmarshal(s.out.Bytes(), &plan))
	var made []string
	for _, step := range plan.Steps {
		if regexp.MustCompile("^made").MatchString(step.Origin) {
			made = append(made, regexp.MustCompile(`/.*`).ReplaceAllString(step.Resource, "")+" "+step.Action+" "+step.Origin)
		}
	}
	slices.Sort(made)
	assert.Equal(
		t,
		[]string{
			"load-balancer delete made in the cluster for default/web",
			"volume delete made in the cluster for default/data-0",
			"volume delete made in the cluster for default/data-1",
		},
		made,
	)

	s.types(0, append(where, "--dry-run", "--keep-volumes")...)
	s.terminal("demo\n")
	require.Equal(t, 0, s.run(append(where, "--keep-volumes", "-o", "json", "--progress", "plain")...), s.err.String())
	assert.Regexp(t, `kept vol-[0-9a-f]+: made in the cluster for default/data-0; all volumes are kept`, s.err.String())
	assert.Contains(t, s.err.String(), "Cluster demo in us-east-1 is deleted (")
	var result struct{ Kept []string }
	require.NoError(t, json.Unmarshal(s.out.Bytes(), &result))
	assert.Len(t, result.Kept, 2)
	s.InIsTerminal, s.ErrIsTerminal = false, false
	s.types(0, append(where, "--yes", "--keep-volumes")...)
	s.types(0, append(where, "--dry-run")...)
	require.Equal(t, 0, s.run(append(where, "--yes", "--delete-volumes", "--progress", "none")...), s.err.String())
	s.types(env.Failed, append(where, "--yes")...)
	ids := regexp.MustCompile(`\b(vol|vpc|subnet|sg|igw|nat|eipalloc|rtb|i|lt)-[0-9a-f]{17}\b|[0-9a-f]{16}\b|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`)
	golden.Assert(t, "delete-keeps-volumes.txt", ids.ReplaceAllString(s.transcript(), "$1-ID"))
}
