package loader_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest/loader"
	"github.com/clusterawsadm/clusterawsadm/internal/enginetest/manifests"
	"github.com/clusterawsadm/clusterawsadm/pkg/input"
)

// called returns the quickstart with another name.
func called(t *testing.T, name string) string {
	t.Helper()
	return strings.ReplaceAll(manifests.Plain(t), "quickstart", name)
}

// each loads all clusters of a text, and returns their errors by name.
func each(text string) (clusters map[string]*manifest.Cluster, problems map[string]error) {
	sources := []input.Source{{Name: "cluster.yaml", Data: []byte(text)}}
	clusters, problems = map[string]*manifest.Cluster{}, map[string]error{}
	for _, name := range loader.Clusters(sources, input.LoadOptions{}) {
		clusters[name], problems[name] = loader.Load(sources, input.LoadOptions{Cluster: name})
	}
	return clusters, problems
}

// Each of several clusters is what it is alone, with the lines of the file.
func TestSeveralClusters(t *testing.T) {
	text := called(t, "red") + "\n---\n" + called(t, "blue")
	clusters, problems := each(text)
	require.Len(t, clusters, 2)
	for _, name := range []string{"red", "blue"} {
		require.NoError(t, problems[name])
		alone := manifests.MustLoad(t, called(t, name), input.LoadOptions{})
		assert.Equal(t, alone.Infra.Spec, clusters[name].Infra.Spec)
		assert.Equal(t, alone.ControlPlane.Template.Spec, clusters[name].ControlPlane.Template.Spec)
		assert.Len(t, clusters[name].Deployments, len(alone.Deployments))
		assert.Len(t, clusters[name].Warnings, len(alone.Warnings))
	}
	_, err := manifests.Load(t, text, input.LoadOptions{})
	require.ErrorContains(t, err, "choose one with --cluster NAME")
	_, err = manifests.Load(t, text, input.LoadOptions{Cluster: "green"})
	require.ErrorContains(t, err, "there is no Cluster green in the input — it has red, blue")
}

// A problem belongs to the cluster that has the object, also if it is found while the file is read.
func TestProblemsOfOneOfSeveral(t *testing.T) {
	for name, broken := range map[string]string{
		"field":   manifests.Edit(t, called(t, "blue"), "instanceType: t3.large", "instanceTyp: t3.large"),
		"kind":    manifests.Edit(t, called(t, "blue"), "kind: KubeadmControlPlane\nmetadata", "kind: KubeadmControlPlan\nmetadata"),
		"version": manifests.Edit(t, called(t, "blue"), "apiVersion: infrastructure.cluster.x-k8s.io/v1beta2\nkind: AWSCluster", "apiVersion: infrastructure.cluster.x-k8s.io/v1alpha4\nkind: AWSCluster"),
		"missing": manifests.Edit(t, called(t, "blue"), "name: blue-control-plane", "name: blue-control-plan"),
		"orphan":  called(t, "blue") + "\n---\n" + manifests.Edit(t, machines(t), "clusterName: quickstart", "clusterName: green"),
	} {
		t.Run(name, func(t *testing.T) {
			_, problems := each(called(t, "red") + "\n---\n" + broken)
			if name == "orphan" { // of no cluster: the first one has the problem
				require.Error(t, problems["red"])
				require.NoError(t, problems["blue"])
				return
			}
			require.NoError(t, problems["red"])
			require.Error(t, problems["blue"])
			assert.Contains(t, problems["blue"].Error(), "blue")
			assert.NotContains(t, problems["blue"].Error(), "/red")
		})
	}
	_, problems := each(called(t, "red") + "\n---\n" + called(t, "blue") + "\n---\nkind: [a\n")
	require.Error(t, problems["red"], "nobody knows what the document that cannot be read belongs to")
	require.Error(t, problems["blue"])
}

