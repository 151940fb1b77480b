package class_test

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	infrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/api/v1beta2"

	"github.com/clusterawsadm/clusterawsadm/internal/enginetest/manifests"
	"github.com/clusterawsadm/clusterawsadm/pkg/input"
	"github.com/clusterawsadm/clusterawsadm/test/upstream"
)

// CAPA's templates with a class load, and the values of variables are applied.
func TestUpstreamClass(t *testing.T) {
	path := filepath.Join(manifests.Templates, "cluster-template-simple-clusterclass.yaml")
	if _, err := os.Stat(path); err != nil {
		t.Skip("CAPA's templates are not installed")
	}
	values := manifests.QuickStart()
	maps.Copy(values, map[string]string{"CNI_RESOURCES": "{}", "AWS_SSH_KEY_NAME": "mine", "AWS_NODE_MACHINE_TYPE": "m5.large"})
	c := manifests.MustLoad(t, withoutBuiltInProvider(manifests.Read(t, path)), input.LoadOptions{Lookup: manifests.Lookup(values)})
	assert.Equal(t, "eu-west-1", c.Region)
	assert.Equal(t, "v1.34.2", c.Version)
	assert.Equal(t, "mine", *c.Infra.Spec.SSHKeyName)
	require.NotNil(t, c.ControlPlane)
	assert.Equal(t, 3, c.ControlPlane.Replicas())
	assert.Equal(t, "t3.large", c.ControlPlane.Template.Spec.Template.Spec.InstanceType)
	require.Len(t, c.Deployments, 1)
	assert.Equal(t, "quick-md-0", c.Deployments[0].Object.Name)
	assert.Equal(t, "m5.large", c.Deployments[0].Template.Spec.Template.Spec.InstanceType)
	assert.Equal(t, "mine", *c.Deployments[0].Template.Spec.Template.Spec.SSHKeyName)
	assert.Equal(
		t,
		"cluster.yaml:24 AWSMachineTemplate/quick-md-0 spec.template.spec.instanceType",
		c.Origin("AWSMachineTemplate/quick-md-0", "spec.template.spec.instanceType"),
	)
	assert.Empty(t, manifests.Warnings(c))
}

// withoutBuiltInProvider replaces the cloud provider of AWS in the components of Kubernetes, which 1.27
// removed, and which upstream's classes still have.
func withoutBuiltInProvider(yaml string) string {
	return strings.ReplaceAll(yaml, "cloud-provider: aws", "cloud-provider: external")
}

// The class with tenants patches fields that CAPA's webhook adds to its template, and the
// Cluster sets variables that are objects.
func TestUpstreamTenantClass(t *testing.T) {
	yaml := manifests.Read(t, filepath.Join(upstream.Dir(t), "templates", "cluster-template-multitenancy-clusterclass.yaml"))
	yaml = withoutBuiltInProvider(yaml)
	values := manifests.QuickStart()
	maps.Copy(values, map[string]string{
		"CNI_RESOURCES": "{}", "AWS_ACCOUNT_ID": "123456789012",
		"MULTI_TENANCY_JUMP_ROLE_ARN": "arn:aws:iam::123456789012:role/jump", "MULTI_TENANCY_JUMP_IDENTITY_NAME": "jump",
		"MULTI_TENANCY_NESTED_ROLE_ARN": "arn:aws:iam::123456789012:role/nested", "MULTI_TENANCY_NESTED_IDENTITY_NAME": "nested",
	})
	c := manifests.MustLoad(t, yaml, input.LoadOptions{Lookup: manifests.Lookup(values)})
	assert.True(t, c.Infra.Spec.Bastion.Enabled)
	assert.Equal(t, 1, *c.Infra.Spec.NetworkSpec.VPC.AvailabilityZoneUsageLimit)
	assert.Equal(t, "nested-quick", c.Infra.Spec.IdentityRef.Name)
	assert.Len(t, c.Identity, 2)
	assert.Equal(t, "t3.large", c.Deployments[0].Template.Spec.Template.Spec.InstanceType)
}

