package text

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
)

// CanonicalJSON normalizes a policy for comparison: it sorts keys and lists, and replaces
// a list of one value by the value, because AWS returns either form.
func CanonicalJSON(s string) string {
	var v any
	if json.Unmarshal([]byte(s), &v) != nil {
		return s
	}
	out, _ := json.Marshal(canonicalValue(v)) //nolint:errchkjson // it was JSON
	return string(out)
}

func canonicalValue(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k, x := range v {
			v[k] = canonicalValue(x)
		}
	case []any:
		for i, x := range v {
			v[i] = canonicalValue(x)
		}
		slices.SortStableFunc(v, func(a, b any) int { return cmp.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
		if len(v) == 1 {
			return v[0]
		}
	}
	return v
}
