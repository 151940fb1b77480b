package rules_test

import (
	"strings"
	"testing"

	"github.com/clusterawsadm/clusterawsadm/internal/enginetest/manifests"
	"github.com/clusterawsadm/clusterawsadm/pkg/input"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Each case breaks one rule in a valid manifest, and expects exactly one problem with
// this text.
func TestRules(t *testing.T) {
	const (
		quick    = "quickstart"
		machines = "machines"
		plane    = "  kubeadmConfigSpec:\n"
		ipv6Join = "    joinConfiguration: {controlPlane: {localAPIEndpoint: {advertiseAddress: '::'}}}\n"
		lb       = "    loadBalancerType: nlb\n"
		network  = "  controlPlaneLoadBalancer:\n    loadBalancerType: nlb\n"
		worker   = "      version: 1.34.2\n      bootstrap:\n"
	)
	for _, tt := range []struct {
		name string
		file string
		edit []string
		want string // the problem without its position
	}{
		{
			"unknown field", quick,
			[]string{lb, "    loadBalancerTyp: nlb\n"},
			`AWSCluster/quick spec.controlPlaneLoadBalancer.loadBalancerTyp: the field does not exist — did you mean "loadBalancerType"?`,
		},
		{
			"unknown metadata", quick,
			[]string{"  labels:\n    cni", "  lables: {}\n  labels:\n    cni"},
			`Cluster/quick metadata.lables: the field does not exist — did you mean "labels"?`,
		},
		{
			"unknown field of a Secret", quick,
			[]string{"stringData:\n  Acc", "datas: {}\nstringData:\n  Acc"},
			`Secret/jump-keys datas: the field does not exist — did you mean "data"?`,
		},
		{
			"enum", quick,
			[]string{lb, "    loadBalancerType: NBL\n"},
			`AWSCluster/quick spec.controlPlaneLoadBalancer.loadBalancerType: "NBL" is not supported — did you mean "nlb"? allowed: classic, elb, alb, nlb, disabled`,
		},
		{
			"alb", quick,
			[]string{lb, "    loadBalancerType: alb\n"},
			`AWSCluster/quick spec.controlPlaneLoadBalancer.loadBalancerType: alb cannot work: an Application Load Balancer takes no TCP listeners — use nlb`,
		},
		{
			"elb", quick,
			[]string{lb, "    loadBalancerType: elb\n"},
			`AWSCluster/quick spec.controlPlaneLoadBalancer.loadBalancerType: elb cannot work: CAPA creates a Gateway Load Balancer for it — use nlb or classic`,
		},
		{
			"no load balancer and no endpoint", quick,
			[]string{lb, "    loadBalancerType: disabled\n"},
			`AWSCluster/quick spec.controlPlaneEndpoint: without a load balancer the address of the API server is unknown — set host and port`,
		},
		{
			"reserved name", quick,
			[]string{lb, lb + "    name: internal-x\n"},
			`AWSCluster/quick spec.controlPlaneLoadBalancer.name: AWS reserves names of load balancers that begin with internal- — choose another name`,
		},
		{
			"equal names", quick,
			[]string{lb, lb + "    name: one\n  secondaryControlPlaneLoadBalancer: {name: one}\n"},
			`AWSCluster/quick spec.secondaryControlPlaneLoadBalancer.name: both load balancers have the same name — change one of them`,
		},
		{
			"webhook", quick,
			[]string{network, network + "  network:\n    vpc: {cidrBlock: ten}\n"},
			`AWSCluster/quick spec.network.vpc.cidrBlock: "ten": VPC CIDR block is invalid — change the value`,
		},
		{
			"webhook with a short path", quick,
			[]string{"      rootVolume:", "      sshKeyName: ' x'\n      rootVolume:"},
			`AWSMachineTemplate/quick-md-0 spec.template.spec.sshKeyName: " x": name is invalid. Must be specified in ASCII and must not start or end in whitespace — change the value`,
		},
		{
			"webhook of the machine", quick,
			[]string{"      rootVolume:", "      marketType: CapacityBlock\n      rootVolume:"},
			`AWSMachineTemplate/quick-md-0 spec.template.spec.capacityReservationID: is required when CapacityBlock is provided — set it`,
		},
		{
			"upstream panics", machines,
			[]string{`ignition: {version: "3.4"}`, `ignition: {version: "3.4", proxy: {noProxy: [""]}}`},
			`AWSMachine/single-0: upstream's validation failed: runtime error: index out of range [0] with length 0`,
		},
		{
			"webhook with a structured value", quick,
			[]string{network, network + "  network:\n    additionalNodeIngressRules:\n    - {description: x, protocol: tcp, fromPort: 1, toPort: 2, natGatewaysIPsSource: true, cidrBlocks: [10.0.0.0/8]}\n"},
			`AWSCluster/quick spec.network.additionalNodeIngressRules[0]: natGatewaysIPsSource cannot be used together with CIDR blocks, security group IDs or security group roles — change the value`,
		},
		{
			"type", quick,
			[]string{"      rootVolume: {size: 40,", "      rootVolume: {size: '40',"},
			`AWSMachineTemplate/quick-md-0 spec.template.spec.rootVolume.size: must be of type integer, not string — write 40, without quotes`,
		},
		{
			"type of a text", quick,
			[]string{"      instanceType: t3.large\n      rootVolume", "      instanceType: 3\n      rootVolume"},
			`AWSMachineTemplate/quick-md-0 spec.template.spec.instanceType: must be of type string, not integer — put the value in quotes`,
		},
		{
			"required by the schema", quick,
			[]string{"      instanceType: t3.large\n      rootVolume", "      rootVolume"},
			`AWSMachineTemplate/quick-md-0 spec.template.spec.instanceType: a value is required — set it`,
		},
		{
			"rule of the schema", quick,
			[]string{"      rootVolume: {size: 40, type: gp3}", "      rootVolume: {size: 4, type: gp3}"},
			`AWSMachineTemplate/quick-md-0 spec.template.spec.rootVolume.size: 4: should be greater than or equal to 8 — change the value`,
		},
		{
			"label of a template", quick,
			[]string{"  template:\n    spec:\n      clusterName: quick", "  template:\n    metadata: {labels: {'a b': c}}\n    spec:\n      clusterName: quick"},
			`MachineDeployment/quick-md-0 spec.template.metadata.labels: "a b": name part must consist of`,
		},
		{
			"long name", quick,
			[]string{"kind: Cluster\nmetadata:\n  name: quick", "kind: Cluster\nmetadata:\n  name: " + strings.Repeat("q", 64)},
			`metadata.name: "` + strings.Repeat("q", 64) + `": the name is used as the value of a label: must be no more than 63`,
		},
		{
			"percentage", quick,
			[]string{"  clusterName: quick\n  selector", "  rollout: {strategy: {type: RollingUpdate, rollingUpdate: {maxSurge: many}}}\n  clusterName: quick\n  selector"},
			`MachineDeployment/quick-md-0 spec.rollout.strategy.rollingUpdate.maxSurge: "many": must be a number or a percentage — change the value`,
		},
		{
			"bad machine names", quick,
			[]string{plane, "  machineNaming: {template: 'Cp_{{ .random }}'}\n" + plane},
			`spec.machineNaming.template: "Cp_{{ .random }}": does not result in valid names: must consist of lower-case`,
		},
		{
			"two kinds of etcd", quick,
			[]string{plane, plane + "    clusterConfiguration: {etcd: {local: {dataDir: /e}, external: {endpoints: ['https://etcd:2379'], caFile: a, certFile: b, keyFile: c}}}\n"},
			`KubeadmControlPlane/quick-control-plane spec.kubeadmConfigSpec.clusterConfiguration.etcd`,
		},
		{
			"password from a missing Secret", quick,
			[]string{plane, plane + "    users: [{name: core, passwdFrom: {secret: {name: none, key: x}}}]\n"},
			`KubeadmControlPlane/quick-control-plane spec.kubeadmConfigSpec.users[0].passwdFrom.secret: there is no Secret/none in the input — use one that the input has (audit, cni, jump-keys), or add it`,
		},
		{
			"IPAM pool", quick,
			[]string{network, network + "  network:\n    vpc:\n      ipamPool: {id: x}\n"},
			`AWSCluster/quick spec.network.vpc.ipamPool: is not supported yet — set cidrBlock of the VPC`,
		},
		{
			"managed by others", quick,
			[]string{"kind: AWSCluster\nmetadata:\n", "kind: AWSCluster\nmetadata:\n  annotations: {cluster.x-k8s.io/managed-by: terraform}\n"},
			`AWSCluster/quick spec.network.vpc.id: externally managed infrastructure needs the ID of its VPC — set it, and list the subnets for the machines in spec.network.subnets`,
		},
		{
			"overrides without a VPC", quick,
			[]string{network, network + "  network:\n    securityGroupOverrides: {node: sg-1}\n"},
			`AWSCluster/quick spec.network.securityGroupOverrides: security groups can be set only with an existing VPC — set spec.network.vpc.id, or remove the overrides`,
		},
		{
			"VPC without subnets", quick,
			[]string{network, network + "  network:\n    vpc: {id: vpc-1}\n"},
			`AWSCluster/quick spec.network.vpc.id: an existing VPC needs the subnets to use — list their ids in spec.network.subnets`,
		},
		{
			"VPC with a made-up subnet", machines,
			[]string{"id: subnet-0a", "id: first"},
			`AWSCluster/single spec.network.subnets[0].id: "first" is not the id of a subnet of the existing VPC — set an id that begins with subnet-`,
		},
		{"no region", machines, []string{"", ""}, `AWSCluster/single spec.region: no region is set — set it, or use --region`},

		{
			"old Kubernetes", quick,
			[]string{"version: 1.34.2\n  kubeadm", "version: 1.21.14\n  kubeadm", worker, strings.Replace(worker, "1.34.2", "1.21.1", 1)},
			`KubeadmControlPlane/quick-control-plane spec.version: Kubernetes v1.21.14 is not supported — use v1.22 or newer`,
		},
		{
			"no version", quick,
			[]string{"version: 1.34.2\n  kubeadm", "version: stable\n  kubeadm"},
			`KubeadmControlPlane/quick-control-plane spec.version: "stable": is not a Kubernetes version such as v1.34.2 — change the value`,
		},
		{
			"newer workers", quick,
			[]string{worker, strings.Replace(worker, "1.34.2", "1.35.0", 1)},
			`MachineDeployment/quick-md-0 spec.template.spec.version: v1.35.0 is newer than the control plane, v1.34.2 — upgrade the control plane first`,
		},
		{
			"much older workers", quick,
			[]string{worker, strings.Replace(worker, "1.34.2", "1.30.0", 1)},
			`MachineDeployment/quick-md-0 spec.template.spec.version: v1.30.0 is more than 3 minor versions older than the control plane, v1.34.2 — use a newer version`,
		},
		{
			"neither version nor AMI", quick,
			[]string{worker, "      bootstrap:\n"},
			`MachineDeployment/quick-md-0 spec.template.spec.version: neither a version nor an AMI is set — set the version, or ami.id of the machine's AWS object`,
		},
		{
			"tags in the metadata service", quick,
			[]string{"  name: quick-md-0\n  namespace: prod\nspec:\n  template:\n    spec:\n      instanceType: t3.large\n", "  name: quick-md-0\n  namespace: prod\nspec:\n  template:\n    spec:\n      instanceType: t3.large\n      instanceMetadataOptions: {instanceMetadataTags: enabled}\n"},
			`AWSMachineTemplate/quick-md-0 spec.template.spec.instanceMetadataOptions.instanceMetadataTags: EC2 does not launch a machine with this setting and a tag whose key contains a slash, such as the cluster's tags — set it to disabled`,
		},
		{
			"partition without a group", quick,
			[]string{"  name: quick-md-0\n  namespace: prod\nspec:\n  template:\n    spec:\n      instanceType: t3.large\n", "  name: quick-md-0\n  namespace: prod\nspec:\n  template:\n    spec:\n      instanceType: t3.large\n      placementGroupPartition: 2\n"},
			`AWSMachineTemplate/quick-md-0 spec.template.spec.placementGroupPartition: a partition is one of a placement group, and placementGroupName is not set — set placementGroupName, or remove this field`,
		},
		{
			"even control plane", quick,
			[]string{plane, "  replicas: 2\n" + plane},
			`KubeadmControlPlane/quick-control-plane spec.replicas: 2: etcd on the control plane needs an odd number of machines, such as 3 — change the value`,
		},
		{
			"large even control plane", quick,
			[]string{plane, "  replicas: 100\n" + plane},
			`KubeadmControlPlane/quick-control-plane spec.replicas: 100: etcd on the control plane needs an odd number of machines, such as 7 — change the value`,
		},
		{
			"number with a fraction", quick,
			[]string{plane, "  replicas: 1.5\n" + plane},
			`KubeadmControlPlane/quick-control-plane spec.replicas: must be a whole number of at most 32 bits — change the value`,
		},
		{
			"number of more bits", quick,
			[]string{plane, "  replicas: 3000000000\n" + plane},
			`KubeadmControlPlane/quick-control-plane spec.replicas: must be a whole number of at most 32 bits — change the value`,
		},
		{
			"name with capitals", quick,
			[]string{"kind: AWSCluster\n    name: quick\n", "kind: AWSCluster\n    name: Quick_1\n"},
			`Cluster/quick spec.infrastructureRef.name: "Quick_1": must consist of lower-case letters, digits, '-' and '.', and start and end with a letter or a digit — change the value`,
		},
		{
			"few addresses of Services", quick,
			[]string{"    pods:\n", "    services: {cidrBlocks: [10.96.0.0/29]}\n    pods:\n"},
			`Cluster/quick spec.clusterNetwork.services.cidrBlocks[0]: 10.96.0.0/29: kubeadm permits /12 to /28 for Services — use another block, such as 10.96.0.0/12`,
		},
		{
			"many addresses of Services", quick,
			[]string{"    pods:\n", "    services: {cidrBlocks: ['fd02::/64']}\n    pods:\n"},
			`Cluster/quick spec.clusterNetwork.services.cidrBlocks[0]: fd02::/64: kubeadm permits /108 to /124 for Services — use another block, such as fd02::/112`,
		},
		{
			"few addresses of pods", quick,
			[]string{"192.168.0.0/16", "192.168.0.0/25"},
			`Cluster/quick spec.clusterNetwork.pods.cidrBlocks[0]: 192.168.0.0/25 is smaller than the block of one Node, /24 — use a larger block, such as 192.168.0.0/16, or set the argument node-cidr-mask-size-ipv4 of the kube-controller-manager`,
		},
		{
			"hardly any addresses of pods", quick,
			[]string{"192.168.0.0/16", "192.168.0.0/29"},
			`Cluster/quick spec.clusterNetwork.pods.cidrBlocks[0]: 192.168.0.0/29: kubeadm permits /28 and larger blocks for pods — use another block, such as 192.168.0.0/16`,
		},
		{
			"many addresses of pods", quick,
			[]string{"192.168.0.0/16", "fd01::/32"},
			`Cluster/quick spec.clusterNetwork.pods.cidrBlocks[0]: fd01::/32 is too large for Nodes with a block of /64: kubeadm permits /48 — use a smaller block, such as fd01::/48, or set the argument node-cidr-mask-size-ipv6 of the kube-controller-manager`,
		},
		{
			"two blocks of IPv4", quick,
			[]string{"192.168.0.0/16", "192.168.0.0/16, 172.16.0.0/16"},
			`Cluster/quick spec.clusterNetwork.pods.cidrBlocks: kubeadm permits one block, or one of IPv4 and one of IPv6 — remove the others`,
		},
		{
			"IPv6 addresses of Services, and none of the API server", quick,
			[]string{"    pods:\n", "    services: {cidrBlocks: ['fd02::/112']}\n    pods:\n", plane, plane + ipv6Join},
			`KubeadmControlPlane/quick-control-plane spec.kubeadmConfigSpec.initConfiguration.localAPIEndpoint.advertiseAddress: the API server would have an IPv4 address, but Services have IPv6 addresses (fd02::/112) first: kube-apiserver does not start — set it to "::"`,
		},
		{
			"IPv6 address of the API server", quick,
			[]string{plane, plane + ipv6Join},
			`KubeadmControlPlane/quick-control-plane spec.kubeadmConfigSpec.joinConfiguration.controlPlane.localAPIEndpoint.advertiseAddress: the API server would have an IPv6 address, but Services have IPv4 addresses (10.96.0.0/12) first: kube-apiserver does not start — remove it, or put the IPv6 block of Services first`,
		},
		{
			"argument with an IPv6 address", quick,
			[]string{plane, plane + "    clusterConfiguration: {apiServer: {extraArgs: [{name: advertise-address, value: 'fd00::7'}]}}\n"},
			`KubeadmControlPlane/quick-control-plane spec.kubeadmConfigSpec.clusterConfiguration.apiServer.extraArgs: the API server would have an IPv6 address, but Services have IPv4 addresses (10.96.0.0/12) first: kube-apiserver does not start — remove it, or put the IPv6 block of Services first`,
		},
		{
			"address of the API server that is none", quick,
			[]string{plane, plane + "    joinConfiguration: {controlPlane: {localAPIEndpoint: {advertiseAddress: eth0}}}\n"},
			`KubeadmControlPlane/quick-control-plane spec.kubeadmConfigSpec.joinConfiguration.controlPlane.localAPIEndpoint.advertiseAddress: "eth0" is not an IP address — use "::" for the IPv6 address of the machine, or remove it for the IPv4 address`,
		},
		{
			"no control plane machines", quick,
			[]string{plane, "  replicas: 0\n" + plane},
			`KubeadmControlPlane/quick-control-plane spec.replicas: 0: a control plane needs at least one machine — change the value`,
		},
		{
			"more machines than Kubernetes supports", quick,
			[]string{plane, "  replicas: 2147483647\n" + plane},
			`KubeadmControlPlane/quick-control-plane spec.replicas: the cluster would have 2147483648 machines, but Kubernetes supports up to 5000 Nodes — reduce the number of machines`,
		},
		{
			"more workers than Kubernetes supports", quick,
			[]string{"spec:\n  clusterName: quick\n  selector:\n", "spec:\n  clusterName: quick\n  replicas: 5000\n  selector:\n"},
			`MachineDeployment/quick-md-0 spec.replicas: the cluster would have 5001 machines, but Kubernetes supports up to 5000 Nodes — reduce the number of machines`,
		},
		{
			"scale in too small", quick,
			[]string{plane, "  rollout: {strategy: {type: RollingUpdate, rollingUpdate: {maxSurge: 0}}}\n" + plane},
			`KubeadmControlPlane/quick-control-plane spec.rollout.strategy.rollingUpdate.maxSurge: 0: may be 0 only with 3 replicas or more — change the value`,
		},
		{
			"surge", quick,
			[]string{plane, "  rollout: {strategy: {type: RollingUpdate, rollingUpdate: {maxSurge: 2}}}\n" + plane},
			`KubeadmControlPlane/quick-control-plane spec.rollout.strategy.rollingUpdate.maxSurge: "2": must be 0 or 1 — change the value`,
		},
		{
			"certificates outlive the CA", quick,
			[]string{plane, plane + "    clusterConfiguration: {certificateValidityPeriodDays: 400, caCertificateValidityPeriodDays: 300}\n"},
			`KubeadmControlPlane/quick-control-plane spec.kubeadmConfigSpec.clusterConfiguration.certificateValidityPeriodDays: 400: must not exceed the validity of the CA, 300 days — change the value`,
		},
		{
			"DNS tag", quick,
			[]string{plane, plane + "    clusterConfiguration: {dns: {imageTag: newest}}\n"},
			`KubeadmControlPlane/quick-control-plane spec.kubeadmConfigSpec.clusterConfiguration.dns.imageTag: "newest": is not a version of CoreDNS — change the value`,
		},
		{
			"machine names", quick,
			[]string{plane, "  machineNaming: {template: 'cp'}\n" + plane},
			`KubeadmControlPlane/quick-control-plane spec.machineNaming.template: "cp": must contain {{ .random }} — change the value`,
		},
		{
			"machine names with functions", quick,
			[]string{plane, "  machineNaming: {template: 'cp-{{ .random }}-{{ now }}'}\n" + plane},
			`KubeadmControlPlane/quick-control-plane spec.machineNaming.template: "cp-{{ .random }}-{{ now }}": may only use {{ .cluster.name }}, {{ .kubeadmControlPlane.name }} and {{ .random }} — change the value`,
		},
		{
			"secrets are not shown", quick,
			[]string{"      contentFrom:\n", "      content: very secret\n      contentFrom:\n"},
			`KubeadmControlPlane/quick-control-plane spec.kubeadmConfigSpec.files[0]: only one of content or contentFrom may be specified for a single file — change the value`,
		},
		{
			"file from a missing key", quick,
			[]string{"name: audit, key: policy", "name: audit, key: polici"},
			`KubeadmControlPlane/quick-control-plane spec.kubeadmConfigSpec.files[0].contentFrom.secret: Secret/audit has no key "polici" — add the key to the Secret`,
		},
		{
			"external etcd without certificates", quick,
			[]string{plane, plane + "    clusterConfiguration: {etcd: {external: {endpoints: ['https://etcd:2379'], caFile: a, certFile: b, keyFile: c}}}\n"},
			`KubeadmControlPlane/quick-control-plane spec.kubeadmConfigSpec.clusterConfiguration.etcd.external: there is no Secret/quick-apiserver-etcd-client in the input — use one that the input has (audit, cni, jump-keys), or add it`,
		},
		{
			"a certificate that SSM cannot hold", quick,
			[]string{"apiVersion: v1\n", "apiVersion: v1\nkind: Secret\nmetadata: {name: quick-ca}\nstringData: {tls.key: a, tls.crt: " + strings.Repeat("x", 8193) + "}\n---\napiVersion: v1\n"},
			`Secret/quick-ca data: tls.crt has 8193 bytes, but a parameter of SSM, where the keys of the cluster are stored, holds 8192 — leave out certificates that are not needed, such as that of the root`,
		},

		{
			"wrong cluster name", quick,
			[]string{"  clusterName: quick\n  selector", "  clusterName: slow\n  selector", "      clusterName: quick", "      clusterName: slow"},
			`MachineDeployment/quick-md-0 spec.clusterName: names the cluster "slow", but the Cluster of the input is "quick" — use one name`,
		},
		{
			"two cluster names", quick,
			[]string{"      clusterName: quick", "      clusterName: slow"},
			`MachineDeployment/quick-md-0 spec.template.spec.clusterName: "slow": must be "quick", as in spec.clusterName — change the value`,
		},
		{
			"selector", quick,
			[]string{"    matchLabels:\n  template:", "    matchLabels: {a: b}\n  template:"},
			`MachineDeployment/quick-md-0 spec.template.metadata.labels: the labels must match spec.selector (a=b,cluster.x-k8s.io/cluster-name=quick) — write them here, or change the selector`,
		},
		{
			"surge of workers", quick,
			[]string{"  clusterName: quick\n  selector", "  rollout: {strategy: {type: RollingUpdate, rollingUpdate: {maxSurge: 0, maxUnavailable: 0}}}\n  clusterName: quick\n  selector"},
			`MachineDeployment/quick-md-0 spec.rollout.strategy.rollingUpdate: maxSurge and maxUnavailable must not both be 0 — change the value`,
		},
		{
			"autoscaler annotation", quick,
			[]string{"  name: quick-md-0\n", "  name: quick-md-0\n  annotations: {cluster.x-k8s.io/cluster-api-autoscaler-node-group-min-size: few, cluster.x-k8s.io/cluster-api-autoscaler-node-group-max-size: '3'}\n"},
			`cluster.x-k8s.io/cluster-api-autoscaler-node-group-min-size: "few": is not a number of machines — change the value`,
		},
		{
			"missing bootstrap", machines,
			[]string{"      dataSecretName: user-data", "      {}"},
			`Machine/single-1 spec.bootstrap`,
		},
		{
			"missing user data", machines,
			[]string{"      dataSecretName: user-data", "      dataSecretName: user-date"},
			`Machine/single-1 spec.bootstrap.dataSecretName: there is no Secret/user-date in the input — did you mean "user-data"?`,
		},
		{
			"no control plane", machines,
			[]string{`    labels: {cluster.x-k8s.io/control-plane: ""}` + "\n", ""},
			`Cluster/single spec.controlPlaneRef: the cluster has no control plane — set a KubeadmControlPlane, or add Machines with the label cluster.x-k8s.io/control-plane`,
		},

		{
			"missing template", quick,
			[]string{"kind: AWSMachineTemplate\n        name: quick-md-0", "kind: AWSMachineTemplate\n        name: quick-md-1"},
			`MachineDeployment/quick-md-0 spec.template.spec.infrastructureRef.name: there is no AWSMachineTemplate/quick-md-1 in the input — did you mean "quick-md-0"?`,
		},
		{
			"template of another kind", quick,
			[]string{"kind: AWSMachineTemplate\n        name: quick-md-0", "kind: AWSMachine\n        name: quick-md-0"},
			`MachineDeployment/quick-md-0 spec.template.spec.infrastructureRef.kind: must be AWSMachineTemplate, not AWSMachine — change the reference`,
		},
		{
			"EKS infrastructure for a self-managed control plane", quick,
			[]string{"    kind: AWSCluster\n", "    kind: AWSManagedCluster\n"},
			`Cluster/quick spec.controlPlaneRef.kind: must be AWSManagedControlPlane, not KubeadmControlPlane — change the reference`,
		},
		{
			"ROSA", quick,
			[]string{"    kind: AWSCluster\n", "    kind: ROSACluster\n"},
			`Cluster/quick spec.infrastructureRef.kind: ROSA clusters are not supported: ROSACluster comes from Cluster API Provider AWS, with the service of Red Hat — this program takes KubeadmControlPlane, and AWSManagedControlPlane for EKS`,
		},
		{
			"reference to another group", quick,
			[]string{"apiGroup: bootstrap.cluster.x-k8s.io", "apiGroup: cluster.x-k8s.io"},
			`MachineDeployment/quick-md-0 spec.template.spec.bootstrap.configRef: KubeadmConfigTemplate is in the API group bootstrap.cluster.x-k8s.io, not cluster.x-k8s.io — change the reference`,
		},
		{
			"number as a namespace", quick,
			[]string{"kind: AWSCluster\nmetadata:\n  name: quick\n  namespace: prod", "kind: AWSCluster\nmetadata:\n  name: quick\n  namespace: 022985595394"},
			`AWSCluster/quick metadata.namespace: must be a string, not the number 22985595394 — put the value in quotes`,
		},
		{
			"other namespace", quick,
			[]string{"kind: AWSCluster\nmetadata:\n  name: quick\n  namespace: prod", "kind: AWSCluster\nmetadata:\n  name: quick\n  namespace: test"},
			`Cluster/quick spec.infrastructureRef.name: there is no AWSCluster/quick in the input — it is in the namespace test, but the Cluster is in prod: write the same in both`,
		},
		{
			"no ClusterClass", quick,
			[]string{"  controlPlaneRef:", "  topology: {classRef: {name: x}, version: v1.34.2}\n  controlPlaneRef:"},
			`Cluster/quick spec.topology.classRef.name: there is no ClusterClass/x in the input — add it: the input has no ClusterClass`,
		},
		{
			"two infrastructures", quick,
			[]string{"---\napiVersion: controlplane", "---\napiVersion: infrastructure.cluster.x-k8s.io/v1beta2\nkind: AWSCluster\nmetadata: {name: more, namespace: prod}\n---\napiVersion: controlplane"},
			`AWSCluster/more: there is more than one AWSCluster; the Cluster uses AWSCluster/quick — remove this one`,
		},
		{
			"two clusters", quick,
			[]string{"---\napiVersion: controlplane", "---\napiVersion: cluster.x-k8s.io/v1beta2\nkind: Cluster\nmetadata: {name: more, namespace: prod}\nspec: {infrastructureRef: {apiGroup: infrastructure.cluster.x-k8s.io, kind: AWSCluster, name: quick}}\n---\napiVersion: controlplane"},
			`Cluster/more: the input has more than one Cluster, the first is Cluster/quick — choose one with --cluster NAME`,
		},

		{
			"identity cycle", quick,
			[]string{"    kind: AWSClusterStaticIdentity\n    name: jump", "    kind: AWSClusterRoleIdentity\n    name: builder"},
			`AWSClusterRoleIdentity/builder spec.sourceIdentityRef: the identities refer to each other in a cycle: AWSClusterRoleIdentity/builder → AWSClusterRoleIdentity/builder — change the source of one of them to AWSClusterControllerIdentity/default`,
		},
		{
			"identity not allowed", quick,
			[]string{"    list: [prod]", "    list: [test]"},
			`AWSCluster/quick spec.identityRef: AWSClusterRoleIdentity/builder may not be used from the namespace prod — allow it in spec.allowedNamespaces of the identity; {} allows all`,
		},
		{
			"identity for nobody", quick,
			[]string{"  allowedNamespaces:\n    list: [prod]\n", ""},
			`AWSCluster/quick spec.identityRef: AWSClusterRoleIdentity/builder may not be used from the namespace prod — allow it in spec.allowedNamespaces of the identity; {} allows all`,
		},
		{
			"identity of the program not allowed", quick,
			[]string{
				"    kind: AWSClusterRoleIdentity\n    name: builder\n", "    kind: AWSClusterControllerIdentity\n    name: default\n",
				"kind: AWSClusterRoleIdentity\nmetadata:\n  name: builder\nspec:\n  allowedNamespaces:\n    list: [prod]\n  roleARN: arn:aws:iam::123456789012:role/builder\n  sourceIdentityRef:\n    kind: AWSClusterStaticIdentity\n    name: jump\n",
				"kind: AWSClusterControllerIdentity\nmetadata:\n  name: default\nspec:\n  allowedNamespaces: {selector: {matchLabels: {team: a}}}\n",
			},
			`AWSCluster/quick spec.identityRef: AWSClusterControllerIdentity/default may not be used from the namespace prod`,
		},
		{
			"identity missing", quick,
			[]string{"    name: builder\n", "    name: bilder\n"},
			`AWSCluster/quick spec.identityRef.name: there is no AWSClusterRoleIdentity/bilder in the input — did you mean "builder"?`,
		},
		{
			"identity without its Secret", quick,
			[]string{"  secretRef: jump-keys", "  secretRef: jump"},
			`AWSClusterStaticIdentity/jump spec.secretRef: there is no Secret/jump in the input — use one that the input has (audit, cni, jump-keys), or add it`,
		},
		{
			"identity without a key", quick,
			[]string{"  SecretAccessKey: example-secret\n", ""},
			`Secret/jump-keys data: the key SecretAccessKey is missing — set AccessKeyID and SecretAccessKey, and SessionToken for temporary keys`,
		},
		{
			"unknown default identity", quick,
			[]string{"    kind: AWSClusterRoleIdentity\n    name: builder\n", "    kind: AWSClusterControllerIdentity\n    name: mine\n"},
			`AWSCluster/quick spec.identityRef.name: the only AWSClusterControllerIdentity is named default — use default`,
		},

		{
			"missing add-on", quick,
			[]string{"  - {kind: ConfigMap, name: cni}", "  - {kind: ConfigMap, name: cnu}"},
			`ClusterResourceSet/cni spec.resources[0].name: there is no ConfigMap/cnu in the input — did you mean "cni"?`,
		},
		{
			"add-on of the wrong type", quick,
			[]string{"type: addons.cluster.x-k8s.io/resource-set\n", ""},
			`Secret/cni type: a Secret of a ClusterResourceSet must be of the type addons.cluster.x-k8s.io/resource-set — set type`,
		},
		{
			"add-on with broken YAML", quick,
			[]string{"metadata: {name: last}", "metadata: {name: last"},
			`cluster.yaml:181: ConfigMap/cni data.b.yaml: the YAML is invalid: did not find expected ',' or '}' — check the indentation, and quote text that holds special characters`,
		},
		{
			"empty selector", quick,
			[]string{"    matchLabels: {cni: calico}", "    {}"},
			`ClusterResourceSet/cni spec.clusterSelector: a value is required: an empty selector selects no cluster — set it`,
		},

		{
			"Ignition without a bucket", machines,
			[]string{"    s3Bucket:\n      name: single-ignition\n      controlPlaneIAMInstanceProfile: control-plane\n      nodesIAMInstanceProfiles: [nodes]\n", ""},
			`KubeadmConfig/single-0 spec.format: Ignition data is stored in a bucket, and AWSCluster/single has none — set spec.s3Bucket there, or ignition.storageType: UnencryptedUserData on the machine`,
		},
		{
			"Ignition on one side only", machines,
			[]string{"    format: ignition\n", ""},
			`KubeadmConfig/single-0 spec.format: the machine expects Ignition (spec.ignition of single-0), but the format of this configuration is cloud-config — set format: ignition`,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o := input.LoadOptions{Region: "eu-west-1"}
			if tt.name == "no region" {
				o.Region = ""
			}
			_, err := manifests.Load(t, manifests.Edit(t, manifests.Read(t, "../loader/testdata/good/"+tt.file+".yaml"), tt.edit...), o)
			require.Error(t, err)
			assert.Contains(t, err.Error(), tt.want)
			assert.Regexp(t, `^cluster.yaml:\d+: `, err.Error())
		})
	}
}

