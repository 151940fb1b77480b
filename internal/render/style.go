// Package render prints plans, statuses and events, for people and for programs.
package render

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/clusterawsadm/clusterawsadm/internal/text"
)

// Style adds colours to text, or not.
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
	return introducer + code + "m" + text + introducer + "0m"
}

// Error paints a word that introduces an error.
func (s Style) Error(word string) string { return s.paint(red, word) }

// width is the number of columns of a text without colours. The text is ASCII except for
// a few marks, each one column wide.
func width(text string) int { return utf8.RuneCountInString(text) }

// pad appends spaces.
func pad(text string, to int) string {
	return text + strings.Repeat(" ", max(0, to-width(text)))
}

// cut shortens text to a number of columns, and marks the cut.
func cut(text string, to int) string {
	if width(text) <= to {
		return text
	}
	if to < 1 {
		return ""
	}
	return string([]rune(text)[:to-1]) + "…"
}

// cutWords shortens text to a number of columns, behind a word if one ends in its second half.
func cutWords(text string, to int) string {
	short := cut(text, to)
	if short == text || short == "" {
		return short
	}
	if at := strings.LastIndexByte(short, ' '); at > len(short)/2 {
		return strings.TrimRight(short[:at], " ,;:") + "…"
	}
	return short
}

// brief returns the part of a cloud ID that is unique within its account: of an ARN, the
// part after the account.
func brief(id string) string {
	if parts := strings.SplitN(id, ":", 6); len(parts) == 6 && parts[0] == "arn" {
		return parts[5]
	}
	return id
}

// short formats a duration: "42s", "2m05s", "1h10m".
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

// roughly formats a duration in words, rounded.
func roughly(d time.Duration) string {
	if d < 90*time.Second {
		return text.Count(max(5, int(d.Round(5*time.Second).Seconds())), "second")
	}
	return text.Count(int((d + 30*time.Second).Minutes()), "minute")
}
