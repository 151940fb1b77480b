package kubernetes

import (
	"strings"
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
		{"kube-apiserver", "audit-log-maxage", "0", "-1"},
		{"kube-apiserver", "goaway-chance", "0.02", "0.5"},
		{"kube-apiserver", "request-timeout", "2m", "-5s"},
		{"kube-apiserver", "secure-port", "6443", "7443"},
		{"kube-apiserver", "anonymous-auth", "true", "false"},
		{"kube-apiserver", "service-account-issuer", "https://kubernetes.default.svc.cluster.local", "http://x y"},
		{"kube-controller-manager", "leader-elect-lease-duration", "60s", "5s"},
		{"kube-scheduler", "leader-elect-retry-period", "3s", "9s"},
		{"kube-scheduler", "secure-port", "10259", "0"},
		{"kubelet", "image-gc-low-threshold", "70", "90"},
		{"kubelet", "port", "10250", "70000"},
		{"kubelet", "kube-api-qps", "50", "-1"},
		{"kubelet", "cpu-cfs-quota-period", "100ms", "50ms"},
		{"kubelet", "enforce-node-allocatable", "pods", "pods,kube-reserved"},
		{"kubelet", "enforce-node-allocatable", "none", "pods,pods"},
		{"kubelet", "cgroups-per-qos", "true", "false"},
		{"kubelet", "memory-manager-policy", "None", "Static"},
		{"kube-apiserver", "storage-backend", "etcd3", "etcd2"},
		{"kube-apiserver", "cors-allowed-origins", "//localhost(:|$),^https://a.example$", "example.com"},
		{"kube-apiserver", "strict-transport-security-directives", "max-age=31536000,includeSubDomains", "always"},
		{"kube-apiserver", "etcd-servers-overrides", "/events#https://10.0.0.1:2379;https://10.0.0.2:2379", "events"},
		{"kube-apiserver", "watch-cache-sizes", "secrets#100,pods#1000", "secrets"},
		{"kube-apiserver", "service-account-jwks-uri", "https://a.example/keys", "http://a.example/keys"},
		{"kube-apiserver", "service-account-max-token-expiration", "24h", "1m"},
		{"kube-apiserver", "runtime-config", "apps/v1=true,apps/v1/deployments=false", "apps=true"},
		{"kube-apiserver", "authorization-mode", "Node,RBAC", "Node,RBAC,Webhook"},
		{"kube-apiserver", "authorization-mode", "RBAC", "RBAC,ABAC"},
		{"kube-controller-manager", "cidr-allocator-type", "RangeAllocator", "CloudAllocator"},
		{"kube-controller-manager", "concurrent-job-syncs", "1", "0"},
		{"kube-controller-manager", "max-endpoints-per-slice", "1000", "1001"},
		{"kube-controller-manager", "leader-elect-resource-lock", "leases", "endpoints"},
		{"kubelet", "healthz-bind-address", "127.0.0.1", "localhost"},
		{"kubelet", "cpu-manager-policy-options", "full-pcpus-only=true", "full-pcpus-only"},
		{"kube-apiserver", "tls-sni-cert-key", "/a.crt,/a.key:*.example.com", "/a.crt"},
		{"kube-apiserver", "requestheader-uid-headers", "X-Remote-Uid", "X-Uid"},
		{"kube-scheduler", "log-text-info-buffer-size", "64Ki", "64 KB"},
		{"kube-apiserver", "runtime-config", "storagemigration.k8s.io/v1alpha1=true", "nope/v1=true"},
		{"kube-apiserver", "advertise-address", "10.0.0.1", "api"},
		{"kube-apiserver", "vmodule", "server=3,watch*=4", "server"},
		{"kube-apiserver", "show-hidden-metrics-for-version", "1.33", "1.32"},
		{"kube-apiserver", "emulated-version", "kube=1.33", "1.30"},
		{"kube-apiserver", "audit-webhook-version", "audit.k8s.io/v1", "audit.k8s.io/v1beta1"},
		{"kube-apiserver", "enable-admission-plugins", "AlwaysPullImages", "ImagePolicyWebhook"},
		{"kube-controller-manager", "cluster-cidr", "192.168.0.0/16,fd00::/48", "192.168.0.0"},
		{"kubelet", "allowed-unsafe-sysctls", "kernel.shm*,net.core.somaxconn", "kernel/*x"},
	} {
		args := func(value string) any { return []any{map[string]any{"name": c.name, "value": value}} }
		assert.Empty(t, componentRefuses(c.component, "v1.34.2", args(c.good)), c.name)
		assert.NotEmpty(t, componentRefuses(c.component, "v1.34.2", args(c.bad)), c.name)
	}
}

