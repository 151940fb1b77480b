package rules_test

import (
	"fmt"
	"testing"

	"github.com/clusterawsadm/clusterawsadm/internal/enginetest/manifests"
	"github.com/clusterawsadm/clusterawsadm/pkg/input"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	infrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/api/v1beta2"
)

// Fields without effect have a warning, which Options.Strict turns into a problem.
func TestWarnings(t *testing.T) {
	const object = "---\napiVersion: controlplane.cluster.x-k8s.io/v1beta2"
	for _, tt := range []struct {
		name string
		edit []string
		want string
	}{
		{
			"classic load balancer",
			[]string{"    loadBalancerType: nlb\n", "    healthCheckProtocol: TCP\n"},
			"cluster.yaml:34: AWSCluster/quick spec.controlPlaneLoadBalancer: primary control plane load balancer is using a classic elb which is deprecated & support will be removed in a future release, please consider using another type of load balancer instead — for a new cluster, write loadBalancerType: nlb",
		},
		{
			"pods and Services",
			[]string{"192.168.0.0/16", "10.100.0.0/16"},
			"cluster.yaml:17: Cluster/quick spec.clusterNetwork.pods.cidrBlocks[0]: 10.100.0.0/16 overlaps with the addresses of Services, 10.96.0.0/12 — change one of them",
		},
		{
			"pods and VPC",
			[]string{"192.168.0.0/16", "10.0.128.0/17"},
			"cluster.yaml:17: Cluster/quick spec.clusterNetwork.pods.cidrBlocks[0]: 10.0.128.0/17 overlaps with the VPC, 10.0.0.0/16: this works only with a pod network that gives pods addresses of the VPC — change one of them",
		},
		{
			"Services and VPC",
			[]string{"    pods:\n", "    services: {cidrBlocks: [10.0.0.0/24]}\n    pods:\n"},
			"cluster.yaml:16: Cluster/quick spec.clusterNetwork.services.cidrBlocks[0]: 10.0.0.0/24 overlaps with the VPC, 10.0.0.0/16: pods cannot reach what has an address in both — change one of them",
		},
		{
			"file of a kubelet",
			[]string{"value: external}\n---\n", "value: external}\n          - {name: config, value: /etc/kubelet.yaml}\n---\n"},
			"cluster.yaml:159: KubeadmConfigTemplate/quick-md-0 spec.template.spec.joinConfiguration.nodeRegistration.kubeletExtraArgs[1]: /etc/kubelet.yaml: nothing in the manifest writes it — the kubelet does not start unless the image has it: add it to files",
		},
		{
			"blocks for fewer Nodes than there are",
			[]string{"192.168.0.0/16", "192.168.0.0/24"},
			"cluster.yaml:17: Cluster/quick spec.clusterNetwork.pods.cidrBlocks[0]: 192.168.0.0/24 has blocks of /24 for 1 Nodes, and the manifest has 2: the others get none — use a larger block, such as 192.168.0.0/16, or a pod network that gives pods other addresses",
		},
		{
			"small blocks of Nodes",
			[]string{"192.168.0.0/16", "192.168.0.0/25", "    initConfiguration:\n", "    clusterConfiguration: {controllerManager: {extraArgs: [{name: node-cidr-mask-size-ipv4, value: '26'}]}}\n    initConfiguration:\n"},
			"",
		},
		{
			"another address of the API server",
			[]string{"    initConfiguration:\n", "    clusterConfiguration: {controlPlaneEndpoint: '10.9.1.1:6443'}\n    initConfiguration:\n"},
			"cluster.yaml:84: KubeadmControlPlane/quick-control-plane spec.kubeadmConfigSpec.clusterConfiguration.controlPlaneEndpoint: the machines use this address of the API server instead of that of the load balancer — remove it, unless it leads to the load balancer",
		},
		{
			"the address of the API server",
			[]string{
				"    initConfiguration:\n", "    clusterConfiguration: {controlPlaneEndpoint: 'api.example.com:6443'}\n    initConfiguration:\n",
				"  controlPlaneLoadBalancer:\n", "  controlPlaneEndpoint: {host: api.example.com, port: 6443}\n  controlPlaneLoadBalancer:\n",
			},
			"",
		},
		{
			"no blocks of Nodes",
			[]string{"192.168.0.0/16", "192.168.0.0/27", "    initConfiguration:\n", "    clusterConfiguration: {controllerManager: {extraArgs: [{name: allocate-node-cidrs, value: 'false'}]}}\n    initConfiguration:\n"},
			"cluster.yaml:84: KubeadmControlPlane/quick-control-plane spec.kubeadmConfigSpec.clusterConfiguration.controllerManager.extraArgs[0]: Nodes get no blocks of addresses for pods, which flannel and others need — remove it",
		},
		{
			"paused",
			[]string{"  clusterNetwork:\n", "  paused: true\n  clusterNetwork:\n"},
			"cluster.yaml:15: Cluster/quick spec.paused: has no effect: it pauses Cluster API's controllers, which this program does not run",
		},
		{
			"paused by annotation",
			[]string{"  labels:\n    cni", "  annotations: {cluster.x-k8s.io/paused: ''}\n  labels:\n    cni"},
			"cluster.yaml:12: Cluster/quick metadata.annotations.cluster.x-k8s.io/paused: has no effect: it pauses Cluster API's controllers, which this program does not run",
		},
		{"what Cluster API drops", []string{"    initConfiguration:\n", "    clusterConfiguration: {featureGates: {RootlessControlPlane: true}}\n    initConfiguration:\n"}, ""},
		{
			"device of the root volume",
			[]string{"      rootVolume: {size: 40, type: gp3}\n", "      rootVolume: {size: 40, type: gp3, deviceName: /dev/xvda}\n"},
			"cluster.yaml:145: AWSMachineTemplate/quick-md-0 spec.template.spec.rootVolume.deviceName: is ignored: the root volume has the device of the image, as in CAPA — remove it",
		},
		{"not paused", []string{"  clusterNetwork:\n", "  paused: false\n  clusterNetwork:\n"}, ""},
		{
			"rollout",
			[]string{"  clusterName: quick\n  selector", "  rollout: {after: \"2026-01-01T00:00:00Z\", strategy: {type: OnDelete}}\n  clusterName: quick\n  selector"},
			"",
		},
		{
			"node deletion timeout",
			[]string{"      version: 1.34.2\n      boot", "      deletion: {nodeDrainTimeoutSeconds: 60, nodeDeletionTimeoutSeconds: 60}\n      version: 1.34.2\n      boot"},
			"cluster.yaml:125: MachineDeployment/quick-md-0 spec.template.spec.deletion.nodeDeletionTimeoutSeconds: is ignored: not supported yet — the Node is deleted after its machine, without a timeout",
		},
		{
			"taints",
			[]string{"      version: 1.34.2\n      boot", "      taints: [{key: a, effect: NoSchedule, propagation: Always}]\n      version: 1.34.2\n      boot"},
			"cluster.yaml:125: MachineDeployment/quick-md-0 spec.template.spec.taints: is ignored: not supported yet — Cluster API rejects it too, unless its feature gate MachineTaintPropagation is enabled; use nodeRegistration.taints of the kubeadm configuration",
		},
		{
			"what CAPA writes",
			[]string{"    loadBalancerType: nlb\n", "    loadBalancerType: nlb\n  network: {vpc: {internetGatewayId: igw-1}}\n"},
			"cluster.yaml:36: AWSCluster/quick spec.network.vpc.internetGatewayId: has no effect: Cluster API Provider AWS writes what it has found",
		},
		{
			"health check",
			[]string{object, "---\napiVersion: cluster.x-k8s.io/v1beta1\nkind: MachineHealthCheck\nmetadata: {name: mhc, namespace: prod}\nspec: {clusterName: quick, selector: {matchLabels: {a: b}}, unhealthyConditions: [{type: Ready, status: Unknown, timeout: 300s}]}\n" + object},
			"cluster.yaml:75: MachineHealthCheck/mhc spec.selector: the check has no effect: it selects no machine of the manifest — change the labels",
		},
		{
			"unused object",
			[]string{object, "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: lost, namespace: prod}\n" + object},
			"cluster.yaml:72: ConfigMap/lost: nothing in the input refers to it, so it has no effect — remove it, or refer to it",
		},
		{"certificates of the user are used", []string{object, "---\napiVersion: v1\nkind: Secret\nmetadata: {name: quick-ca, namespace: prod}\n" + authority(t, certificate{}) + object}, ""},
		{
			"other selector",
			[]string{"    cni: calico\n", "    cni: cilium\n"},
			"cluster.yaml:166: ClusterResourceSet/cni spec.clusterSelector: does not match the labels of Cluster/quick, so none of its objects are applied — add the labels to the Cluster",
		},
		{
			"kind that is not part of a cluster",
			[]string{object, "---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\n" + object},
			"cluster.yaml:73: Deployment/web kind: Deployment in apps/v1 is not part of a cluster and is ignored — to apply it to the cluster, pass it with --addon FILE, or put it into a ConfigMap of a ClusterResourceSet",
		},
		{
			"old CAPA version",
			[]string{"apiVersion: infrastructure.cluster.x-k8s.io/v1beta2\nkind: AWSClusterStatic", "apiVersion: infrastructure.cluster.x-k8s.io/v1beta1\nkind: AWSClusterStatic"},
			"cluster.yaml:52: AWSClusterStaticIdentity/jump apiVersion: infrastructure.cluster.x-k8s.io/v1beta1 is no longer served by Cluster API Provider AWS — convert the file: clusterawsadm cluster convert -f cluster.yaml",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			yaml := manifests.Edit(t, manifests.Read(t, "../loader/testdata/good/quickstart.yaml"), tt.edit...)
			c := manifests.MustLoad(t, yaml, input.LoadOptions{})
			_, err := manifests.Load(t, yaml, input.LoadOptions{Strict: true})
			if tt.want == "" {
				assert.Empty(t, manifests.Warnings(c))
				assert.NoError(t, err)
				return
			}
			assert.Equal(t, []string{tt.want}, manifests.Warnings(c))
			assert.EqualError(t, err, tt.want)
		})
	}
}

