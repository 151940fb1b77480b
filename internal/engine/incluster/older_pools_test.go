package incluster_test

import (
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest/loader"
	"github.com/clusterawsadm/clusterawsadm/internal/enginetest"
	"github.com/clusterawsadm/clusterawsadm/pkg/input"
)

// notOlder removes the fields and values of the examples that v1beta1 does not have.
var notOlder = []string{
	"    instanceMetadataOptions:\n      httpTokens: required\n      httpPutResponseHopLimit: 2\n    rootVolume:",
	"    rootVolume:",
	"      spotAllocationStrategy: price-capacity-optimized\n",
	"",
	"  suspendProcesses: # do not terminate machines to balance zones\n    processes:\n      azRebalance: true\n",
	"",
	"  lifecycleHooks:\n  - name: drain\n    lifecycleTransition: autoscaling:EC2_INSTANCE_TERMINATING\n    heartbeatTimeout: 2m\n    defaultResult: CONTINUE\n",
	"",
}

// Pools, node groups and Fargate profiles of v1beta1 are the same cluster as those of v1beta2.
func TestPoolsOfAnOlderVersion(t *testing.T) {
	for kind, file := range map[string]string{"AWSMachinePool": enginetest.MachinePool, "AWSManagedMachinePool": "eks.yaml", "AWSFargateProfile": "eks-fargate.yaml"} {
		t.Run(kind, func(t *testing.T) {
			raw, err := enginetest.Read(file)
			require.NoError(t, err)
			text := strings.NewReplacer(notOlder...).Replace(string(raw))
			const group = "apiVersion: infrastructure.cluster.x-k8s.io/"
			old := strings.ReplaceAll(text, group+"v1beta2\nkind: "+kind+"\n", group+"v1beta1\nkind: "+kind+"\n")
			require.NotEqual(t, text, old)
			read := func(text string) *manifest.Cluster {
				m, err := loader.Load([]input.Source{{Name: filepath.Base(file), Data: []byte(text)}}, input.LoadOptions{})
				require.NoError(t, err)
				return m
			}
			older, m := read(old), read(text)
			synctest.Test(t, func(t *testing.T) {
				a := enginetest.Prepared(t, older)
				before := a.Inventory()
				enginetest.MustApply(t, older, a)
				enginetest.RequireNoChange(t, m, a)
				enginetest.RequireNoChange(t, older, a)
				enginetest.MustDelete(t, older, a)
				require.Equal(t, before, a.Inventory())
			})
		})
	}
}
