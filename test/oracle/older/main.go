// The program converts objects of v1alpha3 and v1alpha4 to v1beta1 with the code of the last releases of
// Cluster API and of its provider for AWS that have it. It reads objects as lines of JSON, and writes the
// results in the same order. It is a module of its own, because these releases and the current one
// cannot be linked together.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"strings"

	infrav1alpha3 "sigs.k8s.io/cluster-api-provider-aws/api/v1alpha3"
	infrav1alpha4 "sigs.k8s.io/cluster-api-provider-aws/api/v1alpha4"
	infrav1 "sigs.k8s.io/cluster-api-provider-aws/api/v1beta1"
	eksbootstrapv1alpha3 "sigs.k8s.io/cluster-api-provider-aws/bootstrap/eks/api/v1alpha3"
	eksbootstrapv1alpha4 "sigs.k8s.io/cluster-api-provider-aws/bootstrap/eks/api/v1alpha4"
	eksbootstrapv1 "sigs.k8s.io/cluster-api-provider-aws/bootstrap/eks/api/v1beta1"
	eksv1alpha3 "sigs.k8s.io/cluster-api-provider-aws/controlplane/eks/api/v1alpha3"
	eksv1alpha4 "sigs.k8s.io/cluster-api-provider-aws/controlplane/eks/api/v1alpha4"
	eksv1 "sigs.k8s.io/cluster-api-provider-aws/controlplane/eks/api/v1beta1"
	expv1alpha3 "sigs.k8s.io/cluster-api-provider-aws/exp/api/v1alpha3"
	expv1alpha4 "sigs.k8s.io/cluster-api-provider-aws/exp/api/v1alpha4"
	expv1 "sigs.k8s.io/cluster-api-provider-aws/exp/api/v1beta1"
	clusterv1alpha3 "sigs.k8s.io/cluster-api/api/v1alpha3"
	clusterv1alpha4 "sigs.k8s.io/cluster-api/api/v1alpha4"
	clusterv1 "sigs.k8s.io/cluster-api/api/v1beta1"
	bootstrapv1alpha3 "sigs.k8s.io/cluster-api/bootstrap/kubeadm/api/v1alpha3"
	bootstrapv1alpha4 "sigs.k8s.io/cluster-api/bootstrap/kubeadm/api/v1alpha4"
	bootstrapv1 "sigs.k8s.io/cluster-api/bootstrap/kubeadm/api/v1beta1"
	planev1alpha3 "sigs.k8s.io/cluster-api/controlplane/kubeadm/api/v1alpha3"
	planev1alpha4 "sigs.k8s.io/cluster-api/controlplane/kubeadm/api/v1alpha4"
	planev1 "sigs.k8s.io/cluster-api/controlplane/kubeadm/api/v1beta1"
	addonsv1alpha3 "sigs.k8s.io/cluster-api/exp/addons/api/v1alpha3"
	addonsv1alpha4 "sigs.k8s.io/cluster-api/exp/addons/api/v1alpha4"
	addonsv1 "sigs.k8s.io/cluster-api/exp/addons/api/v1beta1"
	poolv1alpha3 "sigs.k8s.io/cluster-api/exp/api/v1alpha3"
	poolv1alpha4 "sigs.k8s.io/cluster-api/exp/api/v1alpha4"
	poolv1 "sigs.k8s.io/cluster-api/exp/api/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/conversion"
)

// pair is an object of an older version, and one of v1beta1.
type pair struct {
	older  conversion.Convertible
	newest conversion.Hub
}