// machines is the MachineDeployment of the quickstart.
func machines(t *testing.T) string {
	t.Helper()
	for d := range strings.SplitSeq(manifests.Plain(t), "\n---\n") {
		if strings.Contains(d, "kind: MachineDeployment\n") {
			return strings.ReplaceAll(d, "name: quickstart", "name: other")
		}
	}
	t.Fatal("there is none")
	return ""
}

// ClusterResourceSets belong to the clusters that they select, and what they name goes with them.
func TestResourceSetsOfSeveral(t *testing.T) {
	labelled := manifests.Edit(t, called(t, "red"), "kind: Cluster\nmetadata:\n", "kind: Cluster\nmetadata:\n  labels: {cni: calico}\n")
	const set = `
---
apiVersion: addons.cluster.x-k8s.io/v1beta2
kind: ClusterResourceSet
metadata: {name: cni}
spec:
  clusterSelector: {matchLabels: {cni: calico}}
  resources: [{kind: ConfigMap, name: cni}]
---
apiVersion: v1
kind: ConfigMap
metadata: {name: cni}
data:
  a.yaml: |
    apiVersion: v1
    kind: Namespace
    metadata: {name: calico}
`
	clusters, problems := each(labelled + "\n---\n" + called(t, "blue") + set)
	require.NoError(t, problems["red"])
	require.NoError(t, problems["blue"])
	require.Len(t, clusters["red"].ResourceSets, 1)
	assert.Empty(t, clusters["blue"].ResourceSets)
	assert.NotContains(t, strings.Join(manifests.Warnings(clusters["blue"]), "\n"), "cni")
}

// Objects of one name in two namespaces are those of two clusters.
func TestSeveralNamespaces(t *testing.T) {
	in := func(namespace, block string) string {
		text := strings.ReplaceAll(manifests.Plain(t), "metadata:\n  name:", "metadata:\n  namespace: "+namespace+"\n  name:")
		return manifests.Edit(t, text, "cidrBlocks: [192.168.0.0/16]", "cidrBlocks: ["+block+"]")
	}
	clusters, problems := each(in("one", "192.168.0.0/16") + "\n---\n" + in("two", "172.16.0.0/16"))
	require.Len(t, clusters, 2)
	for name, block := range map[string]string{"one/quickstart": "192.168.0.0/16", "two/quickstart": "172.16.0.0/16"} {
		require.NoError(t, problems[name])
		assert.Equal(t, []string{block}, clusters[name].Object.Spec.ClusterNetwork.Pods.CIDRBlocks)
		assert.Equal(t, name, clusters[name].Namespace+"/"+clusters[name].Name)
	}
	assert.Greater(t, clusters["two/quickstart"].At("Cluster/quickstart", "").Line, clusters["one/quickstart"].At("Cluster/quickstart", "").Line)
}

// A ClusterClass and an identity are shared.
func TestSharedObjects(t *testing.T) {
	text := manifests.Read(t, "../../../../configs/clusterclass.yaml")
	var class, cluster string
	for d := range strings.SplitSeq(text, "\n---\n") {
		if strings.Contains(d, "\nkind: Cluster\n") {
			cluster = d
		} else {
			class += "\n---\n" + d
		}
	}
	clusters, problems := each(strings.ReplaceAll(cluster, "\n  name: quickstart", "\n  name: red") + "\n---\n" +
		strings.ReplaceAll(cluster, "\n  name: quickstart", "\n  name: blue") + class)
	require.Len(t, clusters, 2)
	require.NoError(t, problems["red"])
	require.NoError(t, problems["blue"])
	assert.Equal(t, clusters["red"].ControlPlane.Template.Spec.Template.Spec.InstanceType, clusters["blue"].ControlPlane.Template.Spec.Template.Spec.InstanceType)
}

