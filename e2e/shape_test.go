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

	"github.com/stretchr/testify/require"
)

// Limits above which TestShape prints a warning.
const (
	fileBudget     = 600
	functionBudget = 100
)

// TestShape reports the length of files and functions. With -v it prints the median, the
// 90th percentile, the longest, and warns about those that may do two things.
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
		if !strings.HasSuffix(path, "_test.go") {
			f, fs := measure(t, path)
			files, functions = append(files, f), append(functions, fs...)
		}
		return nil
	})
	require.NoError(t, err)
	report(t, "file", files, fileBudget)
	report(t, "function", functions, functionBudget)
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

// report prints the median, the 90th percentile and the longest, and warns about those
// above the limit.
func report(t *testing.T, kind string, all []measured, budget int) {
	t.Helper()
	require.NotEmpty(t, all)
	slices.SortFunc(all, func(a, b measured) int { return b.lines - a.lines })
	t.Logf("%d %ss: median %d lines, 90th percentile %d", len(all), kind, all[len(all)/2].lines, all[len(all)/10].lines)
	for n, m := range all {
		switch {
		case m.lines > budget:
			t.Logf("WARNING: %s %s has %d lines: does it do two things?", kind, m.what, m.lines)
		case n < 10:
			t.Logf("%5d  %s", m.lines, m.what)
		}
	}
}
