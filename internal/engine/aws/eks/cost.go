package eks

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/service/eks/types"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/cost"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
)

var (
	_ cost.Desired  = (*Cluster)(nil)
	_ cost.Existing = ClusterState{}
	_ cost.Desired  = (*NodeGroup)(nil)
	_ cost.Existing = NodeGroupState{}
	_ cost.Desired  = (*FargateProfile)(nil)
)

// Costs implements cost.Desired. Without a version, EKS takes its default one, which has
// standard support.
func (e *Cluster) Costs(ctx context.Context, c *cloud.Clients, have graph.State) (now, then []cost.Item, err error) {
	version := e.Version
	if s, ok := have.(*ClusterState); ok && s != nil {
		if now, err = s.Costs(ctx, c); err != nil {
			return now, now, err
		}
		if version == "" {
			version = s.Version
		}
	}
	then, err = clusterCosts(ctx, c, version)
	if s, ok := have.(*ClusterState); e.Auto != nil && e.Auto.Enabled || e.Auto == nil && ok && s != nil && s.Auto.Enabled {
		then = append(then, autoModeCosts())
	}
	return now, then, err
}

// Costs implements cost.Existing.
func (s ClusterState) Costs(ctx context.Context, c *cloud.Clients) ([]cost.Item, error) {
	all, err := clusterCosts(ctx, c, s.Version)
	if s.Auto.Enabled {
		all = append(all, autoModeCosts())
	}
	return all, err
}

// autoModeCosts are the instances of EKS Auto Mode, with its fee for each: EKS launches them for the pods.
func autoModeCosts() cost.Item {
	return cost.Item{Group: "EKS Auto Mode", Name: "instances of EKS Auto Mode", NotCounted: true}
}

// clusterCosts returns what a control plane costs: extended support is paid for in addition.
func clusterCosts(ctx context.Context, c *cloud.Clients, version string) ([]cost.Item, error) {
	all := []cost.Item{
		cost.Hourly(
			"EKS control planes",
			"EKS control plane",
			cost.Product{Service: "AmazonEKS", Usage: "AmazonEKS-Hours:perCluster", Attributes: "operation=CreateOperation"},
			1,
		),
	}
	if version == "" {
		return all, nil
	}
	extended, err := hasExtendedSupport(ctx, c, version)
	if extended {
		all = append(
			all,
			cost.Hourly(
				"EKS extended support",
				"EKS extended support of Kubernetes "+version,
				cost.Product{Service: "AmazonEKS", Usage: "AmazonEKS-Hours:extendedSupport", Attributes: "operation=ExtendedSupport"},
				1,
			),
		)
	}
	return all, err
}

// hasExtendedSupport reports whether a version of Kubernetes has extended support now.
func hasExtendedSupport(ctx context.Context, c *cloud.Clients, version string) (bool, error) {
	found, err := Versions(ctx, c, version)
	if err != nil {
		return false, &cost.MissingError{
			What:   "whether EKS has extended support for Kubernetes " + version + " is not known",
			Action: "eks:DescribeClusterVersions",
			Err:    err,
		}
	}
	return len(found) > 0 && found[0].Status == string(types.VersionStatusExtendedSupport), nil
}

// The disk of a node, unless it is set (CreateNodegroup). AWS does not document its type.
const (
	nodeDiskType = "gp3"
	nodeDiskSize = 20
)

// Costs implements cost.Desired: what the desired number of nodes costs. Of several instance
// types, it is the first one.
func (g *NodeGroup) Costs(_ context.Context, _ *cloud.Clients, have graph.State) (now, then []cost.Item, err error) {
	s, _ := have.(*NodeGroupState)
	if s != nil {
		server := s.server()
		if g.Content != nil {
			server = g.server(g.Content.Server(g.Template))
		}
		now = server.All(int(s.Desired))
	}
	var launched cost.Server
	if g.Content != nil {
		launched = g.Content.Server(nil)
	}
	return now, g.server(launched).All(int(g.capacity(s))), nil
}

// server returns a node, from what the launch template has.
func (g *NodeGroup) server(s cost.Server) cost.Server {
	return nodeOf(s, g.InstanceTypes, g.Capacity, g.DiskSize)
}

func nodeOf(s cost.Server, names []string, capacity string, disk int32) cost.Server {
	if len(names) > 0 {
		s.Type = names[0]
	}
	if s.Type == "" {
		s.Type = DefaultNodeType
	}
	s.Spot = capacity == string(types.CapacityTypesSpot)
	if len(s.Volumes) == 0 {
		if disk == 0 {
			disk = nodeDiskSize
		}
		s.Volumes = []cost.Volume{{Type: nodeDiskType, Size: int64(disk)}}
	}
	return s
}

func (s NodeGroupState) server() cost.Server {
	return nodeOf(cost.Server{}, s.InstanceTypes, s.Capacity, s.DiskSize)
}

// Costs implements cost.Existing.
func (s NodeGroupState) Costs(context.Context, *cloud.Clients) ([]cost.Item, error) {
	return s.server().All(int(s.Desired)), nil
}

// Costs implements cost.Desired: Fargate counts the pods.
func (f *FargateProfile) Costs(_ context.Context, _ *cloud.Clients, have graph.State) (now, then []cost.Item, err error) {
	return cost.Same(have, []cost.Item{{Group: "Fargate pods", Name: "Fargate pods", NotCounted: true}})
}
