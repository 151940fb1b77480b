package eks

import (
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/eks/types"

	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// RemoteNetworks are the networks of hybrid nodes outside of AWS, as sorted CIDR blocks.
type RemoteNetworks struct {
	Nodes, Pods []string
}

// request returns the networks for a call. EKS takes empty lists as "none".
func (r *RemoteNetworks) request() *types.RemoteNetworkConfigRequest {
	in := &types.RemoteNetworkConfigRequest{RemoteNodeNetworks: []types.RemoteNodeNetwork{}, RemotePodNetworks: []types.RemotePodNetwork{}}
	if len(r.Nodes) > 0 {
		in.RemoteNodeNetworks = []types.RemoteNodeNetwork{{Cidrs: r.Nodes}}
	}
	if len(r.Pods) > 0 {
		in.RemotePodNetworks = []types.RemotePodNetwork{{Cidrs: r.Pods}}
	}
	return in
}

// diffScaling compares the tier of the control plane and the networks of hybrid nodes.
func (e *Cluster) diffScaling(have *ClusterState, d *plan.Diff) {
	if e.Tier != "" && (have.ID == "" || have.Tier != "") {
		d.Set("controlPlaneTier", have.Tier, e.Tier)
	}
	if e.Remote != nil {
		d.Lines("remoteNodeNetwork", have.Remote.Nodes, e.Remote.Nodes)
		d.Lines("remotePodNetwork", have.Remote.Pods, e.Remote.Pods)
	}
}

func (s *ClusterState) readScaling(x *types.Cluster) {
	if x.ControlPlaneScalingConfig != nil {
		s.Tier = string(x.ControlPlaneScalingConfig.Tier)
	}
	if n := x.RemoteNetworkConfig; n != nil {
		for _, r := range n.RemoteNodeNetworks {
			s.Remote.Nodes = append(s.Remote.Nodes, r.Cidrs...)
		}
		for _, r := range n.RemotePodNetworks {
			s.Remote.Pods = append(s.Remote.Pods, r.Cidrs...)
		}
	}
	slices.Sort(s.Remote.Nodes)
	slices.Sort(s.Remote.Pods)
}
