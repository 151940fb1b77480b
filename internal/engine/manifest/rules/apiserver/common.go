package apiserver

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	invalid "k8s.io/apimachinery/pkg/util/validation/field"
)

// when refuses a field if bad is true.
func (c *check) when(bad bool, field, what, fix string) {
	if bad {
		c.refuse(field, what, fix)
	}
}

// invalid refuses a value if reasons is not empty. The message has the first reason. reasons is what the functions of
// k8s.io/apimachinery/pkg/util/validation return.
func (c *check) invalid(field, value string, reasons []string) {
	if len(reasons) > 0 {
		what, _, _ := strings.Cut(reasons[0], " (e.g.")
		c.refuse(field, fmt.Sprintf("%q: %s", value, what), "change it")
	}
}

// errors refuses each field for which a function of k8s.io/apimachinery has returned an error.
func (c *check) errors(all invalid.ErrorList) {
	for _, e := range all {
		what, _, _ := strings.Cut(worded(e), " (e.g.")
		if s, is := e.BadValue.(string); is && s != "" {
			what = fmt.Sprintf("%q: %s", s, what)
		}
		c.refuse(e.Field, what, "correct it")
	}
}

// subdomain refuses a name that is not a DNS subdomain (RFC 1123). An empty name is permitted.
func (c *check) subdomain(field, name string) {
	if name != "" {
		c.invalid(field, name, validation.IsDNS1123Subdomain(name))
	}
}

// qualified refuses a name that does not have the form of a label key: NAME or DOMAIN/NAME.
func (c *check) qualified(field, name string) {
	c.invalid(field, name, validation.IsQualifiedName(name))
}

// address refuses a text that is not an IP address. Addresses with leading zeros are permitted: API servers still accept them.
func (c *check) address(field, text string) {
	if len(validation.IsValidIPForLegacyField(invalid.NewPath(field), text, false, nil)) > 0 {
		c.refuse(field, fmt.Sprintf("%q is not an IP address", text), "write one such as 10.0.0.1")
	}
}

// block refuses a text that is not a CIDR block, and reports whether it is one.
func (c *check) block(field, text string) bool {
	bad := len(validation.IsValidCIDRForLegacyField(invalid.NewPath(field), text, false, nil)) > 0
	c.when(bad, field, fmt.Sprintf("%q is not a block of addresses", text), "write one such as 10.0.0.0/8")
	return !bad
}

// labelSelector checks an optional label selector.
func (c *check) labelSelector(at string, s *metav1.LabelSelector) {
	if s != nil {
		c.selector(at, s)
	}
}

// labels checks the keys and values of labels.
func (c *check) labels(at string, all map[string]string) {
	for _, key := range slices.Sorted(maps.Keys(all)) {
		c.invalid(at, key, validation.IsQualifiedName(key))
		c.invalid(at, all[key], validation.IsValidLabelValue(all[key]))
	}
}

// integer is a type of whole numbers of API types.
type integer interface{ ~int32 | ~int64 }

// between refuses a number that is less than least or more than most. n may be nil.
func between[N integer](c *check, field string, n *N, least, most int64) {
	switch {
	case n == nil || int64(*n) >= least && int64(*n) <= most:
	case int64(*n) < least && most >= math.MaxInt32:
		c.refuse(field, fmt.Sprintf("%d is less than %d", *n, least), fmt.Sprintf("use %d or more", least))
	default:
		c.refuse(field, fmt.Sprintf("%d is not between %d and %d", *n, least, most), "change it")
	}
}

// isOneOf checks an optional value like oneOf.
func isOneOf[S ~string](c *check, field string, value *S, permitted ...S) {
	if value != nil {
		c.when(*value == "", field, "is empty", "remove it, or write one of its values")
		oneOf(c, field, *value, permitted...)
	}
}

// onlyOne refuses a field unless exactly one of its settings is set. names are the settings that are set, and all are the possible ones.
func (c *check) onlyOne(field string, names []string, all string) {
	switch {
	case len(names) == 0:
		c.refuse(field, "needs one of "+all, "add it")
	case len(names) > 1:
		c.refuse(field, strings.Join(names, " and ")+" exclude each other", "remove one of them")
	}
}

// given returns the names of the settings that are set.
func given(settings ...setting) (names []string) {
	for _, s := range settings {
		if s.set {
			names = append(names, s.name)
		}
	}
	return names
}

type setting struct {
	name string
	set  bool
}

// distinct refuses a list with two items of the same name. Server-side apply identifies the items by their names.
func (c *check) distinct(field string, names []string) {
	for i, name := range names {
		c.when(slices.Contains(names[:i], name) && name != "", field, fmt.Sprintf("two items have the key %s", name), "change or remove one of them")
	}
}

func yes(b *bool) bool { return b != nil && *b }
