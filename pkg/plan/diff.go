package plan

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Unknown is a value that AWS chooses when the resource is created.
const Unknown = "(known after apply)"

// NotShown is a value of a setting that may contain a secret.
const NotShown = "(not shown)"

// Remedy says what closes a difference.
type Remedy int

// The remedies, the least disruptive first.
const (
	ByItself Remedy = iota // waiting: AWS is working on it
	InPlace                // an update
	Replace                // nothing but a new resource: a conflict
)

// Change is one difference between a resource and what the manifest wants.
type Change struct {
	Field  string `json:"field"`
	Have   string `json:"have"`
	Want   string `json:"want"`
	Remedy Remedy `json:"-"`
	Advice string `json:"-"` // what to do about a difference that cannot be changed; "" where that is obvious
	// Origin is the field of the manifest: "demo.yaml:31 AWSMachineTemplate/demo-md-0
	// spec.template.spec.rootVolume.size"; "" if it is not known.
	Origin string `json:"origin,omitempty"`
}

func (c Change) String() string { return fmt.Sprintf("%s from %q to %q", c.Field, c.Have, c.Want) }

// Diff lists how a resource differs from what the manifest wants. A resource writes it with
// the methods.
type Diff []Change

// Set adds a difference that an update can close.
func (d *Diff) Set(field string, have, want any) { d.add(field, have, want, InPlace) }

// Fixed adds a difference that AWS does not permit to change. advice says what to do about it.
func (d *Diff) Fixed(field string, have, want any, advice ...string) {
	before := len(*d)
	d.add(field, have, want, Replace)
	(*d)[before:].Advise(strings.Join(advice, "; "))
}

// FixedID is Fixed for the ID of another resource. An ID that is not known yet is that of a resource which the run creates, so it is not the
// ID of one that exists.
func (d *Diff) FixedID(field, have, want string, advice ...string) {
	if have != "" && want == Unknown {
		want = "a new one"
	}
	d.Fixed(field, have, want, advice...)
}

// Advise sets the advice of all Fixed differences added so far that have none.
func (d Diff) Advise(advice string) {
	for i := range d {
		if d[i].Remedy == Replace && d[i].Advice == "" {
			d[i].Advice = advice
		}
	}
}

// Await adds a difference that closes by itself, as in "pending".
func (d *Diff) Await(field string, have, want any) { d.add(field, have, want, ByItself) }

// Tags adds each desired tag that is missing or different. Other tags are ignored. The value of a tag without one is shown as "": a tag that is
// missing has none.
func (d *Diff) Tags(have, want map[string]string) {
	for _, k := range slices.Sorted(maps.Keys(want)) {
		is, exists := have[k]
		if exists && is == "" {
			is = noValue
		}
		d.add(tagField+k, is, cmp.Or(want[k], noValue), InPlace)
	}
}

// Untag adds the removal of the tags with these keys.
func (d *Diff) Untag(have map[string]string, keys []string) {
	for _, k := range keys {
		if is, exists := have[k]; exists {
			d.add(tagField+k, cmp.Or(is, noValue), "", InPlace)
		}
	}
}

// noValue is the value of a tag that has an empty one.
const noValue = `""`

// Lines adds one difference for each line that is missing or extra. The order and the
// number of equal lines do not matter.
func (d *Diff) Lines(field string, have, want []string) {
	for _, line := range slices.Compact(slices.Sorted(slices.Values(have))) {
		if !slices.Contains(want, line) {
			d.add(field, line, "", InPlace)
		}
	}
	for _, line := range slices.Compact(slices.Sorted(slices.Values(want))) {
		if !slices.Contains(have, line) {
			d.add(field, "", line, InPlace)
		}
	}
}

func (d *Diff) add(field string, have, want any, r Remedy) {
	h, w := fmt.Sprint(have), fmt.Sprint(want)
	if w == Unknown && r == Replace && h != "" {
		r = ByItself // the value may turn out to be the same; none at all is certainly another one
	}
	if h != w {
		*d = append(*d, Change{Field: field, Have: h, Want: w, Remedy: r})
	}
}

// Has reports whether one of the fields differs.
func (d Diff) Has(fields ...string) bool {
	return slices.ContainsFunc(d, func(c Change) bool { return slices.Contains(fields, c.Field) })
}

// HasTags reports whether a tag differs.
func (d Diff) HasTags() bool { return slices.ContainsFunc(d, Change.IsTag) }

// OnlyTags reports whether there are differences, and all of them are tags. AWS changes tags at once.
func (d Diff) OnlyTags() bool {
	return len(d) > 0 && !slices.ContainsFunc(d, func(c Change) bool { return !c.IsTag() })
}

// SetsTags reports whether a tag is missing, or has another value.
func (d Diff) SetsTags() bool {
	return slices.ContainsFunc(d, func(c Change) bool { return c.IsTag() && c.Want != "" })
}

// Untagged lists the keys of the tags to remove.
func (d Diff) Untagged() (keys []string) {
	for _, c := range d {
		if c.IsTag() && c.Want == "" {
			keys = append(keys, strings.TrimPrefix(c.Field, tagField))
		}
	}
	return keys
}

// TagKeys lists the keys of all tags that differ.
func (d Diff) TagKeys() (keys []string) {
	for _, c := range d {
		if c.IsTag() {
			keys = append(keys, strings.TrimPrefix(c.Field, tagField))
		}
	}
	return keys
}

// tagField begins the name of the field of a tag.
const tagField = "tag "

// IsTag reports whether the change is that of a tag.
func (c Change) IsTag() bool {
	return len(c.Field) > len(tagField) && strings.HasPrefix(c.Field, tagField)
}

// Added lists the lines that are missing, of a field compared with Lines.
func (d Diff) Added(field string) (out []string) {
	for _, c := range d {
		if c.Field == field && c.Want != "" {
			out = append(out, c.Want)
		}
	}
	return out
}

// Removed lists the lines that are too many, of a field compared with Lines.
func (d Diff) Removed(field string) (out []string) {
	for _, c := range d {
		if c.Field == field && c.Want == "" {
			out = append(out, c.Have)
		}
	}
	return out
}

// Wanted returns the fields of a resource to create: without those that AWS sets over time, and
// without lines to remove.
func (d Diff) Wanted() (out Diff) {
	for _, c := range d {
		if c.Want != "" && (c.Remedy != ByItself || c.Want == Unknown) {
			out = append(out, Change{Field: c.Field, Want: c.Want, Remedy: c.Remedy})
		}
	}
	return out
}

// Action returns the action that closes all differences.
func (d Diff) Action() Action {
	worst := Remedy(-1)
	for _, c := range d {
		worst = max(worst, c.Remedy)
	}
	switch worst {
	case ByItself:
		return Settle
	case InPlace:
		return Update
	case Replace:
		return Conflict
	}
	return Keep
}

// Only returns the differences with a remedy.
func (d Diff) Only(r Remedy) Diff {
	return slices.DeleteFunc(slices.Clone(d), func(c Change) bool { return c.Remedy != r })
}
