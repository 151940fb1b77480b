package topology_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	expinfrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/exp/api/v1beta2"

	"clusterawsadm/pkg/reconcile/manifest"
	"clusterawsadm/pkg/reconcile/topology"
)

// What cannot be built yet is refused, and not left out.
func TestUnsupported(t *testing.T) {
	for what, spoil := range map[string]func(*manifest.Pool){
		"launch templates of node groups": func(p *manifest.Pool) {
			p.Managed.Spec.AWSLaunchTemplate = &expinfrav1.AWSLaunchTemplate{}
		},
		"lifecycle hooks of node groups": func(p *manifest.Pool) {
			p.Managed.Spec.AWSLifecycleHooks = []expinfrav1.AWSLifecycleHook{{Name: "drain"}}
		},
	} {
		m := examples(t)["eks"]
		spoil(&m.Pools[0])
		_, err := topology.Build(m, inventory(m), topology.Options{})
		require.ErrorAs(t, err, new(*topology.UnsupportedError))
		assert.Regexp(t, `^eks\.yaml:\d+ AWSManagedMachinePool/[a-z0-9-]+ spec\.[a-zA-Z]+: `+what+` are not supported yet$`, err.Error())
	}
}