// A patch of a v1beta1 template finds the fields that it has in an API server: those that are never
// omitted, and the defaults.
func TestPatchesOfOlderTemplates(t *testing.T) {
	yaml := strings.ReplaceAll(
		manifests.Read(t, filepath.Join(upstream.Dir(t), "templates", "cluster-template-multitenancy-clusterclass.yaml")),
		"infrastructure.cluster.x-k8s.io/v1beta2",
		"infrastructure.cluster.x-k8s.io/v1beta1",
	)
	yaml = withoutBuiltInProvider(yaml)
	require.Contains(t, yaml, "/spec/template/spec/bastion/enabled")
	yaml = strings.Replace(yaml, "        loadBalancerType: nlb\n", "        scheme: internet-facing\n", 1) // v1beta1 has no other type
	values := manifests.QuickStart()
	maps.Copy(values, map[string]string{
		"CNI_RESOURCES": "{}", "AWS_ACCOUNT_ID": "123456789012",
		"MULTI_TENANCY_JUMP_ROLE_ARN": "arn:aws:iam::123456789012:role/jump", "MULTI_TENANCY_JUMP_IDENTITY_NAME": "jump",
		"MULTI_TENANCY_NESTED_ROLE_ARN": "arn:aws:iam::123456789012:role/nested", "MULTI_TENANCY_NESTED_IDENTITY_NAME": "nested",
	})
	c := manifests.MustLoad(t, yaml, input.LoadOptions{Lookup: manifests.Lookup(values)})
	assert.True(t, c.Infra.Spec.Bastion.Enabled)
	assert.Equal(t, 1, *c.Infra.Spec.NetworkSpec.VPC.AvailabilityZoneUsageLimit)
	assert.Equal(t, "t3.large", c.Deployments[0].Template.Spec.Template.Spec.InstanceType)
}

// In a v1beta1 template of kubeadm, the structures of a component exist, so a patch may add to them.
func TestPatchesOfOlderKubeadmTemplates(t *testing.T) {
	const class = `apiVersion: cluster.x-k8s.io/v1beta1
kind: ClusterClass
metadata: {name: c}
spec:
  infrastructure: {ref: {apiVersion: infrastructure.cluster.x-k8s.io/v1beta2, kind: AWSClusterTemplate, name: c}}
  controlPlane:
    ref: {apiVersion: controlplane.cluster.x-k8s.io/v1beta1, kind: KubeadmControlPlaneTemplate, name: c}
    machineInfrastructure: {ref: {apiVersion: infrastructure.cluster.x-k8s.io/v1beta1, kind: AWSMachineTemplate, name: c}}
  patches:
  - name: arguments
    definitions:
    - selector: {apiVersion: controlplane.cluster.x-k8s.io/v1beta1, kind: KubeadmControlPlaneTemplate, matchResources: {controlPlane: true}}
      jsonPatches:
      - {op: add, path: /spec/template/spec/kubeadmConfigSpec/clusterConfiguration/controllerManager/extraArgs, value: {v: "4"}}
      - {op: add, path: /spec/template/spec/kubeadmConfigSpec/initConfiguration/nodeRegistration/kubeletExtraArgs, value: {v: "5"}}
---
apiVersion: controlplane.cluster.x-k8s.io/v1beta1
kind: KubeadmControlPlaneTemplate
metadata: {name: c}
spec:
  template:
    spec:
      kubeadmConfigSpec: {clusterConfiguration: {imageRepository: registry.k8s.io}, initConfiguration: {patches: {directory: /etc/patches}}}
---
apiVersion: infrastructure.cluster.x-k8s.io/v1beta2
kind: AWSClusterTemplate
metadata: {name: c}
spec: {template: {spec: {region: eu-west-1, controlPlaneLoadBalancer: {loadBalancerType: nlb}}}}
---
apiVersion: infrastructure.cluster.x-k8s.io/v1beta1
kind: AWSMachineTemplate
metadata: {name: c}
spec: {template: {spec: {instanceType: t3.large, iamInstanceProfile: control-plane.cluster-api-provider-aws.sigs.k8s.io}}}
---
apiVersion: cluster.x-k8s.io/v1beta1
kind: Cluster
metadata: {name: a}
spec:
  clusterNetwork: {pods: {cidrBlocks: [192.168.0.0/16]}}
  topology: {class: c, version: v1.34.2, controlPlane: {replicas: 1}}
`
	c := manifests.MustLoad(t, class, input.LoadOptions{})
	arguments := c.ControlPlane.Object.Spec.KubeadmConfigSpec.ClusterConfiguration.ControllerManager.ExtraArgs
	require.Len(t, arguments, 1)
	assert.Equal(t, "4", *arguments[0].Value)
	kubelet := c.ControlPlane.Object.Spec.KubeadmConfigSpec.InitConfiguration.NodeRegistration.KubeletExtraArgs
	require.Len(t, kubelet, 1)
	assert.Equal(t, "5", *kubelet[0].Value)
}

