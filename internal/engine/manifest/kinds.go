package manifest

import "strings"

// API groups of supported kinds.
const (
	GroupCore           = "cluster.x-k8s.io"
	groupAddons         = "addons.cluster.x-k8s.io"
	groupBootstrap      = "bootstrap.cluster.x-k8s.io"
	groupControlPlane   = "controlplane.cluster.x-k8s.io"
	groupInfrastructure = "infrastructure.cluster.x-k8s.io"
	VersionOld          = "v1beta1"
	VersionNew          = "v1beta2"
	VersionHelmChart    = "v1alpha1" // the only one of HelmChartProxy
)

// Names of supported kinds.
const (
	KindCluster            = "Cluster"
	KindControlPlane       = "KubeadmControlPlane"
	KindDeployment         = "MachineDeployment"
	KindMachine            = "Machine"
	KindHealthCheck        = "MachineHealthCheck"
	KindDrainRule          = "MachineDrainRule"
	KindConfig             = "KubeadmConfig"
	KindConfigTemplate     = "KubeadmConfigTemplate"
	KindAWSCluster         = "AWSCluster"
	KindAWSMachine         = "AWSMachine"
	KindAWSMachineTemplate = "AWSMachineTemplate"
	KindControllerIdentity = "AWSClusterControllerIdentity"
	KindRoleIdentity       = "AWSClusterRoleIdentity"
	KindStaticIdentity     = "AWSClusterStaticIdentity"
	KindPool               = "MachinePool"
	KindManagedCluster     = "AWSManagedCluster"
	KindManagedPlane       = "AWSManagedControlPlane"
	KindManagedPool        = "AWSManagedMachinePool"
	KindScalingPool        = "AWSMachinePool"
	KindFargateProfile     = "AWSFargateProfile"
	KindEKSConfig          = "EKSConfig"
	KindEKSConfigTemplate  = "EKSConfigTemplate"
	KindNodeadm            = "NodeadmConfig"
	KindNodeadmTemplate    = "NodeadmConfigTemplate"
	KindResourceSet        = "ClusterResourceSet"
	KindConfigMap          = "ConfigMap"
	KindSecret             = "Secret"
	KindNamespace          = "Namespace"
	KindHelmChart          = "HelmChartProxy" // of Cluster API's add-on provider Helm (CAAPH)
)

// Names of the kinds that only topologies use.
const (
	KindClusterClass           = "ClusterClass"
	KindAWSClusterTemplate     = "AWSClusterTemplate"
	KindControlPlaneTemplate   = "KubeadmControlPlaneTemplate"
	KindManagedClusterTemplate = "AWSManagedClusterTemplate"
	KindManagedPlaneTemplate   = "AWSManagedControlPlaneTemplate"
)

// GroupOf returns the API group of a kind; known is false if a manifest with the kind is not read.
func GroupOf(kind string) (group string, known bool) {
	switch kind {
	case KindConfigMap, KindSecret, KindNamespace:
		return "", true
	case KindCluster, KindClusterClass, KindDeployment, KindDrainRule, KindHealthCheck, KindMachine, KindPool:
		return GroupCore, true
	case KindHelmChart, KindResourceSet:
		return groupAddons, true
	case KindConfig, KindConfigTemplate, KindEKSConfig, KindEKSConfigTemplate, KindNodeadm, KindNodeadmTemplate:
		return groupBootstrap, true
	case KindControlPlane, KindControlPlaneTemplate, KindManagedPlane, KindManagedPlaneTemplate:
		return groupControlPlane, true
	case KindAWSCluster, KindAWSClusterTemplate, KindAWSMachine, KindAWSMachineTemplate, KindControllerIdentity, KindFargateProfile, KindManagedCluster,
		KindManagedClusterTemplate, KindManagedPool, KindRoleIdentity, KindScalingPool, KindStaticIdentity:
		return groupInfrastructure, true
	}
	return "", false
}

// IsClusterGroup reports whether an API group is one of Cluster API or of a provider.
func IsClusterGroup(group string) bool {
	return group == GroupCore || strings.HasSuffix(group, "."+GroupCore)
}
