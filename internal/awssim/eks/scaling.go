package eks

import (
	"cmp"
	"net/netip"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eks/types"
)

// standardTier is the tier of a control plane that EKS scales by itself ("Provisioned Control Plane",
// EKS user guide).
const standardTier = string(types.ProvisionedControlPlaneTierStandard)

func checkTier(tier types.ProvisionedControlPlaneTier) error {
	if !slices.Contains(tier.Values(), tier) {
		return invalid("unsupported control plane scaling tier %q", tier)
	}
	return nil
}

func (c *Cluster) changeTier(tier types.ProvisionedControlPlaneTier) (types.UpdateType, Update, error) {
	err := checkTier(tier)
	if err == nil && string(tier) == cmp.Or(c.Tier, standardTier) {
		err = invalid("Cluster is already at the desired control plane scaling tier")
	}
	return types.UpdateTypeControlPlaneScalingConfigUpdate, Update{Tier: string(tier)}, err
}

// remoteBlocks returns the CIDR blocks of hybrid nodes, and of their pods.
func remoteBlocks(in *types.RemoteNetworkConfigRequest) (nodes, pods []string) {
	for _, n := range in.RemoteNodeNetworks {
		nodes = append(nodes, n.Cidrs...)
	}
	for _, p := range in.RemotePodNetworks {
		pods = append(pods, p.Cidrs...)
	}
	return nodes, pods
}

// checkRemote rejects networks of hybrid nodes that EKS does not support. The rules are in the EKS API
// reference (RemoteNodeNetwork, RemotePodNetwork) and in the EKS user guide ("Prerequisite setup for
// hybrid nodes").
func (svc *Service) checkRemote(c *Cluster, nodes, pods []string) error {
	switch {
	case len(nodes)+len(pods) == 0:
		return nil
	case len(nodes) == 0:
		return invalid("remotePodNetworks cannot be specified without remoteNodeNetworks")
	case c.Family == "ipv6":
		return invalid("remoteNetworkConfig is only supported for clusters with ipFamily ipv4")
	case c.Authentication == string(types.AuthenticationModeConfigMap):
		return invalid("remoteNetworkConfig requires the authentication mode API or API_AND_CONFIG_MAP")
	}
	taken := []string{c.ServiceCIDR}
	if vpc := svc.ec2.VPC(c.VPC); vpc != nil {
		for _, block := range vpc.Blocks() {
			taken = append(taken, block.String())
		}
	}
	for _, block := range slices.Concat(nodes, pods) {
		p, err := netip.ParsePrefix(block)
		if err != nil || !p.Addr().Is4() || p != p.Masked() || p.Bits() < 8 || !p.Addr().IsPrivate() {
			return invalid("remote network CIDR %s is not a block of RFC 1918 between /8 and /32", block)
		}
		for _, other := range taken {
			if o, err := netip.ParsePrefix(other); err == nil && o.Overlaps(p) {
				return invalid("remote network CIDR %s overlaps with %s", block, other)
			}
		}
		taken = append(taken, block)
	}
	return nil
}

func (svc *Service) changeRemote(c *Cluster, in *types.RemoteNetworkConfigRequest) (types.UpdateType, Update, error) {
	nodes, pods := remoteBlocks(in)
	err := svc.checkRemote(c, nodes, pods)
	if err == nil && slices.Equal(nodes, c.RemoteNodes) && slices.Equal(pods, c.RemotePods) {
		err = invalid("Cluster is already at the desired remote network configuration")
	}
	return types.UpdateTypeRemoteNetworkConfigUpdate, Update{Remote: in}, err
}

func (c *Cluster) remoteOut() *types.RemoteNetworkConfigResponse {
	if len(c.RemoteNodes) == 0 {
		return nil
	}
	out := &types.RemoteNetworkConfigResponse{RemoteNodeNetworks: []types.RemoteNodeNetwork{{Cidrs: slices.Clone(c.RemoteNodes)}}}
	if len(c.RemotePods) > 0 {
		out.RemotePodNetworks = []types.RemotePodNetwork{{Cidrs: slices.Clone(c.RemotePods)}}
	}
	return out
}

// RepairLimits are the limits of node repair in a node group. A number that is 0 is not set.
type RepairLimits struct {
	UnhealthyCount, UnhealthyPercentage, ParallelCount, ParallelPercentage int32
}

// repair sets the node repair (NodeRepairConfig in the EKS API reference: a count and a percentage
// exclude each other).
func (g *NodeGroup) repair(in *types.NodeRepairConfig) error {
	switch {
	case len(in.NodeRepairConfigOverrides) > 0:
		return invalid("NodeRepairConfigOverrides: not simulated")
	case in.MaxUnhealthyNodeThresholdCount != nil && in.MaxUnhealthyNodeThresholdPercentage != nil:
		return invalid("maxUnhealthyNodeThresholdCount and maxUnhealthyNodeThresholdPercentage cannot both be specified")
	case in.MaxParallelNodesRepairedCount != nil && in.MaxParallelNodesRepairedPercentage != nil:
		return invalid("maxParallelNodesRepairedCount and maxParallelNodesRepairedPercentage cannot both be specified")
	}
	for at, limit := range map[*int32]int32{
		in.MaxUnhealthyNodeThresholdCount: 1000, in.MaxParallelNodesRepairedCount: 1000,
		in.MaxUnhealthyNodeThresholdPercentage: 100, in.MaxParallelNodesRepairedPercentage: 100,
	} {
		if at != nil && (*at < 1 || *at > limit) {
			return invalid("node repair: %d is not between 1 and %d", *at, limit)
		}
	}
	g.Repair, g.RepairLimits = aws.ToBool(in.Enabled), RepairLimits{
		aws.ToInt32(in.MaxUnhealthyNodeThresholdCount), aws.ToInt32(in.MaxUnhealthyNodeThresholdPercentage),
		aws.ToInt32(in.MaxParallelNodesRepairedCount), aws.ToInt32(in.MaxParallelNodesRepairedPercentage),
	}
	return nil
}

func (g *NodeGroup) repairOut() *types.NodeRepairConfig {
	set := func(n int32) *int32 {
		if n == 0 {
			return nil
		}
		return &n
	}
	r := g.RepairLimits
	return &types.NodeRepairConfig{
		Enabled: aws.Bool(g.Repair), MaxUnhealthyNodeThresholdCount: set(r.UnhealthyCount), MaxUnhealthyNodeThresholdPercentage: set(r.UnhealthyPercentage),
		MaxParallelNodesRepairedCount: set(r.ParallelCount), MaxParallelNodesRepairedPercentage: set(r.ParallelPercentage),
	}
}
