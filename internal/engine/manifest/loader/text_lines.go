package loader

import (
	"slices"
	"strconv"
	"strings"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest/yamldoc"
	"github.com/clusterawsadm/clusterawsadm/internal/regex"
)

// inTexts corrects the positions of problems in fields that hold a text of several lines, such as a configuration file or a script. A problem that
// names a line of the text, or a field of its YAML, gets the position of that line instead of the first line of the field.
func (l *loader) inTexts(problems []manifest.Problem) []manifest.Problem {
	byTitle := map[string]*manifest.Entry{}
	for _, o := range l.objects {
		if len(o.Texts) > 0 {
			byTitle[o.Title()] = o
		}
	}
	for i, p := range problems {
		o := byTitle[p.Object]
		if o == nil || o.Texts[p.Path] == nil || p.Position != o.Position(p.Path) {
			continue
		}
		text, _ := o.ValueAt(p.Path).(string)
		if line, what := lineIn(text, p.What); line > 0 {
			problems[i].Position, problems[i].What = o.LineOf(p.Path, line), what
		}
	}
	return problems
}

// lineIn returns the number of the line of the text that a message refers to, and the message without that number. line is 0 if it is unknown.
func lineIn(text, what string) (line int, rest string) {
	if m := regex.Of(`(?:yaml: )?\bline (\d+): `).FindStringSubmatchIndex(what); m != nil {
		line, _ = strconv.Atoi(what[m[2]:m[3]])
		return line, what[:m[0]] + what[m[1]:]
	}
	fields := regex.Of(`[A-Za-z][\w-]*(?:\.[A-Za-z][\w-]*|\[\d+\])+`).FindAllString(what, -1)
	if len(fields) == 0 || !strings.Contains(text, "\n") {
		return 0, what
	}
	lines := linesOfYAML(text)
	for _, path := range fields {
		for ; path != ""; path = manifest.Parent(path) {
			if at, known := lines[path]; known {
				return at.Line, what
			}
		}
	}
	return 0, what
}

// linesOfYAML returns the line of each field in a YAML text, by path; nil if the text is not YAML. If several documents have the same field, it is the
// line in the first of them.
func linesOfYAML(text string) map[string]manifest.Position {
	t := yamldoc.Text{Lines: strings.Split(text, "\n")}
	for i := range t.Lines {
		t.From = append(t.From, i+1)
	}
	documents, problems := yamldoc.Split(t)
	if len(problems) > 0 {
		return nil
	}
	all := map[string]manifest.Position{}
	for _, d := range slices.Backward(documents) {
		v := &yamldoc.Values{Doc: d, Lines: all, Budget: yamldoc.MaxNodes, Repeated: func(manifest.Problem) {}}
		v.Value(d.Root, "")
	}
	return all
}
