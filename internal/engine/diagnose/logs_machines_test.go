package diagnose_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/look"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/run"
	"github.com/clusterawsadm/clusterawsadm/internal/enginetest"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
)

// Logs of machines are read where the caller may do that. If not, the others are still there,
// and it is said why. Nothing legible stays in Systems Manager.
func TestLogsOfMachines(t *testing.T) {
	enginetest.EachOf(t, []string{"quickstart.yaml"}, awssim.Options{}, func(t *testing.T, a *awssim.AWS, m *manifest.Cluster) {
		enginetest.MustApply(t, m, a)
		enginetest.Reachable(a, "control-plane", "nodes")
		time.Sleep(6 * time.Minute) // until all machines have joined
		logs := func(denied string) (folders map[string]int, missing string) {
			p := a.Process()
			p.Fault = func(_ int, _, op string) awssim.Fault {
				if op == denied {
					return awssim.Denied
				}
				return awssim.None
			}
			l, err := look.Logs(t.Context(), run.Open(m, cluster.Target{Config: p.Config(), Owner: "test"}))
			require.NoError(t, err)
			folders = map[string]int{}
			for _, f := range l.Files {
				folder, _, _ := strings.Cut(f.Name, "/")
				folders[folder]++
			}
			return folders, strings.Join(l.Missing, "\n")
		}
		folders, missing := logs("")
		assert.NotContains(t, missing, "kubelet")
		assert.Equal(t, map[string]int{"console": folders["console"], "kubelet": folders["console"], "cloud-init": folders["console"]}, folders)
		enginetest.RequireSealed(t, a)
		for _, op := range []string{"DescribeInstanceInformation", "SendCommand", "GetCommandInvocation"} {
			folders, missing := logs(op)
			assert.Equal(t, map[string]int{"console": folders["console"]}, folders, op)
			assert.Contains(t, missing, "you lack one of ssm:DescribeInstanceInformation, ssm:SendCommand", op)
		}
	})
}
