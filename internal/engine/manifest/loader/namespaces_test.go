package loader_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/internal/enginetest/manifests"
	"github.com/clusterawsadm/clusterawsadm/pkg/input"
)

// in gives the objects of some kinds a namespace, in a text whose objects have none.
func in(t *testing.T, text, namespace string, kinds ...string) string {
	t.Helper()
	for _, kind := range kinds {
		head := "kind: " + kind + "\nmetadata:\n"
		require.Contains(t, text, head)
		text = strings.ReplaceAll(text, head, head+"  namespace: "+namespace+"\n")
	}
	return text
}

// taken returns the warnings about a namespace that the manifest does not name.
func taken(c *manifest.Cluster) []string {
	var found []string
	for _, w := range c.Warnings {
		if strings.Contains(w.What, "is taken to be in") {
			found = append(found, w.String())
		}
	}
	return found
}

// A Cluster without a namespace is where its objects are: kubectl apply -n takes the namespace for all objects that have none.
func TestNamespaceOfSomeObjects(t *testing.T) {
	const config = "../../../../configs/"
	for name, tt := range map[string]struct {
		file  string
		kinds []string
		as    string
	}{
		"machine deployment":      {"quickstart", []string{"MachineDeployment"}, "MachineDeployment/quickstart-md-0"},
		"control plane":           {"quickstart", []string{"KubeadmControlPlane"}, "KubeadmControlPlane/quickstart-control-plane"},
		"templates":               {"quickstart", []string{"AWSMachineTemplate"}, "AWSMachineTemplate/quickstart-control-plane"},
		"bootstrap of the nodes":  {"quickstart", []string{"KubeadmConfigTemplate"}, "KubeadmConfigTemplate/quickstart-md-0"},
		"pool":                    {"eks", []string{"MachinePool"}, "MachinePool/eks-pool-0"},
		"node group":              {"eks", []string{"AWSManagedMachinePool"}, "AWSManagedMachinePool/eks-pool-0"},
		"class":                   {"clusterclass", []string{"ClusterClass"}, "ClusterClass/self-managed"},
		"class and its templates": {"clusterclass", []string{"ClusterClass", "AWSClusterTemplate", "KubeadmConfigTemplate"}, "ClusterClass/self-managed"},
		"a template of the class": {"clusterclass", []string{"AWSClusterTemplate"}, "AWSClusterTemplate/self-managed"},
	} {
		t.Run(name, func(t *testing.T) {
			c := manifests.MustLoad(t, in(t, manifests.Read(t, config+tt.file+".yaml"), "fleet", tt.kinds...), input.LoadOptions{})
			assert.Equal(t, "fleet", c.Namespace)
			all := manifests.MustLoad(t, in(t, manifests.Read(t, config+tt.file+".yaml"), "fleet", append(tt.kinds, "Cluster")...), input.LoadOptions{})
			assert.Empty(t, taken(all))
			require.Len(t, c.Warnings, len(all.Warnings)+1)
			require.Len(t, taken(c), 1)
			assert.Contains(t, taken(c)[0], "metadata: has no namespace: the Cluster is taken to be in fleet, as "+tt.as+" is — write metadata.namespace: fleet")
			if c.IsManaged() {
				assert.Equal(t, "fleet_eks", c.EKS.ControlPlane.Spec.EKSClusterName)
				assert.Equal(t, "fleet_eks-pool-0", c.Pools[0].Managed.Spec.EKSNodegroupName)
				assert.Equal(t, all.EKS.ControlPlane.Spec.EKSClusterName, c.EKS.ControlPlane.Spec.EKSClusterName)
			}
		})
	}
}

// A Cluster without a namespace is in "default" if its objects are in several namespaces. Objects that Cluster API also finds in other
// namespaces, such as Secrets, do not count.
func TestNamespaceIsNotTaken(t *testing.T) {
	quick := manifests.Plain(t)
	_, err := manifests.Load(t, in(t, in(t, quick, "fleet", "MachineDeployment"), "other", "KubeadmControlPlane"), input.LoadOptions{})
	require.ErrorContains(t, err, "the Cluster is in default")
	_, err = manifests.Load(t, in(t, in(t, quick, "fleet", "MachineDeployment"), "default", "Cluster"), input.LoadOptions{})
	require.ErrorContains(t, err, "is in the namespace fleet, but the Cluster is in default — use one namespace")
	for name, more := range map[string]string{
		"secret": "apiVersion: v1\nkind: Secret\nmetadata: {name: more, namespace: fleet}\n",
		"set": "apiVersion: addons.cluster.x-k8s.io/v1beta2\nkind: ClusterResourceSet\nmetadata: {name: more, namespace: fleet}\n" +
			"spec: {clusterSelector: {matchLabels: {cni: calico}}, resources: [{kind: ConfigMap, name: more}]}\n",
		"another template": "apiVersion: infrastructure.cluster.x-k8s.io/v1beta2\nkind: AWSMachineTemplate\nmetadata: {name: more, namespace: fleet}\n" +
			"spec: {template: {spec: {instanceType: t3.large}}}\n",
	} {
		c := manifests.MustLoad(t, quick+"\n---\n"+more, input.LoadOptions{})
		assert.Equal(t, "default", c.Namespace, name)
		assert.Empty(t, taken(c), name)
	}
	class := manifests.Read(t, "../../../../configs/clusterclass.yaml")
	elsewhere := strings.Replace(in(t, class, "classes", "ClusterClass"), "      name: self-managed\n", "      name: self-managed\n      namespace: classes\n", 1)
	c := manifests.MustLoad(t, elsewhere, input.LoadOptions{})
	assert.Equal(t, "default", c.Namespace, "the Cluster names the namespace of its class")
}

