package bootstrap_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	"github.com/clusterawsadm/clusterawsadm/pkg/bootstrap"
	"github.com/clusterawsadm/clusterawsadm/test/iamconfig"
)

// plain converts a value to decoded JSON.
func plain(tb assert.TestingT, v any) (out any) {
	text, err := json.Marshal(v)
	if assert.NoError(tb, err) {
		assert.NoError(tb, json.Unmarshal(text, &out))
	}
	return out
}

func load(tb require.TestingT, text []byte) *bootstrap.Config {
	c, err := bootstrap.Load("iam.yaml", text, bootstrap.Options{})
	require.NoError(tb, err)
	return c
}

func rendered(tb require.TestingT, c *bootstrap.Config) (v any) {
	text, err := c.Template().YAML()
	require.NoError(tb, err)
	require.NoError(tb, yaml.Unmarshal(text, &v))
	return v
}

// expected returns the template of the model for a file, with the one intended
// difference: in China, the policies of two roles have other ARNs than in the model and
// in upstream.
func expected(tb require.TestingT, all map[string][]fact, configuration any) any {
	m := newModel(all, configuration.(object))
	want := plain(tb, m.template())
	if m.partition != "aws-cn" {
		return want
	}
	for _, id := range []string{"AWSIAMRoleEKSNodegroup", "AWSIAMRoleEKSFargate"} {
		arns := items(want, "Resources", id, "Properties", "ManagedPolicyArns")
		for i := range arns {
			name, isUsual := strings.CutPrefix(asText(arns[i]), "arn:aws:iam::aws:policy/AmazonE")
			if isUsual {
				arns[i] = "arn:aws-cn:iam::aws:policy/AmazonE" + name
			}
		}
	}
	return want
}

func asText(v any) string { s, _ := v.(string); return s }

// TestTemplate compares the templates of many configurations with the model.
func TestTemplate(t *testing.T) {
	all := facts(t)
	compared, old := 0, 0
	for range 4 { // times a hundred
		rapid.Check(t, func(t *rapid.T) {
			configuration, text := iamconfig.Draw(t)
			assert.Empty(t, cmp.Diff(expected(t, all, plain(t, configuration)), rendered(t, load(t, text))), string(text))
			compared++
			if strings.HasSuffix(str(configuration, "apiVersion"), "alpha1") {
				old++
			}
		})
	}
	t.Logf("%d configurations compared, %d of them v1alpha1", compared, old)
	assert.GreaterOrEqual(t, compared, 300)
	assert.Greater(t, old, compared/10)
}

// TestTemplateOfConfigurations does the same with the configurations in testdata.
func TestTemplateOfConfigurations(t *testing.T) {
	all := facts(t)
	files, err := filepath.Glob("testdata/configs/*.yaml")
	require.NoError(t, err)
	require.Len(t, files, 14)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		assert.Empty(t, cmp.Diff(expected(t, all, read(t, text)), rendered(t, load(t, text))), file)
	}
	assert.Empty(t, cmp.Diff(expected(t, all, object{}), rendered(t, bootstrap.Default())))
}

// TestPrintedConfigurationMeansTheSame: the output of print-config can replace its input.
func TestPrintedConfigurationMeansTheSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		_, file := iamconfig.Draw(t)
		first := load(t, file)
		text, err := first.YAML()
		require.NoError(t, err)
		again, err := bootstrap.Load("again.yaml", text, bootstrap.Options{})
		require.NoError(t, err, string(text))
		second, err := again.YAML()
		require.NoError(t, err)
		assert.Equal(t, string(text), string(second))
		assert.Empty(t, cmp.Diff(rendered(t, first), rendered(t, again)), string(text))
	})
}

// TestChina: the policies of all roles are in the partition.
func TestChina(t *testing.T) {
	c := load(t, []byte(head+"spec: {partition: aws-cn, eks: {managedMachinePool: {}, fargate: {}}}\n"))
	text, err := c.Template().YAML()
	require.NoError(t, err)
	assert.NotContains(t, string(text), "arn:aws:")
	assert.Equal(t, list{"arn:aws-cn:iam::aws:policy/AmazonEKSFargatePodExecutionRolePolicy"},
		items(rendered(t, c), "Resources", "AWSIAMRoleEKSFargate", "Properties", "ManagedPolicyArns"))
	assert.Len(t, items(rendered(t, c), "Resources", "AWSIAMRoleEKSNodegroup", "Properties", "ManagedPolicyArns"), 3)
}
