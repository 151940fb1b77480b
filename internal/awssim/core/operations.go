package core

import (
	"cmp"
	"path"
	"reflect"
	"slices"
	"strings"
)

// Operation is an operation that is simulated.
type Operation struct {
	Package string       // of the SDK, such as "elasticloadbalancingv2"
	Name    string       // such as "CreateLoadBalancer"
	Input   reflect.Type // the SDK's struct
	Fields  []string     // the fields of the input that are simulated, sorted
}

// operations lists the operations that are registered, by package and name.
func (a *Account) operations() (all []Operation) {
	for pointer, h := range a.handlers {
		in := pointer.Elem()
		all = append(all, Operation{Package: path.Base(in.PkgPath()), Name: strings.TrimSuffix(in.Name(), "Input"), Input: in, Fields: SortedKeys(h.models)})
	}
	slices.SortFunc(all, func(x, y Operation) int {
		return cmp.Or(cmp.Compare(x.Package, y.Package), cmp.Compare(x.Name, y.Name))
	})
	return all
}
