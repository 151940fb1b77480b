package incluster_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/incluster"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest/loader"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/run"
	"github.com/clusterawsadm/clusterawsadm/internal/enginetest"
	"github.com/clusterawsadm/clusterawsadm/internal/kube"
	"github.com/clusterawsadm/clusterawsadm/internal/kubesim"
	"github.com/clusterawsadm/clusterawsadm/internal/kubesim/helmsim"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
	"github.com/clusterawsadm/clusterawsadm/pkg/input"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// charts are a pod network, the cloud controller manager, and another chart.
const charts = `
---
apiVersion: addons.cluster.x-k8s.io/v1alpha1
kind: HelmChartProxy
metadata: {name: web}
spec:
  clusterSelector: {}
  repoURL: oci://registry.example.com/charts
  chartName: web
  version: 1.2.3
  namespace: shop
  valuesTemplate: |
    name: {{ .Cluster.metadata.name }}
    adminPassword: correct-horse
  options: {atomic: true}
---
apiVersion: addons.cluster.x-k8s.io/v1alpha1
kind: HelmChartProxy
metadata: {name: network}
spec:
  clusterSelector: {}
  repoURL: https://helm.cilium.io/
  chartName: cilium
  releaseName: cilium
  version: 1.18.2
  namespace: kube-system
---
apiVersion: addons.cluster.x-k8s.io/v1alpha1
kind: HelmChartProxy
metadata: {name: cloud}
spec:
  clusterSelector: {}
  repoURL: https://kubernetes.github.io/cloud-provider-aws
  chartName: aws-cloud-controller-manager
  version: 0.0.8
  namespace: kube-system
  reconcileStrategy: InstallOnce
`

// charted returns the example with charts, after edits.
func charted(t *testing.T, edits ...string) *manifest.Cluster {
	t.Helper()
	raw, err := enginetest.Read("quickstart.yaml")
	require.NoError(t, err)
	m, err := loader.Load([]input.Source{{Name: "demo.yaml", Data: []byte(strings.NewReplacer(edits...).Replace(string(raw) + charts))}}, input.LoadOptions{})
	require.NoError(t, err)
	return enginetest.Quick(m)
}

func withHelm(m *manifest.Cluster, a *awssim.AWS, h cluster.Helm) *run.Cluster {
	c := enginetest.Waiting(m, a.Process(), plan.NodesReady)
	c.Target.Helm = h
	return c
}

func applied(t *testing.T, m *manifest.Cluster, a *awssim.AWS, h cluster.Helm) error {
	t.Helper()
	_, err := withHelm(m, a, h).Apply(t.Context(), cluster.Options{Observe: enginetest.Tell(t)})
	return err
}

// chartSteps returns what a plan does with charts, a line for each difference.
func chartSteps(t *testing.T, m *manifest.Cluster, a *awssim.AWS) (lines []string) {
	t.Helper()
	p, err := withHelm(m, a, &helmsim.Helm{}).Plan(t.Context())
	require.NoError(t, err)
	for _, s := range p.Steps {
		if s.Does() {
			for _, d := range s.Diff {
				lines = append(lines, fmt.Sprintf("%s %s: %v -> %v", s.Resource, d.Field, d.Have, d.Want))
			}
		}
	}
	return lines
}

// releases lists the records of releases in the cluster: "cilium v1 deployed".
func releases(a *awssim.AWS) (all []string) {
	enginetest.Inside(a, func(c *kubesim.Cluster) {
		for _, o := range c.All("Secret") {
			if kubesim.Value(o, "type") == "helm.sh/release.v1" {
				label := func(name string) string { return kubesim.Value(o, "metadata", "labels", name) }
				all = append(all, fmt.Sprintf("%s v%s %s", label("name"), label("version"), label("status")))
			}
		}
	})
	slices.Sort(all)
	return all
}

