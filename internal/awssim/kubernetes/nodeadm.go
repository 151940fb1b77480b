package kubernetes

import (
	"bytes"
	"cmp"
	"fmt"
	"net/netip"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"sigs.k8s.io/yaml"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim/ec2"
)

// nodeadmRefused returns why nodeadm, or what it starts, ends on a machine: a configuration of the kubelet that the kubelet cannot
// read, or one of containerd that is not TOML (internal/kubelet and internal/containerd in nodeadm of awslabs/amazon-eks-ami).
func (svc *Service) nodeadmRefused(i *ec2.Instance, version string) string {
	data, err := svc.rawUserData(i)
	_, config, found := bytes.Cut(data, []byte("Content-Type: application/node.eks.aws\n\n"))
	if err != nil || !found {
		return ""
	}
	config, _, _ = bytes.Cut(config, []byte("\n--//"))
	own := machine{has: func(address string) bool { return svc.hasAddress(i, address) }}
	why, args := nodeConfigRefused(config, version, own)
	for _, a := range args {
		why = cmp.Or(why, svc.overReserved(i, a))
	}
	return why
}

// nodeConfigRefused returns why nodeadm, or the kubelet, ends with a NodeConfig. Otherwise it returns the settings and the flags of the
// kubelet as arguments.
func nodeConfigRefused(config []byte, version string, m machine) (why string, args []any) {
	var node struct {
		Spec struct {
			Kubelet struct {
				Config map[string]any
				Flags  []string
			}
			Containerd struct{ Config string }
		}
	}
	if err := yaml.Unmarshal(config, &node); err != nil {
		return "nodeadm: " + err.Error(), nil
	}
	if err := toml.Unmarshal([]byte(node.Spec.Containerd.Config), &map[string]any{}); err != nil {
		return fmt.Sprintf("nodeadm: containerd: %v", err), nil
	}
	settings, flags := kubeletArguments(node.Spec.Kubelet.Config), []any{}
	for _, flag := range node.Spec.Kubelet.Flags {
		name, value, _ := strings.Cut(strings.TrimPrefix(flag, "--"), "=")
		flags = append(flags, map[string]any{"name": name, "value": value})
	}
	return cmp.Or(
		kubeletConfigRefused(node.Spec.Kubelet.Config, "v"+version+".0"), componentRefuses("kubelet", "v"+version+".0", flags),
		useless(settings, m), useless(flags, m), notOfNodeadm(settings, m), notOfNodeadm(flags, m),
	), []any{settings, flags}
}

// notOfNodeadm returns why a kubelet of EKS does not start, or registers no Node, with what takes the place of the arguments of nodeadm
// (internal/kubelet in nodeadm of awslabs/amazon-eks-ami). Files of the user are not simulated: only those of nodeadm exist.
func notOfNodeadm(args any, m machine) string {
	if name := argument(args, "hostname-override"); name != "" {
		return fmt.Sprintf("kubelet: nodes %q is forbidden: node is not allowed to modify another node", name)
	}
	if ip, err := netip.ParseAddr(argument(args, "node-ip")); err == nil && !ip.IsUnspecified() && !m.has(ip.String()) {
		return fmt.Sprintf("kubelet: node IP: %q not found in the host's network interfaces", ip)
	}
	if socket := argument(args, "container-runtime-endpoint"); socket != "" && strings.TrimPrefix(socket, "unix://") != "/run/containerd/containerd.sock" {
		return fmt.Sprintf("kubelet: failed to run Kubelet: validate service connection: dial %s: no such file or directory", socket)
	}
	for flag, has := range map[string]string{"config": "/etc/kubernetes/kubelet/config.json", "kubeconfig": "/var/lib/kubelet/kubeconfig"} {
		if file := argument(args, flag); file != "" && file != has {
			return fmt.Sprintf("kubelet: failed to load --%s: open %s: no such file or directory", flag, file)
		}
	}
	return ""
}
