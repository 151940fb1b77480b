package topology

import (
	"strings"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/eks"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/iam"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// addPodIdentities adds the pod identity associations of the manifest, and the deletion of those that
// the cluster owns and the manifest does not have any more.
func addPodIdentities(g *graph.Graph, in inputs, cluster *graph.Ref[eks.ClusterState]) {
	const at = "metadata.annotations"
	for _, p := range in.m.EKS.PodIdentities {
		account := p.Namespace + "/" + p.ServiceAccount
		graph.Add(g, podIdentityID(account), &eks.PodIdentity{
			Cluster: cluster, Namespace: p.Namespace, ServiceAccount: p.ServiceAccount, Role: podRole(g, in, p.RoleARN), Adopt: in.o.Adopt,
			Tags: in.eksTags(account, in.ownedByName()),
		}, in.infra(at))
	}
	for _, account := range in.inv.EKS.PodIdentities {
		if id := podIdentityID(account); g.Resource(id) == nil {
			eks.RetirePodIdentity(g, id, account, cluster)
		}
	}
}

func podIdentityID(account string) plan.ID { return plan.ID(eks.PodIdentityKind + "/" + account) }

// podRole adds the lookup of a role by its ARN, once for each role.
func podRole(g *graph.Graph, in inputs, arn string) *graph.Ref[iam.RoleState] {
	name := arn[strings.LastIndex(arn, "/")+1:]
	id := plan.ID("role/" + name)
	if added, ok := g.Resource(id).(*graph.Ref[iam.RoleState]); ok {
		return added
	}
	return graph.Use(g, id, iam.RoleByName(name, "create it with a trust policy for pods.eks.amazonaws.com"), in.infra("metadata.annotations"))
}
