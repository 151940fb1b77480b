package gotmpl

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
)

func isMissing(v any) bool {
	_, ok := v.(missing)
	return ok
}

// kindOf returns the kind of a value with sprig's names.
func kindOf(v any) string {
	if v == nil || isMissing(v) {
		return "invalid"
	}
	return reflect.ValueOf(v).Kind().String()
}

// truth reports whether a value counts as true: not zero and not empty.
func truth(v any) bool {
	if v == nil || isMissing(v) {
		return false
	}
	r := reflect.ValueOf(v)
	switch r.Kind() { //nolint:exhaustive // the kinds of values
	case reflect.Map, reflect.Slice, reflect.String:
		return r.Len() > 0
	default:
		return !r.IsZero()
	}
}

// empty is the opposite of truth, as in sprig.
func empty(v any) bool { return !truth(v) }

// asList converts a list of any type to []any.
func asList(v any) ([]any, bool) {
	if items, ok := v.([]any); ok {
		return items, true
	}
	r := reflect.ValueOf(v)
	if !r.IsValid() || r.Kind() != reflect.Slice {
		return nil, false
	}
	items := make([]any, 0, r.Len())
	for i := range r.Len() {
		items = append(items, r.Index(i).Interface())
	}
	return items, true
}

// items is asList for functions that accept only lists.
func items(v any) ([]any, error) {
	l, ok := asList(v)
	if !ok {
		return nil, fmt.Errorf("needs a list, not a %s", kindOf(v))
	}
	return l, nil
}

// asWhole converts a value to an integer.
func asWhole(v any) (int64, bool) {
	switch n := v.(type) {
	case int:
		return int64(n), true
	case int64:
		return n, true
	default:
		return 0, false
	}
}

// weigh estimates the size of a value when it is printed: bytes of text, and a few for
// each element. A value may contain another one many times.
func (s *state) weigh(v any) int {
	weight := 0
	s.add(v, &weight, 0)
	return weight
}

func (s *state) add(v any, weight *int, depth int) {
	text, _ := v.(string)
	*weight += 8 + len(text)
	if depth > maxDepth || *weight > maxText {
		s.failf("%v", errTooMuch)
	}
	switch v := v.(type) {
	case []any:
		for _, item := range v {
			s.add(item, weight, depth+1)
		}
	case map[string]any:
		for name, item := range v {
			*weight += len(name)
			s.add(item, weight, depth+1)
		}
	case []string:
		*weight += 8*len(v) + len(strings.Join(v, ""))
	case map[string]string:
		for name, item := range v {
			*weight += 8 + len(name) + len(item)
		}
	case []int:
		*weight += 8 * len(v)
	}
}

var errCompare = errors.New("such values cannot be compared")

// basic is the kind of number in a comparison.
type basic int

const (
	basicNone basic = iota
	basicNull
	basicBool
	basicWhole
	basicFloat
	basicText
)

func basicOf(v any) basic {
	switch v.(type) {
	case nil:
		return basicNull
	case bool:
		return basicBool
	case int, int64:
		return basicWhole
	case float64:
		return basicFloat
	case string:
		return basicText
	default:
		return basicNone
	}
}

// eq reports whether the first argument equals any of the others.
func eq(first any, others ...any) (bool, error) {
	if len(others) == 0 {
		return false, errors.New("missing argument for comparison")
	}
	for _, other := range others {
		same, err := equal(first, other)
		if err != nil || same {
			return same, err
		}
	}
	return false, nil
}

func equal(a, b any) (bool, error) {
	ka, kb := basicOf(a), basicOf(b)
	switch {
	case ka == basicNull || kb == basicNull:
		return ka == kb, nil
	case ka != kb:
		return false, fmt.Errorf("incompatible types for comparison: %s and %s", kindOf(a), kindOf(b))
	case ka == basicWhole:
		x, _ := asWhole(a)
		y, _ := asWhole(b)
		return x == y, nil
	case ka == basicNone:
		return false, errCompare
	default:
		return a == b, nil
	}
}

// less compares numbers and texts.
func less(a, b any) (bool, error) {
	ka, kb := basicOf(a), basicOf(b)
	switch {
	case ka <= basicBool || kb <= basicBool:
		return false, errCompare
	case ka != kb:
		return false, fmt.Errorf("incompatible types for comparison: %s and %s", kindOf(a), kindOf(b))
	}
	switch x := a.(type) {
	case string:
		y, _ := b.(string)
		return x < y, nil
	case float64:
		y, _ := b.(float64)
		return x < y, nil
	default:
		x1, _ := asWhole(a)
		y1, _ := asWhole(b)
		return x1 < y1, nil
	}
}

func lessOrEqual(a, b any) (bool, error) {
	before, err := less(a, b)
	if err != nil || before {
		return before, err
	}
	return equal(a, b)
}

// index applies indexes to lists and maps.
func index(value any, indexes ...any) (any, error) {
	if value == nil {
		return nil, errors.New("index of untyped nil")
	}
	for _, i := range indexes {
		next, err := indexOnce(value, i)
		if err != nil {
			return nil, err
		}
		value = next
	}
	return value, nil
}

func indexOnce(value, i any) (any, error) {
	switch v := value.(type) {
	case map[string]any:
		name, ok := i.(string)
		if !ok {
			return nil, fmt.Errorf("a map has no index of kind %s", kindOf(i))
		}
		return v[name], nil
	case map[string]string:
		name, ok := i.(string)
		if !ok {
			return nil, fmt.Errorf("a map has no index of kind %s", kindOf(i))
		}
		return v[name], nil
	}
	n, ok := asWhole(i)
	if !ok {
		return nil, fmt.Errorf("cannot index with a %s", kindOf(i))
	}
	r := reflect.ValueOf(value)
	if !r.IsValid() || r.Kind() != reflect.Slice && r.Kind() != reflect.String {
		return nil, fmt.Errorf("can't index a %s", kindOf(value))
	}
	if n < 0 || n >= int64(r.Len()) {
		return nil, fmt.Errorf("index out of range: %d", n)
	}
	return r.Index(int(n)).Interface(), nil
}

func length(v any) (int, error) {
	r := reflect.ValueOf(v)
	if !r.IsValid() {
		return 0, errors.New("len of nil")
	}
	switch r.Kind() { //nolint:exhaustive // the kinds that have a length
	case reflect.Slice, reflect.Map, reflect.String:
		return r.Len(), nil
	default:
		return 0, fmt.Errorf("len of a %s", kindOf(v))
	}
}
