package rules

import (
	"cmp"
	"fmt"
	"net/netip"
	"strconv"

	"k8s.io/apimachinery/pkg/util/validation"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/boot"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
)

// The limits of kubeadm for the blocks of pods and Services:
// https://github.com/kubernetes/kubernetes/blob/master/cmd/kubeadm/app/apis/kubeadm/validation/validation.go
const (
	fewestAddressBits = 4  // 10 addresses
	mostServiceBits   = 20 // of the addresses of Services
	mostNodesBits     = 16 // of the number of blocks of Nodes
	nodeBlockIPv4     = 24 // the usual block of a Node
	nodeBlockIPv6     = 64

	// DefaultServices is the block of Services of kubeadm, unless the manifest has another one (ClusterConfiguration,
	// networking).
	DefaultServices = "10.96.0.0/12"
)

// Services returns the blocks of Services of a self-managed cluster: those of the manifest, or kubeadm's.
func Services(c *manifest.Cluster) []string {
	if blocks := c.Object.Spec.ClusterNetwork.Services.CIDRBlocks; len(blocks) > 0 {
		return blocks
	}
	return []string{DefaultServices}
}

// checkClusterNetwork checks the blocks of pods and Services of a self-managed cluster. With
// some, kubeadm fails on the first machine.
func (c *checks) checkClusterNetwork(cluster *manifest.Entry) {
	network := c.cluster.Object.Spec.ClusterNetwork
	pods := c.networkBlocks(cluster, "spec.clusterNetwork.pods.cidrBlocks", network.Pods.CIDRBlocks)
	services := c.networkBlocks(cluster, "spec.clusterNetwork.services.cidrBlocks", network.Services.CIDRBlocks)
	if d := network.ServiceDomain; d != "" && len(validation.IsDNS1123Subdomain(d)) > 0 { // ValidateDNS1123Subdomain of kubeadm
		c.fail(
			cluster.Problem("spec.clusterNetwork.serviceDomain", fmt.Sprintf("%q is not a domain of DNS", d), "use small letters, as in cluster.local, or remove it"),
		)
	}
	for _, b := range services {
		if least, most := b.Addr().BitLen()-mostServiceBits, b.Addr().BitLen()-fewestAddressBits; b.Bits() < least || b.Bits() > most {
			c.fail(cluster.Problem(b.path, fmt.Sprintf("%s: kubeadm permits /%d to /%d for Services", b, least, most), "use another block, such as "+servicesLike(b)))
		}
	}
	for _, b := range pods {
		c.checkPodBlock(cluster, b)
	}
	if len(network.Services.CIDRBlocks) == 0 {
		services = []networkBlock{{netip.MustParsePrefix(DefaultServices), ""}}
	}
	if len(services) > 0 { // otherwise a block is not valid
		c.checkAPIAddresses(services[0])
	}
	c.warnOverlaps(cluster, pods, services)
}

// networkBlock is a block of addresses, and its place in the Cluster.
type networkBlock struct {
	netip.Prefix
	path string
}

// networkBlocks parses blocks, and reports if there are too many. validateCluster reports blocks
// that are not valid.
func (c *checks) networkBlocks(cluster *manifest.Entry, path string, texts []string) (all []networkBlock) {
	four := 0
	for i, text := range texts {
		b, err := netip.ParsePrefix(text)
		if err != nil {
			return nil
		}
		if b.Addr().Is4() {
			four++
		}
		all = append(all, networkBlock{b.Masked(), fmt.Sprintf("%s[%d]", path, i)})
	}
	if four > 1 || len(all)-four > 1 {
		c.fail(cluster.Problem(path, "kubeadm permits one block, or one of IPv4 and one of IPv6", "remove the others"))
	}
	return all
}

// servicesLike returns a block of Services of the same family.
func servicesLike(b networkBlock) string {
	if b.Addr().Is6() {
		return "fd02::/112"
	}
	return DefaultServices
}

