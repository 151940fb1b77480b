package teardown

import (
	"context"

	"github.com/clusterawsadm/clusterawsadm/internal/kube"
)

// The groups of Karpenter's objects. EKS Auto Mode has NodePools and NodeClaims of the first, too, with classes of another group.
const (
	karpenterPools   = "/apis/karpenter.sh/v1/"
	karpenterGroup   = "karpenter.k8s.aws"
	karpenterClasses = "/apis/" + karpenterGroup + "/v1/ec2nodeclasses"
)

// KarpenterInCluster deletes the NodePools and NodeClaims of a cluster first, so that Karpenter terminates its instances, and then
// the EC2NodeClasses, with which Karpenter deletes the instance profiles and launch templates that it has created.
func KarpenterInCluster(k *kube.Client) *InCluster {
	return &InCluster{Kube: k, list: karpenterInCluster, ask: func(ctx context.Context, k *kube.Client, have *InClusterState) error {
		var paths, classes []string
		nodes := false
		for _, o := range have.objects {
			of := &paths
			if o.last {
				of = &classes
			}
			nodes = nodes || !o.last
			if !o.deleting {
				*of = append(*of, o.path)
			}
		}
		if !nodes {
			paths = classes
		}
		return deleteAll(ctx, k, paths)
	}}
}

// HasKarpenter reports whether a cluster has EC2NodeClasses. If the API server does not answer, the result is false, and the deletion
// finds the instances of Karpenter by their tags.
func HasKarpenter(ctx context.Context, k *kube.Client) bool {
	classes, err := inClusterObjects(ctx, k, karpenterClasses)
	return err == nil && len(classes) > 0
}

// karpenterInCluster lists the NodePools, NodeClaims and EC2NodeClasses of a cluster. A cluster without EC2NodeClasses does not use
// Karpenter, and the list is empty.
func karpenterInCluster(ctx context.Context, k *kube.Client) (*InClusterState, error) {
	s := &InClusterState{}
	classes, err := inClusterObjects(ctx, k, karpenterClasses)
	if err != nil || len(classes) == 0 {
		return s, err
	}
	add := func(kind, path string, o inClusterObject, last bool) {
		m := o.Metadata
		s.objects = append(s.objects, object{name: kind + " " + m.Name, path: path + "/" + m.Name, uid: m.UID, deleting: m.DeletionTimestamp != "", last: last})
	}
	pools, err := inClusterObjects(ctx, k, karpenterPools+"nodepools")
	if err != nil {
		return nil, err
	}
	for _, o := range pools {
		if o.Spec.Template.Spec.NodeClassRef.Group == karpenterGroup {
			add("NodePool", karpenterPools+"nodepools", o, false)
		}
	}
	claims, err := inClusterObjects(ctx, k, karpenterPools+"nodeclaims")
	if err != nil {
		return nil, err
	}
	for _, o := range claims {
		if o.Spec.NodeClassRef.Group == karpenterGroup {
			add("NodeClaim", karpenterPools+"nodeclaims", o, false)
		}
	}
	for _, o := range classes {
		add("EC2NodeClass", karpenterClasses, o, true)
	}
	return s, nil
}
