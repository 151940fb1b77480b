package loader_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	infrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/api/v1beta2"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest/loader"
	"github.com/clusterawsadm/clusterawsadm/internal/enginetest/manifests"
	"github.com/clusterawsadm/clusterawsadm/pkg/input"
)

func TestCAPATemplatesLoadUnchanged(t *testing.T) {
	for _, name := range []string{"cluster-template", "cluster-template-flatcar", "cluster-template-dualstack-ipv4-primary"} {
		t.Run(name, func(t *testing.T) {
			data, err := os.ReadFile(filepath.Join(manifests.Templates, name+".yaml"))
			if err != nil {
				t.Skip("CAPA's templates are not installed")
			}
			c := manifests.MustLoad(t, string(data), input.LoadOptions{Lookup: manifests.Lookup(manifests.QuickStart()), Strict: true})
			assert.Equal(t, "quick", c.Name)
			assert.Equal(t, "default", c.Namespace)
			assert.Equal(t, "eu-west-1", c.Region)
			assert.Equal(t, "v1.34.2", c.Version)
			assert.Empty(t, c.Warnings)
			assert.EqualValues(t, 3, *c.ControlPlane.Object.Spec.Replicas)
			assert.Equal(t, "t3.large", c.ControlPlane.Template.Spec.Template.Spec.InstanceType)
			require.Len(t, c.Deployments, 1)
			assert.EqualValues(t, 2, *c.Deployments[0].Object.Spec.Replicas)
			assert.NotNil(t, c.Deployments[0].Bootstrap)
			require.Len(t, c.ResourceSets, 2)
			assert.True(t, c.HasCloudController())
			assert.False(t, c.HasPodNetwork())
			assert.Empty(t, c.Identity)
		})
	}
}

func TestQuickStart(t *testing.T) {
	c := manifests.MustLoad(t, manifests.Read(t, "testdata/good/quickstart.yaml"), input.LoadOptions{Strict: true})

	assert.Equal(t, "prod", c.Namespace)
	assert.Equal(t, "eu-west-1", c.Region, "default of the variable")
	assert.Equal(t, "v1.34.2", c.Version, "the v is added")
	assert.EqualValues(t, 1, *c.ControlPlane.Object.Spec.Replicas)
	assert.Equal(t, 1, c.ControlPlane.Object.Spec.Rollout.Strategy.RollingUpdate.MaxSurge.IntValue())

	d := c.Deployments[0]
	assert.EqualValues(t, 1, *d.Object.Spec.Replicas)
	assert.Equal(t, "v1.34.2", d.Object.Spec.Template.Spec.Version)
	wanted := map[string]string{"cluster.x-k8s.io/cluster-name": "quick", "cluster.x-k8s.io/deployment-name": "quick-md-0"}
	assert.Equal(t, wanted, d.Object.Spec.Selector.MatchLabels)
	assert.Equal(t, wanted, d.Object.Spec.Template.Labels)

	machine := d.Template.Spec.Template.Spec
	assert.Equal(t, infrav1.SecretBackendSecretsManager, machine.CloudInit.SecureSecretsBackend)
	require.NotNil(t, machine.InstanceMetadataOptions)
	assert.Equal(t, infrav1.HTTPTokensStateOptional, machine.InstanceMetadataOptions.HTTPTokens)

	network := c.Infra.Spec.NetworkSpec
	require.NotNil(t, network.CNI)
	assert.Len(t, network.CNI.CNIIngressRules, 2, "Calico is the default")
	assert.Equal(t, "internet-facing", c.Infra.Spec.ControlPlaneLoadBalancer.Scheme.String())
	assert.Equal(t, infrav1.CidrBlocks{"0.0.0.0/0", "::/0"}, c.Infra.Spec.Bastion.AllowedCIDRBlocks)
}

func TestIdentityChain(t *testing.T) {
	c := manifests.MustLoad(t, manifests.Read(t, "testdata/good/quickstart.yaml"), input.LoadOptions{})
	require.Len(t, c.Identity, 2, "the source comes first")
	assert.Equal(t, "AWSClusterStaticIdentity/jump", c.Identity[0].Origin)
	assert.Equal(t, &manifest.StaticIdentity{AccessKeyID: "AKIAEXAMPLE", SecretAccessKey: "example-secret"}, c.Identity[0].Static)
	assert.Equal(t, "AWSClusterRoleIdentity/builder", c.Identity[1].Origin)
	assert.Equal(t, "arn:aws:iam::123456789012:role/builder", c.Identity[1].Role.RoleArn)
}

// allowedNamespaces uses the labels of a Namespace in the input.
func TestIdentityBySelector(t *testing.T) {
	yaml := manifests.Edit(t, manifests.Read(t, "testdata/good/quickstart.yaml"),
		"kind: Namespace\nmetadata:\n  name: prod\n", "kind: Namespace\nmetadata:\n  name: prod\n  labels: {team: a}\n",
		"    list: [prod]\n", "    selector: {matchLabels: {team: a}}\n")
	assert.Len(t, manifests.MustLoad(t, yaml, input.LoadOptions{}).Identity, 2)
}

// Order: resources as listed, keys in alphabetical order, and objects of one key by
// createRank.
func TestResourceSetOrder(t *testing.T) {
	c := manifests.MustLoad(t, manifests.Read(t, "testdata/good/quickstart.yaml"), input.LoadOptions{})
	require.Len(t, c.ResourceSets, 1)
	names := []string{}
	for _, d := range c.ResourceSets[0].Documents {
		for _, name := range []string{"one", "two", "calico-system", "last", "three"} {
			if strings.Contains(d.Title(), name) {
				names = append(names, name)
			}
		}
	}
	assert.Equal(t, []string{"two", "one", "calico-system", "last", "three"}, names)
	assert.Equal(t, "rules: []\n", string(c.Secrets["audit"].Data["policy"]))
	assert.Contains(t, c.ConfigMaps, "cni")
}

