package yamldoc_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/enginetest/manifests"
	"github.com/clusterawsadm/clusterawsadm/pkg/input"
)

// value loads a manifest with an expression in a ConfigMap, and returns its value.
func value(t *testing.T, expression string) (string, error) {
	t.Helper()
	yaml := manifests.Read(
		t,
		"../loader/testdata/good/quickstart.yaml",
	) + "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: probe, namespace: prod}\ndata:\n  x: |-\n    " + expression + "\n"
	c, err := manifests.Load(
		t,
		yaml,
		input.LoadOptions{Set: manifests.Lookup(map[string]string{"NAME": "Production", "EMPTY": "", "lower": "abc", "LINES": "a\n    b"})},
	)
	if err != nil {
		return "", err
	}
	return c.ConfigMaps["probe"].Data["x"], nil
}

func TestVariables(t *testing.T) {
	for _, tt := range []struct{ expression, want string }{
		{"${NAME}", "Production"},
		{"${ NAME }", "Production"},
		{"a-${NAME}-${lower}", "a-Production-abc"},
		{"${EMPTY}", ""},
		{"${NONE:-default}", "default"},
		{"${NONE:=v1.32.5}", "v1.32.5"},
		{"${NONE=x}", "x"},
		{"${NONE:-}", ""},
		{"${EMPTY:-default}", "default"},
		{"${NAME:-default}", "Production"},
		{"${NONE:-${NAME}-x}", "Production-x"},
		{"${NAME:0:4}", "Prod"},
		{"${NAME:4}", "uction"},
		{"${NAME:0:54}", "Production"},
		{"${NAME:20:3}", ""},
		{"${#NAME}", "10"},
		{"${NAME^^}${NAME,,}${lower^}${NAME,}", "PRODUCTIONproductionAbcproduction"},
		{"$${NAME}", "${NAME}"},
		{"$${NAME%%.*} $HOME $(id) $$", "${NAME%%.*} $HOME $(id) $$"},
		{"${LINES}", "a\nb"},
		{"# in a block scalar ${NAME} is content", "# in a block scalar Production is content"},
	} {
		t.Run(tt.expression, func(t *testing.T) {
			got, err := value(t, tt.expression)
			require.NoError(t, err)
			assert.Equal(t, tt.want, got)
		})
	}
}

func TestInvalidVariables(t *testing.T) {
	for expression, want := range map[string]string{
		"${NAME%%.*}": "the variable expression ${NAME%%.*} is not supported — use ${NAME}, ${NAME:-default} or ${NAME:offset:length}, or write $${NAME%%.*} for a literal ${…} on the node",
		"${1}":        "the variable expression ${1} is not supported",
		"${NAME:x}":   "the variable expression ${NAME:x} is not supported",
		"${NAME":      `"${NAME" has no closing brace — close it with }, or write $${ for a literal ${`,
		"${NONE}":     "the variable NONE is not set — set it with --set NONE=VALUE, or write $${NONE} to keep ${NONE}",
	} {
		_, err := value(t, expression)
		require.Error(t, err, expression)
		assert.Contains(t, err.Error(), want)
	}
}

// All variables without values are reported at once, each with all its positions,
// together with unknown fields.
func TestMissingVariables(t *testing.T) {
	_, err := manifests.Load(t, `apiVersion: cluster.x-k8s.io/v1beta2
kind: Cluster
metadata:
  name: ${CLUSTER_NAME} # and not ${COMMENTED}
spec:
  # infrastructureRef: ${COMMENTED}
  infrastructureReff:
    name: "${CLUSTER_NAME}-${SUFFIX}"
  paused: ${PAUSED}
`, input.LoadOptions{})
	require.Error(t, err)
	assert.Equal(t, strings.Join([]string{
		"cluster.yaml:4: the variable CLUSTER_NAME is not set; it is also used in line 8 — set it in the environment or with --set CLUSTER_NAME=VALUE, or write $${CLUSTER_NAME} to keep ${CLUSTER_NAME}",
		`cluster.yaml:7: Cluster/CLUSTER_NAME spec.infrastructureReff: the field does not exist — did you mean "infrastructureRef"?`,
		"cluster.yaml:8: the variable SUFFIX is not set — set it in the environment or with --set SUFFIX=VALUE, or write $${SUFFIX} to keep ${SUFFIX}",
		"cluster.yaml:9: the variable PAUSED is not set — set it in the environment or with --set PAUSED=VALUE, or write $${PAUSED} to keep ${PAUSED}",
	}, "\n"), err.Error())
}

// A value with several lines does not change the line numbers after it.
func TestLinesAfterLongValues(t *testing.T) {
	yaml := strings.Replace(manifests.Read(t, "../loader/testdata/good/quickstart.yaml"), "  labels:\n", "  labels:\n    ${LABELS}\n", 1)
	c := manifests.MustLoad(t, yaml, input.LoadOptions{Lookup: manifests.Lookup(map[string]string{"LABELS": "a: x\n    b: x\n    c: x"})})
	assert.Equal(t, "x", c.Object.Labels["c"])
	assert.Equal(t, 13, c.At("Cluster/quick", "metadata.labels.c").Line)
	assert.Equal(t, 34, c.At("AWSCluster/quick", "spec.region").Line)
}

// Only comments are not expanded: # inside quotes, words and block scalars is not a
// comment, and a quote in the middle of a word does not begin a string.
func TestComments(t *testing.T) {
	for line, want := range map[string]string{
		`a: b # ${X}`:                           "",
		`# ${X}`:                                "",
		`a: "b # ${X}"`:                         "X",
		`a: 'it''s # ${X}'`:                     "X",
		`a: "\" # ${X}"`:                        "X",
		`a: it's # ${X}`:                        "",
		`a: b#${X}`:                             "X",
		"a: |\n  # ${X}":                        "X",
		"a: |\n  b\n# ${X}":                     "",
		"a:\n- b: |-\n    x\n  c: d # ${X}":     "",
		"a:\n- >2\n    # ${X}":                  "X",
		"- - a: |\n      # ${X}\n    b: # ${Y}": "X",
		"a: \"b\n  # ${X}\"":                    "X",
		"a: b |\n# ${X}":                        "",
		"--- |\n # ${X}":                        "X",
	} {
		_, err := manifests.Load(t, line, input.LoadOptions{Substitute: input.SubstituteAll})
		require.Error(t, err)
		if want == "" {
			assert.NotContains(t, err.Error(), "variable", line)
			continue
		}
		assert.Contains(t, err.Error(), "the variable "+want+" is not set", line)
		assert.NotContains(t, err.Error(), "the variable Y", line)
	}
}