// The API server does not start with flags that contradict each other.
func TestServerTogether(t *testing.T) {
	for _, tt := range []struct{ args, want string }{
		{"max-requests-inflight=0", ""},
		{"max-requests-inflight=0 max-mutating-requests-inflight=0", "must add up to something positive"},
		{"max-requests-inflight=0 max-mutating-requests-inflight=0 enable-priority-and-fairness=false", ""},
		{"encryption-provider-config-automatic-reload=true", "must be set with --encryption-provider-config"},
		{"audit-log-path=- audit-log-batch-buffer-size=0", ""},
		{"audit-log-path=- audit-log-mode=batch audit-log-batch-buffer-size=0", "buffer size"},
		{"audit-log-path=- audit-log-mode=batch audit-log-batch-throttle-qps=0", ""},
		{"audit-webhook-config-file=/a audit-webhook-batch-throttle-qps=0", "throttle"},
		{"audit-webhook-config-file=/a audit-webhook-mode=blocking audit-webhook-batch-max-size=0", ""},
		{"audit-log-path=- audit-log-truncate-max-event-size=0", "max event size"},
		{"audit-log-path=- audit-log-truncate-max-batch-size=1000", "max batch size"},
	} {
		given := map[string]string{}
		for pair := range strings.FieldsSeq(tt.args) {
			name, value, _ := strings.Cut(pair, "=")
			given[name] = value
		}
		if why := serverTogether(given); tt.want == "" {
			assert.Empty(t, why, tt.args)
		} else {
			assert.Contains(t, why, tt.want, tt.args)
		}
	}
}

// A component does not find a file that its container does not have.
func TestFilesOfArguments(t *testing.T) {
	args := []any{map[string]any{"name": "audit-policy-file", "value": "/etc/kubernetes/audit/policy.yaml"}}
	assert.Empty(
		t,
		fileRefused("kube-apiserver", "/etc/kubernetes/pki", args, []hostVolume{{HostPath: "/etc/kubernetes/audit", MountPath: "/etc/kubernetes/audit"}}),
	)
	assert.Contains(t, fileRefused("kube-apiserver", "/etc/kubernetes/pki", args, nil), "no such file")
}

// The kubelet runs no static pod that is not valid.
func TestStaticPods(t *testing.T) {
	audit := hostVolume{"audit", "/etc/audit", "/etc/audit", "DirectoryOrCreate"}
	assert.Empty(
		t,
		podRefused("kube-apiserver", "/etc/kubernetes/pki", []hostVolume{audit, audit}, []variable{{Name: "HTTPS_PROXY"}}),
		"kubeadm keeps one of each name",
	)
	for _, v := range []hostVolume{
		{"other", "/etc/x", "/etc/audit", ""},
		{"My_Volume", "/etc/x", "/etc/x", ""},
		{"x", "/etc/x", "/etc/x", "Folder"},
		{"x", "/etc/x", "/a:b", ""},
		{"x", "/etc/../x", "/etc/x", ""},
		{"x", "/etc/x", "/etc/ssl/certs", ""},
		{"k8s-certs", "/etc/x", "/etc/x", ""},
	} {
		assert.NotEmpty(t, podRefused("kube-apiserver", "/etc/kubernetes/pki", []hostVolume{audit, v}, nil), v)
	}
	for _, v := range []variable{
		{Name: "A=B"},
		{Name: "A", Value: "b", ValueFrom: map[string]map[string]any{"fieldRef": {"fieldPath": "metadata.name"}}},
		{Name: "A", ValueFrom: map[string]map[string]any{"fieldRef": {"fieldPath": "metadata.foo"}}},
		{Name: "A", ValueFrom: map[string]map[string]any{"secretKeyRef": {"name": "a", "key": "b"}}},
		{Name: "A", ValueFrom: map[string]map[string]any{"resourceFieldRef": {"resource": "limits.gpu"}}},
	} {
		assert.NotEmpty(t, podRefused("kube-scheduler", "/etc/kubernetes/pki", nil, []variable{v}))
	}
	assert.Empty(
		t,
		podRefused("etcd", "/etc/kubernetes/pki", nil, []variable{{Name: "A", ValueFrom: map[string]map[string]any{"fieldRef": {"fieldPath": "status.podIP"}}}}),
	)
	assert.NotEmpty(t, etcdVariablesRefused([]variable{{Name: "ETCD_QUOTA_BACKEND_BYTES", Value: "8GB"}}, nil))
	assert.Empty(
		t,
		etcdVariablesRefused([]variable{{Name: "ETCD_QUOTA_BACKEND_BYTES", Value: "8GB"}}, map[string]any{"quota-backend-bytes": "1"}),
		"the argument wins",
	)
}

