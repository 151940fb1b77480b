package incluster_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/internal/enginetest"
	"github.com/clusterawsadm/clusterawsadm/internal/kubesim"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// deploymentYAML is a Deployment whose pods need a worker, unless they tolerate more.
func deploymentYAML(image, more string) string {
	return fmt.Sprintf(`
apiVersion: apps/v1
kind: Deployment
metadata: {name: shop, namespace: default}
spec:
  selector: {matchLabels: {app: shop}}
  template:
    metadata: {labels: {app: shop}}
    spec:
      containers: [{name: shop, image: %q}]
%s`, image, more)
}

// All Nodes are ready, and a pod of an add-on or of kubeadm does not run: a run that waits for ready Nodes ends after ten minutes, and
// says why. When it runs, another run has nothing to do.
func TestWorkloadsOfAddons(t *testing.T) {
	for image, want := range map[string][]string{
		"example.org/shop:1": {
			"workloads/mine.yaml", "gave up after 10m0s waiting for Deployment default/shop",
			"Deployment default/shop cannot pull the image example.org/shop:1 (ImagePullBackOff)",
		},
		"registry.k8s.io/coredns/coredns:v1.12.1": {
			"workloads/kubeadm", "waiting for Deployment kube-system/coredns",
			"Deployment kube-system/coredns cannot pull the image registry.k8s.io/coredns/coredns:v1.12.1 (ImagePullBackOff)",
		},
	} {
		t.Run(image, func(t *testing.T) {
			m := withAddon(t, deploymentYAML("example.org/shop:1", ""))
			synctest.Test(t, func(t *testing.T) {
				a := enginetest.Account(m, enginetest.Lag)
				_, err := enginetest.Waiting(m, a.Process(), plan.APIServer).Apply(t.Context(), cluster.Options{})
				require.NoError(t, err)
				enginetest.Inside(a, func(c *kubesim.Cluster) { c.Broken = map[string]string{image: kubesim.Unpullable} })

				_, err = enginetest.Waiting(m, a.Process(), plan.NodesJoined).Apply(t.Context(), cluster.Options{})
				require.NoError(t, err, "a run that does not wait for ready Nodes does not wait for pods")
				began := time.Now()
				_, err = enginetest.Waiting(m, a.Process(), plan.NodesReady).Apply(t.Context(), cluster.Options{})
				require.Error(t, err)
				for _, w := range want {
					assert.Contains(t, err.Error()+findingsOf(err), w)
				}
				assert.Less(t, time.Since(began), 13*time.Minute)

				enginetest.Inside(a, func(c *kubesim.Cluster) { c.Broken = nil })
				_, err = enginetest.Waiting(m, a.Process(), plan.NodesReady).Apply(t.Context(), cluster.Options{})
				require.NoError(t, err)
				assert.Empty(t, stepsOf(t, m, a))
			})
		})
	}
}

// The API server takes a Deployment and refuses its pods. The run says why; a plan has said so before.
func TestWorkloadsWithRefusedPods(t *testing.T) {
	const strict = "---\napiVersion: v1\nkind: Namespace\nmetadata: {name: strict}\n"
	for _, tt := range []struct{ yaml, want string }{
		{deploymentYAML("a:1", "      serviceAccountName: shop\n"), `error looking up service account default/shop: serviceaccount "shop" not found`},
		{deploymentYAML("a:1", "      priorityClassName: shop\n"), "no PriorityClass with name shop was found"},
		{deploymentYAML("a:1", "      runtimeClassName: shop\n"), `RuntimeClass "shop" not found`},
		{strings.Replace(deploymentYAML("a:1", ""), "default", "strict", 1) + strict, `violates PodSecurity "restricted:v1.34"`},
	} {
		t.Run(tt.want, func(t *testing.T) {
			m := withAddon(t, tt.yaml)
			synctest.Test(t, func(t *testing.T) {
				a := enginetest.Account(m, enginetest.Lag)
				_, err := enginetest.Waiting(m, a.Process(), plan.APIServer).Apply(t.Context(), cluster.Options{})
				require.NoError(t, err)
				enginetest.Inside(a, func(c *kubesim.Cluster) {
					c.Put(time.Now(), kubesim.Object{"apiVersion": "v1", "kind": "Namespace", "metadata": kubesim.Object{
						"name": "strict", "labels": kubesim.Object{"pod-security.kubernetes.io/enforce": "restricted"},
					}})
				})
				_, err = enginetest.Waiting(m, a.Process(), plan.NodesReady).Apply(t.Context(), cluster.Options{})
				require.ErrorContains(t, err, "gave up after 10m0s waiting for Deployment")
				require.ErrorContains(t, err, "the API server refuses its pods: ")
				require.ErrorContains(t, err, tt.want)
			})
		})
	}
}

