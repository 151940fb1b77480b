package topology_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// No Find and no Diff assigns to a field of its resource, nor does a method that they
// call on it. TestReadingChangesNothing of internal/engine/look checks the same at run time, for
// the examples.
func TestFindAndDiffAssignNothing(t *testing.T) {
	methods := map[string]*ast.FuncDecl{} // "dir.Type.Method"
	require.NoError(t, filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv != nil {
				methods[filepath.Dir(path)+"."+receiverType(f)+"."+f.Name.Name] = f
			}
		}
		return nil
	}))
	looks := 0
	for _, name := range slices.Sorted(maps.Keys(methods)) {
		method := name[strings.LastIndex(name, ".")+1:]
		owner := strings.TrimSuffix(name, "."+method)
		if (method != "Find" && method != "Diff") || methods[owner+".Needs"] == nil {
			continue
		}
		looks++
		seen := map[string]bool{}
		for queue := []string{name}; len(queue) > 0; queue = queue[1:] {
			f := methods[queue[0]]
			if f == nil || seen[queue[0]] {
				continue
			}
			seen[queue[0]] = true
			assigned, called := usesOfReceiver(f)
			assert.Empty(t, assigned, "%s, which %s calls, assigns to its receiver", queue[0], name)
			for _, m := range called {
				queue = append(queue, owner+"."+m)
			}
		}
	}
	require.Greater(t, looks, 70, "the resources of internal/engine are looked at")
}

// receiverType is the name of the receiver's type.
func receiverType(f *ast.FuncDecl) string {
	x := f.Recv.List[0].Type
	for {
		switch y := x.(type) {
		case *ast.StarExpr:
			x = y.X
		case *ast.IndexExpr:
			x = y.X
		case *ast.Ident:
			return y.Name
		default:
			return ""
		}
	}
}

// usesOfReceiver lists the fields of the receiver that a method assigns to, and the
// methods that it calls on it.
func usesOfReceiver(f *ast.FuncDecl) (assigned, called []string) {
	if len(f.Recv.List[0].Names) == 0 {
		return nil, nil
	}
	receiver := f.Recv.List[0].Names[0].Name
	note := func(x ast.Expr) {
		if field := fieldOf(receiver, x); field != "" {
			assigned = append(assigned, field)
		}
	}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.AssignStmt:
			for _, x := range n.Lhs {
				note(x)
			}
		case *ast.IncDecStmt:
			note(n.X)
		case *ast.CallExpr:
			if s, ok := n.Fun.(*ast.SelectorExpr); ok {
				if x, ok := s.X.(*ast.Ident); ok && x.Name == receiver {
					called = append(called, s.Sel.Name)
				}
			}
		}
		return true
	})
	return assigned, called
}

// fieldOf is the field of the receiver that an expression starts with; "" for none.
func fieldOf(receiver string, x ast.Expr) string {
	for {
		switch y := x.(type) {
		case *ast.SelectorExpr:
			if id, ok := y.X.(*ast.Ident); ok && id.Name == receiver {
				return y.Sel.Name
			}
			x = y.X
		case *ast.IndexExpr:
			x = y.X
		case *ast.StarExpr:
			x = y.X
		case *ast.ParenExpr:
			x = y.X
		default:
			return ""
		}
	}
}
