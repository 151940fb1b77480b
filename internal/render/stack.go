package render

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/cloudformation/types"

	"github.com/clusterawsadm/clusterawsadm/pkg/bootstrap/stack"
)

// StackEvent formats an event of a stack; after is the time since the first event.
func StackEvent(e stack.Event, after time.Duration, s Style) string {
	status := string(e.Status)
	code := dim
	switch {
	case e.Failed() || strings.Contains(status, "ROLLBACK"):
		code = red
	case strings.HasSuffix(status, "_COMPLETE"):
		code = green
	}
	line := fmt.Sprintf("%6s  ", short(after)) + s.paint(code, pad(status, 18)) + "  "
	if e.Stack {
		line += "stack " + e.Logical
	} else {
		line += pad(e.Type, 25) + "  " + e.Logical
	}
	if e.Reason != "" && e.Reason != "User Initiated" && (e.Failed() || e.Stack) {
		line += ": " + e.Why()
	}
	return strings.TrimRight(line, " ")
}

// StackWait formats the resources that are still in progress.
func StackWait(working []stack.Event, after time.Duration) string {
	parts := make([]string, 0, named)
	for i, e := range working {
		if i == named {
			parts = append(parts, fmt.Sprintf("and %d more", len(working)-i))
			break
		}
		parts = append(parts, e.Logical)
	}
	if len(parts) == 0 {
		parts = []string{"AWS"}
	}
	return fmt.Sprintf("%6s  still waiting for %s", short(after), strings.Join(parts, ", "))
}

// StackResources prints the resources of a stack in the columns of upstream's
// clusterawsadm, which scripts parse, with the correct titles.
func StackResources(w io.Writer, all []stack.Resource) error {
	if _, err := io.WriteString(w, "\nFollowing resources are in the stack: \n\n"); err != nil {
		return err
	}
	for _, r := range all {
		if r.Status != types.ResourceStatusCreateComplete && r.Status != types.ResourceStatusUpdateComplete && r.Reason != "" {
			if _, err := io.WriteString(w, r.Reason+"\n"); err != nil {
				return err
			}
		}
	}
	t := tabwriter.NewWriter(w, 0, 0, 1, ' ', tabwriter.Debug)
	_, _ = io.WriteString(t, "Type\tResource\tStatus\n") // Flush returns the error
	for _, r := range all {
		_, _ = fmt.Fprintf(t, "%s\t%s\t%s\n", r.Type, r.Physical, r.Status)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n\n")
	return err
}

// StackPreview prints the changes to a stack.
func StackPreview(w io.Writer, p *stack.Preview, s Style) error {
	var b strings.Builder
	for line := range strings.Lines(p.Diff) {
		text := strings.TrimSuffix(line, "\n")
		switch {
		case strings.HasPrefix(text, "--- "), strings.HasPrefix(text, "+++ "):
			text = s.paint(bold, text)
		case strings.HasPrefix(text, "@@"):
			text = s.paint(cyan, text)
		case strings.HasPrefix(text, "+"):
			text = s.paint(green, text)
		case strings.HasPrefix(text, "-"):
			text = s.paint(red, text)
		}
		b.WriteString(text + "\n")
	}
	if p.Diff != "" {
		b.WriteString("\n")
	}
	count := map[stack.Action]int{}
	for _, step := range p.Steps {
		count[step.Action]++
		b.WriteString(previewed(step, s) + "\n")
	}
	if len(p.Steps) == 0 {
		b.WriteString("No changes: the stack is up to date.\n")
	} else {
		fmt.Fprintf(&b, "\n%d to add, %d to change, %d to replace, %d to remove.\n", count[stack.Add], count[stack.Change], count[stack.Replace], count[stack.Remove])
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func previewed(step stack.Step, s Style) string {
	mark, code := "~", yellow
	switch step.Action {
	case stack.Add:
		mark, code = "+", green
	case stack.Remove:
		mark, code = "-", red
	case stack.Replace:
		mark, code = "±", red
	case stack.Change:
	}
	line := s.paint(code, mark) + " " + pad(step.Logical, 44) + " " + pad(step.Type, 25) + " " + brief(step.Physical)
	if len(step.Properties) > 0 {
		line += " (" + strings.Join(step.Properties, ", ") + ")"
	}
	return strings.TrimRight(line, " ")
}
