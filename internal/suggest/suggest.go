// Package suggest finds the name that was probably meant by an unknown word.
package suggest

import (
	"fmt"
	"slices"
	"strings"
)

// Nearest returns the candidate with the smallest edit distance to word, ignoring case,
// or "" if none is close enough. If the word is a part of exactly one candidate, Nearest
// returns that one: instanceMetadataOptions for metadataOptions.
func Nearest(word string, candidates []string) string {
	best, limit := "", (len(word)+2)/3 // 1 of 3 letters, 2 of 6, 3 of 9
	if longer := containing(word, candidates); len(longer) == 1 {
		best, limit = longer[0], 1
	}
	for _, c := range candidates {
		if d := distance(strings.ToLower(word), strings.ToLower(c)); d < limit || d == limit && best == "" {
			best, limit = c, d
		}
	}
	return best
}

// containing returns the candidates of which the word is a part, and none for a word with fewer
// than five letters.
func containing(word string, candidates []string) (all []string) {
	const least = 5
	for _, c := range candidates {
		if len(word) >= least && strings.Contains(strings.ToLower(c), strings.ToLower(word)) {
			all = append(all, c)
		}
	}
	return all
}

// distance is the number of insertions, deletions, replacements and swaps of adjacent
// characters that turn a into b.
func distance(a, b string) int {
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		rows[i][0] = i
	}
	for j := range len(b) + 1 {
		rows[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			rows[i][j] = min(rows[i-1][j]+1, rows[i][j-1]+1, rows[i-1][j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				rows[i][j] = min(rows[i][j], rows[i-2][j-2]+1)
			}
		}
	}
	return rows[len(a)][len(b)]
}

// DidYouMean returns a fix that names the nearest candidate; if none is near, all of them
// if they are few; and otherwise "".
func DidYouMean(word string, candidates []string) string {
	if best := Nearest(word, candidates); best != "" {
		return fmt.Sprintf("did you mean %q?", best)
	}
	if len(candidates) == 0 || len(candidates) > 12 {
		return ""
	}
	sorted := slices.Sorted(slices.Values(candidates))
	return "known names: " + strings.Join(sorted, ", ")
}
