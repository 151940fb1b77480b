package yamldoc_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest/loader"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest/yamldoc"
	"github.com/clusterawsadm/clusterawsadm/internal/enginetest/manifests"
	"github.com/clusterawsadm/clusterawsadm/pkg/input"
)

// What kubectl, Argo CD and Flux leave alone stays in a manifest that is no template.
func TestTextStays(t *testing.T) {
	for _, text := range []string{
		"echo ${HOME} ${PATH} > /etc/probe", "echo ${HOME:-/root}", "echo ${ENDPOINT} $${ENDPOINT}", "X=${A:=b}", "echo ${A%%.*} ${A##*/} ${A/b/c} ${A[@]} ${!A} ${1}",
		"echo ${A:-${B:-${C}}}", "echo ${", "ExecStart=/bin/sh -c 'echo $${HOSTNAME}'", "echo ${AWS_SESSION_TOKEN}", "# ${HOME}",
		"{\"Resource\": \"arn:aws:s3:::b/${aws:username}/*\"}",
	} {
		for _, mode := range []input.Substitution{input.SubstituteAuto, input.SubstituteNone} {
			c := manifests.MustLoad(t, manifests.Plain(t, text), input.LoadOptions{Lookup: manifests.Lookup(manifests.Environment()), Substitute: mode})
			assert.Equal(t, text+"\n", manifests.Commands(c))
			assert.Empty(t, c.Variables)
			escape := strings.Contains(text, "$${") && mode == input.SubstituteAuto
			assert.Equal(t, escape, strings.Contains(strings.Join(manifests.Warnings(c), "\n"), "$${ stays as it is: the file is no template"), text)
		}
	}
	name := manifests.NodeName(t, "${COREOS_EC2_HOSTNAME}", "envsubst -i /run/kubeadm/kubeadm.yaml")
	c := manifests.MustLoad(t, name, input.LoadOptions{Lookup: manifests.Lookup(manifests.Environment())})
	assert.Equal(t, "${COREOS_EC2_HOSTNAME}", c.ControlPlane.Object.Spec.KubeadmConfigSpec.InitConfiguration.NodeRegistration.Name)
}

// With "all", every file is a template, as for clusterctl. Credentials are still to be named.
func TestSubstituteAll(t *testing.T) {
	o := input.LoadOptions{Lookup: manifests.Lookup(manifests.Environment()), Substitute: input.SubstituteAll}
	assert.Equal(t, "echo /home/operator ${HOME} x\n", manifests.Commands(manifests.MustLoad(t, manifests.Plain(t, "echo ${HOME} $${HOME} ${A:-x}"), o)))
	_, err := manifests.Load(t, manifests.Plain(t, "echo ${AWS_SESSION_TOKEN}"), o)
	require.ErrorContains(t, err, "the variable AWS_SESSION_TOKEN is not taken from the environment: its name is that of a credential — "+
		"set it in the environment, and pass --set AWS_SESSION_TOKEN to take it, or write $${AWS_SESSION_TOKEN} to keep ${AWS_SESSION_TOKEN}")
	o.Set = manifests.Lookup(map[string]string{"AWS_SESSION_TOKEN": "given"})
	assert.Equal(t, "echo given\n", manifests.Commands(manifests.MustLoad(t, manifests.Plain(t, "echo ${AWS_SESSION_TOKEN}"), o)))
}

// A variable that the user names is replaced everywhere, and no other.
func TestNamedVariables(t *testing.T) {
	o := input.LoadOptions{Lookup: manifests.Lookup(manifests.Environment()), Set: manifests.Lookup(map[string]string{"A": "named"})}
	c := manifests.MustLoad(t, manifests.Plain(t, "echo ${A} $${A} ${A:-x} ${HOME} $${HOME} ${B:-${A}}"), o)
	assert.Equal(t, "echo named ${A} named ${HOME} $${HOME} ${B:-${A}}\n", manifests.Commands(c))
	assert.Equal(t, map[string]string{"A": "named"}, c.Variables)
	c = manifests.MustLoad(t, manifests.Plain(t)+"---\napiVersion: example.com/v1\nkind: Other\nmetadata: {name: x, namespace: \"${A}\"}\n", o)
	assert.Equal(t, map[string]string{"A": "named"}, c.Variables, "the manifest has it, in an object that is ignored")
	_, err := manifests.Load(t, manifests.Plain(t, "echo ${A%%.*}"), o)
	require.ErrorContains(t, err, "the variable expression ${A%%.*} is not supported")
}

