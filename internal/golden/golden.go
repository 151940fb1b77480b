// Package golden compares what a test produced with a file that a person has
// read and found good. With "go test ./... -update" the files are written
// anew; their diff is then reviewed like code.
package golden

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

//nolint:gochecknoglobals // a flag has to be there before the test binary reads its command line
var update = flag.Bool("update", false, "write the golden files anew")

// Assert fails the test when got is not what testdata/name holds.
func Assert(tb testing.TB, name, got string) {
	tb.Helper()
	file := filepath.Join("testdata", filepath.FromSlash(name))
	if *update {
		require.NoError(tb, os.MkdirAll(filepath.Dir(file), 0o755)) //nolint:gosec // test data is for everybody
		require.NoError(tb, os.WriteFile(file, []byte(got), 0o644)) //nolint:gosec // test data is for everybody
		return
	}
	want, err := os.ReadFile(file) //nolint:gosec // a path that the test chose
	require.NoError(tb, err, "run the test with -update to make the file")
	assert.Equal(tb, string(want), got, "%s differs; run the test with -update if the change is wanted", file)
}