// A field that a kind of Kubernetes does not have is removed from the object that is applied, also in the items of lists.
func TestUnknownFieldsAreLeftOut(t *testing.T) {
	yaml := manifests.Edit(t, manifests.Read(t, "../loader/testdata/good/quickstart.yaml"),
		"spec: {containers: [{name: last, image: last}]}}}", "spec: {containers: [{name: last, image: last, ports: [{containerPort: 80, namespace: a}]}]}}}")
	c := manifests.MustLoad(t, yaml, input.LoadOptions{})
	assert.Equal(t, []string{
		"cluster.yaml:182: ConfigMap/cni data.b.yaml: DaemonSet last: spec.template.spec.containers[0].ports[0].namespace: the kind has no such field: " +
			"it is left out — remove it, or correct its name",
	}, manifests.Warnings(c))
	ports := func(o map[string]any) any {
		containers, _, err := unstructured.NestedSlice(o, "spec", "template", "spec", "containers")
		require.NoError(t, err)
		first, _ := containers[0].(map[string]any)
		return first["ports"]
	}
	for _, d := range c.ResourceSets[0].Documents {
		if d.Kind() == "DaemonSet" && d.Metadata("name") == "last" {
			assert.Equal(t, "[map[containerPort:80]]", fmt.Sprint(ports(d.Object)))
			return
		}
	}
	assert.Fail(t, "the DaemonSet is missing")
}