// asTemplate returns a manifest with variables in fields.
func asTemplate(t *testing.T, commands ...string) string {
	t.Helper()
	return manifests.Edit(t, manifests.Plain(t, commands...), "  region: ", "  region: ${REGION} # ")
}

// In a template, variables in fields have values from the environment; those in text only if a
// field or the user names them.
func TestTemplates(t *testing.T) {
	o := input.LoadOptions{Lookup: manifests.Lookup(manifests.Environment())}
	c := manifests.MustLoad(t, asTemplate(t, "echo ${REGION} $${HOME} ${TAG:-v1}"), o)
	assert.Equal(t, "eu-west-1", c.Region)
	assert.Equal(t, "echo eu-west-1 ${HOME} v1\n", manifests.Commands(c))
	assert.Equal(t, map[string]string{"REGION": "eu-west-1", "TAG": ""}, c.Variables)
	assert.NotContains(t, strings.Join(manifests.Warnings(c), "\n"), "TAG")

	for text, want := range map[string]string{
		"echo ${HOME}":              "the variable HOME is not taken from the environment: every shell has one of this name — pass --set HOME to take it, or --set HOME=VALUE, or write $${HOME} to keep ${HOME}",
		"echo ${IMAGE_TAG}":         "the variable IMAGE_TAG is not taken from the environment: only text that is passed on uses it, such as labels, files and commands, and it could be a secret — pass --set IMAGE_TAG",
		"echo ${UNKNOWN}":           "the variable UNKNOWN is not set — set it with --set UNKNOWN=VALUE, or write $${UNKNOWN} to keep ${UNKNOWN}",
		"echo ${AWS_SESSION_TOKEN}": "is not taken from the environment: its name is that of a credential",
		"echo ${A%%.*}":             "the variable expression ${A%%.*} is not supported",
	} {
		_, err := manifests.Load(t, asTemplate(t, text), o)
		require.ErrorContains(t, err, want, text)
		assert.NotContains(t, err.Error(), "/opt/secret/bin")
		assert.NotContains(t, err.Error(), "/home/operator")
	}

	c = manifests.MustLoad(t, asTemplate(t, "docker run x:${IMAGE_TAG:-v1}"), o)
	assert.Equal(t, "docker run x:v1\n", manifests.Commands(c))
	assert.Contains(t, strings.Join(manifests.Warnings(c), "\n"), "the variable IMAGE_TAG has its default, not the value in the environment: "+
		"only text that is passed on uses it, such as labels, files and commands, and it could be a secret — pass --set IMAGE_TAG to take the value in the environment, or --set IMAGE_TAG=VALUE")
}

// An annotation of Cluster API is a field; those of other tools are text.
func TestVariablesInAnnotations(t *testing.T) {
	o := input.LoadOptions{Lookup: manifests.Lookup(map[string]string{"REGION": "eu-west-1", "WORKER_MAX": "5"})}
	with := func(annotation string) string {
		return manifests.Edit(
			t,
			asTemplate(t, "true"),
			"kind: MachineDeployment\nmetadata:\n",
			"kind: MachineDeployment\nmetadata:\n  annotations: {"+annotation+": \"${WORKER_MAX}\"}\n",
		)
	}
	c := manifests.MustLoad(t, with("cluster.x-k8s.io/cluster-api-autoscaler-node-group-max-size"), o)
	assert.Equal(t, "5", c.Variables["WORKER_MAX"])
	_, err := manifests.Load(t, with("example.com/note"), o)
	require.ErrorContains(
		t,
		err,
		"the variable WORKER_MAX is not taken from the environment: only text that is passed on uses it, such as labels, files and commands, and it could be a secret",
	)
}

