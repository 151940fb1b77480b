package loader

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest/crd"
	"github.com/clusterawsadm/clusterawsadm/internal/regex"
	"github.com/clusterawsadm/clusterawsadm/internal/suggest"
)

func (l *loader) failFields(o *manifest.Entry, errs field.ErrorList) {
	for _, e := range errs {
		if e.Type == field.ErrorTypeDuplicate && slices.ContainsFunc(errs, func(other *field.Error) bool {
			return other.Type == field.ErrorTypeRequired && strings.HasPrefix(other.Field, e.Field+".")
		}) {
			continue // items without their key are no duplicates of each other
		}
		if l.isMisnamed(o, e.Field) || l.followsFromInvalid(o, e.Field) {
			continue
		}
		p := fieldProblem(o, e)
		if e.Type == field.ErrorTypeTypeInvalid {
			p.Fix += l.fits(o, e)
		}
		l.fail(p)
	}
}

// followsFromInvalid reports whether an error is about a value that was removed because it is invalid, or about what contains it.
func (l *loader) followsFromInvalid(o *manifest.Entry, path string) bool {
	return slices.ContainsFunc(l.invalid[o], func(removed string) bool {
		return path == removed || path == manifest.Parent(removed) || strings.HasPrefix(path, removed+".") || strings.HasPrefix(path, removed+"[")
	})
}

// validate validates an object with the schema of its kind. Subnets without id are no duplicates of each other: nameSubnets
// gives each its own.
func validate(ctx context.Context, o *manifest.Entry, s *crd.Schema) field.ErrorList {
	return slices.DeleteFunc(s.Validate(ctx, o.Value), func(e *field.Error) bool {
		subnet, ok := manifest.ValueAt(o.Value, e.Field).(map[string]any)
		return e.Type == field.ErrorTypeDuplicate && ok && strings.HasSuffix(manifest.Parent(e.Field), ".network.subnets") && subnet["id"] == ""
	})
}

// fits names another version of the object's kind in which a value of the wrong type has the right one.
func (l *loader) fits(o *manifest.Entry, e *field.Error) string {
	have := ""
	switch e.BadValue {
	case "array":
		have = "a list"
	case "object":
		have = "a mapping"
	default:
		return ""
	}
	version := l.otherVersion(o, func(s *crd.Schema) bool { return s.TypeOf(e.Field) == e.BadValue })
	if version == "" {
		return ""
	}
	return fmt.Sprintf(", or use %s/%s, where it is %s", l.kinds[o.Kind].group, version, have)
}

// fieldProblem converts an error of Kubernetes' validation. It quotes the value only if
// it is short and cannot be a secret.
func fieldProblem(o *manifest.Entry, e *field.Error) manifest.Problem {
	e = ofField(e)
	what, fix := describe(e)
	if e.Type == field.ErrorTypeTypeInvalid {
		what, fix = wrongType(e, lowerFirst(plainRule(withoutPath(e.Detail))), o.ValueAt(e.Field))
	}
	p := o.Problem(e.Field, what, fix)
	if at, ok := o.Lines[p.Path+"."+entryOf(o.ValueAt(p.Path), e.BadValue)]; ok {
		p.Position = at
	}
	return p
}

// entryOf returns the key that an error of a whole mapping, such as labels, is about. The checks of Kubernetes quote the key or its value. It
// returns "" if the value is not a mapping of strings, or does not have the entry.
func entryOf(mapping, bad any) string {
	m, _ := mapping.(map[string]any)
	quoted, _ := bad.(string)
	if _, is := m[quoted]; is || quoted == "" {
		return quoted
	}
	for _, key := range slices.Sorted(maps.Keys(m)) {
		if m[key] == bad {
			return key
		}
	}
	return ""
}

func describe(e *field.Error) (what, fix string) {
	detail := lowerFirst(plainRule(withoutPath(e.Detail)))
	switch e.Type {
	case field.ErrorTypeRequired:
		return joinNonEmpty("a value is required", detail), "set it"
	case field.ErrorTypeNotSupported:
		return notSupported(e)
	case field.ErrorTypeDuplicate:
		return joinNonEmpty("is a duplicate", displayedValue(e)), "remove one of them"
	case field.ErrorTypeForbidden:
		if strings.Contains(detail, "is required") {
			return detail, "set it"
		}
		if strings.HasPrefix(detail, "the labels must match spec.selector") {
			return detail, "write them here, or change the selector"
		}
		return cmp.Or(detail, "must not be set"), "remove or change it"
	case field.ErrorTypeTooLong, field.ErrorTypeTooMany:
		return cmp.Or(detail, "is too long"), "shorten it"
	case field.ErrorTypeInvalid, field.ErrorTypeTypeInvalid, field.ErrorTypeNotFound, field.ErrorTypeInternal, field.ErrorTypeTooShort, field.ErrorTypeTooFew:
		return joinNonEmpty(displayedValue(e), detail), "change the value"
	default:
		return joinNonEmpty(displayedValue(e), detail), "change the value"
	}
}

// notSupported describes a value that is not in the enumeration of the schema.
func notSupported(e *field.Error) (what, fix string) {
	var choices []string
	for _, m := range regex.Of(`"([^"]*)"`).FindAllStringSubmatch(e.Detail, -1) {
		choices = append(choices, m[1])
	}
	value, _ := e.BadValue.(string)
	what = joinNonEmpty(displayedValue(e), "is not supported")
	what = strings.Replace(what, ": is", " is", 1)
	if meant := suggest.Nearest(value, choices); meant != "" && value != "" {
		return what, fmt.Sprintf("did you mean %q? allowed: %s", meant, strings.Join(choices, ", "))
	}
	return what, "use one of " + strings.Join(choices, ", ")
}

