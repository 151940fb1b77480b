package run_test

import (
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	"github.com/clusterawsadm/clusterawsadm/internal/enginetest"
)

// systemd removes quotes from the arguments of a kubelet: a taint and a label with quotes are those without. The machines get the text of the manifest.
func TestQuotedArgumentsOfKubelets(t *testing.T) {
	const kubelet = "          - name: cloud-provider\n            value: external\n"
	m := enginetest.Rewritten(t, enginetest.Quickstart, kubelet,
		kubelet+"          - {name: register-with-taints, value: 'example.com/own=\"\":PreferNoSchedule'}\n          - {name: node-labels, value: 'team=\"red\"'}\n")
	synctest.Test(t, func(t *testing.T) {
		a := enginetest.Prepared(t, m)
		enginetest.MustApply(t, m, a)
		a.Edit(func(s *awssim.State) {
			labelled := 0
			for _, i := range s.EC2.Instances {
				if i.Boot == nil || i.Boot.Failed != "" || strings.Contains(i.Tags["sigs.k8s.io/cluster-api-provider-aws/role"], "control-plane") {
					continue
				}
				labelled++
				assert.Equal(t, "red", i.Boot.Labels["team"])
				assert.Contains(t, i.Boot.Taints, map[string]any{"key": "example.com/own", "effect": "PreferNoSchedule"})
			}
			require.Positive(t, labelled)
		})
		enginetest.RequireNoChange(t, m, a)
	})
}
