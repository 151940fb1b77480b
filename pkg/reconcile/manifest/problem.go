package manifest

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

// InvalidError says that the input is wrong. It carries everything that was
// found, in the order of the input.
type InvalidError struct {
	Problems []Problem
}

// Error prints one line per problem.
func (e *InvalidError) Error() string {
	lines := make([]string, 0, len(e.Problems))
	for _, p := range e.Problems {
		lines = append(lines, p.String())
	}
	return strings.Join(lines, "\n")
}

// String prints the position as file:line, without the line where it is not
// known.
func (p Position) String() string {
	if p.Line == 0 {
		return p.File
	}
	return p.File + ":" + strconv.Itoa(p.Line)
}

// String prints a problem on one line: where, in which object and field, what,
// and after a dash what to do.
func (p Problem) String() string {
	var b strings.Builder
	if p.File != "" {
		b.WriteString(p.Position.String())
		b.WriteString(": ")
	}
	subject := strings.TrimSpace(p.Object + " " + p.Path)
	if subject != "" {
		b.WriteString(subject)
		b.WriteString(": ")
	}
	b.WriteString(oneLine(p.What))
	if p.Fix != "" {
		b.WriteString(" — ")
		b.WriteString(oneLine(p.Fix))
	}
	return b.String()
}

// oneLine keeps a message that quotes input from breaking the rule of one line
// per problem.
func oneLine(s string) string {
	return strings.Join(strings.Fields(s), " ")
}

// order sorts problems by file (as the files were given), line, object and
// path, and drops repetitions: two layers of validation often find the same
// thing.
func order(problems []Problem, sources []Source) []Problem {
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
