package e2e

import (
	"encoding/json"
	"errors"
	"go/importer"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestPublicAPI checks the packages that other programs import: no exported name of pkg/
// has a type of an internal package in its signature, its fields or its methods, nor in
// those of the types that it refers to.
func TestPublicAPI(t *testing.T) {
	load := compiled(t)
	walked := 0
	for _, p := range packages(t) {
		if !strings.HasPrefix(p.ImportPath, module+"/pkg/") {
			continue
		}
		pkg, err := load.Import(p.ImportPath)
		require.NoError(t, err)
		a := api{t: t, seen: map[types.Type]bool{}}
		for _, name := range pkg.Scope().Names() {
			if o := pkg.Scope().Lookup(name); o.Exported() {
				walked++
				a.visit(pkg.Name()+"."+name, o.Type())
			}
		}
	}
	assert.Greater(t, walked, 100)
}

// compiled imports packages from the build cache.
func compiled(t *testing.T) types.Importer {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-export", "-deps", "-json=ImportPath,Export", "./pkg/...")
	cmd.Dir = ".."
	out, err := cmd.Output()
	require.NoError(t, err)
	files := map[string]string{}
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p struct{ ImportPath, Export string }
		err := d.Decode(&p)
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		files[p.ImportPath] = p.Export
	}
	return importer.ForCompiler(token.NewFileSet(), "gc", func(path string) (io.ReadCloser, error) { return os.Open(files[path]) })
}

// api visits the exported types of a package.
type api struct {
	t    *testing.T
	seen map[types.Type]bool
}

// visit checks a type, and all types that it refers to. The trail is the path to it.
func (a api) visit(trail string, t types.Type) {
	if a.seen[t] {
		return
	}
	a.seen[t] = true
	switch t := t.(type) {
	case *types.Alias:
		a.named(trail, t.Obj(), t.TypeArgs())
		a.visit(trail, types.Unalias(t))
	case *types.Named:
		a.named(trail, t.Obj(), t.TypeArgs())
		if ours(t.Obj().Pkg()) {
			a.visit(trail, t.Underlying())
			for method := range types.NewMethodSet(types.NewPointer(t)).Methods() {
				if method.Obj().Exported() {
					a.visit(trail+"."+method.Obj().Name(), method.Type())
				}
			}
		}
	case *types.Signature:
		a.visit(trail, t.Params())
		a.visit(trail, t.Results())
	case *types.Tuple:
		for v := range t.Variables() {
			a.visit(trail, v.Type())
		}
	case *types.Struct:
		for f := range t.Fields() {
			if f.Exported() {
				a.visit(trail+"."+f.Name(), f.Type())
			}
		}
	case *types.Interface:
		for m := range t.Methods() {
			a.visit(trail+"."+m.Name(), m.Type())
		}
	case *types.Map:
		a.visit(trail, t.Key())
		a.visit(trail, t.Elem())
	case interface{ Elem() types.Type }: // a pointer, a slice, an array, a channel
		a.visit(trail, t.Elem())
	}
}

// named checks a named type.
func (a api) named(trail string, name *types.TypeName, arguments *types.TypeList) {
	if ours(name.Pkg()) {
		assert.NotContains(a.t, name.Pkg().Path(), "/internal/", "%s is of type %s, which no other program can import", trail, name.Name())
	}
	for argument := range arguments.Types() {
		a.visit(trail, argument)
	}
}

func ours(p *types.Package) bool { return p != nil && strings.HasPrefix(p.Path(), module+"/") }