// The ClusterClass example describes the same cluster as the quick start: the objects are
// equal except for topology labels and template names.
func TestClassOfQuickStart(t *testing.T) {
	plain := manifests.MustLoad(t, manifests.Read(t, "../../../../configs/quickstart.yaml"), input.LoadOptions{})
	c := manifests.MustLoad(t, manifests.Read(t, "../../../../configs/clusterclass.yaml"), input.LoadOptions{})
	vpc := &c.Infra.Spec.NetworkSpec.VPC // contains more explicit defaults
	vpc.AvailabilityZoneUsageLimit, vpc.AvailabilityZoneSelection, vpc.SubnetSchema = nil, nil, nil
	assert.Equal(t, plain.Infra.Spec, c.Infra.Spec)
	assert.Equal(t, plain.Infra.Name, c.Infra.Name)
	assert.Equal(t, plain.ControlPlane.Object.Name, c.ControlPlane.Object.Name)
	assert.Equal(t, plain.ControlPlane.Object.Spec.KubeadmConfigSpec, c.ControlPlane.Object.Spec.KubeadmConfigSpec)
	assert.Equal(t, plain.ControlPlane.Template.Spec, c.ControlPlane.Template.Spec)
	require.Len(t, c.Deployments, 1)
	assert.Equal(t, plain.Deployments[0].Object.Name, c.Deployments[0].Object.Name)
	assert.Equal(t, plain.Deployments[0].Template.Spec, c.Deployments[0].Template.Spec)
	assert.Equal(t, plain.Deployments[0].Bootstrap.Spec, c.Deployments[0].Bootstrap.Spec)
	assert.Equal(t, manifests.Warnings(plain), manifests.Warnings(c))
	assert.False(t, c.Object.Spec.Topology.IsDefined())
	assert.Contains(t, c.Object.Labels, "topology.cluster.x-k8s.io/owned")
	for _, origin := range []struct{ object, path, want string }{
		{"AWSCluster/quickstart", "spec.region", "cluster.yaml:27 AWSCluster/quickstart spec.region"},
		{"AWSCluster/quickstart", "spec.sshKeyName", "cluster.yaml:85 AWSCluster/quickstart spec.sshKeyName"},
		{"AWSCluster/quickstart", "spec.controlPlaneLoadBalancer.loadBalancerType", "cluster.yaml:144 AWSCluster/quickstart spec.controlPlaneLoadBalancer.loadBalancerType"},
		{"KubeadmControlPlane/quickstart-control-plane", "spec.version", "cluster.yaml:22 KubeadmControlPlane/quickstart-control-plane spec.version"},
		{"MachineDeployment/quickstart-md-0", "spec.replicas", "cluster.yaml:35 MachineDeployment/quickstart-md-0 spec.replicas"},
	} {
		assert.Equal(t, origin.want, c.Origin(origin.object, origin.path))
	}
}

