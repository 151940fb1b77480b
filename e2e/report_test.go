//go:build e2e

package e2e

import (
	"bytes"
	"cmp"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// probe shows the report in a frame of a phone's size, opens all rows, and writes down how wide
// the page becomes.
const probe = `<!DOCTYPE html><title>probe</title><body style="margin:0">
<iframe id="phone" src="PAGE" width="360" height="800" style="border:0"></iframe>
<script>
document.getElementById('phone').addEventListener('load', function () {
  var page = this.contentDocument;
  page.querySelectorAll('details').forEach(function (d) { d.open = true; });
  document.body.dataset.wide = page.documentElement.scrollWidth;
  document.body.dataset.rows = page.querySelectorAll('.row').length;
  Array.from(page.querySelectorAll('.row')).filter(function (r) { return r.dataset.waits; }).pop().querySelector('summary').focus();
  document.body.dataset.needed = page.querySelectorAll('.needed').length;
});
</script>`

// TestReportInABrowser opens the page of a run, and the one of a rehearsal, in Chromium: on a
// desktop, on a phone and on paper. E2E_PICTURES is a folder for the pictures, to look at them.
func TestReportInABrowser(t *testing.T) {
	chromium, err := exec.LookPath("chromium")
	if err != nil {
		t.Skip("chromium is not installed: apt-get install chromium")
	}
	for name, args := range map[string][]string{
		"report":    {"create", "--yes"},
		"rehearsal": {"rehearse", "--every-call=50"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			args = append([]string{"cluster"}, append(args, "-f", example("quickstart"), "--simulate", "--report", filepath.Join(dir, name+".html"))...)
			run := exec.CommandContext(t.Context(), binary(t), args...)
			run.Env = []string{"HOME=" + dir, "PATH=" + os.Getenv("PATH")}
			out, err := run.CombinedOutput()
			require.NoError(t, err, string(out))
			lookAt(t, chromium, dir, name)
		})
	}
}

// lookAt opens a page in a folder.
func lookAt(t *testing.T, chromium, dir, name string) {
	t.Helper()
	probed := strings.ReplaceAll(probe, "PAGE", name+".html")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "probe.html"), []byte(probed), 0o600))
	site := httptest.NewServer(http.FileServer(http.Dir(dir)))
	defer site.Close()

	pictures := cmp.Or(os.Getenv("E2E_PICTURES"), dir)
	browse := func(page string, args ...string) string {
		t.Helper()
		args = append([]string{
			"--headless",
			"--no-sandbox",
			"--disable-gpu",
			"--disable-quic",
			"--no-first-run",
			"--disable-background-networking",
			"--disable-component-update",
			"--disable-sync",
			"--hide-scrollbars",
			"--enable-logging=stderr",
			"--user-data-dir=" + t.TempDir(),
		}, append(args, site.URL+"/"+page)...)
		cmd := exec.CommandContext(t.Context(), chromium, args...)
		var stdout, stderr bytes.Buffer
		cmd.Stdout, cmd.Stderr = &stdout, &stderr
		require.NoError(t, cmd.Run(), stderr.String())
		assert.NotContains(t, stderr.String(), "CONSOLE", "the page has errors")
		return stdout.String()
	}

	dom := browse("probe.html", "--dump-dom")
	number := func(name string) string {
		m := regexp.MustCompile(`data-` + name + `="(\d+)"`).FindStringSubmatch(dom)
		require.NotNil(t, m, dom)
		return m[1]
	}
	assert.Equal(t, "360", number("wide"), "a phone does not scroll sideways")
	assert.Regexp(t, `^[3-9]\d$`, number("rows"))
	assert.NotEqual(t, "0", number("needed"), "the script marks what a row has waited for")

	shot := func(kind string) string { return filepath.Join(pictures, name+"-"+kind) }
	browse(name+".html", "--window-size=1280,4000", "--screenshot="+shot("desktop.png"))
	browse("probe.html", "--window-size=500,800", "--screenshot="+shot("phone.png"))
	browse(name+".html", "--no-pdf-header-footer", "--print-to-pdf="+shot("print.pdf"))
	for _, kind := range []string{"desktop.png", "phone.png", "print.pdf"} {
		assert.FileExists(t, shot(kind))
	}
}
