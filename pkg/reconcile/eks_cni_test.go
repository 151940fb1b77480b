package reconcile_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	infrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/api/v1beta2"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/internal/kubesim"
	"github.com/clusterawsadm/clusterawsadm/pkg/reconcile"
)

// eksWithDaemonSets loads an EKS cluster with the VPC CNI and kube-proxy that EKS installs by
// default.
func eksWithDaemonSets(t *testing.T) *manifest.Cluster {
	t.Helper()
	return load(t, "../../configs/eks-machines.yaml", nil)
}

const (
	awsNode   = "/apis/apps/v1/namespaces/kube-system/daemonsets/aws-node"
	kubeProxy = "/apis/apps/v1/namespaces/kube-system/daemonsets/kube-proxy"
)

// EKS installs the VPC CNI and kube-proxy. A run removes those that the manifest disables,
// and not those with the label that prevents it.
func TestDisabledDaemonSetsOfEKS(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := eksWithDaemonSets(t)
		a := account(m, lag)
		prepare(t, "", a, m)
		_, err := rolling(m, a.Process()).Apply(t.Context(), cluster.Options{Observe: tell(t)})
		require.NoError(t, err)
		inside(a, func(c *kubesim.Cluster) { require.NotNil(t, c.Get(awsNode)); require.NotNil(t, c.Get(kubeProxy)) })

		m.EKS.ControlPlane.Spec.KubeProxy.Disable, m.EKS.ControlPlane.Spec.VpcCni.Disable = true, true
		inside(a, func(c *kubesim.Cluster) {
			meta, _ := c.Get("/apis/rbac.authorization.k8s.io/v1/clusterroles/aws-node")["metadata"].(kubesim.Object)
			meta["labels"] = kubesim.Object{"aws.cluster.x-k8s.io/prevent-deletion": "true"}
		})
		p, err := rolling(m, a.Process()).Plan(t.Context())
		require.NoError(t, err)
		assert.Contains(t, strings.Join(steps(p), "\n"), "delete self-managed-addon/vpc-cni")
		_, err = rolling(m, a.Process()).Apply(t.Context(), cluster.Options{Observe: tell(t)})
		require.NoError(t, err)
		inside(a, func(c *kubesim.Cluster) {
			assert.Nil(t, c.Get(awsNode))
			assert.Nil(t, c.Get(kubeProxy))
			assert.Nil(t, c.Get("/api/v1/namespaces/kube-system/serviceaccounts/aws-node"))
			assert.NotNil(t, c.Get("/apis/rbac.authorization.k8s.io/v1/clusterroles/aws-node"))
		})
		requireDone(t, m, a)
	})
}

// A new cluster never has what is disabled when the run ends.
func TestDaemonSetsOfEKSAreDisabledFromTheStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := eksWithDaemonSets(t)
		m.EKS.ControlPlane.Spec.KubeProxy.Disable = true
		a := account(m, lag)
		prepare(t, "", a, m)
		_, err := rolling(m, a.Process()).Apply(t.Context(), cluster.Options{Observe: tell(t)})
		require.NoError(t, err)
		inside(a, func(c *kubesim.Cluster) { assert.Nil(t, c.Get(kubeProxy)) })
		requireDone(t, m, a)
	})
}