// An object in CAPA's older API version is converted and gets the newest defaults.
func TestOldVersionOfCAPA(t *testing.T) {
	yaml := manifests.Edit(t, manifests.Read(t, "../loader/testdata/good/quickstart.yaml"),
		"apiVersion: infrastructure.cluster.x-k8s.io/v1beta2\nkind: AWSCluster\n", "apiVersion: infrastructure.cluster.x-k8s.io/v1beta1\nkind: AWSCluster\n",
		"    loadBalancerType: nlb\n", "    healthCheckProtocol: TCP\n    scheme: internal\n")
	c := manifests.MustLoad(t, yaml, input.LoadOptions{})
	assert.Equal(t, "internal", c.Infra.Spec.ControlPlaneLoadBalancer.Scheme.String())
	assert.Equal(t, infrav1.LoadBalancerTypeClassic, c.Infra.Spec.ControlPlaneLoadBalancer.LoadBalancerType)
	require.NotNil(t, c.Infra.Spec.NetworkSpec.VPC.AvailabilityZoneUsageLimit)
	assert.Equal(t, 3, *c.Infra.Spec.NetworkSpec.VPC.AvailabilityZoneUsageLimit)
}

// Each warning of CAPA about a classic load balancer has the field that it is about, and what to write.
func TestWarningsOfClassicLoadBalancers(t *testing.T) {
	const balancer = "  controlPlaneLoadBalancer:\n    loadBalancerType: nlb\n"
	base := manifests.Read(t, "../loader/testdata/good/quickstart.yaml")
	for text, want := range map[string]string{
		"  controlPlaneLoadBalancer:\n    healthCheckProtocol: SSL\n": "cluster.yaml:35: AWSCluster/quick spec.controlPlaneLoadBalancer.healthCheckProtocol: " +
			"loadbalancer is using a classic elb with SSL health check, this causes issues with ciper suites with kubernetes v1.30+ — write healthCheckProtocol: TCP",
	} {
		found := manifests.Warnings(manifests.MustLoad(t, manifests.Edit(t, base, balancer, text), input.LoadOptions{}))
		require.Len(t, found, 2)
		assert.Contains(t, found, want)
	}
	found := manifests.Warnings(manifests.MustLoad(t, manifests.Edit(t, base, balancer, ""), input.LoadOptions{}))
	require.Len(t, found, 1)
	assert.Contains(t, found[0], "classic elb which is deprecated")
}
