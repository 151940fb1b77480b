package manifest

import "strings"

// API groups of supported kinds.
const (
	groupCore           = "cluster.x-k8s.io"
	groupAddons         = "addons.cluster.x-k8s.io"
	groupBootstrap      = "bootstrap.cluster.x-k8s.io"
	groupControlPlane   = "controlplane.cluster.x-k8s.io"
	groupInfrastructure = "infrastructure.cluster.x-k8s.io"
	versionOld          = "v1beta1"
	versionNew          = "v1beta2"
	versionHelmChart    = "v1alpha1" // the only one of HelmChartProxy
)

// Names of supported kinds.
const (
	kindCluster            = "Cluster"
	kindControlPlane       = "KubeadmControlPlane"
	kindDeployment         = "MachineDeployment"
	kindMachine            = "Machine"
	kindHealthCheck        = "MachineHealthCheck"
	kindDrainRule          = "MachineDrainRule"
	kindConfig             = "KubeadmConfig"
	kindConfigTemplate     = "KubeadmConfigTemplate"
	kindAWSCluster         = "AWSCluster"
	kindAWSMachine         = "AWSMachine"
	kindAWSMachineTemplate = "AWSMachineTemplate"
	kindControllerIdentity = "AWSClusterControllerIdentity"
	kindRoleIdentity       = "AWSClusterRoleIdentity"
	kindStaticIdentity     = "AWSClusterStaticIdentity"
	kindPool               = "MachinePool"
	kindManagedCluster     = "AWSManagedCluster"
	kindManagedPlane       = "AWSManagedControlPlane"
	kindManagedPool        = "AWSManagedMachinePool"
	kindScalingPool        = "AWSMachinePool"
	kindFargateProfile     = "AWSFargateProfile"
	kindEKSConfig          = "EKSConfig"
	kindEKSConfigTemplate  = "EKSConfigTemplate"
	kindNodeadm            = "NodeadmConfig"
	kindNodeadmTemplate    = "NodeadmConfigTemplate"
	kindResourceSet        = "ClusterResourceSet"
	kindConfigMap          = "ConfigMap"
	kindSecret             = "Secret"
	kindNamespace          = "Namespace"
	kindHelmChart          = "HelmChartProxy" // of Cluster API's add-on provider Helm (CAAPH)
)

// Names of the kinds that only topologies use.
const (
	kindClusterClass           = "ClusterClass"
	kindAWSClusterTemplate     = "AWSClusterTemplate"
	kindControlPlaneTemplate   = "KubeadmControlPlaneTemplate"
	kindManagedClusterTemplate = "AWSManagedClusterTemplate"
	kindManagedPlaneTemplate   = "AWSManagedControlPlaneTemplate"
)

// groupOf returns the API group of a kind; known is false if a manifest with the kind is not read.
func groupOf(kind string) (group string, known bool) {
	switch kind {
	case kindConfigMap, kindSecret, kindNamespace:
		return "", true
	case kindCluster, kindClusterClass, kindDeployment, kindDrainRule, kindHealthCheck, kindMachine, kindPool:
		return groupCore, true
	case kindHelmChart, kindResourceSet:
		return groupAddons, true
	case kindConfig, kindConfigTemplate, kindEKSConfig, kindEKSConfigTemplate, kindNodeadm, kindNodeadmTemplate:
		return groupBootstrap, true
	case kindControlPlane, kindControlPlaneTemplate, kindManagedPlane, kindManagedPlaneTemplate:
		return groupControlPlane, true
	case kindAWSCluster, kindAWSClusterTemplate, kindAWSMachine, kindAWSMachineTemplate, kindControllerIdentity, kindFargateProfile, kindManagedCluster,
		kindManagedClusterTemplate, kindManagedPool, kindRoleIdentity, kindScalingPool, kindStaticIdentity:
		return groupInfrastructure, true
	}
	return "", false
}

// isClusterGroup reports whether an API group is one of Cluster API or of a provider.
func isClusterGroup(group string) bool {
	return group == groupCore || strings.HasSuffix(group, "."+groupCore)
}
