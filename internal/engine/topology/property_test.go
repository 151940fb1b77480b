package topology_test

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest/loader"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/topology"
	"github.com/clusterawsadm/clusterawsadm/pkg/input"
)

// mutate changes a few lines of a manifest: it deletes one, duplicates one, indents one
// in or out, swaps two, or replaces a value with another line's or an unusual one.
func mutate(r *rand.Rand, text string) string {
	lines := strings.Split(text, "\n")
	odd := []string{"0", "-1", "''", "null", "true", "[]", "{}", "10.0.0.0/28", "99999999999", "us-east-1z", "nlb", "disabled", "a b", "{ipv6: {}}"}
	value := func(line string) string {
		_, v, ok := strings.Cut(line, ": ")
		if !ok || r.IntN(2) == 0 {
			return odd[r.IntN(len(odd))]
		}
		return v
	}
	for range 1 + r.IntN(3) {
		i, j := r.IntN(len(lines)), r.IntN(len(lines))
		switch r.IntN(6) {
		case 0:
			lines = append(lines[:i:i], lines[i+1:]...)
		case 1:
			lines = append(lines[:i:i], append([]string{lines[j]}, lines[i:]...)...)
		case 2:
			lines[i], lines[j] = lines[j], lines[i]
		default:
			if key, _, ok := strings.Cut(lines[i], ": "); ok {
				lines[i] = key + ": " + value(lines[j])
			}
		}
		if len(lines) == 0 {
			return ""
		}
	}
	return strings.Join(lines, "\n")
}

// Build does not panic on any valid manifest. It may return an error. A graph panics on a
// missing edge or a duplicate ID.
func TestWhateverValidatesBuilds(t *testing.T) {
	files, err := filepath.Glob("../../../configs/*.yaml")
	require.NoError(t, err)
	r := rand.New(rand.NewPCG(1, 2))
	built := 0
	for _, file := range files {
		raw, err := os.ReadFile(file)
		require.NoError(t, err)
		for range 60 {
			text := mutate(r, string(raw))
			m, err := loader.Load(
				[]input.Source{{Name: filepath.Base(file), Data: []byte(text)}},
				input.LoadOptions{Lookup: func(string) (string, bool) { return "", false }},
			)
			if err != nil {
				continue
			}
			built++
			for _, inv := range []topology.Inventory{{}, inventory(m)} {
				require.NotPanics(t, func() { _, _ = topology.Build(m, inv, topology.Options{}) }, "%s", text)
			}
		}
	}
	require.Greater(t, built, 100, "mutations that never validate prove nothing")
}
