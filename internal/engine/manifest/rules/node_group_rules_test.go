package rules_test

import (
	"strings"
	"testing"

	"github.com/clusterawsadm/clusterawsadm/internal/enginetest/manifests"
	"github.com/clusterawsadm/clusterawsadm/pkg/input"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Node groups and load balancers that AWS refuses, or with which no node becomes ready.
func TestNodeGroupsThatDoNotStart(t *testing.T) {
	const (
		root    = "      encrypted: true\n    instanceMetadataOptions:\n"
		plane   = "  version: v1.34\n"
		windows = "  amiType: WINDOWS_CORE_2022_x86_64\n"
		linux   = "  amiType: AL2023_x86_64_STANDARD\n"
		network = "    loadBalancerType: nlb\n"
		coredns = "  addons: [{name: coredns, configuration: '"
	)
	volume := func(device string) []string {
		return []string{root, "      encrypted: true\n    nonRootVolumes: [{deviceName: " + device + ", size: 50}]\n    instanceMetadataOptions:\n"}
	}
	for _, tt := range []struct {
		name, file       string
		edit             []string
		problem, warning string
	}{
		{"root device", "eks-templates", volume("/dev/xvda"), "/dev/xvda is the root volume of the image, which rootVolume sets — use another, such as /dev/sdf", ""},
		{"another device", "eks-templates", volume("/dev/xvdb"), "", ""},
		{"spot in a reservation", "eks-templates", []string{root, root[:strings.Index(root, "    instance")] + "    capacityReservationId: cr-0123456789abcdef0\n    instanceMetadataOptions:\n", linux, linux + "  capacityType: spot\n"}, "spot instances do not run in a capacity reservation", ""},
		{"machine in a reservation", "quickstart", []string{
			"      iamInstanceProfile: nodes.cluster-api-provider-aws.sigs.k8s.io\n",
			"      iamInstanceProfile: nodes.cluster-api-provider-aws.sigs.k8s.io\n      capacityReservationId: cr-0123456789abcdef0\n      spotMarketOptions: {}\n",
		}, "capacityReservationId cannot be set when spotMarketOptions is specified", ""},
		{"Windows in an IPv6 cluster", "eks", []string{plane, plane + "  network: {vpc: {ipv6: {}}}\n", linux, windows}, "nodes with Windows cannot be in an IPv6 cluster", ""},
		{"Windows only", "eks", []string{linux, windows}, "", "all nodes have Windows, and CoreDNS runs on Linux only"},
		{"label that no node has", "eks", []string{plane, plane + coredns + `{"nodeSelector":{"foo":"bar"}}'}]` + "\n"}, "", "no node group has the label that nodeSelector asks for: foo=bar"},
		{"label of Kubernetes", "eks", []string{plane, plane + coredns + `{"nodeSelector":{"kubernetes.io/os":"linux"}}'}]` + "\n"}, "", ""},
		{"label of a node group", "eks", []string{plane, plane + coredns + `{"nodeSelector":{"foo":"bar"}}'}]` + "\n", linux, linux + "  labels: {foo: bar}\n"}, "", ""},
		{"loopback", "quickstart", []string{network, network + "    scheme: internal\n    preserveClientIP: true\n"}, "kubeadm init fails: its machine is the only target of this internal load balancer", ""},
		{"loopback with an entry in hosts", "quickstart", []string{
			network, network + "    scheme: internal\n    preserveClientIP: true\n",
			"  kubeadmConfigSpec:\n", "  kubeadmConfigSpec:\n    preKubeadmCommands: [echo 127.0.0.1 api.example.com >> /etc/hosts]\n",
		}, "", ""},
		{"from the internet", "quickstart", []string{network, network + "    preserveClientIP: true\n"}, "", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			text := manifests.Edit(t, manifests.Read(t, "../../../../configs/"+tt.file+".yaml"), tt.edit...)
			c, err := manifests.Load(t, text, input.LoadOptions{})
			if tt.problem != "" {
				require.ErrorContains(t, err, tt.problem)
				return
			}
			require.NoError(t, err)
			warnings := strings.Join(manifests.Warnings(c), "\n")
			assert.Contains(t, warnings, tt.warning)
			if tt.warning == "" {
				assert.NotContains(t, warnings, "no node group has the label")
			}
		})
	}
}
