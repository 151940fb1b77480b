package bootstrap_test

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/golden"
	"github.com/clusterawsadm/clusterawsadm/pkg/bootstrap"
	"github.com/clusterawsadm/clusterawsadm/pkg/input"
)

const head = "apiVersion: bootstrap.aws.infrastructure.cluster.x-k8s.io/v1beta1\nkind: AWSIAMConfiguration\n"

func TestRemarks(t *testing.T) {
	text, err := os.ReadFile("testdata/remarks.yaml")
	require.NoError(t, err)
	c, err := bootstrap.Load("remarks.yaml", text, bootstrap.Options{})
	require.NoError(t, err)
	all := (&input.InvalidError{Problems: c.Warnings}).Error() + "\n"
	golden.Assert(t, "remarks.golden", all)
	c, err = bootstrap.Load("remarks.yaml", text, bootstrap.Options{Strict: true})
	assert.Nil(t, c)
	require.Error(t, err)
	assert.Equal(t, all, err.Error()+"\n", "strict turns them into errors")
}

func TestWrong(t *testing.T) {
	text, err := os.ReadFile("testdata/wrong.yaml")
	require.NoError(t, err)
	_, err = bootstrap.Load("wrong.yaml", text, bootstrap.Options{})
	var invalid *input.InvalidError
	require.ErrorAs(t, err, &invalid)
	golden.Assert(t, "wrong.golden", err.Error()+"\n")
}

func TestNoConfiguration(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"", "iam.yaml: the file is empty — begin it with apiVersion: "},
		{"# only a comment\n", "iam.yaml: apiVersion: the file has no valid apiVersion and kind — use apiVersion: "},
		{"kind: AWSIAMConfiguration\n", "iam.yaml:1: apiVersion: the file has no valid apiVersion"},
		{"apiVersion: v1\nkind: AWSIAMConfiguration\n", "iam.yaml:1: apiVersion: the file has no valid apiVersion and kind"},
		{strings.Replace(head, "v1beta1", "v1", 1), `iam.yaml:1: apiVersion: AWSIAMConfiguration has no version "bootstrap.aws.infrastructure.cluster.x-k8s.io/v1"`},
		{strings.Replace(head, "AWSIAM", "Foo", 1), `iam.yaml:2: kind: the kind "FooConfiguration"`},
		{head + "spec:\n  a: [\n", "iam.yaml:5: the YAML is invalid: did not find expected node content"},
		{head + "spec:\n\tregion: x\n", "iam.yaml:4: the YAML is invalid: found character that cannot start any token"},
		{head + "spec:\n  a: b\n c: d\n", "iam.yaml:5: the YAML is invalid: did not find expected"},
		{"- a\n- b\n", "iam.yaml:1: apiVersion: the file has no valid"},
	} {
		_, err := bootstrap.Load("iam.yaml", []byte(c.text), bootstrap.Options{})
		if assert.Error(t, err, c.text) {
			assert.Contains(t, err.Error(), c.want, c.text)
			assert.NotContains(t, err.Error(), "\n")
		}
	}
}

// TestOld: a field that only the newer version has causes a warning.
func TestOld(t *testing.T) {
	text := strings.Replace(head, "v1beta1", "v1alpha1", 1) + "spec:\n  allowAssumeRole: true\n  nodes:\n    path: /x/\n  bootstrapUser: {enable: true}\n"
	c := load(t, []byte(text))
	require.Len(t, c.Warnings, 2)
	assert.Equal(t, "iam.yaml:4: spec.allowAssumeRole: the field does not exist in this version and has no effect"+
		" — use apiVersion: bootstrap.aws.infrastructure.cluster.x-k8s.io/v1beta1", c.Warnings[0].String())
	assert.Equal(t, "spec.nodes.path", c.Warnings[1].Path)
	assert.False(t, c.Spec.AllowAssumeRole)
	assert.Empty(t, c.Spec.BootstrapUser.GroupName)
}

