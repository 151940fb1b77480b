package wire_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	"github.com/clusterawsadm/clusterawsadm/internal/awssim/wire/model"
	_ "github.com/clusterawsadm/clusterawsadm/internal/golden" // the flag -update
)

// TestPage checks the list of operations in docs/simulator.md. With -update it is written.
func TestPage(t *testing.T) {
	const begin, end = "<!-- operations -->\n", "<!-- end of operations -->\n"
	file := filepath.Join("..", "..", "..", "docs", "simulator.md")
	page, err := os.ReadFile(file)
	require.NoError(t, err)
	before, rest, ok := strings.Cut(string(page), begin)
	require.True(t, ok)
	_, after, ok := strings.Cut(rest, end)
	require.True(t, ok)
	want := before + begin + operations(t) + end + after
	if flag.Lookup("update").Value.String() == "true" {
		require.NoError(t, os.WriteFile(file, []byte(want), 0o644))
		return
	}
	assert.Equal(t, want, string(page), "run the test with -update")
}

// operations is a table for each service.
func operations(t *testing.T) string {
	t.Helper()
	models, err := model.Load()
	require.NoError(t, err)
	var b strings.Builder
	service := ""
	for _, op := range awssim.New(awssim.Options{}).Process().Operations() {
		if op.Package != service {
			service = op.Package
			fmt.Fprintf(&b, "\n### %s\n\n| Operation | Parameters |\n|---|---|\n", models[service].Metadata.ID)
		}
		fmt.Fprintf(&b, "| %s | %s |\n", op.Name, strings.Join(op.Fields, ", "))
	}
	return b.String() + "\n"
}
