package kubesim

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// With a wrong variable, the containers of aws-node end, and the cluster has no pod network.
func TestVariablesOfTheVPCCNI(t *testing.T) {
	for _, tt := range []struct {
		six         bool
		name, value string
		starts      bool
	}{
		{false, "ENABLE_IPv6", "true", false},
		{false, "ENABLE_IPv6", "false", true},
		{true, "ENABLE_IPv6", "no", false},
		{true, "ENABLE_IPv6", "1", true},
		{false, "ENABLE_IPv4", "false", false},
		{true, "ENABLE_PREFIX_DELEGATION", "false", false},
		{false, "ENABLE_PREFIX_DELEGATION", "true", true},
		{true, "WARM_PREFIX_TARGET", "0", false},
		{false, "WARM_PREFIX_TARGET", "0", true},
		{true, "AWS_VPC_K8S_CNI_CUSTOM_NETWORK_CFG", "true", false},
		{false, "AWS_VPC_K8S_CNI_VETHPREFIX", "eth", false},
		{false, "AWS_VPC_K8S_CNI_VETHPREFIX", "pods", true},
		{false, "AWS_VPC_ENI_MTU", "10000", false},
		{true, "POD_MTU", "1000", false},
		{false, "POD_MTU", "1000", true},
		{false, "NETWORK_POLICY_ENFORCING_MODE", "Strict", true},
		{false, "NETWORK_POLICY_ENFORCING_MODE", "off", false},
		{false, "IP_COOLDOWN_PERIOD", "30s", false},
		{false, "POD_SECURITY_GROUP_ENFORCING_MODE", "lax", true}, // ENABLE_POD_ENI is off
		{false, "AWS_VPC_K8S_PLUGIN_LOG_FILE", "stdout", false},
		{false, "HOST_CNI_CONFDIR_PATH", "/etc/cni/net.d", false},
	} {
		c := New("v1.34.0", time.Now())
		c.EKS, c.IPv6 = "demo", tt.six
		c.Put(time.Now(), Object{
			"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": Object{"name": "aws-node", "namespace": "kube-system"},
			"spec": Object{"template": Object{"spec": Object{"containers": []any{Object{"env": []any{Object{"name": tt.name, "value": tt.value}}}}}}},
		})
		assert.Equal(t, tt.starts, c.Network(), "%v", tt)
	}
}