func pairs() map[string]pair {
	return map[string]pair{
		"v1alpha3/Cluster":                     {&clusterv1alpha3.Cluster{}, &clusterv1.Cluster{}},
		"v1alpha4/Cluster":                     {&clusterv1alpha4.Cluster{}, &clusterv1.Cluster{}},
		"v1alpha3/Machine":                     {&clusterv1alpha3.Machine{}, &clusterv1.Machine{}},
		"v1alpha4/Machine":                     {&clusterv1alpha4.Machine{}, &clusterv1.Machine{}},
		"v1alpha3/MachineDeployment":           {&clusterv1alpha3.MachineDeployment{}, &clusterv1.MachineDeployment{}},
		"v1alpha4/MachineDeployment":           {&clusterv1alpha4.MachineDeployment{}, &clusterv1.MachineDeployment{}},
		"v1alpha3/MachineHealthCheck":          {&clusterv1alpha3.MachineHealthCheck{}, &clusterv1.MachineHealthCheck{}},
		"v1alpha4/MachineHealthCheck":          {&clusterv1alpha4.MachineHealthCheck{}, &clusterv1.MachineHealthCheck{}},
		"v1alpha3/MachinePool":                 {&poolv1alpha3.MachinePool{}, &poolv1.MachinePool{}},
		"v1alpha4/MachinePool":                 {&poolv1alpha4.MachinePool{}, &poolv1.MachinePool{}},
		"v1alpha3/KubeadmControlPlane":         {&planev1alpha3.KubeadmControlPlane{}, &planev1.KubeadmControlPlane{}},
		"v1alpha4/KubeadmControlPlane":         {&planev1alpha4.KubeadmControlPlane{}, &planev1.KubeadmControlPlane{}},
		"v1alpha3/KubeadmConfig":               {&bootstrapv1alpha3.KubeadmConfig{}, &bootstrapv1.KubeadmConfig{}},
		"v1alpha4/KubeadmConfig":               {&bootstrapv1alpha4.KubeadmConfig{}, &bootstrapv1.KubeadmConfig{}},
		"v1alpha3/KubeadmConfigTemplate":       {&bootstrapv1alpha3.KubeadmConfigTemplate{}, &bootstrapv1.KubeadmConfigTemplate{}},
		"v1alpha4/KubeadmConfigTemplate":       {&bootstrapv1alpha4.KubeadmConfigTemplate{}, &bootstrapv1.KubeadmConfigTemplate{}},
		"v1alpha3/AWSCluster":                  {&infrav1alpha3.AWSCluster{}, &infrav1.AWSCluster{}},
		"v1alpha4/AWSCluster":                  {&infrav1alpha4.AWSCluster{}, &infrav1.AWSCluster{}},
		"v1alpha3/AWSMachine":                  {&infrav1alpha3.AWSMachine{}, &infrav1.AWSMachine{}},
		"v1alpha4/AWSMachine":                  {&infrav1alpha4.AWSMachine{}, &infrav1.AWSMachine{}},
		"v1alpha3/AWSMachineTemplate":          {&infrav1alpha3.AWSMachineTemplate{}, &infrav1.AWSMachineTemplate{}},
		"v1alpha4/AWSMachineTemplate":          {&infrav1alpha4.AWSMachineTemplate{}, &infrav1.AWSMachineTemplate{}},
		"v1alpha3/AWSClusterStaticIdentity":    {&infrav1alpha3.AWSClusterStaticIdentity{}, &infrav1.AWSClusterStaticIdentity{}},
		"v1alpha4/AWSClusterStaticIdentity":    {&infrav1alpha4.AWSClusterStaticIdentity{}, &infrav1.AWSClusterStaticIdentity{}},
		"v1alpha3/AWSClusterRoleIdentity":      {&infrav1alpha3.AWSClusterRoleIdentity{}, &infrav1.AWSClusterRoleIdentity{}},
		"v1alpha4/AWSClusterRoleIdentity":      {&infrav1alpha4.AWSClusterRoleIdentity{}, &infrav1.AWSClusterRoleIdentity{}},
		"v1alpha3/AWSMachinePool":              {&expv1alpha3.AWSMachinePool{}, &expv1.AWSMachinePool{}},
		"v1alpha4/AWSMachinePool":              {&expv1alpha4.AWSMachinePool{}, &expv1.AWSMachinePool{}},
		"v1alpha3/AWSManagedMachinePool":       {&expv1alpha3.AWSManagedMachinePool{}, &expv1.AWSManagedMachinePool{}},
		"v1alpha4/AWSManagedMachinePool":       {&expv1alpha4.AWSManagedMachinePool{}, &expv1.AWSManagedMachinePool{}},
		"v1alpha3/AWSFargateProfile":           {&expv1alpha3.AWSFargateProfile{}, &expv1.AWSFargateProfile{}},
		"v1alpha4/AWSFargateProfile":           {&expv1alpha4.AWSFargateProfile{}, &expv1.AWSFargateProfile{}},
		"v1alpha3/EKSConfig":                   {&eksbootstrapv1alpha3.EKSConfig{}, &eksbootstrapv1.EKSConfig{}},
		"v1alpha4/EKSConfig":                   {&eksbootstrapv1alpha4.EKSConfig{}, &eksbootstrapv1.EKSConfig{}},
		"v1alpha3/EKSConfigTemplate":           {&eksbootstrapv1alpha3.EKSConfigTemplate{}, &eksbootstrapv1.EKSConfigTemplate{}},
		"v1alpha4/EKSConfigTemplate":           {&eksbootstrapv1alpha4.EKSConfigTemplate{}, &eksbootstrapv1.EKSConfigTemplate{}},
		"v1alpha3/ClusterResourceSet":          {&addonsv1alpha3.ClusterResourceSet{}, &addonsv1.ClusterResourceSet{}},
		"v1alpha4/ClusterResourceSet":          {&addonsv1alpha4.ClusterResourceSet{}, &addonsv1.ClusterResourceSet{}},
		"v1alpha4/ClusterClass":                {&clusterv1alpha4.ClusterClass{}, &clusterv1.ClusterClass{}},
		"v1alpha4/AWSClusterTemplate":          {&infrav1alpha4.AWSClusterTemplate{}, &infrav1.AWSClusterTemplate{}},
		"v1alpha4/KubeadmControlPlaneTemplate": {&planev1alpha4.KubeadmControlPlaneTemplate{}, &planev1.KubeadmControlPlaneTemplate{}},
		"v1alpha3/AWSManagedControlPlane":      {&eksv1alpha3.AWSManagedControlPlane{}, &eksv1.AWSManagedControlPlane{}},
		"v1alpha4/AWSManagedControlPlane":      {&eksv1alpha4.AWSManagedControlPlane{}, &eksv1.AWSManagedControlPlane{}},
	}
}

func main() {
	in, out := bufio.NewScanner(os.Stdin), json.NewEncoder(os.Stdout)
	in.Buffer(nil, 1<<20)
	for in.Scan() {
		result, err := convert(in.Bytes())
		if err != nil {
			result = map[string]string{"error": err.Error()}
		}
		if err := out.Encode(result); err != nil {
			os.Exit(1)
		}
	}
}

func convert(raw []byte) (any, error) {
	var head struct{ APIVersion, Kind string }
	if err := json.Unmarshal(raw, &head); err != nil {
		return nil, err
	}
	_, version, _ := strings.Cut(head.APIVersion, "/")
	p, ok := pairs()[version+"/"+head.Kind]
	if !ok {
		return nil, fmt.Errorf("%s of %s is not known", head.Kind, version)
	}
	if err := json.Unmarshal(raw, p.older); err != nil {
		return nil, err
	}
	return p.newest, p.older.ConvertTo(p.newest)
}
