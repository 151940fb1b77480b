package render

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/clusterawsadm/clusterawsadm/internal/regex"
	"github.com/clusterawsadm/clusterawsadm/pkg/input"
)

// sort is what problems that are told together have in common.
type sort struct {
	file, what, fix string
	refused         bool
}

func sortOf(p input.Problem) sort { return sort{p.File, cmp.Or(p.Several, p.What), p.Fix, p.Refused} }

// Warnings returns problems as text. Three and more of one sort are one line, at the position of the first one, with their number and the
// names of the first few.
func Warnings(problems []input.Problem) []string {
	const from = 3
	same, told := map[sort][]input.Problem{}, map[sort]bool{}
	for _, p := range problems {
		same[sortOf(p)] = append(same[sortOf(p)], p)
	}
	var lines []string
	for _, p := range problems {
		s := sortOf(p)
		switch {
		case len(same[s]) < from:
			lines = append(lines, p.String())
		case !told[s]:
			told[s] = true
			lines = append(lines, together(same[s]).String())
		}
	}
	return lines
}

// together is one problem for several of one sort.
func together(problems []input.Problem) input.Problem {
	type place struct{ kind, path string }
	var places []place
	names := map[place][]string{}
	for _, p := range problems {
		kind, name, _ := strings.Cut(p.Object, "/")
		at := place{kind, regex.Of(`\[\d+\]`).ReplaceAllString(p.Path, "[]")}
		if p.Several != "" {
			at.path = "" // the sentence is about objects
		}
		if names[at] == nil {
			places = append(places, at)
		}
		names[at] = append(names[at], name)
	}
	var subjects []string
	for _, at := range places {
		subjects = append(subjects, strings.TrimSpace(objectsOf(at.kind, names[at], len(places) <= most)+" "+at.path))
	}
	all := problems[0]
	all.Object, all.Path, all.What = strings.Join(subjects, ", "), "", cmp.Or(all.Several, all.What)
	return all
}

// most is how many things of one sort a line names.
const most = 3

// objectsOf counts objects of a kind: "App/a", "6 × AWSCluster/a", "25 × App", and with names "25 × App (a, b, c, …)".
func objectsOf(kind string, names []string, withNames bool) string {
	var different []string
	for _, name := range names {
		if !slices.Contains(different, name) {
			different = append(different, name)
		}
	}
	switch {
	case kind == "":
		return fmt.Sprintf("%d times", len(names))
	case len(names) == 1:
		return strings.TrimSuffix(kind+"/"+names[0], "/")
	case len(different) == 1:
		return strings.TrimSuffix(fmt.Sprintf("%d × %s/%s", len(names), kind, names[0]), "/")
	case !withNames:
		return fmt.Sprintf("%d × %s", len(names), kind)
	case len(different) > most:
		different = append(different[:most:most], "…")
	}
	return fmt.Sprintf("%d × %s (%s)", len(names), kind, strings.Join(different, ", "))
}
