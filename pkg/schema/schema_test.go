package schema_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"

	"github.com/clusterawsadm/clusterawsadm/pkg/schema"
)

// compiled is the schema as a validator reads it, which checks it against its dialect first.
func compiled(t *testing.T) *jsonschema.Schema {
	t.Helper()
	text, err := schema.JSON()
	require.NoError(t, err)
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	require.NoError(t, err)
	c := jsonschema.NewCompiler()
	require.NoError(t, c.AddResource(schema.URL, doc))
	s, err := c.Compile(schema.URL)
	require.NoError(t, err)
	return s
}

// validate returns the problems in the documents of a file.
func validate(t *testing.T, s *jsonschema.Schema, text string) (problems []string) {
	t.Helper()
	d := utilyaml.NewYAMLOrJSONDecoder(strings.NewReader(text), 4096)
	for {
		var raw json.RawMessage
		err := d.Decode(&raw)
		if errors.Is(err, io.EOF) {
			return problems
		}
		require.NoError(t, err)
		if len(raw) == 0 || string(raw) == "null" {
			continue
		}
		v, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
		require.NoError(t, err)
		if err := s.Validate(v); err != nil {
			problems = append(problems, err.Error())
		}
	}
}

// Every example is valid, also one that is written in an older version of the API.
func TestExamplesAreValid(t *testing.T) {
	s := compiled(t)
	n := 0
	for _, pattern := range []string{"../../configs/*.yaml", "../../internal/engine/manifest/loader/testdata/good/*.yaml"} {
		files, err := filepath.Glob(pattern)
		require.NoError(t, err)
		for _, file := range files {
			n++
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			assert.Empty(t, validate(t, s, string(text)), file)
		}
	}
	assert.Greater(t, n, 35)
}

// Mistakes that the schema finds: what is wrong, and what the validator says of it.
func TestMistakesAreFound(t *testing.T) {
	s := compiled(t)
	text, err := os.ReadFile("../../configs/quickstart.yaml")
	require.NoError(t, err)
	eks, err := os.ReadFile("../../configs/eks.yaml")
	require.NoError(t, err)
	require.Empty(t, validate(t, s, string(text)))
	for _, c := range []struct{ file, old, new, says string }{
		{string(text), "instanceType:", "instancetype:", "additional properties 'instancetype' not allowed"},
		{string(text), "\nkind: AWSCluster\n", "\nkind: AWSCuster\n", "value must be one of"},
		{string(text), "\nkind: KubeadmConfigTemplate\n", "\nkind: KubeadmConfigTemplates\n", "value must be one of"},
		{string(text), "infrastructure.cluster.x-k8s.io/v1beta2\nkind: AWSCluster", "infrastructure.cluster.x-k8s.io/v1beta3\nkind: AWSCluster", "v1beta1"},
		{string(text), "replicas: 1", "replicas: one", "got string, want integer"},
		{string(text), "replicas: 1", "replica: 1", "additional properties 'replica' not allowed"},
		{string(text), "metadata:\n  name:", "metadata:\n  nam:", "additional properties 'nam' not allowed"},
		{string(text), "  region: us-east-1", "  region: us-east-1\n  network: {vpc: {ipamPool: {id: pool}}}", "'/spec/network/vpc/ipamPool': 'not' failed"},
		{string(text), "loadBalancerType: nlb", "loadBalancerType: gateway", "value must be one of"},
		{string(text), "kind: AWSCluster\nmetadata:", "kind: AWSCluster\nmetadata:\n  annotations: {clusterawsadm/flow-log: x}", "clusterawsadm/flow-log"},
		{string(eks), "kind: AWSManagedControlPlane\nmetadata:", "kind: AWSManagedControlPlane\nmetadata:\n  annotations: {clusterawsadm/zonal-shift: 'yes'}", "value must be one of"},
	} {
		wrong := strings.Replace(c.file, c.old, c.new, 1)
		require.NotEqual(t, c.file, wrong, c.old)
		found := validate(t, s, wrong)
		if assert.NotEmpty(t, found, c.new) {
			assert.Contains(t, strings.Join(found, "\n"), c.says, c.new)
		}
	}
	for _, right := range []string{
		"replicas: ${WORKER_MACHINE_COUNT}", // of a template
		"replicas:",                         // not set
	} {
		assert.Empty(t, validate(t, s, strings.Replace(string(text), "replicas: 1", right, 1)), right)
	}
	assert.Empty(t, validate(t, s, "apiVersion: example.com/v1\nkind: Cluster\nspec: {any: thing}\n"), "a kind of somebody else")
}
