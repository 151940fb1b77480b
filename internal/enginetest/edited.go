package enginetest

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
)

// TryEdited edits an example, in an account that has what the example names and that have changes then. The plan is refused
// with a text that matches the pattern want; if want is "", the cluster is created.
func TryEdited(t *testing.T, file string, edit []string, have func(*awssim.State), want string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		plain, m := LoadQuick(t, file), Rewritten(t, file, edit...)
		a := Prepared(t, plain)
		if have != nil {
			a.Edit(have)
		}
		if want == "" {
			MustApply(t, m, a)
			return
		}
		assert.Regexp(t, want, Refused(t, m, a))
	})
}
