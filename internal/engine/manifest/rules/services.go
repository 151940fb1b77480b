package rules

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest/rules/apiserver"
)

// checkAllocations refuses Services with the cluster IP or the node port of another Service (pkg/registry/core/service/storage/alloc.go of
// Kubernetes). A node port can be used once, whatever the protocol.
func (c *checks) checkAllocations(server apiserver.Server, documents []*manifest.Document) {
	addresses, ports := c.systemAddresses(server), map[int32]string{}
	for _, d := range documents {
		var s corev1.Service
		if d.Kind() != "Service" || d.Group() != "" || runtime.DefaultUnstructuredConverter.FromUnstructured(d.Object, &s) != nil ||
			s.Spec.Type == corev1.ServiceTypeExternalName {
			continue
		}
		for _, text := range append([]string{s.Spec.ClusterIP}, s.Spec.ClusterIPs...) {
			ip, err := netip.ParseAddr(text)
			if err != nil {
				continue
			}
			if of := addresses[ip]; of != "" && of != d.Title() {
				object{c, d}.refuse(fmt.Sprintf("%s is the address of %s", ip, of), "change it, or remove it")
			}
			addresses[ip] = d.Title()
		}
		c.checkNodePorts(object{c, d}, &s, ports)
	}
}

// checkNodePorts refuses node ports of another Service.
func (c *checks) checkNodePorts(o object, s *corev1.Service, taken map[int32]string) {
	asked := map[int32]string{}
	for i, p := range s.Spec.Ports {
		if _, again := asked[p.NodePort]; !again {
			asked[p.NodePort] = fmt.Sprintf("spec.ports[%d].nodePort", i)
		}
	}
	if n := s.Spec.HealthCheckNodePort; n > 0 && asked[n] != "" {
		o.refuse(fmt.Sprintf("spec.healthCheckNodePort: %d is the node port of a port, too", n), "change one of them")
	} else if n > 0 {
		asked[n] = "spec.healthCheckNodePort"
	}
	for _, n := range slices.Sorted(maps.Keys(asked)) {
		if of := taken[n]; n > 0 && of != "" {
			o.refuse(fmt.Sprintf("%s: %d is a node port of %s", asked[n], n, of), "change one of them")
		}
		taken[n] = o.Title()
	}
}

// systemAddresses returns the cluster IPs that are in use before the Services of the manifest are created: the first address of the block is
// that of the API server (pkg/controlplane of Kubernetes), and the tenth one is that of CoreDNS (GetDNSIP in cmd/kubeadm/app/constants).
func (c *checks) systemAddresses(server apiserver.Server) map[netip.Addr]string {
	all := map[netip.Addr]string{}
	if len(server.Services) == 0 {
		return all
	}
	const dns = 10
	ip := server.Services[0].Addr()
	for i := range dns {
		ip = ip.Next()
		if i == 0 {
			all[ip] = "Service default/kubernetes"
		}
	}
	if p := c.cluster.ControlPlane; p != nil && len(p.Object.Spec.KubeadmConfigSpec.InitConfiguration.SkipPhases) == 0 {
		all[ip] = "Service kube-system/kube-dns"
	}
	return all
}
