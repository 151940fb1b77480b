package reconcile

import (
	"maps"
	"slices"
	"strings"
)

// reasons collects what is missing, by the reason.
type reasons map[string][]string

func (r reasons) add(what string, err error) { r[err.Error()] = append(r[err.Error()], what) }

// lines returns one line for each reason: "a, b: access denied".
func (r reasons) lines() (all []string) {
	for _, why := range slices.Sorted(maps.Keys(r)) {
		all = append(all, strings.Join(slices.Sorted(slices.Values(r[why])), ", ")+": "+why)
	}
	return all
}