// However many clusters a stream has, and whatever is wrong with one of them, the others are what they are
// alone, and each problem has a line and is about an object of its own cluster.
func TestAnyStreamOfSeveral(t *testing.T) {
	names := []string{"red", "blue", "green"}
	edits := [][2]string{
		{"/v1beta2", "/v1alpha4"},
		{"/v1beta2", "/v1beta1"},
		{"kind: AWS", "kind: AWZ"},
		{"kind: AWS", "kind: Azure"},
		{"kind: Kubeadm", "kind: RKE2"},
		{"spec:", "spek:"},
		{"  name: ", "  nome: "},
		{"clusterName: ", "clustername: "},
		{"version: v1", "version: v9"},
	}
	texts := map[string]string{}
	for _, name := range names {
		texts[name] = called(t, name)
	}
	rapid.Check(t, func(t *rapid.T) {
		broken := map[string]bool{}
		var parts []string
		for _, name := range rapid.SliceOfNDistinct(rapid.SampledFrom(names), 2, 3, rapid.ID).Draw(t, "names") {
			for part := range strings.SplitSeq(texts[name], "\n---\n") {
				if rapid.IntRange(0, 7).Draw(t, "edited") == 0 {
					e := rapid.SampledFrom(edits).Draw(t, "edit")
					edited := strings.ReplaceAll(part, e[0], e[1])
					broken[name] = broken[name] || edited != part
					part = edited
				}
				parts = append(parts, part)
			}
		}
		clusters, problems := each(strings.Join(rapid.Permutation(parts).Draw(t, "order"), "\n---\n"))
		for name, err := range problems {
			var invalid *manifest.InvalidError
			switch {
			case err == nil && clusters[name].Name != name:
				t.Fatalf("%s is %s", name, clusters[name].Name)
			case err != nil && !errors.As(err, &invalid):
				t.Fatal(err)
			case err == nil:
				continue
			}
			for _, p := range invalid.Problems {
				_, of, _ := strings.Cut(p.Object, "/")
				of, _, _ = strings.Cut(of, "-")
				if p.File == "" || p.Line == 0 || p.What == "" {
					t.Fatalf("no position: %s", p)
				}
				if of != name && texts[of] != "" && !broken[of] {
					t.Fatalf("%s is no problem of %s", p, name)
				}
			}
		}
	})
}

// Subnets of AWSManagedControlPlane v1beta1 need no id, as with CAPA 1.
func TestSubnetsOfAnOlderControlPlane(t *testing.T) {
	c := manifests.MustLoad(t, `
apiVersion: cluster.x-k8s.io/v1beta1
kind: Cluster
metadata: {name: old}
spec:
  controlPlaneRef: {apiVersion: controlplane.cluster.x-k8s.io/v1beta1, kind: AWSManagedControlPlane, name: old}
  infrastructureRef: {apiVersion: controlplane.cluster.x-k8s.io/v1beta1, kind: AWSManagedControlPlane, name: old}
---
apiVersion: controlplane.cluster.x-k8s.io/v1beta1
kind: AWSManagedControlPlane
metadata: {name: old}
spec:
  region: eu-west-1
  version: v1.34.0
  network:
    subnets:
    - {availabilityZone: eu-west-1a, cidrBlock: 10.0.0.0/24}
    - {availabilityZone: eu-west-1b, cidrBlock: 10.0.2.0/24}
    - {availabilityZone: eu-west-1b, cidrBlock: 10.0.3.0/24}
    - {availabilityZone: eu-west-1a, cidrBlock: 10.0.1.0/24, isPublic: true}
`, input.LoadOptions{})
	var ids []string
	for _, s := range c.Infra.Spec.NetworkSpec.Subnets {
		ids = append(ids, s.ID)
	}
	assert.Equal(t, []string{
		"old-subnet-private-eu-west-1a", "old-subnet-private-eu-west-1b-10-0-2-0-24", "old-subnet-private-eu-west-1b-10-0-3-0-24", "old-subnet-public-eu-west-1a",
	}, ids)
}
