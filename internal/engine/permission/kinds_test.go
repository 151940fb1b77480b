package permission_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestKindsDeclareTheirCalls compares the calls in a file that declares kinds with the
// actions that these declare, service by service. Calls of services that no kind in the
// file declares an action of are left to TestExactlyWhatTheEngineCalls, such as those of
// Parameter Store where a bucket is registered.
func TestKindsDeclareTheirCalls(t *testing.T) {
	files, err := filepath.Glob("../aws/*/*.go")
	require.NoError(t, err)
	kinds := 0
	for _, path := range files {
		declared := declaredActions(t, path)
		if len(declared) == 0 {
			continue
		}
		kinds++
		found := map[call]string{}
		collect(t, path, found)
		for c, at := range found {
			prefix := services()[c.service].prefix + ":"
			if !slices.ContainsFunc(declared, func(action string) bool { return strings.HasPrefix(action, prefix) }) {
				continue
			}
			for _, action := range needs(c) {
				if strings.HasPrefix(action, prefix) {
					assert.Contains(t, declared, action, "%s calls %s, and no kind in the file declares the action", at, c.operation)
				}
			}
		}
	}
	require.Greater(t, kinds, 25, "the declarations are not found any more")
}

// declaredActions lists the strings in the fields ReadActions and Actions of the kinds that
// a file declares.
func declaredActions(t *testing.T, path string) (actions []string) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
	require.NoError(t, err)
	ast.Inspect(file, func(n ast.Node) bool {
		field, ok := n.(*ast.KeyValueExpr)
		if !ok {
			return true
		}
		if key, ok := field.Key.(*ast.Ident); !ok || key.Name != "ReadActions" && key.Name != "Actions" {
			return true
		}
		ast.Inspect(field.Value, func(n ast.Node) bool {
			if s, ok := n.(*ast.BasicLit); ok && s.Kind == token.STRING {
				action, err := strconv.Unquote(s.Value)
				require.NoError(t, err)
				actions = append(actions, action)
			}
			return true
		})
		return false
	})
	return actions
}
