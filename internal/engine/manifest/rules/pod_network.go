package rules

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
)

// checkPodNetworks compares the addresses in the configuration of pod networks with the pod CIDR blocks of the Cluster.
func (c *checks) checkPodNetworks() {
	for _, set := range c.cluster.ResourceSets {
		for _, d := range set.Documents {
			report := func(path, what, fix string) {
				c.fail(object{c, d}.problem(fmt.Sprintf("%s: %s: %s", d.Title(), path, what), fix))
			}
			switch {
			case d.Kind() == "ConfigMap" && c.usesNodeBlocks():
				text, _ := manifest.ValueAt(d.Object, "data").(map[string]any)
				var net struct{ Network, IPv6Network string }
				if conf := manifest.StringField(text, "net-conf.json"); conf != "" && json.Unmarshal([]byte(conf), &net) == nil {
					c.checkFlannel(report, "data[net-conf.json]", net.Network, net.IPv6Network)
				}
			case d.Kind() == "Installation" && d.Group() == "operator.tigera.io":
				c.checkCalico(report, "spec.calicoNetwork.ipPools", manifest.ValueAt(d.Object, "spec.calicoNetwork.ipPools"))
			}
		}
	}
	for _, chart := range c.cluster.Charts {
		if chart.Repository != manifest.UnknownRepository { // its values are not in the manifest
			c.checkNetworkChart(chart)
		}
	}
}

// checkNetworkChart compares the values of a chart, or its defaults, with the pod CIDR blocks of the Cluster.
func (c *checks) checkNetworkChart(chart manifest.Chart) {
	problem := func(path, what, fix string) manifest.Problem {
		what = path + " of the chart " + chart.Title + ": " + what
		if o := c.lookup(manifest.KindHelmChart, chart.Name); o != nil {
			return o.Problem("spec.valuesTemplate", what, fix)
		}
		return manifest.Problem{What: chart.Origin + ": " + what, Fix: fix}
	}
	report := func(path, what, fix string) { c.fail(problem(path, what, fix)) }
	switch chart.Title {
	case "flannel":
		four, is := manifest.ValueAt(chart.Values, "podCidr").(string)
		if !is {
			four = "10.244.0.0/16"
		}
		six, _ := manifest.ValueAt(chart.Values, "podCidrv6").(string)
		c.checkFlannel(report, "podCidr", four, six)
	case "tigera-operator":
		c.checkCalico(report, "installation.calicoNetwork.ipPools", manifest.ValueAt(chart.Values, "installation.calicoNetwork.ipPools"))
	case "cilium":
		c.checkCilium(chart, func(path, what, fix string) { c.warn(problem(path, what, fix)) })
	}
}

// podBlocks returns the pod CIDR blocks of a self-managed cluster. It returns false if the kube-controller-manager may have others.
func (c *checks) podBlocks() (all []netip.Prefix, known bool) {
	for _, text := range c.cluster.Object.Spec.ClusterNetwork.Pods.CIDRBlocks {
		b, err := netip.ParsePrefix(text)
		if err != nil {
			return nil, false
		}
		all = append(all, b.Masked())
	}
	other := c.controllerManagerArgument("cluster-cidr") != "" || c.controllerManagerArgument("allocate-node-cidrs") == "false"
	return all, !c.managed && !other
}

// checkFlannel refuses a network of flannel that does not contain the pod CIDR blocks of the Cluster: with --kube-subnet-mgr, flannel then
// does not start (pkg/subnet/kube/kube.go of flannel; https://github.com/flannel-io/flannel/issues/1983).
func (c *checks) checkFlannel(report func(path, what, fix string), path, four, six string) {
	blocks, known := c.podBlocks()
	if !known {
		return
	}
	if len(blocks) == 0 {
		report(path, "flannel does not start: it takes the addresses of pods from the Nodes, and the Cluster has none for them",
			"set spec.clusterNetwork.pods.cidrBlocks of the Cluster to "+strings.TrimSpace(four+" "+six))
		return
	}
	for _, b := range blocks {
		name, text, node := "Network", four, nodeBlockIPv4
		if b.Addr().Is6() {
			name, text, node = "IPv6Network", six, nodeBlockIPv6
		}
		of, err := netip.ParsePrefix(text)
		small := err == nil && of.Bits() > b.Bits() && 1<<max(0, node-of.Bits()) < c.nodes()
		if err != nil || !of.Contains(b.Addr()) || small {
			report(path, fmt.Sprintf("flannel does not start: its %s, %q, does not contain %s, from which Nodes get the addresses of pods", name, text, b),
				fmt.Sprintf("set it to %s, or change spec.clusterNetwork.pods.cidrBlocks of the Cluster", b))
		}
	}
}

// checkCalico refuses IP pools that are not within the pod CIDR blocks of the Cluster: the operator of Calico then installs nothing
// (https://github.com/tigera/operator/issues/1512, https://github.com/tigera/operator/issues/2712).
func (c *checks) checkCalico(report func(path, what, fix string), path string, pools any) {
	blocks, known := c.podBlocks()
	list, _ := pools.([]any)
	for i, x := range list {
		text, _ := manifest.ValueAt(x, "cidr").(string)
		pool, err := netip.ParsePrefix(text)
		if !known || err != nil || slices.ContainsFunc(blocks, func(b netip.Prefix) bool { return b.Contains(pool.Addr()) && b.Bits() <= pool.Bits() }) {
			continue
		}
		has := "the Cluster has no block for pods"
		if len(blocks) > 0 {
			has = fmt.Sprintf("it is not within the blocks of pods of the Cluster, %v", blocks)
		}
		report(fmt.Sprintf("%s[%d].cidr", path, i), fmt.Sprintf("the operator of Calico does not accept %s: %s", pool, has), "change one of them")
	}
}

// checkCilium warns if the addresses that Cilium assigns to pods overlap with the VPC. Its default contains the default of the VPC: "If your
// node network is in the same range you will lose connectivity to other nodes" (docs.cilium.io, "Cluster Scope").
func (c *checks) checkCilium(chart manifest.Chart, report func(path, what, fix string)) {
	mode, is := manifest.ValueAt(chart.Values, "ipam.mode").(string)
	if is && mode != "cluster-pool" || manifest.ValueAt(chart.Values, "eni.enabled") == true || manifest.ValueAt(chart.Values, "ipv4.enabled") == false {
		return
	}
	const path = "ipam.operator.clusterPoolIPv4PodCIDRList"
	pools := []any{"10.0.0.0/8"}
	switch given := manifest.ValueAt(chart.Values, path).(type) {
	case []any:
		pools = given
	case string:
		pools = []any{given}
	}
	var vpc []string
	if c.cluster.Infra != nil {
		vpc = vpcBlocks(&c.cluster.Infra.Spec.NetworkSpec.VPC)
	}
	for _, x := range pools {
		pool, err := netip.ParsePrefix(fmt.Sprint(x))
		for _, text := range vpc {
			if block, bad := netip.ParsePrefix(text); err == nil && bad == nil && pool.Overlaps(block) {
				report(path, fmt.Sprintf("pods get addresses of %s, and machines of %s: Nodes lose the connection to each other", pool, block),
					"write ipam: {mode: kubernetes}, or set it to blocks outside of the VPC")
				return
			}
		}
	}
}
