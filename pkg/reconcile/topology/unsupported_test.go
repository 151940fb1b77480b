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
	files, err := filepath.Glob("../../../configs/next/*.yaml")
	require.NoError(t, err)
	for _, file := range files {
		raw, err := os.ReadFile(file)
		require.NoError(t, err)
		m := load(t, filepath.Base(file), string(raw))
		_, err = topology.Build(m, inventory(m))
		require.ErrorAs(t, err, new(*topology.UnsupportedError), file)
		assert.Regexp(t, `^[a-z0-9-]+\.yaml:\d+ (AWSManagedControlPlane|MachinePool)/[a-z0-9-]+: (clusters of EKS|machine pools) are not supported yet$`, err.Error())
	}
}
