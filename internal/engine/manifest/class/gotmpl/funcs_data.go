package gotmpl

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"

	"github.com/spf13/cast"
)

// numbers returns the arithmetic functions. As in sprig, whole numbers are int64 and
// fractions are truncated.
func numbers() map[string]any {
	fold := func(start int64, f func(a, b int64) int64) func(...any) int64 {
		return func(v ...any) int64 {
			sum := start
			for _, x := range v {
				sum = f(sum, cast.ToInt64(x))
			}
			return sum
		}
	}
	best := func(pick func(a, b int64) int64) func(any, ...any) int64 {
		return func(a any, more ...any) int64 {
			return fold(cast.ToInt64(a), pick)(more...)
		}
	}
	return map[string]any{
		"add":  fold(0, func(a, b int64) int64 { return a + b }),
		"add1": func(v any) int64 { return cast.ToInt64(v) + 1 },
		"sub":  func(a, b any) int64 { return cast.ToInt64(a) - cast.ToInt64(b) },
		"mul": func(a any, v ...any) int64 {
			return fold(cast.ToInt64(a), func(a, b int64) int64 { return a * b })(v...)
		},
		"div":       func(a, b any) int64 { return cast.ToInt64(a) / cast.ToInt64(b) },
		"mod":       func(a, b any) int64 { return cast.ToInt64(a) % cast.ToInt64(b) },
		"max":       best(func(a, b int64) int64 { return max(a, b) }),
		"min":       best(func(a, b int64) int64 { return min(a, b) }),
		"floor":     func(v any) float64 { return math.Floor(cast.ToFloat64(v)) },
		"ceil":      func(v any) float64 { return math.Ceil(cast.ToFloat64(v)) },
		"int":       func(v any) int { return cast.ToInt(v) },
		"int64":     func(v any) int64 { return cast.ToInt64(v) },
		"float64":   func(v any) float64 { return cast.ToFloat64(v) },
		"atoi":      func(s string) int { n, _ := strconv.Atoi(s); return n },
		"until":     func(n int) ([]int, error) { return steps(0, n, sign(n)) },
		"untilStep": steps,
	}
}

func sign(n int) int {
	if n < 0 {
		return -1
	}
	return 1
}

func steps(start, stop, step int) ([]int, error) {
	found := []int{}
	if step == 0 || (stop < start) != (step < 0) {
		return found, nil
	}
	for i := start; (step > 0 && i < stop) || (step < 0 && i > stop); i += step {
		if len(found) > maxText/8 {
			return nil, errTooMuch
		}
		found = append(found, i)
	}
	return found, nil
}

func lists() map[string]any {
	all := map[string]any{
		"list": func(v ...any) []any { return v },
		"last": func(v any) (any, error) {
			l, err := items(v)
			if err != nil || len(l) == 0 {
				return nil, err
			}
			return l[len(l)-1], nil
		},
		"first": func(v any) (any, error) {
			l, err := items(v)
			if err != nil || len(l) == 0 {
				return nil, err
			}
			return l[0], nil
		},
		"rest": func(v any) ([]any, error) {
			l, err := items(v)
			return slices.Clone(l[min(1, len(l)):]), err
		},
		"initial": func(v any) ([]any, error) {
			l, err := items(v)
			return slices.Clone(l[:max(len(l)-1, 0)]), err
		},
		"append":  push,
		"push":    push,
		"prepend": func(v, item any) ([]any, error) { l, err := items(v); return append([]any{item}, l...), err },
		"concat":  concat,
		"reverse": func(v any) ([]any, error) {
			l, err := items(v)
			l = slices.Clone(l)
			slices.Reverse(l)
			return l, err
		},
		"has": func(needle, v any) (bool, error) {
			if v == nil {
				return false, nil
			}
			l, err := items(v)
			return contains(l, needle), err
		},
		"compact": func(v any) ([]any, error) { return filter(v, truth) },
		"without": func(v any, drop ...any) ([]any, error) {
			return filter(v, func(x any) bool { return !contains(drop, x) })
		},
		"uniq": func(v any) ([]any, error) {
			var seen []any
			return filter(v, func(x any) bool {
				isNew := !contains(seen, x)
				seen = append(seen, x)
				return isNew
			})
		},
		"slice": slice,
	}
	for name, must := range map[string]string{
		"mustLast": "last", "mustFirst": "first", "mustRest": "rest", "mustInitial": "initial", "mustAppend": "append",
		"mustPush": "push", "mustPrepend": "prepend", "mustReverse": "reverse", "mustHas": "has", "mustCompact": "compact",
		"mustWithout": "without", "mustUniq": "uniq", "mustSlice": "slice",
	} {
		all[name] = all[must]
	}
	return all
}

