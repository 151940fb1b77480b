package loader

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/pkg/input"
)

// sortProblems sorts problems by file (in the order of the sources), line, object and
// path, and removes duplicates: the schema and the webhooks often report the same
// problem.
func sortProblems(problems []manifest.Problem, sources []input.Source) []manifest.Problem {
	rank := make(map[string]int, len(sources))
	for i, s := range sources {
		rank[s.Name] = i
	}
	slices.SortStableFunc(problems, func(a, b manifest.Problem) int {
		return cmp.Or(
			cmp.Compare(rank[a.File], rank[b.File]),
			cmp.Compare(a.Line, b.Line),
			cmp.Compare(a.Object, b.Object),
			cmp.Compare(a.Path, b.Path),
		)
	})
	if problems = slices.Compact(problems); len(problems) > maxProblems {
		rest := len(problems) - maxProblems
		problems = append(problems[:maxProblems:maxProblems], manifest.Problem{
			Position: problems[maxProblems].Position, What: fmt.Sprintf("there are %d more problems", rest), Fix: "fix the others first",
		})
	}
	return problems
}

// maxProblems is the largest number of problems that are reported one by one.
const maxProblems = 1000
