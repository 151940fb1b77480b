package gotmpl

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

func texts() map[string]any {
	all := map[string]any{
		"trim":       strings.TrimSpace,
		"trimAll":    func(cut, s string) string { return strings.Trim(s, cut) },
		"trimall":    func(cut, s string) string { return strings.Trim(s, cut) },
		"trimSuffix": func(end, s string) string { return strings.TrimSuffix(s, end) },
		"trimPrefix": func(start, s string) string { return strings.TrimPrefix(s, start) },
		"upper":      strings.ToUpper,
		"lower":      strings.ToLower,
		"contains":   func(part, s string) bool { return strings.Contains(s, part) },
		"hasPrefix":  func(start, s string) bool { return strings.HasPrefix(s, start) },
		"hasSuffix":  func(end, s string) bool { return strings.HasSuffix(s, end) },
		"repeat":     repeat,
		"replace":    replace,
		"substr":     substr,
		"trunc":      trunc,
		"nospace":    nospace,
		"indent":     indent,
		"nindent": func(n int, s string) (string, error) {
			text, err := indent(n, s)
			return "\n" + text, err
		},
		"quote":  func(v ...any) string { return quoteAll(v, func(x any) string { return strconv.Quote(text(x)) }) },
		"squote": func(v ...any) string { return quoteAll(v, func(x any) string { return fmt.Sprintf("'%v'", x) }) },
		"cat": func(v ...any) string {
			return strings.Join(textsOf(v), " ")
		},
		"toString": text,
		"toStrings": func(v any) []string {
			return toTexts(v)
		},
		"join":      func(separator string, v any) string { return strings.Join(toTexts(v), separator) },
		"splitList": func(separator, s string) []string { return strings.Split(s, separator) },
		"split":     func(separator, s string) map[string]string { return numbered(strings.Split(s, separator)) },
		"splitn": func(separator string, n int, s string) map[string]string {
			return numbered(strings.SplitN(s, separator, n))
		},
		"sortAlpha": func(v any) []string {
			sorted := toTexts(v)
			slices.Sort(sorted)
			return sorted
		},
		"plural": func(one, many string, n int) string {
			if n == 1 {
				return one
			}
			return many
		},
	}
	for name, f := range expressions() {
		all[name] = f
	}
	return all
}

// expressions returns the functions for regular expressions. An invalid expression is an
// error.
func expressions() map[string]any {
	match := func(expression, s string) (bool, error) { return regexp.MatchString(expression, s) }
	find := func(expression, s string) (string, error) {
		r, err := regexp.Compile(expression)
		if err != nil {
			return "", err
		}
		return r.FindString(s), nil
	}
	replace := func(expression, s, by string) (string, error) {
		r, err := regexp.Compile(expression)
		if err != nil {
			return "", err
		}
		if (len(s)+1)*(len(by)+1) > maxText {
			return "", errTooMuch
		}
		return r.ReplaceAllString(s, by), nil
	}
	return map[string]any{
		"regexMatch": match, "mustRegexMatch": match,
		"regexFind": find, "mustRegexFind": find,
		"regexReplaceAll": replace, "mustRegexReplaceAll": replace,
	}
}

// text converts a value to text.
func text(v any) string {
	if s, ok := v.(string); ok {
		return s
	}
	return fmt.Sprintf("%v", v)
}

// textsOf converts the values that are not nil to text.
func textsOf(v []any) []string {
	out := make([]string, 0, len(v))
	for _, x := range v {
		if x != nil {
			out = append(out, text(x))
		}
	}
	return out
}

// toTexts converts a list to texts; another value counts as a list of one element.
func toTexts(v any) []string {
	if l, ok := asList(v); ok {
		return textsOf(l)
	}
	return textsOf([]any{v})
}

func quoteAll(v []any, quote func(any) string) string {
	out := make([]string, 0, len(v))
	for _, x := range v {
		if x != nil {
			out = append(out, quote(x))
		}
	}
	return strings.Join(out, " ")
}

func repeat(n int, s string) (string, error) {
	if n > 0 && len(s) > maxText/n {
		return "", errTooMuch
	}
	return strings.Repeat(s, n), nil
}

func replace(old, by, s string) (string, error) {
	if strings.Count(s, old)*len(by) > maxText {
		return "", errTooMuch
	}
	return strings.ReplaceAll(s, old, by), nil
}

func indent(n int, s string) (string, error) {
	pad, err := repeat(n, " ")
	if err != nil {
		return "", err
	}
	rest, err := replace("\n", "\n"+pad, s)
	return pad + rest, err
}

func substr(start, end int, s string) string {
	switch {
	case start < 0:
		return s[:end]
	case end < 0 || end > len(s):
		return s[start:]
	default:
		return s[start:end]
	}
}

func trunc(n int, s string) string {
	switch {
	case n < 0 && len(s)+n > 0:
		return s[len(s)+n:]
	case n >= 0 && len(s) > n:
		return s[:n]
	default:
		return s
	}
}

func nospace(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) {
			return -1
		}
		return r
	}, s)
}

// numbered returns a map from _0, _1 … to the parts.
func numbered(parts []string) map[string]string {
	m := make(map[string]string, len(parts))
	for i, p := range parts {
		m["_"+strconv.Itoa(i)] = p
	}
	return m
}
