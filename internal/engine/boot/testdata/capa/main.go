// Command witness renders user data for EKS with the code of CAPA, as its controllers do.
// TestCAPARendersTheSame runs it with a copy of CAPA's package.
package main

import (
	"encoding/json"
	"log"
	"os"

	eksbootstrapv1 "sigs.k8s.io/cluster-api-provider-aws/v2/bootstrap/eks/api/v1beta2"

	"witness/userdata"
)

func main() {
	var in struct {
		Name, Endpoint, CA, CIDR string
		Cases                    []struct {
			Config  *eksbootstrapv1.EKSConfigSpec
			Nodeadm *eksbootstrapv1.NodeadmConfigSpec
		}
	}
	if err := json.NewDecoder(os.Stdin).Decode(&in); err != nil {
		log.Fatal(err)
	}
	texts := []string{}
	for _, c := range in.Cases {
		var out []byte
		var err error
		if c.Nodeadm != nil {
			out, err = userdata.NewNodeadmUserdata(nodeadm(*c.Nodeadm, in.Name, in.Endpoint, in.CA, in.CIDR))
		} else {
			out, err = userdata.NewNode(config(*c.Config, in.Name))
		}
		if err != nil {
			log.Fatal(err)
		}
		texts = append(texts, string(out))
	}
	if err := json.NewEncoder(os.Stdout).Encode(texts); err != nil {
		log.Fatal(err)
	}
}

// config is the input that the controller of EKSConfigs makes (joinWorker in
// bootstrap/eks/controllers/eksconfig_controller.go).
func config(s eksbootstrapv1.EKSConfigSpec, cluster string) *userdata.NodeInput {
	in := &userdata.NodeInput{
		ClusterName: cluster, KubeletExtraArgs: s.KubeletExtraArgs, ContainerRuntime: s.ContainerRuntime, DNSClusterIP: s.DNSClusterIP,
		DockerConfigJSON: s.DockerConfigJSON, APIRetryAttempts: s.APIRetryAttempts, UseMaxPods: s.UseMaxPods,
		PreBootstrapCommands: s.PreBootstrapCommands, PostBootstrapCommands: s.PostBootstrapCommands, BootstrapCommandOverride: s.BootstrapCommandOverride,
		Files: s.Files, DiskSetup: s.DiskSetup, Mounts: s.Mounts, Users: s.Users, NTP: s.NTP,
	}
	if p := s.PauseContainer; p != nil {
		in.PauseContainerAccount, in.PauseContainerVersion = &p.AccountNumber, &p.Version
	}
	if c := s.ServiceIPV6Cidr; c != nil && *c != "" {
		family := "ipv6"
		in.ServiceIPV6Cidr, in.IPFamily = c, &family
	}
	return in
}

// nodeadm is the input that the controller of NodeadmConfigs makes (joinWorker in
// bootstrap/eks/controllers/nodeadmconfig_controller.go).
func nodeadm(s eksbootstrapv1.NodeadmConfigSpec, cluster, endpoint, ca, cidr string) *userdata.NodeadmInput {
	in := &userdata.NodeadmInput{
		ClusterName: cluster, APIServerEndpoint: endpoint, CACert: ca, ServiceCIDR: cidr,
		PreNodeadmCommands: s.PreNodeadmCommands, Files: s.Files, DiskSetup: s.DiskSetup, Mounts: s.Mounts, Users: s.Users, NTP: s.NTP,
		FeatureGates: s.FeatureGates,
	}
	if k := s.Kubelet; k != nil {
		in.KubeletFlags, in.KubeletConfig = k.Flags, k.Config
	}
	if in.Files == nil {
		in.Files = []eksbootstrapv1.File{} // as the controller's FileResolver
	}
	if c := s.Containerd; c != nil {
		in.ContainerdConfig, in.ContainerdBaseRuntimeSpec = c.Config, c.BaseRuntimeSpec
	}
	return in
}
