package manifest_test

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest/loader"
	"github.com/clusterawsadm/clusterawsadm/pkg/input"
)

// A message is about the field whose value it quotes, or that it names.
func TestLocate(t *testing.T) {
	raw, err := os.ReadFile("../../../configs/quickstart.yaml")
	require.NoError(t, err)
	const machine, volume = "      instanceType: t3.large\n", "      rootVolume:\n        size: 40\n        type: gp3\n        encrypted: true\n"
	text := strings.Replace(
		strings.Replace(string(raw), volume, "", 1),
		machine,
		machine+"      rootVolume: {size: 80, type: gp3, iops: 15999}\n      additionalSecurityGroups: [{id: sg-0123456789abcdef0}, {id: sg-0123456789abcdef0}]\n",
		1,
	)
	text = strings.Replace(text, "  region: us-east-1\n", "  region: us-east-1\n  network:\n    vpc: {cidrBlock: 10.7.0.0/16}\n    cni:\n      cniIngressRules:\n"+
		"      - {description: peers, protocol: tcp, fromPort: 179, toPort: 179}\n      - {description: bgp, protocol: udp, fromPort: 4789, toPort: 65535}\n", 1)
	m, err := loader.Load([]input.Source{{Name: "q.yaml", Data: []byte(text)}}, input.LoadOptions{})
	require.NoError(t, err)
	machines, network := m.Origin("KubeadmControlPlane/quickstart-control-plane", "spec"), m.Origin("AWSCluster/quickstart", "spec.network")
	const template = "AWSMachineTemplate/quickstart-control-plane spec.template.spec."
	for _, c := range []struct{ origin, message, want string }{
		{machines, "Invalid volume type: gp3", template + "rootVolume.type"},
		{machines, "Volume iops of 15999 is too high; maximum is 16000.", template + "rootVolume.iops"},
		{machines, "The instance type is not supported", template + "instanceType"},
		{machines, "Your requested instance type (t3.large) is not supported in your requested Availability Zone (us-east-1a).", template + "instanceType"},
		{machines, "The security group 'sg-0123456789abcdef0' does not exist", template + "additionalSecurityGroups"},
		{m.Origin("KubeadmControlPlane/quickstart-control-plane", "spec"), "version: EKS does not offer Kubernetes 1.34: use v1.33", "KubeadmControlPlane/quickstart-control-plane spec.version"},
		{machines, "You are not lucky in us-east-1", "spec"},
		{machines, "Volume of size 8GB is smaller than snapshot", "spec"},
		{network, "The CIDR '10.7.0.0/16' is invalid", "AWSCluster/quickstart spec.network.vpc.cidrBlock"},
		{network, "The CIDR '10.7.0.0' is invalid", "AWSCluster/quickstart spec.network"},
		{network, "TCP/UDP port (65535) out of range", "AWSCluster/quickstart spec.network.cni.cniIngressRules[1].toPort"},
		{"no longer in the manifest", "Invalid volume type: gp3", "no longer in the manifest"},
	} {
		assert.Regexp(t, `(^|\s)`+strings.NewReplacer("[", `\[`, "]", `\]`).Replace(c.want)+"$", m.Locate(c.origin, c.message), c.message)
	}
}
