// Package gomega stands in for the test library of that name in our binary.
// Cluster API's util/conversion has helpers for fuzz tests beside what
// conversions need, and so would link the library, an HTML parser and the
// character sets of East Asia into every program: 0.7 MB
// (docs/adr/0016-binary-size.md).
//
// It has what those helpers name. Nobody calls them here. The packages below
// it are empty: only tests of other modules import them.
package gomega

// Matcher says whether a value is as wanted.
type Matcher func(actual any) bool

// WithT makes assertions.
type WithT struct{ t T }

// T is what a test reports to.
type T interface {
	Helper()
	Fatalf(format string, args ...any)
}

// Assertion is what is said of a value.
type Assertion struct {
	t      T
	actual any
}

// NewWithT returns an asserter that reports to a test.
func NewWithT(t T) *WithT { return &WithT{t} }

// Expect begins an assertion about a value.
func (w *WithT) Expect(actual any, _ ...any) Assertion { return Assertion{w.t, actual} }

// To ends the test when the value is not as the matcher wants it.
func (a Assertion) To(m Matcher, description ...any) bool {
	a.t.Helper()
	ok := m(a.actual)
	if !ok {
		a.t.Fatalf("unexpected %v: %v", a.actual, description)
	}
	return ok
}

// Succeed matches no error.
func Succeed() Matcher { return func(actual any) bool { return actual == nil } }

// BeTrue matches true.
func BeTrue() Matcher { return func(actual any) bool { return actual == true } }
