package topology_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"clusterawsadm/pkg/reconcile/topology"
)

// What cannot be built yet is refused, and not left out.
func TestUnsupported(t *testing.T) {
	for _, name := range []string{"eks-machines", "machine-pool", "flatcar-pool"} {
		file := "../../../configs/next/" + name + ".yaml"
		raw, err := os.ReadFile(file)
		require.NoError(t, err)
		m := load(t, filepath.Base(file), string(raw))
		_, err = topology.Build(m, inventory(m))
		require.ErrorAs(t, err, new(*topology.UnsupportedError), file)
		assert.Regexp(t, `^[a-z0-9-]+\.yaml:\d+ (MachineDeployment|MachinePool)/[a-z0-9-]+: (machines of EKS clusters that are in no node group|machine pools) are not supported yet$`, err.Error())
	}
}
