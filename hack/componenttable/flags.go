package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// flagFolders lists, for each component, the folders and files whose flags it adds. A flag that
// only another component adds does no harm: the table then permits more.
func flagFolders() map[string][]string {
	const (
		base    = "k8s.io/component-base/"
		server  = "k8s.io/apiserver/pkg/server/options"
		manager = "k8s.io/controller-manager/options"
		main    = "k8s.io/kubernetes/"
	)
	common := []string{
		base + "cli/globalflag",
		base + "logs",
		base + "logs/api/v1",
		base + "metrics",
		base + "featuregate",
		base + "version/verflag",
		base + "zpages/features",
		base + "compatibility",
		base + "version",
		"k8s.io/client-go/util/feature",
		"k8s.io/apiserver/pkg/util/compatibility",
	}
	secured := []string{
		base + "config/options",
		server + "/serving.go",
		server + "/serving_with_loopback.go",
		server + "/authentication.go",
		server + "/authorization.go",
	}
	join := func(lists ...[]string) (all []string) {
		for _, l := range lists {
			all = append(all, l...)
		}
		return all
	}
	return map[string][]string{
		"kube-apiserver": join(common, []string{
			server + "/admission.go",
			server + "/api_enablement.go",
			server + "/audit.go",
			server + "/egress_selector.go",
			server + "/etcd.go",
			server + "/feature.go",
			server + "/server_run_options.go",
			server + "/serving.go",
			server + "/serving_with_loopback.go",
			server + "/tracing.go",
			server + "/authentication.go",
			server + "/encryptionconfig",
			main + "plugin/pkg/admission/defaulttolerationseconds",
			main + "cmd/kube-apiserver/app/options",
			main + "pkg/controlplane/apiserver/options",
			main + "pkg/kubeapiserver/options",
			main + "pkg/cloudprovider/providers",
			main + "cmd/kube-apiserver/app",
			"k8s.io/kube-aggregator/pkg/apiserver",
			main + "pkg/serviceaccount",
		}),
		"kube-controller-manager": join(common, secured, []string{
			main + "cmd/kube-controller-manager/app/options",
			manager,
			"k8s.io/cloud-provider/options",
			"k8s.io/controller-manager/pkg/leadermigration/options",
			"k8s.io/cloud-provider/controllers/service/config",
			"k8s.io/cloud-provider/names",
			server + "/deprecated_insecure_serving.go",
			main + "pkg/kubeapiserver/options/cloudprovider.go",
		}),
		"kube-scheduler": join(
			common,
			secured,
			[]string{main + "cmd/kube-scheduler/app/options", main + "cmd/kube-scheduler/app", server + "/deprecated_insecure_serving.go"},
		),
		"kubelet": join(
			common,
			[]string{
				main + "cmd/kubelet/app/options",
				main + "pkg/credentialprovider",
				main + "pkg/credentialprovider/plugin",
				main + "cmd/kubelet/app",
				main + "pkg/kubelet/config",
			},
		),
	}
}

// marks of flags, by the method that adds them: the form of their values.
func markOf(method string) string {
	switch kind := regexp.MustCompile(`(P|Var|VarP)$`).ReplaceAllString(method, ""); {
	case kind == "Bool":
		return "b"
	case regexp.MustCompile(`^U?[iI]nt(8|16|32|64)?$`).MatchString(kind):
		return "i"
	case strings.HasPrefix(kind, "Float"):
		return "f"
	case kind == "Duration":
		return "d"
	}
	return "s"
}

// flags returns the names of the flags in folders or files, with the form of their values.
func (m modules) flags(places []string) (map[string]string, error) {
	found := map[string]string{}
	err := m.inspect(places, func(n ast.Node, texts map[string]string) bool {
		if call, ok := n.(*ast.CallExpr); ok {
			for _, name := range flagNames(call, texts) {
				found[name] = markOf(methodOf(call))
			}
		}
		return true
	})
	return found, err
}

