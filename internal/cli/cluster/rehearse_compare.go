package cluster

import (
	"fmt"
	"slices"
	"strings"

	"github.com/clusterawsadm/clusterawsadm/internal/render"
)

// compare sets what differs between two accounts: what should be there, and what is there, one
// line for each resource.
func compare(k *render.Kill, want, have []string) {
	left, missing := beyond(have, want), beyond(want, have)
	for _, line := range missing {
		at := slices.IndexFunc(left, func(other string) bool { return sameName(line, other) })
		if at < 0 {
			k.Missing = append(k.Missing, line)
			continue
		}
		k.Changed = append(k.Changed, change(line, left[at]))
		left = slices.Delete(left, at, at+1)
	}
	k.Left = left
}

// beyond returns the lines that are not among others, each as often as it is there more often.
func beyond(lines, others []string) (out []string) {
	others = slices.Clone(others)
	for _, line := range lines {
		if at := slices.Index(others, line); at >= 0 {
			others = slices.Delete(others, at, at+1)
			continue
		}
		out = append(out, line)
	}
	return out
}

// sameName reports whether two lines describe a resource of the same kind and name: those are
// the text before a colon, or before the first attribute.
func sameName(a, b string) bool { return nameIn(a) == nameIn(b) }

func nameIn(line string) string {
	if name, _, ok := strings.Cut(line, ": "); ok {
		return name
	}
	words := strings.Fields(line)
	if at := slices.IndexFunc(words, func(w string) bool { return strings.Contains(w, "=") }); at > 0 {
		words = words[:at]
	}
	return strings.Join(words, " ")
}

// change says in what two descriptions of a resource differ: "Subnet demo-a: tags a=1 instead of
// a=2".
func change(want, have string) string {
	w, h := strings.Fields(want), strings.Fields(have)
	from := 0
	for from < min(len(w), len(h)) && w[from] == h[from] {
		from++
	}
	end := 0
	for end < min(len(w), len(h))-from && w[len(w)-1-end] == h[len(h)-1-end] {
		end++
	}
	part := func(words []string) string {
		if text := strings.Trim(strings.Join(words[from:len(words)-end], " "), ",;"); text != "" {
			return text
		}
		return "nothing"
	}
	return fmt.Sprintf("%s: %s instead of %s", nameIn(want), part(h), part(w))
}
