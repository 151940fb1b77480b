package gotmpl

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"strings"

	"github.com/Masterminds/semver/v3"
)

// functions returns the functions of text/template and sprig, with sprig's parameters,
// except those that read the clock, random numbers or the environment.
func functions() map[string]any {
	all := map[string]any{}
	for _, group := range []map[string]any{builtins(), texts(), encodings(), numbers(), lists(), dicts()} {
		maps.Copy(all, group)
	}
	return all
}

func builtins() map[string]any {
	return map[string]any{
		"and": func(any, ...any) any { return nil }, // evaluated by logic
		"or":  func(any, ...any) any { return nil },
		"not": func(v any) bool { return !truth(v) },
		"eq":  eq,
		"ne": func(a, b any) (bool, error) {
			same, err := equal(a, b)
			return !same, err
		},
		"lt": less,
		"le": lessOrEqual,
		"gt": func(a, b any) (bool, error) {
			below, err := lessOrEqual(a, b)
			return !below, err
		},
		"ge": func(a, b any) (bool, error) {
			below, err := less(a, b)
			return !below, err
		},
		"index":    index,
		"len":      length,
		"print":    fmt.Sprint,
		"printf":   fmt.Sprintf,
		"println":  fmt.Sprintln,
		"urlquery": func(v ...any) string { return url.QueryEscape(fmt.Sprint(v...)) },

		"default":  orDefault,
		"empty":    empty,
		"coalesce": coalesce,
		"all":      func(v ...any) bool { return first(v, empty) < 0 },
		"any":      func(v ...any) bool { return first(v, truth) >= 0 },
		"ternary": func(yes, no any, which bool) any {
			if which {
				return yes
			}
			return no
		},
		"fail":   func(message string) (string, error) { return "", errors.New(message) },
		"kindOf": kindOf,
		"kindIs": func(kind string, v any) bool { return kindOf(v) == kind },
		"semver": version,
		"semverCompare": func(constraint, v string) (bool, error) {
			c, err := semver.NewConstraint(constraint)
			if err != nil {
				return false, err
			}
			parsed, err := semver.NewVersion(v)
			if err != nil {
				return false, err
			}
			return c.Check(parsed), nil
		},
	}
}

func orDefault(d any, given ...any) any {
	if len(given) == 0 || empty(given[0]) {
		return d
	}
	return given[0]
}

func coalesce(v ...any) any {
	if i := first(v, truth); i >= 0 {
		return v[i]
	}
	return nil
}

// first returns the index of the first value for which test is true, or -1.
func first(v []any, test func(any) bool) int {
	for i, item := range v {
		if test(item) {
			return i
		}
	}
	return -1
}

// version parses a version. Sprig's methods are fields here: templates write both as
// .Major.
func version(text string) (map[string]any, error) {
	v, err := semver.NewVersion(text)
	if err != nil {
		return nil, err
	}
	return map[string]any{
		"Major": int64(v.Major()), "Minor": int64(v.Minor()), "Patch": int64(v.Patch()), //nolint:gosec // versions are small
		"Prerelease": v.Prerelease(), "Metadata": v.Metadata(), "Original": v.Original(),
	}, nil
}

func encodings() map[string]any {
	return map[string]any{
		"b64enc": func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) },
		"b64dec": func(s string) string {
			raw, err := base64.StdEncoding.DecodeString(s)
			if err != nil {
				return err.Error()
			}
			return string(raw)
		},
		"sha256sum": func(s string) string {
			sum := sha256.Sum256([]byte(s))
			return hex.EncodeToString(sum[:])
		},
		"toJson":           func(v any) string { return toJSON(v, "", true) },
		"mustToJson":       func(v any) string { return toJSON(v, "", true) },
		"toPrettyJson":     func(v any) string { return toJSON(v, "  ", true) },
		"mustToPrettyJson": func(v any) string { return toJSON(v, "  ", true) },
		"toRawJson":        func(v any) string { return toJSON(v, "", false) },
		"mustToRawJson":    func(v any) string { return toJSON(v, "", false) },
		"fromJson": func(s string) any {
			v, err := fromJSON(s)
			if err != nil {
				return nil
			}
			return v
		},
		"mustFromJson": fromJSON,
	}
}

// toJSON encodes a value as JSON. All values can be encoded except infinities, for which
// the result is "", as in sprig.
func toJSON(v any, indent string, escape bool) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(escape)
	e.SetIndent("", indent)
	if err := e.Encode(v); err != nil {
		return ""
	}
	return strings.TrimSuffix(b.String(), "\n")
}

func fromJSON(s string) (any, error) {
	var v any
	err := json.Unmarshal([]byte(s), &v)
	return v, err
}
