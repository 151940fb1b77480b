package eks_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	infrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/api/v1beta2"
	ekscontrolplanev1 "sigs.k8s.io/cluster-api-provider-aws/v2/controlplane/eks/api/v1beta2"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/run"
	"github.com/clusterawsadm/clusterawsadm/internal/enginetest"
	"github.com/clusterawsadm/clusterawsadm/internal/kubesim"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// eksWithDaemonSets loads an EKS cluster with the VPC CNI and kube-proxy that EKS installs by
// default.
func eksWithDaemonSets(t *testing.T) *manifest.Cluster {
	t.Helper()
	return enginetest.Load(t, "eks-machines.yaml", nil)
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
		a := enginetest.Account(m, enginetest.Lag)
		enginetest.Prepare(t, a, m)
		_, err := enginetest.Rolling(m, a.Process()).Apply(t.Context(), cluster.Options{Observe: enginetest.Tell(t)})
		require.NoError(t, err)
		enginetest.Inside(a, func(c *kubesim.Cluster) { require.NotNil(t, c.Get(awsNode)); require.NotNil(t, c.Get(kubeProxy)) })

		m.EKS.ControlPlane.Spec.KubeProxy.Disable, m.EKS.ControlPlane.Spec.VpcCni.Disable = true, true
		enginetest.Inside(a, func(c *kubesim.Cluster) {
			meta, _ := c.Get("/apis/rbac.authorization.k8s.io/v1/clusterroles/aws-node")["metadata"].(kubesim.Object)
			meta["labels"] = kubesim.Object{"aws.cluster.x-k8s.io/prevent-deletion": "true"}
		})
		p, err := enginetest.Rolling(m, a.Process()).Plan(t.Context())
		require.NoError(t, err)
		assert.Contains(t, strings.Join(enginetest.Steps(p), "\n"), "delete self-managed-addon/vpc-cni")
		_, err = enginetest.Rolling(m, a.Process()).Apply(t.Context(), cluster.Options{Observe: enginetest.Tell(t)})
		require.NoError(t, err)
		enginetest.Inside(a, func(c *kubesim.Cluster) {
			assert.Nil(t, c.Get(awsNode))
			assert.Nil(t, c.Get(kubeProxy))
			assert.Nil(t, c.Get("/api/v1/namespaces/kube-system/serviceaccounts/aws-node"))
			assert.NotNil(t, c.Get("/apis/rbac.authorization.k8s.io/v1/clusterroles/aws-node"))
		})
		enginetest.RequireDone(t, m, a)
	})
}

// A new cluster never has what is disabled when the run ends.
func TestDaemonSetsOfEKSAreDisabledFromTheStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := eksWithDaemonSets(t)
		m.EKS.ControlPlane.Spec.KubeProxy.Disable = true
		a := enginetest.Account(m, enginetest.Lag)
		enginetest.Prepare(t, a, m)
		_, err := enginetest.Rolling(m, a.Process()).Apply(t.Context(), cluster.Options{Observe: enginetest.Tell(t)})
		require.NoError(t, err)
		enginetest.Inside(a, func(c *kubesim.Cluster) { assert.Nil(t, c.Get(kubeProxy)) })
		enginetest.RequireDone(t, m, a)
	})
}

