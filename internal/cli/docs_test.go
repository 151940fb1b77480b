package cli

import (
	"bytes"
	"errors"
	"flag"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/spf13/cobra/doc"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestReference checks that the reference of the commands, docs/commands and docs/man, is
// up to date. With -update it is written.
func TestReference(t *testing.T) {
	s := newShell(t)
	s.ConfigDir, s.HomeDir = "~/.config", "~"
	root, _ := newRoot(s.Env)
	root.InitDefaultCompletionCmd()
	epoch := time.Unix(0, 0)
	for dir, generate := range map[string]func(dir string) error{
		"commands": func(dir string) error { return doc.GenMarkdownTree(root, dir) },
		"man": func(dir string) error {
			if err := doc.GenManTree(root, &doc.GenManHeader{Section: "1", Source: name, Manual: "Commands of " + name, Date: &epoch}, dir); err != nil {
				return err
			}
			return undated(dir)
		},
	} {
		kept := filepath.Join("..", "..", "docs", dir)
		if flag.Lookup("update").Value.String() == "true" {
			require.NoError(t, os.RemoveAll(kept))
			require.NoError(t, os.MkdirAll(kept, 0o755))
			require.NoError(t, generate(kept))
			continue
		}
		fresh := t.TempDir()
		require.NoError(t, generate(fresh))
		want, have := contents(t, fresh), contents(t, kept)
		assert.Equal(t, slices.Sorted(maps.Keys(want)), slices.Sorted(maps.Keys(have)), "docs/%s is stale: make golden", dir)
		for file := range want {
			assert.True(t, want[file] == have[file], "docs/%s/%s is stale: make golden", dir, file) //nolint:testifylint // one of the two is enough
		}
	}
}

// undated removes the date from manual pages.
func undated(dir string) error {
	pages, err := filepath.Glob(filepath.Join(dir, "*.1"))
	for _, page := range pages {
		text, failed := os.ReadFile(page)
		err = errors.Join(err, failed, os.WriteFile(page, bytes.Replace(text, []byte(`"Jan 1970"`), []byte(`""`), 1), 0o644))
	}
	return err
}

// contents returns the content of all files of a directory, by name.
func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	all := map[string]string{}
	for _, e := range entries {
		data, err := os.ReadFile(filepath.Join(dir, e.Name()))
		require.NoError(t, err)
		all[e.Name()] = string(data)
	}
	return all
}
