package components_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/components"
)

func TestRows(t *testing.T) {
	cloud := components.Flag(components.APIServer, "cloud-provider")
	for minor, want := range map[uint64]bool{26: false, 27: true, 32: true, 33: false, 37: false, 38: false} {
		_, has := cloud.In(minor)
		assert.Equal(t, want, has, minor)
	}
	at, removed := cloud.Removed(35)
	assert.True(t, removed)
	assert.EqualValues(t, 33, at)
	at, added := components.Gate(components.Kubeadm, "NodeLocalCRISocket").Added(30)
	assert.True(t, added)
	assert.EqualValues(t, 32, at)
	mark, has := components.Gate(components.Kubelet, "SidecarContainers").In(34)
	assert.True(t, has)
	assert.Equal(t, "t", string(mark))
	mark, _ = components.Flag(components.Kubelet, "max_pods").In(34)
	assert.Equal(t, "i", string(mark))
	for _, none := range []components.Row{components.Flag(components.Kubelet, "nonsense"), components.Admission("PodSecurityPolicy"), components.CloudProvider("aws"), components.Flag(components.Kubelet, "")} {
		_, has := none.In(34)
		assert.False(t, has)
	}
}

// The table has every flag that a component shows in its help.
func TestBuiltComponents(t *testing.T) {
	for _, name := range []string{components.APIServer, components.ControllerManager, components.Scheduler, components.Kubelet} {
		t.Run(name, func(t *testing.T) {
			program := filepath.Join("../../../.cache/kubernetes", name+"-v1.34.2")
			if _, err := os.Stat(program); err != nil {
				t.Skip("it is not built: make lab builds it")
			}
			help, err := exec.CommandContext(t.Context(), program, "--help").Output()
			require.NoError(t, err)
			found := regexp.MustCompile(`(?m)^ +(?:-., )?--([a-z0-9.-]+)`).FindAllSubmatch(help, -1)
			require.NotEmpty(t, found)
			for _, m := range found {
				if flag := string(m[1]); flag != "help" && flag != "version" {
					_, has := components.Flag(name, flag).In(34)
					assert.True(t, has, flag)
				}
			}
		})
	}
}
