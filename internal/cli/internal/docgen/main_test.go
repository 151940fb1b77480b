package main

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// pagesOf returns the pages whose names have a suffix.
func pagesOf(t *testing.T, suffix string) map[string]string {
	t.Helper()
	all, err := reference()
	require.NoError(t, err)
	pages := map[string]string{}
	for name, text := range all {
		if strings.HasSuffix(name, suffix) {
			pages[filepath.Base(name)] = string(text)
		}
	}
	require.Len(t, pages, len(available(commands())), "two commands have one page")
	return pages
}

// requireReached requires that links lead from the first page to all others, and nowhere else.
func requireReached(t *testing.T, pages map[string]string, first string, links func(text string) []string) {
	t.Helper()
	reached := map[string]bool{first: true}
	for next := []string{first}; len(next) > 0; next = next[1:] {
		for _, link := range links(pages[next[0]]) {
			require.Contains(t, pages, link, "a link in %s", next[0])
			if !reached[link] {
				reached[link] = true
				next = append(next, link)
			}
		}
	}
	require.ElementsMatch(t, slices.Collect(maps.Keys(pages)), slices.Collect(maps.Keys(reached)))
}

// words are the words of a text, separated by one space.
func words(text string) string { return strings.Join(strings.Fields(text), " ") }

// code are the code blocks of Markdown.
var code = regexp.MustCompile("(?ms)^```\n(.*?)^```$")

// TestMarkdown checks the pages for the site.
func TestMarkdown(t *testing.T) {
	pages := pagesOf(t, ".md")
	link := regexp.MustCompile(`\]\(([^)]*)\)`)
	requireReached(t, pages, "clusterawsadm.md", func(text string) (targets []string) {
		for _, found := range link.FindAllStringSubmatch(text, -1) {
			targets = append(targets, found[1])
		}
		return targets
	})
	for _, cmd := range available(commands()) {
		cmd.InitDefaultHelpFlag()
		name := strings.ReplaceAll(cmd.CommandPath(), " ", "_") + ".md"
		page := pages[name]
		assert.Regexp(t, `(?s)^---\ntitle: `+cmd.CommandPath()+"\neditLink: false\n---\n\n# "+cmd.CommandPath()+"\n", page)
		blocks := words(strings.Join(code.FindAllString(page, -1), "\n"))
		for _, want := range []string{cmd.UseLine(), cmd.Example, cmd.LocalFlags().FlagUsages(), cmd.InheritedFlags().FlagUsages()} {
			assert.Contains(t, blocks, words(want), name)
		}
		prose := code.ReplaceAllString(page, "")
		assert.NotContains(t, prose, "```", "%s: a block without end", name)
		for line := range strings.Lines(prose) {
			assert.NotRegexp(t, `^(  |\t)`, line, "%s: the lines of a list are joined to a paragraph", name)
			assert.NotRegexp(t, `<|\{\{`, line, "%s: the site takes it for HTML or a template", name)
		}
	}
}

// TestManualPages checks the pages for man.
func TestManualPages(t *testing.T) {
	pages := pagesOf(t, ".1")
	also := regexp.MustCompile(`\\fB([a-z0-9\\-]+)\(1\)\\fP`)
	requireReached(t, pages, "clusterawsadm.1", func(text string) (targets []string) {
		_, text, _ = strings.Cut(text, ".SH SEE ALSO\n")
		for _, found := range also.FindAllStringSubmatch(text, -1) {
			targets = append(targets, unescaped(found[1])+".1")
		}
		return targets
	})
	dir := t.TempDir()
	require.NoError(t, run(dir))
	for _, cmd := range available(commands()) {
		dashed := strings.ReplaceAll(cmd.CommandPath(), " ", "-")
		page := pages[dashed+".1"]
		assert.Contains(t, page, `.TH "`+strings.ToUpper(dashed)+`" "1" "" "clusterawsadm" "Commands of clusterawsadm"`+"\n")
		text := printed(t, page)
		wanted := []string{dashed + " - " + cmd.Short, cmd.UseLine(), cmd.Example, strings.ReplaceAll(cmd.Long, "#### ", "")}
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			if !f.Hidden && f.Deprecated == "" {
				wanted = append(wanted, "--"+f.Name, strings.ReplaceAll(f.Usage, "`", ""))
			}
		})
		for _, want := range wanted {
			assert.Contains(t, words(text), words(want), dashed)
		}
		requireFormatted(t, filepath.Join(dir, "man", dashed+".1"))
	}
}

// printed returns the text of a manual page. It fails if a line is a request that man does
// not know, or if code has no end.
func printed(t *testing.T, page string) string {
	t.Helper()
	var b strings.Builder
	depth := 0
	for line := range strings.Lines(page) {
		if !strings.HasPrefix(line, ".") {
			assert.False(t, strings.HasPrefix(line, "'"), "man takes it for a request: %s", line)
			b.WriteString(unescaped(line))
			continue
		}
		switch request, heading, _ := strings.Cut(strings.TrimSpace(line), " "); request {
		case ".EX":
			depth++
		case ".EE":
			depth--
		case ".SS":
			b.WriteString(heading + "\n")
		default:
			assert.Contains(t, []string{".nh", ".TH", ".SH", ".PP"}, request, line)
		}
		assert.Contains(t, []int{0, 1}, depth, line)
	}
	assert.Zero(t, depth, "code without end")
	return b.String()
}

// unescaped replaces the escapes of roff.
func unescaped(text string) string {
	text = strings.NewReplacer(`\fB`, "", `\fI`, "", `\fR`, "", `\fP`, "", `\-`, "-", `\&`, "", `\\`, "\x00", `\e`, "\x00").Replace(text)
	if n := strings.Index(text, `\`); n >= 0 {
		return text + " has an unknown escape"
	}
	return strings.ReplaceAll(text, "\x00", `\`)
}

// requireFormatted requires that groff, where it is installed, formats a page without a warning,
// other than that of a long word.
func requireFormatted(t *testing.T, file string) {
	t.Helper()
	groff, err := exec.LookPath("groff")
	if err != nil {
		return
	}
	out, err := exec.CommandContext(t.Context(), groff, "-Kutf8", "-man", "-Tutf8", "-ww", "-Wbreak", "-z", file).CombinedOutput()
	require.NoError(t, err, string(out))
	require.Empty(t, string(out))
}

// TestRun checks that the pages of removed commands are deleted, and that the pages do not depend on the
// user who generates them.
func TestRun(t *testing.T) {
	dir := t.TempDir()
	old, other := filepath.Join(dir, "man", "clusterawsadm-old.1"), filepath.Join(dir, "index.md")
	require.NoError(t, os.MkdirAll(filepath.Dir(old), 0o700))
	for _, file := range []string{old, other} {
		require.NoError(t, os.WriteFile(file, nil, 0o600))
	}
	t.Setenv("HOME", "/home/ada")
	t.Setenv("CLUSTERAWSADM_REGION", "eu-west-1")
	require.NoError(t, run(dir))
	assert.NoFileExists(t, old)
	assert.FileExists(t, other)
	t.Setenv("HOME", "/home/bob")
	again, err := reference()
	require.NoError(t, err)
	for name, want := range again {
		got, err := os.ReadFile(filepath.Join(dir, name))
		require.NoError(t, err)
		assert.Equal(t, string(want), string(got), name)
		assert.NotContains(t, string(got), "/home/", name)
		assert.NotContains(t, string(got), "1970", name)
	}
}