// Each of several clusters has the namespace of its own objects.
func TestNamespacesOfSeveral(t *testing.T) {
	clusters, problems := each(in(t, called(t, "red"), "reds", "MachineDeployment") + "\n---\n" + called(t, "blue"))
	require.NoError(t, problems["red"])
	require.NoError(t, problems["blue"])
	assert.Equal(t, "reds", clusters["red"].Namespace)
	assert.Len(t, clusters["red"].Deployments, 1)
	assert.Len(t, taken(clusters["red"]), 1)
	assert.Equal(t, "default", clusters["blue"].Namespace)
	assert.Len(t, clusters["blue"].Deployments, 1)
	assert.Empty(t, taken(clusters["blue"]))
}

// If a ClusterClass is not in the namespace in which Cluster API looks for it, the error names both namespaces and the field to change.
func TestClassOfAnotherNamespace(t *testing.T) {
	class := manifests.Read(t, "../../../../configs/clusterclass.yaml")
	for what, tt := range map[string]struct{ from, to, want string }{
		"of the class": {
			"kind: ClusterClass\nmetadata:\n", "kind: ClusterClass\nmetadata:\n  namespace: classes\n",
			"spec.topology.classRef.name: there is no ClusterClass/self-managed in the namespace fleet — it is in classes: set spec.topology.classRef.namespace: classes",
		},
		"of the reference": {
			"    classRef:\n", "    classRef:\n      namespace: classes\n",
			"spec.topology.classRef.name: there is no ClusterClass/self-managed in the namespace classes — it is in fleet: remove spec.topology.classRef.namespace",
		},
	} {
		text := strings.Replace(class, "  name: quickstart\n", "  name: quickstart\n  namespace: fleet\n", 1)
		if what == "of the reference" {
			text = in(t, text, "fleet", "ClusterClass")
		}
		_, err := manifests.Load(t, manifests.Edit(t, text, tt.from, tt.to), input.LoadOptions{})
		require.ErrorContains(t, err, tt.want, what)
	}
	old := manifests.Edit(t, class, "kind: ClusterClass\nmetadata:\n", "kind: ClusterClass\nmetadata:\n  namespace: classes\n",
		"cluster.x-k8s.io/v1beta2\nkind: Cluster\nmetadata:\n", "cluster.x-k8s.io/v1beta1\nkind: Cluster\nmetadata:\n  namespace: default\n",
		"    classRef:\n      name: self-managed\n", "    class: self-managed\n")
	_, err := manifests.Load(t, old, input.LoadOptions{})
	require.ErrorContains(t, err, "spec.topology.class: there is no ClusterClass/self-managed in the namespace default — "+
		"it is in classes: set spec.topology.classNamespace: classes")
}

// If no Cluster uses a ClusterClass, there is a warning about the class, and none about its templates.
func TestUnusedClass(t *testing.T) {
	class := manifests.Read(t, "../../../../configs/clusterclass.yaml")
	_, rest, _ := strings.Cut(class, "\n---\n")
	c := manifests.MustLoad(t, class+"\n---\n"+strings.ReplaceAll(rest, "self-managed", "other"), input.LoadOptions{})
	require.Len(t, c.Warnings, 1)
	assert.Contains(t, c.Warnings[0].String(), "ClusterClass/other: no Cluster of the input uses it, so it has no effect — remove it, or refer to it")
}

// References of a Cluster with a topology must refer to objects that Cluster API has created. A Cluster that was exported from a management
// cluster has such references.
func TestReferencesBesideATopology(t *testing.T) {
	class := manifests.Read(t, "../../../../configs/clusterclass.yaml")
	const spec = "  name: quickstart\nspec:\n"
	reference := spec + "  infrastructureRef:\n    apiGroup: infrastructure.cluster.x-k8s.io\n    kind: AWSCluster\n    name: mine\n"
	mine := "\n---\napiVersion: infrastructure.cluster.x-k8s.io/v1beta2\nkind: AWSCluster\nmetadata:\n  name: mine\nspec:\n  region: us-east-1\n"
	with := manifests.Edit(t, class, spec, reference)
	_, err := manifests.Load(t, with+mine, input.LoadOptions{})
	require.ErrorContains(t, err, "spec.infrastructureRef: the Cluster has spec.topology, and AWSCluster/mine is none of its objects")
	for text, want := range map[string]int{
		with: 1,
		strings.Replace(with, "  name: quickstart\n", "  name: quickstart\n  uid: 6f0e7a8e-0000-4000-8000-000000000000\n", 1): 0,
	} {
		warnings := slices.DeleteFunc(manifests.Warnings(manifests.MustLoad(t, text, input.LoadOptions{})), func(w string) bool {
			return !strings.Contains(w, "has no effect beside spec.topology")
		})
		assert.Len(t, warnings, want)
	}
}
