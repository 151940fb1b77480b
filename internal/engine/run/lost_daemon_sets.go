package run

import (
	"context"
	"slices"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/eks"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/incluster"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// warnOfLostDaemonSets warns of a cluster whose VPC CNI or kube-proxy somebody has deleted, or an earlier manifest has disabled: EKS does not
// install them again.
func (p *planning) warnOfLostDaemonSets(ctx context.Context) {
	m, asks := p.Cluster.Manifest, []plan.Wait{plan.APIServer, plan.NodesJoined, plan.NodesReady}
	if !p.Cluster.IsEKS() || m.EKS == nil || !slices.Contains(asks, p.Cluster.Target.Wait) {
		return
	}
	if r := p.Built.Resource(eks.ClusterKind); r == nil || r.Observed() == nil {
		return
	}
	addons, fields := map[string]string{}, map[string]string{}
	var names []string
	if m.HasVPCCNI() && m.VPCCNI() == nil {
		names = append(names, "aws-node")
		addons["aws-node"], fields["aws-node"] = "vpc-cni", "spec.vpcCni"
	}
	if m.HasKubeProxy() && m.EKS.Addon("kube-proxy") == nil {
		names = append(names, "kube-proxy")
		addons["kube-proxy"], fields["kube-proxy"] = "kube-proxy", "spec.kubeProxy"
	}
	if len(names) == 0 || p.Built.API == nil {
		return
	}
	k, err := p.Built.API.Client(p.Cloud)
	if err != nil || k == nil {
		return
	}
	lost, err := incluster.LostDaemonSets(cloud.InSnapshot(cloud.ReadOnly(ctx)), k, names...)
	if err != nil {
		return
	}
	for _, name := range lost {
		p.Warn("%s: the cluster has no DaemonSet kube-system/%s, which EKS only installs with a new cluster: add the add-on %s to spec.addons",
			m.Origin(m.InfraObject(), fields[name]), name, addons[name])
	}
}
