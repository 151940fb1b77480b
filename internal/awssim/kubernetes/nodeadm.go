package kubernetes

import (
	"bytes"
	"fmt"

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
	var node struct {
		Spec struct {
			Kubelet    struct{ Config map[string]any }
			Containerd struct{ Config string }
		}
	}
	if err := yaml.Unmarshal(config, &node); err != nil {
		return "nodeadm: " + err.Error()
	}
	if err := toml.Unmarshal([]byte(node.Spec.Containerd.Config), &map[string]any{}); err != nil {
		return fmt.Sprintf("nodeadm: containerd: %v", err)
	}
	return kubeletConfigRefused(node.Spec.Kubelet.Config, "v"+version+".0")
}
