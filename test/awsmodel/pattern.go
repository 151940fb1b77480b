package awsmodel

import (
	"regexp"
	"strings"
)

// matches reports whether the whole text matches a pattern of a model. The patterns are
// written for Java; Go does not have their notation for characters.
func matches(pattern, text string) (bool, error) {
	r, err := regexp.Compile("^(?:" + translated(pattern) + ")$")
	if err != nil {
		return false, err
	}
	return r.MatchString(text), nil
}

func translated(pattern string) string {
	// the characters beyond the first 65,536, as pairs of surrogates
	pattern = strings.ReplaceAll(pattern, `\uD800\uDC00-\uDBFF\uDFFF`, `\x{10000}-\x{10FFFF}`)
	return regexp.MustCompile(`\\u([0-9a-fA-F]{4})`).ReplaceAllString(pattern, `\x{$1}`)
}
