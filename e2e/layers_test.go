package e2e

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/golden"
)

// module is the path of this module.
const module = "github.com/clusterawsadm/clusterawsadm"

// listed is a package in the output of "go list".
type listed struct {
	ImportPath string
	Imports    []string // of the code, without tests
	Deps       []string // direct and indirect
}

// TestLayers checks that imports point downwards. The linter checks direct imports; this
// test includes indirect ones.
func TestLayers(t *testing.T) {
	for _, p := range packages(t) {
		path := strings.TrimPrefix(p.ImportPath, module+"/")
		may := func(condition bool, what string) {
			assert.True(t, condition, "%s must not import %s", path, what)
		}
		imports := func(prefix string) bool {
			return slices.ContainsFunc(p.Deps, func(d string) bool { return d == prefix || strings.HasPrefix(d, prefix+"/") })
		}
		if !within(path, "internal/cli", "cmd", "e2e") {
			may(!imports(module+"/internal/cli"), "the command line")
		}
		if !within(path, "internal/cli", "cmd", "e2e", "internal/assume", "internal/awssim", "pkg/awssim", "internal/enginetest", "test") {
			may(!imports(module+"/internal/awssim"), "the simulated AWS")
		}
		switch {
		case within(path, "internal/cli/simulated"):
		case within(path, "internal/cli", "internal/render"):
			for _, d := range p.Imports {
				may(!within(strings.TrimPrefix(d, module+"/"), "internal/engine", "internal/cloud", "internal/kube"), d+": the commands use pkg/reconcile")
			}
		case within(path, "internal/engine/manifest"):
			may(!imports(module+"/internal/cloud"), "the door to AWS")
		case within(path, "internal/engine/graph"):
			for _, d := range p.Imports {
				may(!strings.Contains(d, ".") || slices.Contains([]string{module + "/internal/cloud", module + "/internal/crash", module + "/pkg/plan"}, d), d)
			}
		case within(path, "internal/engine/aws"):
			may(!imports(module+"/internal/engine/topology"), "topology")
			may(!imports(module+"/internal/engine/manifest"), "manifest")
			may(!imports(module+"/internal/engine/incluster"), "what is in the cluster")
		case within(path, "internal/engine/incluster", "internal/engine/bootdata"):
			may(!imports(module+"/internal/engine/topology"), "topology")
			may(!imports(module+"/internal/engine/manifest"), "manifest")
		case path == "internal/cloud":
			may(!imports(module+"/pkg/reconcile"), "anything above it")
			may(!imports(module+"/internal/engine"), "anything above it")
		case within(path, "internal/engine/run"):
			for _, above := range []string{"look", "upgrade", "adopt"} {
				may(!imports(module+"/internal/engine/"+above), above+": it is above the run")
			}
			may(!imports(module+"/pkg/reconcile"), "the library")
		case within(path, "internal/engine/look", "internal/engine/upgrade", "internal/engine/adopt"):
			for _, room := range []string{"look", "upgrade", "adopt"} {
				may(path == "internal/engine/"+room || !imports(module+"/internal/engine/"+room), room+": it is a room beside")
			}
			may(!imports(module+"/pkg/reconcile"), "the library")
		case path == "pkg/cluster":
			for _, d := range p.Imports {
				may(!strings.HasPrefix(d, module) || within(strings.TrimPrefix(d, module+"/"), "pkg/plan", "pkg/input"), d+": it is a leaf")
			}
		case path == "pkg/plan":
			for _, d := range p.Imports {
				may(!strings.Contains(d, "."), d+": it is a leaf")
			}
		}
	}
}

func within(path string, folders ...string) bool {
	return slices.ContainsFunc(folders, func(f string) bool { return path == f || strings.HasPrefix(path, f+"/") })
}

func packages(t *testing.T) (all []listed) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-json=ImportPath,Imports,Deps", "./...")
	cmd.Dir = ".."
	out, err := cmd.Output()
	require.NoError(t, err)
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p listed
		err := d.Decode(&p)
		if errors.Is(err, io.EOF) {
			return all
		}
		require.NoError(t, err)
		all = append(all, p)
	}
}

// TestLinkedModules compares the modules that a program links with pkg/reconcile with a list, so that a
// review sees a new one.
func TestLinkedModules(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), "go", "list", "-deps", "-f", "{{with .Module}}{{.Path}}{{end}}", "./pkg/reconcile")
	cmd.Dir = ".."
	out, err := cmd.Output()
	require.NoError(t, err)
	modules := slices.Compact(slices.Sorted(strings.SplitSeq(strings.TrimSpace(string(out)), "\n")))
	golden.Assert(t, "linked-modules.txt", strings.TrimSpace(strings.Join(modules, "\n"))+"\n")
}
