package discover

import (
	"encoding/json"
	"strings"

	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/boot"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/topology"
)

// usualBoot returns the bootstrap configuration of CAPA's templates, with the
// ClusterConfiguration in the cluster, and the labels and taints that all Nodes of the group have.
// Groups of which nothing else is known have it.
func (s *SelfManaged) usualBoot(g *machineGroup) bootstrapv1.KubeadmConfigSpec {
	spec := s.plainBoot(g)
	g.marks.register(&spec.JoinConfiguration.NodeRegistration, g.controlPlane)
	if g.controlPlane {
		spec.InitConfiguration.NodeRegistration = spec.JoinConfiguration.NodeRegistration
	}
	return spec
}

// plainBoot returns the bootstrap configuration of CAPA's templates, with the
// ClusterConfiguration in the cluster.
func (s *SelfManaged) plainBoot(g *machineGroup) (spec bootstrapv1.KubeadmConfigSpec) {
	spec.JoinConfiguration.NodeRegistration = registration(hostName)
	if g.controlPlane {
		spec.InitConfiguration.NodeRegistration = registration(hostName)
		spec.ClusterConfiguration = s.clusterConfiguration()
	}
	return spec
}

// clusterConfiguration returns the ClusterConfiguration in the cluster, or, if it has not been
// read, that of CAPA's templates.
func (s *SelfManaged) clusterConfiguration() (c bootstrapv1.ClusterConfiguration) {
	if s.Config != nil {
		return s.Config.Given()
	}
	c.ControllerManager.ExtraArgs = arguments("cloud-provider", "external")
	return c
}

// Names of Nodes, as the images of CAPA find them out.
const (
	hostName        = "{{ ds.meta_data.local_hostname }}"
	flatcarHostName = "${COREOS_EC2_HOSTNAME}"
)

func registration(name string) bootstrapv1.NodeRegistrationOptions {
	return bootstrapv1.NodeRegistrationOptions{Name: name, KubeletExtraArgs: arguments("cloud-provider", "external")}
}

// arguments returns arguments of a component: names and values.
func arguments(words ...string) (out []bootstrapv1.Arg) {
	for i := 0; i+1 < len(words); i += 2 {
		out = append(out, bootstrapv1.Arg{Name: words[i], Value: &words[i+1]})
	}
	return out
}

// bootCandidates returns the values that the fields of a bootstrap configuration may have: what
// is stored in the cluster, and what is usual.
func (s *SelfManaged) bootCandidates(g *machineGroup) map[string][]string {
	out := map[string][]string{}
	if s.plane != nil {
		return out // that of EKS is not put together from fields
	}
	add := func(spec bootstrapv1.KubeadmConfigSpec) {
		for name, value := range topology.BootFields(&spec) {
			out[name] = append(out[name], value)
		}
	}
	add(s.plainBoot(g))
	if b := s.booted(g); b != nil {
		for _, spec := range versionsOfBooted(b) {
			add(spec)
		}
	}
	for _, name := range []string{flatcarHostName, "{{ v1.local_hostname }}"} {
		add(bootstrapv1.KubeadmConfigSpec{JoinConfiguration: bootstrapv1.JoinConfiguration{NodeRegistration: registration(name)}})
	}
	kubelet := [][]bootstrapv1.Arg{
		arguments("cloud-provider", "external"), arguments("cloud-provider", "external", "node-ip", "::"), arguments("cloud-provider", "aws"),
		arguments("node-ip", "::"), arguments("node-ip", "::", "cloud-provider", "external"), nil,
	}
	for _, args := range kubelet {
		add(
			bootstrapv1.KubeadmConfigSpec{
				JoinConfiguration: bootstrapv1.JoinConfiguration{NodeRegistration: bootstrapv1.NodeRegistrationOptions{KubeletExtraArgs: args}},
			},
		)
	}
	add(bootstrapv1.KubeadmConfigSpec{JoinConfiguration: bootstrapv1.JoinConfiguration{ControlPlane: ipv6Address()}})
	for _, r := range g.marks.registrations(kubelet) {
		add(bootstrapv1.KubeadmConfigSpec{JoinConfiguration: bootstrapv1.JoinConfiguration{NodeRegistration: r}})
	}
	for _, algorithm := range []bootstrapv1.EncryptionAlgorithmType{
		bootstrapv1.EncryptionAlgorithmRSA2048, bootstrapv1.EncryptionAlgorithmRSA3072, bootstrapv1.EncryptionAlgorithmRSA4096,
		bootstrapv1.EncryptionAlgorithmECDSAP256, bootstrapv1.EncryptionAlgorithmECDSAP384,
	} {
		add(bootstrapv1.KubeadmConfigSpec{ClusterConfiguration: bootstrapv1.ClusterConfiguration{EncryptionAlgorithm: algorithm}})
	}
	add(bootstrapv1.KubeadmConfigSpec{Format: bootstrapv1.Ignition})
	add(bootstrapv1.KubeadmConfigSpec{Format: bootstrapv1.CloudConfig})
	return out
}

// completeInit sets the node registration of kubeadm init, which only the first machine of a
// control plane uses, to that of kubeadm join, if it has no name.
func completeInit(spec *bootstrapv1.KubeadmConfigSpec) {
	if spec.InitConfiguration.NodeRegistration.Name == "" {
		spec.InitConfiguration.NodeRegistration = spec.JoinConfiguration.NodeRegistration
	}
}

// completeAddresses sets the addresses of API servers in a cluster whose Services have IPv6
// addresses first: they need IPv6 addresses, too.
func (s *SelfManaged) completeAddresses(spec *bootstrapv1.KubeadmConfigSpec) {
	_, services, _ := s.networks()
	if first, _, _ := strings.Cut(
		services,
		",",
	); !strings.Contains(first, ":") ||
		boot.Argument(spec.ClusterConfiguration.APIServer.ExtraArgs, "advertise-address") != "" {
		return
	}
	if spec.JoinConfiguration.ControlPlane == nil {
		spec.JoinConfiguration.ControlPlane = ipv6Address()
	}
	if first := &spec.InitConfiguration.LocalAPIEndpoint; first.AdvertiseAddress == "" {
		*first = spec.JoinConfiguration.ControlPlane.LocalAPIEndpoint
	}
}

// ipv6Address lets kubeadm choose an IPv6 address for the API server.
func ipv6Address() *bootstrapv1.JoinControlPlane {
	return &bootstrapv1.JoinControlPlane{LocalAPIEndpoint: bootstrapv1.APIEndpoint{AdvertiseAddress: "::"}}
}

// tree converts an object to maps, without what is not set.
func tree(object any) map[string]any {
	text, err := json.Marshal(object)
	if err != nil {
		return nil // these types can always be encoded
	}
	var out map[string]any
	if json.Unmarshal(text, &out) != nil {
		return nil
	}
	prune(out)
	return out
}

func prune(in map[string]any) {
	for k, v := range in {
		if below, ok := v.(map[string]any); ok && k != "spotMarketOptions" {
			prune(below)
			if len(below) == 0 {
				delete(in, k)
			}
		}
		if v == nil {
			delete(in, k)
		}
	}
}