// TestCharts installs charts, upgrades one, and uninstalls it. Nodes become ready with a network that is a chart.
func TestCharts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := charted(t)
		a := enginetest.Account(m, enginetest.Lag)
		require.Equal(t, []string{
			"helm-release/web chart:  -> web", "helm-release/web version:  -> 1.2.3", "helm-release/web repository:  -> oci://registry.example.com/charts/web",
			"helm-release/web namespace:  -> shop", "helm-release/web values.adminPassword:  -> (hidden)", "helm-release/web values.name:  -> quickstart",
		}, slices.DeleteFunc(chartSteps(t, m, a), func(l string) bool { return !strings.HasPrefix(l, "helm-release/web ") }))
		require.NoError(t, applied(t, m, a, &helmsim.Helm{}))
		assert.Equal(t, []string{"aws-cloud-controller-manager v1 deployed", "cilium v1 deployed", "web v1 deployed"},
			[]string{strings.Replace(releases(a)[1], "cloud ", "aws-cloud-controller-manager ", 1), releases(a)[0], releases(a)[2]})
		assert.Empty(t, chartSteps(t, m, a), "nothing is left to do")

		m = charted(t, "1.2.3", "1.3.0", "correct-horse", "battery-staple", "0.0.8", "0.0.9")
		assert.Equal(t, []string{
			"helm-release/web version: 1.2.3 -> 1.3.0", "helm-release/web values.adminPassword: (hidden) -> (hidden, another)",
		}, chartSteps(t, m, a), "InstallOnce is not upgraded")
		require.NoError(t, applied(t, m, a, &helmsim.Helm{}))
		assert.Equal(t, []string{"cilium v1 deployed", "cloud v1 deployed", "web v1 superseded", "web v2 deployed"}, releases(a))

		m = charted(t, "metadata: {name: web}\nspec:\n  clusterSelector: {}", "metadata: {name: web}\nspec:\n  clusterSelector: {matchLabels: {shop: \"true\"}}",
			"metadata: {name: cloud}\nspec:\n  clusterSelector: {}", "metadata: {name: cloud}\nspec:\n  clusterSelector: {matchLabels: {shop: \"true\"}}")
		assert.Empty(t, chartSteps(t, m, a))
		assert.Equal(t, []string{"shop/web (web 1.3.0)"}, uninstalls(t, m, a), "InstallOnce is not uninstalled")
		require.NoError(t, applied(t, m, a, &helmsim.Helm{}))
		assert.Equal(t, []string{"cilium v1 deployed", "cloud v1 deployed"}, releases(a))
		assert.Empty(t, uninstalls(t, m, a))

		enginetest.MustDelete(t, m, a)
		assert.Empty(t, a.Inventory())
	})
}

// uninstalls returns the releases that a plan uninstalls.
func uninstalls(t *testing.T, m *manifest.Cluster, a *awssim.AWS) (all []string) {
	t.Helper()
	p, err := withHelm(m, a, &helmsim.Helm{}).Plan(t.Context())
	require.NoError(t, err)
	for _, s := range p.Steps {
		if s.Action == plan.Remove {
			all = append(all, s.CloudID)
		}
	}
	return all
}

// A manifest whose last HelmChartProxy was removed uninstalls all releases that runs have installed, and leaves alone
// those that others have installed.
func TestLastChartIsRemoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := charted(t)
		a := enginetest.Account(m, enginetest.Lag)
		require.NoError(t, applied(t, m, a, &helmsim.Helm{}))
		enginetest.Inside(a, func(c *kubesim.Cluster) { // as helm records what somebody else installs: without our label
			for _, o := range c.All("Secret") {
				labels, _ := o["metadata"].(kubesim.Object)["labels"].(kubesim.Object)
				if labels["name"] == "cilium" {
					delete(labels, incluster.ReleaseLabel)
				}
			}
		})
		m = enginetest.Quick(enginetest.Load(t, "quickstart.yaml", nil))
		assert.Equal(t, []string{"kube-system/cloud (aws-cloud-controller-manager 0.0.8), shop/web (web 1.2.3)"}, uninstalls(t, m, a))
		_, err := withHelm(m, a, nil).Plan(t.Context())
		require.ErrorContains(t, err, "helm-leftovers (no longer in the manifest): charts are installed by the program helm")
		require.ErrorContains(t, applied(t, m, a, oldHelm{version: "v3.13.3"}), "helm has the version v3.13.3")
		assert.Len(t, releases(a), 3)
		require.NoError(t, applied(t, m, a, &helmsim.Helm{}))
		assert.Equal(t, []string{"cilium v1 deployed"}, releases(a))
		assert.Empty(t, uninstalls(t, m, a))

		enginetest.Inside(a, func(c *kubesim.Cluster) { c.Denied = []string{"list secrets"} })
		assert.Empty(t, uninstalls(t, m, a), "without charts, the right to read Secrets is not needed")
		_, err = withHelm(charted(t), a, &helmsim.Helm{}).Plan(t.Context())
		require.ErrorContains(t, err, "forbidden")
		enginetest.Inside(a, func(c *kubesim.Cluster) { c.Denied = nil })
		enginetest.MustDelete(t, m, a)
	})
}

