package rules_test

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest/loader"
	"github.com/clusterawsadm/clusterawsadm/pkg/input"
)

// edit replaces a part of the YAML, which must exist.
func edit(t *testing.T, yaml string, pairs ...string) string {
	t.Helper()
	for i := 0; i < len(pairs); i += 2 {
		require.Contains(t, yaml, pairs[i])
		yaml = strings.Replace(yaml, pairs[i], pairs[i+1], 1)
	}
	return yaml
}

func read(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(data)
}

func load(t *testing.T, yaml string, o input.LoadOptions) (*manifest.Cluster, error) {
	t.Helper()
	return loader.Load([]input.Source{{Name: "cluster.yaml", Data: []byte(yaml)}}, o)
}

func mustLoad(t *testing.T, yaml string, o input.LoadOptions) *manifest.Cluster {
	t.Helper()
	c, err := load(t, yaml, o)
	require.NoError(t, err)
	return c
}

func warnings(c *manifest.Cluster) []string {
	lines := []string{}
	for _, w := range c.Warnings {
		lines = append(lines, w.String())
	}
	return lines
}