// checkPodBlock compares the block of pods with the parts that Nodes get of it.
func (c *checks) checkPodBlock(cluster *manifest.Entry, b networkBlock) {
	name, node, example := "node-cidr-mask-size-ipv4", nodeBlockIPv4, "192.168.0.0/16"
	if b.Addr().Is6() {
		name, node, example = "node-cidr-mask-size-ipv6", nodeBlockIPv6, "fd01::/48"
	}
	o, at, own := cluster, b.path, ""
	for _, name := range []string{"node-cidr-mask-size", name} { // the first one is of clusters with one family
		if given, err := strconv.Atoi(c.controllerManagerArgument(name)); err == nil {
			node, own = given, name
			o, at = c.controllerManagerArguments(cluster, b.path, name)
		}
	}
	if node > b.Addr().BitLen() {
		c.fail(
			o.Problem(
				at,
				fmt.Sprintf("the argument %s of the kube-controller-manager is %d, and addresses have %d bits", own, node, b.Addr().BitLen()),
				"change it",
			),
		)
		return
	}
	larger, smaller := "use a larger block, such as "+example+", or set the argument "+name, "use a smaller block, such as "+example+", or set the argument "+name
	if own != "" {
		larger = fmt.Sprintf("use at least %d for the argument %s", b.Bits(), own)
		smaller = fmt.Sprintf("use at most %d for the argument %s", b.Bits()+mostNodesBits, own)
	}
	switch most := b.Addr().BitLen() - fewestAddressBits; {
	case b.Bits() > most:
		c.fail(cluster.Problem(b.path, fmt.Sprintf("%s: kubeadm permits /%d and larger blocks for pods", b, most), "use another block, such as "+example))
	case c.controllerManagerArgument("allocate-node-cidrs") == "false": // Nodes get no blocks
	case b.Bits() > node:
		c.fail(
			o.Problem(
				at,
				fmt.Sprintf("%s is smaller than the block of one Node, /%d", b, node),
				larger+" of the kube-controller-manager",
			),
		)
	case node-b.Bits() < mostNodesBits && 1<<(node-b.Bits()) < c.nodes():
		c.warn(
			cluster.Problem(
				b.path,
				fmt.Sprintf("%s has blocks of /%d for %d Nodes, and the manifest has %d: the others get none", b, node, 1<<(node-b.Bits()), c.nodes()),
				"use a larger block, such as "+example+", or a pod network that gives pods other addresses",
			),
		)
	case node-b.Bits() > mostNodesBits:
		c.fail(
			o.Problem(
				at,
				fmt.Sprintf("%s is too large for Nodes with a block of /%d: kubeadm permits /%d", b, node, node-mostNodesBits),
				smaller+" of the kube-controller-manager",
			),
		)
	}
}

// nodes counts the machines of a self-managed cluster.
func (c *checks) nodes() int {
	n := len(c.cluster.Machines)
	if p := c.cluster.ControlPlane; p != nil {
		n += p.Replicas()
	}
	for _, d := range c.cluster.Deployments {
		n += d.Replicas()
	}
	for _, p := range c.cluster.Pools {
		n += p.Replicas()
	}
	return n
}

// controllerManagerArguments returns where the manifest sets an argument of the kube-controller-manager; o and path if another object does.
func (c *checks) controllerManagerArguments(o *manifest.Entry, path, name string) (*manifest.Entry, string) {
	if cp := c.cluster.ControlPlane; cp != nil {
		const at = "spec.kubeadmConfigSpec.clusterConfiguration.controllerManager.extraArgs"
		if plane := c.lookup(manifest.KindControlPlane, cp.Object.Name); plane != nil {
			if found := namedArgument(plane, at, name); found != at {
				return plane, found
			}
		}
	}
	return o, path
}

// controllerManagerArgument is an argument of the kube-controller-manager; "" if it is not set.
func (c *checks) controllerManagerArgument(name string) string {
	var arguments []bootstrapv1.Arg
	if cp := c.cluster.ControlPlane; cp != nil {
		arguments = cp.Object.Spec.KubeadmConfigSpec.ClusterConfiguration.ControllerManager.ExtraArgs
	}
	for _, m := range c.cluster.Machines {
		if m.ControlPlane && m.Bootstrap != nil {
			arguments = append(arguments, m.Bootstrap.Spec.ClusterConfiguration.ControllerManager.ExtraArgs...)
		}
	}
	return boot.Argument(arguments, name)
}

// warnOverlaps warns of blocks that overlap. Addresses of pods and machines may be the same range
// only for a pod network that takes the addresses of pods from the VPC.
func (c *checks) warnOverlaps(cluster *manifest.Entry, pods, services []networkBlock) {
	var vpc []string
	if c.cluster.Infra != nil {
		vpc = vpcBlocks(&c.cluster.Infra.Spec.NetworkSpec.VPC)
	}
	for _, s := range services {
		for _, p := range pods {
			if p.Overlaps(s.Prefix) {
				c.warn(cluster.Problem(p.path, fmt.Sprintf("%s overlaps with the addresses of Services, %s", p, s), "change one of them"))
			}
		}
		for _, text := range vpc {
			if v, err := netip.ParsePrefix(text); err == nil && v.Overlaps(s.Prefix) {
				c.warn(
					cluster.Problem(
						cmp.Or(s.path, "spec.clusterNetwork"),
						fmt.Sprintf("%s overlaps with the VPC, %s: pods cannot reach what has an address in both", s, text),
						"change one of them",
					),
				)
			}
		}
	}
	for _, p := range pods {
		for _, text := range vpc {
			if v, err := netip.ParsePrefix(text); err == nil && v.Overlaps(p.Prefix) {
				c.warn(
					cluster.Problem(
						p.path,
						fmt.Sprintf("%s overlaps with the VPC, %s: this works only with a pod network that gives pods addresses of the VPC", p, text),
						"change one of them",
					),
				)
			}
		}
	}
}
