// Package text writes words for messages: lists, plurals, optional parts.
package text

import (
	"fmt"
	"strings"
)

// Prefixed returns s after a prefix, or "" where s is empty.
func Prefixed(prefix, s string) string {
	if s == "" {
		return ""
	}
	return prefix + s
}

// Several names the first of many.
func Several(names []string) string {
	const most = 5
	if len(names) > most {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
	}
	return strings.Join(names, ", ")
}
