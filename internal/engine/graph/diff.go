package graph

import (
	"fmt"
	"maps"
	"slices"
)

// Remedy says how a difference can be closed.
type Remedy int

// The remedies, the least disruptive first.
const (
	Wait    Remedy = iota // waiting: AWS is changing it
	InPlace               // Update
	Replace               // only deleting and creating the resource
)

// Change is one difference between state and desired state.
type Change struct {
	Field  string `json:"field"`
	Have   string `json:"have"`
	Want   string `json:"want"`
	Remedy Remedy `json:"-"`
	Advice string `json:"-"` // what to do about a Replace difference; "" if that is obvious
	Origin string `json:"-"` // the field of the manifest; "" if it is not known
}

func (c Change) String() string {
	return fmt.Sprintf("%s from %q to %q", c.Field, c.Have, c.Want)
}

// Diff is a list of differences. A resource writes it with the methods.
type Diff []Change

// Set adds a difference that Update can close.
func (d *Diff) Set(field string, have, want any) { d.add(field, have, want, InPlace) }

// Fixed adds a difference that AWS does not permit to change.
func (d *Diff) Fixed(field string, have, want any) { d.add(field, have, want, Replace) }

// Advise sets the advice of all Fixed differences added so far that have none.
func (d Diff) Advise(advice string) {
	for i := range d {
		if d[i].Remedy == Replace && d[i].Advice == "" {
			d[i].Advice = advice
		}
	}
}

// Await adds a difference that closes by itself, as in "pending".
func (d *Diff) Await(field string, have, want any) { d.add(field, have, want, Wait) }

// Tags adds each desired tag that is missing or different. Other tags are ignored.
func (d *Diff) Tags(have, want map[string]string) {
	for _, k := range slices.Sorted(maps.Keys(want)) {
		d.add("tag "+k, have[k], want[k], InPlace)
	}
}

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
	if w == Unknown && r == Replace {
		r = Wait // the value may turn out to be the same
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
func (d Diff) HasTags() bool { return slices.ContainsFunc(d, Change.isTag) }

// onlyTags reports whether there are differences, and all of them are tags. AWS changes tags at once.
func (d Diff) onlyTags() bool {
	return len(d) > 0 && !slices.ContainsFunc(d, func(c Change) bool { return !c.isTag() })
}

func (c Change) isTag() bool { return len(c.Field) > 4 && c.Field[:4] == "tag " }

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

// wanted returns the fields to create: without those that AWS sets over time, and without
// lines to remove.
func (d Diff) wanted() (out Diff) {
	for _, c := range d {
		if c.Want != "" && (c.Remedy != Wait || c.Want == Unknown) {
			out = append(out, Change{Field: c.Field, Want: c.Want, Remedy: c.Remedy})
		}
	}
	return out
}

// action returns the action that closes all differences.
func (d Diff) action() Action {
	worst := Remedy(-1)
	for _, c := range d {
		worst = max(worst, c.Remedy)
	}
	switch worst {
	case Wait:
		return Settle
	case InPlace:
		return Update
	case Replace:
		return Conflict
	}
	return Keep
}

func (d Diff) only(r Remedy) Diff {
	return slices.DeleteFunc(slices.Clone(d), func(c Change) bool { return c.Remedy != r })
}
