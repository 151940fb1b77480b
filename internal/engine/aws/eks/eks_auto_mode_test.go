package eks_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awseks "github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/eks/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	"github.com/clusterawsadm/clusterawsadm/internal/enginetest"
	"github.com/clusterawsadm/clusterawsadm/internal/kubesim"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

const autoExample = "eks-auto.yaml"

// autoNodes lists the instances of Auto Mode that are not being terminated.
func autoNodes(a *awssim.AWS) (ids []string) {
	a.Edit(func(s *awssim.State) {
		for id, i := range s.EC2.Instances {
			if i.Operator != "" && i.Terminating.IsZero() {
				ids = append(ids, id)
			}
		}
	})
	return ids
}

// needsNode adds a pod, and a Service, so that the controllers run.
func needsNode(a *awssim.AWS) {
	enginetest.Inside(a, func(c *kubesim.Cluster) {
		c.Put(time.Now(), kubesim.Object{"apiVersion": "v1", "kind": "Service", "metadata": kubesim.Object{"name": "web", "namespace": "default"}})
		c.Put(time.Now(), kubesim.Object{
			"apiVersion": "v1",
			"kind":       "Pod",
			"metadata":   kubesim.Object{"name": "web", "namespace": "default"},
			"spec":       kubesim.Object{},
			"status":     kubesim.Object{"phase": "Pending"},
		})
	})
	for range 12 {
		time.Sleep(20 * time.Second)
		a.Inventory()
	}
}

// A pod gets a node of Auto Mode. Its node pools change; turned off, its instances are gone, and turned on again it has them again.
// A deletion with the manifest or by name leaves nothing, and terminates no instance of EKS itself.
func TestAutoMode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := enginetest.Load(t, autoExample, nil)
		a := enginetest.Account(m, enginetest.Lag)
		enginetest.Prepare(t, a, m)
		before := a.Inventory()
		enginetest.MustApply(t, m, a)
		enginetest.RequireNoChange(t, m, a)
		a.Edit(func(s *awssim.State) {
			assert.Equal(t, []string{"general-purpose", "system"}, onlyCluster(t, s).Auto.NodePools)
			assert.False(t, onlyCluster(t, s).SelfManagedAddons)
		})
		needsNode(a)
		require.Len(t, autoNodes(a), 1)
		enginetest.Inside(a, func(c *kubesim.Cluster) {
			assert.NotEmpty(t, kubesim.Value(c.Get("/api/v1/namespaces/default/pods/web"), "spec", "nodeName"))
		})
		enginetest.RequireNoChange(t, m, a)

		const pools, role = "auto-mode: general-purpose, system\n", "    clusterawsadm/auto-mode-role: AmazonEKSAutoNodeRole\n"
		one := enginetest.Rewritten(t, autoExample, pools, "auto-mode: general-purpose\n")
		enginetest.MustApply(t, one, a)
		enginetest.RequireNoChange(t, one, a)
		assert.Len(t, autoNodes(a), 1)

		off := enginetest.Rewritten(t, autoExample, pools, "auto-mode: 'false'\n", role, "")
		assert.Contains(t, strings.Join(enginetest.Told(t, off, a), "\n"), "EKS terminates all of its instances")
		enginetest.MustApply(t, off, a)
		enginetest.RequireNoChange(t, off, a)
		assert.Empty(t, autoNodes(a))
		enginetest.RequireNoChange(t, enginetest.Rewritten(t, autoExample, "    clusterawsadm/"+pools, "    clusterawsadm/zonal-shift: 'false'\n", role, ""), a)

		enginetest.MustApply(t, m, a)
		needsNode(a)
		require.Len(t, autoNodes(a), 1)
		since := len(a.Calls())
		enginetest.MustDelete(t, m, a)
		assert.Equal(t, before, a.Inventory())
		for _, c := range enginetest.Since(a, since) {
			assert.NotEqual(t, "TerminateInstances", c.Operation)
		}

		enginetest.MustApply(t, m, a)
		needsNode(a)
		_, err := enginetest.ByName("eks-auto", a).Delete(t.Context(), cluster.Options{})
		require.NoError(t, err)
		assert.Equal(t, before, a.Inventory())
	})
}

