package reconcile_test

import (
	"testing"

	"github.com/clusterawsadm/clusterawsadm/pkg/plan"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/configs"
	"github.com/clusterawsadm/clusterawsadm/pkg/reconcile"
)

func TestAreaOf(t *testing.T) {
	for id, want := range map[plan.ID]reconcile.Area{
		"vpc": reconcile.AreaNetwork, "network-interfaces": reconcile.AreaNetwork, "bastion": reconcile.AreaNetwork,
		"security-group/controlplane": reconcile.AreaSecurity, "certificates": reconcile.AreaSecurity, "access-entry/role/a": reconcile.AreaSecurity,
		"image/ubuntu-24.04/1.34.2/x86_64": reconcile.AreaPrerequisites, "instance-profile/nodes": reconcile.AreaPrerequisites, "role/nodes": reconcile.AreaPrerequisites,
		"targets/apiserver": reconcile.AreaLoadBalancer, "classic-load-balancer": reconcile.AreaLoadBalancer,
		"init-marker": reconcile.AreaControlPlane, "eks-cluster": reconcile.AreaControlPlane,
		"machine/demo-control-plane/0": reconcile.AreaControlPlane, "machine/md-0/17": reconcile.AreaWorkers,
		"retired/machine/demo-control-plane/0/i-1": reconcile.AreaControlPlane, "retired/auto-scaling-group/a": reconcile.AreaWorkers,
		"auto-scaling-group/pool": reconcile.AreaWorkers, "fargate-profile/a": reconcile.AreaWorkers,
		"api-server": reconcile.AreaKubernetes, "node/md-0/1": reconcile.AreaKubernetes, "volume/vol-1": reconcile.AreaKubernetes,
		"whatever": reconcile.AreaOther,
	} {
		assert.Equal(t, want, reconcile.AreaOf(id, ""), id)
	}
	assert.Equal(t, reconcile.AreaControlPlane, reconcile.AreaOf("machine/cp/0", "a.yaml:3 KubeadmControlPlane/cp spec"))
	assert.Equal(t, reconcile.AreaWorkers, reconcile.AreaOf("machine/control-plane-helpers/0", "a.yaml:3 MachineDeployment/control-plane-helpers spec"))
}

// Every resource of every example has an area.
func TestEveryResourceHasAnArea(t *testing.T) {
	files, err := configs.Manifests.ReadDir(".")
	require.NoError(t, err)
	for _, file := range files {
		m, err := reconcile.LoadFile("../../configs/"+file.Name(), reconcile.LoadOptions{})
		require.NoError(t, err, file.Name())
		g, err := reconcile.Open(m, reconcile.Target{}).Graph()
		require.NoError(t, err, file.Name())
		for _, r := range g {
			assert.NotEqual(t, reconcile.AreaOther, reconcile.AreaOf(r.ID, r.Origin), "%s: %s", file.Name(), r.ID)
		}
	}
}
