package cli

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	"github.com/clusterawsadm/clusterawsadm/internal/kubesim"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
	"github.com/clusterawsadm/clusterawsadm/pkg/input"
	"github.com/clusterawsadm/clusterawsadm/pkg/reconcile"
)

// TestGeneratedEKSHasVolumes applies what generate prints for the flavors of EKS. The Nodes are ready, all add-ons are
// active, and a claim of a pod is bound with the default StorageClass. A deletion leaves nothing. The flavor eks-byo-vpc needs
// a VPC that exists, and eks-fargate has no nodes for volumes.
func TestGeneratedEKSHasVolumes(t *testing.T) {
	for _, flavor := range []string{"eks", "eks-addons", "eks-gpu", "eks-iam", "eks-ipv6", "eks-machines", "eks-templates"} {
		t.Run(flavor, func(t *testing.T) {
			s := newShell(t)
			require.Equal(t, 0, s.run("cluster", "generate", "demo", "--flavor", flavor), s.err.String())
			assert.NotRegexp(t, `<[a-z-]+>`, s.out.String(), "a word that stands for a value is left")
			manifest := s.out.String()
			synctest.Test(t, func(t *testing.T) {
				m, err := reconcile.Load([]input.Source{{Name: "demo.yaml", Data: []byte(manifest)}}, input.LoadOptions{})
				require.NoError(t, err)
				a := awssim.New(awssim.Options{EKSRoles: true})
				before := a.Inventory()
				c := reconcile.Open(m, to(a))
				res, err := c.Apply(t.Context(), cluster.Options{})
				require.NoError(t, err)
				require.Positive(t, res.Nodes.Joined)
				require.Equal(t, res.Nodes.Joined, res.Nodes.Ready)
				res, err = c.Apply(t.Context(), cluster.Options{})
				require.NoError(t, err)
				require.True(t, res.Plan.Empty(), "the second run changes something")
				addClaim(a)
				for range 6 {
					time.Sleep(10 * time.Second)
					a.Inventory() // a call, so that the simulation advances
				}
				assert.Equal(t, "Bound gp3", claimOf(a))
				assert.Contains(t, strings.Join(a.Inventory(), "\n"), "SecurityGroup k8s-elb-")
				_, err = c.Delete(t.Context(), cluster.Options{})
				require.NoError(t, err)
				assert.Equal(t, before, a.Inventory())
			})
		})
	}
}

// addClaim adds a StatefulSet with a claim, and a Service with a load balancer, to the clusters of an account.
func addClaim(a *awssim.AWS) {
	a.Edit(func(st *awssim.State) {
		for _, c := range st.Kubernetes {
			c.Put(time.Now(), kubesim.Object{
				"apiVersion": "v1", "kind": "Service", "metadata": kubesim.Object{"name": "web", "namespace": "default"}, "spec": kubesim.Object{"type": "LoadBalancer"},
			})
			c.Put(time.Now(), kubesim.Object{
				"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": kubesim.Object{"name": "db", "namespace": "default"}, "spec": kubesim.Object{
					"replicas": 1.0, "volumeClaimTemplates": []any{kubesim.Object{"metadata": kubesim.Object{"name": "data"}, "spec": kubesim.Object{}}},
				},
			})
		}
	})
}

// claimOf returns the phase and the class of that claim.
func claimOf(a *awssim.AWS) (out string) {
	a.Edit(func(st *awssim.State) {
		for _, c := range st.Kubernetes {
			claim := c.Get("/api/v1/namespaces/default/persistentvolumeclaims/data-db-0")
			out += fmt.Sprint(kubesim.Value(claim, "status", "phase"), " ", kubesim.Value(claim, "spec", "storageClassName"))
		}
	})
	return out
}

// Without its role, or without the agent that gives it, the EBS CSI driver makes no volume.
func TestVolumesNeedARole(t *testing.T) {
	s := newShell(t)
	require.Equal(t, 0, s.run("cluster", "generate", "demo", "--flavor", "eks"), s.err.String())
	manifest := s.out.String()
	from := strings.Index(manifest, "    clusterawsadm/addon-pod-identities")
	until := strings.Index(manifest, "spec:\n  region")
	for name, text := range map[string]string{
		"no role":      manifest[:from] + "    clusterawsadm/zonal-shift: \"false\"\n" + manifest[until:],
		"no agent":     strings.Replace(manifest, "  - name: eks-pod-identity-agent\n    version: ${POD_IDENTITY_VERSION:=v1.3.9-eksbuild.3}\n", "", 1),
		"wrong policy": strings.Replace(manifest, "service-role/AmazonEBSCSIDriverPolicy", "ReadOnlyAccess", 1),
	} {
		t.Run(name, func(t *testing.T) {
			require.NotEqual(t, manifest, text)
			synctest.Test(t, func(t *testing.T) {
				m, err := reconcile.Load([]input.Source{{Name: "demo.yaml", Data: []byte(text)}}, input.LoadOptions{})
				require.NoError(t, err)
				a := awssim.New(awssim.Options{EKSRoles: true})
				_, err = reconcile.Open(m, to(a)).Apply(t.Context(), cluster.Options{})
				require.NoError(t, err)
				addClaim(a)
				time.Sleep(time.Minute)
				a.Inventory()
				time.Sleep(time.Minute)
				assert.Equal(t, "Pending gp3", claimOf(a))
			})
		})
	}
}

func TestGenerateEKSElsewhere(t *testing.T) {
	for region, want := range map[string]string{
		"cn-north-1":    "[arn:aws-cn:iam::aws:policy/service-role/AmazonEBSCSIDriverPolicy]",
		"us-gov-west-1": "[arn:aws-us-gov:iam::aws:policy/service-role/AmazonEBSCSIDriverPolicy]",
	} {
		s := newShell(t)
		require.Equal(t, 0, s.run("cluster", "generate", "demo", "--flavor", "eks", "--region", region), s.err.String())
		assert.Contains(t, s.out.String(), want)
	}
	s := newShell(t)
	require.Equal(t, 0, s.run("cluster", "generate", "demo", "--flavor", "eks-fargate"), s.err.String())
	assert.NotContains(t, s.out.String(), "ebs-csi")
}