// TestYAML11: booleans of YAML 1.1 are booleans, also as keys.
func TestYAML11(t *testing.T) {
	c := load(t, []byte(head+`spec:
  bootstrapUser: {enable: on}
  nodes: &n
    disableCloudProviderPolicy: y
    tags: {n: "no", 1: x}
  controlPlane: {<<: *n, disableCloudProviderPolicy: off}
`))
	assert.Empty(t, c.Warnings)
	assert.True(t, c.Spec.BootstrapUser.Enable)
	assert.True(t, c.Spec.Nodes.DisableCloudProviderPolicy)
	assert.False(t, c.Spec.ControlPlane.DisableCloudProviderPolicy)
	assert.Equal(t, map[string]string{"false": "no", "1": "x"}, map[string]string(c.Spec.Nodes.Tags))
	assert.Equal(t, c.Spec.Nodes.Tags, c.Spec.ControlPlane.Tags)
	assert.Equal(t, input.Position{File: "iam.yaml", Line: 7}, c.At("spec.nodes.tags.false"))
	assert.Equal(t, input.Position{File: "iam.yaml", Line: 5}, c.At("spec.nodes.path"), "the nearest parent")
}

// TestMark: in a file with the annotation, spec.eks enables nothing else. Other
// annotations may be present.
func TestMark(t *testing.T) {
	const mark = "metadata:\n  annotations:\n    bootstrap.aws.infrastructure.cluster.x-k8s.io/defaulted: \"true\"\n"
	const spec = "spec:\n  eks: {}\n  nodes: {ec2ContainerRegistryReadOnly: false}\n  bootstrapUser: {groupName: \"\"}\n"
	assert.True(t, load(t, []byte(head+spec)).Spec.Nodes.EC2ContainerRegistryReadOnly)
	c := load(t, []byte(head+mark+spec))
	assert.False(t, c.Spec.Nodes.EC2ContainerRegistryReadOnly)
	assert.Empty(t, c.Spec.BootstrapUser.GroupName)
	assert.Equal(t, "cluster-api-provider-aws-", c.Spec.S3Buckets.NamePrefix, "missing values have their defaults")
	assert.Empty(t, c.Warnings)
	c = load(t, []byte(head+mark+"  name: x\n"+spec))
	assert.False(t, c.Spec.Nodes.EC2ContainerRegistryReadOnly)
	assert.Len(t, c.Warnings, 1)
}

// TestPrintedWithoutMark: the annotation is printed only if necessary.
func TestPrintedWithoutMark(t *testing.T) {
	for text, marked := range map[string]bool{
		"": true, "spec: {eks: {}}\n": false, "spec: {eks: {disable: true}}\n": false, "spec: {nodes: {ec2ContainerRegistryReadOnly: true}}\n": false,
	} {
		out, err := load(t, []byte(head+text)).YAML()
		require.NoError(t, err)
		assert.Equal(t, marked, strings.Contains(string(out), "defaulted"), text)
	}
}

// FuzzLoad: for every file, Load returns a configuration that can be printed and
// rendered, or an *input.InvalidError.
func FuzzLoad(f *testing.F) {
	for _, file := range []string{"testdata/remarks.yaml", "testdata/wrong.yaml", "testdata/configs/with_extra_statements.yaml"} {
		text, err := os.ReadFile(file)
		require.NoError(f, err)
		f.Add(text)
	}
	f.Add([]byte(head + "spec: &a {nodes: *a}\n"))
	f.Add([]byte(head + "a: &a [x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b]\n" +
		"d: &d [*c,*c,*c,*c,*c,*c,*c,*c]\ne: &e [*d,*d,*d,*d,*d,*d,*d,*d]\nf: &f [*e,*e,*e,*e,*e,*e,*e,*e]\ng: [*f,*f,*f,*f,*f,*f,*f,*f]\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		c, err := bootstrap.Load("iam.yaml", text, bootstrap.Options{})
		if err != nil {
			var invalid *input.InvalidError
			require.ErrorAs(t, err, &invalid)
			return
		}
		_, err = c.YAML()
		require.NoError(t, err)
		_, err = c.Template().YAML()
		require.NoError(t, err)
	})
}
