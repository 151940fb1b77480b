package controlplane

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"
)

// Version is the version of the API server, from go.mod.
const Version = "v1.34.2"

// Program is a program to build from its Go module.
type Program struct {
	Name, Version, Package string

	// Module is the folder of the module whose go.mod has the version, below this
	// module's; empty for this one.
	Module string

	C bool // needs a compiler for C
}

// Kubernetes is a program of Kubernetes, "kube-apiserver", at Version.
func Kubernetes(name string) Program {
	return Program{Name: name, Version: Version, Package: "k8s.io/kubernetes/cmd/" + name}
}

// Root returns the folder of the product's module.
func Root() (string, error) {
	dir, err := filepath.Abs(".")
	if err != nil {
		return "", err
	}
	for ; dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "cmd", "clusterawsadm")); err == nil {
			return dir, nil
		}
	}
	return "", errors.New("the folder of the product is not above this one")
}

// Cache returns the folder of the built programs.
func Cache() (string, error) {
	root, err := Root()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(root, ".cache", "kubernetes")
	return dir, os.MkdirAll(dir, 0o755)
}

// building is held while a program is built: tests that run at once would build the same
// program into the same file.
var building sync.Mutex

// Build builds a program, unless it exists, and returns its file. The first time takes
// minutes.
func Build(ctx context.Context, p Program) (string, error) {
	dir, err := Cache()
	if err != nil {
		return "", err
	}
	building.Lock()
	defer building.Unlock()
	file := filepath.Join(dir, p.Name+"-"+p.Version)
	if _, err := os.Stat(file); err == nil {
		return file, nil // the name contains the version
	}
	began := time.Now()
	fmt.Fprintf(os.Stderr, "building %s %s: minutes for the first time\n", p.Name, p.Version)
	half := fmt.Sprintf("%s.%d", file, os.Getpid())
	cmd := exec.CommandContext(ctx, "go", "build", "-o", half,
		"-ldflags", "-s -w -X k8s.io/component-base/version.gitVersion="+p.Version, p.Package)
	cmd.Dir = filepath.Join(dir, "..", "..", "e2e", "kubernetes", p.Module)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GONOSUMDB=k8s.io/cloud-provider-aws") // whose checksums are not in the database
	if p.C {
		cmd.Env = append(cmd.Env, "CGO_ENABLED=1")
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build %s: %w\n%s", p.Name, err, out)
	}
	fmt.Fprintf(os.Stderr, "built %s %s in %s\n", p.Name, p.Version, time.Since(began).Round(time.Second))
	return file, os.Rename(half, file)
}

// ModuleDir returns the folder of a module that the product requires, at that version.
func ModuleDir(ctx context.Context, module string) (string, error) {
	root, err := Root()
	if err != nil {
		return "", err
	}
	dir, _, err := download(ctx, root, module)
	return dir, err
}

// ProviderModule returns the folder and the version of a module that providers/go.mod
// requires.
func ProviderModule(ctx context.Context, module string) (dir, version string, err error) {
	root, err := Root()
	if err != nil {
		return "", "", err
	}
	return download(ctx, filepath.Join(root, "e2e", "kubernetes", Providers), module)
}

// Providers is the Program.Module of the controllers that run in a management cluster.
const Providers = "providers"

// download returns the folder and the version of a module that the go.mod in a folder
// requires.
func download(ctx context.Context, folder, module string) (dir, version string, err error) {
	cmd := exec.CommandContext(ctx, "go", "mod", "download", "-json", module)
	cmd.Dir = folder
	out, err := cmd.Output()
	if err != nil {
		return "", "", fmt.Errorf("find module %s: %w", module, err)
	}
	var found struct{ Dir, Version string }
	err = json.Unmarshal(out, &found)
	return found.Dir, found.Version, err
}
