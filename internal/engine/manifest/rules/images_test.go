package rules_test

import (
	"strings"
	"testing"

	"github.com/clusterawsadm/clusterawsadm/internal/enginetest/manifests"
	"github.com/clusterawsadm/clusterawsadm/pkg/input"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// An image that is looked up by its name reads either cloud-init or Ignition, and only images for EKS have nodeadm.
func TestImagesAndBootData(t *testing.T) {
	const (
		quick                     = "quickstart"
		planes                    = "      iamInstanceProfile: control-plane.cluster-api-provider-aws.sigs.k8s.io\n"
		workers                   = "      iamInstanceProfile: nodes.cluster-api-provider-aws.sigs.k8s.io\n"
		region                    = "  region: us-east-1\n"
		flatcar                   = "      imageLookupBaseOS: flatcar-stable\n"
		commands, format, nodeadm = "images of flatcar-stable run no commands of cloud-init, so that kubeadm does not run",
			"have cloud-init, which does not read Ignition", "have no nodeadm, which NodeadmConfig uses"
	)
	for _, tt := range []struct {
		name, file string
		edit       []string
		problem    string
		warning    string
	}{
		{"workers", quick, []string{workers, workers + flatcar}, commands, ""},
		{"control plane", quick, []string{planes, planes + flatcar}, commands, ""},
		{"pool", "machine-pool", []string{"    instanceType: m6i.large\n", "    instanceType: m6i.large\n    imageLookupBaseOS: flatcar-stable\n"}, commands, ""},
		{"an image with an ID", quick, []string{workers, workers + flatcar + "      ami: {id: ami-0123456789abcdef0}\n"}, "", ""},
		{"a format without the base OS", quick, []string{workers, workers + flatcar + "      imageLookupFormat: 'kubernetes-{{.K8sVersion}}'\n"}, "", ""},
		{"a format with a name", quick, []string{workers, workers + "      imageLookupFormat: 'flatcar-{{.K8sVersion}}'\n"}, "", "run no commands of cloud-init"},
		{"Ignition", "flatcar", []string{flatcar, "      imageLookupBaseOS: ubuntu-24.04\n"}, "images of ubuntu-24.04 " + format, ""},
		{"Ignition by default", "flatcar", []string{flatcar, ""}, "images of ubuntu-24.04 " + format, ""},
		{"nodes of EKS", "eks-machines", []string{"      ami:\n        eksLookupType: AmazonLinux2023\n", "      imageLookupBaseOS: ubuntu-24.04\n"}, nodeadm, ""},
		{"nodes of EKS, for all", "eks-machines", []string{region, region + "  imageLookupBaseOS: ubuntu-24.04\n"}, nodeadm, ""},
		{"nodes of EKS with images of their own", "eks-machines", []string{"      ami:\n        eksLookupType: AmazonLinux2023\n", "      imageLookupOrg: '123456789012'\n"}, "", "have no nodeadm, unless you have added it"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			text := manifests.Edit(t, manifests.Read(t, "../../../../configs/"+tt.file+".yaml"), tt.edit...)
			c, err := manifests.Load(t, text, input.LoadOptions{})
			if tt.problem != "" {
				require.ErrorContains(t, err, tt.problem)
				return
			}
			require.NoError(t, err)
			assert.Contains(t, strings.Join(manifests.Warnings(c), "\n"), tt.warning)
		})
	}
}
