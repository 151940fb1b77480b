package reconcile_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/configs"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
	"github.com/clusterawsadm/clusterawsadm/pkg/input"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
	"github.com/clusterawsadm/clusterawsadm/pkg/reconcile"
)

func TestAreaOf(t *testing.T) {
	for id, want := range map[plan.ID]plan.Area{
		"vpc": plan.AreaNetwork, "network-interfaces": plan.AreaNetwork, "bastion": plan.AreaNetwork,
		"security-group/controlplane": plan.AreaSecurity, "certificates": plan.AreaSecurity, "access-entry/role/a": plan.AreaSecurity,
		"image/ubuntu-24.04/1.34.2/x86_64": plan.AreaPrerequisites, "instance-profile/nodes": plan.AreaPrerequisites, "role/nodes": plan.AreaPrerequisites,
		"targets/apiserver": plan.AreaLoadBalancer, "classic-load-balancer": plan.AreaLoadBalancer,
		"init-marker": plan.AreaControlPlane, "eks-cluster": plan.AreaControlPlane,
		"machine/demo-control-plane/0": plan.AreaControlPlane, "machine/md-0/17": plan.AreaWorkers,
		"retired/machine/demo-control-plane/0/i-1": plan.AreaControlPlane, "retired/auto-scaling-group/a": plan.AreaWorkers,
		"auto-scaling-group/pool": plan.AreaWorkers, "fargate-profile/a": plan.AreaWorkers,
		"api-server": plan.AreaKubernetes, "node/md-0/1": plan.AreaKubernetes, "volume/vol-1": plan.AreaKubernetes,
		"whatever": plan.AreaOther,
	} {
		assert.Equal(t, want, reconcile.AreaOf(id, ""), id)
	}
	assert.Equal(t, plan.AreaControlPlane, reconcile.AreaOf("machine/cp/0", "a.yaml:3 KubeadmControlPlane/cp spec"))
	assert.Equal(t, plan.AreaWorkers, reconcile.AreaOf("machine/control-plane-helpers/0", "a.yaml:3 MachineDeployment/control-plane-helpers spec"))
}

// Every resource of every example has an area.
func TestEveryResourceHasAnArea(t *testing.T) {
	files, err := configs.Manifests.ReadDir(".")
	require.NoError(t, err)
	for _, file := range files {
		m, err := reconcile.LoadFile("../../configs/"+file.Name(), input.LoadOptions{})
		require.NoError(t, err, file.Name())
		g, err := reconcile.Open(m, cluster.Target{}).Graph()
		require.NoError(t, err, file.Name())
		for _, r := range g {
			assert.NotEqual(t, plan.AreaOther, reconcile.AreaOf(r.ID, r.Origin), "%s: %s", file.Name(), r.ID)
		}
	}
}
