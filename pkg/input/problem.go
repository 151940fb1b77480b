// Package input describes problems in files that users write: where the problem is, what
// it is, and how to fix it.
package input

import (
	"strconv"
	"strings"
)

// Position is a position in an input file.
type Position struct {
	File string // "-" for stdin
	Line int    // from 1; 0 when unknown
}

// Problem is one error or warning about a file.
type Problem struct {
	Position
	Object string // "AWSCluster/prod"; empty when the document could not be read
	Path   string // "spec.network.vpc.cidrBlock"; empty for the whole object
	What   string // what is wrong: lower case, no full stop
	Fix    string // what to do about it; may be empty
	// Several is What for several objects at once, if that differs: "are ignored". Problems with the same are of one sort.
	Several string
	// Refused says that a run is refused before its first write if the account shows the same.
	Refused bool
}

// InvalidError says that the input is invalid. Problems are in the order of the input.
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

// String prints the position as file:line, or as file if the line is unknown.
func (p Position) String() string {
	if p.Line == 0 {
		return p.File
	}
	return p.File + ":" + strconv.Itoa(p.Line)
}

// String prints a problem on one line: position, object and field, what is wrong, and
// after a dash how to fix it.
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

// oneLine removes line breaks, for messages that quote input.
func oneLine(s string) string {
	return strings.Join(strings.Fields(s), " ")
}
