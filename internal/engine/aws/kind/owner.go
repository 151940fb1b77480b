package kind

import (
	"context"
	"strings"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
)

// Tags of what controllers in a cluster create in AWS, besides
// kubernetes.io/cluster/NAME=owned of the AWS cloud controller manager and of the
// EBS CSI driver.
const (
	// LoadBalancerControllerTag is set by the AWS Load Balancer Controller; the
	// value is the cluster's name.
	LoadBalancerControllerTag = "elbv2.k8s.aws/cluster"
	// CNITag is set by the Amazon VPC CNI on network interfaces; the value is the
	// cluster's name.
	CNITag = "cluster.k8s.amazonaws.com/name"
	// EKSClusterTag is set by EKS on what it creates for a cluster; the value is
	// the cluster's name.
	EKSClusterTag = "aws:eks:cluster-name"
)

// Owner is what tells the resources of a cluster from others'.
type Owner struct {
	Cluster string // name of the Cluster object
	// Kubernetes is the cluster's name in the tags that controllers in it set;
	// "" while that is not known. For EKS it is the name of the EKS cluster.
	Kubernetes string
	EKS        bool // EKS runs its control plane, as far as is known
	// Shared: another cluster has that name in its tags, so that what controllers
	// created cannot be told apart, and is left alone.
	Shared bool
}

// Tag is the key of the tag that controllers in the cluster set.
func (o Owner) Tag() string { return cloud.CloudProviderTagPrefix + o.Kubernetes }

// Owns reports whether tags are of a resource that was created for the cluster.
func (o Owner) Owns(tags cloud.Tags) bool {
	return tags[cloud.ClusterTagPrefix+o.Cluster] == cloud.Owned
}

// Created reports whether tags are of a resource that a controller in the
// cluster created. What carries the tag of Cluster API or of EKS was created for a
// cluster, not in it.
func (o Owner) Created(tags cloud.Tags) bool {
	if o.Kubernetes == "" || o.Shared {
		return false
	}
	for k := range tags {
		if k == EKSClusterTag || strings.HasPrefix(k, cloud.ClusterTagPrefix) {
			return false
		}
	}
	return tags[o.Tag()] == cloud.Owned || tags[LoadBalancerControllerTag] == o.Kubernetes
}

// Has reports whether tags are of a resource that is deleted with the cluster.
func (o Owner) Has(tags cloud.Tags) bool { return o.Owns(tags) || o.Created(tags) }

// EKSName is the name of the EKS cluster; "" where there is none. Only the name in
// tags may be known, and EKS have forgotten the cluster: that of a self-managed
// cluster is the Cluster object's.
func (o Owner) EKSName() string {
	if !o.Shared && (o.EKS || o.Kubernetes != o.Cluster) {
		return o.Kubernetes
	}
	return ""
}

// Tagged makes a List of a listing by the tag of Cluster API.
func Tagged[S any](list func(context.Context, *cloud.Clients) ([]S, error)) func(context.Context, *cloud.Clients, Owner) ([]S, error) {
	return func(ctx context.Context, c *cloud.Clients, _ Owner) ([]S, error) { return list(ctx, c) }
}
