package manifest

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	infrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/api/v1beta2"
	ekscontrolplanev1 "sigs.k8s.io/cluster-api-provider-aws/v2/controlplane/eks/api/v1beta2"
	expinfrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/exp/api/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// isManaged tells whether EKS runs the control plane.
func isManaged(c *clusterv1.Cluster) bool {
	infra := c.Spec.InfrastructureRef.Kind
	return c.Spec.ControlPlaneRef.Kind == kindManagedPlane || infra == kindManagedCluster || infra == kindManagedPlane
}

// resolveEKS finds the control plane of EKS and what belongs to it, and makes
// the infrastructure of it.
func (l *loader) resolveEKS(o *object, c *clusterv1.Cluster) {
	if !c.Spec.ControlPlaneRef.IsDefined() {
		l.fail(o.problem("spec.controlPlaneRef", "the Cluster names no AWSManagedControlPlane", "set it"))
		return
	}
	r := contract(o, "spec.controlPlaneRef", c.Spec.ControlPlaneRef)
	plane := resolved[ekscontrolplanev1.AWSManagedControlPlane](l, r, kindManagedPlane)
	for _, other := range l.ofKind(kindManagedPlane) {
		if r.kind == kindManagedPlane && other.name != r.name {
			other.used = true
			l.fail(other.problem("", "there is more than one AWSManagedControlPlane; the Cluster uses AWSManagedControlPlane/"+r.name, "remove this one"))
		}
	}
	mirror := l.managedCluster(o, c, r.name)
	fargate := l.fargateProfiles()
	if plane == nil {
		return
	}
	l.cluster.EKS = &EKS{Cluster: mirror, ControlPlane: plane, Fargate: fargate, EnableIAM: l.options.EKSEnableIAM}
	if plane.Spec.Version != nil {
		l.cluster.Version = withV(*plane.Spec.Version)
	}
	l.useInfrastructure(l.lookup(kindManagedPlane, r.name), infrastructureOf(plane))
}

// managedCluster finds the AWSManagedCluster. Older manifests name the control
// plane as the infrastructure, too.
func (l *loader) managedCluster(o *object, c *clusterv1.Cluster, plane string) *infrav1.AWSManagedCluster {
	if !c.Spec.InfrastructureRef.IsDefined() {
		return nil
	}
	r := contract(o, "spec.infrastructureRef", c.Spec.InfrastructureRef)
	if r.kind != kindManagedPlane {
		return resolved[infrav1.AWSManagedCluster](l, r, kindManagedCluster)
	}
	if l.follow(r, kindManagedPlane) != nil && r.name != plane {
		l.fail(o.problem(r.path+".name", fmt.Sprintf("names another control plane than spec.controlPlaneRef, %s", plane), "use one name, or an AWSManagedCluster"))
	}
	return nil
}

// fargateProfiles finds the Fargate profiles of the cluster, which nothing
// refers to: they name the Cluster.
func (l *loader) fargateProfiles() []*expinfrav1.AWSFargateProfile {
	var found []*expinfrav1.AWSFargateProfile
	for _, o := range l.ofKind(kindFargateProfile) {
		o.used = true
		if x, ok := o.typed.(*expinfrav1.AWSFargateProfile); ok && l.belongs(o, x.Spec.ClusterName) {
			found = append(found, x)
		}
	}
	return found
}

// infrastructureOf is what the control plane says of the network and all that
// stands in it, in the form that self-managed clusters have it.
func infrastructureOf(plane *ekscontrolplanev1.AWSManagedControlPlane) *infrav1.AWSCluster {
	spec := plane.Spec.DeepCopy()
	if spec.SecondaryCidrBlock != nil && len(spec.NetworkSpec.VPC.SecondaryCidrBlocks) == 0 {
		spec.NetworkSpec.VPC.SecondaryCidrBlocks = []infrav1.VpcCidrBlock{{IPv4CidrBlock: *spec.SecondaryCidrBlock}}
	}
	return &infrav1.AWSCluster{
		ObjectMeta: metav1.ObjectMeta{Name: plane.Name, Namespace: plane.Namespace},
		Spec: infrav1.AWSClusterSpec{
			NetworkSpec:       spec.NetworkSpec,
			Region:            spec.Region,
			Partition:         spec.Partition,
			SSHKeyName:        spec.SSHKeyName,
			AdditionalTags:    spec.AdditionalTags,
			ImageLookupFormat: spec.ImageLookupFormat,
			ImageLookupOrg:    spec.ImageLookupOrg,
			ImageLookupBaseOS: spec.ImageLookupBaseOS,
			Bastion:           spec.Bastion,
			IdentityRef:       spec.IdentityRef,
		},
	}
}
