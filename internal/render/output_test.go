package render

import (
	"bytes"
	"encoding/json"
	"io"
	"testing"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// hostile is a name that would clear the screen, colour text, ring the bell, change the
// direction of the text and move the cursor.
const hostile = "a\x1b[2J\x1b[31m\a\u202e\u009b1A\r\x7fb"

const harmless = `a\u001b[2J\u001b[31m\u0007\u202e\u009b1A\u000d\u007fb`

// No control character of a name reaches the terminal; the sequences of this package do.
func TestOutput(t *testing.T) {
	painted := Style{Colour: true}.paint(red, "é"+hostile)
	for size := 1; size <= len(painted); size++ { // a write may end within a character or a sequence
		var b bytes.Buffer
		out := NewOutput(&b)
		for rest := []byte(painted); len(rest) > 0; rest = rest[min(size, len(rest)):] {
			n, err := out.Write(rest[:min(size, len(rest))])
			require.NoError(t, err)
			require.Equal(t, min(size, len(rest)), n)
		}
		require.Equal(t, "\x1b[31mé"+harmless+"\x1b[0m", b.String())
	}
	_, err := NewOutput(closed{}).Write([]byte("x"))
	require.ErrorIs(t, err, io.ErrClosedPipe)
}

type closed struct{}

func (closed) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

// Documents have the same values with and without escapes.
func TestOutputOfDocuments(t *testing.T) {
	for f, decode := range map[Format]func([]byte, any) error{
		JSON: json.Unmarshal,
		YAML: func(data []byte, to any) error { return yaml.Unmarshal(data, to) },
	} {
		var got struct{ Name string }
		text := printed(t, func(w io.Writer) error { return Encode(w, f, map[string]string{"name": hostile}) })
		require.NotContains(t, text, "\x7f")
		require.NoError(t, decode([]byte(text), &got), text)
		require.Equal(t, hostile, got.Name)
	}
}

// Everything that shows names escapes their control characters.
func TestHostileNames(t *testing.T) {
	id := plan.ID("machine/" + hostile)
	p := completed(plan.Plan{Steps: []plan.Step{{
		Resource: id, Action: plan.Update, CloudID: hostile, Origin: hostile, Diff: plan.Diff{{Field: hostile, Have: hostile, Want: hostile}},
	}}})
	s := cluster.Status{
		Name:      hostile,
		Region:    hostile,
		Version:   hostile,
		Endpoint:  hostile,
		Resources: []cluster.ResourceStatus{{Resource: id, CloudID: hostile, State: "differs", Detail: hostile, Changes: p.Steps[0].Diff}},
	}
	for name, show := range map[string]func(io.Writer) error{
		"plan":   func(w io.Writer) error { return Plan(w, p, PlanView{Cluster: hostile, Region: hostile}) },
		"status": func(w io.Writer) error { return Status(w, s, StatusView{}) },
		"table":  func(w io.Writer) error { return Table(w, []string{"NAME"}, [][]string{{hostile}}) },
		"lines": func(w io.Writer) error {
			l := NewLines(w, Terminal{})
			l.Look(Run{Verb: "create", Cluster: hostile, Region: hostile})
			l.Begin(p)
			l.Event(plan.Event{Resource: id, What: plan.Waiting, CloudID: hostile, Detail: hostile})
			l.Note(hostile)
			l.End()
			return nil
		},
	} {
		text := printed(t, show)
		require.Contains(t, text, "2J", name)
		require.NotRegexp(t, "[^\\P{C}\n\t]|\u202e", text, name)
	}
}
