package main

import "go/ast"

// kindFolders lists the packages that define the kinds of configuration files, for each component. A release does not have all of them.
func kindFolders() map[string][]string {
	const (
		server  = "k8s.io/apiserver/pkg/"
		plugins = "k8s.io/kubernetes/plugin/pkg/admission/"
	)
	versions := func(places ...string) (all []string) {
		for _, place := range places {
			for _, version := range []string{"v1", "v1beta3", "v1beta2", "v1beta1", "v1alpha1"} {
				all = append(all, place+"/"+version)
			}
		}
		return all
	}
	return map[string][]string{
		"kube-apiserver": versions(
			server+"apis/audit",
			server+"apis/apiserver",
			server+"apis/config",
			server+"admission/plugin/webhook/config/apis/webhookadmission",
			server+"admission/plugin/resourcequota/apis/resourcequota",
			plugins+"eventratelimit/apis/eventratelimit",
			plugins+"podtolerationrestriction/apis/podtolerationrestriction",
			"k8s.io/pod-security-admission/admission/api",
		),
		"kube-scheduler": versions("k8s.io/kube-scheduler/config"),
		"kubelet":        versions("k8s.io/kubelet/config"),
	}
}

// kinds returns the kinds that packages register, such as audit.k8s.io/v1/Policy, with the mark "x".
func (m modules) kinds(places []string) (map[string]string, error) {
	found := map[string]string{}
	for _, place := range places {
		files, err := m.parse(place)
		if err != nil {
			return nil, err
		}
		texts := constants(files)
		versions := groupVersions(files, texts)
		for _, f := range files {
			ast.Inspect(f, func(n ast.Node) bool {
				call, ok := n.(*ast.CallExpr)
				if !ok {
					return true
				}
				switch methodOf(call) {
				case "AddKnownTypes": // (a group and version, types …)
					for _, x := range call.Args[1:] {
						found[versions[nameOf(call.Args[0])]+"/"+typeOf(x)] = "x"
					}
				case "AddKnownTypeWithName": // (a group and version.WithKind("…"), a type)
					if kind, ok := call.Args[0].(*ast.CallExpr); ok {
						if of, ok := kind.Fun.(*ast.SelectorExpr); ok {
							found[versions[nameOf(of.X)]+"/"+literal(kind.Args[0], texts)] = "x"
						}
					}
				}
				return true
			})
		}
	}
	return found, nil
}

// groupVersions returns the variables of the type GroupVersion in a package: their names, and their values as in the field apiVersion.
func groupVersions(files []*ast.File, texts map[string]string) map[string]string {
	found := map[string]string{}
	for _, f := range files {
		ast.Inspect(f, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if !ok {
				return true
			}
			for i, x := range spec.Values {
				if value, ok := x.(*ast.CompositeLit); ok && nameOf(value.Type) == "GroupVersion" {
					found[spec.Names[i].Name] = literal(field(value, "Group"), texts) + "/" + literal(field(value, "Version"), texts)
				}
			}
			return true
		})
	}
	return found
}

// schedulerPlugins returns the plugins of the scheduler, with the mark "x".
func (m modules) schedulerPlugins() (map[string]string, error) {
	files, err := m.parse("k8s.io/kubernetes/pkg/scheduler/framework/plugins/names")
	if err != nil {
		return nil, err
	}
	found := map[string]string{}
	for _, name := range constants(files) {
		found[name] = "x"
	}
	return found, nil
}

// typeOf returns the name of the type in &Type{}.
func typeOf(x ast.Expr) string {
	if address, ok := x.(*ast.UnaryExpr); ok {
		x = address.X
	}
	if value, ok := x.(*ast.CompositeLit); ok {
		return nameOf(value.Type)
	}
	return ""
}

// nameOf returns a name, without that of its package.
func nameOf(x ast.Expr) string {
	switch x := x.(type) {
	case *ast.Ident:
		return x.Name
	case *ast.SelectorExpr:
		return x.Sel.Name
	}
	return ""
}
