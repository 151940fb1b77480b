// Package ordered sorts lists of structs. It does what slices.SortStableFunc
// does, without a copy of the algorithm in the program for each kind of struct
// (docs/adr/0016-binary-size.md).
package ordered

import "sort"

// By sorts a list by a comparison. Equal elements keep their order.
func By[T any](list []T, compare func(a, b T) int) {
	sort.SliceStable(list, func(i, j int) bool { return compare(list[i], list[j]) < 0 })
}
