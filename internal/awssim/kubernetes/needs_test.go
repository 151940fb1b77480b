package kubernetes

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// What kubeadm's clusters need of the API server and of the controller manager: a value with which a cluster comes up, and one with which not.
func TestWhatAClusterNeeds(t *testing.T) {
	given := func(name, value string) any { return []any{map[string]any{"name": name, "value": value}} }
	config := func(_, value string) string { return unserved(value) }
	server := func(name, value string) string {
		return exchanged(given(name, value), nil, "/etc/kubernetes/pki", true, nil)
	}
	manager := func(name, value string) string {
		return exchanged(nil, given(name, value), "/etc/kubernetes/pki", true, nil)
	}
	joins := func(name, value string) string {
		return joinRefused("controllerManager: {extraArgs: [{name: "+name+", value: '"+value+"'}]}", false)
	}
	controllers := func(name, value string) string { return idle(given(name, value)) }
	plugins := func(name, value string) string {
		if why := togetherRefused("kube-apiserver", given(name, value)); why != "" {
			return why
		}
		return replacedServer(given(name, value), "10.96.0.0/12", true)
	}
	const pki = "/etc/kubernetes/pki/"
	for _, c := range []struct {
		refuses         func(name, value string) string
		name, good, bad string
	}{
		{config, "", "api/beta=true", "api/all=false"},
		{config, "", "batch/v1=false", "api/ga=false"},
		{config, "", "api/all=false,api/ga=true", "rbac.authorization.k8s.io/v1=false"},
		{config, "", "apps/v1=true", "apps/v1=false"},
		{config, "", "apps/v1/statefulsets=false", "apps/v1/daemonsets=false"},
		{config, "", "apps/v1=false,apps/v1/daemonsets=true,apps/v1/deployments=true,apps/v1/replicasets=true", "policy/v1=0"},
		{plugins, "enable-admission-plugins", "NodeRestriction", "NodeRestriction,EventRateLimit"},
		{plugins, "disable-admission-plugins", "DefaultStorageClass", "ServiceAccount"},
		{plugins, "disable-admission-plugins", "", "NodeRestriction"},
		{server, "client-ca-file", "/etc/ssl/ca.pem", pki + "front-proxy-ca.crt"},
		{server, "etcd-cafile", pki + "etcd/ca.crt", pki + "ca.crt"},
		{server, "tls-cert-file", pki + "apiserver.crt", pki + "front-proxy-client.crt"},
		{server, "service-account-key-file", pki + "sa.key", pki + "ca.crt"},
		{server, "service-account-signing-key-file", pki + "sa.key", pki + "ca.key"},
		{manager, "root-ca-file", pki + "ca.crt", pki + "front-proxy-ca.crt"},
		{joins, "cluster-signing-key-file", pki + "ca.key", pki + "etcd/ca.key"},
		{controllers, "controllers", "*,bootstrapsigner,-cronjob", "*,bootstrapsigner,-daemonset"},
		{controllers, "controllers", "*", "*,-root-ca-cert-publisher"},
		{controllers, "controllers", "*", "*,-node-lifecycle-controller"},
		{controllers, "node-monitor-grace-period", "40s", "1s"},
	} {
		assert.Empty(t, c.refuses(c.name, c.good), "%s=%s", c.name, c.good)
		assert.NotEmpty(t, c.refuses(c.name, c.bad), "%s=%s", c.name, c.bad)
	}
	both := []any{
		map[string]any{"name": "service-account-key-file", "value": pki + "ca.crt"}, map[string]any{"name": "service-account-key-file", "value": pki + "sa.pub"},
	}
	assert.Empty(t, exchanged(both, nil, "/etc/kubernetes/pki", true, nil))
	written := map[string]string{pki + "apiserver.crt": "x", pki + "front-proxy-ca.crt": "x"}
	assert.Empty(t, exchanged(given("client-ca-file", pki+"front-proxy-ca.crt"), nil, "/etc/kubernetes/pki", true, written))
}

// An operating system reads boot data of one format only.
func TestFormatOfBootDataAndImage(t *testing.T) {
	for _, c := range []struct {
		image, data string
		reads       bool
	}{
		{"capa-ami-flatcar-stable-v1.34.2-1", "#cloud-config\n", false},
		{"capa-ami-flatcar-stable-v1.34.2-1", `{"ignition": {}}`, true},
		{"capa-ami-ubuntu-24.04-v1.34.2-1", `{"ignition": {}}`, false},
		{"capa-ami-ubuntu-24.04-v1.34.2-1", "#cloud-config\n", true},
		{"my-image", `{"ignition": {}}`, true},
	} {
		assert.Equal(t, c.reads, misreadName(c.image, []byte(c.data)) == "", "%+v", c)
	}
}

// What takes the place of the arguments of nodeadm, and the fields in fields of the kubelet's configuration.
func TestKubeletsOfNodeadm(t *testing.T) {
	m := machine{has: func(address string) bool { return address == "10.0.0.5" }}
	for text, starts := range map[string]bool{
		"flags: ['--hostname-override=n1']": false, "flags: ['--node-ip=10.0.0.9']": false, "flags: ['--node-ip=10.0.0.5']": true,
		"flags: ['--config=/x']": false, "flags: ['--kubeconfig=/x']": false, "flags: ['--container-runtime-endpoint=unix:///run/crio.sock']": false,
		"config: {authorization: {mode: Bogus}}": false, "config: {authorization: {mode: Webhook}}": true, "config: {maxPods: 58}": true,
	} {
		why, _ := nodeConfigRefused([]byte("spec: {kubelet: {"+text+"}}"), "1.34", m)
		assert.Equal(t, starts, why == "", "%s: %s", text, why)
	}
	patches := map[string]string{"/p/kubeletconfiguration.yaml": "authorization: {mode: Bogus}"}
	assert.NotEmpty(t, patchesRefused("/p", patches, "v1.34.2", machine{plane: true}))
	patches["/p/kubeletconfiguration.yaml"] = "staticPodPath: /etc/static"
	assert.NotEmpty(t, patchesRefused("/p", patches, "v1.34.2", machine{plane: true}))
}
