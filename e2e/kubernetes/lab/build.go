package lab

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/e2e/kubernetes/controlplane"
)

// older is the version from which an upgrade to controlplane.Version starts; v1.33/go.mod
// has its patch release.
const older = "v1.33.4"

// programs are the programs of control planes and machine images of a Kubernetes version.
func programs(version string) (all []controlplane.Program) {
	etcd := "v3.6.5" // the default of kubeadm
	if version == older {
		etcd = "v3.5.21"
	}
	for _, name := range []string{"kubeadm", "kube-apiserver", "kube-controller-manager", "kube-scheduler"} {
		all = append(all, kubernetes(name, version))
	}
	return append(all,
		controlplane.Program{Name: "etcd", Version: etcd, Package: "go.etcd.io/etcd/server/v3", Module: moduleOf(version)},
		controlplane.Program{Name: "etcdctl", Version: etcd, Package: "go.etcd.io/etcd/etcdctl/v3", Module: moduleOf(version)})
}

// addOns are the programs of instances with real container runtimes, beside those of programs.
func addOns() []controlplane.Program {
	return []controlplane.Program{
		kubernetes("kubelet", controlplane.Version),
		kubernetes("kube-proxy", controlplane.Version),
		{Name: "flanneld", Version: flannel, Package: "github.com/flannel-io/flannel", Module: "addons", C: true},
		{Name: "flannel-cni", Version: flannelPlugin, Package: "github.com/containernetworking/plugins/plugins/meta/flannel", Module: "cni"},
		{Name: "aws-cloud-controller-manager", Version: cloudController, Package: "k8s.io/cloud-provider-aws/cmd/aws-cloud-controller-manager", Module: "addons"},
		{Name: "coredns", Version: coreDNS, Package: "github.com/coredns/coredns", Module: "coredns"},
	}
}

// kubernetes is a program of a Kubernetes version.
func kubernetes(name, version string) controlplane.Program {
	p := controlplane.Kubernetes(name)
	p.Version, p.Module = version, moduleOf(version)
	return p
}

// moduleOf returns the folder of the go.mod for a Kubernetes version.
func moduleOf(version string) string {
	if version == controlplane.Version {
		return ""
	}
	return version[:strings.LastIndex(version, ".")]
}

// build builds the programs of the lab, and returns their folder. Instances of another
// version need its programs, too.
func build(ctx context.Context) (string, error) {
	dir, err := controlplane.Cache()
	if err != nil {
		return "", err
	}
	for _, p := range append(programs(controlplane.Version), controlplane.Kubernetes("kubectl")) {
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

// buildOlder builds the programs of instances of the older version.
func buildOlder(t *testing.T) {
	t.Helper()
	for _, p := range programs(older) {
		_, err := controlplane.Build(t.Context(), p)
		require.NoError(t, err)
	}
}
