package kubernetes

import (
	"bytes"
	"cmp"
	"fmt"
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
		useless(settings, m), useless(flags, m),
	), []any{settings, flags}
}
