package e2e

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestCompatibility checks that each line of docs/compatibility.md names existing tests.
func TestCompatibility(t *testing.T) {
	exists := tests(t)
	page, err := os.ReadFile(filepath.Join("..", "docs", "compatibility.md"))
	require.NoError(t, err)
	text, _, generated := strings.Cut(string(page), "<!-- fields -->") // TestFieldsInCompatibility checks the rest
	require.True(t, generated)
	rows := 0
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, "|") || strings.HasPrefix(line, "|-") || strings.HasPrefix(line, "| Upstream |") {
			continue
		}
		rows++
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), " | ")
		for _, name := range strings.Split(cells[len(cells)-1], ",") {
			assert.True(t, exists[strings.TrimSpace(name)], "there is no test %q: %s", name, line)
		}
	}
	assert.Greater(t, rows, 50)
}

// tests lists all tests of the repository.
func tests(t *testing.T) map[string]bool {
	t.Helper()
	all := map[string]bool{}
	declared := regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	for _, root := range []string{"../e2e", "../internal", "../pkg", "../test"} {
		readGo(t, root, func(path, text string) {
			if strings.HasSuffix(path, "_test.go") {
				for _, m := range declared.FindAllStringSubmatch(text, -1) {
					all[m[1]] = true
				}
			}
		})
	}
	return all
}

// readGo calls found with the path and the text of each Go file in a folder.
func readGo(t *testing.T, folder string, found func(path, text string)) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(folder, func(path string, _ os.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") {
			return err
		}
		text, err := os.ReadFile(path)
		found(path, string(text))
		return err
	}))
}