// EKS does not install kube-proxy again when the manifest stops to disable it, or when somebody has deleted it: plans warn, and name the add-on that
// does.
func TestDaemonSetsOfEKSDoNotComeBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := eksWithDaemonSets(t)
		a := enginetest.Account(m, enginetest.Lag)
		enginetest.Prepare(t, a, m)
		warned := func() (lines []string) {
			p := a.Process()
			_, err := run.Open(m, cluster.Target{
				Config: p.Config(), Owner: "test", Transport: enginetest.Transport(p), Wait: plan.NodesReady,
				Warn: func(w string) {
					if strings.Contains(w, "DaemonSet kube-system/") {
						lines = append(lines, w)
					}
				},
			}).Plan(t.Context())
			require.NoError(t, err)
			return lines
		}
		_, err := enginetest.Rolling(m, a.Process()).Apply(t.Context(), cluster.Options{Observe: enginetest.Tell(t)})
		require.NoError(t, err)
		assert.Empty(t, warned())
		m.EKS.ControlPlane.Spec.KubeProxy.Disable = true
		_, err = enginetest.Rolling(m, a.Process()).Apply(t.Context(), cluster.Options{Observe: enginetest.Tell(t)})
		require.NoError(t, err)
		assert.Empty(t, warned(), "it is as the manifest wants it")
		m.EKS.ControlPlane.Spec.KubeProxy.Disable = false
		for range 2 {
			lines := warned()
			require.Len(t, lines, 1)
			assert.Regexp(t, `^eks-machines.yaml:\d+ AWSManagedControlPlane/\S+ spec.*: the cluster has no DaemonSet kube-system/kube-proxy, `, lines[0])
			assert.Contains(t, lines[0], "add the add-on kube-proxy to spec.addons")
		}
		enginetest.Inside(a, func(c *kubesim.Cluster) { c.Drop(c.Get(awsNode)) })
		assert.Len(t, warned(), 2)
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
		a := enginetest.Account(m, enginetest.Lag)
		enginetest.Prepare(t, a, m)
		_, err := enginetest.Rolling(m, a.Process()).Apply(t.Context(), cluster.Options{Observe: enginetest.Tell(t)})
		require.NoError(t, err)
		env := func() (text string) {
			enginetest.Inside(a, func(c *kubesim.Cluster) { text = fmt.Sprint(c.Get(awsNode)["spec"]) })
			return text
		}
		assert.Contains(t, env(), "map[name:ENABLE_PREFIX_DELEGATION value:true]")
		assert.Contains(t, env(), "fieldPath:spec.nodeName")
		enginetest.RequireDone(t, m, a)
		m.EKS.ControlPlane.Spec.VpcCni.Env[0].Value = "false"
		p, err := enginetest.Rolling(m, a.Process()).Plan(t.Context())
		require.NoError(t, err)
		assert.Equal(t, []string{`update vpc-cni [env ENABLE_PREFIX_DELEGATION from "true" to "false"]`}, enginetest.Steps(p))
		_, err = enginetest.Rolling(m, a.Process()).Apply(t.Context(), cluster.Options{Observe: enginetest.Tell(t)})
		require.NoError(t, err)
		assert.Contains(t, env(), "map[name:ENABLE_PREFIX_DELEGATION value:false]")
		enginetest.RequireDone(t, m, a)
		for _, name := range []string{"ENABLE_PREFIX_DELEGATION", "MY_NODE_NAME"} { // the second one is the last
			m.EKS.ControlPlane.Spec.VpcCni.Env = m.EKS.ControlPlane.Spec.VpcCni.Env[1:]
			p, err = enginetest.Rolling(m, a.Process()).Plan(t.Context())
			require.NoError(t, err)
			require.Len(t, enginetest.Steps(p), 1)
			assert.Contains(t, enginetest.Steps(p)[0], "update vpc-cni [env "+name)
			_, err = enginetest.Rolling(m, a.Process()).Apply(t.Context(), cluster.Options{Observe: enginetest.Tell(t)})
			require.NoError(t, err)
			assert.NotContains(t, env(), name)
			enginetest.RequireDone(t, m, a)
		}
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
		a := enginetest.Account(m, enginetest.Lag)
		enginetest.Prepare(t, a, m)
		_, err := enginetest.Rolling(m, a.Process()).Apply(t.Context(), cluster.Options{Observe: enginetest.Tell(t)})
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
		enginetest.Inside(a, func(c *kubesim.Cluster) {
			for zone, subnet := range pods {
				o := c.Get("/apis/crd.k8s.amazonaws.com/v1alpha1/eniconfigs/" + zone)
				id, _, _ := strings.Cut(subnet, " ")
				assert.Equal(t, id, kubesim.Value(o, "spec", "subnet"))
				assert.Equal(t, m.Name, kubesim.Value(o, "metadata", "labels", "app.kubernetes.io/part-of"))
			}
		})
		enginetest.RequireDone(t, m, a)
		_, err = enginetest.Rolling(m, a.Process()).Delete(t.Context(), cluster.Options{})
		require.NoError(t, err)
	})
}

// A role of an add-on's service account that does not exist is told in the plan.
func TestRolesOfAddonsAreChecked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := enginetest.Load(t, "eks-iam.yaml", nil)
		a := enginetest.Account(m, enginetest.Lag)
		enginetest.Prepare(t, a, m)
		told := func() (warnings []string) {
			target := enginetest.RollingTarget(a.Process())
			target.Warn = func(text string) { warnings = append(warnings, text) }
			_, err := run.Open(m, target).Plan(t.Context())
			require.NoError(t, err)
			return warnings
		}
		const want = "eks-iam.yaml:74 AWSManagedControlPlane/eks-iam spec.addons[0].serviceAccountRoleARN: the role arn:aws:iam::123456789012:role/ebs-csi does not exist: until it is created, the pods of the add-on have no permissions"
		assert.NotContains(t, told(), want)
		a.Edit(func(s *awssim.State) { delete(s.IAM.Roles, "ebs-csi") })
		assert.Contains(t, told(), want)
	})
}

// A run does not wait for add-ons whose pods reach no Service: nothing installs kube-proxy.
func TestNoWaitWithoutServices(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := enginetest.LoadQuick(t, enginetest.EKSAddons)
		m.EKS.ControlPlane.Spec.KubeProxy.Disable = true
		addons := slices.DeleteFunc(slices.Clone(*m.EKS.ControlPlane.Spec.Addons), func(a ekscontrolplanev1.Addon) bool { return a.Name == "kube-proxy" })
		m.EKS.ControlPlane.Spec.Addons, m.EKS.Fargate = &addons, nil
		a := enginetest.Prepared(t, m)
		for range 2 {
			_, err := enginetest.Rolling(m, a.Process()).Apply(t.Context(), cluster.Options{Observe: enginetest.Tell(t)})
			require.ErrorContains(t, err, "AWS reports DEGRADED")
			var diagnosed plan.Diagnosed
			require.ErrorAs(t, err, &diagnosed)
			findings, _ := diagnosed.Diagnosis()
			require.Contains(t, strings.Join(findings, "\n"), "has no DaemonSet kube-system/kube-proxy")
		}
		began := time.Now()
		_, err := enginetest.Rolling(m, a.Process()).Apply(t.Context(), cluster.Options{})
		require.Error(t, err)
		require.Less(t, time.Since(began), 4*time.Minute)
	})
}
