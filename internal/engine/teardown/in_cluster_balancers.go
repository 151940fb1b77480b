package teardown

import (
	"context"
	"slices"
	"strings"

	"github.com/clusterawsadm/clusterawsadm/internal/kube"
)

// BalancersInCluster are the objects for which there are load balancers:
// Services, and those Ingresses and Gateways that AWS's controller keeps.
func BalancersInCluster(k *kube.Client) *InCluster {
	return &InCluster{Kube: k, list: balancersInCluster, ask: func(ctx context.Context, k *kube.Client, have *InClusterState) error {
		var paths []string
		for _, o := range have.objects {
			if !o.going {
				paths = append(paths, o.path)
			}
		}
		return deleteAll(ctx, k, paths)
	}}
}

func balancersInCluster(ctx context.Context, k *kube.Client) (*InClusterState, error) {
	s := &InClusterState{}
	for _, of := range []struct {
		kind, group, plural string
		has                 func(*inClusterObject) bool
	}{
		{"Service", "/api/v1", "services", servedByAWS},
		{"Ingress", "/apis/networking.k8s.io/v1", "ingresses", keptByAWS},
		{"Gateway", "/apis/gateway.networking.k8s.io/v1", "gateways", keptByAWS},
	} {
		all, err := inClusterObjects(ctx, k, of.group+"/"+of.plural)
		if err != nil {
			return nil, err
		}
		for _, o := range all {
			if m := o.Metadata; of.has(&o) {
				s.objects = append(s.objects, held{
					of.kind + " " + m.Namespace + "/" + m.Name, of.group + "/namespaces/" + m.Namespace + "/" + of.plural + "/" + m.Name,
					m.UID, m.DeletionTimestamp != "",
				})
			}
		}
	}
	return s, nil
}

// servedByAWS reports whether a Service may have a load balancer of AWS's: its
// class is none, that of the AWS Load Balancer Controller or that of EKS's.
func servedByAWS(o *inClusterObject) bool {
	class := o.Spec.LoadBalancerClass
	return o.Spec.Type == "LoadBalancer" && (class == "" || strings.HasPrefix(class, "service.k8s.aws/") || strings.HasPrefix(class, "eks.amazonaws.com/"))
}

// keptByAWS reports whether a controller of AWS's keeps an object until it has
// removed what it made for it. It says so by its finalizers.
func keptByAWS(o *inClusterObject) bool {
	return slices.ContainsFunc(o.Metadata.Finalizers, func(f string) bool {
		domain, _, _ := strings.Cut(f, "/")
		return strings.HasSuffix(domain, ".k8s.aws") || strings.HasSuffix(domain, "eks.amazonaws.com")
	})
}
