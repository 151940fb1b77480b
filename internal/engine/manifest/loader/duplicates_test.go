package loader_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/enginetest/manifests"
	"github.com/clusterawsadm/clusterawsadm/pkg/input"
)

// Two lines that AWS stores under one key are a problem of the second line, which names the
// first. Two equal lines are not, where storing both has the effect of storing one.
func TestLinesThatAreStoredAsOne(t *testing.T) {
	const (
		network  = "  controlPlaneLoadBalancer:\n    loadBalancerType: nlb\n"
		plane    = "  kubeadmConfigSpec:\n"
		entry    = "  - {principalARN: \"arn:aws:iam::123456789012:role/ops\", kubernetesGroups: [ops]}\n"
		policies = "  - principalARN: \"arn:aws:iam::123456789012:role/ops\"\n    accessPolicies:\n"
		view     = "    - {policyARN: \"arn:aws:eks::aws:cluster-access-policy/AmazonEKSViewPolicy\", accessScope: {type: namespace, namespaces: [%]}}\n"
		addon    = "  - {name: vpc-cni, version: v1.20.4-eksbuild.1}\n"
		rules    = network + "  network:\n    additionalControlPlaneIngressRules:\n"
	)
	in := func(namespace string) string { return view[:len(view)-len("%]}}\n")] + namespace + "]}}\n" }
	for _, tt := range []struct {
		name, file string
		edit       []string
		want       string // "" if the manifest is valid
	}{
		{
			"access policy in two namespaces", "eks",
			[]string{entry, policies + in("a") + in("b")},
			"cluster.yaml:46: AWSManagedControlPlane/shop.eu spec.accessEntries[0].accessPolicies[1]: the same policyARN as accessPolicies[0] (line 45): " +
				"EKS associates a policy with a principal once, with one scope — name it once, and list all namespaces in its accessScope.namespaces",
		},
		{"access policy twice", "eks", []string{entry, policies + in("a") + in("a")}, ""},
		{
			"access entry twice", "eks",
			[]string{entry, entry + entry},
			"cluster.yaml:44: AWSManagedControlPlane/shop.eu spec.accessEntries[1]: the same principalARN as accessEntries[0] (line 43)",
		},
		{"add-on twice", "eks", []string{addon, addon + addon}, "spec.addons[1]: the same name as addons[0] (line 45) — remove one of them"},
		{
			"variable of the VPC CNI", "eks",
			[]string{addon, addon + "  vpcCni: {env: [{name: WARM_IP_TARGET, value: \"1\"}, {name: WARM_IP_TARGET, value: \"2\"}]}\n"},
			"spec.vpcCni.env[1]: the same name as env[0] (line 46)",
		},
		{
			"role of aws-auth", "eks",
			[]string{addon, addon + "  iamAuthenticatorConfig:\n    mapRoles:\n" +
				"    - {rolearn: \"arn:aws:iam::123456789012:role/a\", username: a, groups: [x]}\n    - {rolearn: \"arn:aws:iam::123456789012:role/a\", username: a, groups: [z]}\n"},
			"spec.iamAuthenticatorConfig.mapRoles[1]: the same rolearn as mapRoles[0] (line 48): the ConfigMap aws-auth has one entry for a role",
		},
		{
			"groups of an access entry", "eks",
			[]string{"kubernetesGroups: [ops]", "kubernetesGroups: [ops, dev, ops]"},
			"cluster.yaml:43: AWSManagedControlPlane/shop.eu spec.accessEntries[0].kubernetesGroups[2]: the same value as kubernetesGroups[0] (line 43) — remove one of them",
		},
		{
			"tags that differ by case", "eks",
			[]string{"additionalTags: {team: shop}\n", "additionalTags: {team: shop, Team: x}\n  associateOIDCProvider: true\n"},
			"spec.additionalTags.team: the same tag as Team (line 31): IAM has one tag for names that differ by case",
		},
		{"tags without IAM", "eks", []string{"additionalTags: {team: shop}", "additionalTags: {team: shop, Team: x}"}, ""},
		{"namespaces of an access policy", "eks", []string{entry, policies + in("a, b, a")}, "accessScope.namespaces[2]: the same value as namespaces[0]"},
		{
			"blocks of the endpoint", "eks",
			[]string{"publicCIDRs: [192.0.2.0/24]", "publicCIDRs: [192.0.2.0/24, 198.51.100.0/24, 192.0.2.9/24]"},
			"spec.endpointAccess.publicCIDRs[2]: the same block as publicCIDRs[0]",
		},
		{"resources to encrypt", "eks", []string{"resources: [secrets]", "resources: [secrets, secrets]"}, "spec.encryptionConfig.resources[1]: the same value as resources[0]"},
		{
			"selectors of a Fargate profile", "eks",
			[]string{"  - {namespace: jobs, labels: {size: small}}\n", "  - {namespace: jobs, labels: {size: small, a: b}}\n  - {namespace: jobs}\n  - {labels: {a: b, size: small}, namespace: jobs}\n"},
			"AWSFargateProfile/shop-fargate spec.selectors[2]: the same namespace and labels as selectors[0]",
		},
		{
			"subnets of a Fargate profile", "eks",
			[]string{"spec:\n  clusterName: shop\n  selectors", "spec:\n  clusterName: shop\n  subnetIDs: [b, a, b]\n  selectors"},
			"AWSFargateProfile/shop-fargate spec.subnetIDs[2]: the same value as subnetIDs[0]",
		},
		{
			"block of a VPC", "eks",
			[]string{"{cidrBlock: 10.1.0.0/16}", "{cidrBlock: 10.1.0.0/16, secondaryCidrBlocks: [{ipv4CidrBlock: 100.64.0.0/16}, {ipv4CidrBlock: 100.64.3.0/16}]}"},
			"spec.network.vpc.secondaryCidrBlocks[1]: the same block as secondaryCidrBlocks[0] (line 35)",
		},
		{
			"block of a subnet", "eks",
			[]string{"cidrBlock: 10.1.16.0/20", "cidrBlock: 10.1.0.0/20"},
			"spec.network.subnets[1]: the same cidrBlock as subnets[0] (line 37)",
		},
		{
			"id of a subnet of v1beta1", "quickstart",
			[]string{
				"infrastructure.cluster.x-k8s.io/v1beta2\nkind: AWSCluster\n", "infrastructure.cluster.x-k8s.io/v1beta1\nkind: AWSCluster\n",
				network, "  network:\n    subnets:\n    - {id: a, availabilityZone: us-east-1a, cidrBlock: 10.0.0.0/24}\n    - {id: a, availabilityZone: us-east-1b, cidrBlock: 10.0.1.0/24, isPublic: true}\n",
			},
			"spec.network.subnets[1]: the same id as subnets[0]",
		},
		{
			"rules with another description", "quickstart",
			[]string{
				network, rules + "    - {description: a, protocol: tcp, fromPort: 1, toPort: 2, cidrBlocks: [10.0.0.0/8]}\n" +
					"    - {description: b, protocol: tcp, fromPort: 1, toPort: 2, cidrBlocks: [192.168.0.0/16, 10.0.0.1/8]}\n",
			},
			"spec.network.additionalControlPlaneIngressRules[1]: the same protocol, ports and source as additionalControlPlaneIngressRules[0]",
		},
		{
			"rules with other ports", "quickstart", []string{
				network, rules + "    - {description: a, protocol: tcp, fromPort: 1, toPort: 2, cidrBlocks: [10.0.0.0/8]}\n" +
					"    - {description: b, protocol: tcp, fromPort: 1, toPort: 3, cidrBlocks: [10.0.0.0/8]}\n",
			}, "",
		},
		{
			"rules with the same description", "quickstart", []string{
				network, rules + "    - {description: a, protocol: tcp, fromPort: 1, toPort: 2, cidrBlocks: [10.0.0.0/8]}\n" +
					"    - {description: a, protocol: tcp, fromPort: 1, toPort: 2, cidrBlocks: [10.0.0.0/8, 192.168.0.0/16]}\n",
			}, "",
		},
		{
			"device of the root volume", "quickstart",
			[]string{"      rootVolume: {size: 40, type: gp3}\n", "      rootVolume: {size: 40, type: gp3, deviceName: /dev/sda1}\n      nonRootVolumes: [{deviceName: /dev/sda1, size: 8}]\n"},
			"spec.template.spec.nonRootVolumes[0]: the same deviceName as rootVolume",
		},
		{
			"device of two volumes", "quickstart",
			[]string{"      rootVolume: {size: 40, type: gp3}\n", "      nonRootVolumes: [{deviceName: /dev/sdb, size: 9}, {deviceName: /dev/sdb, size: 8}]\n"},
			"spec.template.spec.nonRootVolumes[1]: the same deviceName as nonRootVolumes[0]",
		},
		{
			"taints of a Node", "quickstart",
			[]string{
				"      joinConfiguration:\n        nodeRegistration:\n",
				"      joinConfiguration:\n        nodeRegistration:\n          taints: [{key: a, value: x, effect: NoSchedule}, {key: a, value: y, effect: NoSchedule}]\n",
			},
			"nodeRegistration.taints[1]: the same key and effect as taints[0]",
		},
		{
			"lifecycle hooks", "pools",
			[]string{"  lifecycleHooks:\n", "  lifecycleHooks:\n  - {name: twice, lifecycleTransition: autoscaling:EC2_INSTANCE_LAUNCHING}\n  - {name: twice, lifecycleTransition: autoscaling:EC2_INSTANCE_TERMINATING}\n"},
			"spec.lifecycleHooks[1]: the same name as lifecycleHooks[0]",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := manifests.Load(t, manifests.Edit(t, manifests.Read(t, "testdata/good/"+tt.file+".yaml"), tt.edit...), input.LoadOptions{Region: "eu-west-1"})
			if tt.want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, tt.want)
		})
	}
}
