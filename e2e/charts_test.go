//go:build e2e

package e2e

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	"github.com/clusterawsadm/clusterawsadm/internal/cli/helm"
	"github.com/clusterawsadm/clusterawsadm/internal/kubesim"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
)

// chartOf returns the folder of a chart in a Go module.
func chartOf(t *testing.T, module, folder string) string {
	t.Helper()
	download := exec.CommandContext(t.Context(), "go", "mod", "download", "-json", module)
	// Where the tests run, the checksum database does not answer for cloud-provider-aws.
	download.Dir, download.Env = t.TempDir(), append(os.Environ(), "GOFLAGS=-mod=mod", "GONOSUMDB=k8s.io/cloud-provider-aws")
	out, err := download.Output()
	require.NoError(t, err, "%s", out)
	var at struct{ Dir string }
	require.NoError(t, json.Unmarshal(out, &at))
	return filepath.Join(at.Dir, folder)
}

const karpenterCharts = `
---
apiVersion: addons.cluster.x-k8s.io/v1alpha1
kind: HelmChartProxy
metadata: {name: karpenter-crd}
spec:
  clusterSelector: {}
  repoURL: KARPENTER
  chartName: karpenter-crd
  namespace: kube-system
  valuesTemplate: |
    {}
---
apiVersion: addons.cluster.x-k8s.io/v1alpha1
kind: HelmChartProxy
metadata: {name: karpenter}
spec:
  clusterSelector: {}
  repoURL: KARPENTER
  chartName: karpenter
  namespace: kube-system
  valuesTemplate: |
    settings: {clusterName: "{{ .Cluster.metadata.name }}"}
`

const (
	karpenterDeployment = "/apis/apps/v1/namespaces/kube-system/deployments/karpenter"
	ciliumSettings      = "/api/v1/namespaces/kube-system/configmaps/cilium-config"
)

// chartsFlavor returns the flavor "charts" without the metrics server: its chart is in no Go module.
func chartsFlavor(t *testing.T) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), binary(t), "cluster", "generate", "demo", "--flavor", "charts").Output()
	require.NoError(t, err)
	documents := slices.DeleteFunc(strings.Split(string(out), "\n---\n"), func(d string) bool { return strings.Contains(d, "name: demo-metrics-server") })
	return strings.Join(documents, "\n---\n")
}

// TestRealCharts creates a cluster of the flavor "charts" with the published charts of Cilium, the cloud controller manager and
// Karpenter. The simulated API server serves no schemas. So the charts turn validation off, and they do not create their namespace,
// which helm always validates.
func TestRealCharts(t *testing.T) {
	replacer := strings.NewReplacer(
		"https://helm.cilium.io/\n", chartOf(t, "github.com/cilium/cilium@v1.18.2", "install/kubernetes")+"\n",
		"https://kubernetes.github.io/cloud-provider-aws\n", chartOf(t, "k8s.io/cloud-provider-aws@v1.34.0", "charts")+"\n",
		"version: 0.0.12", "version: 0.0.9", // that of the module
		"KARPENTER", chartOf(t, "github.com/aws/karpenter-provider-aws@v1.6.3", "charts"),
		"  valuesTemplate: |", "  options: {disableOpenAPIValidation: true, install: {createNamespace: false}}\n  valuesTemplate: |",
	)
	flavor := chartsFlavor(t)
	for _, version := range []string{"v3.19.5", "v4.3.1"} {
		t.Run(version, func(t *testing.T) {
			useHelm(t, version)
			program := &helm.Program{Environ: os.Environ()}
			synctest.Test(t, func(t *testing.T) {
				a := awssim.New(awssim.Options{})
				apply := func(manifest string) cluster.Result {
					res, err := withHelm(t, a, program, replacer.Replace(manifest)).Apply(t.Context(), cluster.Options{})
					require.NoError(t, err)
					return res
				}
				object := func(path string) (found kubesim.Object) {
					a.Edit(func(s *awssim.State) {
						for _, c := range s.Kubernetes {
							found = c.Get(path)
						}
					})
					return found
				}
				apply(flavor + karpenterCharts)
				for _, path := range []string{
					"/apis/apps/v1/namespaces/kube-system/daemonsets/cilium",
					"/apis/apps/v1/namespaces/kube-system/daemonsets/aws-cloud-controller-manager",
					"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/nodepools.karpenter.sh",
					karpenterDeployment,
				} {
					assert.NotNil(t, object(path), path)
				}
				assert.Equal(t, "kubernetes", kubesim.Value(object(ciliumSettings), "data", "ipam"))
				assert.True(t, apply(flavor+karpenterCharts).Plan.Empty(), "the second run does nothing")

				changed := strings.Replace(flavor, "mode: kubernetes", "mode: cluster-pool", 1)
				apply(changed)
				assert.Equal(t, "cluster-pool", kubesim.Value(object(ciliumSettings), "data", "ipam"), "the release is upgraded")
				assert.Nil(t, object(karpenterDeployment), "a chart without a HelmChartProxy is uninstalled")
				assert.True(t, apply(changed).Plan.Empty())
			})
		})
	}
}
