package lab

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/clusterawsadm/clusterawsadm/e2e/kubernetes/controlplane"
)

// older is the version from which an upgrade to controlplane.Version starts; v1.33/go.mod
// has its patch release.
const older = "v1.33.4"

// programs are the programs of control planes and machine images. The versions of etcd
// are those of kubeadm.
func programs() (all []controlplane.Program) {
	all = append(all, controlplane.Kubernetes("kubectl"))
	for _, name := range []string{"kubeadm", "kube-apiserver", "kube-controller-manager", "kube-scheduler"} {
		all = append(all, controlplane.Kubernetes(name), kubernetes(name, older))
	}
	for version, module := range map[string]string{"v3.6.5": "", "v3.5.21": "v1.33"} {
		all = append(all,
			controlplane.Program{Name: "etcd", Version: version, Package: "go.etcd.io/etcd/server/v3", Module: module},
			controlplane.Program{Name: "etcdctl", Version: version, Package: "go.etcd.io/etcd/etcdctl/v3", Module: module})
	}
	return all
}

// kubernetes is a program of another Kubernetes version, from the go.mod in the folder of
// the minor version.
func kubernetes(name, version string) controlplane.Program {
	p := controlplane.Kubernetes(name)
	p.Version, p.Module = version, version[:strings.LastIndex(version, ".")]
	return p
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