// Without workers, a run does not wait for pods that the control plane does not take: a scaler may make Nodes for them. It does wait
// for those that tolerate its taint.
func TestWorkloadsWithoutWorkers(t *testing.T) {
	const tolerates = "      tolerations: [{key: node-role.kubernetes.io/control-plane, operator: Exists}]\n"
	for more, waits := range map[string]bool{"": false, tolerates: true} {
		t.Run(fmt.Sprint(waits), func(t *testing.T) {
			m := withAddon(t, deploymentYAML("example.org/shop:1", more))
			m.Deployments = nil
			synctest.Test(t, func(t *testing.T) {
				a := enginetest.Account(m, enginetest.Lag)
				res, err := enginetest.Waiting(m, a.Process(), plan.NodesReady).Apply(t.Context(), cluster.Options{})
				require.NoError(t, err)
				var waited []string
				for _, s := range res.Plan.Steps {
					if s.Resource.Kind() == "workloads" {
						waited = append(waited, string(s.Resource))
					}
				}
				assert.Equal(t, waits, strings.Contains(strings.Join(waited, " "), "workloads/mine.yaml"), "%s", waited)
				assert.Contains(t, waited, "workloads/kubeadm")
			})
		})
	}
}

// kube-proxy may be skipped or replaced: a run does not wait for objects of kubeadm that do not exist.
func TestWorkloadsThatWereReplaced(t *testing.T) {
	m := enginetest.LoadQuick(t, addonsExample)
	synctest.Test(t, func(t *testing.T) {
		a := enginetest.Account(m, enginetest.Lag)
		brought(t, m, a)
		enginetest.Inside(a, func(c *kubesim.Cluster) {
			delete(c.Objects, "/apis/apps/v1/namespaces/kube-system/deployments/coredns")
		})
		assert.Empty(t, stepsOf(t, m, a))
	})
}

// Nodes are initialized and get ready only if they take the pods of the cloud controller manager and of the pod network.
func TestWorkloadsThatNoNodeTakes(t *testing.T) {
	const plane = "node-role.kubernetes.io/control-plane"
	for name, tt := range map[string]struct {
		workload, want string
		edit           func(pod map[string]any)
	}{
		"no such label": {
			"aws-cloud-controller-manager", "waiting for providerID to become set by the cloud controller manager",
			func(pod map[string]any) { pod["nodeSelector"] = map[string]any{plane: "true"} },
		},
		"no toleration of new Nodes": {
			"aws-cloud-controller-manager", "waiting for providerID to become set by the cloud controller manager",
			func(pod map[string]any) {
				pod["tolerations"] = []any{map[string]any{"key": plane, "operator": "Exists"}}
			},
		},
		"no pod network on the control plane": {"flannel", "cni plugin not initialized", func(pod map[string]any) { delete(pod, "tolerations") }},
	} {
		t.Run(name, func(t *testing.T) {
			m := enginetest.Quick(enginetest.Load(t, addonsExample, nil))
			for _, set := range m.ResourceSets {
				for _, d := range set.Documents {
					if pod, is := manifest.ValueAt(d.Object, "spec.template.spec").(map[string]any); is && d.Metadata("name") == tt.workload {
						tt.edit(pod)
					}
				}
			}
			synctest.Test(t, func(t *testing.T) {
				a := enginetest.Account(m, enginetest.Lag)
				_, err := enginetest.Waiting(m, a.Process(), plan.NodesReady).Apply(t.Context(), cluster.Options{})
				require.ErrorContains(t, err, "gave up after 10m0s")
				require.ErrorContains(t, err, tt.want)
			})
		})
	}
}

// flannel exits if its configured network does not contain the pod CIDR blocks of the Nodes.
func TestNetworkOfOtherAddresses(t *testing.T) {
	m := enginetest.Quick(enginetest.Load(t, addonsExample, nil))
	for _, set := range m.ResourceSets {
		for _, d := range set.Documents {
			if data, is := manifest.ValueAt(d.Object, "data").(map[string]any); is && data["net-conf.json"] != nil {
				data["net-conf.json"] = `{"Network": "10.244.0.0/16", "Backend": {"Type": "vxlan"}}`
			}
		}
	}
	synctest.Test(t, func(t *testing.T) {
		a := enginetest.Account(m, enginetest.Lag)
		_, err := enginetest.Waiting(m, a.Process(), plan.NodesReady).Apply(t.Context(), cluster.Options{})
		require.ErrorContains(t, err, "cni plugin not initialized")
	})
}

// The operator of Calico installs nothing if its pool is not within the addresses of pods of the Cluster. The cloud controller manager of a chart
// runs where its values say.
func TestNetworkChartOfOtherAddresses(t *testing.T) {
	for name, tt := range map[string]struct {
		edit func(charts []manifest.Chart)
		want string
	}{
		"pool elsewhere": {func(charts []manifest.Chart) {
			charts[0].Chart, charts[0].Title = "tigera-operator", "tigera-operator"
			charts[0].Values = map[string]any{"installation": map[string]any{"calicoNetwork": map[string]any{"ipPools": []any{map[string]any{"cidr": "172.16.0.0/16"}}}}}
		}, "cni plugin not initialized"},
		"label with a value": {func(charts []manifest.Chart) {
			charts[1].Values["nodeSelector"] = map[string]any{"node-role.kubernetes.io/control-plane": "true"}
		}, "providerID to become set by the cloud controller manager"},
	} {
		t.Run(name, func(t *testing.T) {
			m := enginetest.Quick(enginetest.Load(t, "charts.yaml", nil))
			tt.edit(m.Charts)
			synctest.Test(t, func(t *testing.T) {
				a := enginetest.Account(m, enginetest.Lag)
				_, err := enginetest.Waiting(m, a.Process(), plan.NodesReady).Apply(t.Context(), cluster.Options{})
				require.ErrorContains(t, err, tt.want)
			})
		})
	}
}
