package rules_test

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

// A value on one side of the border of a rule has one problem, or one warning. A value on the other side has none.
func TestBordersOfRules(t *testing.T) {
	const (
		quick, eks = "quickstart", "eks"
		network    = "  controlPlaneLoadBalancer:\n    loadBalancerType: nlb\n"
		lb         = "    loadBalancerType: nlb\n"
		machine    = "      instanceType: t3.large\n      iamInstanceProfile: nodes.cluster-api-provider-aws.sigs.k8s.io\n"
		worker     = "      joinConfiguration:\n"
		folder     = worker + "        patches: {directory: /etc/kubernetes/patches}\n"
		cluster    = "    clusterConfiguration:\n"
		registered = "    joinConfiguration:\n      nodeRegistration:\n"
		plane      = "  version: v1.34\n"
		kubelet    = "          - name: cloud-provider\n            value: external\n"
		config     = "        - name: cloud-provider\n          value: external\n    initConfiguration:\n"
		annotated  = "kind: AWSManagedControlPlane\nmetadata:\n  name: eks\n"
		pool       = "    instanceType: m6i.large\n    iam"
		overrides  = "    overrides:\n    - instanceType: m6i.large\n    - instanceType: m5.large\n    - instanceType: m5.xlarge\n"
		taken      = "arn:aws:iam::123456789012:"
		policy     = "rules: [{level: Nope}]"
		addons     = "  addons: [{name: vpc-cni, version: v1.20.1-eksbuild.1}, {name: coredns, version: v1.12.3-eksbuild.1}, {name: kube-proxy, version: v1.34.0-eksbuild.2}]\n"
		warning    = "warning: "
	)
	argument := func(text string) []string { return []string{kubelet, kubelet + "          - " + text + "\n"} }
	server := func(text string) []string {
		return []string{cluster, cluster + "      apiServer: {extraArgs: [" + text + "]}\n"}
	}
	etcd := func(text string) []string {
		return []string{cluster, cluster + "      etcd: {local: {extraArgs: [" + text + "]}}\n"}
	}
	patch := func(text string) []string {
		return []string{worker, patched("kubeletconfiguration0+merge.yaml", text) + folder}
	}
	bucket := func(lasts string) []string {
		return []string{
			network,
			network + "  s3Bucket: {name: boot-data, presignedURLDuration: " + lasts + ", controlPlaneIAMInstanceProfile: a, nodesIAMInstanceProfiles: [b]}\n",
		}
	}
	mapped := func(text string) []string {
		return []string{plane, plane + "  iamAuthenticatorConfig: {" + text + "}\n"}
	}
	hybrid := func(network string, text string) []string {
		return []string{annotated, annotated + "  annotations: {clusterawsadm/remote-node-networks: " + network + "}\n", plane, plane + text}
	}
	tags := func(text string) []string {
		return []string{plane, plane + "  associateOIDCProvider: true\n  additionalTags: {" + text + "}\n"}
	}
	six := func(text string) []string {
		return []string{
			network,
			network + "  network: {vpc: {ipv6: {}}, subnets: [{id: a, availabilityZone: us-east-1a, cidrBlock: 10.0.0.0/24, isPublic: true" + text +
				"}, {id: b, availabilityZone: us-east-1a, cidrBlock: 10.0.1.0/24}]}\n",
		}
	}
	for _, tt := range []struct {
		name, file string
		edit       []string
		want       string // "": neither a problem nor a warning
	}{
		{"an emulated version", quick, server("{name: emulated-version, value: kube=1.33}"), ""},
		{"an emulated version of long ago", quick, server("{name: emulated-version, value: kube=1.20}"), `"1.20" is not one of`},
		{"two addresses of one family", quick, argument("{name: node-ip, value: '10.0.0.1,10.0.0.2'}"), "is neither one IP address nor one of each family"},
		{"a percentage", quick, argument("{name: eviction-hard, value: 'nodefs.available<10%,memory.available<5%'}"), ""},
		{"more than all", quick, argument("{name: eviction-hard, value: 'memory.available<200%'}"), `"200%" is not a percentage`},
		{"less than nothing", quick, argument("{name: eviction-hard, value: 'memory.available<-1%'}"), `"-1%" is not a percentage`},
		{"a part of what", quick, argument("{name: eviction-hard, value: 'memory.available<x%'}"), `"x%" is not a percentage`},
		{"a grace period", quick, argument("{name: eviction-soft, value: 'memory.available<1Gi'}\n          - {name: eviction-soft-grace-period, value: memory.available=1m30s}"), ""},
		{
			"no grace period", quick,
			argument("{name: eviction-soft, value: 'memory.available<1Gi'}\n          - {name: eviction-soft-grace-period, value: memory.available=soon}"),
			`"soon" is not a duration such as 1m30s`,
		},
		{
			"a negative grace period", quick,
			argument("{name: eviction-soft, value: 'memory.available<1Gi'}\n          - {name: eviction-soft-grace-period, value: memory.available=-1m}"),
			`"-1m" is not a duration such as 1m30s`,
		},
		{"images at the same time, one after the other", quick, patch("maxParallelImagePulls: 5"), "maxParallelImagePulls is 5, and images are pulled one after the other"},
		{"images at the same time", quick, patch("{maxParallelImagePulls: 5, serializeImagePulls: false}"), ""},
		{"old images", quick, patch("imageMaximumGCAge: 2m"), "imageMaximumGCAge, 2m0s, is not more than imageMinimumGCAge, 2m0s"},
		{"older images", quick, patch("imageMaximumGCAge: 3m"), ""},
		{"a duration of 0 as a number", quick, patch("streamingConnectionIdleTimeout: 0"), ""},
		{"a duration as a number", quick, patch("streamingConnectionIdleTimeout: 5"), "streamingConnectionIdleTimeout is 5, not a duration"},
		{
			"reserved twice", quick, argument("{name: reserved-cpus, value: '0'}\n          - {name: system-reserved-cgroup, value: /system}"),
			"reserved-cpus cannot be set together with system-reserved-cgroup or kube-reserved-cgroup",
		},
		{"none and more", quick, argument("{name: enforce-node-allocatable, value: 'none,pods'}"), "enforce-node-allocatable has none, and more"},
		{"none", quick, argument("{name: enforce-node-allocatable, value: none}"), ""},
		{"a port of the health check", quick, argument("{name: read-only-port, value: '10248'}"), "it listens on port 10248 already"},
		{"a port of the kubelet", quick, argument("{name: read-only-port, value: '10250'}"), "it listens on port 10250 already"},

		{"a key of SSH", quick, []string{worker, "      users: [{name: ada, sshAuthorizedKeys: ['ssh-ed25519 AAAA ada']}]\n" + worker}, ""},
		{"no key of SSH", quick, []string{worker, "      users: [{name: ada, sshAuthorizedKeys: ['ada@laptop']}]\n" + worker}, warning + "is not a public key of SSH"},
		{"a block in a script", quick, []string{worker, "      preKubeadmCommands: ['{ sleep infinity; }']\n" + worker}, "sleep never ends"},
		{"a block in the background", quick, []string{worker, "      preKubeadmCommands: ['{ sleep infinity & }']\n" + worker}, ""},
		{"CA of a relative path", quick, []string{registered, "    joinConfiguration:\n      caCertPath: ca.crt\n      nodeRegistration:\n"}, `"ca.crt" is not an absolute path that ends in .crt`},
		{
			"CA of another format", quick,
			[]string{registered, "    joinConfiguration:\n      caCertPath: /etc/kubernetes/pki/ca.pem\n      nodeRegistration:\n"},
			"is not an absolute path that ends in .crt",
		},
		{
			"hash of a CA", quick,
			[]string{registered, "    joinConfiguration:\n      discovery: {bootstrapToken: {token: abcdef.0123456789abcdef, caCertHashes: ['sha256:abc']}}\n      nodeRegistration:\n"},
			`"sha256:abc" is not the hash of a certificate`,
		},
		{"images of one's own", quick, []string{cluster, cluster + "      imageRepository: registry.example.com:5000/k8s/mirror\n"}, ""},
		{"images of nobody", quick, []string{cluster, cluster + "      imageRepository: registry.example.com/K8s\n"}, "is not a repository of images"},
		{"a policy of audits that a command writes", quick, []string{cluster, auditPolicy(policy) + "    preKubeadmCommands: [make-it /etc/kubernetes/audit/policy.yaml]\n" + cluster + auditArguments}, ""},
		{"a policy of audits", quick, []string{cluster, auditPolicy(policy) + cluster + auditArguments}, "kube-apiserver does not start: as audit-policy-file"},

		{"a port of the Service of Kubernetes", quick, server("{name: kubernetes-service-node-port, value: '32767'}"), ""},
		{"a port beyond the last", quick, server("{name: kubernetes-service-node-port, value: '32768'}"), "kubernetes-service-node-port, 32768, is not in the range of node ports, 30000-32767"},
		{"a port before the first", quick, server("{name: kubernetes-service-node-port, value: '29999'}"), "is not in the range of node ports"},
		{
			"a port of another range", quick,
			server("{name: kubernetes-service-node-port, value: '20000'}, {name: service-node-port-range, value: 20001-20010}"), "is not in the range of node ports, 20001-20010",
		},
		{"a volume of the scheduler", quick, []string{cluster, cluster + "      scheduler: {extraVolumes: [{name: k8s-certs, hostPath: /etc/a, mountPath: /etc/a}]}\n"}, ""},
		{
			"a volume of the scheduler of kubeadm", quick,
			[]string{cluster, cluster + "      scheduler: {extraVolumes: [{name: kubeconfig, hostPath: /etc/a, mountPath: /etc/a}]}\n"},
			"takes the place of kubeadm's volume kubeconfig",
		},
		{
			"a variable as the name of a Node", quick,
			[]string{registered + "        name: '{{ ds.meta_data.local_hostname }}'\n", registered + "        name: '$${OWN_NAME}'\n"},
			"nothing replaces ${OWN_NAME}: no shell reads the configuration of kubeadm, and kubeadm refuses it as the name of a Node",
		},
		{"a short silence of Nodes", quick, []string{config, "        - {name: node-monitor-grace-period, value: 8s}\n" + config}, "Nodes are Unknown after 8s, and kubelets report every 10s"},
		{
			"a short silence of Nodes that report often", quick,
			[]string{
				config, "        - {name: node-monitor-grace-period, value: 8s}\n" + config,
				cluster, "    files: [{path: /etc/x, content: 'nodeLeaseDurationSeconds: 4'}]\n" + cluster,
			},
			"",
		},
		{"revisions that etcd keeps", quick, etcd("{name: auto-compaction-retention, value: '8'}"), ""},
		{"time for which etcd keeps revisions", quick, etcd("{name: auto-compaction-retention, value: 90m}"), ""},
		{"etcd keeps revisions often", quick, etcd("{name: auto-compaction-retention, value: often}"), `"often" is neither a number nor a duration such as 8h`},
		{"etcd keeps less than nothing", quick, etcd("{name: auto-compaction-retention, value: '-8'}"), `"-8" is neither a number nor a duration such as 8h`},
		{"metrics of etcd over TLS", quick, etcd("{name: listen-metrics-urls, value: 'https://0.0.0.0:2381'}"), ""},
		{"metrics of etcd over FTP", quick, etcd("{name: listen-metrics-urls, value: 'ftp://0.0.0.0:2381'}"), "is not a URL such as http://0.0.0.0:2381"},
		{"metrics of etcd on a name", quick, etcd("{name: listen-metrics-urls, value: 'http://etcd:2381'}"), "has a name, and etcd listens on IP addresses only"},
		{"etcd alone on its machine", quick, etcd("{name: listen-client-urls, value: 'https://127.0.0.1:2379'}"), ""},
		{
			"etcd of three machines", "three-zones", etcd("{name: listen-client-urls, value: 'https://127.0.0.1:2379'}"),
			"the machines of the control plane do not reach each other's etcd",
		},

		{"a group of a machine", quick, []string{machine, machine + "      additionalSecurityGroups: [{id: sg-x}]\n"}, `"sg-x" is not the ID of a security group`},
		{"a subnet without a name", quick, []string{machine, machine + "      subnet: {}\n"}, "names no subnet"},
		{
			"names of IPv6 addresses", quick,
			[]string{machine, machine + "      privateDnsName: {hostnameType: resource-name, enableResourceNameDnsAAAARecord: true}\n"},
			"privateDnsName.enableResourceNameDnsAAAARecord: the subnets have no IPv6 addresses",
		},
		{"names of IPv4 addresses", quick, []string{machine, machine + "      privateDnsName: {hostnameType: resource-name, enableResourceNameDnsAAAARecord: false}\n"}, ""},
		{"a price of nothing", quick, []string{machine, machine + "      spotMarketOptions: {maxPrice: '0'}\n"}, `"0" is not a price in US dollars`},
		{"a price", quick, []string{machine, machine + "      spotMarketOptions: {maxPrice: '0.5'}\n"}, ""},
		{"a partition of another region", quick, []string{lb, lb + "  partition: aws-cn\n"}, warning + "the region us-east-1 is in the partition aws, not aws-cn"},
		{"the partition of the region", quick, []string{lb, lb + "  partition: aws\n"}, ""},
		{"a pool without a type", "machine-pool", []string{pool, "    iam", overrides, ""}, "no instance type is set"},
		{"a pool with overrides", "machine-pool", []string{pool, "    iam"}, ""},
		{"links of a moment", quick, bucket("9s"), "the link to the boot data ends before the machine runs"},
		{"short links", quick, bucket("4m59s"), warning + "a machine that EC2 starts slowly reads its boot data too late"},
		{"links", quick, bucket("5m"), ""},
		{"subnets of a load balancer without IPv6", quick, six(""), "the load balancer has IPv6 addresses in its subnets, and this one has none"},
		{"subnets of a load balancer with IPv6", quick, six(", isIpv6: true"), ""},
		{"a block of 63 bits", quick, six(", isIpv6: true, ipv6CidrBlock: '2600:1f18::/63'"), "is not a block of IPv6 addresses with 64 bits"},
		{"a block of IPv4", quick, six(", isIpv6: true, ipv6CidrBlock: 10.0.0.0/24"), "is not a block of IPv6 addresses with 64 bits"},
		{"an address of IPv6", quick, six(", isIpv6: true, ipv6CidrBlock: '2600:1f18::1/64'"), "is not a block of IPv6 addresses with 64 bits"},

		{"a mapped role", eks, mapped("mapRoles: [{rolearn: '" + taken + "role/ops', username: ops, groups: [ops]}]"), ""},
		{"a mapped role of a short account", eks, mapped("mapRoles: [{rolearn: 'arn:aws:iam::1234:role/ops', username: ops, groups: [ops]}]"), "spec.iamAuthenticatorConfig.mapRoles[0].rolearn"},
		{"a mapped user", eks, mapped("mapUsers: [{userarn: '" + taken + "user/ada', username: ada, groups: [ops]}]"), ""},
		{"a mapped user of a short account", eks, mapped("mapUsers: [{userarn: 'arn:aws:iam::1234:user/ada', username: ada, groups: [ops]}]"), "spec.iamAuthenticatorConfig.mapUsers[0].userarn"},
		{
			"the role of nodes, mapped", eks, mapped("mapRoles: [{rolearn: '" + taken + "role/eks-nodegroup.cluster-api-provider-aws.sigs.k8s.io', username: a, groups: ['system:nodes']}]"),
			"without the groups system:bootstrappers and system:nodes, they are locked out",
		},
		{"a tag name", eks, tags("name: a"), "IAM has one tag for names that differ by case, and the program gives each resource a tag Name"},
		{"a tag Name", eks, tags("Name: a"), ""},
		{"tags Name and name", eks, tags("Name: a, name: b"), "the same tag as Name"},
		{"one tag in two cases", eks, tags("Team: a, team: b"), "the same tag as Team"},
		{"tags", eks, tags("Team: a, Stage: b"), ""},
		{"hybrid nodes", eks, hybrid("10.200.0.0/16", "  accessConfig: {authenticationMode: api}\n"), ""},
		{"hybrid nodes without access entries", eks, hybrid("10.200.0.0/16", "  accessConfig: {authenticationMode: config_map}\n"), "hybrid nodes need access entries"},
		{"hybrid nodes with the default of access", eks, hybrid("10.200.0.0/16", ""), "hybrid nodes need access entries"},
		{"hybrid nodes in the VPC", eks, hybrid("10.0.128.0/17", "  accessConfig: {authenticationMode: api}\n"), "10.0.128.0/17 overlaps with 10.0.0.0/16 of the VPC"},
		{
			"hybrid nodes with IPv6", eks, hybrid("10.200.0.0/16", "  accessConfig: {authenticationMode: api}\n  network: {vpc: {ipv6: {}}}\n"+addons),
			"EKS supports hybrid nodes in IPv4 clusters only",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			plain := manifests.Read(t, "../../../../configs/"+tt.file+".yaml")
			c, err := manifests.Load(t, manifests.Edit(t, plain, tt.edit...), input.LoadOptions{})
			told, warns := strings.CutPrefix(tt.want, warning)
			if tt.want != "" && !warns {
				require.ErrorAs(t, err, new(*manifest.InvalidError))
				assert.Contains(t, err.Error(), tt.want)
				assert.NotContains(t, err.Error(), "\n", "one problem")
				return
			}
			require.NoError(t, err)
			var before []string
			for _, w := range manifests.MustLoad(t, plain, input.LoadOptions{}).Warnings {
				before = append(before, w.What)
			}
			var added []string
			for _, w := range c.Warnings {
				if !slices.Contains(before, w.What) {
					added = append(added, w.String())
				}
			}
			if !warns {
				assert.Empty(t, added)
				return
			}
			require.Len(t, added, 1)
			assert.Contains(t, added[0], told)
		})
	}
}
