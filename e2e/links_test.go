package e2e

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestLinks checks that each relative link in a document leads to a file in git, and to one
// of its headings: the documents are read on GitHub, where generated pages do not exist.
func TestLinks(t *testing.T) {
	files := markdownFiles(t)
	headings := map[string][]string{}
	for _, file := range files {
		headings[file] = anchors(readText(t, file))
	}
	checked := 0
	for _, file := range files {
		for _, link := range links(readText(t, file)) {
			target, anchor, _ := strings.Cut(link, "#")
			if strings.HasPrefix(target, "../../commit/") || filepath.IsAbs(target) {
				continue // a page of GitHub, and of the site
			}
			path := file
			if target != "" {
				path = filepath.Join(filepath.Dir(file), filepath.FromSlash(target))
			}
			checked++
			if _, err := os.Stat(path); assert.NoError(t, err, "%s: %s", file, link) {
				assert.False(t, isGenerated(path), "%s: %s is not in git", file, link)
				assert.True(t, anchor == "" || slices.Contains(headings[path], anchor), "%s: %s: no such heading", file, link)
			}
		}
	}
	assert.Greater(t, checked, 100)
}

// TestLinksAreFound checks what TestLinks takes for a link, and for the anchor of a heading.
func TestLinksAreFound(t *testing.T) {
	text := "# A `b`, c_d: e-f\n\n[x](y.md#z) and ![i](<a b.svg>)\n\n[r]: other.md\n`[no](code.md)`\n" +
		"```sh\n# no heading\n[no](block.md)\n```\n[far](https://example.com/a)\n# Twice\n# Twice\n"
	assert.Equal(t, []string{"y.md#z", "a b.svg", "other.md"}, links(text))
	assert.Equal(t, []string{"a-b-c_d-e-f", "twice", "twice-1"}, anchors(text))
}

// markdownFiles lists the documents in git.
func markdownFiles(t *testing.T) (files []string) {
	t.Helper()
	require.NoError(t, filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "node_modules" || isGenerated(path) || path != ".." && strings.HasPrefix(d.Name(), ".") && d.Name() != ".github"):
			return fs.SkipDir
		case !d.IsDir() && strings.HasSuffix(path, ".md"):
			files = append(files, path)
		}
		return nil
	}))
	require.Contains(t, files, filepath.Join("..", "README.md"))
	return files
}

// isGenerated reports whether a file is in one of the folders that "make docs", "make build" and
// "make release-check" write, and .gitignore names.
func isGenerated(path string) bool {
	path = filepath.ToSlash(strings.TrimPrefix(path, ".."+string(filepath.Separator)))
	return within(path, "docs/commands", "docs/man", "bin", "dist")
}

func readText(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	return string(text)
}

// prose returns a document without its code blocks.
func prose(text string) string {
	return regexp.MustCompile("(?ms)^ *```.*?^ *```$").ReplaceAllString(text, "")
}

// links returns the relative links and images of a document.
func links(text string) (targets []string) {
	text = regexp.MustCompile("`[^`\n]*`").ReplaceAllString(prose(text), "")
	for _, found := range regexp.MustCompile(`(?m)\]\(<([^>]*)>\)|\]\(([^)\s]*)\)|^\[[^\]]+\]: (\S+)$`).FindAllStringSubmatch(text, -1) {
		if target := found[1] + found[2] + found[3]; !regexp.MustCompile(`^[a-z]+:`).MatchString(target) {
			targets = append(targets, target)
		}
	}
	return targets
}

// anchors returns the anchors that GitHub makes of the headings of a document: in lower case,
// without punctuation, and with a number if there are two
// (https://docs.github.com/en/get-started/writing-on-github/getting-started-with-writing-and-formatting-on-github/basic-writing-and-formatting-syntax#section-links).
func anchors(text string) (all []string) {
	seen := map[string]int{}
	for _, found := range regexp.MustCompile(`(?m)^#+ +(.*?)\s*$`).FindAllStringSubmatch(prose(text), -1) {
		heading := regexp.MustCompile(`\]\([^)]*\)`).ReplaceAllString(found[1], "")
		anchor := strings.ReplaceAll(regexp.MustCompile(`[^\p{L}\p{N}_ -]`).ReplaceAllString(strings.ToLower(heading), ""), " ", "-")
		if seen[anchor]++; seen[anchor] > 1 {
			anchor += "-" + strconv.Itoa(seen[anchor]-1)
		}
		all = append(all, anchor)
	}
	return all
}