// wrongType describes a value whose type differs from that in the schema.
func wrongType(e *field.Error, detail string, value any) (what, fix string) {
	m := regex.Of(`must be of type ([\w,]+): "([\w-]*)"`).FindStringSubmatch(detail)
	if m == nil {
		return joinNonEmpty(displayedValue(e), detail), "change the value"
	}
	wanted, have := m[1], cmp.Or(m[2], schemaType(value))
	if bits, whole := strings.CutPrefix(wanted, "int"); whole && regex.Of(`^\d+$`).MatchString(bits) {
		if have == "float64" || have == "number" {
			return tooLong(bits), "change the value"
		}
		wanted = "integer"
	}
	return fmt.Sprintf("must be of type %s, not %s", wanted, have), typeFix(wanted, have, value)
}

// schemaType returns the type of a value as schemas name it.
func schemaType(value any) string {
	switch value.(type) {
	case bool:
		return "boolean"
	case int64, int:
		return "integer"
	case float64:
		return "number"
	case string:
		return "string"
	case []any:
		return "array"
	case map[string]any:
		return "object"
	}
	return "null"
}

// tooLong says that a number has a fraction, or more than that many bits.
func tooLong(bits string) string { return "must be a whole number of at most " + bits + " bits" }

// ofField returns an error of a whole object that names a field in its text, as the OpenAPI
// validator has for large numbers, as an error of the field.
func ofField(e *field.Error) *field.Error {
	m := regex.Of(`(?i)checked value must be of type integer with format int(32|64) in (\S+)$`).FindStringSubmatch(e.Detail)
	if m == nil {
		return e
	}
	return &field.Error{Type: field.ErrorTypeInvalid, Field: m[2], Detail: tooLong(m[1])}
}

// plainRule replaces the regular expression with which Kubernetes describes a name.
func plainRule(detail string) string {
	const (
		subdomain = `^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
		label     = `^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
		name      = "must consist of lower-case letters, digits, '-' and '.', and start and end with a letter or a digit"
		short     = "must consist of lower-case letters, digits and '-', and start and end with a letter or a digit"
	)
	detail = strings.NewReplacer(
		"should match '"+subdomain+"'", name, "should match '"+label+"'", short,
		"a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character", name,
		"a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character", short,
	).Replace(detail)
	return regex.Of(` \(e\.g\. .*regex used for validation is '.*'\)`).ReplaceAllString(detail, "")
}

// typeFix returns the fix for a value of the wrong type.
func typeFix(wanted, have string, value any) string {
	text, _ := value.(string)
	text = strings.TrimSpace(text)
	scalars := map[string]string{"integer": "a whole number, such as 3", "number": "a number, such as 1.5", "boolean": "true or false"}
	isNumber := regex.Of(`^-?\d+(\.\d+)?$`).MatchString(text)
	switch {
	case wanted == "string" && (scalars[have] != "" || have == "object" || have == "array"):
		return asText(have)
	case wanted == "integer" && isNumber && !strings.Contains(text, "."), wanted == "number" && isNumber, wanted == "boolean" && isBoolean(text):
		return fmt.Sprintf("write %s, without quotes", text)
	case scalars[wanted] != "":
		return "write " + scalars[wanted]
	case wanted == "array":
		return "write a list"
	case wanted == "object":
		return "write a mapping"
	case have == "null":
		return "set a value or remove the field"
	default:
		return "change the value"
	}
}

// asText returns the fix for a value that is no text.
func asText(have string) string {
	switch have {
	case "object":
		return notAText
	case "array":
		return "write a text, without [ ] and -"
	}
	return "put the value in quotes"
}

func isBoolean(text string) bool { return text == "true" || text == "false" }

// notAText is the advice for a text that YAML reads as a mapping, such as a command with "key: value".
const notAText = "put the text in quotes: it contains ': ', with which YAML begins a mapping"

// withoutPath removes the path that the OpenAPI validator puts before its message;
// Problem.String prints the path.
func withoutPath(detail string) string {
	if _, rest, ok := strings.Cut(detail, " in body "); ok && !strings.Contains(detail[:len(detail)-len(rest)-len(" in body ")], " ") {
		return rest
	}
	return detail
}

// displayedValue returns the value of an error, or "" if it may be a secret.
func displayedValue(e *field.Error) string {
	for step := range strings.FieldsFuncSeq(e.Field, func(r rune) bool { return r == '.' || r == '[' }) {
		switch strings.ToLower(step) {
		case "content", "passwd", "token", "data", "stringdata", "secret":
			return ""
		}
	}
	switch v := e.BadValue.(type) {
	case string:
		return quoted(v)
	case bool, int32, int64, float64:
		return fmt.Sprint(v)
	case *string:
		if v != nil {
			return quoted(*v)
		}
	}
	return ""
}

// quoted quotes a text that is short enough for a message.
func quoted(s string) string {
	if s == "" || len(s) > 80 {
		return ""
	}
	return strconv.Quote(s)
}

func joinNonEmpty(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + ": " + b
}

// lowerFirst makes the first letter lower case, for use within a sentence. Abbreviations
// and names keep their capitals.
func lowerFirst(s string) string {
	runes := []rune(s)
	if len(runes) < 2 || !unicode.IsUpper(runes[0]) || !unicode.IsLower(runes[1]) {
		return s
	}
	word, _, _ := strings.Cut(s, " ")
	if strings.IndexFunc(word[1:], unicode.IsUpper) >= 0 {
		return s
	}
	return string(unicode.ToLower(runes[0])) + string(runes[1:])
}
