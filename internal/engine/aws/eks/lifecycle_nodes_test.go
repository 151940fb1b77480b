package eks_test

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	ekscontrolplanev1 "sigs.k8s.io/cluster-api-provider-aws/v2/controlplane/eks/api/v1beta2"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	"github.com/clusterawsadm/clusterawsadm/internal/enginetest"
	"github.com/clusterawsadm/clusterawsadm/internal/kubesim"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

const (
	eksMachines = "eks-machines.yaml"
	nodesRole   = "arn:aws:iam::123456789012:role/nodes.cluster-api-provider-aws.sigs.k8s.io"
)

// The role of machines that are in no node group gets access to the cluster, by its
// authentication mode.
func TestAccessOfNodes(t *testing.T) {
	t.Run("entry", func(t *testing.T) {
		m := enginetest.LoadQuick(t, eksMachines)
		synctest.Test(t, func(t *testing.T) {
			a := enginetest.Prepared(t, m)
			enginetest.MustApply(t, m, a)
			a.Edit(func(s *awssim.State) { require.Equal(t, "EC2_LINUX", enginetest.Plane(s).Access[nodesRole].Type) })
			m.Deployments, m.Pools = nil, nil
			enginetest.MustApply(t, m, a)
			a.Edit(func(s *awssim.State) {
				require.Nil(t, enginetest.Plane(s).Access[nodesRole])
				require.Empty(t, s.AutoScaling.Groups)
			})
		})
	})
	t.Run("entry of the manifest", func(t *testing.T) {
		m := enginetest.LoadQuick(t, eksMachines)
		m.EKS.ControlPlane.Spec.AccessEntries = []ekscontrolplanev1.AccessEntry{{PrincipalARN: nodesRole, Type: "ec2_linux"}}
		synctest.Test(t, func(t *testing.T) {
			a := enginetest.Prepared(t, m)
			require.Contains(t, enginetest.Done(enginetest.MustPlan(t, m, a)), "create access-entry/"+nodesRole)
			require.NotContains(t, enginetest.Done(enginetest.MustPlan(t, m, a)), "create access-entry/nodes.cluster-api-provider-aws.sigs.k8s.io")
		})
	})
	t.Run("ConfigMap", func(t *testing.T) {
		m := enginetest.LoadQuick(t, eksMachines)
		m.EKS.ControlPlane.Spec.AccessConfig.AuthenticationMode = ekscontrolplanev1.EKSAuthenticationModeConfigMap
		synctest.Test(t, func(t *testing.T) {
			a := enginetest.Prepared(t, m)
			require.Equal(
				t,
				[]string{
					"eks-machines.yaml:40 AWSManagedControlPlane/eks-machines spec.accessConfig: the ConfigMap aws-auth is not written by a run with --wait=infrastructure, " +
						"and those who are to be in it are not let into the cluster: run again with --wait=api",
				},
				enginetest.Told(t, m, a),
			)
			enginetest.MustApply(t, m, a)
			a.Edit(func(s *awssim.State) { require.Nil(t, enginetest.Plane(s).Access[nodesRole]) })
		})
	})
}

// TestAWSAuth adds machines and users to the ConfigMap aws-auth of a cluster that uses
// it: without an entry no machine joins. Entries of others stay.
func TestAWSAuth(t *testing.T) {
	m := enginetest.LoadQuick(t, eksMachines)
	m.EKS.ControlPlane.Spec.AccessConfig.AuthenticationMode = ekscontrolplanev1.EKSAuthenticationModeConfigMap
	ops := ekscontrolplanev1.RoleMapping{RoleARN: "arn:aws:iam::123456789012:role/ops"}
	ops.UserName, ops.Groups = "ops", []string{"system:masters"}
	m.EKS.ControlPlane.Spec.IAMAuthenticatorConfig = &ekscontrolplanev1.IAMAuthenticatorConfig{RoleMappings: []ekscontrolplanev1.RoleMapping{ops}}
	synctest.Test(t, func(t *testing.T) {
		a := enginetest.Prepared(t, m)
		enginetest.MustApply(t, m, a)
		time.Sleep(5 * time.Minute)
		a.Inventory()
		nodes := func() (n int) {
			enginetest.Inside(a, func(c *kubesim.Cluster) {
				for path := range c.Objects {
					if strings.HasPrefix(path, "/api/v1/nodes/") {
						n++
					}
				}
			})
			return n
		}
		require.Zero(t, nodes(), "nobody has let them in")
		enginetest.Inside(a, func(c *kubesim.Cluster) {
			c.Put(time.Now(), kubesim.Object{
				"apiVersion": "v1", "kind": "ConfigMap", "metadata": kubesim.Object{"name": "aws-auth", "namespace": "kube-system"},
				"data": kubesim.Object{"mapRoles": "- rolearn: arn:aws:iam::123456789012:role/of-others\n  username: others\n  groups: [readers]\n"},
			})
		})
		_, err := enginetest.Waiting(m, a.Process(), plan.APIServer).Apply(t.Context(), cluster.Options{Observe: enginetest.Tell(t)})
		require.NoError(t, err)
		time.Sleep(5 * time.Minute)
		a.Inventory()
		require.NotZero(t, nodes())
		enginetest.Inside(a, func(c *kubesim.Cluster) {
			text := fmt.Sprint(c.Get("/api/v1/namespaces/kube-system/configmaps/aws-auth"))
			for _, want := range []string{"role/of-others", "role/ops", nodesRole, "system:node:{{EC2PrivateDNSName}}"} {
				require.Contains(t, text, want)
			}
		})
		p, err := enginetest.Waiting(m, a.Process(), plan.APIServer).Plan(t.Context())
		require.NoError(t, err)
		require.True(t, p.Empty(), "%v", enginetest.Steps(p))
		enginetest.MustDelete(t, m, a)
	})
}

// Machines with an EKSConfig boot Amazon Linux 2.
func TestLinux2(t *testing.T) {
	text := []string{
		"kind: NodeadmConfigTemplate",
		"kind: EKSConfigTemplate",
		"kind: NodeadmConfig\n",
		"kind: EKSConfig\n",
		"eksLookupType: AmazonLinux2023",
		"eksLookupType: AmazonLinux",
		"      kubelet:\n        config:\n          maxPods: 58\n        flags: [\"--node-labels=example.com/purpose=web\"]\n",
		"      useMaxPods: false\n",
		"  featureGates:\n    FastImagePull: true\n  preNodeadmCommands:\n",
		"  preBootstrapCommands:\n",
	}
	old := enginetest.Rewritten(t, eksMachines, append(text, "version: v1.34", "version: v1.32")...)
	synctest.Test(t, func(t *testing.T) {
		a := enginetest.Prepared(t, old)
		enginetest.MustApply(t, old, a)
		enginetest.RequireNoChange(t, old, a)
		a.Edit(func(s *awssim.State) {
			for _, i := range s.EC2.Instances {
				data, err := base64.StdEncoding.DecodeString(i.UserData)
				require.NoError(t, err)
				require.Contains(t, string(data), "#cloud-config\n")
				require.Contains(t, string(data), "/etc/eks/bootstrap.sh default_eks-machines")
				require.Contains(t, s.EC2.Images[i.Image].Name, "amazon-eks-node-1.32-v")
				require.Contains(t, s.EC2.Interfaces[i.Interfaces[0]].Groups, enginetest.Plane(s).Group)
			}
		})
	})
}
