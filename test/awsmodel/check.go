package awsmodel

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Check returns what is wrong with the input of a call, according to the model. The input
// is a pointer to a struct of the AWS SDK, as it is after the SDK has set its defaults.
func (m Models) Check(service, operation string, input any) []string {
	s := m[service]
	if s == nil {
		return []string{service + ": there is no model of this service"}
	}
	op, ok := s.Operations[operation]
	if !ok {
		return []string{operation + ": the model does not have this operation"}
	}
	if op.Input == nil {
		return nil
	}
	c := &check{service: s}
	c.value(operation, op.Input.Shape, reflect.ValueOf(input))
	return c.problems
}

// check is the check of one input.
type check struct {
	service  *service
	problems []string
}

func (c *check) fail(at, format string, args ...any) {
	c.problems = append(c.problems, at+": "+fmt.Sprintf(format, args...))
}

// value checks a value that is set.
func (c *check) value(at, name string, v reflect.Value) {
	for v.Kind() == reflect.Pointer {
		v = v.Elem()
	}
	s := c.service.Shapes[name]
	switch s.Type {
	case "structure":
		c.structure(at, s, v)
	case "list":
		c.length(at, s, v.Len())
		for i := range v.Len() {
			c.value(fmt.Sprintf("%s[%d]", at, i), s.Member.Shape, v.Index(i))
		}
	case "map":
		c.length(at, s, v.Len())
		for _, k := range v.MapKeys() {
			c.value(at+" key", s.Key.Shape, k)
			c.value(at+"["+k.String()+"]", s.Value.Shape, v.MapIndex(k))
		}
	case "string":
		c.text(at, name, s, v.String())
	case "blob":
		if v.Kind() == reflect.Slice { // a body that is a stream has no limits
			c.length(at, s, v.Len())
		}
	case "integer", "long":
		c.limits(at, s, float64(v.Int()), "")
	case "float", "double":
		c.limits(at, s, v.Float(), "")
	case "boolean", "timestamp":
	default:
		c.fail(at, "the type %q of %s is not supported", s.Type, name)
	}
}

// structure checks that the members in the input are in the model, and that none is
// missing.
func (c *check) structure(at string, s shape, v reflect.Value) {
	missing := slices.Clone(s.Required)
	for i := range v.NumField() {
		field := v.Type().Field(i)
		if !field.IsExported() || field.Name == "ResultMetadata" || absent(v.Field(i)) {
			continue
		}
		name := memberOf(s, field.Name)
		if name == "" {
			c.fail(at, "the model does not have the member %s", field.Name)
			continue
		}
		missing = slices.DeleteFunc(missing, func(r string) bool { return r == name })
		c.value(at+"."+name, s.Members[name].Shape, v.Field(i))
	}
	for _, name := range missing {
		c.fail(at, "the required member %s is missing", name)
	}
}

// memberOf returns the name of a field of the SDK in the model. The SDK begins it with a
// capital letter.
func memberOf(s shape, field string) string {
	if _, ok := s.Members[field]; ok {
		return field
	}
	small := string(unicode.ToLower(rune(field[0]))) + field[1:]
	if _, ok := s.Members[small]; ok {
		return small
	}
	return ""
}

// absent reports whether the SDK does not send a field: a pointer, slice or map that is
// nil, or the zero value of another type.
func absent(v reflect.Value) bool {
	if t, ok := v.Interface().(time.Time); ok {
		return t.IsZero()
	}
	return v.IsZero()
}

func (c *check) text(at, name string, s shape, text string) {
	c.length(at, s, utf8.RuneCountInString(text))
	if len(s.Enum) > 0 && !slices.Contains(s.Enum, text) {
		c.fail(at, "%q is not one of %s", text, strings.Join(s.Enum, ", "))
	}
	if s.Pattern == "" {
		return
	}
	switch ok, err := matches(s.Pattern, text); {
	case err != nil:
		c.fail(at, "the pattern of %s cannot be read: %s", name, err)
	case !ok:
		c.fail(at, "%q does not match the pattern %s of %s", text, s.Pattern, name)
	}
}

func (c *check) length(at string, s shape, n int) { c.limits(at, s, float64(n), "length ") }

func (c *check) limits(at string, s shape, n float64, what string) {
	if s.Min != nil && n < *s.Min {
		c.fail(at, "%s%v is less than %v", what, n, *s.Min)
	}
	if s.Max != nil && n > *s.Max {
		c.fail(at, "%s%v is more than %v", what, n, *s.Max)
	}
}
