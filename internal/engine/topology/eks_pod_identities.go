package topology

import (
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/eks"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/eventbridge"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/iam"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/sqs"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// addPodIdentities adds the pod identity associations of the manifest, and the deletion of those that
// the cluster owns and the manifest does not have any more.
func addPodIdentities(g *graph.Graph, in inputs, cluster *graph.Ref[eks.ClusterState]) {
	const annotation = manifest.AnnotationPodIdentities
	for _, p := range in.m.EKS.PodIdentities {
		account := p.Namespace + "/" + p.ServiceAccount
		graph.Add(g, podIdentityID(account), &eks.PodIdentity{
			Cluster: cluster, Namespace: p.Namespace, ServiceAccount: p.ServiceAccount, Role: podRole(g, in, annotation, p.PodRole, p.Purpose()), Adopt: in.o.Adopt,
			Tags: in.eksTags(account, in.ownedByName()),
		}, in.infra(manifest.AnnotationPath(annotation)))
	}
	for _, account := range in.inv.EKS.PodIdentities {
		if id := podIdentityID(account); g.Resource(id) == nil {
			eks.RetirePodIdentity(g, id, account, cluster)
		}
	}
}

func podIdentityID(account string) plan.ID { return plan.ID(eks.PodIdentityKind + "/" + account) }

// podRole adds the role of pods, once for each role: the lookup of an existing one by its ARN, or the one that is made for the
// cluster with the policies of the manifest.
func podRole(g *graph.Graph, in inputs, annotation string, r manifest.PodRole, purpose string) *graph.Ref[iam.RoleState] {
	name := iam.RoleName(r.RoleARN)
	if r.RoleARN == "" {
		name = in.m.EKS.PodRoleName(in.m.Region, purpose)
	}
	id := plan.ID("role/" + name)
	if added, ok := g.Resource(id).(*graph.Ref[iam.RoleState]); ok {
		return added
	}
	if r.RoleARN != "" {
		return graph.Use(g, id, iam.RoleByARN(r.RoleARN, "create it with a trust policy for pods.eks.amazonaws.com"), in.infra(manifest.AnnotationPath(annotation)))
	}
	return graph.Add(g, id, &iam.Role{
		Name: name, Path: in.m.EKS.PodRolePath(in.m.Region), Services: []string{iam.ServicePods}, TagsSessions: true, Exclusive: true,
		Policies: r.PolicyARNs, Given: r.PolicyARNs, ClusterTag: in.cloudProviderKey(), Tags: in.eksTags(name),
	}, in.infra(manifest.AnnotationPath(annotation)))
}

// retirePodRoles adds the deletion of the roles that were made for pods and that the manifest does not need any more, after the
// associations have changed.
func retirePodRoles(g *graph.Graph, in inputs) {
	users := graph.Awaits(resourcesOf(g, "addon", eks.PodIdentityKind, "retired", sqs.QueueKind, eventbridge.RuleKind)...)
	for _, name := range in.inv.EKS.PodRoles {
		if id := plan.ID("role/" + name); g.Resource(id) == nil {
			iam.RetireRole(g, id, name, users)
		}
	}
}
