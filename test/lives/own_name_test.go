package lives_test

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/adopt"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/look"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest/loader"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/run"
	"github.com/clusterawsadm/clusterawsadm/internal/enginetest"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
	"github.com/clusterawsadm/clusterawsadm/pkg/input"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// A manifest may give the API server a name of the user's, for which alone its certificates are valid. All commands use it, also those that have the
// name of the cluster only; an import writes it into the manifest, and Cluster API gets it together with the name of the load balancer.
func TestOwnNameOfTheAPIServer(t *testing.T) {
	const host = "api.example.com"
	for where, name := range map[string]func(m *manifest.Cluster) (*string, *int32){
		"Cluster": func(m *manifest.Cluster) (*string, *int32) {
			return &m.Object.Spec.ControlPlaneEndpoint.Host, &m.Object.Spec.ControlPlaneEndpoint.Port
		},
		"AWSCluster": func(m *manifest.Cluster) (*string, *int32) {
			return &m.Infra.Spec.ControlPlaneEndpoint.Host, &m.Infra.Spec.ControlPlaneEndpoint.Port
		},
	} {
		t.Run(where, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := enginetest.Load(t, "quickstart.yaml", nil)
				h, port := name(m)
				*h, *port = host, 6443
				a := enginetest.Account(m, enginetest.Lag)
				told := enginetest.Told(t, m, a)
				assert.Contains(t, told[0], where+"/quickstart spec.controlPlaneEndpoint.host: no run makes api.example.com lead to the load balancer")
				_, err := enginetest.Waiting(m, a.Process(), plan.APIServer).Apply(t.Context(), cluster.Options{})
				require.NoError(t, err)
				assert.NotContains(t, enginetest.Told(t, m, a), told[0], "the first machine has booted")

				p := a.Process()
				named := run.OpenByName("quickstart", cluster.Target{Config: p.Config(), Transport: enginetest.Transport(p), Owner: "test"})
				config, err := look.Kubeconfig(t.Context(), named, cluster.KubeconfigOptions{})
				require.NoError(t, err)
				assert.Contains(t, string(config), "https://api.example.com:6443")
				status, err := look.Status(t.Context(), named)
				require.NoError(t, err)
				assert.Equal(t, host+":6443", status.Endpoint)
				require.NoError(t, look.AwaitCondition(t.Context(), named, cluster.ConditionAPI, nil))

				target := cluster.Target{Config: p.Config(), Transport: enginetest.Transport(p), Owner: "test"}
				i, err := adopt.Import(t.Context(), "quickstart", target, cluster.ImportOptions{})
				require.NoError(t, err)
				assert.Empty(t, i.Differences)
				again, err := loader.Load([]input.Source{{Name: "imported.yaml", Data: i.Manifest}}, input.LoadOptions{})
				require.NoError(t, err)
				imported, err := run.Open(again, target).Plan(t.Context())
				require.NoError(t, err)
				assert.True(t, imported.Empty(), "%v", imported.Steps)

				requireBothNames(t, m, a, host)
			})
		})
	}
}

// requireBothNames requires that a management cluster gets the name of the manifest in the Cluster, and that of the load balancer in the AWSCluster.
func requireBothNames(t *testing.T, m *manifest.Cluster, a *awssim.AWS, host string) {
	t.Helper()
	objects, err := adopt.Objects(t.Context(), enginetest.Open(m, a.Process()))
	require.NoError(t, err)
	hosts := map[string]string{}
	for _, o := range objects.Items {
		kind, _ := o.Content["kind"].(string)
		hosts[kind], _, err = unstructured.NestedString(o.Content, "spec", "controlPlaneEndpoint", "host")
		require.NoError(t, err)
	}
	assert.Equal(t, host, hosts["Cluster"])
	assert.Regexp(t, `^default-quickstart-apiserver-.*\.elb\.us-east-1\.amazonaws\.com$`, hosts["AWSCluster"])
}

// The name of a load balancer that does not exist, such as that of an earlier cluster in a manifest that was read from a management cluster, is refused
// before the first write. So is a machine that gets it.
func TestNameOfALoadBalancerThatIsGone(t *testing.T) {
	for _, gone := range []string{"default-quickstart-apiserver-0123456789abcdef.elb.us-east-1.amazonaws.com", "quickstart-apiserver-1234567890.us-east-1.elb.amazonaws.com"} {
		synctest.Test(t, func(t *testing.T) {
			m := enginetest.Load(t, "quickstart.yaml", nil)
			m.Object.Spec.ControlPlaneEndpoint.Host, m.Object.Spec.ControlPlaneEndpoint.Port = gone, 6443
			a := enginetest.Account(m, 0)
			before := a.Detailed()
			_, err := enginetest.Open(m, a.Process()).Apply(t.Context(), cluster.Options{})
			require.ErrorAs(t, err, new(*plan.RefusedError))
			require.ErrorContains(t, err, "Cluster/quickstart spec.controlPlaneEndpoint.host: no load balancer has the name "+gone)
			assert.Equal(t, before, a.Detailed())
		})
	}
}
