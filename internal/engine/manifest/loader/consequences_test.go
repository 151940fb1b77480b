package loader_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/enginetest/manifests"
	"github.com/clusterawsadm/clusterawsadm/pkg/input"
)

// A mistake is one line, also if it makes something else missing.
func TestOneMistakeIsOneProblem(t *testing.T) {
	nodes := manifests.Read(t, "testdata/good/pools.yaml")
	group := "---\napiVersion: cluster.x-k8s.io/v1beta1\nkind: MachinePool\nmetadata: {name: p, namespace: prod}\nspec:\n  clusterName: shop\n  template:\n    spec:\n" +
		"      clusterName: shop\n      bootstrap: {dataSecretName: \"\"}\n" +
		"      infrastructureRef: {apiVersion: infrastructure.cluster.x-k8s.io/v1beta2, kind: AWSManagedMachinePool, name: p}\n" +
		"---\napiVersion: infrastructure.cluster.x-k8s.io/v1beta2\nkind: AWSManagedMachinePool\nmetadata: {name: p, namespace: prod}\nspec:\n  scaling: "
	for _, tt := range []struct{ name, yaml, want string }{
		{
			"mapping where a list should be", manifests.Edit(t, nodes, "kubeletExtraArgs: [{name: cloud-provider, value: external}]", "kubeletExtraArgs: {cloud-provider: external, v: \"2\"}"),
			"initConfiguration.nodeRegistration.kubeletExtraArgs: must be of type array, not object — write a list, or use controlplane.cluster.x-k8s.io/v1beta1, where it is a mapping",
		},
		{
			"name with a mistake", manifests.Edit(t, nodes, "  clusterName: farm\n  failureDomains", "  clusterNam: farm\n  failureDomains"),
			`MachinePool/farm-pool spec.clusterNam: the field does not exist — did you mean "clusterName"?`,
		},
		{
			"rule of a webhook and of AWS", manifests.Edit(t, manifests.Read(t, "../../../../configs/eks.yaml"), "  version: v1.34\n", "  version: v1.34\n  secondaryCidrBlock: 100.64.0.0/10\n"),
			`spec.secondaryCidrBlock: "100.64.0.0/10": CIDR block sizes must be between a /16 netmask and /28 netmask`,
		},
		{
			"name with a mistake of what a webhook requires", manifests.Edit(t, manifests.Read(t, "../../../../configs/multi-tenancy.yaml"), "sourceIdentityRef:", "sourceidentityRef:"),
			`spec.sourceidentityRef: the field does not exist — did you mean "sourceIdentityRef"?`,
		},
		{
			"machines of the control plane of EKS", manifests.Read(t, "testdata/eks-class-with-machines.yaml"),
			"ClusterClass/class spec.controlPlane.machineInfrastructure: the control plane of EKS has no machines of the cluster — remove it",
		},
		{
			"field of v1beta1", manifests.Edit(t, nodes, "  machineTemplate:\n    spec:\n      infrastructureRef:", "  machineTemplate:\n      infrastructureRef:"),
			"spec.machineTemplate.infrastructureRef: the field does not exist in v1beta2, but in v1beta1 — use controlplane.cluster.x-k8s.io/v1beta1",
		},
		{
			"field of v1alpha3", manifests.Edit(t, nodes, "  machineTemplate:\n    spec:\n      infrastructureRef:", "  infrastructureTemplate:"),
			"spec.infrastructureTemplate: the field does not exist — its name is now spec.machineTemplate.spec.infrastructureRef",
		},
		{
			"network of v1alpha3", manifests.Edit(t, nodes, "  region: eu-west-1\n", "  region: eu-west-1\n  networkSpec: {vpc: {cidrBlock: 10.0.0.0/16}}\n"),
			"spec.networkSpec: the field does not exist — its name is now spec.network",
		},
		{
			"field in the wrong place", manifests.Edit(t, nodes, "kind: AWSCluster\nmetadata: {name: farm}\n", "kind: AWSCluster\nmetadata: {name: farm}\nbastion: {enabled: true}\n"),
			"AWSCluster/farm bastion: the field does not exist — move it to spec.bastion",
		},
		{"image that is none", manifests.Edit(t, nodes, "{instanceType: t3.large,", "{instanceType: t3.large, ami: {id: ubuntu},"), `spec.template.spec.ami.id: "ubuntu" is not the ID of an image — set an ID such as`},
		{"node group that is invalid", manifests.Read(t, "testdata/good/eks.yaml") + group + "many\n", "AWSManagedMachinePool/p spec.scaling: must be of type object, not string — write a mapping"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := manifests.Load(t, tt.yaml, input.LoadOptions{})
			require.ErrorContains(t, err, tt.want)
			assert.NotContains(t, err.Error(), "\n", "one problem")
		})
	}
}

