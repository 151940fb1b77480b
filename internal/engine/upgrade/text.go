package upgrade

import (
	"bytes"

	"github.com/clusterawsadm/clusterawsadm/internal/regex"
	"github.com/clusterawsadm/clusterawsadm/pkg/input"
)

// manifestText is the text of a manifest in which versions are replaced.
type manifestText struct {
	sources []input.Source
	failed  []string // positions of versions that could not be replaced
}

// newText returns a copy of the text.
func newText(sources []input.Source) *manifestText {
	t := &manifestText{}
	for _, s := range sources {
		t.sources = append(t.sources, input.Source{Name: s.Name, Data: bytes.Clone(s.Data)})
	}
	return t
}

// versionOnLine matches a key "version" with its value, which may have an anchor, quotes and
// variables.
const versionOnLine = `(\bversion["']?\s*:\s*(?:&\S+\s+)?["']?)((?:\$\{[^}]*\}|[^\s,{}#"'])+)`

// version returns the value of the only version on a line, as it is written; "" if there is
// none, or more than one.
func (t *manifestText) version(at input.Position) string {
	if _, line := t.line(at); line != nil {
		if found := regex.Of(versionOnLine).FindAllSubmatch(line, -1); len(found) == 1 {
			return string(found[0][2])
		}
	}
	return ""
}

// replace replaces the only version on a line.
func (t *manifestText) replace(at input.Position, version string) {
	s, line := t.line(at)
	if t.version(at) == "" {
		t.failed = append(t.failed, at.String())
		return
	}
	lines := bytes.Split(s.Data, []byte("\n"))
	lines[at.Line-1] = regex.Of(versionOnLine).ReplaceAll(line, []byte("${1}"+version))
	s.Data = bytes.Join(lines, []byte("\n"))
}

// line returns a line and its source.
func (t *manifestText) line(at input.Position) (*input.Source, []byte) {
	for i := range t.sources {
		lines := bytes.Split(t.sources[i].Data, []byte("\n"))
		if t.sources[i].Name == at.File && at.Line > 0 && at.Line <= len(lines) {
			return &t.sources[i], lines[at.Line-1]
		}
	}
	return nil, nil
}
