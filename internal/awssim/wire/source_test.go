package wire_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"go/ast"
	"go/constant"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// simulator is the import path of the simulated AWS.
const simulator = "github.com/clusterawsadm/clusterawsadm/internal/awssim"

// source is the code of the simulated AWS, with types.
type source struct {
	set      *token.FileSet
	info     *types.Info
	packages map[string]*types.Package // by import path
	files    []*ast.File
	bodies   map[*types.Func]ast.Node
	handlers map[string]ast.Node // by package of the SDK and operation: "ec2.CreateVpc"
	methods  map[string][]*types.Func
	reached  map[string]*reach // by operation, as far as it was asked for
}

// listed is a package as go list describes it.
type listed struct {
	ImportPath, Dir, Export string
	GoFiles                 []string
}

// readSource reads the code. Packages of others are read as the compiler has exported them.
func readSource(t *testing.T) *source {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-export", "-deps", "-json=ImportPath,Dir,Export,GoFiles", simulator+"/...").Output()
	require.NoError(t, err)
	s := &source{
		set:      token.NewFileSet(),
		packages: map[string]*types.Package{},
		bodies:   map[*types.Func]ast.Node{},
		handlers: map[string]ast.Node{},
		methods:  map[string][]*types.Func{},
		reached:  map[string]*reach{},
		info: &types.Info{
			Uses:      map[*ast.Ident]types.Object{},
			Defs:      map[*ast.Ident]types.Object{},
			Types:     map[ast.Expr]types.TypeAndValue{},
			Instances: map[*ast.Ident]types.Instance{},
		},
	}
	exports, own := map[string]string{}, []listed{}
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listed
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		if exports[p.ImportPath] = p.Export; strings.HasPrefix(p.ImportPath, simulator+"/") {
			own = append(own, p) // after what it imports
		}
	}
	others := importer.ForCompiler(s.set, "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })
	for _, p := range own {
		s.add(t, p, others)
	}
	for _, f := range s.files {
		ast.Inspect(f, func(n ast.Node) bool { s.register(n); return true })
	}
	return s
}

// importing imports the packages of the simulator from their code.
func (s *source) importing(others types.Importer) types.Importer {
	return importerFunc(func(path string) (*types.Package, error) {
		if p := s.packages[path]; p != nil {
			return p, nil
		}
		return others.Import(path)
	})
}

type importerFunc func(string) (*types.Package, error)

// Import implements types.Importer.
func (f importerFunc) Import(path string) (*types.Package, error) { return f(path) }

func (s *source) add(t *testing.T, p listed, others types.Importer) {
	t.Helper()
	var files []*ast.File
	for _, name := range p.GoFiles {
		f, err := parser.ParseFile(s.set, filepath.Join(p.Dir, name), nil, parser.ParseComments|parser.SkipObjectResolution)
		require.NoError(t, err)
		files = append(files, f)
	}
	pkg, err := (&types.Config{Importer: s.importing(others)}).Check(p.ImportPath, s.set, files, s.info)
	require.NoError(t, err)
	s.packages[p.ImportPath] = pkg
	s.files = append(s.files, files...)
	for _, f := range files {
		for _, d := range f.Decls {
			if d, ok := d.(*ast.FuncDecl); ok && d.Body != nil {
				f := s.info.Defs[d.Name].(*types.Func)
				s.bodies[f] = d.Body
				if d.Recv != nil {
					s.methods[d.Name.Name] = append(s.methods[d.Name.Name], f)
				}
			}
		}
	}
}

// register remembers the handlers of operations: functions that are passed to core.On and the like.
func (s *source) register(n ast.Node) {
	call, ok := n.(*ast.CallExpr)
	if !ok || !slices.Contains([]string{"On", "OnContext", "OnEverywhere", "everywhere"}, nameOf(call.Fun)) {
		return
	}
	for _, arg := range call.Args {
		signature, ok := s.info.Types[arg].Type.(*types.Signature)
		if !ok || signature.Results().Len() == 0 {
			continue
		}
		if output, ok := signature.Results().At(0).Type().(*types.Pointer); ok {
			if named, ok := output.Elem().(*types.Named); ok {
				s.handlers[path.Base(named.Obj().Pkg().Path())+"."+strings.TrimSuffix(named.Obj().Name(), "Output")] = arg
			}
		}
	}
}

