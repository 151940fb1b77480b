package bootdata

import (
	"encoding/base64"
	"fmt"

	eksbootstrapv1 "sigs.k8s.io/cluster-api-provider-aws/v2/bootstrap/eks/api/v1beta2"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/eks"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/boot"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
)

// EKSJoin has what machines need to join an EKS cluster: the cluster's data from EKS, and one of
// two specs. It contains no secret, except in files of the spec.
type EKSJoin struct {
	Cluster *graph.Ref[eks.ClusterState]
	Config  *eksbootstrapv1.EKSConfigSpec // of nodes of Amazon Linux 2; or else
	Nodeadm *eksbootstrapv1.NodeadmConfigSpec
	Secret  boot.Secrets
}

// render renders the data; known is false until the cluster is active.
func (j *EKSJoin) render() (data boot.Data, known bool, err error) {
	c, ok := j.Cluster.Found()
	if !ok || c.Endpoint == "" || c.CA == "" {
		return data, false, nil
	}
	data, err = j.renderFor(c)
	return data, true, err
}

// renderFor returns the user data that joins a machine to the EKS cluster c.
func (j *EKSJoin) renderFor(c eks.ClusterState) (boot.Data, error) {
	ca, err := base64.StdEncoding.DecodeString(c.CA)
	if err != nil {
		return boot.Data{}, fmt.Errorf("certificate of EKS cluster %s: %w", c.Name, err)
	}
	node := boot.EKSNode{Secret: j.Secret, Cluster: boot.EKSCluster{Name: c.Name, Endpoint: c.Endpoint, CA: ca, ServiceCIDR: c.ServiceCIDR}}
	if j.Nodeadm != nil {
		return boot.RenderNodeadm(node, *j.Nodeadm)
	}
	return boot.RenderEKSConfig(node, *j.Config)
}
