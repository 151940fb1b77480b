package main

import (
	"go/ast"
	"strconv"
	"strings"
)

// gateFolders are the folders with the feature gates of the components.
func gateFolders() []string {
	return []string{
		"k8s.io/kubernetes/pkg/features",
		"k8s.io/apiserver/pkg/features",
		"k8s.io/client-go/features",
		"k8s.io/apiextensions-apiserver/pkg/features",
		"k8s.io/component-base/logs/api/v1",
		"k8s.io/component-base/metrics/features",
		"k8s.io/component-base/zpages/features",
		"k8s.io/component-base/featuregate",
		"k8s.io/component-base/tracing/api/v1",
		"k8s.io/controller-manager/pkg/features",
		"k8s.io/cloud-provider/features",
		"k8s.io/component-base/tracing/features",
		"k8s.io/kube-aggregator/pkg/features",
	}
}

// gates returns the feature gates of the components. Their mark is "t" or "f" if the gate is locked
// to true or false, and "o" if it is not locked.
func (m modules) gates(release string) (map[string]string, error) {
	minor, _, _ := strings.Cut(release, ".")
	version, err := strconv.Atoi(minor)
	if err != nil {
		return nil, err
	}
	found := map[string]string{}
	err = m.inspect(gateFolders(), func(n ast.Node, texts map[string]string) bool {
		entry, ok := n.(*ast.KeyValueExpr)
		if !ok {
			return true
		}
		value, ok := entry.Value.(*ast.CompositeLit)
		name := gateName(entry.Key, texts)
		if !ok || name == "" || !isGate(value) {
			return true
		}
		found[name] = lockOf(value, version)
		return false
	})
	return found, err
}

// gateName returns the name of a gate: the text of its constant, or the name of the constant in
// another package, which is the same.
func gateName(key ast.Expr, texts map[string]string) string {
	switch key := key.(type) {
	case *ast.Ident:
		if texts[key.Name] != "" {
			return texts[key.Name]
		}
	case *ast.SelectorExpr:
		return key.Sel.Name
	}
	return ""
}

// isGate reports whether a value is the specification of a gate, or a list of them by version.
func isGate(value *ast.CompositeLit) bool {
	if field(value, "PreRelease") != nil || field(value, "Default") != nil {
		return true
	}
	for _, e := range value.Elts {
		if c, ok := e.(*ast.CompositeLit); ok && isGate(c) {
			return true
		}
	}
	return false
}

func field(value *ast.CompositeLit, name string) ast.Expr {
	for _, e := range value.Elts {
		if kv, ok := e.(*ast.KeyValueExpr); ok {
			if id, ok := kv.Key.(*ast.Ident); ok && id.Name == name {
				return kv.Value
			}
		}
	}
	return nil
}

// lockOf returns the mark of a gate in a minor version: of the newest of its specifications that is
// not newer.
func lockOf(value *ast.CompositeLit, minor int) string {
	mark := "o"
	specs := []*ast.CompositeLit{value}
	for _, e := range value.Elts {
		if c, ok := e.(*ast.CompositeLit); ok {
			specs = append(specs, c)
		}
	}
	for _, s := range specs {
		if call, ok := field(s, "Version").(*ast.CallExpr); ok && len(call.Args) == 1 {
			since, err := strconv.Atoi(strings.TrimPrefix(literal(call.Args[0], nil), "1."))
			if err == nil && since > minor {
				continue
			}
		}
		if field(s, "Default") == nil && field(s, "PreRelease") == nil {
			continue
		}
		lock, _ := field(s, "LockToDefault").(*ast.Ident)
		usual, _ := field(s, "Default").(*ast.Ident)
		switch {
		case lock == nil || lock.Name != "true":
			mark = "o"
		case usual != nil && usual.Name == "true":
			mark = "t"
		default:
			mark = "f"
		}
	}
	return mark
}

// kubeadmGates returns the feature gates of kubeadm, which are not locked.
func (m modules) kubeadmGates() (map[string]string, error) {
	files, err := m.parse("k8s.io/kubernetes/cmd/kubeadm/app/features")
	if err != nil {
		return nil, err
	}
	found, texts := map[string]string{}, constants(files)
	for _, f := range files {
		ast.Inspect(f, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if !ok || len(spec.Names) != 1 || spec.Names[0].Name != "InitFeatureGates" || len(spec.Values) != 1 {
				return true
			}
			if list, ok := spec.Values[0].(*ast.CompositeLit); ok {
				for _, e := range list.Elts {
					if kv, ok := e.(*ast.KeyValueExpr); ok {
						if name := gateName(kv.Key, texts); name != "" {
							found[name] = "o"
						}
					}
				}
			}
			return false
		})
	}
	return found, nil
}

// admission returns the admission plugins of kube-apiserver.
func (m modules) admission() (map[string]string, error) {
	files, err := m.parse("k8s.io/kubernetes/pkg/kubeapiserver/options/plugins.go")
	if err != nil {
		return nil, err
	}
	found := map[string]string{}
	for _, f := range files {
		paths := map[string]string{}
		for _, i := range f.Imports {
			path := literal(i.Path, nil)
			name := path[strings.LastIndex(path, "/")+1:]
			if i.Name != nil {
				name = i.Name.Name
			}
			paths[name] = path
		}
		for _, expr := range listOf(f, "AllOrderedPlugins") {
			s, ok := expr.(*ast.SelectorExpr)
			if !ok {
				continue
			}
			pkg, _ := s.X.(*ast.Ident)
			declared, err := m.parse(paths[pkg.Name])
			if err != nil {
				return nil, err
			}
			if name := constants(declared)[s.Sel.Name]; name != "" {
				found[name] = "x"
			}
		}
	}
	return found, nil
}

// listOf returns the items of a variable that is a list.
func listOf(f *ast.File, name string) (items []ast.Expr) {
	ast.Inspect(f, func(n ast.Node) bool {
		if spec, ok := n.(*ast.ValueSpec); ok && len(spec.Names) == 1 && spec.Names[0].Name == name && len(spec.Values) == 1 {
			if list, ok := spec.Values[0].(*ast.CompositeLit); ok {
				items = list.Elts
			}
		}
		return true
	})
	return items
}

// cloudProviders returns the cloud providers in the components: those of k8s.io/legacy-cloud-providers.
func (m modules) cloudProviders() (map[string]string, error) {
	files, err := m.parse("k8s.io/kubernetes/pkg/cloudprovider/providers")
	if err != nil {
		return nil, err
	}
	found := map[string]string{}
	for _, f := range files {
		for _, i := range f.Imports {
			if name, ok := strings.CutPrefix(literal(i.Path, nil), "k8s.io/legacy-cloud-providers/"); ok {
				found[name] = "x"
			}
		}
	}
	return found, nil
}