// A template may be written in another version than the one that the ClusterClass refers to. An API server converts it, so patches
// are applied to the version of the ClusterClass. A warning names both versions.
func TestTemplatesOfAnotherVersion(t *testing.T) {
	const (
		infrastructure = "infrastructure.cluster.x-k8s.io/"
		controlPlane   = "controlplane.cluster.x-k8s.io/"
	)
	yaml := manifests.Read(t, "../../../../configs/clusterclass.yaml")
	at := strings.Index(yaml, "apiVersion: "+infrastructure+"v1beta2\nkind: AWSClusterTemplate\nmetadata:")
	require.Positive(t, at)
	class, templates := yaml[:at], yaml[at:]
	older := manifests.Edit(t, templates, "      controlPlaneLoadBalancer:\n        loadBalancerType: nlb\n", "      sshKeyName: ops\n") // which v1beta1 has
	for range 2 {
		from, to := strings.Index(older, "      instanceMetadataOptions:"), 0
		to = from + strings.Index(older[from:], "---\n")
		older = older[:from] + older[to:]
	}
	for _, tt := range []struct{ name, yaml, kind string }{
		{"references of v1beta1", strings.ReplaceAll(class, infrastructure+"v1beta2\n", infrastructure+"v1beta1\n") + templates, "AWSClusterTemplate"},
		{"templates of v1beta1", class + strings.ReplaceAll(older, infrastructure+"v1beta2\n", infrastructure+"v1beta1\n"), "AWSMachineTemplate"},
		{"kubeadm", strings.ReplaceAll(class, controlPlane+"v1beta2\n", controlPlane+"v1beta1\n") + templates, "KubeadmControlPlaneTemplate"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := manifests.MustLoad(t, tt.yaml, input.LoadOptions{})
			assert.Equal(t, "us-east-1", c.Infra.Spec.Region, "what a patch has set")
			if tt.name == "references of v1beta1" {
				assert.Equal(t, infrav1.LoadBalancerTypeNLB, c.Infra.Spec.ControlPlaneLoadBalancer.LoadBalancerType, "nothing is lost")
			}
			assert.Equal(t, "t3.large", c.ControlPlane.Template.Spec.Template.Spec.InstanceType)
			all := strings.Join(manifests.Warnings(c), "\n")
			assert.Regexp(
				t,
				tt.kind+`/self-managed\S* apiVersion: the template has the version \S+/v1beta[12], but the ClusterClass refers to \S+/v1beta[12] — use the same version in both`,
				all,
			)
		})
	}
	for _, version := range []string{infrastructure + "v1alpha3", "other.example.com/v1beta2"} {
		_, err := manifests.Load(
			t,
			manifests.Edit(t, yaml, infrastructure+"v1beta2\n      kind: AWSClusterTemplate", version+"\n      kind: AWSClusterTemplate"),
			input.LoadOptions{},
		)
		require.ErrorContains(t, err, version)
		assert.NotContains(t, err.Error(), "bug in")
	}
}

