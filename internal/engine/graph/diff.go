package graph

import (
	"fmt"
	"maps"
	"slices"
)

// Remedy says what can close a difference.
type Remedy int

// The remedies, the best first.
const (
	Wait    Remedy = iota // time: AWS is on its way
	InPlace               // Update
	Replace               // nothing, short of making the thing anew
)

// Change is one difference between what is and what is wanted.
type Change struct {
	Field  string `json:"field"`
	Have   string `json:"have"`
	Want   string `json:"want"`
	Remedy Remedy `json:"-"`
	Advice string `json:"-"` // what to do where nothing can close it; "" where that is plain
}

func (c Change) String() string {
	return fmt.Sprintf("%s from %q to %q", c.Field, c.Have, c.Want)
}

// Diff is a list of differences. Its methods are how a resource writes one.
type Diff []Change

// Set notes a difference that Update can mend.
func (d *Diff) Set(field string, have, want any) { d.add(field, have, want, InPlace) }

// Fixed notes a difference in something AWS does not let us change.
func (d *Diff) Fixed(field string, have, want any) { d.add(field, have, want, Replace) }

// Advise says what to do about those differences noted so far that nothing can
// close and that say nothing of it yet.
func (d Diff) Advise(advice string) {
	for i := range d {
		if d[i].Remedy == Replace && d[i].Advice == "" {
			d[i].Advice = advice
		}
	}
}

// Await notes a difference that closes by itself, as in "pending".
func (d *Diff) Await(field string, have, want any) { d.add(field, have, want, Wait) }

// Tags notes each wanted tag that is missing or different. Tags that we did
// not ask for are none of our business.
func (d *Diff) Tags(have, want map[string]string) {
	for _, k := range slices.Sorted(maps.Keys(want)) {
		d.add("tag "+k, have[k], want[k], InPlace)
	}
}

// Lines notes the lines of a list that are missing, and those that are too
// many, one difference each. Both lists are sets.
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
		r = Wait // it may yet turn out to be the same
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
func (d Diff) HasTags() bool {
	return slices.ContainsFunc(d, func(c Change) bool { return len(c.Field) > 4 && c.Field[:4] == "tag " })
}

// Added lists the wanted lines of a field noted with Lines.
func (d Diff) Added(field string) (out []string) {
	for _, c := range d {
		if c.Field == field && c.Want != "" {
			out = append(out, c.Want)
		}
	}
	return out
}

// Removed lists the lines of a field noted with Lines that are too many.
func (d Diff) Removed(field string) (out []string) {
	for _, c := range d {
		if c.Field == field && c.Want == "" {
			out = append(out, c.Have)
		}
	}
	return out
}

// wanted drops what time will bring about, and what is not wanted.
func (d Diff) wanted() (out Diff) {
	for _, c := range d {
		if c.Want != "" && (c.Remedy != Wait || c.Want == Unknown) {
			out = append(out, Change{Field: c.Field, Want: c.Want, Remedy: c.Remedy})
		}
	}
	return out
}

// action is what it takes to close all the differences.
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
