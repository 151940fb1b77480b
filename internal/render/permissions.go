package render

import (
	"fmt"
	"strings"

	"github.com/clusterawsadm/clusterawsadm/internal/text"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// writePermissions writes what the caller lacks of what a plan needs, and the policy that
// allows it.
func writePermissions(b *strings.Builder, p *plan.Permissions, s Style) error {
	switch {
	case p == nil:
		return nil
	case p.Unknown != "":
		b.WriteString(s.paint(yellow, "Permissions: not checked, ") + p.Unknown + "\n\n")
		return nil
	case p.Actions == 0:
		b.WriteString(s.paint(dim, "Permissions: the plan needs none besides those that it was made with") + "\n\n")
		return nil
	case len(p.Lacking) == 0:
		b.WriteString(s.paint(dim, fmt.Sprintf("Permissions: %s has all %d that the plan needs", p.Principal, p.Actions)) + "\n\n")
		return nil
	}
	b.WriteString(s.paint(red, "Permissions:") + fmt.Sprintf(" %s lacks %d of %d\n", p.Principal, len(p.Lacking), p.Actions))
	wide := 0
	for _, l := range p.Lacking {
		wide = max(wide, width(l.Action))
	}
	for _, l := range p.Lacking {
		maybe := ""
		if l.Maybe {
			maybe = "may be needed "
		}
		at, _, _ := strings.Cut(l.Origin, " ")
		b.WriteString("  " + s.paint(red, pad(l.Action, wide)) + "  " + maybe + "for " + string(l.Resource) + s.paint(dim, text.Prefixed("  # ", at)) + "\n")
		if l.Why != plan.NotAllowed {
			b.WriteString("  " + pad("", wide) + "  " + l.Why + "\n")
		}
	}
	b.WriteString("\n")
	if p.Policy == nil {
		return nil
	}
	b.WriteString("Attach this policy to get the missing permissions:\n\n")
	if err := Encode(b, JSON, p.Policy); err != nil {
		return err
	}
	b.WriteString("\n")
	return nil
}
