package loader_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest/loader"
	"github.com/clusterawsadm/clusterawsadm/internal/enginetest/manifests"
	"github.com/clusterawsadm/clusterawsadm/pkg/input"
)

// A MachineDeployment has another name than the control plane: their machines are told apart by it.
func TestGroupsHaveDifferentNames(t *testing.T) {
	text := strings.Replace(
		manifests.Read(t, "../../../../configs/quickstart.yaml"),
		"kind: MachineDeployment\nmetadata:\n  name: quickstart-md-0",
		"kind: MachineDeployment\nmetadata:\n  name: quickstart-control-plane",
		1,
	)
	_, err := loader.Load([]input.Source{{Name: "demo.yaml", Data: []byte(text)}}, input.LoadOptions{})
	require.ErrorContains(t, err, "MachineDeployment/quickstart-control-plane metadata.name: quickstart-control-plane is also the name of the KubeadmControlPlane")
}