// A release that a killed helm has left as pending is installed or upgraded by the next run.
func TestChartsAfterCrash(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := charted(t)
		a := enginetest.Account(m, enginetest.Lag)
		dying := &helmsim.Helm{Die: func(args []string) error {
			if slices.Contains(args, "web") {
				return errors.New("signal: killed")
			}
			return nil
		}}
		require.ErrorContains(t, applied(t, m, a, dying), "helm upgrade: signal: killed")
		assert.Equal(t, []string{"cilium v1 deployed", "cloud v1 deployed", "web v1 pending-install"}, releases(a))
		assert.Contains(t, chartSteps(t, m, a), "helm-release/web status: pending-install -> deployed")
		require.NoError(t, applied(t, m, a, &helmsim.Helm{}))
		assert.Equal(t, []string{"cilium v1 deployed", "cloud v1 deployed", "web v1 deployed"}, releases(a))

		m = charted(t, "1.2.3", "1.3.0")
		require.ErrorContains(t, applied(t, m, a, dying), "signal: killed")
		assert.Contains(t, releases(a), "web v2 pending-upgrade")
		require.NoError(t, applied(t, m, a, &helmsim.Helm{}))
		assert.Equal(
			t,
			[]string{"cilium v1 deployed", "cloud v1 deployed", "web v1 superseded", "web v2 superseded", "web v3 superseded", "web v4 deployed"},
			releases(a),
		)
		assert.Empty(t, chartSteps(t, m, a))
	})
}

// What helm says when it fails is in the error, without the values that may be secret.
func TestChartsFail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := charted(t)
		a := enginetest.Account(m, enginetest.Lag)
		err := applied(t, m, a, &helmsim.Helm{Fail: func(args []string) error {
			for _, word := range args {
				assert.NotContains(t, word, "correct-horse")
			}
			if slices.Contains(args, "web") {
				assert.Contains(t, args, "--atomic")
				return errors.New("template: web/x.yaml:1: correct-horse is no number")
			}
			return nil
		}})
		require.ErrorContains(t, err, "helm-release/web (demo.yaml:")
		require.ErrorContains(t, err, "helm upgrade: template: web/x.yaml:1: (hidden) is no number")
	})
}

// oldHelm is a helm that is not there, or too old.
type oldHelm struct {
	kube.Helm

	version string
	err     error
}

func (h oldHelm) Version(context.Context) (string, error) { return h.version, h.err }

// Without a helm that can be used, a plan is refused, and nothing is created.
func TestChartsWithoutHelm(t *testing.T) {
	for name, tt := range map[string]struct {
		helm cluster.Helm
		want string
	}{
		"none":    {nil, "install helm 3.14 or newer, or 4"},
		"missing": {oldHelm{err: errors.New("it is not in the PATH")}, "charts are installed by the program helm: it is not in the PATH: install helm 3.14"},
		"old":     {oldHelm{version: "v3.13.3"}, "helm has the version v3.13.3: install helm 3.14"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := charted(t)
				a := enginetest.Account(m, enginetest.Lag)
				require.ErrorContains(t, applied(t, m, a, tt.helm), tt.want)
				assert.Empty(t, a.Inventory())
				_, err := withHelm(m, a, tt.helm).Plan(t.Context())
				require.ErrorContains(t, err, tt.want)
			})
		})
	}
}

// nodePool is an object whose kind the chart Karpenter defines, in the set "pools", and a set that defines a namespace.
const nodePool = `
---
apiVersion: addons.cluster.x-k8s.io/v1beta2
kind: ClusterResourceSet
metadata: {name: pools}
spec:
  clusterSelector: {matchLabels: {chart: "yes"}}
  resources: [{kind: ConfigMap, name: pools}]
---
apiVersion: v1
kind: ConfigMap
metadata: {name: pools}
data:
  pool.yaml: |
    apiVersion: karpenter.sh/v1
    kind: NodePool
    metadata: {name: default}
    spec: {}
---
apiVersion: addons.cluster.x-k8s.io/v1beta2
kind: ClusterResourceSet
metadata: {name: base}
spec:
  clusterSelector: {matchLabels: {chart: "yes"}}
  resources: [{kind: ConfigMap, name: base}]
---
apiVersion: v1
kind: ConfigMap
metadata: {name: base}
data:
  base.yaml: |
    apiVersion: v1
    kind: Namespace
    metadata: {name: karpenter}
---
apiVersion: addons.cluster.x-k8s.io/v1alpha1
kind: HelmChartProxy
metadata: {name: karpenter}
spec:
  clusterSelector: {}
  repoURL: oci://public.ecr.aws/karpenter
  chartName: karpenter
  version: 1.6.3
  namespace: karpenter
  options: {install: {createNamespace: false}}
`

