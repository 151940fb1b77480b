// Package input says what is wrong with a file that somebody wrote: where, in
// which object and field, what, and what to do about it. Manifests of clusters
// and IAM configurations are checked in its terms.
package input

import (
	"strconv"
	"strings"
)

// Position is a place in the input.
type Position struct {
	File string // "-" for stdin
	Line int    // from 1; 0 when unknown
}

// Problem is one mistake in a file, or a warning about it.
type Problem struct {
	Position
	Object string // "AWSCluster/prod"; empty when the document could not be read
	Path   string // "spec.network.vpc.cidrBlock"; empty for the whole object
	What   string // what is wrong: lower case, no full stop
	Fix    string // what to do about it; may be empty
}

// InvalidError says that the input is wrong. It lists everything that was
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