// Every error in a class or topology is reported with its line.
func TestClassRules(t *testing.T) {
	const (
		region = "    - name: region\n      value: us-east-1\n"
		patch  = "        path: /spec/template/spec/region\n        valueFrom:\n          variable: region\n"
	)
	for name, tt := range map[string]struct {
		edit []string
		want string
	}{
		"versions that go down": {[]string{"  variables:\n  - name: region\n", "  kubernetesVersions: [v1.34.2, v1.33.0]\n  variables:\n  - name: region\n"}, `cluster.yaml:72: ClusterClass/self-managed spec.kubernetesVersions[1]: v1.33.0 is not newer than v1.34.2 before it — sort the versions, the oldest first`},
		"versions with a gap":   {[]string{"  variables:\n  - name: region\n", "  kubernetesVersions: [v1.32.0, v1.34.2]\n  variables:\n  - name: region\n"}, `cluster.yaml:72: ClusterClass/self-managed spec.kubernetesVersions[1]: v1.34.2 after v1.32.0 skips a minor version — add a version of 1.33`},
		"example of a type":     {[]string{"        pattern: ^[a-z]+(-[a-z]+)+-[0-9]+$\n", "        pattern: ^[a-z]+(-[a-z]+)+-[0-9]+$\n        example: 5\n"}, `cluster.yaml:79: ClusterClass/self-managed spec.variables[0].schema.openAPIV3Schema.example: the example does not fit the schema of the variable "region": must be of type string: "integer" — change the example, or remove it`},
		"variable missing":      {[]string{region, ""}, `cluster.yaml:25: Cluster/quickstart spec.topology.variables: the ClusterClass requires the variable "region" — set it`},
		"variable unknown":      {[]string{region, region + "    - {name: regoin, value: x}\n"}, `cluster.yaml:28: Cluster/quickstart spec.topology.variables[1].name: the ClusterClass has no variable "regoin" — its variables are instanceTypes, region, sshKeyName`},
		"variable of no form":   {[]string{"value: us-east-1", "value: London"}, `cluster.yaml:27: Cluster/quickstart spec.topology.variables[0].value: the variable "region": should match '^[a-z]+(-[a-z]+)+-[0-9]+$' — change the value`},
		"variable of a type":    {[]string{"value: us-east-1", "value: 1"}, `cluster.yaml:27: Cluster/quickstart spec.topology.variables[0].value: the variable "region": must be of type string: "integer" — change the value`},
		"rule of a variable that is no CEL": {
			[]string{"pattern: ^[a-z]+(-[a-z]+)+-[0-9]+$", "x-kubernetes-validations: [{rule: self.foo}]"},
			`cluster.yaml:76: ClusterClass/self-managed spec.variables[0].schema.openAPIV3Schema: the schema of the variable "region": rule compile error`,
		},
		"field unknown": {
			[]string{"controlPlane: t3.large\n    workers", "controlPlan: t3.large\n    workers"},
			`cluster.yaml:30: Cluster/quickstart spec.topology.variables[1].value.controlPlan: the schema of the variable "instanceTypes" has no such field — it has controlPlane, worker`,
		},
		"override unknown": {
			[]string{"replicas: 1\n---", "replicas: 1\n        variables: {overrides: [{name: x, value: 1}]}\n---"},
			`cluster.yaml:36: Cluster/quickstart spec.topology.workers.machineDeployments[0].variables.overrides[0].name: the ClusterClass has no variable "x" — its variables are instanceTypes, region, sshKeyName`,
		},
		"autoscaled replicas": {
			[]string{"class: worker\n        name", "class: worker\n        metadata: {annotations: {cluster.x-k8s.io/cluster-api-autoscaler-node-group-min-size: \"1\"}}\n        name"},
			`cluster.yaml:36: Cluster/quickstart spec.topology.workers.machineDeployments[0].replicas: cannot be set beside the annotations of the cluster autoscaler — remove it, or the annotations`,
		},
		"class unknown":   {[]string{"class: worker\n        name", "class: wroker\n        name"}, `cluster.yaml:33: Cluster/quickstart spec.topology.workers.machineDeployments[0].class: the ClusterClass has no MachineDeployment class "wroker" — use one of worker`},
		"template absent": {[]string{"kind: AWSClusterTemplate\n      name: self-managed", "kind: AWSClusterTemplate\n      name: other"}, `cluster.yaml:46: ClusterClass/self-managed spec.infrastructure.templateRef.name: there is no AWSClusterTemplate/other of infrastructure.cluster.x-k8s.io/v1beta2 in the input — add it, or change the reference`},
		"machine pool": {
			[]string{"    workers:\n      machineDeployments:\n      - class", "    workers:\n      machinePools: [{class: p, name: p}]\n      machineDeployments:\n      - class"},
			`cluster.yaml:32: Cluster/quickstart spec.topology.workers.machinePools: Cluster API Provider AWS has no template for machine pools, so a class cannot contain them — add a MachinePool to the manifest`,
		},
		"version": {[]string{"version: v1.34.2", "version: v1.34"}, `cluster.yaml:22: Cluster/quickstart spec.topology.version: "v1.34" is not a Kubernetes version such as v1.34.2 — change the value`},
		"external patch": {
			[]string{"  - name: instance types\n    definitions:", "  - name: extension\n    external: {generatePatchesExtension: x}\n  - name: instance types\n    definitions:"},
			`cluster.yaml:113: ClusterClass/self-managed spec.patches[1].external: the patch "extension" uses a runtime extension, which needs a management cluster — write its changes as jsonPatches`,
		},
		"external patch that defines variables": {
			[]string{
				"  - name: instance types\n    definitions:", "  - name: extension\n    external: {generatePatchesExtension: x, discoverVariablesExtension: variables}\n  - name: instance types\n    definitions:",
				"    variables:\n    - name: ", "    variables:\n    - {name: clusterConfig, value: {}}\n    - name: ",
			},
			`cluster.yaml:114: ClusterClass/self-managed spec.patches[1].external: the patch "extension" uses a runtime extension, which needs a management cluster — write its changes as jsonPatches`,
		},
		"path missing": {
			[]string{patch, strings.Replace(patch, "spec/region", "spec/network/vpcs/a", 1)},
			`cluster.yaml:105: ClusterClass/self-managed spec.patches[0].definitions[0].jsonPatches[0].path: the patch "region and key pair" for AWSClusterTemplate/self-managed: add /spec/template/spec/network/vpcs/a cannot be applied: doc is missing path: "/spec/template/spec/network/vpcs/a" — add the parent of the field first, or set it in the template`,
		},
		"index":              {[]string{patch, strings.Replace(patch, "spec/region", "spec/a/1", 1)}, `cluster.yaml:105: ClusterClass/self-managed spec.patches[0].definitions[0].jsonPatches[0].path: "/spec/template/spec/a/1" has an index — only insertions at the start (0) or the end (-) of a list are supported`},
		"unknown field made": {[]string{"path: /spec/template/spec/sshKeyName", "path: /spec/template/spec/sshKeyNam"}, `cluster.yaml:85: AWSCluster/quickstart spec.sshKeyNam: the field does not exist — did you mean "sshKeyName"?`},
		"function unknown":   {[]string{"variable: region", `template: "{{ env .region }}"`}, `cluster.yaml:107: ClusterClass/self-managed spec.patches[0].definitions[0].jsonPatches[0].valueFrom.template: line 1 of the template: the function "env" is not supported — write it without this function`},
		"template fails": {
			[]string{"variable: region", `template: "{{ .region.name }}"`},
			`cluster.yaml:106: ClusterClass/self-managed spec.patches[0].definitions[0].jsonPatches[0].valueFrom: the patch "region and key pair" for AWSClusterTemplate/self-managed: line 1 of the template: can't evaluate field name in a string`,
		},
		"condition": {[]string{"  - name: instance types\n", "  - name: instance types\n    enabledIf: '{{ if }}'\n"}, `cluster.yaml:113: ClusterClass/self-managed spec.patches[1].enabledIf: line 1 of the template: missing value for if`},
		"selector":  {[]string{"infrastructureCluster: true", "infrastructureCluster: false"}, `cluster.yaml:98: ClusterClass/self-managed spec.patches[0].definitions[0].selector: the selector matches nothing — set matchResources`},
		"name":      {[]string{"'{{ .cluster.name }}-control-plane'", "'{{ .cluster.nam }}'"}, `cluster.yaml:53: ClusterClass/self-managed spec.controlPlane.naming.template: the naming template does not result in a valid name: line 1 of the template: .nam is not defined — use {{ .cluster.name }}, {{ .machineDeployment.topologyName }} for machine deployments, and {{ .random }}`},
		"schema":    {[]string{"pattern: ^[a-z]+(-[a-z]+)+-[0-9]+$", "type: strin"}, `cluster.yaml:78: ClusterClass/self-managed spec.variables[0].schema.openAPIV3Schema.type: the key "type" is duplicated, first on line 77 — keep one of them`},
		"default":   {[]string{"default: \"\"", "default: 1"}, `cluster.yaml:85: ClusterClass/self-managed spec.variables[1].schema.openAPIV3Schema.default: the schema of the variable "sshKeyName" is invalid: must be of type string: "integer"`},
	} {
		t.Run(name, func(t *testing.T) {
			yaml := manifests.Edit(t, manifests.Read(t, "../../../../configs/clusterclass.yaml"), tt.edit...)
			_, err := manifests.Load(t, yaml, input.LoadOptions{})
			require.Error(t, err)
			assert.True(t, strings.HasPrefix(err.Error(), tt.want), "%s", err)
			assert.NotContains(t, err.Error(), "\n", "one problem, one line")
		})
	}
}

