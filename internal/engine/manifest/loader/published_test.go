package loader_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest/loader"
)

// TestFieldsInCompatibility checks the table of fields in docs/compatibility.md; -update writes it.
func TestFieldsInCompatibility(t *testing.T) {
	const begin, end = "<!-- fields -->\n", "<!-- end of fields -->\n"
	file := filepath.Join("..", "..", "..", "..", "docs", "compatibility.md")
	page, err := os.ReadFile(file)
	require.NoError(t, err)
	before, rest, ok := strings.Cut(string(page), begin)
	require.True(t, ok)
	_, after, ok := strings.Cut(rest, end)
	require.True(t, ok)
	want := before + begin + fieldTable() + end + after
	if flag.Lookup("update").Value.String() == "true" {
		require.NoError(t, os.WriteFile(file, []byte(want), 0o644))
		return
	}
	assert.Equal(t, want, string(page), "run the test with -update")
}

// fieldTable has a line for each field that is refused or ignored, with the kinds that have it.
func fieldTable() string {
	kinds := map[string][]string{}
	for _, k := range loader.PublishedKinds() {
		for _, n := range loader.FieldNotes(k.Name) {
			if !n.Refused && !n.Ignored {
				continue
			}
			effect := "no effect"
			if n.Refused {
				effect = "refused"
			}
			if n.Text != "" {
				effect += ": " + n.Text
			}
			line := fmt.Sprintf("`%s` | %s", ending(n.Path, n.Value), effect)
			if !slices.Contains(kinds[line], k.Name) {
				kinds[line] = append(kinds[line], k.Name)
			}
		}
	}
	var lines []string
	for line, all := range kinds {
		field, effect, _ := strings.Cut(line, " | ")
		lines = append(lines, fmt.Sprintf("| %s | %s | %s |\n", field, strings.Join(all, ", "), effect))
	}
	slices.Sort(lines)
	return "| Field | Kinds | Here |\n|---|---|---|\n" + strings.Join(lines, "")
}

// ending returns the last part of the path of a field, with its parent where the name alone is not enough.
func ending(path, value string) string {
	path = strings.TrimPrefix(path, "metadata.annotations.")
	if !strings.Contains(path, "/") {
		parts := strings.Split(path, ".")
		from := len(parts) - 1
		if parent := parts[max(from-1, 0)]; !slices.Contains([]string{"spec", "machineTemplate", "checks"}, parent) {
			from--
		}
		path = strings.Join(parts[from:], ".")
	}
	if value != "" {
		path += ": " + value
	}
	return path
}