// Required fields that a mutating webhook writes may be missing, as in upstream.
func TestRequiredFieldsOfWebhooks(t *testing.T) {
	quick := manifests.Read(t, "testdata/good/pools.yaml")
	deployment := "---\napiVersion: cluster.x-k8s.io/v1beta2\nkind: MachineDeployment\nmetadata: {name: m}\nspec:\n  clusterName: farm\n  template:\n    spec:\n      clusterName: farm\n      version: v1.34.2\n" +
		"      bootstrap: {configRef: {apiGroup: bootstrap.cluster.x-k8s.io, kind: KubeadmConfigTemplate, name: m}}\n" +
		"      infrastructureRef: {apiGroup: infrastructure.cluster.x-k8s.io, kind: AWSMachineTemplate, name: farm}\n" +
		"---\napiVersion: bootstrap.cluster.x-k8s.io/v1beta2\nkind: KubeadmConfigTemplate\nmetadata: {name: m}\nspec: {template: {spec: {joinConfiguration: {nodeRegistration: {kubeletExtraArgs: [{name: cloud-provider, value: external}]}}}}}\n"
	c := manifests.MustLoad(
		t,
		manifests.Edit(t, quick, "  region: eu-west-1\n", "  region: eu-west-1\n  network:\n    cni: {cniIngressRules: [{protocol: \"-1\"}]}\n")+deployment,
		input.LoadOptions{},
	)
	require.Len(t, c.Deployments, 1)
	selector := c.Deployments[0].Object.Spec.Selector.MatchLabels
	assert.Equal(t, map[string]string{"cluster.x-k8s.io/cluster-name": "farm", "cluster.x-k8s.io/deployment-name": "m"}, selector)
	assert.Subset(t, c.Deployments[0].Object.Spec.Template.Labels, selector)
}

// Charts write "", [] and {} into fields that they do not set: that is no setting that has no effect.
func TestEmptyValuesAreNoSettings(t *testing.T) {
	eks := manifests.Read(t, "../../../../configs/eks.yaml")
	const region = "  region: us-east-1\n"
	const infra = "kind: AWSManagedCluster\nmetadata:\n  name: eks\nspec: {"
	empty := manifests.Edit(
		t,
		eks,
		infra,
		infra+"controlPlaneEndpoint: {host: \"\", port: 0}",
		region,
		region+"  bastion: {enabled: false, allowedCIDRBlocks: [], ami: \"\", disableIngressRules: false, instanceType: \"\"}\n"+
			"  encryptionConfig: {provider: \"\", resources: []}\n",
	)
	assert.Len(t, manifests.Warnings(manifests.MustLoad(t, empty, input.LoadOptions{})), len(manifests.Warnings(manifests.MustLoad(t, eks, input.LoadOptions{}))))
	nodes := manifests.Read(t, "testdata/good/pools.yaml")
	for _, empty := range []string{"vpc: {internetGatewayId: \"\", tags: {}}", "subnets: []"} {
		c := manifests.MustLoad(t, manifests.Edit(t, nodes, "  region: eu-west-1\n", "  region: eu-west-1\n  network: {"+empty+"}\n"), input.LoadOptions{})
		assert.Len(t, manifests.Warnings(c), len(manifests.Warnings(manifests.MustLoad(t, nodes, input.LoadOptions{}))), empty)
	}
	c := manifests.MustLoad(
		t,
		manifests.Edit(t, nodes, "  region: eu-west-1\n", "  region: eu-west-1\n  network: {vpc: {internetGatewayId: igw-1}}\n"),
		input.LoadOptions{},
	)
	assert.Len(t, manifests.Warnings(c), 1+len(manifests.Warnings(manifests.MustLoad(t, nodes, input.LoadOptions{}))))
}
