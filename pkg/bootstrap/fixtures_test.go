package bootstrap_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/clusterawsadm/clusterawsadm/pkg/bootstrap"
	"github.com/clusterawsadm/clusterawsadm/test/upstream"
)

// read reads YAML or JSON as plain values.
func read(t *testing.T, text []byte) (v any) {
	t.Helper()
	require.NoError(t, yaml.Unmarshal(text, &v))
	return v
}

// TestFixtures compares the templates of the configurations in testdata with upstream's
// fixtures.
func TestFixtures(t *testing.T) {
	folder := filepath.Join(upstream.Dir(t), "cmd", "clusterawsadm", "cloudformation", "bootstrap", "fixtures")
	fixtures, err := filepath.Glob(filepath.Join(folder, "*.yaml"))
	require.NoError(t, err)
	require.Len(t, fixtures, 14)
	for _, fixture := range fixtures {
		name := filepath.Base(fixture)
		t.Run(name, func(t *testing.T) {
			text, err := os.ReadFile(filepath.Join("testdata", "configs", name))
			require.NoError(t, err)
			c, err := bootstrap.Load(name, text, bootstrap.Options{Strict: true})
			require.NoError(t, err)
			if name == "with_eks_console.yaml" {
				// A program created the fixture. In a file, spec.eks enables this.
				require.True(t, c.Spec.Nodes.EC2ContainerRegistryReadOnly)
				c.Spec.Nodes.EC2ContainerRegistryReadOnly = false
			}
			got, err := c.Template().YAML()
			require.NoError(t, err)
			want, err := os.ReadFile(fixture)
			require.NoError(t, err)
			assert.Equal(t, read(t, want), read(t, got))
			assert.NotRegexp(t, `(?m)Version: \d`, string(got), "an unquoted date")
		})
	}
}
