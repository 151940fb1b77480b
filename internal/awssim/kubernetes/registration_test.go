package kubernetes

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim/ec2"
)

// A kubelet registers its Node with labels and taints, and does not start with labels that it may
// not set.
func TestRegistration(t *testing.T) {
	for _, x := range []struct {
		name, text, fails string
		want              ec2.Boot
	}{
		{"none", `{}`, "", ec2.Boot{}},
		{"v1beta4", `{kubeletExtraArgs: [{name: cloud-provider, value: external}, {name: node-labels, value: "a=b,node.kubernetes.io/c="}]}`, "", ec2.Boot{External: true, Labels: map[string]string{"a": "b", "node.kubernetes.io/c": ""}}},
		{"v1beta3", `{kubeletExtraArgs: {node-labels: a=b}, taints: []}`, "", ec2.Boot{Labels: map[string]string{"a": "b"}, Taints: []any{}}},
		{"taints", `{taints: [{key: a, effect: NoSchedule}]}`, "", ec2.Boot{Taints: []any{map[string]any{"key": "a", "effect": "NoSchedule"}}}},
		{"restricted", `{kubeletExtraArgs: {node-labels: node-restriction.kubernetes.io/a=b}}`, "must begin with an allowed prefix", ec2.Boot{}},
		{"role", `{kubeletExtraArgs: {node-labels: node-role.kubernetes.io/worker=}}`, "must begin with an allowed prefix", ec2.Boot{}},
		{
			"taints as an argument", `{taints: [{key: c, effect: NoSchedule}], kubeletExtraArgs: {register-with-taints: "a=b:NoSchedule,d:NoExecute"}}`, "",
			ec2.Boot{Taints: []any{map[string]any{"key": "a", "value": "b", "effect": "NoSchedule"}, map[string]any{"key": "d", "effect": "NoExecute"}}},
		},
		{"one taint twice", `{kubeletExtraArgs: {register-with-taints: "a=b:NoSchedule,a=c:NoSchedule"}}`, "taints must be unique", ec2.Boot{}},
		{"no taints", `{kubeletExtraArgs: {register-with-taints: "a=b"}}`, "invalid taint spec", ec2.Boot{}},
	} {
		t.Run(x.name, func(t *testing.T) {
			var r nodeRegistration
			require.NoError(t, yaml.Unmarshal([]byte(x.text), &r))
			var b ec2.Boot
			if err := r.apply(&b); x.fails != "" {
				require.ErrorContains(t, err, x.fails)
				return
			}
			assert.Equal(t, x.want, b)
		})
	}
}

// kubeadm refuses a name that is not a DNS name, unless a command has replaced it.
func TestNameRefused(t *testing.T) {
	name := func(name, command string) string {
		return nodeRegistration{Name: name}.nameRefused(map[string]string{bootText: "runcmd: ['" + command + "', kubeadm init]"})
	}
	assert.Empty(t, name("", "true"))
	assert.Empty(t, name("IP-10-0-0-1.ec2.internal", "true"))
	assert.Contains(t, name("${COREOS_EC2_HOSTNAME}", "true"), "RFC 1123")
	assert.Contains(t, name("a_b", "true"), "RFC 1123")
	assert.Empty(t, name("${HOST}", "sed -i s/x/y/ /run/kubeadm/kubeadm.yaml"))
}
