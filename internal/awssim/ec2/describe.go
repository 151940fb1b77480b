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

// fields returns the values of each filter by name. Tag filters are supported for all
// kinds.
type fields[T any] map[string]func(T) []string

// query are the common parameters of Describe calls.
type query struct {
	ids     []string
	filters []types.Filter
	token   *string
	size    *int32
}

// most is the maximum page size of EC2.
const most = 1000

// describe handles a Describe call with pagination.
func describe[T resource, O any](svc *Service, among map[string]T, q query, f fields[T], out func(T) O) ([]O, *string, error) {
	found, err := find(svc, among, q, f)
	if err != nil {
		return nil, nil, err
	}
	part, next, err := paged(svc, found, q)
	return core.Each(part, out), next, err
}

// find returns the visible resources that have one of the IDs, if any are given, and
// match all filters. AWS does not guarantee an order; here it is the order of IDs.
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

// shows reports whether a resource is visible in lists. Default resources always are:
// they may be younger than a clock that starts in the past.
func (svc *Service) shows(t resource) bool { return t.thing().Given || svc.Visible(t.thing().Born) }

// paged returns one page of a Describe call. A page has 5 to 1,000 items, and cannot be
// combined with IDs. AWS documents the latter for some operations only.
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

// matching returns a function that reports whether a resource matches all filters.
// Unknown filters are rejected as not simulated; AWS rejects most of them too.
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
				return slices.ContainsFunc(filter.Values, func(pattern string) bool { return core.Wild(pattern, v) })
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
