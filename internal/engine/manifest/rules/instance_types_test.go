package rules_test

import (
	"testing"

	"github.com/clusterawsadm/clusterawsadm/internal/enginetest/manifests"
	"github.com/clusterawsadm/clusterawsadm/pkg/input"

	"github.com/stretchr/testify/require"
)

// Types of the first generations launch no image of Kubernetes, wherever the manifest names one.
func TestTypesWithoutHVM(t *testing.T) {
	for file, edit := range map[string][]string{
		"quickstart.yaml":   {"      instanceType: t3.large\n      iamInstanceProfile: nodes", "      instanceType: m1.large\n      iamInstanceProfile: nodes"},
		"machine-pool.yaml": {"instanceType: t3.large\n", "instanceType: t1.micro\n"},
		"node-groups.yaml":  {"instanceType: ", "instanceType: c1.xlarge # "},
		"bastion.yaml":      {"    enabled: true\n", "    enabled: true\n    instanceType: m1.small\n"},
	} {
		t.Run(file, func(t *testing.T) {
			yaml := manifests.Edit(t, manifests.Read(t, "../../../../configs/"+file), edit...)
			_, err := manifests.Load(t, yaml, input.LoadOptions{Lookup: manifests.Lookup(manifests.Environment())})
			require.ErrorContains(t, err, "launches no image with hardware virtualization")
			require.ErrorContains(t, err, "nstanceType:")
		})
	}
}