// A cluster of nodes gets Auto Mode later, beside its node groups and the add-ons that EKS has installed.
func TestAutoModeIsTurnedOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const file = "eks.yaml"
		m := enginetest.Load(t, file, nil)
		a := enginetest.Account(m, enginetest.Lag)
		enginetest.Prepare(t, a, m)
		a.Edit(func(s *awssim.State) { // a role from before there was Auto Mode
			role := s.IAM.Roles[*m.EKS.ControlPlane.Spec.RoleName]
			role.Trust, role.Attached = "", []string{"arn:aws:iam::aws:policy/AmazonEKSClusterPolicy"}
		})
		enginetest.MustApply(t, m, a)
		edits := []string{
			planeHead,
			planeHead + "  annotations: {clusterawsadm/auto-mode: none}\n",
			"  version: v1.34\n",
			"  version: v1.34\n  accessConfig: {authenticationMode: api}\n",
		}
		on := enginetest.Rewritten(t, file, edits...)
		_, err := enginetest.Open(on, a.Process()).Plan(t.Context())
		require.ErrorAs(t, err, new(*plan.RefusedError))
		require.ErrorContains(t, err, "lacks for EKS Auto Mode: sts:TagSession in its trust policy, AmazonEKSComputePolicy")
		a.Edit(func(s *awssim.State) { s.IAM.Roles[*m.EKS.ControlPlane.Spec.RoleName].MakeAutoCluster("aws") })
		enginetest.MustApply(t, on, a)
		enginetest.RequireNoChange(t, on, a)
		a.Edit(func(s *awssim.State) { assert.Empty(t, onlyCluster(t, s).Auto.NodePools) })
		enginetest.MustDelete(t, on, a)
	})
}

// With CAPA_EKS_IAM, both roles are made, and deleted with the cluster.
func TestAutoModeMakesItsRoles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := withRoles(t, autoExample, "  roleName: AmazonEKSAutoClusterRole\n", "", "    clusterawsadm/auto-mode-role: AmazonEKSAutoNodeRole\n", "")
		a := enginetest.Account(m, enginetest.Lag)
		before := a.Inventory()
		enginetest.MustApply(t, m, a)
		enginetest.RequireNoChange(t, m, a)
		a.Edit(func(s *awssim.State) {
			assert.Len(t, s.IAM.Roles["default_eks-auto-us-east-1-auto-node"].Attached, 2)
			assert.Contains(t, s.IAM.Roles["eks-auto-iam-service-role"].Trust, "sts:TagSession")
		})
		enginetest.MustDelete(t, m, a)
		assert.Equal(t, before, a.Inventory())
	})
}

// A plan refuses what EKS would refuse.
func TestAutoModeIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := enginetest.Load(t, autoExample, nil)
		a := enginetest.Account(m, enginetest.Lag)
		enginetest.Prepare(t, a, m)
		both := enginetest.Rewritten(t, autoExample, "bootstrapSelfManagedAddons: false", "bootstrapSelfManagedAddons: true")
		assert.Contains(t, enginetest.Refused(t, both, a), "EKS refuses to install them, too: set spec.bootstrapSelfManagedAddons: false")
		stranger := enginetest.Rewritten(t, autoExample, "auto-mode-role: AmazonEKSAutoNodeRole", "auto-mode-role: nobody")
		_, err := enginetest.Open(stranger, a.Process()).Apply(t.Context(), cluster.Options{})
		require.ErrorContains(t, err, "role nobody does not exist in the account")
		enginetest.MustApply(t, m, a)
		a.Edit(func(s *awssim.State) {
			r := &awssim.Role{Name: "other"}
			r.MakeAutoNode("aws")
			s.IAM.Roles["other"] = r
		})
		other := enginetest.Rewritten(t, autoExample, "auto-mode-role: AmazonEKSAutoNodeRole", "auto-mode-role: other")
		_, err = enginetest.Open(other, a.Process()).Apply(t.Context(), cluster.Options{})
		require.ErrorAs(t, err, new(*plan.ConflictError))
		require.ErrorContains(t, err, "EKS keeps the role of the nodes while Auto Mode is on")
		enginetest.MustDelete(t, m, a)
	})
}

// The simulated EKS refuses settings of Auto Mode that do not belong together.
func TestSimulatedAutoModeRefuses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := enginetest.Load(t, "eks.yaml", nil)
		a := enginetest.Account(m, 0)
		enginetest.Prepare(t, a, m)
		enginetest.MustApply(t, m, a)
		c := awseks.NewFromConfig(a.Config())
		compute := func(on bool, role *string, pools ...string) *types.ComputeConfigRequest {
			return &types.ComputeConfigRequest{Enabled: &on, NodePools: pools, NodeRoleArn: role}
		}
		storage := &types.StorageConfigRequest{BlockStorage: &types.BlockStorage{Enabled: aws.Bool(true)}}
		network := &types.KubernetesNetworkConfigRequest{ElasticLoadBalancing: &types.ElasticLoadBalancing{Enabled: aws.Bool(true)}}
		for want, in := range map[string]*awseks.UpdateClusterConfigInput{
			"are all either fully enabled or fully disabled":                   {ComputeConfig: compute(true, nil), StorageConfig: storage},
			"requires the authentication mode API or API_AND_CONFIG_MAP":       {ComputeConfig: compute(true, nil), StorageConfig: storage, KubernetesNetworkConfig: network},
			"cannot be specified when computeConfig is disabled":               {ComputeConfig: compute(false, nil, "system")},
			"Cluster is already at the desired configuration of EKS Auto Mode": {ComputeConfig: compute(false, nil)},
		} {
			in.Name = aws.String("default_eks")
			_, err := c.UpdateClusterConfig(t.Context(), in)
			require.ErrorContains(t, err, want)
		}
	})
}
