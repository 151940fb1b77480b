package rules_test

import (
	"strings"
	"testing"

	"github.com/clusterawsadm/clusterawsadm/internal/enginetest/manifests"
	"github.com/clusterawsadm/clusterawsadm/pkg/input"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Arguments of the control plane with which components start, and no cluster comes up.
func TestWhatAClusterNeeds(t *testing.T) {
	const pki, cluster = "/etc/kubernetes/pki/", "    clusterConfiguration:\n"
	server := func(name, value string) string {
		return "      apiServer: {extraArgs: [{name: " + name + ", value: '" + value + "'}]}\n"
	}
	const external = "        - name: cloud-provider\n          value: external\n    initConfiguration:\n"
	manager := func(name, value string) string { return "        - {name: " + name + ", value: '" + value + "'}\n" }
	for _, tt := range []struct{ added, problem, warning string }{
		{server("runtime-config", "api/all=false"), "it turns off namespaces of v1, needed by kubeadm", ""},
		{server("runtime-config", "api/ga=false,/v1=true"), "it turns off roles of rbac.authorization.k8s.io/v1, needed by kubeadm", ""},
		{server("runtime-config", "rbac.authorization.k8s.io/v1=false"), "apiServer.extraArgs[0]: it turns off roles", ""},
		{server("runtime-config", "apps/v1=false"), "needed by kube-proxy and CoreDNS", ""},
		{server("runtime-config", "apps/v1/daemonsets=false"), "it turns off daemonsets of apps/v1", ""},
		{server("runtime-config", "storage.k8s.io/v1=false"), "needed by the kube-scheduler", ""},
		{server("runtime-config", "certificates.k8s.io/v1=false"), "needed by a kubelet that joins", ""},
		{server("runtime-config", "api/all=true,batch/v1=false,resource.k8s.io/v1=true,apps/v1/statefulsets=false"), "", ""},
		{server("enable-admission-plugins", "NodeRestriction,EventRateLimit"), "the admission plugin EventRateLimit needs a configuration", ""},
		{server("disable-admission-plugins", "ServiceAccount"), "pods get no tokens", ""},
		{server("disable-admission-plugins", "NodeRestriction"), "kubeadm enables NodeRestriction, which this disables", ""},
		{server("disable-admission-plugins", "DefaultStorageClass"), "", ""},

		{server("client-ca-file", pki+"front-proxy-ca.crt"), "the API server does not accept the certificates of its clients with /etc/kubernetes/pki/front-proxy-ca.crt, which is for another purpose — use /etc/kubernetes/pki/ca.crt, or remove it", ""},
		{server("client-ca-file", pki+"ca.crt"), "", ""},
		{server("etcd-cafile", pki+"ca.crt"), "the API server does not reach etcd", ""},
		{server("tls-cert-file", pki+"front-proxy-client.crt"), "no client trusts the API server", ""},
		{server("service-account-key-file", pki+"ca.crt"), "the API server does not accept the tokens of pods", ""},
		{server("service-account-key-file", pki+"sa.key"), "", ""},
		{server("requestheader-client-ca-file", pki+"ca.crt"), "", "API services outside of the API server do not work"},
		{server("proxy-client-cert-file", pki+"front-proxy-client.key"), "for another purpose", ""},
		{server("tls-cert-file", pki+"own.crt"), "", "/etc/kubernetes/pki/own.crt: nothing in the manifest writes it"},
	} {
		t.Run(tt.added, func(t *testing.T) { needs(t, tt.problem, tt.warning, cluster, cluster+tt.added) })
	}
	for _, tt := range []struct{ added, problem, warning string }{
		{manager("root-ca-file", pki+"front-proxy-ca.crt"), "no pod trusts the API server", ""},
		{manager("cluster-signing-cert-file", pki+"front-proxy-ca.crt"), "the API server does not accept the kubelets that join", ""},
		{manager("cluster-signing-key-file", pki+"ca.crt"), "the API server does not accept the kubelets that join", ""},
		{manager("service-account-private-key-file", pki+"ca.key"), "", "tokens in Secrets of service accounts"},
		{manager("controllers", "*,bootstrapsigner,tokencleaner,-daemonset"), "without the controller daemonset-controller, there are no pods of kube-proxy", ""},
		{manager("controllers", "*,bootstrapsigner,tokencleaner,-root-ca-cert-publisher"), "no pod starts", ""},
		{manager("controllers", "*,bootstrapsigner,tokencleaner,-nodelifecycle"), "take no pods", ""},
		{manager("controllers", "*,bootstrapsigner,tokencleaner,-cronjob"), "", ""},
		{manager("controllers", "*,bootstrapsigner,tokencleaner,-nodeipam"), "", "Nodes get no blocks of addresses for pods"},
		{manager("controllers", "*,bootstrapsigner,tokencleaner,-serviceaccount"), "", "namespaces get no service account"},
		{manager("allocate-node-cidrs", "false"), "", "Nodes get no blocks of addresses for pods"},
		{manager("node-monitor-grace-period", "1s"), "Nodes are Unknown after 1s, and kubelets report every 10s", ""},
		{manager("node-monitor-grace-period", "15s"), "", "when one report of a kubelet is late"},
		{manager("node-monitor-grace-period", "20s"), "", ""},
	} {
		t.Run(tt.added, func(t *testing.T) {
			needs(t, tt.problem, tt.warning, external, strings.Replace(external, "    init", tt.added+"    init", 1))
		})
	}
}

// needs expects a problem or a warning of an edit of the quick start, or neither.
func needs(t *testing.T, problem, warning string, edit ...string) {
	t.Helper()
	text := manifests.Read(t, "../../../../configs/quickstart.yaml")
	before := len(manifests.Warnings(manifests.MustLoad(t, text, input.LoadOptions{})))
	c, err := manifests.Load(t, manifests.Edit(t, text, edit...), input.LoadOptions{})
	if problem != "" {
		require.ErrorContains(t, err, problem)
		return
	}
	require.NoError(t, err)
	all := manifests.Warnings(c)
	assert.Contains(t, strings.Join(all, "\n"), warning)
	if warning == "" {
		assert.Len(t, all, before)
	}
}
