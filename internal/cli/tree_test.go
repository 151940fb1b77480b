package cli

import (
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// upstreamTree lists the commands of clusterawsadm v2.13.0, and their flags with
// shorthand, type and default. "!" marks required flags.
const upstreamTree = `
bootstrap
bootstrap iam
bootstrap iam print-policy: config string, document string
bootstrap iam print-config: config string
bootstrap iam print-cloudformation-template: config string
bootstrap iam create-cloudformation-stack: config string, region string
bootstrap iam update-cloudformation-stack: config string, region string
bootstrap iam delete-cloudformation-stack: config string, region string
bootstrap credentials
bootstrap credentials encode-as-profile: output string base64SharedConfig, region string, profile string
ami
ami list: region string, os string, kubernetes-version string, owner-id string, o/output string table
ami copy: region string, os string !, kubernetes-version string !, dry-run bool false, owner-id string 819546954734, source-region string
ami encrypted-copy: region string, os string !, kubernetes-version string !, dry-run bool false, owner-id string 819546954734, source-region string, kms-key-id string
eks
eks addons
eks addons list-available: n/cluster-name string !, r/region string, o/output string table
eks addons list-installed: n/cluster-name string !, r/region string, o/output string table
resource
resource list: n/cluster-name string !, r/region string, o/output string table
gc
gc enable: cluster-name string !, n/namespace string default, kubeconfig string HOME/.kube/config
gc disable: cluster-name string !, n/namespace string default, kubeconfig string HOME/.kube/config
gc configure: cluster-name string !, n/namespace string default, kubeconfig string HOME/.kube/config, gc-task stringSlice []
controller
controller print-credentials: kubeconfig string, kubeconfig-context string, namespace string capa-system
controller zero-credentials: kubeconfig string, kubeconfig-context string, namespace string capa-system
controller update-credentials: kubeconfig string, kubeconfig-context string, namespace string capa-system
controller rollout-controller: kubeconfig string, kubeconfig-context string, namespace string capa-system
controller use-pod-identity: n/cluster-name string !, r/region string, namespace string capa-system, service-account string capa-controller-manager, role-name string controllers.cluster-api-provider-aws.sigs.k8s.io
version: o/output string
completion bash: no-descriptions bool false
completion fish: no-descriptions bool false
completion powershell: no-descriptions bool false
completion zsh: no-descriptions bool false
`

// TestUpstreamsTree checks that every command of upstream exists with its flags, so that
// existing scripts work. More flags may exist; none of them may be required.
func TestUpstreamsTree(t *testing.T) {
	s := newShell(t)
	root, _ := newRoot(s.Env)
	root.InitDefaultCompletionCmd()
	global := root.PersistentFlags().Lookup("v")
	assert.Equal(t, []string{"v", "int", "2"}, []string{global.Shorthand, global.Value.Type(), global.DefValue})
	for line := range strings.Lines(strings.TrimSpace(upstreamTree)) {
		path, flags, _ := strings.Cut(strings.TrimSpace(line), ": ")
		cmd, rest, err := root.Find(strings.Fields(path))
		require.NoError(t, err, path)
		require.Empty(t, rest, path)
		required := map[string]bool{}
		for _, flag := range strings.Split(flags, ", ") {
			words := strings.Fields(flag)
			if len(words) == 0 {
				continue
			}
			short, long, ok := strings.Cut(words[0], "/")
			if !ok {
				short, long = "", words[0]
			}
			words = append(words, "")
			required[long] = words[2] == "!"
			f := cmd.Flags().Lookup(long)
			require.NotNil(t, f, "%s --%s", path, long)
			got := []string{f.Shorthand, f.Value.Type(), strings.ReplaceAll(f.DefValue, s.HomeDir, "HOME")}
			assert.Equal(t, []string{short, words[1], strings.TrimSuffix(words[2], "!")}, got, "%s --%s", path, long)
		}
		for _, f := range mandatory(cmd) {
			assert.True(t, required[f], "%s works without --%s upstream", path, f)
			delete(required, f)
		}
		for f, must := range required {
			assert.False(t, must, "%s has to be told --%s upstream", path, f)
		}
	}
}

// mandatory lists the required flags of a command.
func mandatory(cmd *cobra.Command) (names []string) {
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if len(f.Annotations[cobra.BashCompOneRequiredFlag]) > 0 {
			names = append(names, f.Name)
		}
	})
	return names
}

// TestRegionOfEveryCommand: all commands of upstream determine the region in the same
// way, and log every call from log level 4.
func TestRegionOfEveryCommand(t *testing.T) {
	for _, command := range []string{
		"bootstrap iam create-cloudformation-stack --dry-run",
		"bootstrap iam delete-cloudformation-stack",
		"ami list --os flatcar-stable",
		"ami copy --os flatcar-stable --kubernetes-version 1.34.2 --dry-run",
		"ami encrypted-copy --os flatcar-stable --kubernetes-version 1.34.2 --dry-run",
		"eks addons list-available -n nope",
		"eks addons list-installed -n nope",
		"resource list -n nope",
		"controller use-pod-identity -n nope",
	} {
		for _, c := range []struct{ variables, region string }{
			{"DEFAULT_AWS_REGION", "eu-west-3"},
			{"AWS_DEFAULT_REGION DEFAULT_AWS_REGION", "eu-west-2"},
			{"AWS_REGION AWS_DEFAULT_REGION DEFAULT_AWS_REGION", "eu-west-1"},
		} {
			s := newShell(t)
			for _, v := range strings.Fields(c.variables) {
				s.variables[v] = map[string]string{"AWS_REGION": "eu-west-1", "AWS_DEFAULT_REGION": "eu-west-2", "DEFAULT_AWS_REGION": "eu-west-3"}[v]
			}
			args := append(strings.Fields(command), "--simulate")
			s.run(args...) // some find nothing
			assert.Contains(t, s.err.String(), "simulated AWS account in "+c.region+",", "%s with %s", command, c.variables)
			if c.region == "eu-west-1" {
				call := regexp.MustCompile(`(?m)^(EKS|EC2|IAM|CloudFormation|Resource Groups Tagging API) \w+ eu-west-1: `)
				assert.NotRegexp(t, call, s.err.String(), command)
				s.run(append(args, "-v", "4")...)
				assert.Regexp(t, call, s.err.String(), command)
			}
		}
	}
}
