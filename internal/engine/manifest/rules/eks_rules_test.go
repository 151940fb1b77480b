package rules_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/clusterawsadm/clusterawsadm/internal/enginetest/manifests"
	"github.com/clusterawsadm/clusterawsadm/pkg/input"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Parts of testdata/good/eks.yaml and pools.yaml that tests modify.
const (
	planeMeta     = "metadata: {name: shop.eu}\nspec:\n  region"
	withAddresses = "metadata: {name: shop.eu, annotations: {clusterawsadm/nat-addresses-in-public-cidrs: 'true'}}\nspec:\n  region"
	planeVersion  = "  version: v1.32\n"
	planeNetwork  = "    vpc: {cidrBlock: 10.1.0.0/16}\n"
	groupType     = "  amiType: AL2023_x86_64_STANDARD\n  scaling: {minSize: 1, maxSize: 3}\n"
	template      = "    instanceType: m6i.large\n    rootVolume: {size: 50, type: gp3}\n"
	scalingImage  = "    ami: {eksLookupType: AmazonLinux}\n"
	farmTemplate  = "    rootVolume: {size: 40, type: gp3, throughput: 200}\n"
)

// Each case breaks one rule for EKS and pools in a valid manifest, and expects exactly
// one problem with this text. The golden file of testdata/wrong/eks.yaml has more.
func TestRulesOfEKS(t *testing.T) {
	for _, tt := range []struct {
		name, file string
		edit       []string
		want       string
	}{
		{
			"no control plane", "eks",
			[]string{"  controlPlaneRef:\n    apiVersion: controlplane.cluster.x-k8s.io/v1beta2\n    kind: AWSManagedControlPlane\n    name: shop.eu\n", ""},
			`Cluster/shop spec.controlPlaneRef: the Cluster names no AWSManagedControlPlane — set it`,
		},
		{
			"infrastructure of a self-managed cluster", "eks",
			[]string{"    kind: AWSManagedCluster\n    name", "    kind: AWSCluster\n    name"},
			`Cluster/shop spec.infrastructureRef.kind: must be AWSManagedCluster, not AWSCluster — change the reference`,
		},
		{
			"two control planes in references", "eks",
			[]string{
				"    apiVersion: infrastructure.cluster.x-k8s.io/v1beta2\n    kind: AWSManagedCluster\n    name: shop\n", "    apiVersion: controlplane.cluster.x-k8s.io/v1beta2\n    kind: AWSManagedControlPlane\n    name: other\n",
				"---\napiVersion: infrastructure.cluster.x-k8s.io/v1beta2\nkind: AWSManagedCluster\nmetadata: {name: shop, namespace: prod}\n", "---\napiVersion: controlplane.cluster.x-k8s.io/v1beta2\nkind: AWSManagedControlPlane\nmetadata: {name: other}\n",
			},
			`Cluster/shop spec.infrastructureRef.name: names another control plane than spec.controlPlaneRef, shop.eu — use one name, or an AWSManagedCluster`,
		},
		{
			"addresses for a private endpoint", "eks",
			[]string{"public: true, private: true, publicCIDRs: [192.0.2.0/24]", "public: false, private: true", planeMeta, withAddresses},
			`AWSManagedControlPlane/shop.eu metadata.annotations: the annotation clusterawsadm/nat-addresses-in-public-cidrs is "true": the API server has no public endpoint — remove it, or set spec.endpointAccess.public: true`,
		},
		{
			"addresses for an endpoint that all may use", "eks",
			[]string{", publicCIDRs: [192.0.2.0/24]", "", planeMeta, withAddresses},
			`AWSManagedControlPlane/shop.eu metadata.annotations: the annotation clusterawsadm/nat-addresses-in-public-cidrs is "true": all addresses may use the public endpoint — remove it, or list those that may in spec.endpointAccess.publicCIDRs`,
		},
		{
			"addresses for an IPv6 cluster", "eks",
			[]string{
				"private: true, publicCIDRs: [192.0.2.0/24]", "publicCIDRs: [192.0.2.0/24]", planeNetwork, "    vpc: {cidrBlock: 10.1.0.0/16, ipv6: {}}\n",
				planeMeta, withAddresses,
			},
			`AWSManagedControlPlane/shop.eu metadata.annotations: the annotation clusterawsadm/nat-addresses-in-public-cidrs is "true": nodes of an IPv6 cluster do not call from the addresses of NAT gateways — remove it, and set spec.endpointAccess.private: true`,
		},
		{
			"no region", "eks",
			[]string{"  region: eu-west-1\n", ""},
			`AWSManagedControlPlane/shop.eu spec.region: no region is set — set it, or use --region`,
		},
		{
			"role of a long cluster name", "eks",
			[]string{"shop", strings.Repeat("s", 48)},
			`the generated role name ` + strings.Repeat("s", 48) + `-iam-service-role is too long: IAM permits at most 64 characters — set roleName`,
		},
		{
			"block of IPv6", "eks",
			[]string{"publicCIDRs: [192.0.2.0/24]", "publicCIDRs: ['2001:db8::/32']"},
			`spec.endpointAccess.publicCIDRs[0]: 2001:db8::/32: the endpoint of an IPv4 cluster has no IPv6 address — remove it, or create an IPv6 cluster with vpc.ipv6`,
		},
		{
			"private block", "eks",
			[]string{"publicCIDRs: [192.0.2.0/24]", "publicCIDRs: [192.0.2.0/24, 10.20.0.0/16]"},
			`spec.endpointAccess.publicCIDRs[1]: 10.20.0.0/16 is in 10.0.0.0/8: nobody calls the public endpoint from reserved addresses, and EKS refuses them — write public addresses; from within the VPC, use endpointAccess.private: true`,
		},
		{
			"many blocks", "eks",
			[]string{"publicCIDRs: [192.0.2.0/24]", "publicCIDRs: [" + strings.Join(blocks(41), ", ") + "]"},
			`spec.endpointAccess.publicCIDRs: a cluster has at most 40 blocks, this one has 41 — combine some`,
		},
		{
			"namespaces of a whole cluster", "eks",
			[]string{planeVersion, planeVersion + "  accessEntries: [{principalARN: 'arn:aws:iam::123456789012:role/ops', accessPolicies: [{policyARN: 'arn:aws:eks::aws:cluster-access-policy/AmazonEKSViewPolicy', accessScope: {type: cluster, namespaces: [a]}}]}]\n"},
			`spec.accessEntries[0].accessPolicies[0].accessScope: the policy applies to the whole cluster, and has namespaces, too — remove namespaces, or set type: namespace`,
		},
		{
			"scope without namespaces", "eks",
			[]string{planeVersion, planeVersion + "  accessEntries: [{principalARN: 'arn:aws:iam::123456789012:role/ops', accessPolicies: [{policyARN: 'arn:aws:eks::aws:cluster-access-policy/AmazonEKSViewPolicy', accessScope: {type: namespace}}]}]\n"},
			`spec.accessEntries[0].accessPolicies[0].accessScope.namespaces: at least one value must be provided when accessScope type is namespace — change the value`,
		},
		{
			"one zone", "eks",
			[]string{"    - {id: a, cidrBlock: 10.1.0.0/20, availabilityZone: eu-west-1a}\n    - {id: b, cidrBlock: 10.1.16.0/20, availabilityZone: eu-west-1b}\n", "", "    subnets:\n", "", planeNetwork, "    vpc: {availabilityZoneUsageLimit: 1}\n"},
			`AWSManagedControlPlane/shop.eu spec.network.vpc.availabilityZoneUsageLimit: EKS needs subnets in at least two availability zones — set it to 2 or more`,
		},
		{
			"one subnet", "eks",
			[]string{"    - {id: b, cidrBlock: 10.1.16.0/20, availabilityZone: eu-west-1b}\n", ""},
			`AWSManagedControlPlane/shop.eu spec.network.subnets: EKS needs subnets in at least two availability zones — add a subnet in another zone`,
		},
		{
			"one private subnet", "eks",
			[]string{"    - {id: b,", "    - {id: b, isPublic: true,", planeVersion, planeVersion + "  restrictPrivateSubnets: true\n"},
			`AWSManagedControlPlane/shop.eu spec.network.subnets: EKS needs subnets in at least two availability zones — add a subnet in another zone`,
		},
		{
			"existing VPC without subnets", "eks",
			[]string{"    - {id: a, cidrBlock: 10.1.0.0/20, availabilityZone: eu-west-1a}\n    - {id: b, cidrBlock: 10.1.16.0/20, availabilityZone: eu-west-1b}\n", "", "    subnets:\n", "", planeNetwork, "    vpc: {id: vpc-1}\n"},
			`AWSManagedControlPlane/shop.eu spec.network.vpc.id: an existing VPC needs the subnets to use — list their ids in spec.network.subnets`,
		},
		{
			"network of the AWSCluster webhook", "eks",
			[]string{planeNetwork, "    vpc: {cidrBlock: ten}\n"},
			`AWSManagedControlPlane/shop.eu spec.network.vpc.cidrBlock: "ten": VPC CIDR block is invalid — change the value`,
		},
		{
			"wrong path upstream", "eks",
			[]string{"  # its DaemonSets are those of EKS\n", "  secondaryCidrBlock: 100.64.0.0/16\n", planeNetwork, "    vpc: {cidrBlock: 100.64.0.0/16}\n"},
			`AWSManagedControlPlane/shop.eu spec.secondaryCidrBlock: AWSManagedControlPlane.spec.secondaryCidrBlock 100.64.0.0/16 must not be equal to the primary`,
		},
		{
			"IPAM", "eks",
			[]string{planeNetwork, "    vpc: {ipamPool: {id: ipam-pool-1}}\n"},
			`AWSManagedControlPlane/shop.eu spec.network.vpc.ipamPool: is not supported yet — set cidrBlock of the VPC`,
		},
		{
			"service block of a public range", "eks",
			[]string{"[172.20.0.0/16]", "[8.8.0.0/16]"},
			`Cluster/shop spec.clusterNetwork.services.cidrBlocks[0]: 8.8.0.0/16: EKS permits blocks of /12 to /24 within 10.0.0.0/8, 172.16.0.0/12 or 192.168.0.0/16 — change it, or remove it to let EKS choose`,
		},
		{
			"IPv6 services without an IPv6 VPC", "eks",
			[]string{"[172.20.0.0/16]", `["fd00::/108"]`},
			`Cluster/shop spec.clusterNetwork.services.cidrBlocks: EKS needs an IPv4 block — set one, or create an IPv6 cluster with vpc.ipv6`,
		},
		{
			"control plane Machine", "eks",
			[]string{"metadata: {name: shop-single}\nspec:\n  clusterName", "metadata: {name: shop-single, labels: {cluster.x-k8s.io/control-plane: ''}}\nspec:\n  clusterName"},
			`Machine/shop-single metadata.labels: EKS runs the control plane; there can be no Machine for it — remove the label cluster.x-k8s.io/control-plane`,
		},
		{
			"Fargate profile of another cluster", "eks",
			[]string{"spec:\n  clusterName: shop\n  selectors", "spec:\n  clusterName: store\n  selectors"},
			`AWSFargateProfile/shop-fargate spec.clusterName: names the cluster "store", but the Cluster of the input is "shop" — use one name`,
		},
		{
			"no selector", "eks",
			[]string{"  selectors:\n  - {namespace: jobs, labels: {size: small}}\n", ""},
			`AWSFargateProfile/shop-fargate spec.selectors: a Fargate profile has 1 to 5 selectors, this one has 0 — add selectors for the namespaces to run on Fargate`,
		},
		{
			"kubeadm in EKS", "eks",
			[]string{"configRef: {apiGroup: bootstrap.cluster.x-k8s.io, kind: NodeadmConfigTemplate", "configRef: {apiGroup: bootstrap.cluster.x-k8s.io, kind: KubeadmConfigTemplate"},
			`MachineDeployment/shop-md spec.template.spec.bootstrap.configRef.kind: KubeadmConfigTemplate is for nodes of self-managed clusters, and EKS runs the control plane of this cluster — use NodeadmConfigTemplate or EKSConfigTemplate`,
		},
		{
			"EKSConfig elsewhere", "pools",
			[]string{"kind: KubeadmConfig, name", "kind: EKSConfig, name"},
			`MachinePool/farm-pool spec.template.spec.bootstrap.configRef.kind: EKSConfig is for nodes of EKS, and this cluster is self-managed — use KubeadmConfig`,
		},
		{
			"node group elsewhere", "pools",
			[]string{"kind: AWSMachinePool, name", "kind: AWSManagedMachinePool, name"},
			`MachinePool/farm-pool spec.template.spec.infrastructureRef.kind: AWSManagedMachinePool is a node group of EKS, and this cluster is self-managed — use AWSMachinePool`,
		},
		{
			"pool of another namespace", "pools",
			[]string{
				"kind: MachinePool\nmetadata:\n  name: farm-pool\n", "kind: MachinePool\nmetadata:\n  name: farm-pool\n  namespace: other\n",
				"kind: AWSMachinePool\nmetadata: {name: farm-pool}", "kind: AWSMachinePool\nmetadata: {name: farm-pool, namespace: fleet}",
			},
			`MachinePool/farm-pool metadata.namespace: is in the namespace other, but the Cluster is in default — use one namespace`,
		},
		{
			"another kind of pool", "eks",
			[]string{"kind: AWSMachinePool, name: shop-scaling}", "kind: AWSMachine, name: shop-single}"},
			`MachinePool/shop-scaling spec.template.spec.infrastructureRef.kind: must be AWSManagedMachinePool or AWSMachinePool, not AWSMachine — change the reference`,
		},
		{
			"one AWS object for two pools", "eks",
			[]string{"kind: AWSManagedMachinePool, name: shop-template}", "kind: AWSManagedMachinePool, name: shop-managed}"},
			`MachinePool/shop-template spec.template.spec.infrastructureRef.name: MachinePool/shop-managed uses AWSManagedMachinePool/shop-managed already — create one for each pool`,
		},
		{
			"one name for two node groups", "eks",
			[]string{template, "    instanceType: m6i.large\n  eksNodegroupName: prod_shop-managed\n"},
			`AWSManagedMachinePool/shop-template spec.eksNodegroupName: AWSManagedMachinePool/shop-managed has the same name in EKS, prod_shop-managed — set eksNodegroupName`,
		},
		{
			"update config of both kinds", "eks",
			[]string{groupType, groupType + "  updateConfig: {maxUnavailable: 1, maxUnavailablePercentage: 10}\n"},
			`AWSManagedMachinePool/shop-managed spec.updateConfig: set one of maxUnavailable and maxUnavailablePercentage — change the value`,
		},
		{
			"public and not", "eks",
			[]string{groupType, groupType + "  remoteAccess: {public: true, sourceSecurityGroups: [sg-1]}\n"},
			`AWSManagedMachinePool/shop-managed spec.remoteAccess.sourceSecurityGroups: must be empty with public: true — remove or change it`,
		},
		{
			"more at least than at most", "eks",
			[]string{"{minSize: 1, maxSize: 3}", "{minSize: 4, maxSize: 3}"},
			`AWSManagedMachinePool/shop-managed spec.scaling.maxSize: 3: must not be less than minSize, 4 — change the value`,
		},
		{
			"type of machine twice", "eks",
			[]string{template, template + "  instanceType: m5.large\n"},
			`AWSManagedMachinePool/shop-template spec.instanceType: must not be set together with awsLaunchTemplate, which contains it — remove or change it`,
		},
		{
			"AMI with a version", "eks",
			[]string{template, template + "    ami: {id: ami-0123456789abcdef1}\n  amiVersion: 1.32.0-20250101\n"},
			`AWSManagedMachinePool/shop-template spec.amiVersion: the launch template has a custom AMI, which has no version in EKS — remove it`,
		},
		{
			"looked-up AMI of EKS's kind", "eks",
			[]string{template, template + "    ami: {eksLookupType: AmazonLinux2023}\n"},
			`AWSManagedMachinePool/shop-template spec.awsLaunchTemplate: EKS selects the AMI by amiType; no AMI is looked up — remove ami.eksLookupType and imageLookup*, or set amiType: CUSTOM`,
		},
		{
			"script for a node group", "eks",
			[]string{"kind: NodeadmConfig, name: shop-template}", "kind: EKSConfig, name: shop-scaling}"},
			`MachinePool/shop-template spec.template.spec.bootstrap.configRef: for its own AMIs, EKS does not accept the script of an EKSConfig — use a NodeadmConfig, or a custom AMI (awsLaunchTemplate.ami.id)`,
		},
		{
			"nodeadm on Bottlerocket", "eks",
			[]string{"  amiType: AL2023_x86_64_STANDARD\n  awsLaunchTemplate", "  amiType: BOTTLEROCKET_x86_64\n  awsLaunchTemplate"},
			`AWSManagedMachinePool/shop-template spec.amiType: AMIs of the type BOTTLEROCKET_x86_64 have no nodeadm — set it, for example to AL2023_x86_64_STANDARD`,
		},
		{
			"custom, looked up, with nodeadm on Amazon Linux 2", "eks",
			[]string{"  amiType: AL2023_x86_64_STANDARD\n  awsLaunchTemplate", "  amiType: CUSTOM\n  awsLaunchTemplate"},
			`AWSManagedMachinePool/shop-template spec.awsLaunchTemplate.ami.eksLookupType: Amazon Linux 2 AMIs (AmazonLinux) have no nodeadm — set it to AmazonLinux2023, or use an EKSConfig`,
		},
		{
			"capacity block without its ID", "eks",
			[]string{template, template + "    marketType: CapacityBlock\n"},
			`AWSManagedMachinePool/shop-template spec.awsLaunchTemplate.capacityReservationId: is missing: a Capacity Block has an ID — set it, or remove marketType`,
		},
		{
			"capacity block without an instance type", "eks",
			[]string{template, "    rootVolume: {size: 50, type: gp3}\n    marketType: CapacityBlock\n    capacityReservationId: cr-0123456789abcdef0\n"},
			`AWSManagedMachinePool/shop-template spec.awsLaunchTemplate.instanceType: EKS takes the instance type of a Capacity Block from the launch template only — set it here, and nowhere else`,
		},
		{
			"Amazon Linux 2 by default", "eks",
			[]string{groupType, "  scaling: {minSize: 1, maxSize: 3}\n", planeVersion, "", scalingImage, "    ami: {id: ami-0123456789abcdef1}\n"},
			`AWSManagedMachinePool/shop-managed spec.amiType: EKS has no Amazon Linux 2 AMIs (AL2_x86_64) for its newest version — set amiType, for example to AL2023_x86_64_STANDARD`,
		},
		{
			"Amazon Linux 2 with GPUs", "eks",
			[]string{groupType, "  amiType: AL2_x86_64_GPU\n  instanceType: g5.xlarge\n", planeVersion, "", scalingImage, "    ami: {id: ami-0123456789abcdef1}\n"},
			`AWSManagedMachinePool/shop-managed spec.amiType: EKS has no Amazon Linux 2 AMIs (AL2_x86_64_GPU) for its newest version — set amiType, for example to AL2023_x86_64_NVIDIA`,
		},
		{
			"Amazon Linux 2 for Arm", "eks",
			[]string{groupType, "  amiType: AL2_ARM_64\n  instanceType: m7g.large\n", planeVersion, "", scalingImage, "    ami: {id: ami-0123456789abcdef1}\n"},
			`AWSManagedMachinePool/shop-managed spec.amiType: EKS has no Amazon Linux 2 AMIs (AL2_ARM_64) for its newest version — set amiType, for example to AL2023_ARM_64_STANDARD`,
		},
		{
			"Amazon Linux 2 by default, and an instance type of Arm", "eks",
			[]string{groupType, "  instanceType: m7g.large\n", planeVersion, "", scalingImage, "    ami: {id: ami-0123456789abcdef1}\n"},
			`AWSManagedMachinePool/shop-managed spec.amiType: EKS has no Amazon Linux 2 AMIs (AL2_x86_64) for its newest version — set amiType, for example to AL2023_ARM_64_STANDARD`,
		},
		{
			"Amazon Linux 2 with GPUs of a scaling group", "eks",
			[]string{scalingImage, "    ami: {eksLookupType: AmazonLinuxGPU}\n", planeVersion, ""},
			`spec.awsLaunchTemplate.ami.eksLookupType: EKS has no Amazon Linux 2 AMIs (AmazonLinuxGPU) for its newest version — set it to AmazonLinux2023GPU`,
		},
		{
			"custom with a release", "eks",
			[]string{groupType, "  amiType: CUSTOM\n  amiVersion: 1.34.2-20260101\n  scaling: {minSize: 1, maxSize: 3}\n"},
			`AWSManagedMachinePool/shop-managed spec.amiVersion: the launch template has a custom AMI, which has no version in EKS — remove it`,
		},
		{
			"bootstrap.sh on Amazon Linux 2023", "eks",
			[]string{scalingImage, "    ami: {eksLookupType: AmazonLinux2023}\n"},
			`AWSMachinePool/shop-scaling spec.awsLaunchTemplate.ami.eksLookupType: Amazon Linux 2023 AMIs (AmazonLinux2023) have no bootstrap.sh, which EKSConfig calls — use a NodeadmConfig`,
		},
		{
			"nodeadm on Amazon Linux 2", "eks",
			[]string{"      ami: {eksLookupType: AmazonLinux2023}\n", ""},
			`AWSMachineTemplate/shop-md spec.template.spec.ami.eksLookupType: Amazon Linux 2 AMIs (AmazonLinux) have no nodeadm — set it to AmazonLinux2023, or use an EKSConfig`,
		},
		{
			"Ignition in EKS", "eks",
			[]string{"  minSize: 1\n  maxSize: 2\n", "  minSize: 1\n  maxSize: 2\n  ignition: {storageType: UnencryptedUserData}\n"},
			`AWSMachinePool/shop-scaling spec.ignition: Ignition is for self-managed clusters — remove it`,
		},
		{
			"version newer than EKS's", "eks",
			[]string{"      version: v1.32.0\n      bootstrap:\n        configRef: {apiVersion: bootstrap.cluster.x-k8s.io/v1beta2, kind: EKSConfig", "      version: v1.33.0\n      bootstrap:\n        configRef: {apiVersion: bootstrap.cluster.x-k8s.io/v1beta2, kind: EKSConfig"},
			`MachinePool/shop-scaling spec.template.spec.version: v1.33.0 is newer than the control plane, v1.32 — upgrade the control plane first`,
		},
		{
			"no Secret for a file", "eks",
			[]string{"metadata: {name: audit}\n", "metadata: {name: audit2}\n"},
			`EKSConfig/shop-scaling spec.files[0].contentFrom.secret: there is no Secret/audit in the input — did you mean "audit2"?`,
		},
		{
			"nothing to boot with", "pools",
			[]string{"        configRef: {apiGroup: bootstrap.cluster.x-k8s.io, kind: KubeadmConfig, name: farm-pool}\n", "        dataSecretName: ''\n"},
			`MachinePool/farm-pool spec.template.spec.bootstrap.dataSecretName: names no Secret, so the machines would have no user data — set it, or set configRef`,
		},
		{
			"two names of the cluster", "pools",
			[]string{"    spec:\n      clusterName: farm\n", "    spec:\n      clusterName: barn\n"},
			`MachinePool/farm-pool spec.template.spec.clusterName: "barn": must be "farm", as in spec.clusterName — change the value`,
		},
		{
			"taints of a pool", "pools",
			[]string{"      version: 1.34.2\n", "      version: 1.34.2\n      taints: [{key: a, effect: NoSchedule, propagation: Always}]\n"},
			`MachinePool/farm-pool spec.template.spec.taints: taints of pools are not supported — remove or change it`,
		},
		{
			"spot twice", "pools",
			[]string{farmTemplate, farmTemplate + "    spotMarketOptions: {}\n"},
			`AWSMachinePool/farm-pool spec.awsLaunchTemplate.spotMarketOptions: must not be set together with mixedInstancesPolicy, which sets the number of spot instances — remove or change it`,
		},
		{
			"disk without a device", "pools",
			[]string{"    - {deviceName: /dev/sdb, size: 20, type: io2, iops: 100}\n", "    - {size: 20, type: io2, iops: 100}\n"},
			`AWSMachinePool/farm-pool spec.awsLaunchTemplate.nonRootVolumes[0].deviceName: a value is required — set it`,
		},
		{
			"slow disk", "pools",
			[]string{"throughput: 200}", "throughput: 2}"},
			`AWSMachinePool/farm-pool spec.awsLaunchTemplate.rootVolume.throughput: 2: must be 125 to 2000 MiB/s — change the value`,
		},
		{
			"wide refresh", "pools",
			[]string{"maxHealthyPercentage: 150", "maxHealthyPercentage: 160"},
			`AWSMachinePool/farm-pool spec.refreshPreferences.maxHealthyPercentage: 160: must not be more than 100 above minHealthyPercentage — change the value`,
		},
		{
			"hook without a role", "pools",
			[]string{"    roleARN: arn:aws:iam::123456789012:role/hooks\n", ""},
			`AWSMachinePool/farm-pool spec.lifecycleHooks[0].roleARN: a value is required: the notification target needs it — set it`,
		},
		{
			"reservation of spot", "pools",
			[]string{farmTemplate, farmTemplate + "    marketType: Spot\n    capacityReservationId: cr-1\n"},
			`AWSMachinePool/farm-pool spec.awsLaunchTemplate.capacityReservationId: spot instances cannot use a reservation — remove or change it`,
		},
		{
			"name of a launch template", "pools",
			[]string{"kind: AWSMachinePool, name: farm-pool}", "kind: AWSMachinePool, name: fp}", "kind: AWSMachinePool\nmetadata: {name: farm-pool}", "kind: AWSMachinePool\nmetadata: {name: fp}"},
			`AWSMachinePool/fp metadata.name: the name of its launch template, fp, must have 3 to 128 characters — choose another name`,
		},
		{
			"Ignition of a pool without a bucket", "pools",
			[]string{"  ignition: {storageType: UnencryptedUserData}\n", "  ignition: {}\n"},
			`KubeadmConfig/farm-pool spec.format: Ignition data is stored in a bucket, and AWSCluster/farm has none — set spec.s3Bucket there, or ignition.storageType: UnencryptedUserData on the machine`,
		},
		{
			"Container Linux Config that is no YAML", "pools",
			[]string{"  format: ignition\n", "  format: ignition\n  ignition: {containerLinuxConfig: {additionalConfig: \"systemd: [\"}}\n"},
			`KubeadmConfig/farm-pool spec.ignition.containerLinuxConfig.additionalConfig: not a Container Linux Config: yaml: `,
		},
		{
			"field that an older version does not have", "pools",
			[]string{"apiVersion: infrastructure.cluster.x-k8s.io/v1beta2\nkind: AWSMachinePool", "apiVersion: infrastructure.cluster.x-k8s.io/v1beta1\nkind: AWSMachinePool"},
			`AWSMachinePool/farm-pool spec.suspendProcesses: the field does not exist`,
		},
		{
			"version that a kind never had", "eks",
			[]string{"apiVersion: infrastructure.cluster.x-k8s.io/v1beta2\nkind: AWSManagedCluster", "apiVersion: infrastructure.cluster.x-k8s.io/v1beta1\nkind: AWSManagedCluster"},
			`apiVersion: AWSManagedCluster has no version infrastructure.cluster.x-k8s.io/v1beta1 — use infrastructure.cluster.x-k8s.io/v1beta2`,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			yaml := manifests.Read(t, "../loader/testdata/good/"+tt.file+".yaml")
			if tt.name == "role of a long cluster name" {
				yaml = strings.ReplaceAll(yaml, tt.edit[0], tt.edit[1])
			} else {
				yaml = manifests.Edit(t, yaml, tt.edit...)
			}
			_, err := manifests.Load(t, yaml, input.LoadOptions{EKSEnableIAM: true})
			require.Error(t, err)
			assert.Contains(t, err.Error(), tt.want)
			assert.Regexp(t, `^cluster.yaml:\d+: `, err.Error())
		})
	}
}

