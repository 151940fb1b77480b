package eks_test

import (
	"strings"
	"testing"
	"testing/synctest"

	"github.com/aws/aws-sdk-go-v2/aws"
	awseks "github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	ekscontrolplanev1 "sigs.k8s.io/cluster-api-provider-aws/v2/controlplane/eks/api/v1beta2"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	ekssim "github.com/clusterawsadm/clusterawsadm/internal/awssim/eks"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/internal/enginetest"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

const (
	planeHead = "kind: AWSManagedControlPlane\nmetadata:\n"
	poolHead  = "kind: AWSManagedMachinePool\nmetadata:\n"
)

// annotated returns eks.yaml with annotations of the first object whose text begins with head.
func annotated(t *testing.T, head, annotations string) *manifest.Cluster {
	t.Helper()
	if annotations == "" {
		return enginetest.Load(t, "eks.yaml", nil)
	}
	return enginetest.Rewritten(t, "eks.yaml", head, head+"  annotations:\n    "+strings.ReplaceAll(annotations, "\n", "\n    ")+"\n")
}

// onlyCluster returns the EKS cluster of the account.
func onlyCluster(t *testing.T, s *awssim.State) *ekssim.Cluster {
	t.Helper()
	require.Len(t, s.EKS.Clusters, 1)
	for _, c := range s.EKS.Clusters {
		return c
	}
	return nil
}

// Annotations set the control plane's settings when it is created, and change them later. Removing an
// annotation keeps the setting.
func TestSettingsOfControlPlane(t *testing.T) {
	const own = "  annotations:\n" // eks-addons.yaml has access entries, which hybrid nodes need
	load := func(t *testing.T, annotations string) *manifest.Cluster {
		t.Helper()
		return enginetest.Rewritten(t, "eks-addons.yaml", own, own+annotations)
	}
	synctest.Test(t, func(t *testing.T) {
		const file = "eks-addons.yaml"
		m := load(t, "    clusterawsadm/control-plane-tier: tier-xl\n    clusterawsadm/remote-node-networks: 192.168.64.0/20\n")
		a := enginetest.Account(m, enginetest.Lag)
		enginetest.Prepare(t, a, m)
		enginetest.MustApply(t, m, a)
		a.Edit(func(s *awssim.State) {
			c := onlyCluster(t, s)
			assert.Equal(t, "tier-xl", c.Tier)
			assert.Equal(t, []string{"192.168.64.0/20"}, c.RemoteNodes)
		})
		enginetest.RequireNoChange(t, m, a)

		m = load(t, "    clusterawsadm/control-plane-tier: standard\n    clusterawsadm/remote-node-networks: 192.168.64.0/20, 192.168.80.0/20\n"+
			"    clusterawsadm/remote-pod-networks: 192.168.128.0/20\n")
		enginetest.MustApply(t, m, a)
		a.Edit(func(s *awssim.State) {
			c := onlyCluster(t, s)
			assert.Equal(t, "standard", c.Tier)
			assert.Equal(t, []string{"192.168.64.0/20", "192.168.80.0/20"}, c.RemoteNodes)
			assert.Equal(t, []string{"192.168.128.0/20"}, c.RemotePods)
		})
		enginetest.RequireNoChange(t, m, a)
		enginetest.RequireNoChange(t, enginetest.Load(t, file, nil), a)

		m = load(t, "    clusterawsadm/remote-node-networks: ''\n    clusterawsadm/remote-pod-networks: ''\n")
		enginetest.MustApply(t, m, a)
		a.Edit(func(s *awssim.State) { assert.Empty(t, onlyCluster(t, s).RemoteNodes) })
		enginetest.RequireNoChange(t, m, a)
	})
}

// A node group takes several instance types, an update strategy and limits of node repair from its
// annotations. The strategy and the limits can change.
func TestSettingsOfNodeGroup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const file = "eks.yaml"
		load := func(annotations string) *manifest.Cluster {
			return enginetest.Rewritten(t, file, "  instanceType: t3.large\n", "  nodeRepairConfig: {enabled: true}\n",
				poolHead, poolHead+"  annotations: {clusterawsadm/instance-types: 'm6i.large, m5.large', "+annotations+"}\n")
		}
		m := load("clusterawsadm/update-strategy: minimal, clusterawsadm/node-repair-max-parallel: '1', clusterawsadm/node-repair-max-unhealthy: 20%")
		a := enginetest.Account(m, enginetest.Lag)
		enginetest.Prepare(t, a, m)
		enginetest.MustApply(t, m, a)
		group := func() (g ekssim.NodeGroup) {
			a.Edit(func(s *awssim.State) {
				for _, x := range onlyCluster(t, s).NodeGroups {
					g = *x
				}
			})
			return g
		}
		assert.Equal(t, []string{"m6i.large", "m5.large"}, group().InstanceTypes)
		assert.Equal(t, "MINIMAL", group().Strategy)
		assert.Equal(t, ekssim.RepairLimits{UnhealthyPercentage: 20, ParallelCount: 1}, group().RepairLimits)
		enginetest.RequireNoChange(t, m, a)

		m = load("clusterawsadm/update-strategy: default, clusterawsadm/node-repair-max-parallel: 10%")
		enginetest.MustApply(t, m, a)
		assert.Equal(t, "DEFAULT", group().Strategy)
		assert.Equal(t, ekssim.RepairLimits{ParallelPercentage: 10}, group().RepairLimits)
		enginetest.RequireNoChange(t, m, a)
	})
}