// pooled returns the example with a chart and a set that needs it, after edits.
func pooled(t *testing.T, edits ...string) *manifest.Cluster {
	t.Helper()
	raw, err := enginetest.Read("quickstart.yaml")
	require.NoError(t, err)
	text := strings.Replace(string(raw)+charts+nodePool, "  name: quickstart\nspec:", "  name: quickstart\n  labels: {chart: \"yes\"}\nspec:", 1)
	m, err := loader.Load([]input.Source{{Name: "demo.yaml", Data: []byte(strings.NewReplacer(edits...).Replace(text))}}, input.LoadOptions{})
	require.NoError(t, err)
	return enginetest.Quick(m)
}

// An object of a set waits for the chart that defines its kind, and a chart for the set that defines its namespace.
func TestSetsAndChartsWaitForDefinitions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := pooled(t)
		a := enginetest.Account(m, enginetest.Lag)
		assert.Contains(t, chartSteps(t, m, a), "resource-set/pools NodePool default:  -> there")
		require.NoError(t, applied(t, m, a, &helmsim.Helm{}))
		enginetest.Inside(a, func(c *kubesim.Cluster) { assert.NotNil(t, c.Get("/apis/karpenter.sh/v1/nodepools/default")) })
		assert.Empty(t, chartSteps(t, m, a))
	})
	synctest.Test(t, func(t *testing.T) {
		m := pooled(t, "options: {install: {createNamespace: false}}", "options: {skipCRDs: true, install: {createNamespace: false}}")
		a := enginetest.Account(m, enginetest.Lag)
		err := applied(t, m, a, &helmsim.Helm{})
		require.ErrorContains(t, err, "resource-set/pools (demo.yaml:")
		require.ErrorContains(t, err, "gave up after 30m0s")
		require.ErrorContains(t, err, "NodePool default (demo.yaml:")
		require.ErrorContains(t, err, "no chart of the manifest has defined it: bring its CustomResourceDefinition too")
	})
}

// helm 4 has other flags for two options.
func TestChartsByHelm4(t *testing.T) {
	for _, four := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			a := enginetest.Account(charted(t), enginetest.Lag)
			require.NoError(t, applied(t, charted(t), a, &helmsim.Helm{Four: four}))
			m := charted(t, "1.2.3", "1.3.0", "{atomic: true}", "{atomic: true, upgrade: {force: true}}")
			require.NoError(t, applied(t, m, a, &helmsim.Helm{Four: four}))
			assert.Contains(t, releases(a), "web v2 deployed")
		})
	}
}

// Cilium without kube-proxy gets the address of the API server from the Cluster, as CAAPH renders it. With another address, its agents do not run.
func TestCiliumWithoutKubeProxy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		raw, err := enginetest.Read("charts.yaml")
		require.NoError(t, err)
		edit := func(host string) *manifest.Cluster {
			text := strings.NewReplacer(
				"    initConfiguration:\n",
				"    initConfiguration:\n      skipPhases: [addon/kube-proxy]\n",
				"    ipam:\n",
				"    kubeProxyReplacement: true\n    k8sServiceHost: "+host+"\n    k8sServicePort: {{ .Cluster.spec.controlPlaneEndpoint.port }}\n    ipam:\n",
			).Replace(string(raw))
			m, err := loader.Load([]input.Source{{Name: "charts.yaml", Data: []byte(text)}}, input.LoadOptions{})
			require.NoError(t, err)
			return enginetest.Quick(m)
		}
		m := edit("{{ .Cluster.spec.controlPlaneEndpoint.host }}")
		a := enginetest.Account(m, enginetest.Lag)
		lines := chartSteps(t, m, a)
		require.Contains(t, strings.Join(lines, "\n"), "values.k8sServiceHost", "%v", lines)
		require.Contains(t, strings.Join(lines, "\n"), plan.Unknown, "%v", lines)
		require.NoError(t, applied(t, m, a, &helmsim.Helm{}))
		require.Empty(t, chartSteps(t, m, a))
		enginetest.Inside(a, func(c *kubesim.Cluster) {
			require.Nil(t, c.Get("/apis/apps/v1/namespaces/kube-system/daemonsets/kube-proxy"))
			require.NotNil(t, c.Get("/apis/apps/v1/namespaces/kube-system/daemonsets/cilium"))
		})
		enginetest.MustDelete(t, m, a)

		other := edit("elsewhere.example.com")
		require.ErrorContains(t, applied(t, other, enginetest.Account(other, enginetest.Lag), &helmsim.Helm{}), "cni plugin not initialized")
	})
}
