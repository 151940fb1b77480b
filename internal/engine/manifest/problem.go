package manifest

import (
	"cmp"
	"slices"
)

// sortProblems sorts problems by file (in the order of the sources), line, object and
// path, and removes duplicates: the schema and the webhooks often report the same
// problem.
func sortProblems(problems []Problem, sources []Source) []Problem {
	rank := make(map[string]int, len(sources))
	for i, s := range sources {
		rank[s.Name] = i
	}
	slices.SortStableFunc(problems, func(a, b Problem) int {
		return cmp.Or(
			cmp.Compare(rank[a.File], rank[b.File]),
			cmp.Compare(a.Line, b.Line),
			cmp.Compare(a.Object, b.Object),
			cmp.Compare(a.Path, b.Path),
		)
	})
	return slices.Compact(problems)
}
