package kind

import (
	"context"
	"strings"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
)

// Tags that controllers set on AWS resources. The AWS cloud controller manager and the
// EBS CSI driver set kubernetes.io/cluster/NAME=owned.
const (
	// LoadBalancerControllerTag is set by the AWS Load Balancer Controller; the
	// value is the cluster's name.
	LoadBalancerControllerTag = "elbv2.k8s.aws/cluster"
	// CNITag is set by the Amazon VPC CNI on network interfaces; the value is the
	// cluster's name.
	CNITag = "cluster.k8s.amazonaws.com/name"
	// EKSClusterTag is set by EKS on resources that it creates for a cluster; the value
	// is the cluster's name.
	EKSClusterTag = "aws:eks:cluster-name"
	// NodeGroupClusterTag is set by EKS on the instances of node groups; the value is the
	// cluster's name.
	NodeGroupClusterTag = "eks:cluster-name"
	// KarpenterClusterTag is set by Karpenter on what it creates, beside the tag of the cloud provider; the value is the cluster's name. It finds
	// its launch templates by it. Before version 1.1 it was the other one (hydrateCache in pkg/providers/launchtemplate of
	// karpenter-provider-aws).
	KarpenterClusterTag    = "eks:eks-cluster-name"
	OldKarpenterClusterTag = "karpenter.k8s.aws/cluster"
)

// Owner identifies the cluster that a resource belongs to.
type Owner struct {
	Cluster string // name of the Cluster object
	// Kubernetes is the cluster's name in the tags that controllers in it set; "" if it
	// is not known yet. For EKS it is the name of the EKS cluster.
	Kubernetes string
	EKS        bool // it is known to be an EKS cluster
	// Shared: another cluster uses the same name in tags. The resources that
	// controllers created cannot be assigned to one of them, so they are not deleted.
	Shared bool
}

// Tag returns the key of the cloud provider tag.
func (o Owner) Tag() string { return cloud.CloudProviderTagPrefix + o.Kubernetes }

// Owns reports whether the tags contain the owned tag of the cluster.
func (o Owner) Owns(tags cloud.Tags) bool {
	return tags[cloud.ClusterTagPrefix+o.Cluster] == cloud.Owned
}

// Created reports whether the tags are those of a resource that a controller in the
// cluster created. A resource with a tag of CAPA, or with the one that EKS sets itself, was not. What a node group
// has launched has the tags of both: its kinds leave it out by NodeGroupClusterTag.
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

// Karpenter reports whether the tags are those of a resource that Karpenter in the cluster has created, also if the tag of the cloud provider is lost.
// EKS Auto Mode sets the same tag, and one of EKS's own.
func (o Owner) Karpenter(tags cloud.Tags) bool {
	if name := o.EKSName(); name == "" || tags[EKSClusterTag] != "" || tags[KarpenterClusterTag] != name && tags[OldKarpenterClusterTag] != name {
		return false
	}
	for k := range tags {
		if strings.HasPrefix(k, cloud.ClusterTagPrefix) {
			return false
		}
	}
	return true
}

// Has reports whether a resource with the tags is deleted with the cluster.
func (o Owner) Has(tags cloud.Tags) bool { return o.Owns(tags) || o.Created(tags) }

// Contains reports whether a resource with the tags is a part of the cluster, or was
// created by AWS or a controller for one.
func (o Owner) Contains(tags cloud.Tags) bool {
	if o.Has(tags) {
		return true
	}
	if eks := o.EKSName(); eks != "" && (tags[EKSClusterTag] == eks || tags[NodeGroupClusterTag] == eks) {
		return true
	}
	return o.Kubernetes != "" && !o.Shared && tags[CNITag] == o.Kubernetes
}

// MayHaveLost reports whether the tags may be those of a resource of the cluster that has
// lost others: there are none, or some are the cluster's and none names an owner. AWS keeps
// the tags that it sets itself.
func (o Owner) MayHaveLost(tags cloud.Tags) bool {
	own := len(tags) == 0
	for key := range tags {
		switch {
		case strings.HasPrefix(key, "aws:"), strings.HasPrefix(key, cloud.ClusterTagPrefix):
			return false // CloudFormation, Auto Scaling or another cluster made it
		case key == cloud.RoleTag, key == cloud.ResourceTag, key == cloud.TemplateTag:
			own = true
		}
	}
	return own
}

// RestoreAdvice returns the first part of the advice for a resource that has the name of one of the cluster, but not its tags. If it has no tags at
// all, it may have lost them, and the advice says how to restore them. If it has other tags, RestoreAdvice returns "".
func RestoreAdvice(id string, have, want cloud.Tags) string {
	if len(have) > 0 {
		return ""
	}
	owners := want.Owners()
	if len(owners) == 0 {
		return ""
	}
	return "it has no tags; if it is the cluster's, restore them: " + cloud.TagCommand(id, cloud.ClusterTagPrefix+owners[0], cloud.Owned) + "; otherwise "
}

// EKSName returns the name of the EKS cluster; "" if there is none. The EKS cluster may
// be deleted already, so that its name is known only from tags. There, the name of a
// self-managed cluster is always that of the Cluster object.
func (o Owner) EKSName() string {
	if !o.Shared && (o.EKS || o.Kubernetes != o.Cluster) {
		return o.Kubernetes
	}
	return ""
}

// Tagged returns a Functions.List for a function that lists by the owned tag.
func Tagged[S any](list func(context.Context, *cloud.Clients) ([]S, error)) func(context.Context, *cloud.Clients, Owner) ([]S, error) {
	return func(ctx context.Context, c *cloud.Clients, _ Owner) ([]S, error) { return list(ctx, c) }
}
