package rules_test

import (
	"strings"
	"testing"

	"github.com/clusterawsadm/clusterawsadm/internal/enginetest/manifests"
	"github.com/clusterawsadm/clusterawsadm/pkg/input"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// With some values of its variables, the VPC CNI does not start. They may be in the control plane and in the configuration of the add-on.
func TestVariablesOfTheVPCCNI(t *testing.T) {
	const plane, six, four = "  version: v1.34\n", "  network: {vpc: {ipv6: {}}}\n", ""
	env := func(name, value string) string {
		return "  vpcCni: {env: [{name: " + name + ", value: '" + value + "'}]}\n"
	}
	addon := func(configuration string) string {
		return "  addons: [{name: vpc-cni, version: v1.20.4-eksbuild.1, configuration: '" + configuration + "'}, {name: coredns}, {name: kube-proxy}]\n"
	}
	for _, tt := range []struct{ family, added, problem, warning string }{
		{four, env("ENABLE_IPv6", "true"), `spec.vpcCni.env[0]: ENABLE_IPv6 is "true": pods of the cluster have IPv4 addresses, and the VPC CNI does not start — remove it: EKS sets it`, ""},
		{four, env("ENABLE_IPv6", "false"), "", ""},
		{four, env("ENABLE_IPv4", "off"), `ENABLE_IPv4 is "off": pods of the cluster have IPv4 addresses`, ""},
		{six, env("ENABLE_IPv6", "false"), "pods of the cluster have IPv6 addresses", ""},
		{six, env("ENABLE_PREFIX_DELEGATION", "false"), "pods have IPv6 addresses from prefixes only", ""},
		{six, env("AWS_VPC_K8S_CNI_CUSTOM_NETWORK_CFG", "true"), "custom networking is for IPv4 clusters", ""},
		{six, env("DISABLE_POD_V6", "true"), "pods of the cluster have IPv6 addresses only", ""},
		{four, env("DISABLE_POD_V6", "true"), "", ""},
		{four, addon(`{"env":{"ENABLE_IPv6":"true"}}`), "spec.addons[0].configuration: ENABLE_IPv6", ""},
		{four, addon("env: {AWS_VPC_K8S_CNI_VETHPREFIX: vlan}"), "it has at most 4 characters, and is none of eth, lo and vlan", ""},
		{four, env("AWS_VPC_K8S_CNI_VETHPREFIX", "veths"), "it has at most 4 characters", ""},
		{four, env("AWS_VPC_ENI_MTU", "9002"), "use a number from 576 to 9001", ""},
		{four, env("POD_MTU", "1300"), "", ""},
		{six, env("POD_MTU", "1279"), "use a number from 1280 to 9001", ""},
		{four, env("NETWORK_POLICY_ENFORCING_MODE", "loose"), "use standard, strict or none", ""},
		{four, env("IP_COOLDOWN_PERIOD", "30s"), "it is a number of seconds", ""},
		{four, env("POD_SECURITY_GROUP_ENFORCING_MODE", "loose"), "", ""},
		{four, addon(`{"env":{"ENABLE_POD_ENI":"true","POD_SECURITY_GROUP_ENFORCING_MODE":"loose"}}`), "use strict or standard", ""},
		{four, addon(`{"env":{"ENABLE_PREFIX_DELEGATION":"true","WARM_PREFIX_TARGET":"0"}}`), "does not start with prefixes", ""},
		{four, addon(`{"env":{"ENABLE_PREFIX_DELEGATION":"true","WARM_PREFIX_TARGET":"0","WARM_IP_TARGET":"5"}}`), "", ""},
		{four, env("AWS_VPC_K8S_PLUGIN_LOG_FILE", "stdout"), "use stderr", ""},
		{four, env("HOST_CNI_CONFDIR_PATH", "/etc/cni/net.d"), "the DaemonSet aws-node mounts /host/etc/cni/net.d", ""},
		{four, env("AWS_VPC_K8S_CNI_CUSTOM_NETWORK_CFG", "true"), "", "without an ENIConfig for each zone, pods get no addresses"},
		{four, env("AWS_VPC_K8S_CNI_CUSTOM_NETWORK_CFG", "true") + "  secondaryCidrBlock: 100.64.0.0/16\n", "", ""},
	} {
		t.Run(tt.added, func(t *testing.T) {
			text := manifests.Edit(t, manifests.Read(t, "../../../../configs/eks.yaml"), plane, plane+tt.family+tt.added)
			c, err := manifests.Load(t, text, input.LoadOptions{})
			if tt.problem != "" {
				require.ErrorContains(t, err, tt.problem)
				return
			}
			require.NoError(t, err)
			warnings := strings.Join(manifests.Warnings(c), "\n")
			assert.Contains(t, warnings, tt.warning)
			if tt.warning == "" {
				assert.NotContains(t, warnings, "ENIConfig for each")
			}
		})
	}
}
