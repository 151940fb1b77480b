package run

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/eks"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/incluster"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// warnOfLostDaemonSets warns if the manifest relies on EKS to install the VPC CNI or kube-proxy, and the cluster does not have it: somebody has deleted
// it, or an earlier manifest has disabled it. EKS does not install it again.
func (p *planning) warnOfLostDaemonSets(ctx context.Context) {
	m, asks := p.Cluster.Manifest, []plan.Wait{plan.APIServer, plan.NodesJoined, plan.NodesReady}
	if !slices.Contains(asks, p.Cluster.Target.Wait) {
		return
	}
	if !p.Cluster.IsEKS() {
		p.warnOfLostAddons(ctx)
		return
	}
	if m.EKS == nil {
		return
	}
	if r := p.Built.Resource(eks.ClusterKind); r == nil || r.Observed() == nil {
		return
	}
	installed := installedByEKS(m)
	if len(installed) == 0 || p.Built.API == nil {
		return
	}
	k, err := p.Built.API.Client(p.Cloud)
	if err != nil || k == nil {
		return
	}
	lost, err := incluster.LostDaemonSets(cloud.InSnapshot(cloud.ReadOnly(ctx)), k, slices.Sorted(maps.Keys(installed))...)
	if err != nil {
		return
	}
	for _, name := range lost {
		p.Warn("%s: the cluster has no DaemonSet kube-system/%s, which EKS only installs with a new cluster: add the add-on %s to spec.addons",
			m.Origin(m.InfraObject(), installed[name].field), name, installed[name].addon)
	}
}

// warnOfLostAddons warns if somebody has deleted kube-proxy or CoreDNS, which kubeadm installs with the first machine only.
func (p *planning) warnOfLostAddons(ctx context.Context) {
	m := p.Cluster.Manifest
	if p.Built.API == nil || !p.Inventory.Initialized || m.ControlPlane == nil {
		return
	}
	k, err := p.Built.API.Client(p.Cloud)
	if err != nil || k == nil {
		return
	}
	lost, err := incluster.LostAddons(cloud.InSnapshot(cloud.ReadOnly(ctx)), k)
	if err != nil {
		return
	}
	for _, what := range lost {
		_, name, _ := strings.Cut(what, " ")
		p.Warn("%s: somebody has deleted the %s in kube-system, which kubeadm installs with the first machine only, and without which %s: "+
			"on a machine of the control plane, 'sudo kubeadm init phase addon %s --config FILE' installs it again, "+
			"where FILE has the ClusterConfiguration in the ConfigMap kube-system/kubeadm-config; if something else has its place, delete the ConfigMap kube-system/%s, too",
			m.Origin("KubeadmControlPlane/"+m.ControlPlane.Object.Name, "spec.version"), what, effectOfLost(name), name, name)
	}
}

func effectOfLost(addon string) string {
	if addon == "coredns" {
		return "pods find no Service by its name"
	}
	return "pods reach no Service, unless the pod network takes its place"
}

// daemonSet is a DaemonSet that EKS installs with a cluster: the field that disables it, and the add-on that installs it later.
type daemonSet struct{ field, addon string }

// installedByEKS returns the DaemonSets, by name, that EKS installs by itself with a new cluster of this manifest: those that the manifest does not
// disable, and for which it has no add-on.
func installedByEKS(m *manifest.Cluster) map[string]daemonSet {
	all := map[string]daemonSet{}
	if m.HasVPCCNI() && m.VPCCNI() == nil {
		all["aws-node"] = daemonSet{"spec.vpcCni", "vpc-cni"}
	}
	if m.HasKubeProxy() && m.EKS.Addon("kube-proxy") == nil {
		all["kube-proxy"] = daemonSet{"spec.kubeProxy", "kube-proxy"}
	}
	return all
}
