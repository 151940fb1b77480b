package golden

import (
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// recorder is a test whose failure does not fail the surrounding test.
type recorder struct {
	testing.TB
	failed bool
}

func (r *recorder) Helper()               {}
func (r *recorder) Errorf(string, ...any) { r.failed = true }

func TestAssert(t *testing.T) {
	t.Chdir(t.TempDir())
	require.NoError(t, os.Mkdir("testdata", 0o700))
	require.NoError(t, os.WriteFile("testdata/a.golden", []byte("as it was"), 0o600))

	for got, fails := range map[string]bool{"as it was": false, "as it is": true} {
		r := &recorder{TB: t}
		Assert(r, "a.golden", got)
		assert.Equal(t, fails, r.failed, got)
	}
}

func TestUpdateWritesTheFile(t *testing.T) {
	t.Chdir(t.TempDir())
	*update = true
	t.Cleanup(func() { *update = false })
	Assert(t, "deep/a.golden", "new")
	*update = false
	Assert(t, "deep/a.golden", "new")
}
