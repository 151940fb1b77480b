package incluster_test

import (
	"errors"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/enginetest"
	"github.com/clusterawsadm/clusterawsadm/internal/kubesim"
	"github.com/clusterawsadm/clusterawsadm/internal/kubesim/helmsim"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// Nodes that do not become ready because pods of add-ons do not run: the error says why, and names the image.
func TestTroublesOfAddons(t *testing.T) {
	for how, want := range map[string][]string{
		kubesim.Unpullable: {
			"1. DaemonSet kube-flannel/flannel cannot pull the image ghcr.io/flannel-io/flannel:v0.27.4 (ImagePullBackOff): check its name, and that machines reach its registry: " +
				"failed to pull and unpack image \"ghcr.io/flannel-io/flannel:v0.27.4\": not found (2 pods)",
		},
		kubesim.Crashing: {
			"1. container config of DaemonSet kube-flannel/flannel ends again and again (CrashLoopBackOff, 5 restarts, Error with exit code 1): " +
				"kubectl logs -n kube-flannel daemonset/flannel -c config --previous (2 pods)",
		},
	} {
		t.Run(how, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := enginetest.LoadQuick(t, addonsExample)
				a := enginetest.Account(m, enginetest.Lag)
				_, err := enginetest.Waiting(m, a.Process(), plan.APIServer).Apply(t.Context(), cluster.Options{})
				require.NoError(t, err)
				enginetest.Inside(a, func(c *kubesim.Cluster) { c.Broken = map[string]string{"ghcr.io/flannel-io/flannel:v0.27.4": how} })
				_, err = enginetest.Waiting(m, a.Process(), plan.NodesReady).Apply(t.Context(), cluster.Options{})
				require.Error(t, err)
				for _, w := range want {
					assert.Contains(t, findingsOf(err), w)
				}
				enginetest.Inside(a, func(c *kubesim.Cluster) { c.Broken = nil })
				_, err = enginetest.Waiting(m, a.Process(), plan.NodesReady).Apply(t.Context(), cluster.Options{})
				require.NoError(t, err)
			})
		})
	}
}

// findingsOf numbers the findings of a timeout.
func findingsOf(err error) (text string) {
	var timeout *plan.TimeoutError
	if errors.As(err, &timeout) {
		for i, f := range timeout.Findings {
			text += string(rune('1'+i)) + ". " + f + "\n"
		}
	}
	return text
}

// What helm says when it has waited for too long is followed by why pods of the namespace do not run.
func TestTroublesOfCharts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := charted(t)
		a := enginetest.Account(m, enginetest.Lag)
		late := func(args []string) error {
			if !slices.Contains(args, "web") {
				return nil
			}
			enginetest.Inside(a, func(c *kubesim.Cluster) {
				for name, status := range map[string]kubesim.Object{
					"web-5d4f8c7b9d-00000": {"phase": "Pending", "conditions": []any{kubesim.Object{
						"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/2 nodes are available: 2 Insufficient cpu.",
					}}},
					"api-5d4f8c7b9d-00000": {"phase": "Pending", "containerStatuses": []any{kubesim.Object{
						"name": "api", "image": "api:1", "state": kubesim.Object{"waiting": kubesim.Object{"reason": "CreateContainerConfigError", "message": "secret \"api\" not found"}},
					}}},
					"fine-5d4f8c7b9d-00000": {"phase": "Running", "containerStatuses": []any{kubesim.Object{"name": "fine", "ready": true, "state": kubesim.Object{"running": kubesim.Object{}}}}},
				} {
					c.Put(c.Up, kubesim.Object{
						"apiVersion": "v1", "kind": "Pod", "status": status, "spec": kubesim.Object{"nodeName": "x"},
						"metadata": kubesim.Object{"name": name, "namespace": "shop", "ownerReferences": []any{kubesim.Object{
							"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": name[:len(name)-6], "controller": true,
						}}},
					})
				}
				for path := range c.Objects {
					if node := c.Get(path); node["kind"] == "Node" {
						name, _ := node["metadata"].(kubesim.Object)["name"].(string)
						for _, pod := range c.All("Pod") {
							if spec, _ := pod["spec"].(kubesim.Object); spec["nodeName"] == "x" {
								spec["nodeName"] = name
							}
						}
					}
				}
			})
			return errors.New("context deadline exceeded")
		}
		err := applied(t, m, a, &helmsim.Helm{Die: late})
		require.ErrorContains(
			t,
			err,
			"helm upgrade: context deadline exceeded. In namespace shop: Deployment shop/web cannot be scheduled: 0/2 nodes are available: 2 Insufficient cpu; "+
				"container api of Deployment shop/api cannot start (CreateContainerConfigError): secret \"api\" not found",
		)
	})
}

// A webhook that does not answer is named with its Service, and why its pods do not run.
func TestTroublesOfWebhooks(t *testing.T) {
	m := withAddon(t, operatorYAML)
	saved := bare(t, m)
	synctest.Test(t, func(t *testing.T) {
		a := restored(t, m, saved)
		enginetest.Inside(a, func(c *kubesim.Cluster) { c.Broken = map[string]string{"example.org/widgets:1": kubesim.Unpullable} })
		_, err := enginetest.Waiting(m, a.Process(), plan.NodesReady).Apply(t.Context(), cluster.Options{})
		require.ErrorContains(t, err, "resource-set/mine.yaml")
		assert.Contains(t, findingsOf(err), "1. the webhook widgets.example.org does not answer: its Service is widgets/widgets: "+
			"Deployment widgets/widgets cannot pull the image example.org/widgets:1 (ImagePullBackOff)")
	})
}
