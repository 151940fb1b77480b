// Package eks simulates EKS: clusters, add-ons, node groups, Fargate profiles, access
// entries and identity providers.
package eks

import (
	"github.com/aws/aws-sdk-go-v2/service/eks"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim/autoscaling"
	"github.com/clusterawsadm/clusterawsadm/internal/awssim/core"
	"github.com/clusterawsadm/clusterawsadm/internal/awssim/ec2"
	"github.com/clusterawsadm/clusterawsadm/internal/awssim/iam"
)

// Service is the simulated EKS.
type Service struct {
	*core.Account
	state       *State
	ec2         *ec2.Service
	autoscaling *autoscaling.Service
	iam         *iam.Service
	// HasNetwork reports whether a cluster has a pod network, without which no node becomes ready.
	HasNetwork func(*Cluster) bool
	// HasServices reports whether pods of a cluster reach Services, without which CoreDNS and the controllers do not find the API server.
	HasServices func(*Cluster) bool
	// KeyARN returns the ARN of a KMS key, which may be named by the ARN of an alias, or why EKS cannot encrypt with it.
	KeyARN func(key string) (string, error)
	// HasJoined reports whether all instances of a node group are Nodes of the cluster.
	HasJoined func(*Cluster, *NodeGroup) bool
}

// New registers the operations of EKS.
func New(a *core.Account, s *State, e *ec2.Service, g *autoscaling.Service, i *iam.Service) *Service {
	core.Fill(&s.Clusters)
	svc := &Service{Account: a, state: s, ec2: e, autoscaling: g, iam: i, KeyARN: func(key string) (string, error) { return key, nil }}
	svc.simulate()
	a.Limit(eks.ServiceID, limits())
	return svc
}
