package kubesim

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"strings"

	"sigs.k8s.io/yaml"
)

// flannelExits returns why flannel exits when it starts; "" if it does not. With --kube-subnet-mgr it uses the pod CIDR block of its Node,
// which has to be within its configured network (pkg/subnet/kube/kube.go of flannel v0.27: "pod cidr not assigned", "doesn't contain … PodCIDR
// of the … node"; https://github.com/flannel-io/flannel/issues/1983).
func (c *Cluster) flannelExits(workload Object) string {
	if !strings.Contains(fmt.Sprint(value(workload, "spec", "template", "spec", "containers")), "--kube-subnet-mgr") {
		return ""
	}
	var doc struct {
		Networking        struct{ PodSubnet string }
		ControllerManager struct{ ExtraArgs any }
	}
	if yaml.Unmarshal([]byte(c.ClusterConfiguration()), &doc) != nil || strings.Contains(fmt.Sprint(doc.ControllerManager.ExtraArgs), "cluster-cidr") {
		return ""
	}
	if doc.Networking.PodSubnet == "" {
		return "failed to acquire lease: pod cidr not assigned"
	}
	for _, v := range list(workload, "spec", "template", "spec", "volumes") {
		path := "/api/v1/namespaces/" + text(workload, "metadata", "namespace") + "/configmaps/" + text(v, "configMap", "name")
		var net struct{ Network, IPv6Network string }
		if conf := text(c.Objects[path], "data", "net-conf.json"); conf == "" || json.Unmarshal([]byte(conf), &net) != nil {
			continue
		}
		for block := range strings.SplitSeq(doc.Networking.PodSubnet, ",") {
			of := net.Network
			if strings.Contains(block, ":") {
				of = net.IPv6Network
			}
			first, err := netip.ParsePrefix(strings.TrimSpace(block))
			if within, bad := netip.ParsePrefix(of); err == nil && (bad != nil || !within.Contains(first.Addr())) {
				return fmt.Sprintf("subnet %q specified in the flannel net config doesn't contain PodCIDRs of %s", of, block)
			}
		}
	}
	return ""
}
