package rules

import (
	"fmt"
	"slices"
	"strings"

	ekscontrolplanev1 "sigs.k8s.io/cluster-api-provider-aws/v2/controlplane/eks/api/v1beta2"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
)

// checkAutoMode checks Auto Mode against the rest of the cluster ("Create an EKS Auto Mode Cluster", "Enable EKS Auto Mode on existing
// EKS clusters", EKS user guide).
func (c *checks) checkAutoMode(plane *ekscontrolplanev1.AWSManagedControlPlaneSpec) {
	m := c.cluster.EKS.AutoMode
	if m == nil || !m.Enabled {
		return
	}
	if role, _ := c.infra.Annotation(manifest.AnnotationAutoModeRole); strings.HasPrefix(role, "arn:") {
		c.checkARN(c.infra, manifest.AnnotationPath(manifest.AnnotationAutoModeRole), role, roleARN())
	}
	if a := plane.AccessConfig; a == nil || a.AuthenticationMode == "" || a.AuthenticationMode == ekscontrolplanev1.EKSAuthenticationModeConfigMap {
		c.fail(c.infra.AnnotationProblem(manifest.AnnotationAutoMode, "EKS Auto Mode needs access entries", "set spec.accessConfig.authenticationMode: api"))
	}
	if plane.Addons == nil || len(c.cluster.Pools)+len(c.cluster.Deployments)+len(c.cluster.Machines)+len(c.cluster.EKS.Fargate) > 0 {
		return // other nodes run the add-ons
	}
	brought := []string{"aws-ebs-csi-driver", "coredns", "eks-pod-identity-agent", "kube-proxy", "vpc-cni"}
	for i, a := range *plane.Addons {
		if slices.Contains(brought, a.Name) {
			c.fail(c.infra.Problem(fmt.Sprintf("spec.addons[%d]", i),
				"EKS Auto Mode has "+a.Name+" in its nodes, and the cluster has no others: its pods would have nothing to do, or wait for a node", "remove the add-on"))
		}
	}
}
