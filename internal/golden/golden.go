// Package golden compares the output of a test with a golden file that was reviewed. "go
// test ./... -update" writes the files; review the diff like code.
package golden

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

//nolint:gochecknoglobals // a flag must be defined before the test binary parses its command line
var update = flag.Bool("update", false, "update the golden files")

// Assert fails the test if got differs from the file testdata/name.
func Assert(tb testing.TB, name, got string) {
	tb.Helper()
	file := filepath.Join("testdata", filepath.FromSlash(name))
	if *update {
		require.NoError(tb, os.MkdirAll(filepath.Dir(file), 0o755)) //nolint:gosec // test data is public
		require.NoError(tb, os.WriteFile(file, []byte(got), 0o644)) //nolint:gosec // test data is public
		return
	}
	want, err := os.ReadFile(file) //nolint:gosec // a path that the test chose
	require.NoError(tb, err, "run the test with -update to create the file")
	assert.Equal(tb, string(want), got, "%s differs; run the test with -update if the change is wanted", file)
}
