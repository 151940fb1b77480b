package controlplane

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// Version is that of the API server: what go.mod says.
const Version = "v1.34.2"

// Root is the folder of the product's module, as seen from the folder of a
// test in this one.
const Root = "../.."

// Build builds a program of Kubernetes, "kube-apiserver", and returns its
// file. That takes minutes of a processor for the first time, and seconds
// afterwards.
func Build(ctx context.Context, program string) (string, error) {
	file, err := filepath.Abs(filepath.Join(Root, ".cache", "kubernetes", program+"-"+Version))
	if err != nil {
		return "", err
	}
	if _, err := os.Stat(file); err == nil {
		return file, nil // its name says which version it is
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return "", err
	}
	fmt.Fprintf(os.Stderr, "building %s %s: minutes for the first time\n", program, Version)
	half := fmt.Sprintf("%s.%d", file, os.Getpid())
	cmd := exec.CommandContext(ctx, "go", "build", "-o", half,
		"-ldflags", "-s -w -X k8s.io/component-base/version.gitVersion="+Version, "k8s.io/kubernetes/cmd/"+program)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build %s: %w\n%s", program, err, out)
	}
	return file, os.Rename(half, file)
}

// ModuleDir returns the folder of a module that the product requires, at the
// version that it requires.
func ModuleDir(ctx context.Context, module string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", "mod", "download", "-json", module)
	cmd.Dir = Root
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("find module %s: %w", module, err)
	}
	var found struct{ Dir string }
	return found.Dir, json.Unmarshal(out, &found)
}
