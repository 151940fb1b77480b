package permission

import (
	"encoding/json"
	"fmt"
	"unicode"
)

// MostPolicy is how many characters a managed policy may have ("IAM and AWS STS quotas" in
// the user guide of IAM). White space does not count.
const MostPolicy = 6144

// MostPolicies is how many managed policies a role, user or group may have (as above).
const MostPolicies = 10

// Size counts the characters of a document as IAM does.
func Size(d Document) (n int) {
	text, _ := json.Marshal(d) // strings, lists and maps of strings
	for _, r := range string(text) {
		if !unicode.IsSpace(r) {
			n++
		}
	}
	return n
}

// Split returns documents that together allow the same as d, each with at most MostPolicy
// characters. A document that fits is returned as it is.
func Split(d Document) []Document {
	if Size(d) <= MostPolicy {
		return []Document{d}
	}
	var out []Document
	for _, s := range d.Statement {
		for _, part := range parts(d.Version, s) {
			out = place(out, d.Version, part)
		}
	}
	return out
}

// place adds a statement to the first document that has room for it.
func place(all []Document, version string, s Statement) []Document {
	for i, d := range all {
		if longer := (Document{version, append(d.Statement[:len(d.Statement):len(d.Statement)], s)}); Size(longer) <= MostPolicy {
			all[i] = longer
			return all
		}
	}
	return append(all, Document{version, []Statement{s}})
}

// parts divides a statement that is too large for one document, by its actions or else by
// its resources. The Sids of the parts have numbers.
func parts(version string, s Statement) (out []Statement) {
	pending := []Statement{s}
	for len(pending) > 0 {
		p := pending[0]
		pending = pending[1:]
		first, second := p, p
		switch a, r := len(p.Action)/2, len(p.Resource)/2; {
		case Size(Document{version, []Statement{p}}) <= MostPolicy-numbers, a+r == 0:
			out = append(out, p)
			continue
		case a > 0:
			first.Action, second.Action = p.Action[:a], p.Action[a:]
		default:
			first.Resource, second.Resource = p.Resource[:r], p.Resource[r:]
		}
		pending = append([]Statement{first, second}, pending...)
	}
	for i := range out {
		if len(out) > 1 {
			out[i].Sid += fmt.Sprint(i + 1)
		}
	}
	return out
}

// numbers is the space that parts leaves for the number of a part.
const numbers = 4