// Fields without effect have a warning, others have none.
func TestWarningsOfEKS(t *testing.T) {
	const idleRole = "has no effect: this program does not change existing roles — set CAPA_EKS_IAM=true to create roles"
	for _, tt := range []struct {
		name, file string
		edit       []string
		want       []string
	}{
		{
			"IPv6", "eks",
			[]string{planeNetwork, "    vpc: {cidrBlock: 10.1.0.0/16, ipv6: {}}\n"},
			[]string{"cluster.yaml:9: Cluster/shop spec.clusterNetwork.services.cidrBlocks: has no effect: EKS chooses the addresses of Services in an IPv6 cluster — remove it"},
		},
		{
			"version of nodes with an image of another tool's template", "eks",
			[]string{groupType, "  amiType: CUSTOM\n  scaling: {minSize: 1, maxSize: 3}\n", "  replicas: 2\n  template:\n    spec:\n", "  replicas: 2\n  template:\n    spec:\n      version: v1.32.0\n"},
			[]string{"cluster.yaml:71: MachinePool/shop-managed spec.template.spec.version: has no effect: the AMI is in a launch template of another tool, which decides the version — remove it, or set awsLaunchTemplate.ami.id"},
		},
		{
			"two blocks of Services", "eks",
			[]string{"[172.20.0.0/16]", "[172.20.0.0/16, 172.21.0.0/16]"},
			[]string{"cluster.yaml:9: Cluster/shop spec.clusterNetwork.services.cidrBlocks: EKS uses one block, the first IPv4 block — remove the others"},
		},
		{
			"endpoint", "eks",
			[]string{"  controlPlaneRef:\n", "  controlPlaneEndpoint: {host: a.example.com, port: 443}\n  controlPlaneRef:\n"},
			[]string{"cluster.yaml:10: Cluster/shop spec.controlPlaneEndpoint: has no effect: EKS sets the endpoint of the API server — remove it"},
		},
		{
			"resources to encrypt without a key", "eks",
			[]string{`{provider: "arn:aws:kms:eu-west-1:123456789012:key/1", resources: [secrets]}`, "{resources: [secrets]}"},
			[]string{"cluster.yaml:40: AWSManagedControlPlane/shop.eu spec.encryptionConfig: has no effect without both a key and the resources to encrypt, as in CAPA — set provider to the ARN of a KMS key, and resources to [secrets]; or remove it: from Kubernetes 1.28 on, EKS encrypts with a key of its own"},
		},
		{
			"rules for nodes", "eks",
			[]string{planeNetwork, planeNetwork + "    nodePortIngressRuleCidrBlocks: [10.0.0.0/8]\n"},
			[]string{"cluster.yaml:36: AWSManagedControlPlane/shop.eu spec.network.nodePortIngressRuleCidrBlocks: has no effect: EKS creates the security group of nodes — use additionalControlPlaneIngressRules"},
		},
		{
			"roles", "eks",
			[]string{planeVersion, planeVersion + "  rolePath: /teams/\n  roleAdditionalPolicies: [arn:aws:iam::aws:policy/ReadOnlyAccess]\n"},
			[]string{
				"cluster.yaml:29: AWSManagedControlPlane/shop.eu spec.rolePath: " + idleRole,
				"cluster.yaml:30: AWSManagedControlPlane/shop.eu spec.roleAdditionalPolicies: " + idleRole,
			},
		},
		{
			"aws-auth that nobody reads", "eks",
			[]string{"authenticationMode: api_and_config_map}\n", "authenticationMode: api}\n  iamAuthenticatorConfig: {mapRoles: [{rolearn: 'arn:aws:iam::123456789012:role/ops', username: ops, groups: [ops]}]}\n"},
			[]string{"cluster.yaml:42: AWSManagedControlPlane/shop.eu spec.iamAuthenticatorConfig: has no effect: with authenticationMode api, EKS does not read the ConfigMap aws-auth — use accessEntries"},
		},
		{
			"role with a path in aws-auth", "eks",
			[]string{"authenticationMode: api_and_config_map}\n", "authenticationMode: api_and_config_map}\n  iamAuthenticatorConfig: {mapRoles: [{rolearn: 'arn:aws:iam::123456789012:role/teams/ops', username: ops, groups: [ops]}]}\n"},
			[]string{"cluster.yaml:42: AWSManagedControlPlane/shop.eu spec.iamAuthenticatorConfig.mapRoles[0].rolearn: has no effect: EKS finds no role with a path in the ConfigMap aws-auth — write arn:aws:iam::123456789012:role/ops"},
		},
		{
			"user data of a node group", "eks",
			[]string{"metadata: {name: shop-managed}\nspec: {}\n", "metadata: {name: shop-managed}\nspec: {preNodeadmCommands: ['true']}\n"},
			[]string{"cluster.yaml:89: NodeadmConfig/shop-managed spec: has no effect: EKS writes the user data of a node group without a launch template — set awsLaunchTemplate of the AWSManagedMachinePool, or empty this"},
		},
		{
			"AMI that nobody boots", "eks",
			[]string{template, template + "    ami: {id: ami-0123456789abcdef1}\n", "configRef: {apiGroup: bootstrap.cluster.x-k8s.io, kind: NodeadmConfig, name: shop-template}", "dataSecretName: ''"},
			[]string{
				"cluster.yaml:99: MachinePool/shop-template spec.template.spec.bootstrap: for custom AMIs EKS adds no user data, and none is set: the node joins only if the AMI does that by itself — use a NodeadmConfig",
				"cluster.yaml:113: NodeadmConfig/shop-template: nothing in the input refers to it, so it has no effect — remove it, or refer to it",
			},
		},
		{
			"no instance profile", "eks",
			[]string{"    iamInstanceProfile: nodes\n", ""},
			[]string{"cluster.yaml:138: AWSMachinePool/shop-scaling spec.awsLaunchTemplate.iamInstanceProfile: without an instance profile the machines cannot join: they have no AWS credentials for EKS — set it, for example to nodes.cluster-api-provider-aws.sigs.k8s.io"},
		},
		{
			"records and timeouts", "pools",
			[]string{"      version: 1.34.2\n", "      version: 1.34.2\n      deletion: {nodeDrainTimeoutSeconds: 60}\n", "  minSize: 1\n", "  minSize: 1\n  providerIDList: [aws:///a/i-1]\n"},
			[]string{
				"cluster.yaml:46: MachinePool/farm-pool spec.template.spec.deletion: is ignored: not supported yet",
				"cluster.yaml:56: AWSMachinePool/farm-pool spec.providerIDList: has no effect: controllers set it",
			},
		},
		{
			"DaemonSets", "eks",
			[]string{"  # its DaemonSets are those of EKS\n", "  secondaryCidrBlock: 100.64.0.0/16\n  vpcCni: {env: [{name: A, value: b}]}\n"},
			[]string{
				"cluster.yaml:33: AWSManagedControlPlane/shop.eu spec.secondaryCidrBlock: pods get no addresses from it: by default, the VPC CNI does not use ENIConfigs — set AWS_VPC_K8S_CNI_CUSTOM_NETWORK_CFG to true and ENI_CONFIG_LABEL_DEF to topology.kubernetes.io/zone, in vpcCni.env or in the configuration of the add-on vpc-cni",
			},
		},
		{
			"add-on without version", "eks",
			[]string{"{name: vpc-cni, version: v1.20.4-eksbuild.1}", "{name: vpc-cni}"},
			[]string{"cluster.yaml:45: AWSManagedControlPlane/shop.eu spec.addons[0]: has no version: EKS takes its default version, and no run changes it — set version"},
		},
		{
			"DaemonSets that are not there", "eks",
			[]string{"  # its DaemonSets are those of EKS\n", "  bootstrapSelfManagedAddons: false\n  vpcCni: {env: [{name: A, value: b}]}\n", "{name: vpc-cni, version: v1.20.4-eksbuild.1}", "{name: coredns, version: v1.12.4-eksbuild.1}"},
			[]string{
				"cluster.yaml:33: AWSManagedControlPlane/shop.eu spec.bootstrapSelfManagedAddons: the cluster gets no pod network: the nodes do not become ready, and EKS ends the creation of the node group shop-managed with an error — add the add-on vpc-cni, or install another pod network with --cni FILE or a ClusterResourceSet",
				"cluster.yaml:34: AWSManagedControlPlane/shop.eu spec.vpcCni.env: has no effect: neither bootstrapSelfManagedAddons nor addons installs the VPC CNI — remove it, or add the add-on vpc-cni",
			},
		},
		{
			"nodes that the endpoint locks out", "eks",
			[]string{"private: true, publicCIDRs", "publicCIDRs"},
			[]string{"cluster.yaml:39: AWSManagedControlPlane/shop.eu spec.endpointAccess.publicCIDRs: nodes and pods on Fargate call the API server from the addresses of the NAT gateways, and are locked out if these are not in the list — set private: true, or the annotation clusterawsadm/nat-addresses-in-public-cidrs: \"true\", which adds the addresses"},
		},
		{
			"nodes that the annotation lets in", "eks",
			[]string{"private: true, publicCIDRs", "publicCIDRs", planeMeta, withAddresses},
			[]string{},
		},
		{
			"nodes in public subnets", "eks",
			[]string{
				"private: true, publicCIDRs", "publicCIDRs", planeMeta, withAddresses,
				groupType, groupType + "  availabilityZones: [eu-west-1a]\n  availabilityZoneSubnetType: public\n",
			},
			[]string{"cluster.yaml:83: AWSManagedMachinePool/shop-managed spec.availabilityZoneSubnetType: nodes in public subnets call the API server from addresses of their own, and are locked out if these are not in endpointAccess.publicCIDRs — set private, or endpointAccess.private: true"},
		},
		{
			"addresses that nodes do not need", "eks",
			[]string{planeMeta, withAddresses},
			[]string{"cluster.yaml:25: AWSManagedControlPlane/shop.eu metadata.annotations: the annotation clusterawsadm/nat-addresses-in-public-cidrs is \"true\": nodes do not need it: they use the private endpoint — remove it, or set spec.endpointAccess.private: false"},
		},
		{
			"blocks of an endpoint that is not public", "eks",
			[]string{"public: true, private: true, publicCIDRs", "public: false, private: true, publicCIDRs"},
			[]string{"cluster.yaml:39: AWSManagedControlPlane/shop.eu spec.endpointAccess.publicCIDRs: has no effect: the API server has no public endpoint — remove it, or set public: true"},
		},
		{
			"endpoint for everybody", "eks",
			[]string{"private: true, publicCIDRs: [192.0.2.0/24]", "publicCIDRs: [192.0.2.0/24, 0.0.0.0/0]"},
			[]string{},
		},
		{
			"number left to an autoscaler", "pools",
			[]string{"  annotations:\n", "  annotations:\n    cluster.x-k8s.io/replicas-managed-by: autoscaler\n", "  minSize: 1\n", "  minSize: 5\n"},
			[]string{},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := manifests.MustLoad(t, manifests.Edit(t, manifests.Read(t, "../loader/testdata/good/"+tt.file+".yaml"), tt.edit...), input.LoadOptions{})
			assert.Equal(t, tt.want, manifests.Warnings(c))
		})
	}
}