// An upgrade for which EKS has an insight with an error is refused before the first write, by its
// name, with the clients that use a removed API. The annotation upgrades all the same.
func TestUpgradeInsights(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		at := func(version, annotations string) *manifest.Cluster {
			m := annotated(t, planeHead, annotations)
			m.Version, m.EKS.ControlPlane.Spec.Version = version, &version
			m.Pools[0].Object.Spec.Template.Spec.Version = "v1.33.0"
			return m
		}
		a := enginetest.Account(at("v1.33", ""), enginetest.Lag)
		enginetest.Prepare(t, a, at("v1.33", ""))
		enginetest.MustApply(t, at("v1.33", ""), a)
		a.Edit(func(s *awssim.State) {
			onlyCluster(t, s).Insights = map[string]*ekssim.Insight{
				"1": {
					ID: "1", Name: "Deprecated APIs removed in Kubernetes v1.34", Version: "1.34", Status: "ERROR", Reason: "Deprecated API usage detected.",
					Recommendation: "Update manifests and API clients.", Deprecated: []ekssim.Deprecated{
						{Usage: "/apis/example.io/v1beta1/things", ReplacedWith: "/apis/example.io/v1/things", StopServing: "1.34", Clients: []string{"tool/1.2"}},
					},
				},
				"2": {ID: "2", Name: "Kubelet version skew", Version: "1.34", Status: "WARNING", Reason: "Nodes are old."},
				"3": {ID: "3", Name: "Cluster health issues", Version: "1.34", Status: "PASSING"},
			}
		})
		before := a.Inventory()
		_, err := enginetest.Open(at("v1.34", ""), a.Process()).Apply(t.Context(), cluster.Options{})
		require.ErrorAs(t, err, new(*plan.RefusedError))
		require.ErrorContains(t, err, "Deprecated APIs removed in Kubernetes v1.34 (Kubernetes 1.34): Deprecated API usage detected; "+
			"/apis/example.io/v1beta1/things (1.34 removes it; use /apis/example.io/v1/things), used by tool/1.2. Update manifests and API clients.")
		assert.NotContains(t, err.Error(), "Kubelet version skew", "a warning does not refuse")
		assert.Subset(t, a.Inventory(), before)

		m := at("v1.34", "clusterawsadm/force-update: 'true'")
		enginetest.MustApply(t, m, a)
		a.Edit(func(s *awssim.State) { assert.Equal(t, "1.34", onlyCluster(t, s).Version) })
	})
}

// Without the permission to read insights, the upgrade is tried, and EKS's refusal ends the run.
func TestInsightsAreDenied(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const file = "eks.yaml"
		m := enginetest.Load(t, file, nil)
		old := "v1.33"
		m.Version, m.EKS.ControlPlane.Spec.Version, m.Pools[0].Object.Spec.Template.Spec.Version = old, &old, "v1.33.0"
		a := enginetest.Account(m, enginetest.Lag)
		enginetest.Prepare(t, a, m)
		enginetest.MustApply(t, m, a)
		a.Edit(func(s *awssim.State) {
			onlyCluster(t, s).Insights = map[string]*ekssim.Insight{"1": {ID: "1", Name: "Kubelet version skew", Version: "1.34", Status: "ERROR"}}
		})
		next := "v1.34"
		m.Version, m.EKS.ControlPlane.Spec.Version = next, &next
		_, err := enginetest.Open(m, enginetest.Refusing(a, "EKS", "ListInsights", awssim.Denied)).Apply(t.Context(), cluster.Options{})
		require.ErrorContains(t, err, "InvalidStateException")
		require.NotErrorAs(t, err, new(*plan.RefusedError))
	})
}

