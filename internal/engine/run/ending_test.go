package run_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	ekstypes "github.com/aws/aws-sdk-go-v2/service/eks/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/run"
	"github.com/clusterawsadm/clusterawsadm/internal/enginetest"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// deletions lists the resources that AWS still shows while it deletes them, and how somebody deletes each of them.
func deletions() []deletion {
	return []deletion{
		{"quickstart.yaml", "nat-gateway", func(ctx context.Context, cfg aws.Config, s plan.Step) error {
			_, err := ec2.NewFromConfig(cfg).DeleteNatGateway(ctx, &ec2.DeleteNatGatewayInput{NatGatewayId: &s.CloudID})
			return err
		}},
		{"flatcar.yaml", "vpc-endpoint", func(ctx context.Context, cfg aws.Config, s plan.Step) error {
			_, err := ec2.NewFromConfig(cfg).DeleteVpcEndpoints(ctx, &ec2.DeleteVpcEndpointsInput{VpcEndpointIds: []string{s.CloudID}})
			return err
		}},
		{"machine-pool.yaml", "auto-scaling-group", func(ctx context.Context, cfg aws.Config, s plan.Step) error {
			_, err := autoscaling.NewFromConfig(cfg).DeleteAutoScalingGroup(ctx, &autoscaling.DeleteAutoScalingGroupInput{
				AutoScalingGroupName: &s.CloudID, ForceDelete: aws.Bool(true),
			})
			return err
		}},
		{"eks.yaml", "node-group", func(ctx context.Context, cfg aws.Config, s plan.Step) error {
			cluster, group := partOf(s)
			_, err := eks.NewFromConfig(cfg).DeleteNodegroup(ctx, &eks.DeleteNodegroupInput{ClusterName: &cluster, NodegroupName: &group})
			return err
		}},
		{"eks-addons.yaml", "addon", func(ctx context.Context, cfg aws.Config, s plan.Step) error {
			cluster, addon := partOf(s)
			_, err := eks.NewFromConfig(cfg).DeleteAddon(ctx, &eks.DeleteAddonInput{ClusterName: &cluster, AddonName: &addon})
			return err
		}},
		{"eks-fargate.yaml", "fargate-profile/default_eks-fargate-default", func(ctx context.Context, cfg aws.Config, s plan.Step) error {
			cluster, profile := partOf(s)
			_, err := eks.NewFromConfig(cfg).DeleteFargateProfile(ctx, &eks.DeleteFargateProfileInput{ClusterName: &cluster, FargateProfileName: &profile})
			return err
		}},
		{"eks-iam.yaml", "identity-provider", func(ctx context.Context, cfg aws.Config, s plan.Step) error {
			cluster, provider := partOf(s)
			_, err := eks.NewFromConfig(cfg).DisassociateIdentityProviderConfig(ctx, &eks.DisassociateIdentityProviderConfigInput{
				ClusterName: &cluster, IdentityProviderConfig: &ekstypes.IdentityProviderConfig{Name: &provider, Type: aws.String("oidc")},
			})
			return err
		}},
	}
}

type deletion struct {
	example string
	id      string // a prefix of it
	begin   func(ctx context.Context, cfg aws.Config, s plan.Step) error
}

// partOf returns the name of the EKS cluster of a part of one, and its own, from its ARN.
func partOf(s plan.Step) (cluster, name string) {
	parts := strings.Split(s.CloudID, "/")
	return parts[1], parts[len(parts)-2]
}

// A plan creates a resource that AWS is deleting again, after the deletion.
func TestPlanOfDeletionInProgress(t *testing.T) {
	for _, x := range deletions() {
		t.Run(x.id, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := enginetest.LoadQuick(t, x.example)
				a := enginetest.Prepared(t, m)
				enginetest.MustApply(t, m, a)
				steps := enginetest.RequireNoChange(t, m, a).Steps
				at := slices.IndexFunc(steps, func(s plan.Step) bool { return strings.HasPrefix(string(s.Resource), x.id) })
				require.GreaterOrEqual(t, at, 0)
				require.NoError(t, x.begin(t.Context(), a.Process().Config(), steps[at]))

				p, err := enginetest.Open(m, a.Process()).Plan(t.Context())
				require.NoError(t, err)
				again := enginetest.StepOf(t, p, steps[at].Resource)
				assert.Equal(t, plan.Create, again.Action, "%v", enginetest.Steps(p))
				assert.Equal(t, steps[at].CloudID, again.After)
				assert.Empty(t, again.CloudID)

				enginetest.MustApply(t, m, a)
				enginetest.RequireNoChange(t, m, a)
			})
		})
	}
}

// If the EKS cluster is being deleted, or is gone, a plan says that its objects are lost.
func TestPlanOfLostEKSCluster(t *testing.T) {
	for name, wait := range map[string]bool{"AWS is deleting the EKS cluster": false, "It does not exist any more": true} {
		synctest.Test(t, func(t *testing.T) {
			m := enginetest.LoadQuick(t, "eks.yaml")
			a := enginetest.Prepared(t, m)
			enginetest.MustApply(t, m, a)
			deleteEKS(t, a, wait)

			var warnings []string
			target := cluster.Target{Config: a.Process().Config(), Owner: "test"}
			target.Warn = func(w string) { warnings = append(warnings, w) }
			p, err := run.Open(m, target).Plan(t.Context())
			require.NoError(t, err)
			assert.Equal(t, 1, p.CountKind("eks-cluster", plan.Create), "%v", enginetest.Steps(p))
			assert.Contains(t, strings.Join(warnings, "\n"), name)
			assert.Contains(t, strings.Join(warnings, "\n"), "Kubernetes objects")

			warnings = nil
			_, err = run.Open(m, target).Apply(t.Context(), cluster.Options{})
			require.NoError(t, err)
			assert.Contains(t, strings.Join(warnings, "\n"), name)
			warnings = nil
			_, err = run.Open(m, target).Plan(t.Context())
			require.NoError(t, err)
			assert.Empty(t, warnings)
		})
	}
}

// deleteEKS deletes the EKS cluster as somebody would by hand: first its node groups.
func deleteEKS(t *testing.T, a *awssim.AWS, wait bool) {
	t.Helper()
	c := eks.NewFromConfig(a.Process().Config())
	names, err := c.ListClusters(t.Context(), &eks.ListClustersInput{})
	require.NoError(t, err)
	name := &names.Clusters[0]
	groups, err := c.ListNodegroups(t.Context(), &eks.ListNodegroupsInput{ClusterName: name})
	require.NoError(t, err)
	for _, g := range groups.Nodegroups {
		_, err := c.DeleteNodegroup(t.Context(), &eks.DeleteNodegroupInput{ClusterName: name, NodegroupName: &g})
		require.NoError(t, err)
		require.NoError(
			t,
			eks.NewNodegroupDeletedWaiter(c).Wait(t.Context(), &eks.DescribeNodegroupInput{ClusterName: name, NodegroupName: &g}, enginetest.Booting*10),
		)
	}
	_, err = c.DeleteCluster(t.Context(), &eks.DeleteClusterInput{Name: name})
	require.NoError(t, err)
	if wait {
		require.NoError(t, eks.NewClusterDeletedWaiter(c).Wait(t.Context(), &eks.DescribeClusterInput{Name: name}, enginetest.Booting*10))
	}
}
