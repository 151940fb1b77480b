// Package text formats lists, plurals, numbers and optional parts of messages.
package text

import (
	"fmt"
	"strings"
)

// Prefixed returns s after a prefix, or "" if s is empty.
func Prefixed(prefix, s string) string {
	if s == "" {
		return ""
	}
	return prefix + s
}

// Several lists the first of many names.
func Several(names []string) string {
	const most = 5
	if len(names) > most {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
	}
	return strings.Join(names, ", ")
}

// Count returns a number with its noun: "1 subnet", "3 subnets", "2 policies".
func Count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %s", n, plural(noun))
}

// plural returns the plural of a noun that forms it with an s, or with ies after
// a consonant and y. Nouns in s or data are the same in both.
func plural(noun string) string {
	switch {
	case strings.HasSuffix(noun, "s"), strings.HasSuffix(noun, "data"):
		return noun
	case strings.HasSuffix(noun, "y") && !strings.HasSuffix(noun, "ay") && !strings.HasSuffix(noun, "ey"):
		return strings.TrimSuffix(noun, "y") + "ies"
	}
	return noun + "s"
}

// Thousands separates the thousands of a number that is not negative: "1,243.50".
func Thousands(number string) string {
	whole, fraction, _ := strings.Cut(number, ".")
	for at := len(whole) - 3; at > 0; at -= 3 {
		whole = whole[:at] + "," + whole[at:]
	}
	return whole + Prefixed(".", fraction)
}
