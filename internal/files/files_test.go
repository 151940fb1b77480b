package files_test

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/files"
)

func names(t *testing.T, folder string) (all []string) {
	t.Helper()
	found, err := os.ReadDir(folder)
	require.NoError(t, err)
	for _, f := range found {
		all = append(all, f.Name())
	}
	return all
}

func content(t *testing.T, file string) string {
	t.Helper()
	data, err := os.ReadFile(file)
	require.NoError(t, err)
	return string(data)
}

func TestWrite(t *testing.T) {
	folder := t.TempDir()
	at := func(name string) string { return filepath.Join(folder, name) }
	require.NoError(t, files.Create(at("a"), []byte("1"), files.Private))
	require.ErrorIs(t, files.Create(at("a"), []byte("2"), files.Private), fs.ErrExist)
	require.NoError(t, os.Symlink(at("a"), at("link")))
	require.ErrorIs(t, files.Create(at("link"), []byte("2"), files.Private), fs.ErrExist)
	require.NoError(t, os.Symlink(at("nowhere"), at("dangling")))
	require.ErrorIs(t, files.Create(at("dangling"), []byte("2"), files.Private), fs.ErrExist)
	require.NoError(t, files.Replace(at("link"), []byte("3"), 0o644))
	assert.Equal(t, "3", content(t, at("a")))
	info, err := os.Lstat(at("a"))
	require.NoError(t, err)
	assert.Equal(t, fs.FileMode(0o644), info.Mode())
	require.NoError(t, files.Replace("/dev/null", []byte("3"), files.Private))
	require.Error(t, files.Replace("/dev/full", []byte("3"), files.Private))
	require.NoError(t, files.CreateFolder(at("new/folder"), []files.File{{"x", []byte("y")}}))
	assert.Equal(t, "y", content(t, at("new/folder/x")))
	require.Error(t, files.CreateFolder(at("new/folder"), []files.File{{"z", nil}}))
	assert.Equal(t, []string{"x"}, names(t, at("new/folder")))
	require.NoError(t, os.Mkdir(at("empty"), 0o700))
	require.NoError(t, files.CreateFolder(at("empty"), []files.File{{"x", nil}}))
	assert.Equal(t, []string{"a", "dangling", "empty", "link", "new"}, names(t, folder))
}

// A writer that fails in the middle leaves the old content, and nothing else.
func TestFailingWriter(t *testing.T) {
	folder, full := t.TempDir(), errors.New("no space left on device")
	file := filepath.Join(folder, "a")
	half := func(w io.Writer) error {
		_, err := io.WriteString(w, "half")
		return errors.Join(err, full)
	}
	require.ErrorIs(t, files.ReplaceWith(file, files.Private, half), full)
	assert.Empty(t, names(t, folder))
	require.NoError(t, files.Replace(file, []byte("old"), files.Private))
	require.ErrorIs(t, files.ReplaceWith(file, files.Private, half), full)
	assert.Equal(t, "old", content(t, file))
	require.Error(t, files.CreateFolder(filepath.Join(folder, "f"), []files.File{{"x", nil}, {"no/folder", nil}}))
	assert.Equal(t, []string{"a"}, names(t, folder))
}

// TestFullDisk writes with a limit of the operating system for the size of files.
func TestFullDisk(t *testing.T) {
	const variable = "FILES_TEST_FOLDER"
	if folder := os.Getenv(variable); folder != "" {
		large := make([]byte, 1<<20)
		named := files.Create(filepath.Join(folder, "new"), large, files.Private)
		fmt.Println(named != nil && strings.HasPrefix(named.Error(), "write "+filepath.Join(folder, "new")+": "),
			files.Replace(filepath.Join(folder, "old"), large, files.Private) != nil,
			files.CreateFolder(filepath.Join(folder, "folder"), []files.File{{"small", nil}, {"large", large}}) != nil)
		return
	}
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("there is no shell to set the limit with")
	}
	folder := t.TempDir()
	require.NoError(t, files.Replace(filepath.Join(folder, "old"), []byte("old"), files.Private))
	cmd := exec.CommandContext(t.Context(), sh, "-c", `ulimit -f 64; trap '' XFSZ; exec "$0" -test.run 'TestFullDisk$'`, os.Args[0])
	cmd.Env = append(os.Environ(), variable+"="+folder)
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
	assert.True(t, strings.HasPrefix(string(out), "true true true\n"), string(out))
	assert.Equal(t, []string{"old"}, names(t, folder))
	assert.Equal(t, "old", content(t, filepath.Join(folder, "old")))
}