// The environment of aws-node is as in the manifest, and stays so.
func TestEnvironmentOfTheVPCCNI(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := eksWithDaemonSets(t)
		m.EKS.ControlPlane.Spec.VpcCni.Env = []corev1.EnvVar{
			{Name: "ENABLE_PREFIX_DELEGATION", Value: "true"},
			{Name: "MY_NODE_NAME", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "spec.nodeName"}}},
		}
		a := account(m, lag)
		prepare(t, "", a, m)
		_, err := rolling(m, a.Process()).Apply(t.Context(), cluster.Options{Observe: tell(t)})
		require.NoError(t, err)
		env := func() (text string) {
			inside(a, func(c *kubesim.Cluster) { text = fmt.Sprint(c.Get(awsNode)["spec"]) })
			return text
		}
		assert.Contains(t, env(), "map[name:ENABLE_PREFIX_DELEGATION value:true]")
		assert.Contains(t, env(), "fieldPath:spec.nodeName")
		requireDone(t, m, a)
		m.EKS.ControlPlane.Spec.VpcCni.Env[0].Value = "false"
		p, err := rolling(m, a.Process()).Plan(t.Context())
		require.NoError(t, err)
		assert.Equal(t, []string{`update vpc-cni [env ENABLE_PREFIX_DELEGATION from "true" to "false"]`}, steps(p))
		_, err = rolling(m, a.Process()).Apply(t.Context(), cluster.Options{Observe: tell(t)})
		require.NoError(t, err)
		assert.Contains(t, env(), "map[name:ENABLE_PREFIX_DELEGATION value:false]")
		requireDone(t, m, a)
	})
}

// The secondary block of an EKS cluster becomes subnets for pods, one in each zone, with an
// ENIConfig each. ENIConfigs of zones without one are removed.
func TestPodSubnetsOfEKS(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := eksWithDaemonSets(t)
		block := "100.64.0.0/16"
		m.EKS.ControlPlane.Spec.SecondaryCidrBlock = &block
		m.Infra.Spec.NetworkSpec.VPC.SecondaryCidrBlocks = append(m.Infra.Spec.NetworkSpec.VPC.SecondaryCidrBlocks, infrav1.VpcCidrBlock{IPv4CidrBlock: block})
		a := account(m, lag)
		prepare(t, "", a, m)
		_, err := rolling(m, a.Process()).Apply(t.Context(), cluster.Options{Observe: tell(t)})
		require.NoError(t, err)
		pods := map[string]string{}
		a.Edit(func(s *awssim.State) {
			for _, x := range s.EC2.Subnets {
				if x.Tags["sigs.k8s.io/cluster-api-provider-aws/association"] == "secondary" {
					pods[x.Zone] = x.ID + " " + x.CIDR
				}
			}
		})
		var blocks []string
		for _, zone := range slices.Sorted(maps.Keys(pods)) {
			_, cidr, _ := strings.Cut(pods[zone], " ")
			blocks = append(blocks, cidr)
		}
		require.Equal(t, []string{"100.64.0.0/18", "100.64.64.0/18", "100.64.128.0/18"}, blocks)
		inside(a, func(c *kubesim.Cluster) {
			for zone, subnet := range pods {
				o := c.Get("/apis/crd.k8s.amazonaws.com/v1alpha1/eniconfigs/" + zone)
				id, _, _ := strings.Cut(subnet, " ")
				assert.Equal(t, id, kubesim.Value(o, "spec", "subnet"))
				assert.Equal(t, m.Name, kubesim.Value(o, "metadata", "labels", "app.kubernetes.io/part-of"))
			}
		})
		requireDone(t, m, a)
		_, err = rolling(m, a.Process()).Delete(t.Context(), cluster.Options{})
		require.NoError(t, err)
	})
}

// A role of an add-on's service account that does not exist is told in the plan.
func TestRolesOfAddonsAreChecked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := load(t, "../../configs/eks-iam.yaml", nil)
		a := account(m, lag)
		prepare(t, "", a, m)
		told := func() (warnings []string) {
			target := rollingTarget(a.Process())
			target.Warn = func(text string) { warnings = append(warnings, text) }
			_, err := reconcile.OpenModel(m, target).Plan(t.Context())
			require.NoError(t, err)
			return warnings
		}
		const want = "eks-iam.yaml:74 AWSManagedControlPlane/eks-iam spec.addons[0].serviceAccountRoleARN: the role arn:aws:iam::123456789012:role/ebs-csi does not exist: until it is created, the pods of the add-on have no permissions"
		assert.NotContains(t, told(), want)
		a.Edit(func(s *awssim.State) { delete(s.IAM.Roles, "ebs-csi") })
		assert.Contains(t, told(), want)
	})
}
