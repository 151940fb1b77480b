package core

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strings"
	"time"
)

// Text returns nil for "", since AWS leaves out what is empty.
func Text(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// Each converts a list.
func Each[T, O any](list []T, out func(T) O) []O {
	all := make([]O, 0, len(list))
	for _, t := range list {
		all = append(all, out(t))
	}
	return all
}

// SortedKeys are the keys of a map in order.
func SortedKeys[T any](m map[string]T) []string { return slices.Sorted(maps.Keys(m)) }

// ByKey returns the values of a map in the order of its keys.
func ByKey[T any](m map[string]T) (list []T) {
	for _, k := range slices.Sorted(maps.Keys(m)) {
		list = append(list, m[k])
	}
	return list
}

// Pairs writes a map in the order of its keys.
func Pairs(m map[string]string) string {
	return strings.Join(Each(SortedKeys(m), func(k string) string { return k + "=" + m[k] }), ", ")
}

// Shown writes what is set of a value of the SDK.
func Shown(v any) string {
	raw, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	var all any
	_ = json.Unmarshal(raw, &all) // it was JSON a line above
	raw, _ = json.Marshal(pruned(all))
	return string(raw)
}

func pruned(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k, x := range v {
			if v[k] = pruned(x); v[k] == nil {
				delete(v, k)
			}
		}
		if len(v) == 0 {
			return nil
		}
	case []any:
		for i := range v {
			v[i] = pruned(v[i])
		}
		if len(v) == 0 {
			return nil
		}
	case string:
		if v == "" {
			return nil
		}
	}
	return v
}

// LineOf is one line about a resource: pairs of an attribute and its value,
// without the empty ones.
func LineOf(thing string, pairs ...string) string {
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			thing += " " + pairs[i] + "=" + pairs[i+1]
		}
	}
	return thing
}

// Flat writes a map in the order of its keys.
func Flat(m map[string]string) string {
	if len(m) == 0 {
		return ""
	}
	list := make([]string, 0, len(m))
	for _, k := range slices.Sorted(maps.Keys(m)) {
		list = append(list, fmt.Sprintf("%s:%q", k, m[k]))
	}
	return "{" + strings.Join(list, " ") + "}"
}

// Set overwrites a value by one that is there.
func Set[T any](to *T, from *T) {
	if from != nil {
		*to = *from
	}
}

// Fill creates a map that is missing, as in files of older versions.
func Fill[T any](m *map[string]T) {
	if *m == nil {
		*m = map[string]T{}
	}
}

// Between picks a whole number of seconds between two durations, the same for
// the same resource.
func Between(least, most time.Duration, id string) time.Duration {
	h := fnv.New32a()
	_, _ = h.Write([]byte(id)) // never fails
	choices := int64((most-least)/time.Second) + 1
	return least + time.Duration(int64(h.Sum32())%choices)*time.Second
}

// Recast creates a value of another type with the same field names: what is
// asked for, and what is answered, are different types of the SDK.
func Recast[T any](in any) (out T) {
	raw, err := json.Marshal(in)
	if err == nil {
		err = json.Unmarshal(raw, &out)
	}
	if err != nil {
		panic(fmt.Sprintf("awssim: %T as %T: %v", in, out, err))
	}
	return out
}
