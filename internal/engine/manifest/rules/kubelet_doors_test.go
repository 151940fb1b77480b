package rules_test

import (
	"strings"
	"testing"

	"github.com/clusterawsadm/clusterawsadm/internal/enginetest/manifests"
	"github.com/clusterawsadm/clusterawsadm/pkg/input"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The rules of the kubelet hold for its arguments, for patches of its configuration, and for the settings and flags of a NodeadmConfig.
func TestAllDoorsToTheKubelet(t *testing.T) {
	const config, initial = "  kubeadmConfigSpec:\n", "    initConfiguration:\n"
	patch := func(name, content string) []string {
		return []string{
			config, config + "    files: [{path: /etc/patches/kubeletconfiguration" + name + ".yaml, content: '" + content + "'}]\n",
			initial, initial + "      patches: {directory: /etc/patches}\n",
		}
	}
	const kubelet = "        maxPods: 58\n"
	settings := func(text string) []string { return []string{kubelet, kubelet + text} }
	flag := func(text string) []string {
		return []string{`        flags: ["--node-labels=example.com/purpose=web"]`, "        flags: ['" + text + "']"}
	}
	const argument = "          - name: cloud-provider\n            value: external\n"
	for _, tt := range []struct {
		file             string
		edit             []string
		problem, warning string
	}{
		{"quickstart", patch("", "staticPodPath: /etc/static"), "kubeadm writes its pods into /etc/kubernetes/manifests", ""},
		{"quickstart", patch("", "staticPodPath: /etc/kubernetes/manifests/"), "", ""},
		{"quickstart", patch("", "authorization: {mode: Bogus}"), "authorization-mode of kubelet", ""},
		{"quickstart", patch("+json", `[{"op": "replace", "path": "/authorization/mode", "value": "Bogus"}]`), "authorization-mode of kubelet", ""},
		{"quickstart", patch("", "authorization: {mode: Webhook}"), "", ""},
		{"quickstart", patch("", "authentication: {x509: {clientCAFile: /nonexist}}"), "", "/nonexist: nothing in the manifest writes it"},
		{"quickstart", patch("", "authentication: {x509: {clientCAFile: /etc/kubernetes/pki/ca.crt}}"), "", ""},
		{"quickstart", []string{argument, argument + "          - {name: client-ca-file, value: /etc/kubernetes/pki/none.crt}\n"}, "", "/etc/kubernetes/pki/none.crt: nothing in the manifest writes it"},
		{"eks-templates", settings("      authorization: {mode: Bogus}\n"), "authorization-mode of kubelet", ""},
		{"eks-templates", settings("      authentication: {x509: {clientCAFile: /nonexist}}\n"), "client-ca-file: the kubelet does not start: nothing writes /nonexist", ""},
		{"eks-machines", flag("--hostname-override=n1"), "the kubelet may not register a Node", ""},
		{"eks-machines", flag("--node-ip=10.0.0.9"), "AWS chooses the addresses of machines", ""},
		{"eks-machines", flag("--node-ip=0.0.0.0"), "", ""},
		{"eks-machines", flag("--config=/x"), "nodeadm writes /etc/kubernetes/kubelet/config.json", ""},
		{"eks-machines", flag("--kubeconfig=/x"), "nodeadm writes /var/lib/kubelet/kubeconfig", ""},
		{"eks-machines", flag("--container-runtime-endpoint=unix:///run/crio.sock"), "nodeadm starts containerd", ""},
		{"eks-machines", flag("--authorization-mode=Bogus"), "authorization-mode of kubelet", ""},
		{"eks-machines", flag("--client-ca-file=/x"), "nothing writes /x", ""},
	} {
		t.Run(tt.file+" "+tt.edit[1], func(t *testing.T) {
			text := manifests.Read(t, "../../../../configs/"+tt.file+".yaml")
			if tt.file == "eks-templates" {
				tt.edit = []string{"      maxPods: 58\n", "      maxPods: 58\n" + strings.TrimPrefix(tt.edit[1], kubelet)}
			}
			before := len(manifests.Warnings(manifests.MustLoad(t, text, input.LoadOptions{})))
			c, err := manifests.Load(t, manifests.Edit(t, text, tt.edit...), input.LoadOptions{})
			if tt.problem != "" {
				require.ErrorContains(t, err, tt.problem)
				return
			}
			require.NoError(t, err)
			all := manifests.Warnings(c)
			assert.Contains(t, strings.Join(all, "\n"), tt.warning)
			if tt.warning == "" {
				assert.Len(t, all, before)
			}
		})
	}
}