// kubeadm applies patches by the names of their files, and the kubelet reads what comes out.
func TestPatchesOfKubeadm(t *testing.T) {
	refused := func(name, text string) string {
		return patchesRefused(
			"/etc/kubernetes/patches",
			map[string]string{"/etc/kubernetes/patches/" + name: text},
			"v1.34.2",
			machine{true, func(string) bool { return false }},
		)
	}
	for name, text := range map[string]string{
		"kubeletconfiguration0+merge.yaml": "maxPods: 50\nevictionHard: {memory.available: 5%}\nunknown: 1\n", "kubelet0+merge.yaml": "a: [",
		"kubeletconfiguration.yaml": "featureGates: {SidecarContainers: true}", "kube-apiserver+json.yaml": "- {op: add, path: /a, value: b}", "notes.txt": "a: [",
		"etcd+json.yaml":      "- {op: replace, path: /spec/containers/0/resources/requests/memory, value: 1Gi}\n- {op: add, path: /spec/dnsConfig, value: {}}\n- {op: replace, path: /spec/dnsConfig, value: {}}",
		"kube-scheduler.yaml": "spec: {hostNetwork: true, containers: [{name: kube-scheduler, resources: {}}, {name: side, image: a}]}",
	} {
		assert.Empty(t, refused(name, text), name)
	}
	for _, text := range []string{
		"maxPods: many", "maxPods: -1", "evictionHard: {memory.free: 5%}", "cgroupDriver: cgroup2", "featureGates: {NoSuchGate: true}", "a: [", "- a",
		"imageGCHighThresholdPercent: 60", "shutdownGracePeriodCriticalPods: 10s", "maxParallelImagePulls: 5", "systemReserved: {cpu: lots}",
		"registerNode: false", "staticPodPath: /manifests", "providerID: none", "address: 10.0.0.9", "healthzPort: 10200", "readOnlyPort: 10250", "maxPods: 0",
	} {
		assert.NotEmpty(t, refused("kubeletconfiguration0+merge.yaml", text), text)
	}
	for name, text := range map[string]string{
		"etcd+json.yaml": "- {op: replace, path: /spec/nope/x, value: 1}", "kube-apiserver+json.yaml": "- {op: remove, path: /spec/hostNetwork}",
		"kube-apiserver1+json.yaml": "- {op: replace, path: /spec/containers/0/resources/requests/memory, value: 1Gi}",
		"kube-apiserver2+json.yaml": "- {op: put, path: /spec/a, value: 1Gi}", "kube-apiserver3+json.yaml": "- {op: add, path: /spec/a/b, value: 1Gi}",
		"kube-apiserver.yaml": "spec: {hostNetwork: false}", "kube-scheduler.yaml": "spec: {containers: [{name: scheduler, resources: {}}]}",
		"kube-scheduler+merge.yaml": "spec: {containers: [{name: kube-scheduler, resources: {}}]}", "etcd.yaml": "spec: {containers: [{resources: {}}]}",
	} {
		assert.NotEmpty(t, refused(name, text), name)
	}
	assert.NotEmpty(t, refused("kubeletconfiguration0+replace.yaml", "maxPods: 50"))
	assert.NotEmpty(t, refused("kubeletconfiguration0+json.yaml", "maxPods: 50"))
}

// The etcd of kubeadm refuses flags and values as the real one does.
func TestFlagsOfEtcd(t *testing.T) {
	for _, c := range []struct{ version, name, good, bad string }{
		{"v1.34.2", "heartbeat-interval", "200", "300"}, // the election takes 1,000
		{"v1.34.2", "election-timeout", "5000", "60000"},
		{"v1.34.2", "auto-compaction-mode", "revision", "daily"},
		{"v1.34.2", "auto-compaction-retention", "8h", "1 hour"},
		{"v1.34.2", "log-level", "warn", "verbose"},
		{"v1.34.2", "logger", "zap", "capnslog"},
		{"v1.34.2", "listen-metrics-urls", "http://0.0.0.0:2381", "0.0.0.0:2381"},
		{"v1.34.2", "listen-metrics-urls", "http://localhost:2381", "http://etcd.example.com:2381"},
		{"v1.34.2", "tls-min-version", "TLS1.3", "TLS1.1"},
		{"v1.34.2", "cipher-suites", "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", "TLS_FOO"},
		{"v1.34.2", "cipher-suites", "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305,TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305", "TLS_ECDHE_FOO_WITH_CHACHA20_POLY1305"},
		{"v1.34.2", "trusted-ca-file", "/etc/kubernetes/pki/etcd/ca.crt", "/etc/ssl/ca.crt"},
	} {
		refused := func(value string) string {
			return etcdRefused([]any{map[string]any{"name": c.name, "value": value}}, "", c.version, "/etc/kubernetes/pki", "/var/lib/etcd")
		}
		assert.Empty(t, refused(c.good), c.name)
		assert.NotEmpty(t, refused(c.bad), c.name)
	}
	for _, c := range []struct {
		tag, version, flag string
		refuses            bool
	}{
		{"", "v1.33.1", "enable-v2", false},
		{"", "v1.34.2", "enable-v2", true},
		{"3.5.21-0", "v1.34.2", "enable-v2", false},
		{"", "v1.33.1", "compact-hash-check-time", true},
		{"3.6.4-0", "v1.33.1", "compact-hash-check-time", false},
	} {
		why := etcdRefused([]any{map[string]any{"name": c.flag, "value": "true"}}, c.tag, c.version, "/etc/kubernetes/pki", "/var/lib/etcd")
		assert.Equal(t, c.refuses, why != "", "%s in %s: %s", c.flag, c.version, why)
	}
}
