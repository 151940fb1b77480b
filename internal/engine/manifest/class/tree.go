package class

import (
	"maps"
	"slices"
	"strings"
)

// valueAt returns the value at a path of names, or nil.
func valueAt(v any, names ...string) any {
	for _, name := range names {
		m, ok := v.(map[string]any)
		if !ok {
			return nil
		}
		v = m[name]
	}
	return v
}

// exists reports whether a path is set.
func exists(v any, names ...string) bool {
	m, ok := valueAt(v, names[:len(names)-1]...).(map[string]any)
	if !ok {
		return false
	}
	_, ok = m[names[len(names)-1]]
	return ok
}

// setAt sets a value, and creates the maps on its path.
func setAt(m map[string]any, v any, names ...string) {
	for _, name := range names[:len(names)-1] {
		next, ok := m[name].(map[string]any)
		if !ok {
			next = map[string]any{}
			m[name] = next
		}
		m = next
	}
	m[names[len(names)-1]] = v
}

// dotted joins names to a path.
func dotted(names ...string) string { return strings.Join(names, ".") }

// set sets a value of the object, and records where it and its parts come from.
func (o *Object) set(v any, place Place, names ...string) {
	setAt(o.Value, v, names...)
	o.removePlaces(dotted(names...))
	for i := 1; i < len(names); i++ {
		if _, known := o.Places[dotted(names[:i]...)]; !known {
			o.Places[dotted(names[:i]...)] = place
		}
	}
	o.recordPlaces(v, dotted(names...), func(string) Place { return place })
}

// recordPlaces records the place of every part of a value. place is called with the path
// inside the value.
func (o *Object) recordPlaces(v any, path string, place func(inside string) Place) {
	walk(v, "", func(inside string) { o.Places[Place{Path: path}.Below(inside).Path] = place(inside) })
}

// walk visits all paths in a value, the value itself first.
func walk(v any, path string, visit func(path string)) {
	visit(path)
	switch v := v.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			walk(v[name], Place{Path: path}.Below(name).Path, visit)
		}
	case []any:
		for i, item := range v {
			walk(item, indexed(path, i), visit)
		}
	}
}

// removePlaces removes the places of a path and of all paths below it.
func (o *Object) removePlaces(path string) {
	maps.DeleteFunc(o.Places, func(p string, _ Place) bool { return isBelow(p, path) })
}

// isBelow reports whether a path is equal to or below another path.
func isBelow(path, of string) bool {
	rest, ok := strings.CutPrefix(path, of)
	return ok && (rest == "" || rest[0] == '.' || rest[0] == '[' || of == "")
}