// Subnets of a new VPC need a zone and a block; those of an existing one, an id or a block.
func TestListedSubnets(t *testing.T) {
	for _, tt := range []struct{ vpc, subnet, want string }{
		{"{}", "{cidrBlock: 10.0.0.0/24}", "the subnet has no zone — set availabilityZone"},
		{"{}", "{availabilityZone: us-east-1a}", "the subnet has no block — set cidrBlock"},
		{"{}", "{availabilityZone: us-east-1a}, {availabilityZone: us-east-1a}", "the subnet has no block — set cidrBlock"},
		{"{}", "{availabilityZone: us-east-1a, cidrBlock: 10.0.0.0/24}", ""},
		{"{}", "{id: quick-subnet-private-us-east-1a, availabilityZone: us-east-1a, cidrBlock: 10.0.0.0/24}, {availabilityZone: us-east-1a, cidrBlock: 10.0.1.0/24}", ""},
		{"{id: vpc-1}", "{id: a}", `"a" is not the id of a subnet of the existing VPC — set an id that begins with subnet-, or the cidrBlock of the subnet`},
		{"{id: vpc-1}", "{id: a, cidrBlock: 10.0.0.0/24}", ""},
		{"{id: vpc-1}", "{cidrBlock: 10.0.0.0/24}", ""},
		{"{id: vpc-1}", "{id: a, ipv6CidrBlock: '2001:db8::/64'}", ""},
	} {
		t.Run(tt.vpc+" "+tt.subnet, func(t *testing.T) {
			text := strings.Replace(manifests.Read(t, "../loader/testdata/good/quickstart.yaml"), "v1beta2\nkind: AWSCluster\n", "v1beta1\nkind: AWSCluster\n", 1)
			text = strings.Replace(text, "  controlPlaneLoadBalancer:\n    loadBalancerType: nlb\n", "  network: {vpc: "+tt.vpc+", subnets: ["+tt.subnet+"]}\n", 1)
			c, err := manifests.Load(t, text, input.LoadOptions{})
			if tt.want != "" {
				require.ErrorContains(t, err, tt.want)
				return
			}
			require.NoError(t, err)
			names := map[string]bool{}
			for _, s := range c.Infra.Spec.NetworkSpec.Subnets {
				require.False(t, names[s.ID])
				names[s.ID] = true
			}
		})
	}
}

