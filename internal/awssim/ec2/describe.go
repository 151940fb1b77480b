package ec2

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim/core"
)

// fields are what filters can ask for, by the filter's name. Tags are
// understood besides.
type fields[T any] map[string]func(T) []string

// query is what a Describe call asks for.
type query struct {
	ids     []string
	filters []types.Filter
	token   *string
	size    *int32
}

// most is how many items EC2 returns on one page.
const most = 1000

// describe answers a Describe call that has pages.
func describe[T resource, O any](svc *Service, among map[string]T, q query, f fields[T], out func(T) O) ([]O, *string, error) {
	found, err := find(svc, among, q, f)
	if err != nil {
		return nil, nil, err
	}
	part, next, err := paged(svc, found, q)
	return core.Each(part, out), next, err
}

// find returns what is visible, is one of the IDs, if there are any, and
// passes every filter. AWS promises no order; here it is that of the IDs,
// which is none that a caller could want.
func find[T resource](svc *Service, among map[string]T, q query, f fields[T]) (found []T, err error) {
	keep, err := matching(q.filters, f, func(t T) map[string]string { return t.thing().Tags })
	if err != nil {
		return nil, err
	}
	for _, id := range slices.Compact(slices.Sorted(slices.Values(q.ids))) {
		t, ok := among[id]
		if !ok || !svc.shows(t) {
			var none T
			return nil, none.kind().notFound(id)
		}
		if keep(t) {
			found = append(found, t)
		}
	}
	if len(q.ids) > 0 {
		return found, nil
	}
	for _, t := range among {
		if svc.shows(t) && keep(t) {
			found = append(found, t)
		}
	}
	slices.SortStableFunc(found, func(x, y T) int { return strings.Compare(x.thing().ID, y.thing().ID) })
	return found, nil
}

// shows reports whether a resource shows in lists yet. What every account has
// always does: it may be younger than a clock that begins in the past.
func (svc *Service) shows(t resource) bool { return t.thing().Given || svc.Visible(t.thing().Born) }

// paged cuts a page out of what a Describe call found. A page holds 5 to 1,000
// items, and IDs exclude pages. AWS says the latter of some operations only.
func paged[T any](svc *Service, found []T, q query) ([]T, *string, error) {
	if n := aws.ToInt32(q.size); q.size != nil && (n < 5 || n > most) {
		return nil, nil, core.Fail("InvalidParameterValue", "value ( %d ) for parameter maxResults is invalid: expecting a value between 5 and %d", n, most)
	}
	if len(q.ids) > 0 {
		if q.size != nil || aws.ToString(q.token) != "" {
			return nil, nil, core.Fail("InvalidParameterCombination", "IDs cannot be used with the parameters maxResults and nextToken")
		}
		return found, nil, nil
	}
	return core.Page(svc.Account, found, q.token, q.size, most)
}

// matching returns what decides whether a resource passes all filters. A filter
// it does not know is not simulated: AWS would refuse most of them too.
func matching[T any](filters []types.Filter, f fields[T], tags func(T) map[string]string) (func(T) bool, error) {
	var tests []func(T) bool
	for _, filter := range filters {
		name := aws.ToString(filter.Name)
		if len(filter.Values) == 0 || len(filter.Values) > 200 {
			return nil, core.Fail("InvalidParameterValue", "the filter '%s' has %d values, not 1 to 200", name, len(filter.Values))
		}
		values, known := f[name]
		if key, isTag := strings.CutPrefix(name, "tag:"); isTag && tags != nil {
			known, values = true, func(t T) []string {
				if v, ok := tags(t)[key]; ok {
					return []string{v}
				}
				return nil
			}
		}
		if name == "tag-key" && tags != nil {
			known, values = true, func(t T) []string { return slices.Collect(maps.Keys(tags(t))) }
		}
		if !known {
			return nil, fmt.Errorf("awssim: the filter %q is not simulated for %T", name, *new(T))
		}
		tests = append(tests, func(t T) bool {
			return slices.ContainsFunc(values(t), func(v string) bool {
				return slices.ContainsFunc(filter.Values, func(pattern string) bool { return wild(pattern, v) })
			})
		})
	}
	return func(t T) bool {
		for _, test := range tests {
			if !test(t) {
				return false
			}
		}
		return true
	}, nil
}

// wild reports whether a value matches a pattern, in which * stands for any
// characters, ? for exactly one, and a backslash takes the meaning away.
func wild(pattern, s string) bool {
	if !strings.ContainsAny(pattern, `*?\`) {
		return pattern == s
	}
	p, t := []rune(pattern), []rune(s)
	i, j := 0, 0
	star, mark := -1, 0 // the last star, and up to where it has taken
	for j < len(t) {
		switch {
		case i < len(p) && p[i] == '*':
			star, mark = i, j
			i++
		case i+1 < len(p) && p[i] == '\\' && p[i+1] == t[j]:
			i, j = i+2, j+1
		case i < len(p) && p[i] != '\\' && (p[i] == '?' || p[i] == t[j]):
			i, j = i+1, j+1
		case star >= 0:
			mark++
			i, j = star+1, mark
		default:
			return false
		}
	}
	for i < len(p) && p[i] == '*' {
		i++
	}
	return i == len(p)
}
