package kubernetes

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
)

// Arguments that take the place of kubeadm's: a line for each rule, with a value with which a cluster comes up and one with which it does
// not.
func TestReplacedArguments(t *testing.T) {
	given := func(name, value string) any { return []any{map[string]any{"name": name, "value": value}} }
	server := func(name, value string) string { return replacedServer(given(name, value), "10.96.0.0/12", true) }
	scheduler := func(name, value string) string { return boundElsewhere("kube-scheduler", given(name, value)) }
	etcd := func(name, value string) string { return replacedEtcd(name, value, "/var/lib/etcd") }
	kubelet := func(name, value string) string {
		return replacedKubelet(given(name, value), "a", machine{true, func(address string) bool { return address == "10.0.0.5" }})
	}
	node := func(form string) func(name, value string) string {
		return func(name, value string) string {
			config := fmt.Sprintf("spec: {kubelet: {"+form+"}}", name, value)
			why, _ := nodeConfigRefused([]byte(config), "1.34", machine{has: func(string) bool { return false }})
			return why
		}
	}
	setting, flag := node("config: {%s: %s}"), node("flags: ['--%s=%s']")
	joins := func(section string) func(name, value string) string {
		return func(name, value string) string {
			return joinRefused(section+": {extraArgs: [{name: "+name+", value: '"+value+"'}]}", true)
		}
	}
	members := func(name, value string) string {
		return joinRefused("etcd: {local: {extraArgs: [{name: "+name+", value: '"+value+"'}]}}", true)
	}
	skips := func(command, phase string) string { return skipsRefused([]string{phase}, command) }
	has := func(command, file string) string {
		return takenRefused(map[string]string{file: ""}, command, false, nil)
	}
	for _, c := range []struct {
		refuses         func(name, value string) string
		name, good, bad string
	}{
		{server, "authorization-mode", "Node,RBAC", "RBAC"},
		{server, "authorization-mode", "AlwaysAllow", "Node"},
		{server, "bind-address", "0.0.0.0", "127.0.0.1"},
		{scheduler, "bind-address", "127.0.0.1", "10.0.0.9"},
		{server, "enable-admission-plugins", "AlwaysPullImages", "AlwaysPullImages,AlwaysDeny"},
		{server, "service-cluster-ip-range", "10.96.0.0/16", "10.1.0.0/16"},
		{server, "etcd-servers", "https://127.0.0.1:2379,https://10.0.0.9:2379", "https://10.0.0.9:2379"},
		{etcd, "name", "", "x"},
		{etcd, "data-dir", "/var/lib/etcd/", "/data"},
		{etcd, "wal-dir", "/var/lib/etcd/wal", "/wal"},
		{etcd, "log-outputs", "stderr", "/log"},
		{etcd, "listen-client-urls", "https://0.0.0.0:2379", "http://0.0.0.0:2379"},
		{etcd, "listen-metrics-urls", "http://0.0.0.0:2381", "http://0.0.0.0:2379"},
		{etcd, "force-new-cluster", "false", "true"},
		{etcd, "feature-gates", "CompactHashCheck=true", "Foo=true"},
		{etcd, "max-txn-ops", "10", "-1"},
		{kubelet, "kubeconfig", "/etc/kubernetes/kubelet.conf", "/x"},
		{kubelet, "hostname-override", "a", "b"},
		{kubelet, "node-ip", "::", "10.0.0.9"},
		{kubelet, "node-ip", "10.0.0.5", "10.0.0.5,10.0.0.9"},
		{setting, "registerNode", "true", "false"},
		{setting, "healthzPort", "10200", "-1"},
		{flag, "read-only-port", "10255", "10250"},
		{flag, "max-pods", "58", "many"},
		{kubelet, "register-node", "true", "false"},
		{kubelet, "provider-id", "aws:///${ZONE}/${ID}", "aws:///us-east-1a/i-1"},
		{kubelet, "pod-manifest-path", "/etc/kubernetes/manifests/", "/etc/manifests"},
		{kubelet, "address", "10.0.0.5", "10.0.0.9"},
		{kubelet, "healthz-port", "10248", "0"},
		{kubelet, "healthz-bind-address", "0.0.0.0", "10.0.0.5"},
		{kubelet, "read-only-port", "10255", "10250"},
		{kubelet, "max-pods", "110", "0"},
		{kubelet, "reserved-memory", "0:memory=1Gi", "1Gi"},
		{skips, "init", "addon/kube-proxy", "etcd"},
		{skips, "init", "certs/ca", "certs/apiserver"},
		{skips, "join", "kubelet-wait-bootstrap", "kubelet-start"},
		{has, "init", "/etc/kubernetes/manifests/kube-vip.yaml", "/etc/kubernetes/manifests/etcd.yaml"},
		{has, "join", "/etc/kubernetes/pki/other.crt", "/etc/kubernetes/pki/ca.crt"},
		{joins("apiServer"), "enable-bootstrap-token-auth", "true", "false"},
		{joins("controllerManager"), "controllers", "*,bootstrapsigner,tokencleaner", "*"},
		{joins("controllerManager"), "controllers", "bootstrap-signer-controller,csrapproving,csrsigning", "*,bootstrapsigner,-csrsigning"},
		{members, "listen-peer-urls", "https://0.0.0.0:2380", "https://127.0.0.1:2380"},
		{members, "advertise-client-urls", "", "https://127.0.0.1:2379"},
	} {
		if c.good != "" {
			assert.Empty(t, c.refuses(c.name, c.good), c.name)
		}
		assert.NotEmpty(t, c.refuses(c.name, c.bad), c.name)
	}
}
