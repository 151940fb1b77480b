package loader

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	infrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/api/v1beta2"
	ekscontrolplanev1 "sigs.k8s.io/cluster-api-provider-aws/v2/controlplane/eks/api/v1beta2"
	expinfrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/exp/api/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest/hooks"
)

// resolveEKS finds the EKS control plane and the objects that belong to it, and derives
// the infrastructure from it.
func (l *loader) resolveEKS(o *manifest.Entry, c *clusterv1.Cluster) {
	if !c.Spec.ControlPlaneRef.IsDefined() {
		l.fail(o.Problem("spec.controlPlaneRef", "the Cluster names no AWSManagedControlPlane", "set it"))
		return
	}
	r := contract(o, "spec.controlPlaneRef", c.Spec.ControlPlaneRef)
	plane := resolved[ekscontrolplanev1.AWSManagedControlPlane](l, r, manifest.KindManagedPlane)
	l.refuseOthers(manifest.KindManagedPlane, r)
	mirror := l.managedCluster(o, c, r.name)
	fargate := l.fargateProfiles()
	if plane == nil {
		return
	}
	l.cluster.EKS = &manifest.EKS{Cluster: mirror, ControlPlane: plane, Fargate: fargate, EnableIAM: l.options.EKSEnableIAM}
	l.cluster.EKS.EKSSettings = l.eksSettings(l.lookup(manifest.KindManagedPlane, r.name))
	if plane.Spec.Version != nil {
		l.cluster.Version = hooks.WithV(*plane.Spec.Version)
	}
	l.useInfrastructure(l.lookup(manifest.KindManagedPlane, r.name), infrastructureOf(plane))
}

// managedCluster finds the AWSManagedCluster. In older manifests, infrastructureRef names
// the control plane itself.
func (l *loader) managedCluster(o *manifest.Entry, c *clusterv1.Cluster, plane string) *infrav1.AWSManagedCluster {
	if !c.Spec.InfrastructureRef.IsDefined() {
		return nil
	}
	r := contract(o, "spec.infrastructureRef", c.Spec.InfrastructureRef)
	if r.kind != manifest.KindManagedPlane {
		return resolved[infrav1.AWSManagedCluster](l, r, manifest.KindManagedCluster)
	}
	if l.follow(r, manifest.KindManagedPlane) != nil && r.name != plane {
		l.fail(o.Problem(r.path+".name", fmt.Sprintf("names another control plane than spec.controlPlaneRef, %s", plane), "use one name, or an AWSManagedCluster"))
	}
	return nil
}

// fargateProfiles finds the Fargate profiles of the cluster. Nothing refers to them: they
// name the Cluster.
func (l *loader) fargateProfiles() []*expinfrav1.AWSFargateProfile {
	var found []*expinfrav1.AWSFargateProfile
	for _, o := range l.ofKind(manifest.KindFargateProfile) {
		o.Used = true
		if x, ok := o.Typed.(*expinfrav1.AWSFargateProfile); ok && l.belongs(o, x.Spec.ClusterName) {
			found = append(found, x)
		}
	}
	return found
}

// infrastructureOf returns the network and other infrastructure of an EKS control plane
// as an AWSCluster.
func infrastructureOf(plane *ekscontrolplanev1.AWSManagedControlPlane) *infrav1.AWSCluster {
	spec := plane.Spec.DeepCopy()
	if spec.SecondaryCidrBlock != nil && len(spec.NetworkSpec.VPC.SecondaryCidrBlocks) == 0 {
		spec.NetworkSpec.VPC.SecondaryCidrBlocks = []infrav1.VpcCidrBlock{{IPv4CidrBlock: *spec.SecondaryCidrBlock}}
	}
	return &infrav1.AWSCluster{
		ObjectMeta: metav1.ObjectMeta{Name: plane.Name, Namespace: plane.Namespace, Annotations: plane.Annotations},
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
