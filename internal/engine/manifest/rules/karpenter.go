package rules

import (
	"fmt"

	ekscontrolplanev1 "sigs.k8s.io/cluster-api-provider-aws/v2/controlplane/eks/api/v1beta2"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
)

// longestQueueName is the limit of SQS. The queue has the name of the EKS cluster, which may have 100 characters (CreateQueue, SQS API
// reference; CreateCluster, EKS API reference).
const longestQueueName = 80

// checkKarpenter checks what Karpenter needs of the rest of the cluster (https://karpenter.sh/docs/getting-started).
func (c *checks) checkKarpenter(plane *ekscontrolplanev1.AWSManagedControlPlaneSpec) {
	k, o, name := c.cluster.EKS.Karpenter, c.infra, manifest.AnnotationKarpenter
	if k == nil {
		return
	}
	if a := plane.AccessConfig; a == nil || a.AuthenticationMode == "" || a.AuthenticationMode == ekscontrolplanev1.EKSAuthenticationModeConfigMap {
		c.fail(o.AnnotationProblem(name, "the nodes of Karpenter are let in by an access entry", "set spec.accessConfig.authenticationMode: api"))
	}
	if !c.cluster.EKS.HasPodIdentityAgent() {
		c.fail(o.AnnotationProblem(name, "its controller gets its role by EKS Pod Identity", "add the add-on eks-pod-identity-agent to spec.addons"))
	}
	if c.cluster.EKS.HasAutoMode() {
		c.fail(o.AnnotationProblem(name, "EKS Auto Mode has a Karpenter of its own", "remove one of the two annotations"))
	}
	if len(c.cluster.Pools)+len(c.cluster.Deployments)+len(c.cluster.Machines)+len(c.cluster.EKS.Fargate) == 0 {
		c.fail(o.AnnotationProblem(name, "its controller needs a node that it has not made", "add a node group or a Fargate profile"))
	}
	if n := len(plane.EKSClusterName); n > longestQueueName {
		c.fail(o.Problem("spec.eksClusterName", fmt.Sprintf("its %d characters are too many for the name of Karpenter's queue", n), "use at most 80"))
	}
	for _, p := range c.cluster.EKS.PodIdentities {
		if p.Namespace == k.Namespace && p.ServiceAccount == k.ServiceAccount {
			c.fail(o.AnnotationProblem(name, manifest.OwnAnnotations+manifest.AnnotationPodIdentities+" has the same service account", "remove it there"))
		}
	}
	c.checkNodeClasses()
}

// checkNodeClasses warns about a role that Karpenter may not pass to its nodes.
func (c *checks) checkNodeClasses() {
	want := c.cluster.EKS.KarpenterNodeRole(c.cluster.Region)
	for _, set := range c.cluster.ResourceSets {
		for _, d := range set.Documents {
			spec, _ := d.Object["spec"].(map[string]any)
			role, is := spec["role"].(string)
			if d.Kind() != "EC2NodeClass" || !is || role == want {
				continue
			}
			c.warn(object{c, d}.problem("spec.role of the EC2NodeClass is "+role+", which is not the role that is made for Karpenter's nodes", "set it to "+want))
		}
	}
}
