package resource

import (
	"fmt"
	"strings"
)

func prefixed(prefix, s string) string {
	if s == "" {
		return ""
	}
	return prefix + s
}

// several names the first of many.
func several(names []string) string {
	const most = 5
	if len(names) > most {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
	}
	return strings.Join(names, ", ")
}
