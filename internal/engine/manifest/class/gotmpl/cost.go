package gotmpl

import (
	"math"
	"regexp/syntax"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/clusterawsadm/clusterawsadm/internal/regex"
)

// Budget limits the work of all templates of one input together.
type Budget struct{ left int }

// maxTotalWork is the work for all templates of one input: a few seconds.
const maxTotalWork = 8 * maxWork

// NewBudget returns the budget for one input.
func NewBudget() *Budget { return &Budget{maxTotalWork} }

// Take takes work from the budget.
func (b *Budget) Take(work int) error {
	if work < 0 || work > b.left {
		return errTooMuch
	}
	b.left -= work
	return nil
}

// Render parses and executes a template.
func (b *Budget) Render(text string, data any) (string, error) {
	t, err := Parse(text)
	if err != nil {
		return "", err
	}
	return t.Within(b).Execute(data)
}

// costs returns estimates for the functions whose result may be much larger than their
// arguments, or that may take much longer than to read their arguments. The estimate is
// made before the call. The other functions that create long texts check their size
// themselves.
func costs() map[string]func(arguments []any) int {
	expression := func(v []any) int { return costOfExpression(text(v[0]), text(v[1])) }
	uniq := func(v []any) int { return times(size(v[0]), count(v[0])/8) }
	without := func(v []any) int { return times(size(v[0]), (len(v)-1)/8) }
	return map[string]func([]any) int{
		"printf":    func(v []any) int { return costOfPrintf(text(v[0]), v[1:]) },
		"join":      func(v []any) int { return times(len(text(v[0])), count(v[1])) },
		"split":     func(v []any) int { return costOfMap(text(v[0]), text(v[1])) },
		"splitn":    func(v []any) int { return costOfMap(text(v[0]), text(v[2])) },
		"trimAll":   func(v []any) int { return times(len(text(v[0])), len(text(v[1]))) },
		"trimall":   func(v []any) int { return times(len(text(v[0])), len(text(v[1]))) },
		"uniq":      uniq,
		"mustUniq":  uniq,
		"without":   without,
		"regexFind": expression, "mustRegexFind": expression,
		"regexMatch": expression, "mustRegexMatch": expression,
		"regexReplaceAll": expression, "mustRegexReplaceAll": expression,
		"mustWithout": without,
	}
}

// costOfPrintf counts the longest argument and the largest width for each verb: a verb may
// name its argument, as %[1]s does.
func costOfPrintf(format string, v []any) int {
	longest := 0
	for _, x := range v {
		longest = max(longest, size(x))
	}
	for _, verb := range regex.Of(`%[^%a-zA-Z]*`).FindAllString(format, -1) {
		if strings.Contains(verb, "*") { // an argument is the width
			return math.MaxInt
		}
		for _, digits := range regex.Of(`\d+`).FindAllString(verb, -1) {
			width, err := strconv.Atoi(digits)
			if err != nil {
				return math.MaxInt
			}
			longest = max(longest, width)
		}
	}
	return times(strings.Count(format, "%"), longest)
}

// costOfMap is the memory of a map with the parts of a text.
func costOfMap(separator, s string) int {
	const entry = 64
	parts := utf8.RuneCountInString(s)
	if separator != "" {
		parts = strings.Count(s, separator)
	}
	return times(parts+1, entry)
}

// longestExpression is the longest regular expression. A repetition in it may make its
// program a thousand times as long.
const longestExpression = 1000

// costOfExpression is the work of matching a text: each step of the program of the
// expression for each character. An invalid expression costs nothing: it is not used.
func costOfExpression(expression, s string) int {
	if len(expression) > longestExpression {
		return math.MaxInt
	}
	parsed, err := syntax.Parse(expression, syntax.Perl)
	if err != nil {
		return 0
	}
	program, err := syntax.Compile(parsed.Simplify())
	if err != nil {
		return 0
	}
	return times(len(program.Inst), len(s)+1)
}

// times multiplies without an overflow: the result is too large then anyway.
func times(a, b int) int {
	if a > 0 && b > math.MaxInt/a {
		return math.MaxInt
	}
	return a * b
}

// count returns the number of elements of a list, and 1 for another value.
func count(v any) int {
	if l, ok := asList(v); ok {
		return len(l)
	}
	return 1
}

// size returns the size of a value when it is printed, as weigh does, up to maxText.
func size(v any) int {
	var s state
	return s.weigh(v)
}
