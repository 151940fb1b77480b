package rules

import (
	"fmt"
	"net/netip"
	"path"
	"slices"
	"strings"

	eksbootstrapv1 "sigs.k8s.io/cluster-api-provider-aws/v2/bootstrap/eks/api/v1beta2"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
)

// runtimeOfNodeadm is the socket of the container runtime on nodes of EKS.
const runtimeOfNodeadm = "unix:///run/containerd/containerd.sock"

// checkOwnedByNodeadm checks kubelet settings that nodeadm sets itself. The flags and settings in a NodeadmConfig override those of nodeadm
// (internal/kubelet/environment.go and config.go in nodeadm of https://github.com/awslabs/amazon-eks-ami).
func (c *checks) checkOwnedByNodeadm(o *manifest.Entry, at string, args map[string]string, spec *eksbootstrapv1.NodeadmConfigSpec) {
	fail := func(name, what string) {
		c.failFirst(o.Problem(at, fmt.Sprintf("%s: %s", name, what), "remove it: nodeadm sets it"))
	}
	if name := args["hostname-override"]; name != "" && !isFilledIn(name) {
		fail("hostname-override", fmt.Sprintf("the kubelet may not register a Node %q: EKS gives it the rights of the Node with its private DNS name", name))
	}
	for text := range strings.SplitSeq(args["node-ip"], ",") {
		if ip, err := netip.ParseAddr(text); err == nil && !ip.IsUnspecified() {
			fail("node-ip", fmt.Sprintf("AWS chooses the addresses of machines, and the kubelet does not accept one that its machine does not have: %s", ip))
		}
	}
	for name, usual := range map[string]string{
		"config": "/etc/kubernetes/kubelet/config.json", "kubeconfig": "/var/lib/kubelet/kubeconfig", "client-ca-file": "/etc/kubernetes/pki/ca.crt",
	} {
		if file := args[name]; file != "" && path.Clean(file) != usual && !writtenForNodeadm(spec, file) {
			fail(name, fmt.Sprintf("the kubelet does not start: nothing writes %s, and nodeadm writes %s", file, usual))
		}
	}
	if socket := args["container-runtime-endpoint"]; socket != "" && strings.TrimPrefix(socket, "unix://") != strings.TrimPrefix(runtimeOfNodeadm, "unix://") &&
		len(spec.PreNodeadmCommands) == 0 {
		fail("container-runtime-endpoint", fmt.Sprintf("the kubelet does not start: nodeadm starts containerd, at %s", runtimeOfNodeadm))
	}
}

// writtenForNodeadm reports whether the files, mounts or commands of a NodeadmConfig may provide a file.
func writtenForNodeadm(spec *eksbootstrapv1.NodeadmConfigSpec, file string) bool {
	return isFilledIn(file) || len(spec.PreNodeadmCommands) > 0 || len(spec.Mounts) > 0 ||
		slices.ContainsFunc(spec.Files, func(f eksbootstrapv1.File) bool { return path.Clean(f.Path) == path.Clean(file) })
}
