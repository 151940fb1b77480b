package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/clusterawsadm/clusterawsadm/internal/cli/env"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
)

// consoleLine is a line of a console, as JSON.
type consoleLine struct {
	Machine string `json:"machine"` // its name, as in describe: "demo-md-0/0"
	ID      string `json:"id"`      // of its instance
	Text    string `json:"text"`
	// Gap is true if lines before this one may be missing, or may have been shown already: EC2 no longer has the last
	// line that was shown, or the machine was restarted.
	Gap bool `json:"gap,omitempty"`
}

// runFollow shows the console output of the machines, and repeats this for new lines.
func (o *logsOptions) runFollow(ctx context.Context, args []string) error {
	if o.output.to != "" {
		return env.Usagef("--follow writes no archive: it cannot be used with --to")
	}
	name, nodes := o.divided(args)
	seen := map[string][]string{} // by the ID of the machine
	return repeat(ctx, o.flags, func(ctx context.Context) error {
		consoles, err := o.consoles(ctx, name, nodes)
		if err != nil {
			return err
		}
		for _, c := range consoles {
			added, gap := addedLines(seen[c.Machine], c.Lines)
			seen[c.Machine] = c.Lines
			if err := o.showLines(c, added, gap); err != nil {
				return err
			}
		}
		return nil
	})
}

// consoles reads the console output of the machines once. With -f, the cluster may have no machines yet, which is no error.
func (o *logsOptions) consoles(ctx context.Context, name, nodes []string) (out []cluster.Console, err error) {
	x, err := o.subject(ctx, name, runFlags{})
	if err != nil {
		return nil, err
	}
	defer x.Close(&err)
	out, err = x.cluster.Consoles(ctx, nodes...)
	if !errors.Is(err, cluster.ErrNotFound) {
		return out, err
	}
	if len(name) > 0 {
		return nil, o.notFound(x.cluster.Name, x.cluster.Region)
	}
	o.Env.Story("cluster %s has no machines yet", x.cluster.Name)
	return nil, nil
}

// showLines writes lines of a console.
func (o *logsOptions) showLines(c cluster.Console, lines []string, gap bool) error {
	for n, line := range lines {
		x := consoleLine{Machine: c.Name, ID: c.Machine, Text: withoutControls(line), Gap: gap && n == 0}
		if o.output.value == "json" {
			if err := json.NewEncoder(o.Env.Out).Encode(x); err != nil {
				return err
			}
			continue
		}
		if x.Gap {
			x.Text = "… " + x.Text
		}
		if _, err := fmt.Fprintf(o.Env.Out, "%s | %s\n", env.Valid(x.Machine), env.Valid(x.Text)); err != nil {
			return err
		}
	}
	return nil
}

// withoutControls removes control characters from the output of a machine, so that it cannot change the state of the terminal.
func withoutControls(line string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' && r != '\t' || r == 0x7f {
			return -1
		}
		return r
	}, line)
}

// overlap is how many of the last lines are looked for in the next output of a console.
const overlap = 20

// addedLines returns the lines of a console that were added since the last look. EC2 keeps only the end of the output, so the
// function looks for the last lines that were shown. If they are not found, it returns all lines, and gap is true.
func addedLines(before, now []string) (added []string, gap bool) {
	if len(now) >= len(before) && slices.Equal(now[:len(before)], before) {
		return now[len(before):], false
	}
	last := before[max(0, len(before)-overlap):]
	for start := len(now) - len(last); start >= 0; start-- {
		if slices.Equal(now[start:start+len(last)], last) {
			return now[start+len(last):], false
		}
	}
	return now, true
}
