package run

import (
	"context"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/eks"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/kms"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/incluster"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
)

// warnOfUninstalled warns about charts that the plan uninstalls although the Nodes of the cluster need them.
func (l *Looking) warnOfUninstalled() {
	n := l.Built.Resource(incluster.HelmLeftoversKind)
	if n == nil || l.Cluster.Manifest == nil {
		return
	}
	have, _ := n.Observed().(*incluster.HelmLeftoversState)
	if have == nil {
		return
	}
	for _, r := range have.Releases {
		switch m := l.Cluster.Manifest; {
		case manifest.IsPodNetworkChart(r.Chart) && !m.HasPodNetwork():
			l.Warn("the run uninstalls the pod network (%s/%s, chart %s), and the manifest has no other: Nodes become NotReady, and new pods get no addresses; "+
				"to keep it, put its HelmChartProxy back, or repeat its --chart", r.Namespace, r.Name, r.Chart)
		case manifest.IsCloudControllerChart(r.Chart) && !m.HasCloudController():
			l.Warn("the run uninstalls the cloud controller manager (%s/%s), and the manifest has no other: new Nodes stay tainted, and Services get no load balancers; "+
				"to keep it, put its HelmChartProxy back, or repeat its --chart", r.Namespace, r.Name)
		}
	}
}

// warnOfKey warns about the KMS key of an EKS cluster that exists if it cannot be used: "If the KMS key is deleted, there's no path to recovery for the
// cluster" ("Encrypt Kubernetes secrets with KMS on existing clusters", EKS user guide).
func (l *Looking) warnOfKey(ctx context.Context) error {
	for _, n := range l.Built.Resources() {
		s, is := n.Observed().(*eks.ClusterState)
		if !is || s == nil || s.Key == "" {
			continue
		}
		why, err := kms.Refusal(cloud.InSnapshot(cloud.ReadOnly(ctx)), l.Cloud, s.Key)
		if cloud.Denied(err) {
			return nil
		}
		if err != nil {
			return err
		}
		if why != "" {
			l.Warn("the EKS cluster %s needs its key, and without it, it cannot be recovered: %s", s.Name, why)
		}
	}
	return nil
}
