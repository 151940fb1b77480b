package main

import (
	"go/ast"
	"reflect"
	"strconv"
	"strings"
)

// kubeletFields returns the fields of KubeletConfiguration, with the mark "x".
func (m modules) kubeletFields() (map[string]string, error) {
	files, err := m.parse("k8s.io/kubelet/config/v1beta1")
	if err != nil {
		return nil, err
	}
	found := map[string]string{}
	for _, f := range files {
		ast.Inspect(f, func(n ast.Node) bool {
			spec, ok := n.(*ast.TypeSpec)
			if !ok || spec.Name.Name != "KubeletConfiguration" {
				return true
			}
			if fields, ok := spec.Type.(*ast.StructType); ok {
				for _, x := range fields.Fields.List {
					if name := jsonName(x); name != "" {
						found[name] = "x"
					}
				}
			}
			return false
		})
	}
	return found, nil
}

// jsonName returns the name of a field in JSON; "" for an embedded structure.
func jsonName(field *ast.Field) string {
	if field.Tag == nil {
		return ""
	}
	tag, err := strconv.Unquote(field.Tag.Value)
	if err != nil {
		return ""
	}
	name, _, _ := strings.Cut(reflect.StructTag(tag).Get("json"), ",")
	return name
}