func TestSingleMachines(t *testing.T) {
	c := manifests.MustLoad(t, manifests.Read(t, "testdata/good/machines.yaml"), input.LoadOptions{Region: "eu-north-1", Strict: true})
	assert.Equal(t, "eu-north-1", c.Region)
	assert.Equal(t, "eu-north-1", c.Infra.Spec.Region)
	assert.Equal(t, "v1.33.1", c.Version)
	assert.Nil(t, c.ControlPlane)
	require.Len(t, c.Machines, 2)
	assert.True(t, c.Machines[0].ControlPlane)
	assert.Equal(t, infrav1.IgnitionStorageTypeOptionClusterObjectStore, c.Machines[0].Infra.Spec.Ignition.StorageType)
	assert.Equal(t, "cloud-provider", c.Machines[0].Bootstrap.Spec.InitConfiguration.NodeRegistration.KubeletExtraArgs[0].Name)
	assert.False(t, c.Machines[1].ControlPlane)
	assert.Nil(t, c.Machines[1].Bootstrap)
	assert.EqualValues(t, 10, *c.Machines[1].Object.Spec.Deletion.NodeDeletionTimeoutSeconds)
	assert.Equal(t, "default", c.Machines[1].Infra.Namespace)
}

func TestSeveralSources(t *testing.T) {
	whole := manifests.Read(t, "testdata/good/quickstart.yaml")
	half := strings.Index(whole, "---\napiVersion: controlplane")
	c, err := loader.Load([]input.Source{
		{Name: "-", Data: []byte(whole[half:])},
		{Name: "first.yaml", Data: []byte(whole[:half])},
	}, input.LoadOptions{})
	require.NoError(t, err)
	assert.Equal(t, manifest.Position{File: "-", Line: 3}, c.At("KubeadmControlPlane/quick-control-plane", "kind"))
	assert.Equal(t, "first.yaml", c.At("Cluster/quick", "").File)
}

func TestPositions(t *testing.T) {
	c := manifests.MustLoad(t, manifests.Read(t, "testdata/good/quickstart.yaml"), input.LoadOptions{})
	for _, tt := range []struct {
		object, path string
		line         int
		origin       string
	}{
		{"AWSCluster/quick", "spec.region", 33, "cluster.yaml:33 AWSCluster/quick spec.region"},
		{"AWSCluster/quick", "spec.controlPlaneLoadBalancer.scheme", 34, "cluster.yaml:34 AWSCluster/quick spec.controlPlaneLoadBalancer.scheme"},
		{"AWSCluster/quick", "spec.network.subnets[0].id", 32, "cluster.yaml:32 AWSCluster/quick spec.network.subnets[0].id"},
		{"AWSCluster/quick", "", 27, "cluster.yaml:27 AWSCluster/quick"},
		{"AWSCluster/none", "spec", 0, "AWSCluster/none spec"},
	} {
		assert.Equal(t, tt.line, c.At(tt.object, tt.path).Line, tt.origin)
		assert.Equal(t, tt.origin, c.Origin(tt.object, tt.path))
	}
}

// A field that has another name in an older API version is found by its new name.
func TestPositionsOfMovedFields(t *testing.T) {
	data, err := os.ReadFile(filepath.Join(manifests.Templates, "cluster-template.yaml"))
	if err != nil {
		t.Skip("CAPA's templates are not installed")
	}
	c := manifests.MustLoad(t, string(data), input.LoadOptions{Lookup: manifests.Lookup(manifests.QuickStart())})
	assert.Equal(t,
		c.At("KubeadmControlPlane/quick-control-plane", "spec.machineTemplate.infrastructureRef.name"),
		c.At("KubeadmControlPlane/quick-control-plane", "spec.machineTemplate.spec.infrastructureRef.name"))
	assert.NotZero(t, c.At("KubeadmControlPlane/quick-control-plane", "spec.machineTemplate.spec.infrastructureRef.name").Line)
}

// An object without a value that it needs still has its other problems, and those of its references.
func TestProblemsBesideARequiredValue(t *testing.T) {
	const plane = "  version: v1.34.2\n  replicas: 1"
	for what, version := range map[string]string{"missing": "  replicas: 1", "a number": "  version: 1.34\n  replicas: 1", "empty": "  version: ''\n  replicas: 1"} {
		text := manifests.Edit(
			t,
			manifests.Plain(t),
			plane,
			version,
			"kind: AWSMachineTemplate\nmetadata:\n  name: quickstart-control-plane",
			"kind: AWSMachineTemplate\nmetadata:\n  name: other",
		)
		_, err := manifests.Load(t, text, input.LoadOptions{})
		require.ErrorContains(t, err, "KubeadmControlPlane/quickstart-control-plane spec.version: ", what)
		require.ErrorContains(t, err, "there is no AWSMachineTemplate/quickstart-control-plane in the input", what)
		assert.Equal(t, 1, strings.Count(err.Error(), "spec.version"), what)
		_, err = manifests.Load(t, manifests.Edit(t, manifests.Plain(t), plane, version), input.LoadOptions{})
		require.Error(t, err)
		assert.NotContains(t, err.Error(), "\n", "%s: one problem", what)
	}
}
