package rules

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"

	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
)

// checkAPIAddresses requires that the address of each API server and the first block of
// Services are of the same family: otherwise kube-apiserver does not start
// (validatePublicIPServiceClusterIPRangeIPFamilies in
// https://github.com/kubernetes/kubernetes/blob/master/cmd/kube-apiserver/app/options/validation.go).
func (c *checks) checkAPIAddresses(services networkBlock) {
	if plane := c.cluster.ControlPlane; plane != nil {
		c.checkAPIAddress(c.lookup(manifest.KindControlPlane, plane.Object.Name), "spec.kubeadmConfigSpec.", &plane.Object.Spec.KubeadmConfigSpec, services)
	}
	for _, m := range c.cluster.Machines {
		if m.ControlPlane && m.Bootstrap != nil {
			c.checkAPIAddress(c.lookup(manifest.KindConfig, m.Bootstrap.Name), "spec.", &m.Bootstrap.Spec, services)
		}
	}
}

// checkAPIAddress checks the addresses of a machine that is the first one, and of one that
// joins: both replace each other during the life of a cluster. An argument of the API server
// takes precedence.
func (c *checks) checkAPIAddress(o *manifest.Entry, prefix string, spec *bootstrapv1.KubeadmConfigSpec, services networkBlock) {
	for _, a := range spec.ClusterConfiguration.APIServer.ExtraArgs {
		if a.Name == "advertise-address" && a.Value != nil {
			c.checkFamily(o, prefix+"clusterConfiguration.apiServer.extraArgs", *a.Value, services)
			return
		}
	}
	c.checkFamily(o, prefix+"initConfiguration.localAPIEndpoint.advertiseAddress", spec.InitConfiguration.LocalAPIEndpoint.AdvertiseAddress, services)
	join := ""
	if config := spec.JoinConfiguration.ControlPlane; config != nil {
		join = config.LocalAPIEndpoint.AdvertiseAddress
	}
	c.checkFamily(o, prefix+"joinConfiguration.controlPlane.localAPIEndpoint.advertiseAddress", join, services)
}

// checkFamily compares an address of an API server with the first block of Services. Without
// an address, kubeadm chooses an IPv4 address, which every machine of CAPA has; "::" makes it
// choose an IPv6 address (ResolveBindAddress in
// https://github.com/kubernetes/kubernetes/blob/master/staging/src/k8s.io/apimachinery/pkg/util/net/interface.go).
func (c *checks) checkFamily(o *manifest.Entry, path, address string, services networkBlock) {
	own := netip.IPv4Unspecified()
	if address != "" {
		var err error
		if own, err = netip.ParseAddr(address); err != nil {
			c.fail(o.Problem(path, fmt.Sprintf("%q is not an IP address", address), `use "::" for the IPv6 address of the machine, or remove it for the IPv4 address`))
			return
		}
	}
	switch {
	case own.IsLoopback():
		c.warn(
			o.Problem(
				path,
				fmt.Sprintf("with %s, kubeadm looks for an address of the loopback interface that other machines reach, and ends with an error if there is none", own),
				"remove it",
			),
		)
	case !own.IsUnspecified() && !own.IsGlobalUnicast(): // VerifyAPIServerBindAddress in cmd/kubeadm/app/util/config/common.go
		c.fail(o.Problem(path, fmt.Sprintf("%s is not an address at which other machines reach the API server", own), "remove it"))
	case own.Is4() == services.Addr().Is4() && !own.IsUnspecified() && !c.hasInterfaces():
		c.fail(o.Problem(path, fmt.Sprintf("AWS chooses the addresses of machines: etcd and the API server cannot listen on %s", own), "remove it"))
	case own.Is4() == services.Addr().Is4():
	case own.Is4():
		c.fail(
			o.Problem(
				path,
				fmt.Sprintf("the API server would have an IPv4 address, but Services have IPv6 addresses (%s) first: kube-apiserver does not start", services),
				`set it to "::"`,
			),
		)
	default:
		c.fail(
			o.Problem(
				path,
				fmt.Sprintf("the API server would have an IPv6 address, but Services have IPv4 addresses (%s) first: kube-apiserver does not start", services),
				"remove it, or put the IPv6 block of Services first",
			),
		)
	}
}

// unreachable returns why an address, which may have a port, cannot lead to the API server; "" if it can. A VPC that the run creates contains only
// the load balancer and the machines, and AWS chooses their addresses ("Subnets" of CreateLoadBalancer: Cluster API Provider AWS requests no private
// addresses). The addresses of Services are virtual: no machine has one.
func (c *checks) unreachable(address string) string {
	ip, err := netip.ParseAddr(hostOf(address))
	if err != nil || c.cluster.Infra == nil || c.managed || c.cluster.External {
		return ""
	}
	if ip.IsUnspecified() || ip.IsMulticast() || ip.IsLinkLocalUnicast() {
		return fmt.Sprintf("%s is not an address of an API server", ip)
	}
	if block := blockOf(ip, Services(c.cluster)); block != "" {
		return fmt.Sprintf("%s is an address of Services (%s), which machines have only after they have joined", ip, block)
	}
	vpc := &c.cluster.Infra.Spec.NetworkSpec.VPC
	if block := blockOf(ip, vpcBlocks(vpc)); vpc.ID == "" && block != "" {
		return fmt.Sprintf("%s is in the VPC that the run creates (%s), in which AWS chooses the addresses of load balancers and machines", ip, block)
	}
	return ""
}

// hostOf returns the host of an address, which may have a port.
func hostOf(address string) string {
	if host, _, err := net.SplitHostPort(address); err == nil {
		return host
	}
	return address
}

// blockOf returns the block that contains an address; "" for none.
func blockOf(ip netip.Addr, blocks []string) string {
	for _, block := range blocks {
		if p, err := netip.ParsePrefix(block); err == nil && p.Contains(ip) {
			return block
		}
	}
	return ""
}

// isInScripts reports whether a command or a file of a configuration contains the host of an address: it may give the machine that address.
func isInScripts(value any, address string) bool {
	switch v := value.(type) {
	case []any:
		return slices.ContainsFunc(v, func(x any) bool { return isInScripts(x, address) })
	case map[string]any:
		for name, below := range v {
			runs := slices.Contains([]string{"preKubeadmCommands", "bootCommands", "files"}, name)
			if runs && strings.Contains(fmt.Sprint(below), hostOf(address)) || isInScripts(below, address) {
				return true
			}
		}
	}
	return false
}
