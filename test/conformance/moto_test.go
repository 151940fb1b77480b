//go:build e2e

package conformance

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/test/moto"
)

// TestMoto compares the answers of moto with those of AWS. A difference that is not on
// the list is an error, and so is one on the list that does not exist any more.
func TestMoto(t *testing.T) {
	server := moto.Start(t)
	server.Bootstrap(t)
	want, err := os.ReadFile(filepath.Join("testdata", "answers.txt"))
	require.NoError(t, err)
	known := map[string]difference{}
	for _, d := range differences() {
		assert.NotContains(t, known, d.question, "on the list twice")
		assert.NotEmpty(t, d.reason, d.question)
		known[d.question] = d
	}
	answers := run(t, server.Config, func() { time.Sleep(10 * time.Millisecond) })
	lines := strings.Split(strings.TrimSpace(string(want)), "\n")
	require.Len(t, answers, len(lines), "the suite asks the same questions")
	for i, line := range lines {
		a := answers[i]
		said := strings.TrimPrefix(line, a.question+": ")
		require.NotEqual(t, line, said, "the suite asks the same questions in the same order")
		d, listed := known[a.question]
		switch {
		case a.said == said:
			assert.False(t, listed, "%s: moto answers as AWS does: take it off the list", a.question)
		case !listed:
			assert.Fail(t, "a difference that is not on the list", "{%q, %q, `AWS: %s`},", a.question, a.said, said)
		default:
			assert.Equal(t, d.moto, a.said, "%s: another difference than the one on the list", a.question)
		}
	}
}