// A class of workers that no topology uses may name templates that are not in the input. One that a topology uses may not.
func TestUnusedClass(t *testing.T) {
	text := manifests.Read(t, "../../../../configs/clusterclass.yaml")
	const workers = "  workers:\n    machineDeployments:\n    - class: worker\n"
	unused := strings.ReplaceAll(
		text[strings.Index(text, workers)+len("  workers:\n    machineDeployments:\n"):strings.Index(text, "  variables:\n  - name: region\n")],
		"name: self-managed",
		"name: other",
	)
	unused = strings.Replace(unused, "class: worker", "class: unused", 1)
	text = manifests.Edit(t, text, workers, "  workers:\n    machineDeployments:\n"+unused+"    - class: worker\n")
	manifests.MustLoad(t, text, input.LoadOptions{})
	_, err := manifests.Load(t, manifests.Edit(t, text, "      - class: worker\n", "      - class: unused\n"), input.LoadOptions{})
	require.ErrorContains(t, err, "spec.workers.machineDeployments[0].bootstrap.templateRef.name: there is no KubeadmConfigTemplate/other")
}

// Health checks of the class and of the topology become MachineHealthChecks. That of the
// topology replaces that of the class, or turns it off.
func TestHealthChecksOfClasses(t *testing.T) {
	const class = "    healthCheck: {checks: {nodeStartupTimeoutSeconds: 900}}\n    machineInfrastructure:\n"
	const topology = "    variables:\n    - name: region\n"
	for name, tt := range map[string]struct {
		topology string
		timeout  int32
	}{
		"class":    {topology, 900},
		"topology": {"      healthCheck: {checks: {unhealthyNodeConditions: [{type: Ready, status: Unknown, timeoutSeconds: 60}]}, remediation: {triggerIf: {unhealthyInRange: '[1-2]'}}}\n" + topology, 600},
		"disabled": {"      healthCheck: {enabled: false}\n" + topology, 0},
	} {
		t.Run(name, func(t *testing.T) {
			c := manifests.MustLoad(
				t,
				manifests.Edit(t, manifests.Read(t, "../../../../configs/clusterclass.yaml"), "    machineInfrastructure:\n", class, topology, tt.topology),
				input.LoadOptions{},
			)
			assert.Empty(t, manifests.Warnings(c))
			if tt.timeout == 0 {
				require.Empty(t, c.HealthChecks)
				return
			}
			require.Len(t, c.HealthChecks, 1)
			spec := c.HealthChecks[0].Spec
			assert.Equal(t, map[string]string{"cluster.x-k8s.io/control-plane": "", "topology.cluster.x-k8s.io/owned": ""}, spec.Selector.MatchLabels)
			assert.Equal(t, tt.timeout, *spec.Checks.NodeStartupTimeoutSeconds)
			assert.Equal(t, c.ControlPlane.Object.Name, c.HealthChecks[0].Name)
		})
	}
	_, err := manifests.Load(
		t,
		manifests.Edit(t, manifests.Read(t, "../../../../configs/clusterclass.yaml"), topology, "      healthCheck: {enabled: true}\n"+topology),
		input.LoadOptions{},
	)
	require.ErrorContains(t, err, "is enabled, and neither the topology nor the class says what it checks")
	manifests.MustLoad(
		t,
		manifests.Edit(
			t,
			manifests.Read(t, "../../../../configs/clusterclass.yaml"),
			"    machineInfrastructure:\n",
			class,
			topology,
			"      healthCheck: {enabled: true}\n"+topology,
		),
		input.LoadOptions{},
	)
}