// nameOf is the name of a called function.
func nameOf(f ast.Expr) string {
	switch f := f.(type) {
	case *ast.Ident:
		return f.Name
	case *ast.SelectorExpr:
		return f.Sel.Name
	}
	return ""
}

// reach is what a handler reaches.
type reach struct {
	codes  map[string]bool // of errors
	delays map[types.Object]bool
	late   map[string]bool // what is eventually consistent: "shown", "known"
	seen   map[types.Object]bool
}

// reaches follows the code from the handler of an operation.
func (s *source) reaches(operation string) *reach {
	if s.reached[operation] == nil {
		r := &reach{map[string]bool{}, map[types.Object]bool{}, map[string]bool{}, map[types.Object]bool{}}
		s.follow(r, s.handlers[operation])
		s.reached[operation] = r
	}
	return s.reached[operation]
}

func (s *source) follow(r *reach, from ast.Node) {
	ast.Inspect(from, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.KeyValueExpr:
			return s.field(r, n)
		case *ast.CallExpr:
			s.arguments(r, n)
		case *ast.AssignStmt:
			for i, to := range n.Lhs {
				if id, ok := to.(*ast.Ident); ok && id.Name == "code" && i < len(n.Rhs) {
					s.code(r, n.Rhs[i])
				}
			}
		case *ast.CompositeLit:
			s.exception(r, n)
		case *ast.Ident:
			s.use(r, n)
		}
		return true
	})
}

// field reads fields with error codes. The functions that a kind registers are not called.
func (s *source) field(r *reach, n *ast.KeyValueExpr) bool {
	key, ok := n.Key.(*ast.Ident)
	if !ok {
		return true
	}
	switch key.Name {
	case "simulate", "settle":
		return false
	case "missing":
		s.code(r, n.Value)
		if v := s.info.Types[n.Value].Value; v != nil { // as kind.notFound makes it
			r.codes[strings.Replace(strings.Replace(constant.StringVal(v), "NotFound", "Malformed", 1), "Group.", "GroupId.", 1)] = true
		}
	case "TooMany", "Duplicate", "Invalid":
		s.code(r, n.Value)
	}
	return true
}

// code adds a constant.
func (s *source) code(r *reach, e ast.Expr) {
	if v := s.info.Types[e].Value; v != nil && v.Kind() == constant.String {
		r.codes[constant.StringVal(v)] = true
	}
}

// arguments reads the constants that are passed as a parameter with the name "code".
func (s *source) arguments(r *reach, call *ast.CallExpr) {
	signature, ok := s.info.Types[call.Fun].Type.(*types.Signature)
	if !ok {
		return
	}
	for i := range min(signature.Params().Len(), len(call.Args)) {
		if signature.Params().At(i).Name() == "code" {
			s.code(r, call.Args[i])
		}
	}
}

// exception reads errors with a type of their own in the SDK.
func (s *source) exception(r *reach, n *ast.CompositeLit) {
	named, ok := s.info.Types[n].Type.(*types.Named)
	if !ok || named.Obj().Pkg() == nil || !strings.Contains(named.Obj().Pkg().Path(), "aws-sdk-go-v2/service") {
		return
	}
	if m, _, _ := types.LookupFieldOrMethod(types.NewPointer(named), true, named.Obj().Pkg(), "ErrorCode"); m != nil {
		r.codes[cmp.Or(s.override(n), named.Obj().Name())] = true
	}
}