func silence(string) {}

// Those who change a file under its lock do not lose each other's changes, also if a process that
// was killed has left its lock.
func TestLock(t *testing.T) {
	for _, left := range []bool{false, true} {
		folder := t.TempDir()
		file := filepath.Join(folder, "config")
		require.NoError(t, files.Replace(file, nil, files.Private))
		if left {
			require.NoError(t, os.WriteFile(file+".lock", nil, 0))
			long := time.Now().Add(-time.Hour)
			require.NoError(t, os.Chtimes(file+".lock", long, long))
		}
		var all sync.WaitGroup
		for i := range 20 {
			all.Go(func() {
				unlock, err := files.Lock(t.Context(), file, silence)
				if !assert.NoError(t, err) { //nolint:testifylint // in a goroutine
					return
				}
				defer unlock()
				data, err := os.ReadFile(file)
				assert.NoError(t, err)
				assert.NoError(t, files.Replace(file, append(data, byte('a'+i)), files.Private))
			})
		}
		all.Wait()
		have := []byte(content(t, file))
		slices.Sort(have)
		assert.Equal(t, "abcdefghijklmnopqrst", string(have))
		assert.Equal(t, []string{"config"}, names(t, folder))
	}
}

// Both names of a file are locked: kubectl may use the other one.
func TestLockOfALink(t *testing.T) {
	folder := t.TempDir()
	file, link := filepath.Join(folder, "file"), filepath.Join(folder, "link")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	require.NoError(t, os.Symlink(file, link))
	unlock, err := files.Lock(t.Context(), link, silence)
	require.NoError(t, err)
	assert.Equal(t, []string{"file", "file.lock", "link", "link.lock"}, names(t, folder))
	unlock()
	assert.Equal(t, []string{"file", "link"}, names(t, folder))
}

// Files are written with this package only.
func TestFilesAreWrittenHere(t *testing.T) {
	allowed := map[string]string{
		"internal/cli/process.go OpenFile":                  "opens the terminal",
		"internal/cli/simulated/lock_unix.go OpenFile":      "a lock of the operating system, without content",
		"internal/cloud/lock_files.go CreateTemp":           "records of the lock: link and rename are its own",
		"internal/cloud/lock_files.go Rename":               "as above",
		"internal/engine/aws/secrets/restore.go CreateTemp": "the encrypted snapshot on its way to the bucket, which is removed",
		"internal/engine/etcd/file.go CreateTemp":           "a database to check or to change, which is removed",
		"internal/kubesim/snapshot.go WriteFile":            "a database of the simulated etcd, which is removed",
		"internal/cli/helm/helm.go CreateTemp":              "the certificate by which helm knows this process, which is removed",
		"internal/enginetest/backups.go WriteFile":          "the key of a test",
		"internal/cli/cluster/file.go CreateTemp":           "tries whether a file can be written, and removes it",
	}
	writes := []string{"WriteFile", "Create", "OpenFile", "CreateTemp", "Rename"}
	for _, root := range []string{"internal", "pkg", "cmd"} {
		err := filepath.WalkDir(filepath.Join("..", "..", root), func(path string, d fs.DirEntry, err error) error {
			skip := strings.HasSuffix(path, "_test.go") || strings.Contains(path, "/internal/files/") || strings.Contains(path, "/golden/") ||
				strings.Contains(path, "gen/main.go") || strings.Contains(path, "generate/main.go")
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || skip {
				return err
			}
			parsed, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
			if err != nil {
				return err
			}
			ast.Inspect(parsed, func(n ast.Node) bool {
				selected, ok := n.(*ast.SelectorExpr)
				if !ok {
					return true
				}
				if of, ok := selected.X.(*ast.Ident); ok && of.Name == "os" && slices.Contains(writes, selected.Sel.Name) {
					use := filepath.ToSlash(strings.TrimPrefix(path, "../../")) + " " + selected.Sel.Name
					assert.Contains(t, allowed, use, "write files with package files")
				}
				return true
			})
			return nil
		})
		require.NoError(t, err)
	}
}
