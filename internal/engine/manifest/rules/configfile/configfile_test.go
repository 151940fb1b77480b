package configfile

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"sigs.k8s.io/yaml"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/components"
	"github.com/clusterawsadm/clusterawsadm/internal/enginetest/configfiles"
)

func noFile(string) (string, bool) { return "", false }

// inBlocks returns YAML that does not begin with {, which components read as JSON.
func inBlocks(text string) string {
	blocks, err := yaml.JSONToYAML([]byte(text)) // reads YAML, too
	if err != nil {
		panic(err)
	}
	return string(blocks)
}

// texts joins what findings say.
func texts(found []Finding) string {
	var all []string
	for _, f := range found {
		all = append(all, f.What+" ("+f.Fix+")")
	}
	return strings.Join(all, "\n")
}

// The findings about a file contain the words of the component's own error message. A file with which the component starts has no findings.
func TestCases(t *testing.T) {
	for _, c := range configfiles.Cases(t) {
		found := texts(Check(File{Component: c.Component, Argument: c.Argument, Text: c.Text, Minor: 34, Read: noFile}))
		if c.Word == "" {
			assert.Empty(t, found, c.Text)
		} else {
			assert.Contains(t, found, c.Word, c.Text)
		}
	}
}

// Each version of Kubernetes has its own API versions, plugins and strictness.
func TestVersions(t *testing.T) {
	const scheduler = "{apiVersion: kubescheduler.config.k8s.io/v1beta3, kind: KubeSchedulerConfiguration, clientConnection: {kubeconfig: /etc/kubernetes/scheduler.conf}}"
	const kms = "{apiVersion: apiserver.config.k8s.io/v1, kind: EncryptionConfiguration, resources: [{resources: [secrets], providers: [{kms: {name: aws, endpoint: 'unix:///kms.sock'}}]}]}"
	const plugin = "{apiVersion: kubescheduler.config.k8s.io/v1, kind: KubeSchedulerConfiguration, clientConnection: {kubeconfig: /etc/kubernetes/scheduler.conf}, profiles: [{plugins: {filter: {enabled: [{name: EBSLimits}]}}}]}"
	const unknown = "{apiVersion: apiserver.config.k8s.io/v1, kind: AdmissionConfiguration, plugin: []}"
	for _, c := range []struct {
		name, component, argument, text, gates string
		minor                                  uint64
		want                                   string
	}{
		{"v1beta3 of the scheduler", components.Scheduler, "config", scheduler, "", 28, ""},
		{
			"v1beta3 of the scheduler, later", components.Scheduler, "config", scheduler, "", 29,
			"Kubernetes 1.29 does not know the version kubescheduler.config.k8s.io/v1beta3 of KubeSchedulerConfiguration (use kubescheduler.config.k8s.io/v1)",
		},
		{"a version that is not in the table", components.Scheduler, "config", scheduler, "", 99, ""},
		{
			"authentication, early", components.APIServer, "authentication-config", "{apiVersion: apiserver.config.k8s.io/v1, kind: AuthenticationConfiguration, jwt: []}", "", 33,
			"Kubernetes 1.33 does not know the version apiserver.config.k8s.io/v1 of AuthenticationConfiguration; 1.34 does" +
				" (use apiserver.config.k8s.io/v1alpha1 or apiserver.config.k8s.io/v1beta1)",
		},
		{"KMS v1", components.APIServer, "encryption-provider-config", kms, "", 28, ""},
		{"KMS v1 with its feature gate", components.APIServer, "encryption-provider-config", kms, "KMSv1=true", 33, ""},
		{"a plugin of the scheduler", components.Scheduler, "config", plugin, "", 31, ""},
		{
			"a plugin that was removed", components.Scheduler, "config", plugin, "", 32,
			"profiles[0].plugins.filter.enabled[0].name: the scheduler has no plugin EBSLimits since Kubernetes 1.32 (remove it)",
		},
		{"an unknown field", components.APIServer, "admission-control-config-file", unknown, "", 31, `unknown field "plugin" is ignored (correct its name, or remove it)`},
		{"an unknown field, refused", components.APIServer, "admission-control-config-file", unknown, "", 32, `unknown field "plugin" (correct its name, or remove it)`},
		{
			"an unknown field of the policy", components.APIServer, "audit-policy-file",
			"{apiVersion: audit.k8s.io/v1, kind: Policy, rules: [{level: None, user: [a]}]}", "", 34, `unknown field "rules[0].user" is ignored (correct its name, or remove it)`,
		},
		{
			"arguments of a plugin", components.Scheduler, "config",
			strings.Replace(plugin, "plugins: {filter: {enabled: [{name: EBSLimits}]}}", "pluginConfig: [{name: NodeResourcesFit, args: {scoringStrategie: {}}}]", 1), "", 34,
			`profiles[0].pluginConfig[0].args: unknown field "scoringStrategie" (correct its name, or remove it)`,
		},
		{
			"a plugin that does not exist", components.APIServer, "admission-control-config-file",
			"{apiVersion: apiserver.config.k8s.io/v1, kind: AdmissionConfiguration, plugins: [{name: PodSecurityPolicies, path: a.yaml}]}", "", 34,
			`the API server has no admission plugin "PodSecurityPolicies", and ignores its configuration (correct the name)`,
		},
		{"an old form", components.APIServer, "admission-control-config-file", "imagePolicy: {kubeConfigFile: /etc/a}", "", 34, ""},
		{"a key", components.APIServer, "etcd-keyfile", "secret", "", 34, "it has no private key that can be read (write the key as PEM, without a passphrase)"},
		{"another file", components.APIServer, "service-account-key-file", "secret", "", 34, ""},
		{"a file of another component", components.ControllerManager, "audit-policy-file", "secret", "", 34, ""},
	} {
		assert.Equal(
			t,
			c.want,
			texts(Check(File{Component: c.component, Argument: c.argument, Text: inBlocks(c.text), Minor: c.minor, Gates: c.gates, Read: noFile})),
			c.name,
		)
	}
}

// A scheduler that runs from another image may have more plugins than that of Kubernetes.
func TestOtherScheduler(t *testing.T) {
	const text = "{apiVersion: kubescheduler.config.k8s.io/v1, kind: KubeSchedulerConfiguration, clientConnection: {kubeconfig: /etc/kubernetes/scheduler.conf}, " +
		"profiles: [{plugins: {multiPoint: {enabled: [{name: Coscheduling}]}}}]}"
	f := File{Component: components.Scheduler, Argument: "config", Text: inBlocks(text), Minor: 34, Read: noFile}
	assert.Contains(t, texts(Check(f)), "the scheduler has no plugin Coscheduling")
	f.OtherImage = true
	assert.Empty(t, Check(f))
}

// The configuration of an admission plugin may be a file of its own.
func TestFileOfAPlugin(t *testing.T) {
	const admission = "{apiVersion: apiserver.config.k8s.io/v1, kind: AdmissionConfiguration, plugins: [{name: PodSecurity, path: podsecurity.yaml}]}"
	read := func(path string) (string, bool) {
		return inBlocks("{apiVersion: pod-security.admission.config.k8s.io/v1, kind: PodSecurityConfiguration, defaults: {warn: strict}}"), path == "podsecurity.yaml"
	}
	found := Check(File{Component: components.APIServer, Argument: "admission-control-config-file", Text: inBlocks(admission), Minor: 34, Read: read})
	assert.Contains(t, texts(found), `the plugin PodSecurity: defaults.warn: Invalid value: "strict"`)
	assert.Equal(t, "podsecurity.yaml", found[0].Path)
}