// override returns the code that an error has instead of the name of its type; "" if it has none.
func (s *source) override(n *ast.CompositeLit) string {
	for _, e := range n.Elts {
		field, ok := e.(*ast.KeyValueExpr)
		if !ok {
			continue
		}
		name, _ := field.Key.(*ast.Ident)
		if call, ok := field.Value.(*ast.CallExpr); ok && name != nil && name.Name == "ErrorCodeOverride" && len(call.Args) == 1 {
			if v := s.info.Types[call.Args[0]].Value; v != nil {
				return constant.StringVal(v)
			}
		}
	}
	return ""
}

// use follows a name: a function, a delay, or a limit of what is shown.
func (s *source) use(r *reach, id *ast.Ident) {
	object := s.info.Uses[id]
	if object == nil || object.Pkg() == nil {
		return
	}
	switch o := object.(type) {
	case *types.Const:
		if isDuration(o) {
			r.delays[o] = true
		}
	case *types.Var:
		switch {
		case o.IsField() && o.Name() == "LagRefs":
			r.late["known"] = true
		case o.IsField() && o.Name() == "Lag":
			r.late["shown"] = true
		}
	case *types.Func:
		s.called(r, o.Origin(), s.info.Instances[id])
	}
}

// called follows a function. The method of an interface is that of each type; that of a kind is
// known from the type argument.
func (s *source) called(r *reach, f *types.Func, with types.Instance) {
	if arguments := with.TypeArgs; path.Base(f.Pkg().Path()) == "ec2" {
		for i := range arguments.Len() {
			o, _, _ := types.LookupFieldOrMethod(arguments.At(i), true, f.Pkg(), "kind")
			if k, ok := o.(*types.Func); ok {
				s.body(r, k.Origin())
			}
		}
	}
	signature := f.Signature()
	if signature.Recv() != nil && types.IsInterface(signature.Recv().Type()) {
		if f.Name() != "kind" && strings.HasPrefix(f.Pkg().Path(), simulator) {
			for _, m := range s.methods[f.Name()] {
				s.body(r, m)
			}
		}
		return
	}
	s.body(r, f)
}

func (s *source) body(r *reach, f *types.Func) {
	if b := s.bodies[f]; b != nil && !r.seen[f] && f.Name() != "kindOf" { // which knows all kinds
		r.seen[f] = true
		s.follow(r, b)
	}
}

func isDuration(c *types.Const) bool {
	return strings.HasPrefix(c.Pkg().Path(), simulator) && c.Type().String() == "time.Duration" && c.Parent() == c.Pkg().Scope()
}

// delay is a constant for how long something takes in AWS.
type delay struct {
	object  types.Object
	service string
	text    string // "how long a new VPC is pending"
	takes   time.Duration
}

// delays lists the constants whose comment says how long something is.
func (s *source) delays() (all []delay) {
	for _, f := range s.files {
		for _, d := range f.Decls {
			g, ok := d.(*ast.GenDecl)
			if !ok || g.Tok != token.CONST {
				continue
			}
			for _, spec := range g.Specs {
				v := spec.(*ast.ValueSpec)
				c := s.info.Defs[v.Names[0]].(*types.Const)
				text := strings.Join(strings.Fields(v.Doc.Text()), " ")
				if v.Doc == nil {
					text = strings.Join(strings.Fields(g.Doc.Text()), " ")
				}
				_, said, ok := strings.Cut(text, v.Names[0].Name+" is ")
				if !isDuration(c) || !ok {
					continue
				}
				n, _ := constant.Int64Val(c.Val())
				said, _, _ = strings.Cut(said, ". ")
				said, _, _ = strings.Cut(strings.TrimSuffix(said, "."), " (")
				all = append(all, delay{object: c, service: path.Base(c.Pkg().Path()), text: said, takes: time.Duration(n)})
			}
		}
	}
	return all
}

// reachedBy lists the operations that reach a constant.
func (s *source) reachedBy(o types.Object) (operations []string) {
	for _, name := range slices.Sorted(maps.Keys(s.handlers)) {
		if s.reaches(name).delays[o] {
			operations = append(operations, name)
		}
	}
	return operations
}
