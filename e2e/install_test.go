//go:build e2e

package e2e

import (
	"bytes"
	"encoding/json"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	gomodule "golang.org/x/mod/module"
	"golang.org/x/mod/zip"
)

// TestInstall installs the program from a clone, and from a module proxy into an empty
// GOPATH, and checks its version.
func TestInstall(t *testing.T) {
	t.Run("from a clone", func(t *testing.T) {
		bin := goInstall(t, t.TempDir(), "", "./cmd/clusterawsadm")
		head, err := exec.CommandContext(t.Context(), "git", "rev-parse", "HEAD").Output()
		require.NoError(t, err)
		v := versionOf(t, bin)
		assert.NotEmpty(t, v["gitVersion"])
		assert.Equal(t, strings.TrimSpace(string(head)), v["gitCommit"])
	})
	const commit = "0123456789ab"
	commits := map[string]string{"v0.0.0-test": "", "v0.0.0-20261122120000-" + commit: commit} // known from the version
	proxies := "file://" + moduleProxy(t, slices.Collect(maps.Keys(commits))) + ",file://" + goEnv(t, "GOMODCACHE") + "/cache/download," + goEnv(t, "GOPROXY")
	gopath := t.TempDir()
	for version, commit := range commits {
		t.Run(version, func(t *testing.T) {
			v := versionOf(t, goInstall(t, gopath, proxies, module+"/cmd/clusterawsadm@"+version))
			assert.Equal(t, version, v["gitVersion"])
			assert.Equal(t, commit, text(v["gitCommit"]))
		})
	}
}

func text(v any) string {
	s, _ := v.(string)
	return s
}

// goInstall runs go install with a separate GOPATH, and returns the program.
func goInstall(t *testing.T, gopath, proxies, what string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "install", "-trimpath", "-buildvcs=auto", "-modcacherw", what)
	cmd.Env = append(os.Environ(), "GOPATH="+gopath, "GOBIN=", "GOFLAGS=", "CGO_ENABLED=0")
	if proxies == "" {
		cmd.Dir = ".."
		cmd.Env = append(cmd.Env, "GOMODCACHE="+goEnv(t, "GOMODCACHE"))
	} else {
		cmd.Dir = gopath // outside of any module
		cmd.Env = append(cmd.Env, "GOMODCACHE=", "GOPROXY="+proxies, "GONOSUMDB="+module)
	}
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
	return filepath.Join(gopath, "bin", "clusterawsadm")
}

// versionOf runs an installed program with both version commands, and returns the fields
// of the output.
func versionOf(t *testing.T, program string) map[string]any {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), program, "version", "-o", "json").Output()
	require.NoError(t, err)
	var answer struct {
		Version map[string]any `json:"awsProviderVersion"`
	}
	require.NoError(t, json.Unmarshal(out, &answer))
	assert.Equal(t, "v2.13.0", answer.Version["upstreamVersion"])
	short, err := exec.CommandContext(t.Context(), program, "--version").Output()
	require.NoError(t, err)
	for _, field := range []string{"gitVersion", "gitCommit", "upstreamVersion"} {
		assert.Contains(t, string(short), text(answer.Version[field]))
	}
	return answer.Version
}

func goEnv(t *testing.T, name string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "env", name).Output()
	require.NoError(t, err)
	return strings.TrimSpace(string(out))
}

// moduleProxy creates the folder of a module proxy with some versions of this module, all
// with the same content: the files of the working tree that git does not ignore.
func moduleProxy(t *testing.T, versions []string) string {
	t.Helper()
	var files []zip.File
	for _, name := range treeFiles(t) {
		files = append(files, treeFile(name))
	}
	mod, err := os.ReadFile("../go.mod")
	require.NoError(t, err)
	proxy := t.TempDir()
	folder := filepath.Join(proxy, filepath.FromSlash(module), "@v")
	require.NoError(t, os.MkdirAll(folder, 0o750))
	write := func(name string, content []byte) {
		require.NoError(t, os.WriteFile(filepath.Join(folder, name), content, 0o600))
	}
	write("list", []byte("v0.0.0-test\n"))
	for _, version := range versions {
		var archive bytes.Buffer
		require.NoError(t, zip.Create(&archive, gomodule.Version{Path: module, Version: version}, files))
		write(version+".zip", archive.Bytes())
		write(version+".mod", mod)
		write(version+".info", []byte(`{"Version":"`+version+`","Time":"2026-11-22T12:00:00Z"}`))
	}
	return proxy
}

// treeFiles lists the files of the working tree that git does not ignore, by their paths from the root.
func treeFiles(t *testing.T) (names []string) {
	t.Helper()
	ls := exec.CommandContext(t.Context(), "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	ls.Dir = ".."
	list, err := ls.Output()
	require.NoError(t, err)
	for name := range strings.SplitSeq(strings.TrimSuffix(string(list), "\x00"), "\x00") {
		if _, err := os.Lstat(filepath.Join("..", name)); err == nil { // git lists a deleted file until the commit
			names = append(names, name)
		}
	}
	return names
}

// treeFile is a file of the working tree, by its path from the root.
type treeFile string

func (f treeFile) Path() string                 { return string(f) }
func (f treeFile) Lstat() (os.FileInfo, error)  { return os.Lstat(filepath.Join("..", string(f))) }
func (f treeFile) Open() (io.ReadCloser, error) { return os.Open(filepath.Join("..", string(f))) }
