package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/cli/env"
)

// The page that a run writes is the one that its events make.
func TestReport(t *testing.T) {
	s := newShell(t)
	file, dir := s.generated(t), t.TempDir()
	s.simulated()
	report := func(name string) string {
		t.Helper()
		data, err := os.ReadFile(filepath.Join(dir, name))
		require.NoError(t, err, s.err.String())
		return string(data)
	}
	for _, verb := range []string{"create", "delete"} {
		page := filepath.Join(dir, verb+".html")
		require.Equal(t, 0, s.run("cluster", verb, "-f", file, "--yes", "--progress", "json", "--report", page), s.err.String())
		events, lines := filepath.Join(dir, verb+".ndjson"), s.err.String()
		require.NoError(t, os.WriteFile(events, []byte(lines), 0o600))
		require.Equal(t, 0, s.run("cluster", "report", events, "--to", filepath.Join(dir, "again.html")), s.err.String())
		assert.Contains(t, s.err.String(), "Report: ")
		assert.True(t, report(verb+".html") == report("again.html"), "%s: both pages are the same", verb) //nolint:testifylint // a difference would fill the screen
		s.In = strings.NewReader(lines)
		require.Equal(t, 0, s.run("cluster", "report", "-"), s.err.String())
		assert.True(t, report(verb+".html") == s.out.String(), "and so is that on stdout") //nolint:testifylint // as above
		for _, text := range []string{">succeeded<", "123456789012", "<h2>Timeline</h2>", "<h2>Critical path</h2>", "<h2>Graph</h2>", "<h2>Calls</h2>", "nat-gateway/us-east-1a"} {
			assert.Contains(t, report(verb+".html"), text, verb)
		}
	}

	require.Equal(t, 0, s.run("cluster", "create", "-f", file, "--yes", "--report", filepath.Join(dir, "plain.html")), s.err.String())
	assert.Contains(t, s.err.String(), "Report: "+filepath.Join(dir, "plain.html"))
	assert.Contains(t, report("plain.html"), ">succeeded<")
	assert.Contains(t, report("plain.html"), "<h2>Cost</h2>", "although nobody is asked")
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	assert.Len(t, entries, 6, "no temporary file is left")
}

// A run that fails leaves a page, too.
func TestReportOfAFailure(t *testing.T) {
	s := newShell(t)
	file, page := s.generated(t), filepath.Join(t.TempDir(), "page.html")
	s.simulated()
	require.Equal(t, env.Halfway, s.run("cluster", "create", "-f", file, "--yes", "--timeout", "2m30s", "--report", page), s.err.String())
	data, err := os.ReadFile(page)
	require.NoError(t, err)
	assert.Contains(t, string(data), ">failed<")
	assert.Contains(t, string(data), "<dt>Exit code</dt><dd>5</dd>")
	assert.Contains(t, string(data), "not done after 2m30s (--timeout)")
}

func TestReportIsRefused(t *testing.T) {
	s := newShell(t)
	file, dir := s.generated(t), t.TempDir()
	s.simulated()
	for _, args := range [][]string{
		{"create", "-f", file, "--yes", "--report", filepath.Join(dir, "nowhere", "page.html")},
		{"create", "-f", file, "--yes", "--report", dir},
		{"create", "-f", file, "--dry-run", "--report", filepath.Join(dir, "page.html")},
		{"report"},
		{"report", filepath.Join(dir, "nothing")},
		{"report", file},
	} {
		assert.Equal(t, env.Wrong, s.run(append([]string{"cluster"}, args...)...), "%s: %s", args, s.err.String())
	}
	assert.Contains(t, s.err.String(), "line 1 is not an event of --progress json")
	require.Equal(t, 0, s.run("cluster", "list"), s.err.String())
	assert.NotContains(t, s.out.String(), "demo", "nothing was created")
}
