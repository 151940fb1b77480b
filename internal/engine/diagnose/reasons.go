package diagnose

import (
	"maps"
	"slices"
	"strings"
)

// Reasons collects what is missing, by the reason.
type Reasons map[string][]string

// Add adds what is missing.
func (r Reasons) Add(what string, err error) { r[err.Error()] = append(r[err.Error()], what) }

// Lines returns one line per reason, which lists what is missing because of it: "a, b: access denied".
func (r Reasons) Lines() (all []string) {
	for _, why := range slices.Sorted(maps.Keys(r)) {
		all = append(all, strings.Join(slices.Sorted(slices.Values(r[why])), ", ")+": "+why)
	}
	return all
}
