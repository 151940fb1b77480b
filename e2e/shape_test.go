package e2e

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Budgets, in lines.
const (
	fileBudget     = 400
	functionBudget = 70
)

// TestShape keeps files and functions short enough to be read in one go. Run
// with -v it shows the longest.
func TestShape(t *testing.T) {
	var files, functions []measured
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && path != ".." && strings.HasPrefix(d.Name(), ".") {
			return fs.SkipDir
		}
		if !strings.HasSuffix(path, ".go") {
			return nil
		}
		f, fs := measure(t, path)
		files = append(files, f)
		if !strings.HasSuffix(path, "_test.go") && !strings.Contains(path, "internal/awssim/") {
			functions = append(functions, fs...)
		}
		return nil
	})
	require.NoError(t, err)
	over(t, "files", files, func(m measured) bool {
		return m.lines > fileBudget && !strings.HasSuffix(m.what, "_test.go")
	})
	over(t, "functions", functions, func(m measured) bool { return m.lines > functionBudget })
}

type measured struct {
	what  string
	lines int
}

func measure(t *testing.T, path string) (file measured, functions []measured) {
	t.Helper()
	set := token.NewFileSet()
	parsed, err := parser.ParseFile(set, path, nil, parser.SkipObjectResolution)
	require.NoError(t, err)
	file = measured{filepath.ToSlash(strings.TrimPrefix(path, "../")), set.File(parsed.Pos()).LineCount()}
	for _, d := range parsed.Decls {
		if f, ok := d.(*ast.FuncDecl); ok && f.Body != nil {
			functions = append(functions, measured{
				fmt.Sprintf("%s: %s", file.what, f.Name.Name),
				set.Position(f.End()).Line - set.Position(f.Pos()).Line + 1,
			})
		}
	}
	return file, functions
}

func over(t *testing.T, kind string, all []measured, tooLong func(measured) bool) {
	t.Helper()
	slices.SortFunc(all, func(a, b measured) int { return b.lines - a.lines })
	for _, m := range all[:min(10, len(all))] {
		t.Logf("%5d  %s", m.lines, m.what)
	}
	for _, m := range all {
		assert.False(t, tooLong(m), "%s: %s has %d lines", kind, m.what, m.lines)
	}
}
