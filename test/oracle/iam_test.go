package oracle

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
	capaiam "sigs.k8s.io/cluster-api-provider-aws/v2/cmd/clusterawsadm/cloudformation/bootstrap"
	"sigs.k8s.io/cluster-api-provider-aws/v2/cmd/clusterawsadm/configreader"
	"sigs.k8s.io/yaml"

	"github.com/clusterawsadm/clusterawsadm/pkg/bootstrap"
	"github.com/clusterawsadm/clusterawsadm/test/iamconfig"
)

// TestIAM compares the configuration and the template for AWSIAMConfigurations with those
// of Cluster API Provider AWS's code.
func TestIAM(t *testing.T) {
	dir := t.TempDir()
	compared := 0
	for range 4 { // times a hundred
		rapid.Check(t, func(t *rapid.T) {
			_, text := iamconfig.Draw(t,
				iamconfig.Encoded(`{"Fn::Join": ["", ["a", {"Ref": "AWS::AccountId"}]]}`), iamconfig.Encoded(`{"Fn::GetAtt": ["X", "Arn"], "a": 1}`))
			file := filepath.Join(dir, "iam.yaml")
			require.NoError(t, os.WriteFile(file, text, 0o600))
			theirs, err := configreader.LoadConfigFile(file)
			require.NoError(t, err, string(text))
			ours, err := bootstrap.Load(file, text, bootstrap.Options{})
			require.NoError(t, err, string(text))
			assert.Empty(t, cmp.Diff(theirs.Spec, ours.Spec), string(text))
			if ours.Spec.Partition == "aws-cn" {
				ours.Spec.Partition, theirs.Spec.Partition = "aws-iso", "aws-iso" // the intended difference for China
			}
			// As JSON: their YAML does not quote strings that are numbers in YAML 1.1.
			want, err := capaiam.Template{Spec: &theirs.Spec}.RenderCloudFormation().JSON()
			require.NoError(t, err)
			got, err := ours.Template().YAML()
			require.NoError(t, err)
			assert.Empty(t, cmp.Diff(values(t, want), values(t, got)), string(text))
			compared++
		})
	}
	t.Logf("%d configurations compared", compared)
}

// TestIAMRefused: both reject the same configurations.
func TestIAMRefused(t *testing.T) {
	const head = "apiVersion: bootstrap.aws.infrastructure.cluster.x-k8s.io/v1beta1\nkind: AWSIAMConfiguration\n"
	for _, text := range []string{
		"", "# nothing\n", "a: [", "- a\n", "7\n", "kind: AWSIAMConfiguration\n", "apiVersion: v1\nkind: AWSIAMConfiguration\n",
		"apiVersion: bootstrap.aws.infrastructure.cluster.x-k8s.io/v1\nkind: AWSIAMConfiguration\n",
		"apiVersion: bootstrap.aws.infrastructure.cluster.x-k8s.io/v1beta1\nkind: Foo\n",
		head + "spec: text\n", head + "spec: {namePrefix: 7}\n", head + "spec: {stackTags: {a: 1}}\n", head + "spec: {bootstrapUser: {enable: \"true\"}}\n",
		head + "spec: {controlPlane: {extraStatements: [{Resource: \"*\"}]}}\n", head + "spec: {controlPlane: {extraStatements: [{Action: {a: b}}]}}\n",
		head + "spec: {controlPlane: {extraStatements: {}}}\n", head + "spec: {nodes: {tags: [a]}}\n", head + "spec: {eks: true}\n", head + "spec: {stackTags: {1: on}}\n",
		// and accept the same
		head, head + "spec: null\n", head + "spec: {eks: null, stackTags: {n: text, 1: x}}\n", head + "spec: {bootstrapUser: {enable: yes}}\n",
		head + "spec: {stackName: a, stackName: b}\n", head + "spec: {namePrefix: 2001-01-01}\n", head + "metadata: {name: x}\n",
		head + "spec: {controlPlane: &a {enableCSIPolicy: true}, nodes: {<<: *a}}\n", head + "---\nnot: [read\n", "\ufeff" + head, "--- \n" + head,
		"{\n\t\"apiVersion\": \"bootstrap.aws.infrastructure.cluster.x-k8s.io/v1beta1\",\n\t\"kind\": \"AWSIAMConfiguration\"\n}\n",
	} {
		file := filepath.Join(t.TempDir(), "iam.yaml")
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		theirs, refused := configreader.LoadConfigFile(file)
		ours, err := bootstrap.Load(file, []byte(text), bootstrap.Options{})
		assert.Equal(t, refused == nil, err == nil, "%s\ntheirs: %v\nours: %v", text, refused, err)
		if refused == nil && err == nil {
			assert.Empty(t, cmp.Diff(theirs.Spec, ours.Spec), text)
		}
	}
}

// TestIAMDocuments: every policy that upstream prints can be printed here.
func TestIAMDocuments(t *testing.T) {
	for _, name := range capaiam.ManagedIAMPolicyNames {
		assert.True(t, slices.Contains(bootstrap.Documents(), string(name)), name)
	}
}

func values(t require.TestingT, text []byte) (out any) {
	text, err := yaml.YAMLToJSON(text)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &out))
	return out
}
