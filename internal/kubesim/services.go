package kubesim

import (
	"cmp"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// serviceBlocks returns the blocks of addresses of Services, one of each family; nil if they are not known, as in EKS.
func (c *Cluster) serviceBlocks() (all []netip.Prefix) {
	if c.EKS != "" || len(c.paths("ServiceCIDR")) > 0 {
		return nil
	}
	var doc struct {
		Networking struct{ ServiceSubnet string }
		APIServer  struct{ ExtraArgs any }
	}
	blocks := "10.96.0.0/12"
	if yaml.Unmarshal([]byte(c.ClusterConfiguration()), &doc) == nil && doc.Networking.ServiceSubnet != "" {
		blocks = doc.Networking.ServiceSubnet
	}
	if strings.Contains(fmt.Sprint(doc.APIServer.ExtraArgs), "service-cluster-ip-range") {
		return nil
	}
	for text := range strings.SplitSeq(blocks, ",") {
		if b, err := netip.ParsePrefix(strings.TrimSpace(text)); err == nil {
			all = append(all, b.Masked())
		}
	}
	return all
}

// reserved returns the Service that has an address although it is not an object here: the first address is that of the API server
// (pkg/controlplane/controller/kubernetesservice), and the tenth one is that of CoreDNS (GetDNSIP in cmd/kubeadm/app/constants).
func (c *Cluster) reserved(ip netip.Addr, of Object) string {
	blocks := c.serviceBlocks()
	if len(blocks) == 0 {
		return ""
	}
	const dns = 10
	at := blocks[0].Addr()
	for i := range dns {
		at = at.Next()
		isDNS := text(of, "metadata", "namespace") == "kube-system" && text(of, "metadata", "name") == "kube-dns"
		switch {
		case at != ip:
		case i == 0:
			return "kubernetes"
		case i == dns-1 && !isDNS && c.Objects["/apis/apps/v1/namespaces/kube-system/deployments/coredns"] != nil:
			return "kube-dns"
		}
	}
	return ""
}

// addressesOf returns the addresses that a Service asks for, or has.
func addressesOf(o Object) (all []string) {
	texts, _ := value(o, "spec", "clusterIPs").([]any)
	if texts == nil {
		texts = []any{value(o, "spec", "clusterIP")}
	}
	for _, x := range texts {
		if s, _ := x.(string); s != "" && s != "None" {
			all = append(all, s)
		}
	}
	return all
}

// nodePortsOf returns the node ports that a Service asks for, or has.
func nodePortsOf(o Object) (all []float64) {
	for _, p := range list(o, "spec", "ports") {
		if n, is := number(p["nodePort"]); is && n > 0 {
			all = append(all, n)
		}
	}
	if n, is := number(value(o, "spec", "healthCheckNodePort")); is && n > 0 {
		all = append(all, n)
	}
	return all
}

// allocated refuses a Service whose cluster IP or node port is in use, or not in the range of the cluster
// (pkg/registry/core/service/storage/alloc.go of Kubernetes v1.34.2). A node port can be used once, whatever the protocol.
func (c *Cluster) allocated(at place, o Object) (int, any) {
	if at.resource.Name != "services" || at.resource.gv != "v1" || at.sub != "" || text(o, "spec", "type") == "ExternalName" {
		return 0, nil
	}
	why := c.otherFamily(o)
	for _, path := range c.paths("Service") {
		if path == at.full() || why != "" {
			continue
		}
		for _, ip := range addressesOf(o) {
			if slices.Contains(addressesOf(c.Objects[path]), ip) {
				why = alreadyAllocated(ip)
			}
		}
		for _, n := range nodePortsOf(o) {
			if slices.Contains(nodePortsOf(c.Objects[path]), n) {
				why = fmt.Sprintf("spec.ports.nodePort: Invalid value: %v: provided port is already allocated", n)
			}
		}
	}
	if why = cmp.Or(why, c.outsideRange(o)); why == "" {
		return 0, nil
	}
	return failure(http.StatusUnprocessableEntity, "Invalid", fmt.Sprintf("Service %q is invalid: %s", at.name, why))
}

// outsideRange refuses a node port that is not one of the cluster's, which are 30000 to 32767 by default (ErrNotInRange in
// pkg/registry/core/service/portallocator/allocator.go of Kubernetes v1.34.2).
func (c *Cluster) outsideRange(o Object) string {
	const first, last = 30000, 32767
	if strings.Contains(c.ClusterConfiguration(), "service-node-port-range") {
		return ""
	}
	for _, n := range nodePortsOf(o) {
		if n < first || n > last {
			return fmt.Sprintf("spec.ports.nodePort: Invalid value: %v: provided port is not in the valid range. The range of valid ports is %d-%d", n, first, last)
		}
	}
	return ""
}

func alreadyAllocated(ip string) string {
	return fmt.Sprintf("spec.clusterIPs: Invalid value: [%q]: failed to allocate IP %s: provided IP is already allocated", ip, ip)
}

// familyPolicy returns the IP families that a Service wants. A headless Service without a selector has two by default.
func familyPolicy(o Object) string {
	if policy := text(o, "spec", "ipFamilyPolicy"); policy != "" {
		return policy
	}
	if text(o, "spec", "clusterIP") == "None" && isEmpty(value(o, "spec", "selector")) {
		return "RequireDualStack"
	}
	return "SingleStack"
}

// otherFamily says which address or family of a Service the cluster does not have.
func (c *Cluster) otherFamily(o Object) string {
	families, _ := value(o, "spec", "ipFamilies").([]any)
	given, set := value(o, "spec", "clusterIPs").([]any)
	if first := text(o, "spec", "clusterIP"); set && first != "" && len(given) > 0 && given[0] != first {
		return "spec.clusterIPs[0]: Invalid value: first value must match `clusterIP`"
	}
	policy := familyPolicy(o)
	if policy == "SingleStack" && max(len(families), len(given)) > 1 {
		return "spec.ipFamilyPolicy: Invalid value: must be 'RequireDualStack' or 'PreferDualStack' when multiple IP families are specified"
	}
	blocks := c.serviceBlocks()
	for i, text := range addressesOf(o) {
		ip, err := netip.ParseAddr(text)
		if err != nil {
			return fmt.Sprintf("spec.clusterIPs[%d]: Invalid value: %q: must be a valid IP address", i, text)
		}
		if i < len(families) && families[i] != familyOf(ip) {
			return fmt.Sprintf("spec.clusterIPs[%d]: Invalid value: %q: expected an %v value as indicated by `ipFamilies[%d]`", i, text, families[i], i)
		}
		if who := c.reserved(ip, o); who != "" {
			return alreadyAllocated(text)
		}
		if len(blocks) > 0 && !slices.ContainsFunc(blocks, func(b netip.Prefix) bool { return b.Contains(ip) }) {
			return fmt.Sprintf("spec.clusterIPs: Invalid value: [%q]: failed to allocate IP %s: the provided IP is not in the valid range %v", text, text, blocks)
		}
	}
	return withoutFamily(o, families, blocks)
}

// withoutFamily says which family the Service demands and the cluster does not have.
func withoutFamily(o Object, families []any, blocks []netip.Prefix) string {
	headless := text(o, "spec", "clusterIP") == "None" && isEmpty(value(o, "spec", "selector"))
	if len(blocks) == 0 || headless {
		return ""
	}
	if text(o, "spec", "ipFamilyPolicy") == "RequireDualStack" && len(blocks) < 2 {
		return `spec.ipFamilyPolicy: Invalid value: "RequireDualStack": this cluster is not configured for dual-stack services`
	}
	for i, family := range families {
		if !slices.ContainsFunc(blocks, func(b netip.Prefix) bool { return familyOf(b.Addr()) == family }) {
			return fmt.Sprintf("spec.ipFamilies[%d]: Invalid value: %q: not configured on this cluster", i, family)
		}
	}
	return ""
}

func familyOf(ip netip.Addr) string {
	if ip.Is4() {
		return "IPv4"
	}
	return "IPv6"
}

// freeAddress returns an address of Services that no Service has.
func (c *Cluster) freeAddress(o Object) string {
	block := netip.MustParsePrefix("10.96.0.0/12")
	if blocks := c.serviceBlocks(); len(blocks) > 0 {
		block = blocks[0]
	}
	used := map[string]bool{}
	for _, path := range c.paths("Service") {
		for _, ip := range addressesOf(c.Objects[path]) {
			used[ip] = true
		}
	}
	at := block.Addr()
	for range 20 + len(text(o, "metadata", "name")) { // behind those of the API server and CoreDNS
		at = at.Next()
	}
	for used[at.String()] {
		at = at.Next()
	}
	return at.String()
}
