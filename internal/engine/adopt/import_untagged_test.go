package adopt_test

import (
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	ekstypes "github.com/aws/aws-sdk-go-v2/service/eks/types"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/adopt"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest/loader"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/run"
	"github.com/clusterawsadm/clusterawsadm/internal/enginetest"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
	"github.com/clusterawsadm/clusterawsadm/pkg/input"
)

func targetOf(a *awssim.AWS) cluster.Target {
	p := a.Process()
	return cluster.Target{Config: p.Config(), Owner: "test", Transport: enginetest.Transport(p)}
}

// madeByHand adds a node group, an add-on and a Fargate profile to the cluster, as in the console: without tags.
func madeByHand(t *testing.T, a *awssim.AWS) {
	t.Helper()
	group := &eks.CreateNodegroupInput{ClusterName: aws.String("default_eks"), NodegroupName: aws.String("by-hand")}
	a.Edit(func(s *awssim.State) {
		have := enginetest.Plane(s).NodeGroups["default_eks-pool-0"]
		group.NodeRole, group.Subnets = &have.RoleARN, have.Subnets
	})
	c := eks.NewFromConfig(a.Config())
	_, err := c.CreateNodegroup(t.Context(), group)
	require.NoError(t, err)
	_, err = c.CreateAddon(
		t.Context(),
		&eks.CreateAddonInput{ClusterName: group.ClusterName, AddonName: aws.String("coredns"), ResolveConflicts: ekstypes.ResolveConflictsOverwrite},
	)
	require.NoError(t, err)
	role, err := iam.NewFromConfig(a.Config()).CreateRole(t.Context(), &iam.CreateRoleInput{
		RoleName: aws.String("pods"), AssumeRolePolicyDocument: aws.String(`{"Version":"2012-10-17","Statement":[
			{"Effect":"Allow","Principal":{"Service":"eks-fargate-pods.amazonaws.com"},"Action":"sts:AssumeRole"}]}`),
	})
	require.NoError(t, err)
	time.Sleep(time.Minute)
	_, err = c.CreateFargateProfile(t.Context(), &eks.CreateFargateProfileInput{
		ClusterName: group.ClusterName, FargateProfileName: aws.String("pods-by-hand"), Subnets: group.Subnets, PodExecutionRoleArn: role.Role.Arn,
		Selectors: []ekstypes.FargateProfileSelector{{Namespace: aws.String("batch")}},
	})
	require.NoError(t, err)
	time.Sleep(10 * time.Minute)
}

// requireNoChange requires that a plan of the imported manifest is empty. It returns the cluster.
func requireNoChange(t *testing.T, i *adopt.Imported, target cluster.Target) *run.Cluster {
	t.Helper()
	again, err := loader.Load([]input.Source{{Name: "imported.yaml", Data: i.Manifest}}, input.LoadOptions{})
	require.NoError(t, err)
	c := run.Open(again, target)
	p, err := c.Plan(t.Context())
	require.NoError(t, err)
	require.True(t, p.Empty(), "%v", p.Steps)
	return c
}

// All parts of an EKS cluster of Cluster API's are imported, also those without its tags: they are parts whatever their tags, and cost money.
// --adopt tags them, and from then on they are in the manifest and are deleted with the cluster.
func TestImportOfPartsWithoutTags(t *testing.T) {
	enginetest.EachOf(t, []string{enginetest.EKSSmall}, awssim.Options{}, func(t *testing.T, a *awssim.AWS, m *manifest.Cluster) {
		enginetest.MustApply(t, m, a)
		madeByHand(t, a)
		target := targetOf(a)
		i, err := adopt.Import(t.Context(), m.Name, target, cluster.ImportOptions{})
		require.NoError(t, err)
		require.Empty(t, i.LeftOut)
		require.Empty(t, i.Differences)
		for _, part := range []string{"eksNodegroupName: by-hand", "name: coredns", "profileName: pods-by-hand"} {
			require.Contains(t, string(i.Manifest), part)
		}
		require.False(t, i.Plan.Empty(), "tags are missing")
		_, err = i.Adopt(t.Context(), cluster.Options{})
		require.NoError(t, err)

		_, err = requireNoChange(t, i, target).Delete(t.Context(), cluster.Options{Observe: enginetest.Tell(t)})
		require.NoError(t, err)
		a.Edit(func(s *awssim.State) { require.Empty(t, s.EKS.Clusters) })
	})
}

