// Package regex compiles regular expressions when they are first used: a program that
// starts for one command does not pay for the expressions of all others.
package regex

import (
	"regexp"
	"sync"
)

// Of returns the compiled expression. It panics on one that does not compile, as
// regexp.MustCompile does. Expressions are remembered for ever: pass constants.
func Of(expression string) *regexp.Regexp {
	if r, ok := compiled.Load(expression); ok {
		return r.(*regexp.Regexp) //nolint:forcetypeassert // no other type is stored below
	}
	r, _ := compiled.LoadOrStore(expression, regexp.MustCompile(expression))
	return r.(*regexp.Regexp) //nolint:forcetypeassert // as above
}

// compiled has the expressions by their text.
var compiled sync.Map //nolint:gochecknoglobals // what is compiled is the same for everybody
