package loader_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/internal/enginetest/manifests"
	"github.com/clusterawsadm/clusterawsadm/pkg/input"
)

// The test drops each line of a valid manifest, and replaces each value by an unusual
// one. Load must return a cluster or problems, and each problem must have a position in
// the file.
func TestMutations(t *testing.T) {
	odd := []string{
		`""`,
		"null",
		"[]",
		"{}",
		"-1",
		"yes",
		"[{}]",
		`{"": null}`,
		"9223372036854775808",
		"1.5",
		`[null]`,
		"2020-01-01",
		`"` + strings.Repeat("x", 300) + `"`,
	}
	for _, name := range []string{
		"testdata/good/quickstart", "testdata/good/machines", "testdata/good/eks", "testdata/good/pools", "../../../../configs/clusterclass",
	} {
		lines := strings.Split(manifests.Read(t, name+".yaml"), "\n")
		for i, line := range lines {
			before, after := strings.Join(lines[:i], "\n"), strings.Join(lines[i+1:], "\n")
			check(t, before+"\n"+after, fmt.Sprintf("%s without line %d", name, i+1))
			if field, _, ok := strings.Cut(line, ":"); ok {
				value := odd[i%len(odd)]
				check(t, before+"\n"+field+": "+value+"\n"+after, fmt.Sprintf("%s with line %d = %s", name, i+1, value))
			}
		}
	}
}

func check(t *testing.T, yaml, what string) {
	t.Helper()
	c, err := manifests.Load(t, yaml, input.LoadOptions{Region: "eu-west-1"})
	if err == nil {
		assert.NotNil(t, c.Object, what)
		assert.NotNil(t, c.Infra, what)
		return
	}
	var invalid *manifest.InvalidError
	require.ErrorAs(t, err, &invalid, what)
	for _, p := range invalid.Problems {
		assert.NotEmpty(t, p.What, what)
		assert.Equal(t, "cluster.yaml", p.File, "%s: %s", what, p)
		assert.Positive(t, p.Line, "%s: %s", what, p)
	}
}