// An add-on whose pods no node takes stays DEGRADED: the manifest says so before.
func TestAddonsWithoutNodes(t *testing.T) {
	const (
		none    = "the pods of coredns run on EC2 instances, and the cluster has Fargate profiles only"
		tainted = "no node takes the pods of coredns: all node groups have taints"
		addon   = "  addons:\n  - {name: coredns, version: v1.12.4-eksbuild.1, configuration: '%'}\n"
		plane   = "  version: v1.34\n"
		group   = "  scaling:\n    minSize: 1\n"
		fargate = "configuration: '{\"computeType\":\"Fargate\"}'"
	)
	taint := func(effect string) string { return "  taints: [{key: a, value: b, effect: " + effect + "}]\n" }
	with := func(configuration string) string { return plane + strings.Replace(addon, "%", configuration, 1) }
	for name, tt := range map[string]struct {
		file string
		edit []string
		want string
	}{
		"Fargate":                              {"eks-fargate", nil, ""},
		"Fargate without setting":              {"eks-fargate", []string{fargate, "configuration: ''"}, none},
		"nodes":                                {"eks", []string{plane, with("")}, ""},
		"tainted nodes":                        {"eks", []string{plane, with(""), group, taint("no-schedule") + group}, tainted},
		"tainted nodes, tolerated":             {"eks", []string{plane, with(`{"tolerations":[{"operator":"Exists"}]}`), group, taint("no-schedule") + group}, ""},
		"nodes that are preferably":            {"eks", []string{plane, with(""), group, taint("prefer-no-schedule") + group}, ""},
		"tainted nodes, another one tolerated": {"eks", []string{plane, with(`{"tolerations":[{"key":"c","operator":"Exists"}]}`), group, taint("no-schedule") + group}, tainted},
		"storage on tainted nodes":             {"eks", []string{plane, plane + "  addons: [{name: aws-ebs-csi-driver, version: v1.45.0-eksbuild.1}]\n", group, taint("no-execute") + group}, `such as '{"controller":{"tolerations"`},
		"storage, tolerated":                   {"eks", []string{plane, plane + "  addons: [{name: aws-ebs-csi-driver, version: v1.45.0-eksbuild.1, configuration: '{\"controller\":{\"tolerations\":[{\"operator\":\"Exists\"}]}}'}]\n", group, taint("no-execute") + group}, ""},
		"no nodes":                             {"eks", []string{plane, with(""), "replicas: 2", "replicas: 0", group, "  scaling:\n    minSize: 0\n"}, "the pods of coredns have no node to run on, and EKS waits for them"},
		"CoreDNS of EKS itself":                {"eks", []string{group, taint("no-schedule") + group}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			c := manifests.MustLoad(t, manifests.Edit(t, manifests.Read(t, "../../../../configs/"+tt.file+".yaml"), tt.edit...), input.LoadOptions{})
			if tt.want == "" {
				assert.Empty(t, manifests.Warnings(c))
				return
			}
			require.Len(t, manifests.Warnings(c), 1)
			assert.Contains(t, manifests.Warnings(c)[0], tt.want)
		})
	}
}

// blocks returns n blocks of public addresses.
func blocks(n int) (out []string) {
	for i := range n {
		out = append(out, fmt.Sprintf("198.51.100.%d/32", i))
	}
	return out
}
