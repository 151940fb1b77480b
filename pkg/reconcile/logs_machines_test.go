package reconcile_test

import (
	"strings"
	"testing"
	"time"

	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/pkg/reconcile"
)

// reachable gives roles of machines the permissions that Systems Manager needs.
func reachable(a *awssim.AWS, roles ...string) {
	a.Edit(func(s *awssim.State) {
		for _, name := range roles {
			r := s.IAM.Roles[name+".cluster-api-provider-aws.sigs.k8s.io"]
			r.Attached = append(r.Attached, "arn:aws:iam::aws:policy/AmazonSSMManagedInstanceCore")
		}
	})
}

// Logs of machines are read where the caller may do that. If not, the others are still there,
// and it is said why. Nothing legible stays in Systems Manager.
func TestLogsOfMachines(t *testing.T) {
	eachOf(t, []string{"../../configs/quickstart.yaml"}, awssim.Options{}, func(t *testing.T, a *awssim.AWS, m *manifest.Cluster) {
		mustApply(t, m, a)
		reachable(a, "control-plane", "nodes")
		time.Sleep(6 * time.Minute) // until all machines have joined
		logs := func(denied string) (folders map[string]int, missing string) {
			p := a.Process()
			p.Fault = func(_ int, _, op string) awssim.Fault {
				if op == denied {
					return awssim.Denied
				}
				return awssim.None
			}
			l, err := reconcile.OpenModel(m, cluster.Target{Config: p.Config(), Owner: "test"}).Logs(t.Context())
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
		requireSealed(t, a)
		for _, op := range []string{"DescribeInstanceInformation", "SendCommand", "GetCommandInvocation"} {
			folders, missing := logs(op)
			assert.Equal(t, map[string]int{"console": folders["console"]}, folders, op)
			assert.Contains(t, missing, "you lack one of ssm:DescribeInstanceInformation, ssm:SendCommand", op)
		}
	})
}
