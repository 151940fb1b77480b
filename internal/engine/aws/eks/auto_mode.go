package eks

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/eks/types"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/iam"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// AutoMode is EKS Auto Mode: EKS launches the nodes, and manages the pod network, volumes and load balancers. Its three
// settings (compute, load balancing, block storage) are on or off together.
type AutoMode struct {
	Enabled   bool
	NodePools []string                  // of EKS, sorted: "general-purpose", "system"
	Role      *graph.Ref[iam.RoleState] // of nodes in them; nil without
}

// AutoModeState is EKS Auto Mode, as AWS describes it.
type AutoModeState struct {
	Enabled   bool
	NodePools []string // sorted
	Role      string   // ARN; "" for none
}

func (m *AutoMode) compute() *types.ComputeConfigRequest {
	in := &types.ComputeConfigRequest{Enabled: &m.Enabled}
	if m.Enabled { // else EKS refuses the other fields
		in.NodePools = append([]string{}, m.NodePools...)
	}
	if m.Enabled && m.Role != nil {
		in.NodeRoleArn = aws.String(m.Role.CloudID())
	}
	return in
}

func (m *AutoMode) storage() *types.StorageConfigRequest {
	return &types.StorageConfigRequest{BlockStorage: &types.BlockStorage{Enabled: &m.Enabled}}
}

func (m *AutoMode) loadBalancing() *types.ElasticLoadBalancing {
	return &types.ElasticLoadBalancing{Enabled: &m.Enabled}
}

// createAutoMode adds the three settings to the request for a new cluster.
func (e *Cluster) createAutoMode(in *eks.CreateClusterInput) {
	if e.Auto == nil || !e.Auto.Enabled {
		return
	}
	in.ComputeConfig, in.StorageConfig = e.Auto.compute(), e.Auto.storage()
	if in.KubernetesNetworkConfig == nil {
		in.KubernetesNetworkConfig = &types.KubernetesNetworkConfigRequest{}
	}
	in.KubernetesNetworkConfig.ElasticLoadBalancing = e.Auto.loadBalancing()
}

// diffAutoMode compares Auto Mode. EKS keeps the role of nodes while Auto Mode is on.
func (e *Cluster) diffAutoMode(have *ClusterState, d *plan.Diff) {
	if e.Auto == nil {
		return
	}
	d.Set("autoMode", have.Auto.Enabled, e.Auto.Enabled)
	if !e.Auto.Enabled || have.ID != "" && !have.Auto.Enabled { // the call that turns it on names the node pools
		return
	}
	d.Lines("nodePool", have.Auto.NodePools, e.Auto.NodePools)
	if e.Auto.Role != nil && have.Auto.Enabled && have.Auto.Role != "" {
		fixedRole("autoModeRole", have.Auto.Role, e.Auto.Role, d)
		d.Advise(
			"EKS keeps the role of the nodes while Auto Mode is on: set the existing role in clusterawsadm/auto-mode-role, or turn Auto Mode off and on again, which replaces all of its nodes",
		)
	}
}

func autoModeState(x *types.Cluster) (s AutoModeState) {
	if x.ComputeConfig == nil {
		return s
	}
	s.Enabled, s.Role = aws.ToBool(x.ComputeConfig.Enabled), aws.ToString(x.ComputeConfig.NodeRoleArn)
	s.NodePools = slices.Sorted(slices.Values(x.ComputeConfig.NodePools))
	return s
}

// AutoModeClusterPolicies are the names of the AWS managed policies that the role of a control plane needs for Auto Mode, beside
// AmazonEKSClusterPolicy ("Amazon EKS Auto Mode cluster IAM role", EKS user guide).
func AutoModeClusterPolicies() []string {
	return []string{"AmazonEKSComputePolicy", "AmazonEKSBlockStoragePolicy", "AmazonEKSLoadBalancingPolicy", "AmazonEKSNetworkingPolicy"}
}

// AutoModeNodePolicies are the names of those of the role of its nodes ("Amazon EKS Auto Mode node IAM role").
func AutoModeNodePolicies() []string {
	return []string{"AmazonEKSWorkerNodeMinimalPolicy", "AmazonEC2ContainerRegistryPullOnly"}
}

// checkAutoMode refuses what EKS refuses: a new cluster into which EKS installs add-ons, and an existing role of the control plane
// that lacks a policy or may not tag sessions. A role with policies that are not AWS's may have the permissions by them.
func (e *Cluster) checkAutoMode(ctx context.Context, c *cloud.Clients) (refusal string, err error) {
	if e.Auto == nil || !e.Auto.Enabled {
		return "", nil
	}
	have, err := ClusterByName(ctx, c, e.Name)
	if err != nil {
		return "", err
	}
	if have == nil && !e.SkipSelfManagedAddons {
		return "EKS Auto Mode brings its own VPC CNI, CoreDNS and kube-proxy, and EKS refuses to install them, too: set spec.bootstrapSelfManagedAddons: false", nil
	}
	role, ok := e.Role.Found()
	if !ok || role.IsOwned(c) || have != nil && have.Auto.Enabled {
		return "", nil
	}
	lacks, err := iam.Lacks(ctx, c, role.Name, append(AutoModeClusterPolicies(), "AmazonEKSClusterPolicy"))
	if len(lacks) == 0 || err != nil {
		if cloud.Denied(err) {
			err = nil
		}
		return "", err
	}
	return fmt.Sprintf(
		"the role %s of the control plane lacks for EKS Auto Mode: %s. Add it, or name another role in spec.roleName, or let the run create the role with --set CAPA_EKS_IAM=true",
		role.Name,
		strings.Join(lacks, ", "),
	), nil
}
