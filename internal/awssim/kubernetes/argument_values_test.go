package kubernetes

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// Components refuse values as the real ones do: a line for each rule, with a value that is accepted and one that is not.
func TestValuesOfArguments(t *testing.T) {
	for _, c := range []struct{ component, name, good, bad string }{
		{"kube-apiserver", "tls-min-version", "VersionTLS12", "TLS12"},
		{"kube-apiserver", "tls-cipher-suites", "TLS_AES_128_GCM_SHA256,TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", "TLS_FOO"},
		{"kube-apiserver", "authorization-mode", "Node,RBAC", "Node,RBACC"},
		{"kube-apiserver", "authorization-mode", "RBAC", "RBAC,RBAC"},
		{"kube-apiserver", "service-node-port-range", "30000-32767", "40000-30000"},
		{"kube-apiserver", "runtime-config", "api/all=true,batch/v2alpha1", "api/all=yes"},
		{"kube-controller-manager", "controllers", "*,-nodeipam,bootstrapsigner,token-cleaner-controller", "*,nosuchcontroller"},
		{"kube-scheduler", "bind-address", "0.0.0.0", "localhost"},
		{"kubelet", "cgroup-driver", "systemd", "cgroup"},
		{"kubelet", "eviction-hard", "memory.available<100Mi,nodefs.available<10%", "memory.free<100Mi"},
		{"kubelet", "system-reserved", "cpu=100m,memory=1Gi", "cpu=lots"},
		{"kubelet", "node-ip", "10.0.0.1,fd00::1", "10.0.0"},
		{"kubelet", "reserved-cpus", "0-1,4", "one"},
	} {
		args := func(value string) any { return []any{map[string]any{"name": c.name, "value": value}} }
		assert.Empty(t, componentRefuses(c.component, "v1.34.2", args(c.good)), c.name)
		assert.NotEmpty(t, componentRefuses(c.component, "v1.34.2", args(c.bad)), c.name)
	}
}

// A component does not find a file that its container does not have.
func TestFilesOfArguments(t *testing.T) {
	args := []any{map[string]any{"name": "audit-policy-file", "value": "/etc/kubernetes/audit/policy.yaml"}}
	assert.Empty(t, fileRefused("kube-apiserver", "/etc/kubernetes/pki", args, []volume{{"/etc/kubernetes/audit", "/etc/kubernetes/audit"}}))
	assert.Contains(t, fileRefused("kube-apiserver", "/etc/kubernetes/pki", args, nil), "no such file")
}
