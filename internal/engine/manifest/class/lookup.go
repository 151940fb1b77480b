package class

import (
	"fmt"
	"strconv"
	"strings"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// lookup returns the value of a variable, or of a field in it, by a path such as
// zones[0].name. The place is where the value comes from: the Cluster, a default in the
// class, or for built-in variables the patch.
func (t *target) lookup(path string, asked Place) (any, Place, error) {
	steps, err := split(path)
	if err != nil {
		return nil, asked, err
	}
	name, _ := steps[0].(string)
	v, known := t.values[name]
	if !known {
		return nil, asked, fmt.Errorf("the variable %s has no value", name)
	}
	place := v.place
	if name == builtinName {
		place = asked
	}
	found := v.value
	for _, step := range steps[1:] {
		var ok bool
		if found, ok = child(found, step); !ok {
			return nil, asked, fmt.Errorf("the variable %s has no value: it has no field %v", path, step)
		}
	}
	if name != builtinName {
		place = place.Below(strings.TrimPrefix(strings.TrimPrefix(path, name), "."))
	}
	return found, place, nil
}

// child returns a field of a map or an element of a list.
func child(v, step any) (any, bool) {
	switch step := step.(type) {
	case string:
		m, _ := v.(map[string]any)
		found, ok := m[step]
		return found, ok
	case int:
		l, _ := v.([]any)
		if step >= len(l) {
			return nil, false
		}
		return l[step], true
	default:
		return nil, false
	}
}

// split splits a path of names and [indexes].
func split(path string) ([]any, error) {
	var steps []any
	for part := range strings.SplitSeq(path, ".") {
		name, index, indexed := strings.Cut(part, "[")
		steps = append(steps, name)
		if !indexed {
			if strings.Contains(name, "]") {
				return nil, fmt.Errorf("%q is not the path of a variable", path)
			}
			continue
		}
		n, err := strconv.Atoi(strings.TrimSuffix(index, "]"))
		if err != nil || n < 0 || !strings.HasSuffix(index, "]") {
			return nil, fmt.Errorf("%q is not the path of a variable", path)
		}
		steps = append(steps, n)
	}
	return steps, nil
}

// updatePlaces updates the places in the template for a JSON patch. It runs before the
// template changes.
func (i *item) updatePlaces(op clusterv1.JSONPatch, v any, says Place) {
	path, list, n := i.pointerPath(op.Path)
	object := Object{Value: i.doc, Places: i.places}
	switch {
	case list != "" && op.Op == "add":
		object.shiftPlaces(list, n, 1)
	case op.Op == "remove" || op.Op == "replace" || op.Op == "add":
		object.removePlaces(path)
		if list != "" && op.Op == "remove" {
			object.shiftPlaces(list, n+1, -1)
		}
	}
	if op.Op == "remove" {
		return
	}
	object.recordPlaces(v, path, says.within(v))
}

// within returns the places inside a value of the input. A value from a template has a
// single place.
func (p Place) within(any) func(string) Place {
	return func(inside string) Place {
		if strings.HasSuffix(p.Path, "valueFrom.template") || strings.HasSuffix(p.Path, "valueFrom.variable") {
			return p
		}
		return p.Below(inside)
	}
}

// pointerPath converts a JSON pointer to a path. If the pointer ends in a list, list is
// the path of the list and n the index.
func (i *item) pointerPath(pointer string) (path, list string, n int) {
	var v any = i.doc
	for token := range strings.SplitSeq(strings.TrimPrefix(pointer, "/"), "/") {
		token = strings.NewReplacer("~1", "/", "~0", "~").Replace(token)
		list = ""
		switch holder := v.(type) {
		case []any:
			list, n = path, len(holder)
			if token != "-" {
				n, _ = strconv.Atoi(token)
			}
			path, v = indexed(path, n), nil
			if n < len(holder) {
				v = holder[n]
			}
		default:
			v = valueAt(holder, token)
			path = Place{Path: path}.Below(token).Path
		}
	}
	return path, list, n
}

// shiftPlaces renumbers the places in a list from an index on.
func (o *Object) shiftPlaces(list string, from, by int) {
	changed := map[string]Place{}
	for path, place := range o.Places {
		rest, ok := strings.CutPrefix(path, list+"[")
		if !ok {
			continue
		}
		number, after, _ := strings.Cut(rest, "]")
		if n, err := strconv.Atoi(number); err == nil && n >= from {
			changed[indexed(list, n+by)+after] = place
			delete(o.Places, path)
		}
	}
	for path, place := range changed {
		o.Places[path] = place
	}
}
