package lab

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// poolGrows has the controllers add a machine to a pool that was handed over, after the
// bootstrap token has gone with which its machines joined: they make another token, and with
// it a version of the launch template, and replace no machine.
func (m *Management) poolGrows(t *testing.T, u *Laptop) {
	t.Helper()
	const pool = "machine-pool-mp-0"
	token := func() string {
		return m.Kubectl(t, "get", "kubeadmconfig", pool, "-o", "jsonpath={.spec.joinConfiguration.discovery.bootstrapToken.token}")
	}
	before, machines := token(), u.pool(t)
	require.Len(t, machines, 2)
	m.Requests.Reset()
	u.Kubectl(t, "delete", "secrets", "-n", "kube-system", "--field-selector", "type=bootstrap.kubernetes.io/token")
	m.Restart(t)
	m.Until(t, "another token", patience, func() bool { return token() != before })
	m.Kubectl(t, "scale", "machinepool", pool, "--replicas=3")
	m.Until(t, "the pool has a third machine", patience, func() bool { return len(u.pool(t)) == 3 })
	u.settled(t, 1, 3)
	m.Settled(t, "machine-pool", patience)
	assert.Subset(t, u.pool(t), machines, "none is replaced")
	assert.Equal(t, 1, m.Requests.count("CreateLaunchTemplateVersion"))
	assert.Zero(t, m.Requests.count("StartInstanceRefresh"))
	assert.Equal(t, 1, m.Requests.count("UpdateAutoScalingGroup"))
	t.Log("proved: a machine that is added to a pool after its handover joins, also when the token in its user data has gone; no machine is replaced")
}

// pool returns the IDs of the instances of the pool.
func (u *Laptop) pool(t *testing.T) (ids []string) {
	t.Helper()
	instances, err := u.account.Instances(t.Context())
	require.NoError(t, err)
	for _, i := range instances {
		if i.State == "running" && i.Tag("aws:autoscaling:groupName") == "machine-pool-mp-0" {
			ids = append(ids, i.ID)
		}
	}
	return ids
}