// inspect walks the syntax trees of folders or files, as ast.Inspect does. visit also gets the texts of the
// constants in the folder.
func (m modules) inspect(places []string, visit func(n ast.Node, texts map[string]string) bool) error {
	for _, place := range places {
		files, err := m.parse(place)
		if err != nil {
			return err
		}
		texts := constants(files)
		for _, f := range files {
			ast.Inspect(f, func(n ast.Node) bool { return visit(n, texts) })
		}
	}
	return nil
}

// dir returns the folder or file of an import path.
func (m modules) dir(place string) string {
	for module, dir := range m {
		if rest, ok := strings.CutPrefix(place, module+"/"); ok {
			return filepath.Join(dir, rest)
		}
	}
	return ""
}

// parse reads the Go files of a folder, or one file; a place that a release does not have is empty.
func (m modules) parse(place string) (files []*ast.File, err error) {
	dir := m.dir(place)
	paths := []string{dir}
	if !strings.HasSuffix(place, ".go") {
		if paths, err = filepath.Glob(filepath.Join(dir, "*.go")); err != nil {
			return nil, err
		}
	}
	for _, path := range paths {
		if _, err := os.Stat(
			path,
		); err != nil || strings.HasSuffix(path, "_test.go") || strings.HasSuffix(path, "_windows.go") ||
			strings.HasSuffix(path, "_others.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		files = append(files, f)
	}
	return files, nil
}

// constants returns the texts of the constants and variables of a package.
func constants(files []*ast.File) map[string]string {
	texts := map[string]string{}
	for _, f := range files {
		ast.Inspect(f, func(n ast.Node) bool {
			if spec, ok := n.(*ast.ValueSpec); ok {
				for i, name := range spec.Names {
					if i < len(spec.Values) {
						if text := literal(spec.Values[i], texts); text != "" {
							texts[name.Name] = text
						}
					}
				}
			}
			return true
		})
	}
	return texts
}

// literal returns the text of an expression: a literal, a constant, or their sum; "" if it is another.
func literal(e ast.Expr, texts map[string]string) string {
	switch e := e.(type) {
	case *ast.BasicLit:
		text, err := strconv.Unquote(e.Value)
		if e.Kind != token.STRING || err != nil {
			return ""
		}
		return text
	case *ast.Ident:
		return texts[e.Name]
	case *ast.BinaryExpr:
		left, right := literal(e.X, texts), literal(e.Y, texts)
		if left != "" && right != "" {
			return left + right
		}
	case *ast.CallExpr: // fmt.Sprintf("audit-%s-mode", pluginName), or featuregate.Feature("X")
		if len(e.Args) > 0 {
			return literal(e.Args[0], texts)
		}
	}
	return ""
}

func methodOf(call *ast.CallExpr) string { return nameOf(call.Fun) }

// adders are the methods of flag sets that add a flag: fs.StringVar(&x, "name", …), fs.Bool("name", …).
func isAdder(method string) bool {
	return regexp.MustCompile(`^(Var|VarP|VarPF|(Bool|U?[iI]nt(8|16|32|64)?|Float(32|64)?|Duration|String|StringSlice|StringArray|StringToString|StringToInt|IP|IPNet|IPSlice|Count|TextVar|Func|BoolFunc|DurationSlice|IntSlice)(Var|P|VarP)?)$`).
		MatchString(method)
}

// flagNames returns the names of the flags that a call adds; none if it adds none.
func flagNames(call *ast.CallExpr, texts map[string]string) (names []string) {
	method := methodOf(call)
	name := ""
	switch {
	case strings.HasPrefix(method, "register") || method == "pflagRegister" || method == "normalize": // of cAdvisor
		for _, a := range call.Args {
			if name == "" {
				name = literal(a, texts)
			}
		}
	case !isAdder(method) || len(call.Args) < 2:
		return nil
	case strings.Contains(method, "Var"):
		name = literal(call.Args[1], texts)
	default:
		name = literal(call.Args[0], texts)
	}
	name = strings.ReplaceAll(name, "_", "-")
	if strings.Contains(name, "%s") {
		for _, plugin := range []string{"log", "webhook"} { // of audit
			names = append(names, strings.ReplaceAll(name, "%s", plugin))
		}
		return names
	}
	if !regexp.MustCompile(`^[a-z][a-z0-9.-]*$`).MatchString(name) {
		return nil
	}
	return []string{name}
}