// What makes a file a template is a variable in a field where it is never valid.
func TestTemplatesAreRecognised(t *testing.T) {
	const old, region, name = "  region: us-east-1\n", "region: ", "kind: Cluster\nmetadata:\n  name: quickstart\n"
	for place, yaml := range map[string]string{
		"name":             manifests.Edit(t, manifests.Plain(t, "${X:-d}"), name, "kind: Cluster\nmetadata:\n  name: quickstart\n  labels: {a: \"${CLUSTER_NAME}\"}\n"),
		"in flow style":    manifests.Edit(t, manifests.Plain(t, "${X:-d}"), name, "kind: Cluster\nmetadata: {name: quickstart, labels: {a: ${CLUSTER_NAME}}}\n"),
		"a whole mapping":  manifests.Edit(t, manifests.Plain(t, "${X:-d}"), name, "kind: Cluster\nmetadata:\n  name: quickstart\n  labels:\n    ${LABELS:-a: b}\n"),
		"with a default":   manifests.Edit(t, manifests.Plain(t, "${X:-d}"), old, "  "+region+"${NONE:=eu-west-1}\n"),
		"part of a value":  manifests.Edit(t, manifests.Plain(t, "${X:-d}"), old, "  "+region+"eu-${NONE:-west}-1\n"),
		"in another one":   manifests.Edit(t, manifests.Plain(t, "${X:-d}"), old, "  "+region+"${A:-${NONE:-eu-west-1}}\n"),
		"escape in a name": manifests.NodeName(t, "$${COREOS_EC2_HOSTNAME}", "${X:-d}"),
	} {
		c := manifests.MustLoad(t, yaml, input.LoadOptions{Lookup: manifests.Lookup(manifests.Environment())})
		assert.Equal(t, "d\n", manifests.Commands(c), place)
		_, err := manifests.Load(t, yaml, input.LoadOptions{Lookup: manifests.Lookup(manifests.Environment()), Substitute: input.SubstituteNone})
		if place != "escape in a name" {
			assert.ErrorContains(t, err, "and no variable is replaced", place)
		}
	}
}

// Objects that are not part of the cluster are nobody's business, in templates too; and each file
// is a template or not, by itself.
func TestTextOfOthers(t *testing.T) {
	const job = `---
apiVersion: batch/v1
kind: Job
metadata: {name: hook}
spec: {template: {spec: {containers: [{name: x, image: x, command: ["sh", "-c", "echo ${ENDPOINT} ${A%%.*} ${NONE}"]}]}}}
`
	manifests.MustLoad(t, manifests.Plain(t)+job, input.LoadOptions{})
	manifests.MustLoad(t, asTemplate(t)+job, input.LoadOptions{Lookup: manifests.Lookup(manifests.Environment())})
	manifests.MustLoad(t, manifests.Plain(t)+job, input.LoadOptions{Substitute: input.SubstituteAll})

	const script = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: scripts}\ndata: {a: \"echo ${HOME} $${HOME}\"}\n"
	c, err := loader.Load(
		[]input.Source{{Name: "a.yaml", Data: []byte(asTemplate(t))}, {Name: "b.yaml", Data: []byte(script)}},
		input.LoadOptions{Lookup: manifests.Lookup(manifests.Environment())},
	)
	require.NoError(t, err)
	assert.Equal(t, "echo ${HOME} $${HOME}", c.ConfigMaps["scripts"].Data["a"])
}

// What the program writes is read back as it is, also with "${" in it.
func TestLiteral(t *testing.T) {
	files, err := filepath.Glob("../../../../configs/*.yaml")
	require.NoError(t, err)
	for _, file := range files {
		raw, err := os.ReadFile(filepath.Clean(file))
		require.NoError(t, err)
		o := input.LoadOptions{EKSEnableIAM: true}
		_, err = loader.Load([]input.Source{{Name: file, Data: raw}}, o)
		require.NoError(t, err)
	}
	text := manifests.Plain(t, "echo ${HOME} $${HOME} ${A:=b} ${A%%.*}")
	assert.Equal(t, text, string(yamldoc.Literal([]byte(text))), "for kubectl, too")
	c := manifests.MustLoad(t, string(yamldoc.Literal([]byte(text))), input.LoadOptions{})
	assert.Equal(t, "echo ${HOME} $${HOME} ${A:=b} ${A%%.*}\n", manifests.Commands(c))
	text = manifests.Edit(t, text, "kind: Cluster\nmetadata:\n  name: quickstart\n", "kind: Cluster\nmetadata:\n  name: quickstart\n  labels: {a: \"${A}\"}\n")
	assert.Contains(t, string(yamldoc.Literal([]byte(text))), `{a: "$${A}"}`)
	assert.Contains(t, string(yamldoc.Literal([]byte(text))), "echo $${HOME} $$${HOME}")
}