// Parts that have lost the tags of the cluster, or have those of another tool, are imported as they are, too.
func TestImportOfPartsThatLostTags(t *testing.T) {
	for what, tags := range map[string]map[string]string{"without tags": nil, "of Terraform": {"owner": "terraform"}} {
		t.Run(what, func(t *testing.T) {
			enginetest.EachOf(t, []string{enginetest.EKSAddons}, awssim.Options{}, func(t *testing.T, a *awssim.AWS, m *manifest.Cluster) {
				enginetest.MustApply(t, m, a)
				time.Sleep(6 * time.Minute)
				a.Edit(func(s *awssim.State) {
					c := enginetest.Plane(s)
					for _, x := range c.Addons {
						x.Tags = maps.Clone(tags)
					}
					for _, x := range c.NodeGroups {
						x.Tags = maps.Clone(tags)
					}
					for _, x := range c.Fargate {
						x.Tags = maps.Clone(tags)
					}
					for principal, x := range c.Access {
						if strings.Contains(principal, "/developers") {
							x.Tags = maps.Clone(tags)
						}
					}
				})
				target := targetOf(a)
				i, err := adopt.Import(t.Context(), m.Name, target, cluster.ImportOptions{})
				require.NoError(t, err)
				require.Empty(t, i.LeftOut)
				require.Empty(t, i.Differences)
				_, err = i.Adopt(t.Context(), cluster.Options{})
				require.NoError(t, err)
				requireNoChange(t, i, target)
			})
		})
	}
}

// What no manifest can describe of a part without tags is left out, and said.
func TestImportLeavesOutWhatItCannotDescribe(t *testing.T) {
	enginetest.EachOf(t, []string{enginetest.EKSSmall}, awssim.Options{}, func(t *testing.T, a *awssim.AWS, m *manifest.Cluster) {
		enginetest.MustApply(t, m, a)
		madeByHand(t, a)
		a.Edit(func(s *awssim.State) { enginetest.Plane(s).NodeGroups["by-hand"].Kind = "WINDOWS_FULL_2025_x86_64" })
		i, err := adopt.Import(t.Context(), m.Name, targetOf(a), cluster.ImportOptions{})
		require.NoError(t, err)
		require.Equal(t, []string{"node-group/by-hand: an AWSManagedMachinePool cannot have the amiType WINDOWS_FULL_2025_x86_64"}, i.LeftOut)
	})
}

// Self-managed nodes of another tool are left out, one line for each group.
func TestImportLeavesOutSelfManagedNodes(t *testing.T) {
	enginetest.EachOf(t, []string{enginetest.EKSSmall}, awssim.Options{}, func(t *testing.T, a *awssim.AWS, m *manifest.Cluster) {
		enginetest.MustApply(t, m, a)
		enginetest.SelfManagedNodes(t, a, "shop-nodes", 2)
		i, err := adopt.Import(t.Context(), m.Name, targetOf(a), cluster.ImportOptions{})
		require.NoError(t, err)
		line := "auto-scaling-group/shop-nodes with 2 nodes: it has the tag kubernetes.io/cluster/default_eks, but not those of Cluster API: another tool has made it, or it has lost them"
		require.Equal(t, []string{line}, i.LeftOut)
		require.Contains(t, string(i.Manifest), "# - auto-scaling-group/shop-nodes with 2 nodes: ")
	})
}

// So is a machine of a self-managed cluster without the tags of Cluster API.
func TestImportLeavesOutMachinesWithoutTags(t *testing.T) {
	enginetest.EachOf(t, []string{enginetest.Quickstart}, awssim.Options{}, func(t *testing.T, a *awssim.AWS, m *manifest.Cluster) {
		enginetest.MustApply(t, m, a)
		id := ""
		a.Edit(func(s *awssim.State) {
			for _, x := range s.EC2.Instances {
				if x.Tags["sigs.k8s.io/cluster-api-provider-aws/role"] == "node" {
					id, x.Tags = x.ID, map[string]string{"kubernetes.io/cluster/" + m.Name: "owned"}
				}
			}
		})
		i, err := adopt.Import(t.Context(), m.Name, targetOf(a), cluster.ImportOptions{})
		require.NoError(t, err)
		require.Len(t, i.LeftOut, 1)
		require.Contains(t, i.LeftOut[0], "instance/"+id+": it has the tag kubernetes.io/cluster/"+m.Name+", but not those of Cluster API")
		require.Contains(t, string(i.Manifest), "# - instance/"+id)
	})
}