// Objects that the API server would refuse, once the cluster is there, are found before.
func TestObjectsOfResourceSets(t *testing.T) {
	base := strings.Replace(manifests.Read(t, "../../../../configs/quickstart.yaml"), "  name: quickstart\n", "  name: quickstart\n  labels: {a: b}\n", 1) + `
---
apiVersion: addons.cluster.x-k8s.io/v1beta2
kind: ClusterResourceSet
metadata: {name: a}
spec: {clusterSelector: {matchLabels: {a: b}}, resources: [{kind: ConfigMap, name: a}]}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: a}
data:
  a.yaml: '`
	const pod = `apiVersion: apps/v1, kind: Deployment, metadata: {name: a}, spec: {selector: {matchLabels: {app: a}}, template: {metadata: {labels: {app: a}}, spec: {containers: [`
	for object, want := range map[string]string{
		`{apiVersion: v1, kind: ConfigMap, metadata: {name: a, labels: {b: c}}, data: {a: "1"}}`:                 "",
		`{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: "system:a"}}`:            "",
		`{apiVersion: v1, kind: ConfigMap, metadata: {name: My_Map}}`:                                            `metadata.name is "My_Map"`,
		`{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {a: 1}}`:                                   "data.a is 1, not a text — put the value in quotes",
		`{apiVersion: v1, kind: ConfigMap, metadata: {name: a, annotations: {a: true}}}`:                         "metadata.annotations.a is true, not a text",
		`{apiVersion: v1, kind: Secret, metadata: {name: a}, data: {a: "!"}}`:                                    "data.a is not base64",
		`{apiVersion: v1, kind: ConfigMap, metadata: {name: a, labels: {"a b": c}}}`:                             `metadata.labels: "a b" is not the key of a label`,
		`{apiVersion: v1, kind: ConfigMap, metadata: {name: a, annotations: {"a/b/c": c}}}`:                      `metadata.annotations: "a/b/c" is not the key of an annotation`,
		`{` + pod + `{name: A_b, image: b}]}}}}`:                                                                 `"A_b" is not the name of a container`,
		`{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {ports: [{port: 70000}]}}`:                   "70000 is not a port",
		`{` + pod + `{name: a, image: b, resources: {limits: {memory: 1Gi}}, env: [{name: A, value: "1"}]}]}}}}`: "",
		`{` + pod + `{name: a, image: b}, {name: a, image: c}]}}}}`:                                              "two containers have the name a",
		`{` + pod + `{name: a, image: b, resources: {limits: {memory: 1GB}}}]}}}}`:                               "resources.limits.memory of the container a is 1GB, not a quantity",
		`{` + pod + `{name: a, image: b, env: [{name: A, value: 1}]}]}}}}`:                                       "the variable A of the container a is 1, not a text",
		`{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: a}, spec: {selector: {matchLabels: {app: a}}, template: {metadata: {labels: {b: a}}, spec: {containers: [{name: a, image: b}]}}}}`: "spec.template.metadata.labels: spec.selector does not match them",
	} {
		_, err := manifests.Load(t, base+object+"'\n", input.LoadOptions{})
		if want == "" {
			require.NoError(t, err, object)
			continue
		}
		require.ErrorContains(t, err, want, object)
		assert.NotContains(t, err.Error(), "\n", "one problem")
		assert.Contains(t, err.Error(), "cluster.yaml:")
	}
}
