package lab

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"clusterawsadm/e2e/kubernetes/controlplane"
)

// programs are those that control planes run and machine images have. The
// version of etcd is the one that kubeadm of that version asks for.
func programs() (all []controlplane.Program) {
	for _, name := range []string{"kubectl", "kubeadm", "kube-apiserver", "kube-controller-manager", "kube-scheduler"} {
		all = append(all, controlplane.Kubernetes(name))
	}
	return append(all,
		controlplane.Program{Name: "etcd", Version: "v3.6.5", Package: "go.etcd.io/etcd/server/v3"},
		controlplane.Program{Name: "etcdctl", Version: "v3.6.5", Package: "go.etcd.io/etcd/etcdctl/v3"})
}

// build builds all programs of the lab, and returns their folder.
func build(ctx context.Context) (string, error) {
	dir, err := controlplane.Cache()
	if err != nil {
		return "", err
	}
	for _, p := range programs() {
		if _, err := controlplane.Build(ctx, p); err != nil {
			return "", err
		}
	}
	cmd := exec.CommandContext(ctx, "go", "build", "-o", filepath.Join(dir, "labnode"), "./lab/cmd/labnode")
	cmd.Dir = filepath.Join(dir, "..", "..", "e2e", "kubernetes")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build labnode: %w\n%s", err, out)
	}
	return dir, nil
}