func push(v, item any) ([]any, error) {
	l, err := items(v)
	return append(slices.Clone(l), item), err
}

func concat(v ...any) (any, error) {
	var all []any
	for _, x := range v {
		l, err := items(x)
		if err != nil {
			return nil, err
		}
		all = append(all, l...)
	}
	return all, nil
}

func contains(l []any, x any) bool {
	return slices.ContainsFunc(l, func(y any) bool { return reflect.DeepEqual(x, y) })
}

// filter returns the elements for which test is true.
func filter(v any, test func(any) bool) ([]any, error) {
	l, err := items(v)
	found := []any{}
	if len(l) > maxText/64 {
		return nil, errTooMuch // some tests iterate over the list again
	}
	for _, x := range l {
		if test(x) {
			found = append(found, x)
		}
	}
	return found, err
}

func slice(v any, bounds ...any) (any, error) {
	r := reflect.ValueOf(v)
	if !r.IsValid() || r.Kind() != reflect.Slice {
		return nil, fmt.Errorf("needs a list, not a %s", kindOf(v))
	}
	if r.Len() == 0 {
		return nil, nil // as in sprig
	}
	from, to := 0, r.Len()
	if len(bounds) > 0 {
		from = cast.ToInt(bounds[0])
	}
	if len(bounds) > 1 {
		to = cast.ToInt(bounds[1])
	}
	if from < 0 || to < from || to > r.Len() {
		return nil, errors.New("slice bounds out of range")
	}
	return r.Slice(from, to).Interface(), nil
}

func dicts() map[string]any {
	return map[string]any{
		"dict": dict,
		"get": func(m map[string]any, name string) any {
			if v, ok := m[name]; ok {
				return v
			}
			return ""
		},
		"set":    func(m map[string]any, name string, v any) map[string]any { m[name] = v; return m },
		"unset":  func(m map[string]any, name string) map[string]any { delete(m, name); return m },
		"hasKey": func(m map[string]any, name string) bool { _, ok := m[name]; return ok },
		"keys":   keys,
		"values": func(m map[string]any) []any {
			found := []any{}
			for _, name := range slices.Sorted(maps.Keys(m)) {
				found = append(found, m[name])
			}
			return found
		},
		"pluck": func(name string, all ...map[string]any) []any {
			found := []any{}
			for _, m := range all {
				if v, ok := m[name]; ok {
					found = append(found, v)
				}
			}
			return found
		},
		"pick": func(m map[string]any, names ...string) map[string]any {
			found := map[string]any{}
			for _, name := range names {
				if v, ok := m[name]; ok {
					found[name] = v
				}
			}
			return found
		},
		"omit": func(m map[string]any, names ...string) map[string]any {
			found := maps.Clone(m)
			for _, name := range names {
				delete(found, name)
			}
			return found
		},
		"dig": dig,
	}
}

// keys returns the sorted keys of maps. Sprig's order is random.
func keys(all ...map[string]any) []string {
	found := []string{}
	for _, m := range all {
		found = append(found, slices.Sorted(maps.Keys(m))...)
	}
	return found
}

func dict(v ...any) map[string]any {
	m := map[string]any{}
	for i := 0; i < len(v); i += 2 {
		m[text(v[i])] = nil
		if i+1 < len(v) {
			m[text(v[i])] = v[i+1]
		} else {
			m[text(v[i])] = ""
		}
	}
	return m
}

// dig follows keys through maps. Its arguments are the keys, a default and the map.
func dig(v ...any) (any, error) {
	if len(v) < 3 {
		return nil, errors.New("needs at least three arguments")
	}
	m, ok := v[len(v)-1].(map[string]any)
	if !ok {
		return nil, errors.New("the last argument must be a dict")
	}
	otherwise, names := v[len(v)-2], v[:len(v)-2]
	for i, n := range names {
		name, ok := n.(string)
		if !ok {
			return nil, errors.New("keys must be strings")
		}
		found, there := m[name]
		if !there {
			return otherwise, nil
		}
		if i == len(names)-1 {
			return found, nil
		}
		if m, ok = found.(map[string]any); !ok {
			return nil, fmt.Errorf("%q is not a dict", name)
		}
	}
	return nil, nil // unreachable: there is at least one name
}
