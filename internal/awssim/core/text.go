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

// Text returns a pointer to a string, or nil for "": AWS omits empty values.
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

// SortedKeys returns the sorted keys of a map.
func SortedKeys[T any](m map[string]T) []string { return slices.Sorted(maps.Keys(m)) }

// ByKey returns the values of a map, sorted by key.
func ByKey[T any](m map[string]T) (list []T) {
	for _, k := range slices.Sorted(maps.Keys(m)) {
		list = append(list, m[k])
	}
	return list
}

// Pairs formats a map, sorted by key.
func Pairs(m map[string]string) string {
	return strings.Join(Each(SortedKeys(m), func(k string) string { return k + "=" + m[k] }), ", ")
}

// Shown formats the fields of an SDK value that are set.
func Shown(v any) string {
	raw, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	var all any
	_ = json.Unmarshal(raw, &all) // it was just encoded
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

// LineOf formats a resource on one line: pairs of an attribute and its value, without
// empty ones.
func LineOf(thing string, pairs ...string) string {
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			thing += " " + pairs[i] + "=" + pairs[i+1]
		}
	}
	return thing
}

// Flat formats a map, sorted by key.
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

// Set overwrites a value if the new one is not nil.
func Set[T any](to *T, from *T) {
	if from != nil {
		*to = *from
	}
}

// Fill initializes a map that is missing in files of older versions.
func Fill[T any](m *map[string]T) {
	if *m == nil {
		*m = map[string]T{}
	}
}

// Between returns a number of seconds between two durations, the same for the same ID.
func Between(least, most time.Duration, id string) time.Duration {
	h := fnv.New32a()
	_, _ = h.Write([]byte(id)) // never fails
	choices := int64((most-least)/time.Second) + 1
	return least + time.Duration(int64(h.Sum32())%choices)*time.Second
}

// Recast converts a value to another type with the same field names: inputs and outputs
// are different types of the SDK.
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
