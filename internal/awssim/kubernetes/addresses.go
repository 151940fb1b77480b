package kubernetes

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim/ec2"
)

// address returns the address of an instance that a program chooses when it is told an
// address or none. "::" prefers IPv6, "0.0.0.0" and none prefer IPv4; any other address is
// taken as it is. kubeadm chooses so for the API server and etcd
// (k8s.io/apimachinery/pkg/util/net: ResolveBindAddress), and the kubelet for node-ip.
func (svc *Service) address(i *ec2.Instance, told string) string {
	wanted, err := netip.ParseAddr(told)
	if err == nil && !wanted.IsUnspecified() {
		return told
	}
	for _, id := range i.Interfaces {
		n := svc.EC2.Interface(id)
		switch {
		case n == nil:
			continue
		case len(n.IPv6) > 0 && (wanted.Is6() || n.PrivateIP == ""):
			return n.IPv6[0]
		}
		return n.PrivateIP
	}
	return ""
}

// hasAddress reports whether an interface of an instance has an address.
func (svc *Service) hasAddress(i *ec2.Instance, address string) bool {
	return slices.ContainsFunc(i.Interfaces, func(id string) bool {
		n := svc.EC2.Interface(id)
		return n != nil && (n.PrivateIP == address || slices.Contains(n.IPv6, address))
	})
}

// serverRefuses returns why the API server of a machine does not start: its address and the
// first block of Services are of different families
// (cmd/kube-apiserver/app/options/validation.go: validatePublicIPServiceClusterIPRangeIPFamilies).
// "" if it starts. config is a ClusterConfiguration with defaults; arguments take precedence
// over fields.
func serverRefuses(config, advertised string) string {
	var doc struct {
		Networking struct{ ServiceSubnet string }
		APIServer  struct{ ExtraArgs any }
	}
	if err := yaml.Unmarshal([]byte(config), &doc); err != nil {
		return "kubeadm-config: " + err.Error()
	}
	services, _, _ := strings.Cut(cmp.Or(argument(doc.APIServer.ExtraArgs, "service-cluster-ip-range"), doc.Networking.ServiceSubnet), ",")
	block, err := netip.ParsePrefix(services)
	if err != nil {
		return fmt.Sprintf("kube-apiserver: invalid --service-cluster-ip-range %q", services)
	}
	own, err := netip.ParseAddr(cmp.Or(argument(doc.APIServer.ExtraArgs, "advertise-address"), advertised))
	if err != nil {
		return fmt.Sprintf("kube-apiserver: invalid --advertise-address %q", advertised)
	}
	if block.Addr().Is4() != own.Is4() {
		return fmt.Sprintf("kube-apiserver: service IP family %q must match public address family %q", services, own)
	}
	return ""
}
