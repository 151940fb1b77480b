package loader_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/internal/enginetest/manifests"
	"github.com/clusterawsadm/clusterawsadm/pkg/input"
)

// Inputs that take much memory or time, or overflow the stack, are problems.
func TestLimits(t *testing.T) {
	long := func(string) (string, bool) { return strings.Repeat("x", 1<<20), true }
	for _, c := range []struct {
		name, yaml string
		lookup     func(string) (string, bool)
		want       string
	}{
		{"defaults in defaults", "a: " + strings.Repeat("${A:-", 10_000) + strings.Repeat("}", 10_000), nil, "the default of A is nested too deeply — nest at most 20 defaults"},
		{"long values", strings.Repeat("a: ${A}\n", 100), long, "cluster.yaml:16: the input is larger than 16 MiB with the values of its variables — use shorter values"},
		{"many documents", strings.Repeat("a: b\n---\n", 10_002), nil, "cluster.yaml:20000: there are more than 10000 documents"},
		{"many problems", strings.Repeat("- a\n---\n", 5_000), nil, "there are 4000 more problems — fix the others first"},
		{"many uses of a variable", strings.Repeat("a: ${A}\n", 10_000), nil, "the variable A is not set; it is also used in lines 2, 3, 4"},
	} {
		_, err := manifests.Load(t, c.yaml, input.LoadOptions{Lookup: c.lookup, Substitute: input.SubstituteAll})
		require.ErrorAs(t, err, new(*manifest.InvalidError), c.name)
		assert.Contains(t, err.Error(), c.want, c.name)
		assert.LessOrEqual(t, strings.Count(err.Error(), "\n"), 1000, c.name)
	}
}