// Pod identity associations are created, get another role, and are deleted when they leave the
// manifest. One that somebody else has made is not touched.
func TestPodIdentities(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const file, first, second = "eks.yaml", "arn:aws:iam::123456789012:role/ebs", "arn:aws:iam::123456789012:role/pods/other"
		entry := func(account, role string) string {
			return "\n  - {namespace: kube-system, serviceAccount: " + account + ", roleARN: '" + role + "'}"
		}
		agent := func(m *manifest.Cluster) *manifest.Cluster {
			m.EKS.ControlPlane.Spec.Addons = &[]ekscontrolplanev1.Addon{{Name: "eks-pod-identity-agent", Version: "v1.3.9-eksbuild.3"}}
			return m
		}
		load := func(entries string) *manifest.Cluster {
			return agent(annotated(t, planeHead, "clusterawsadm/pod-identity-associations: |"+entries))
		}
		m := load(entry("ebs-csi-controller-sa", first))
		a := enginetest.Account(m, enginetest.Lag)
		enginetest.Prepare(t, a, enginetest.Load(t, file, nil)) // without the roles
		_, err := enginetest.Open(m, a.Process()).Apply(t.Context(), cluster.Options{})
		require.ErrorContains(t, err, "role ebs does not exist in the account: create it with a trust policy for pods.eks.amazonaws.com")
		createPodRole(t, a, "ebs", "/")
		createPodRole(t, a, "other", "/pods/")
		enginetest.MustApply(t, m, a)
		enginetest.RequireNoChange(t, m, a)
		roles := func() map[string]string {
			out := map[string]string{}
			a.Edit(func(s *awssim.State) {
				for _, p := range onlyCluster(t, s).PodIdentities {
					out[p.Namespace+"/"+p.ServiceAccount] = p.RoleARN
				}
			})
			return out
		}
		assert.Equal(t, map[string]string{"kube-system/ebs-csi-controller-sa": first}, roles())

		m = load(entry("ebs-csi-controller-sa", second) + entry("load-balancers", first))
		enginetest.MustApply(t, m, a)
		enginetest.RequireNoChange(t, m, a)
		assert.Equal(t, map[string]string{"kube-system/ebs-csi-controller-sa": second, "kube-system/load-balancers": first}, roles())

		c := awseks.NewFromConfig(a.Process().Config())
		_, err = c.CreatePodIdentityAssociation(t.Context(), &awseks.CreatePodIdentityAssociationInput{
			ClusterName: aws.String("default_eks"), Namespace: aws.String("default"), ServiceAccount: aws.String("theirs"), RoleArn: aws.String(first),
		})
		require.NoError(t, err)
		enginetest.RequireNoChange(t, m, a)
		m = agent(enginetest.Load(t, file, nil))
		enginetest.MustApply(t, m, a)
		assert.Equal(t, map[string]string{"default/theirs": first}, roles())
		enginetest.MustDelete(t, m, a)
	})
}

// createPodRole creates a role that EKS Pod Identity may assume.
func createPodRole(t *testing.T, a *awssim.AWS, name, path string) {
	t.Helper()
	_, err := iam.NewFromConfig(a.Process().Config()).
		CreateRole(t.Context(), &iam.CreateRoleInput{RoleName: &name, Path: &path, AssumeRolePolicyDocument: aws.String(
			`{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"Service":"pods.eks.amazonaws.com"},"Action":["sts:AssumeRole","sts:TagSession"]}]}`,
		)})
	require.NoError(t, err)
}

// A node group without nodes and without bounds can be created: EKS wants a maxSize of 1 at least.
func TestNodeGroupWithoutNodes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const file = "eks.yaml"
		m := enginetest.Load(t, file, nil)
		m.Pools[0].Object.Spec.Replicas, m.Pools[0].Managed.Spec.Scaling = aws.Int32(0), nil
		a := enginetest.Account(m, enginetest.Lag)
		enginetest.Prepare(t, a, m)
		enginetest.MustApply(t, m, a)
		enginetest.RequireNoChange(t, m, a)
		enginetest.MustDelete(t, m, a)
	})
}
