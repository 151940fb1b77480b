package apimodel

import (
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// Violation is a value of a request that the model of an API does not permit.
type Violation struct {
	Member string // "BlockDeviceMappings[0].Ebs.VolumeType"
	Value  string // "" for a member that is missing, or has too many or too few characters or entries
	What   string // "is not one of …"
	// Unsure says that a newer model may permit it: a value of an enum.
	Unsure bool
}

// String says what is wrong.
func (v Violation) String() string {
	if v.Value == "" {
		return v.Member + " " + v.What
	}
	return fmt.Sprintf("%s: %q %s", v.Member, v.Value, v.What)
}

// Check returns what is wrong with a request: a pointer to an input of the SDK. Values that are not known yet
// (plan.Unknown) are not looked at.
func (m Models) Check(service, operation string, input any) []Violation {
	s := m[service]
	if s == nil {
		return nil
	}
	c := &check{service: s}
	c.value("", s.Operations[operation].Input.Shape, reflect.ValueOf(input))
	return c.found
}

// check is the check of one request.
type check struct {
	service *Service
	found   []Violation
}

func (c *check) value(at, name string, v reflect.Value) {
	for v.Kind() == reflect.Pointer || v.Kind() == reflect.Interface {
		v = v.Elem()
	}
	s := c.service.Shapes[name]
	switch s.Type {
	case "structure":
		c.structure(at, s, v)
	case "list":
		c.limits(at, s, float64(v.Len()), "entries")
		for i := range v.Len() {
			c.value(fmt.Sprintf("%s[%d]", at, i), s.Item.Shape, v.Index(i))
		}
	case "map":
		c.limits(at, s, float64(v.Len()), "entries")
		for _, k := range v.MapKeys() {
			c.value(at+"."+k.String(), s.Key.Shape, k)
			c.value(at+"."+k.String(), s.Value.Shape, v.MapIndex(k))
		}
	case "string":
		if v.Kind() == reflect.String {
			c.text(at, s, v.String())
		}
	case "integer", "long":
		if v.CanInt() {
			c.limits(at, s, float64(v.Int()), "")
		}
	case "double":
		if v.CanFloat() {
			c.limits(at, s, v.Float(), "")
		}
	}
}

func (c *check) structure(at string, s Shape, v reflect.Value) {
	missing := slices.Clone(s.Required)
	for i := range v.NumField() {
		field := v.Type().Field(i)
		names := []string{field.Name, string(unicode.ToLower(rune(field.Name[0]))) + field.Name[1:]} // the SDK begins it with a capital letter
		if isScalar(field.Type.Kind()) {
			missing = slices.DeleteFunc(missing, func(r string) bool { return slices.Contains(names, r) })
		}
		if !field.IsExported() || field.Name == "ResultMetadata" || absent(v.Field(i)) {
			continue
		}
		for _, name := range names {
			if member, ok := s.Members[name]; ok {
				missing = slices.DeleteFunc(missing, func(r string) bool { return r == name })
				c.value(strings.TrimPrefix(at+"."+name, "."), member.Shape, v.Field(i))
				break
			}
		}
	}
	for _, name := range missing {
		c.found = append(c.found, Violation{Member: strings.TrimPrefix(at+"."+name, "."), What: "is required"})
	}
}

// isScalar reports whether fields of a kind are no pointers. The SDK sends those that are required also if they are false or 0.
func isScalar(k reflect.Kind) bool { return k == reflect.Bool || k == reflect.Int32 }

// absent reports whether the SDK does not send a field.
func absent(v reflect.Value) bool {
	if t, ok := v.Interface().(time.Time); ok {
		return t.IsZero()
	}
	return v.IsZero()
}

func (c *check) text(at string, s Shape, text string) {
	if text == "" || strings.Contains(text, plan.Unknown) { // of a state that is not there yet
		return
	}
	c.limits(at, s, float64(utf8.RuneCountInString(text)), "characters")
	if len(s.Enum) > 0 && !slices.Contains(s.Enum, text) {
		c.found = append(c.found, Violation{at, text, "is not one of " + strings.Join(s.Enum, ", "), true})
	}
	if pattern := c.service.compiled(s.Pattern); pattern != nil && !pattern.MatchString(text) {
		c.found = append(c.found, Violation{at, text, "does not match " + s.Pattern, false})
	}
}

func (c *check) limits(at string, s Shape, n float64, unit string) {
	say := func(what string, limit float64) {
		if unit != "" {
			c.found = append(c.found, Violation{Member: at, What: fmt.Sprintf("has %v %s: AWS permits %s %v", n, unit, what, limit)})
			return
		}
		c.found = append(c.found, Violation{Member: at, Value: fmt.Sprint(n), What: fmt.Sprintf("is not permitted: AWS permits %s %v", what, limit)})
	}
	if s.Min != nil && n < *s.Min {
		say("at least", *s.Min)
	}
	if s.Max != nil && n > *s.Max {
		say("at most", *s.Max)
	}
}

// compiled returns a pattern of the model; nil if there is none, or if Go does not know its notation. Each pattern is
// compiled once: the machines of a cluster have the same requests.
func (s *Service) compiled(pattern string) *regexp.Regexp {
	if pattern == "" {
		return nil
	}
	if known, ok := s.patterns.Load(pattern); ok {
		return known.(*regexp.Regexp) //nolint:forcetypeassert // nothing else is stored
	}
	out := compile(pattern)
	s.patterns.Store(pattern, out)
	return out
}

// compile compiles a pattern, which is written for Java.
func compile(pattern string) *regexp.Regexp {
	// the characters beyond the first 65,536, as pairs of surrogates
	pattern = strings.ReplaceAll(pattern, `\uD800\uDC00-\uDBFF\uDFFF`, `\x{10000}-\x{10FFFF}`)
	pattern = regexp.MustCompile(`\\u([0-9a-fA-F]{4})`).ReplaceAllString(pattern, `\x{$1}`)
	out, err := regexp.Compile("^(?:" + pattern + ")$")
	if err != nil {
		return nil
	}
	return out
}
