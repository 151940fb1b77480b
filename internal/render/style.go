// Package render prints plans, statuses and events, for people and for programs.
package render

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/clusterawsadm/clusterawsadm/internal/text"
)

// Style paints text, or leaves it as it is.
type Style struct{ Colour bool }

// The SGR codes in use.
const (
	bold   = "1"
	dim    = "2"
	red    = "31"
	green  = "32"
	yellow = "33"
	cyan   = "36"
)

func (s Style) paint(code, text string) string {
	if !s.Colour || text == "" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

// width is how many columns a text without colours takes. What is printed is
// ASCII but for a few marks, each one column wide.
func width(text string) int { return utf8.RuneCountInString(text) }

// pad fills text up with blanks.
func pad(text string, to int) string {
	return text + strings.Repeat(" ", max(0, to-width(text)))
}

// cut shortens text to so many columns, and shows that it did.
func cut(text string, to int) string {
	if width(text) <= to {
		return text
	}
	if to < 1 {
		return ""
	}
	return string([]rune(text)[:to-1]) + "…"
}

// brief returns what identifies a resource within its account: of an ARN, the part
// after the account.
func brief(id string) string {
	if parts := strings.SplitN(id, ":", 6); len(parts) == 6 && parts[0] == "arn" {
		return parts[5]
	}
	return id
}

// short prints a duration as briefly as it can be read: "42s", "2m05s", "1h10m".
func short(d time.Duration) string {
	s := int(d.Round(time.Second).Seconds())
	switch {
	case s < 60:
		return fmt.Sprintf("%ds", s)
	case s < 3600 && s%60 == 0:
		return fmt.Sprintf("%dm", s/60)
	case s < 3600:
		return fmt.Sprintf("%dm%02ds", s/60, s%60)
	case s%3600 < 60:
		return fmt.Sprintf("%dh", s/3600)
	}
	return fmt.Sprintf("%dh%02dm", s/3600, s%3600/60)
}

// roughly prints a duration in words, rounded.
func roughly(d time.Duration) string {
	if d < 90*time.Second {
		return text.Count(max(5, int(d.Round(5*time.Second).Seconds())), "second")
	}
	return text.Count(int((d + 30*time.Second).Minutes()), "minute")
}
