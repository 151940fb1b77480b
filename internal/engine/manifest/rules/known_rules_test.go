package rules_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/internal/enginetest/manifests"
	"github.com/clusterawsadm/clusterawsadm/pkg/input"
)

// auditArguments are settings of the API server for a file that auditPolicy returns.
const auditArguments = "      apiServer: {extraArgs: [{name: audit-policy-file, value: /etc/kubernetes/audit/policy.yaml}], " +
	"extraVolumes: [{name: audit, hostPath: /etc/kubernetes/audit, mountPath: /etc/kubernetes/audit}]}\n"

// auditPolicy returns a file with an audit policy, for the control plane.
func auditPolicy(rules string) string {
	return "    files:\n    - path: /etc/kubernetes/audit/policy.yaml\n      content: |\n        apiVersion: audit.k8s.io/v1\n        kind: Policy\n        " + rules + "\n"
}

// Each edit of an example breaks a rule of AWS, Kubernetes or kubeadm that needs no question to them:
// it causes one problem, with the line of the edit.
func TestKnownRules(t *testing.T) {
	const (
		quick, eks = "quickstart", "eks"
		network    = "  controlPlaneLoadBalancer:\n    loadBalancerType: nlb\n"
		lb         = "    loadBalancerType: nlb\n"
		machine    = "      instanceType: t3.large\n      iamInstanceProfile: nodes.cluster-api-provider-aws.sigs.k8s.io\n"
		volume     = machine + "      rootVolume:\n        size: 40\n        type: gp3\n        encrypted: true\n"
		worker     = "      joinConfiguration:\n"
		folder     = worker + "        patches: {directory: /etc/kubernetes/patches}\n"
		cluster    = "    clusterConfiguration:\n"
		registered = "    joinConfiguration:\n      nodeRegistration:\n"
		plane      = "  version: v1.34\n"
		group      = "  amiType: AL2023_x86_64_STANDARD\n"
		kubelet    = "          - name: cloud-provider\n            value: external\n"
		config     = "        - name: cloud-provider\n          value: external\n    initConfiguration:\n"
	)
	for _, tt := range []struct{ name, file, old, edited, want string }{
		{"VPC with host bits", quick, network, network + "  network: {vpc: {cidrBlock: 10.50.1.0/16}}\n", "10.50.1.0/16 is not the beginning of a block: AWS would make 10.50.0.0/16 of it — write 10.50.0.0/16"},
		{"VPC too wide", quick, network, network + "  network: {vpc: {cidrBlock: 10.0.0.0/8}}\n", "AWS permits blocks of /16 to /28"},
		{"loopback VPC", quick, network, network + "  network: {vpc: {cidrBlock: 127.0.0.0/16}}\n", "contains addresses that no machine can have"},
		{"EKS VPC with host bits", eks, plane, plane + "  network: {vpc: {cidrBlock: 10.50.1.0/16}}\n", "is not the beginning of a block"},
		{"secondary block overlaps with the default", quick, network, network + "  network: {vpc: {secondaryCidrBlocks: [{ipv4CidrBlock: 10.0.8.0/24}]}}\n", "10.0.8.0/24 overlaps with 10.0.0.0/16, which the VPC has already"},
		{"secondary block of another range", quick, network, network + "  network: {vpc: {secondaryCidrBlocks: [{ipv4CidrBlock: 172.20.0.0/24}]}}\n", "AWS does not add a block of 172.16.0.0/12 to a VPC with 10.0.0.0/16"},
		{"subnet outside", quick, network, network + "  network: {subnets: [{id: a, availabilityZone: us-east-1a, cidrBlock: 10.1.0.0/24, isPublic: true}, {id: b, availabilityZone: us-east-1a, cidrBlock: 10.0.1.0/24}]}\n", "10.1.0.0/24 is not within the VPC"},
		{"subnets overlap", quick, network, network + "  network: {subnets: [{id: a, availabilityZone: us-east-1a, cidrBlock: 10.0.0.0/20, isPublic: true}, {id: b, availabilityZone: us-east-1a, cidrBlock: 10.0.1.0/24}]}\n", "10.0.1.0/24 overlaps with 10.0.0.0/20 of spec.network.subnets[0].cidrBlock"},
		{"subnet with host bits", quick, network, network + "  network: {subnets: [{id: a, availabilityZone: us-east-1a, cidrBlock: 10.0.0.0/24, isPublic: true}, {id: b, availabilityZone: us-east-1a, cidrBlock: 10.0.1.5/24}]}\n", "AWS would make 10.0.1.0/24 of it"},
		{"IPv6 block without a pool", quick, network, network + "  network: {vpc: {ipv6: {cidrBlock: '2600:1f18::/56'}}}\n", "EC2 takes a block of IPv6 addresses only from a pool (Ipv6Pool of CreateVpc), and pools are not supported yet — write ipv6: {}"},
		{"group of a bastion", quick, lb, lb + "    ingressRules: [{description: x, protocol: tcp, fromPort: 443, toPort: 443, sourceSecurityGroupRoles: [bastion]}]\n", "there is no bastion, so no security group with this role"},
		{"group of EKS", quick, lb, lb + "    ingressRules: [{description: x, protocol: tcp, fromPort: 443, toPort: 443, sourceSecurityGroupRoles: [node-eks-additional]}]\n", "the cluster has no security group with the role node-eks-additional — use one of [controlplane node apiserver-lb lb]"},
		{"ports", quick, lb, lb + "    ingressRules: [{description: x, protocol: tcp, fromPort: 443, toPort: 22, cidrBlocks: [10.0.0.0/8]}]\n", "is less than fromPort, 443"},
		{"no port", quick, lb, lb + "    ingressRules: [{description: x, protocol: udp, fromPort: 443, toPort: 70000, cidrBlocks: [10.0.0.0/8]}]\n", "70000 is not a port"},
		{"ICMP", quick, lb, lb + "    ingressRules: [{description: x, protocol: icmp, fromPort: -1, toPort: 8, cidrBlocks: [10.0.0.0/8]}]\n", "-1 and 8 are not a type and a code of ICMP"},
		{"one address", quick, lb, lb + "    ingressRules: [{description: x, protocol: tcp, fromPort: 443, toPort: 443, cidrBlocks: [10.0.0.1]}]\n", `"10.0.0.1" is not a block of addresses`},
		{"IPv6 in IPv4", quick, lb, lb + "    ingressRules: [{description: x, protocol: tcp, fromPort: 443, toPort: 443, cidrBlocks: ['2001:db8::/32']}]\n", "2001:db8::/32 is a block of IPv6 addresses — list it in ipv6CidrBlocks"},
		{"description", quick, lb, lb + "    ingressRules: [{description: Größe, protocol: tcp, fromPort: 443, toPort: 443, cidrBlocks: [10.0.0.0/8]}]\n", "AWS permits letters a to z"},
		{"group", quick, lb, lb + "    additionalSecurityGroups: [sg-x]\n", `"sg-x" is not the ID of a security group`},
		{"protocol of the pod network", quick, network, network + "  network: {cni: {cniIngressRules: [{description: x, protocol: vxlan, fromPort: 1, toPort: 2}]}}\n", `"vxlan" is not a protocol of rules`},
		{"health check", quick, lb, lb + "    healthCheck: {timeoutSeconds: 7}\n", "7 is more than the time between two health checks, 5 seconds"},
		{"protocol of health checks", quick, lb, lb + "    healthCheckProtocol: TLS\n", "does not check health by TLS"},
		{
			"join address in the new VPC", quick, cluster, cluster + "      controlPlaneEndpoint: 10.0.1.1:6443\n",
			"10.0.1.1 is in the VPC that the run creates (10.0.0.0/16), in which AWS chooses the addresses of load balancers and machines: no machine could join",
		},
		{"join address of Services", quick, cluster, cluster + "      controlPlaneEndpoint: 10.96.0.1:6443\n", "10.96.0.1 is an address of Services (10.96.0.0/12)"},
		{"no join address", quick, cluster, cluster + "      controlPlaneEndpoint: 0.0.0.0:6443\n", "0.0.0.0 is not an address of an API server"},
		{"host in the new VPC", quick, lb, lb + "  controlPlaneEndpoint: {host: 10.0.1.1, port: 6443}\n", "10.0.1.1 is in the VPC that the run creates (10.0.0.0/16), in which AWS chooses"},
		{"host without a load balancer", quick, lb, "    loadBalancerType: disabled\n  controlPlaneEndpoint: {host: 'a b', port: 6443}\n", `"a b" is neither an IP address nor a name in DNS — change it`},
		{"host", quick, lb, lb + "  controlPlaneEndpoint: {host: 'a b', port: 6443}\n", `"a b" is neither an IP address nor a name in DNS`},
		{"volume type", quick, volume, machine + "      rootVolume: {size: 20, type: gp9}\n", `EC2 has no volumes of the type "gp9"`},
		{"volume of a machine", quick, volume, machine + "      rootVolume: {size: 200, type: st1}\n", "a machine cannot start from a volume of the type st1"},
		{"volume size", quick, machine, machine + "      nonRootVolumes: [{deviceName: /dev/sdf, size: 20, type: sc1}]\n", "20 GiB: a volume of the type sc1 has 125 to 16384"},
		{"IOPS", quick, volume, machine + "      rootVolume: {size: 20, type: gp2, iops: 3000}\n", "AWS permits no number of IOPS for volumes of the type gp2"},
		{"IOPS for the size", quick, volume, machine + "      rootVolume: {size: 8, type: io1, iops: 1000}\n", "has at most 50 IOPS for each GiB, so 400 for 8 GiB"},
		{"throughput for the IOPS", quick, volume, machine + "      rootVolume: {size: 80, type: gp3, throughput: 1000}\n", "AWS permits 0.25 MiB/s for each of the 3000 IOPS, so 750"},
		{"key of a volume", quick, volume, machine + "      rootVolume: {size: 80, encrypted: true, encryptionKey: 'arn:aws:kms:eu-west-1:123456789012:key/1234abcd-12ab-34cd-56ef-1234567890ab'}\n", "is in the region eu-west-1, but the cluster is in us-east-1"},
		{"one device twice", quick, machine, machine + "      nonRootVolumes: [{deviceName: /dev/sdf, size: 20}, {deviceName: sdf, size: 30}]\n", "nonRootVolumes[0] has the same device, /dev/sdf"},
		{"device", quick, machine, machine + "      nonRootVolumes: [{deviceName: /dev/nvme1n1, size: 20}]\n", `"/dev/nvme1n1" is not the name of a device in EC2`},
		{"price", quick, machine, machine + "      spotMarketOptions: {maxPrice: abc}\n", `"abc" is not a price in US dollars`},
		{"interface", quick, machine, machine + "      networkInterfaces: [eni-x]\n", `"eni-x" is not the ID of a network interface`},
		{"tags", quick, network, network + "  additionalTags: {" + many(46) + "}\n", "a subnet would have 52 tags, of which 6 are of this program: AWS permits 50"},
		{"tags of a machine", quick, machine, machine + "      additionalTags: {" + many(43) + "}\n", "a machine would have 51 tags, of which 8 are of this program"},
		{"IPv6 address", quick, machine, machine + "      assignPrimaryIPv6: enabled\n", "the subnets have no IPv6 addresses"},

		{"effect of a taint", quick, registered, registered + "        taints: [{key: a, effect: NoShedule}]\n", `"NoShedule" is not the effect of a taint`},
		{"file mode", quick, worker, "      files: [{path: /etc/x, content: x, permissions: '999'}]\n" + worker, `"999" is not an octal number`},
		{"one name for all", quick, registered + "        name: '{{ ds.meta_data.local_hostname }}'\n", registered + "        name: worker\n", `all machines would have the Node name "worker"`},
		{"name of a Node", quick, registered + "        name: '{{ ds.meta_data.local_hostname }}'\n", registered + "        name: Worker_1\n", `"Worker_1" is not the name of a Node`},
		{"dockershim", quick, registered, registered + "        criSocket: /var/run/dockershim.sock\n", "Kubernetes 1.24 removed dockershim"},
		{"socket of Windows", quick, registered, registered + "        criSocket: npipe:////./pipe/containerd-containerd\n", "is a socket of Windows: machines boot with scripts for Linux"},
		{"file of Windows", quick, worker, "      files: [{path: 'C:/network.ps1', content: x}]\n" + worker, "C:/network.ps1 is a path of Windows: machines boot with scripts for Linux"},
		{"command of Windows", quick, worker, "      preKubeadmCommands: ['powershell C:/network.ps1']\n" + worker, "the command is one of Windows"},
		{"image of Windows", quick, machine, machine + "      imageLookupBaseOS: windows-2019\n", "imageLookupBaseOS of the machines is windows-2019: machines boot with scripts for Linux"},
		{"remote socket", quick, registered, registered + "        criSocket: tcp://localhost:1\n", "is not a socket of a container runtime on this machine"},

		{"cloud provider", quick, config, strings.Replace(config, "external", "aws", 1), "kube-controller-manager of v1.34.2 does not contain the cloud provider aws — set it to external"},
		{"flag that was removed", quick, cluster, cluster + "      apiServer: {extraArgs: [{name: cloud-provider, value: external}]}\n", "kube-apiserver of v1.34.2 has no argument cloud-provider: Kubernetes 1.33 removed it"},
		{"flag of a port", quick, cluster, cluster + "      scheduler: {extraArgs: [{name: port, value: '10251'}]}\n", "kube-scheduler of v1.34.2 has no argument port: Kubernetes 1.31 removed it — remove it"},
		{"flag that never was at all", quick, cluster, cluster + "      scheduler: {extraArgs: [{name: nonsense-flag, value: x}]}\n", "has no argument nonsense-flag"},
		{"value of a flag", quick, cluster, cluster + "      apiServer: {extraArgs: [{name: audit-log-maxage, value: many}]}\n", `"many" is not a whole number, which kube-apiserver expects of audit-log-maxage`},
		{"feature gate", quick, cluster, cluster + "      apiServer: {extraArgs: [{name: feature-gates, value: 'SidecarContainers=true,NoSuchGate=true'}]}\n", "kube-apiserver of v1.34.2 has no feature gate NoSuchGate"},
		{"feature gate that was removed", quick, cluster, cluster + "      scheduler: {extraArgs: [{name: feature-gates, value: 'APIListChunking=true'}]}\n", "Kubernetes 1.33 removed it"},
		{"feature gate that is locked", quick, cluster, cluster + "      apiServer: {extraArgs: [{name: feature-gates, value: SidecarContainers=false}]}\n", "the feature gate SidecarContainers is locked to true in Kubernetes 1.34"},
		{"admission plugin", quick, cluster, cluster + "      apiServer: {extraArgs: [{name: enable-admission-plugins, value: 'NodeRestriction,PodSecurityPolicy'}]}\n", "has no admission plugin PodSecurityPolicy"},
		{"feature gate of kubeadm", quick, cluster, cluster + "      featureGates: {EtcdLearnerMode: true}\n", "kubeadm of v1.34.2 has no feature gate EtcdLearnerMode: Kubernetes 1.33 removed it"},
		{"label of a kubelet", quick, "          - name: cloud-provider\n            value: external\n", "          - {name: cloud-provider, value: external}\n          - {name: node-labels, value: node-role.kubernetes.io/worker=}\n", "nodes may not set their own labels with the prefix node-role.kubernetes.io"},
		{"names in certificates", quick, cluster, cluster + "      apiServer: {certSANs: ['api.example.com:6443']}\n", "is neither an IP address nor a name in DNS"},
		{"relative path", quick, cluster, cluster + "      certificatesDir: pki\n", `"pki" is not an absolute path`},
		{"repository of images", quick, cluster, cluster + "      imageRepository: 'https://registry.example.com'\n", "is not a repository of images"},
		{"token", quick, registered, "    joinConfiguration:\n      discovery: {bootstrapToken: {token: abc, unsafeSkipCAVerification: true}}\n      nodeRegistration:\n", "is not a bootstrap token"},

		{"no phase of etcd", quick, "    initConfiguration:\n", "    initConfiguration:\n      skipPhases: [etcd]\n", "initConfiguration.skipPhases[0]: without the phase etcd, there is no etcd"},
		{"no phase of tokens", quick, "    initConfiguration:\n", "    initConfiguration:\n      skipPhases: [addon/kube-proxy, bootstrap-token]\n", "skipPhases[1]: without the phase bootstrap-token, machines that join have no rights"},
		{"no phase of the kubelet", quick, registered, "    joinConfiguration:\n      skipPhases: [kubelet-start]\n      nodeRegistration:\n", "without the phase kubelet-start, the kubelet is not started"},
		{"patch of no field", quick, "    initConfiguration:\n", "    files: [{path: /etc/kubernetes/patches/etcd+json.yaml, content: '[{op: replace, path: /spec/nope/x, value: 1}]'}]\n    initConfiguration:\n      patches: {directory: /etc/kubernetes/patches}\n", "files[0].content: kubeadm fails: operation 1, replace: the pod of etcd has no /spec/nope/x"},
		{"patch of no limits", quick, "    initConfiguration:\n", "    files: [{path: /etc/kubernetes/patches/kube-apiserver+json.yaml, content: '[{op: replace, path: /spec/containers/0/resources/limits, value: {}}]'}]\n    initConfiguration:\n      patches: {directory: /etc/kubernetes/patches}\n", "has no /spec/containers/0/resources/limits — correct the path, or write add"},
		{"unknown operation", quick, "    initConfiguration:\n", "    files: [{path: /etc/kubernetes/patches/kube-apiserver+json.yaml, content: '[{op: put, path: /spec/a, value: 1}]'}]\n    initConfiguration:\n      patches: {directory: /etc/kubernetes/patches}\n", "operation 1 has op \"put\""},
		{"pod without the network of the machine", quick, "    initConfiguration:\n", "    files: [{path: /etc/kubernetes/patches/kube-apiserver.yaml, content: 'spec: {hostNetwork: false}'}]\n    initConfiguration:\n      patches: {directory: /etc/kubernetes/patches}\n", "kube-apiserver does not start: without the network of the machine, it waits for a pod network"},
		{"patch of another container", quick, "    initConfiguration:\n", "    files: [{path: /etc/kubernetes/patches/kube-scheduler+strategic.yaml, content: 'spec: {containers: [{name: scheduler, resources: {}}]}'}]\n    initConfiguration:\n      patches: {directory: /etc/kubernetes/patches}\n", "kube-scheduler does not start: the patch adds a container scheduler without an image — write name: kube-scheduler"},
		{"patch that replaces the container", quick, "    initConfiguration:\n", "    files: [{path: /etc/kubernetes/patches/kube-scheduler+merge.yaml, content: 'spec: {containers: [{name: kube-scheduler, resources: {}}]}'}]\n    initConfiguration:\n      patches: {directory: /etc/kubernetes/patches}\n", "a patch of the type merge replaces all containers"},
		{"patch of a container without a name", quick, "    initConfiguration:\n", "    files: [{path: /etc/kubernetes/patches/etcd.yaml, content: 'spec: {containers: [{resources: {}}]}'}]\n    initConfiguration:\n      patches: {directory: /etc/kubernetes/patches}\n", "kubeadm fails: a container has no name"},
		{"tag of CoreDNS without v", quick, cluster, cluster + "      dns: {imageTag: 1.12.1}\n", "spec.kubeadmConfigSpec.clusterConfiguration.dns.imageTag: registry.k8s.io has no image of CoreDNS with the tag 1.12.1 — write v1.12.1"},
		{"tag of etcd without a revision", quick, cluster, cluster + "      etcd: {local: {imageTag: 3.6.4}}\n", "clusterConfiguration.etcd.local.imageTag: registry.k8s.io has no image of etcd with the tag 3.6.4 — write 3.6.4-0"},
		{"certificate without its key", quick, "    initConfiguration:\n", "    files: [{path: /etc/kubernetes/pki/apiserver.crt, content: x}]\n    initConfiguration:\n", "files[0].path: kubeadm makes /etc/kubernetes/pki/apiserver.crt and apiserver.key, and neither if one of them is there"},
		{"key without its certificate", quick, "    initConfiguration:\n", "    files: [{path: /etc/kubernetes/pki/etcd/server.key, content: x}]\n    initConfiguration:\n", "files[0].path: kubeadm makes /etc/kubernetes/pki/etcd/server.key and server.crt"},
		{"certificate of another CA", quick, "    initConfiguration:\n", "    files: [{path: /etc/kubernetes/pki/etcd/peer.key, content: x}, {path: /etc/kubernetes/pki/etcd/peer.crt, content: x}]\n    initConfiguration:\n", "files[1].path: kubeadm refuses /etc/kubernetes/pki/etcd/peer.crt: the CA that the run makes has not signed it"},
		{"no kubeconfig", quick, "    initConfiguration:\n", "    files: [{path: /etc/kubernetes/controller-manager.conf, content: x}]\n    initConfiguration:\n", "files[0].path: kubeadm refuses /etc/kubernetes/controller-manager.conf: it is no kubeconfig"},
		{"kubeconfig of another cluster", quick, "    initConfiguration:\n", "    files: [{path: /etc/kubernetes/admin.conf, content: '{apiVersion: v1, kind: Config, clusters: [{name: a, cluster: {server: \"https://a\"}}], contexts: [{name: a, context: {cluster: a}}], current-context: a}'}]\n    initConfiguration:\n", "it has not the CA of the cluster, which the run makes"},
		{"key of the cluster", quick, "    initConfiguration:\n", "    files: [{path: /etc/kubernetes/pki/ca.crt, content: x}]\n    initConfiguration:\n", "files[0].path: /etc/kubernetes/pki/ca.crt is a key of the cluster, which the run writes"},
		{"manifest of kubeadm", quick, "    initConfiguration:\n", "    files: [{path: /etc/kubernetes/manifests/etcd.yaml, content: x}]\n    initConfiguration:\n", "kubeadm writes /etc/kubernetes/manifests/etcd.yaml, and refuses a machine that has it"},
		{"no bootstrap tokens", quick, cluster, cluster + "      apiServer: {extraArgs: [{name: enable-bootstrap-token-auth, value: 'false'}]}\n", "machines join with bootstrap tokens, which the API server would not accept"},
		{"no rights for kubelets", quick, cluster, cluster + "      apiServer: {extraArgs: [{name: authorization-mode, value: 'RBAC'}]}\n", "RBAC: kubelets have their rights by the mode Node, and all others by RBAC"},
		{"admission of nothing", quick, cluster, cluster + "      apiServer: {extraArgs: [{name: enable-admission-plugins, value: 'AlwaysDeny'}]}\n", "AlwaysDeny denies all requests"},
		{"another block of Services", quick, cluster, cluster + "      apiServer: {extraArgs: [{name: service-cluster-ip-range, value: '10.1.0.0/16'}]}\n", "Services have addresses of 10.1.0.0/16: those of kubeadm, such as that of CoreDNS, are in 10.96.0.0/12"},
		{"another etcd", quick, cluster, cluster + "      apiServer: {extraArgs: [{name: etcd-servers, value: 'https://10.0.0.9:2379'}]}\n", "the API server would not use the etcd on its machine"},
		{"certificate of an etcd", quick, cluster, cluster + "      apiServer: {extraArgs: [{name: etcd-certfile, value: '/etc/etcd.crt'}]}\n", "its container does not have the file /etc/etcd.crt"},
		{"no signer of tokens", quick, config, "        - {name: controllers, value: '*'}\n" + config, "no machine joins the cluster without the controller bootstrap-signer-controller, which * leaves out"},
		{"no approver", quick, config, "        - {name: controllers, value: '*,bootstrapsigner,tokencleaner,-csrapproving'}\n" + config, "without the controller certificatesigningrequest-approving-controller"},
		{"negative number of etcd", quick, cluster, cluster + "      etcd: {local: {extraArgs: [{name: snapshot-count, value: '-1'}]}}\n", "snapshot-count of etcd: -1 is negative"},
		{"gate of etcd", quick, cluster, cluster + "      etcd: {local: {extraArgs: [{name: feature-gates, value: 'Foo=true'}]}}\n", `feature-gates of etcd: "Foo" is not one of AllAlpha`},
		{"data of etcd in its container", quick, cluster, cluster + "      etcd: {local: {extraArgs: [{name: wal-dir, value: /wal}]}}\n", "etcd would lose its data at the next start of its container: /wal is not in /var/lib/etcd"},
		{"name of etcd", quick, cluster, cluster + "      etcd: {local: {extraArgs: [{name: name, value: one}]}}\n", "kubeadm sets its name and its peers for each machine"},
		{"clients of etcd", quick, cluster, cluster + "      etcd: {local: {extraArgs: [{name: listen-client-urls, value: 'http://0.0.0.0:2379'}]}}\n", "the API server does not reach etcd"},
		{"API server for itself", quick, cluster, cluster + "      apiServer: {extraArgs: [{name: bind-address, value: 127.0.0.1}]}\n", "kubeadm and the load balancer reach the API server at the address of its machine"},
		{"scheduler at another address", quick, cluster, cluster + "      scheduler: {extraArgs: [{name: bind-address, value: 10.0.0.9}]}\n", "it cannot listen on 10.0.0.9"},
		{"metrics at the port of clients", quick, cluster, cluster + "      etcd: {local: {extraArgs: [{name: listen-metrics-urls, value: 'http://0.0.0.0:2379'}]}}\n", "it listens on port 2379 already"},
		{"log of etcd", quick, cluster, cluster + "      etcd: {local: {extraArgs: [{name: log-outputs, value: /log/etcd}]}}\n", "its container has no folder for /log/etcd"},
		{"new cluster at each start", quick, cluster, cluster + "      etcd: {local: {extraArgs: [{name: force-new-cluster, value: 'true'}]}}\n", "each start of etcd would remove all other members"},
		{"another kubeconfig", quick, kubelet, kubelet + "          - {name: kubeconfig, value: /etc/kubelet.conf}\n", "kubeadm writes /etc/kubernetes/kubelet.conf, and waits for a kubelet that uses it"},
		{"another Node", quick, kubelet, kubelet + "          - {name: hostname-override, value: worker}\n", `the kubelet may not register a Node "worker"`},
		{"chosen address", quick, kubelet, kubelet + "          - {name: node-ip, value: 10.0.0.9}\n", "AWS chooses the addresses of machines"},
		{"no Node", quick, kubelet, kubelet + "          - {name: register-node, value: 'false'}\n", "the machine would have no Node"},
		{"chosen ID", quick, kubelet, kubelet + "          - {name: provider-id, value: 'aws:///us-east-1a/i-1'}\n", "the cloud controller manager finds none for aws:///us-east-1a/i-1"},
		{"chosen address to listen on", quick, kubelet, kubelet + "          - {name: address, value: 10.0.0.9}\n", "the kubelet could not listen on 10.0.0.9"},
		{"health at another port", quick, kubelet, kubelet + "          - {name: healthz-port, value: '10200'}\n", "kubeadm asks for the health of the kubelet at 127.0.0.1:10248"},
		{"health at another address", quick, kubelet, kubelet + "          - {name: healthz-bind-address, value: 10.0.0.9}\n", "kubeadm asks for the health of the kubelet at 127.0.0.1:10248"},
		{"one port for two", quick, kubelet, kubelet + "          - {name: read-only-port, value: '10250'}\n", "it listens on port 10250 already"},
		{"no pods", quick, kubelet, kubelet + "          - {name: max-pods, value: '0'}\n", "no pod would run on the machine"},
		{"pods elsewhere", quick, "    initConfiguration:\n      nodeRegistration:\n        name: '{{ ds.meta_data.local_hostname }}'\n        kubeletExtraArgs:\n", "    initConfiguration:\n      nodeRegistration:\n        name: '{{ ds.meta_data.local_hostname }}'\n        kubeletExtraArgs:\n        - {name: pod-manifest-path, value: /etc/manifests}\n", "kubeadm writes its pods into /etc/kubernetes/manifests"},
		{"no Node by a patch", quick, worker, patched("kubeletconfiguration0+merge.yaml", "registerNode: false") + folder, "register-node: the machine would have no Node"},
		{"health by a patch", quick, worker, patched("kubeletconfiguration0+merge.yaml", "healthzPort: 10200") + folder, "healthz-port: kubeadm asks for the health of the kubelet"},
		{"no Node of EKS", "eks-templates", "      maxPods: 58\n", "      registerNode: false\n", "register-node: the machine would have no Node"},
		{"port of EKS", "eks-templates", "      maxPods: 58\n", "      maxPods: 58\n    flags: [--read-only-port=10250]\n", "read-only-port: the kubelet does not start: it listens on port 10250 already"},
		{"reserved memory of no node", quick, kubelet, kubelet + "          - {name: reserved-memory, value: 1Gi}\n", `"1Gi" is not a reservation such as 0:memory=1Gi`},
		{"chosen address of the API", quick, "    initConfiguration:\n", "    initConfiguration:\n      localAPIEndpoint: {advertiseAddress: 10.0.0.9}\n", "etcd and the API server cannot listen on 10.0.0.9"},
		{"EKS rule without a source", eks, plane, plane + "  network: {additionalControlPlaneIngressRules: [{description: x, protocol: tcp, fromPort: 1, toPort: 2}]}\n", "the rule has no source, so it lets nobody through"},
		{"rule without NAT gateways", quick, network, network + "  network: {subnets: [{id: a, availabilityZone: us-east-1a, cidrBlock: 10.0.0.0/24, isPublic: true}], additionalNodeIngressRules: [{description: x, protocol: tcp, fromPort: 1, toPort: 2, natGatewaysIPsSource: true}]}\n", "the VPC has no NAT gateways: none of its subnets is private"},

		{"storage of etcd 2", quick, cluster, cluster + "      apiServer: {extraArgs: [{name: storage-backend, value: 'etcd2'}]}\n", `"etcd2" is not one of etcd3`},
		{"origin", quick, cluster, cluster + "      apiServer: {extraArgs: [{name: cors-allowed-origins, value: 'example.com'}]}\n", `"example.com" does not say where the host begins and ends`},
		{"origin that is no expression", quick, cluster, cluster + "      apiServer: {extraArgs: [{name: cors-allowed-origins, value: '//a('}]}\n", `"//a(" is not a regular expression`},
		{"short life of tokens", quick, cluster, cluster + "      apiServer: {extraArgs: [{name: service-account-max-token-expiration, value: '1m'}]}\n", `1m is not a duration from 1h0m0s to`},
		{"keys without TLS", quick, cluster, cluster + "      apiServer: {extraArgs: [{name: service-account-jwks-uri, value: 'http://a.example'}]}\n", `is not a URL that begins with https://`},
		{"security directive", quick, cluster, cluster + "      apiServer: {extraArgs: [{name: strict-transport-security-directives, value: 'always'}]}\n", `"always" is not max-age=SECONDS, includeSubDomains or preload`},
		{"etcd of events", quick, cluster, cluster + "      apiServer: {extraArgs: [{name: etcd-servers-overrides, value: 'events'}]}\n", `"events" is not GROUP/RESOURCE#SERVER;SERVER`},
		{"size of a cache", quick, cluster, cluster + "      apiServer: {extraArgs: [{name: watch-cache-sizes, value: 'pods#many'}]}\n", `"pods#many" is not RESOURCE#SIZE`},
		{"certificate of a name", quick, cluster, cluster + "      apiServer: {extraArgs: [{name: tls-sni-cert-key, value: '/a.crt'}]}\n", `"/a.crt" is not CERTIFICATE,KEY`},
		{"levels of files", quick, cluster, cluster + "      apiServer: {extraArgs: [{name: vmodule, value: 'server'}]}\n", `"server" is not FILE=LEVEL`},
		{"hidden metrics", quick, cluster, cluster + "      scheduler: {extraArgs: [{name: show-hidden-metrics-for-version, value: '1.32'}]}\n", `"1.32" is not one of 1.33`},
		{"emulated version", quick, cluster, cluster + "      apiServer: {extraArgs: [{name: emulated-version, value: 'kube=1.30'}]}\n", `"1.30" is not one of 1.31, 1.32, 1.33, 1.34`},
		{"headers of users", quick, cluster, cluster + "      apiServer: {extraArgs: [{name: requestheader-uid-headers, value: 'X-Uid'}]}\n", `"X-Uid" has not the header X-Remote-Uid`},
		{"size of a buffer", quick, cluster, cluster + "      scheduler: {extraArgs: [{name: log-text-info-buffer-size, value: '64 KB'}]}\n", `"64 KB" is not a quantity such as 100Mi`},
		{"group of APIs", quick, cluster, cluster + "      apiServer: {extraArgs: [{name: runtime-config, value: 'nope/v1=true'}]}\n", `"nope" is not a group of APIs of Kubernetes`},
		{"address that is none", quick, cluster, cluster + "      apiServer: {extraArgs: [{name: service-node-port-range, value: '70000'}]}\n", `"70000" is not a range of ports`},
		{"labels of metrics", quick, cluster, cluster + "      apiServer: {extraArgs: [{name: allow-metric-labels, value: 'a=b'}]}\n", `"a=b" is not METRIC,LABEL=VALUES`},
		{"plugin without a configuration", quick, cluster, cluster + "      apiServer: {extraArgs: [{name: enable-admission-plugins, value: 'ImagePolicyWebhook'}]}\n", `the admission plugin ImagePolicyWebhook needs a configuration`},
		{"no issuer", quick, cluster, cluster + "      apiServer: {extraArgs: [{name: service-account-issuer, value: ''}]}\n", `service-account-issuer is empty`},
		{"heartbeats of etcd", quick, cluster, cluster + "      etcd: {local: {extraArgs: [{name: heartbeat-interval, value: '300'}]}}\n", `election-timeout, 1000, is less than 5 times heartbeat-interval, 300`},
		{"mode of etcd", quick, cluster, cluster + "      etcd: {local: {extraArgs: [{name: auto-compaction-mode, value: 'daily'}]}}\n", `auto-compaction-mode of etcd: "daily" is not one of periodic, revision`},
		{"log level of etcd", quick, cluster, cluster + "      etcd: {local: {extraArgs: [{name: log-level, value: 'verbose'}]}}\n", `log-level of etcd: "verbose" is not one of debug`},
		{"argument of an older etcd", quick, cluster, cluster + "      etcd: {local: {extraArgs: [{name: enable-v2, value: 'true'}]}}\n", `etcd 3.6 has no argument enable-v2`},
		{"URL of metrics", quick, cluster, cluster + "      etcd: {local: {extraArgs: [{name: listen-metrics-urls, value: '0.0.0.0:2381'}]}}\n", `"0.0.0.0:2381" is not a URL such as http://0.0.0.0:2381`},
		{"URL with a name", quick, cluster, cluster + "      etcd: {local: {extraArgs: [{name: listen-metrics-urls, value: 'http://etcd.example.com:2381'}]}}\n", `has a name, and etcd listens on IP addresses only`},
		{"file that etcd does not see", quick, cluster, cluster + "      etcd: {local: {extraArgs: [{name: trusted-ca-file, value: '/etc/ssl/ca.crt'}]}}\n", `its container does not have the file /etc/ssl/ca.crt`},
		{"TLS of etcd", quick, cluster, cluster + "      etcd: {local: {extraArgs: [{name: tls-min-version, value: 'TLS1.1'}]}}\n", `"TLS1.1" is not one of TLS1.2, TLS1.3`},
		{"burstable Dedicated Instance", quick, machine, strings.Replace(machine, "t3.large", "t3a.large", 1) + "      tenancy: dedicated\n", "t3a instances cannot be Dedicated Instances"},
		{"region in capitals", quick, "  region: us-east-1\n", "  region: US-EAST-1\n", "US-EAST-1 is not the name of a region: AWS writes it as us-east-1"},
		{"zone as a region", quick, "  region: us-east-1\n", "  region: us-east-1a\n", "us-east-1a is a zone, and not a region: the region is us-east-1"},
		{"IPv6 in one subnet only", quick, network, network + "  network: {subnets: [{id: a, availabilityZone: us-east-1a, cidrBlock: 10.0.0.0/24, isPublic: true, isIpv6: true}, {id: b, availabilityZone: us-east-1a, cidrBlock: 10.0.1.0/24}]}\n", "the VPC has no IPv6 addresses"},
		{"name of a Node around a variable", quick, registered + "        name: '{{ ds.meta_data.local_hostname }}'\n", registered + "        name: 'Worker_{{ ds.meta_data.instance_id }}'\n", `"Worker_{{ ds.meta_data.instance_id }}" is not the name of a Node`},
		{"address of no machine", quick, "    initConfiguration:\n", "    initConfiguration:\n      localAPIEndpoint: {advertiseAddress: 224.0.0.1}\n", "224.0.0.1 is not an address at which other machines reach the API server"},
		{"API without a version", quick, cluster, cluster + "      apiServer: {extraArgs: [{name: runtime-config, value: 'apps=true'}]}\n", `"apps" is not an API such as apps/v1`},
		{"webhook without a file", quick, cluster, cluster + "      apiServer: {extraArgs: [{name: authorization-mode, value: 'Node,Webhook'}]}\n", `authorization-mode has Webhook, and authorization-webhook-config-file is not set`},
		{"modes and a file of them", quick, cluster, cluster + "      apiServer: {extraArgs: [{name: authorization-mode, value: 'Node,RBAC'}, {name: authorization-config, value: '/etc/kubernetes/pki/authorization.yaml'}]}\n", `authorization-config excludes authorization-mode`},
		{"claim without an issuer", quick, cluster, cluster + "      apiServer: {extraArgs: [{name: oidc-username-claim, value: 'sub'}]}\n", `oidc-issuer-url and oidc-client-id belong together`},
		{"no requests", quick, cluster, cluster + "      apiServer: {extraArgs: [{name: max-requests-inflight, value: '0'}, {name: max-mutating-requests-inflight, value: '0'}]}\n", `extraArgs[0]: kube-apiserver does not start: max-requests-inflight and max-mutating-requests-inflight are 0`},
		{"reload of nothing", quick, cluster, cluster + "      apiServer: {extraArgs: [{name: v, value: '2'}, {name: encryption-provider-config-automatic-reload, value: 'true'}]}\n", `extraArgs[1]: kube-apiserver does not start: encryption-provider-config-automatic-reload needs encryption-provider-config`},
		{"buffer for no audit event", quick, cluster, cluster + "      apiServer: {extraArgs: [{name: audit-log-path, value: '-'}, {name: audit-log-mode, value: batch}, {name: audit-log-batch-buffer-size, value: '0'}]}\n", `extraArgs[2]: kube-apiserver does not start: audit-log-batch-buffer-size is 0, and has to be more than 0`},
		{"batch smaller than an event", quick, cluster, cluster + "      apiServer: {extraArgs: [{name: audit-log-path, value: '-'}, {name: audit-log-truncate-max-batch-size, value: '1000'}]}\n", `audit-log-truncate-max-batch-size is smaller than audit-log-truncate-max-event-size`},
		{"size of the blocks of Nodes", quick, config, "        - {name: node-cidr-mask-size, value: '15'}\n" + config, "spec.kubeadmConfigSpec.clusterConfiguration.controllerManager.extraArgs[0]: 192.168.0.0/16 is smaller than the block of one Node, /15 — use at least 16 for the argument node-cidr-mask-size"},
		{"bits of the blocks of Nodes", quick, config, "        - {name: node-cidr-mask-size, value: '40'}\n" + config, "spec.kubeadmConfigSpec.clusterConfiguration.controllerManager.extraArgs[0]: the argument node-cidr-mask-size"},
		{"endpoint of keys", quick, cluster, cluster + "      apiServer: {extraArgs: [{name: service-account-signing-endpoint, value: '@keys'}]}\n", `excludes the key files of service accounts, which kubeadm sets`},
		{"peers without the gate", quick, cluster, cluster + "      apiServer: {extraArgs: [{name: peer-advertise-port, value: '6444'}]}\n", `peer-advertise-port needs the feature gate UnknownVersionInteroperabilityProxy`},
		{"elections of leaders", quick, cluster, cluster + "      apiServer: {extraArgs: [{name: coordinated-leadership-renew-deadline, value: '20s'}]}\n", `each has to be longer than the next`},
		{"port of the Service kubernetes", quick, cluster, cluster + "      apiServer: {extraArgs: [{name: kubernetes-service-node-port, value: '443'}]}\n", `443, is not in the range of node ports, 30000-32767`},
		{"allocator of a cloud", quick, config, "        - {name: cidr-allocator-type, value: 'CloudAllocator'}\n" + config, `"CloudAllocator" is not one of RangeAllocator`},
		{"no workers", quick, config, "        - {name: concurrent-job-syncs, value: '0'}\n" + config, `0 is not a number from 1 to`},
		{"endpoints of a slice", quick, config, "        - {name: max-endpoints-per-slice, value: '2000'}\n" + config, `2000 is not a number from 1 to 1000`},
		{"key of one signer", quick, config, "        - {name: cluster-signing-kubelet-client-key-file, value: '/etc/kubernetes/pki/ca.key'}\n" + config, `excludes cluster-signing-cert-file`},
		{"old lock", quick, cluster, cluster + "      scheduler: {extraArgs: [{name: leader-elect-resource-lock, value: 'endpoints'}]}\n", `"endpoints" is not one of leases`},
		{"address of the kubelet", quick, kubelet, kubelet + "          - {name: healthz-bind-address, value: 'localhost'}\n", `"localhost" is not an IP address`},
		{"quota period", quick, kubelet, kubelet + "          - {name: cpu-cfs-quota-period, value: '50ms'}\n", `cpu-cfs-quota-period needs the feature gate CustomCPUCFSQuotaPeriod`},
		{"option of a policy", quick, kubelet, kubelet + "          - {name: cpu-manager-policy-options, value: 'full-pcpus-only'}\n", `is not written as NAME=VALUE`},
		{"Docker's socket", quick, registered, registered + "        criSocket: unix:///var/run/docker.sock\n", "is the socket of Docker itself"},
		{"file of a flag that is gone", quick, cluster, cluster + "      scheduler: {extraArgs: [{name: policy-config-file, value: /etc/kubernetes/policy.json}]}\n", "kube-scheduler of v1.34.2 has no argument policy-config-file"},
		{"TLS version", quick, cluster, cluster + "      apiServer: {extraArgs: [{name: tls-min-version, value: TLS12}]}\n", `"TLS12" is not one of VersionTLS10, VersionTLS11, VersionTLS12, VersionTLS13`},
		{"cipher suite", quick, cluster, cluster + "      scheduler: {extraArgs: [{name: tls-cipher-suites, value: 'TLS_AES_128_GCM_SHA256,TLS_FOO'}]}\n", `tls-cipher-suites of kube-scheduler: "TLS_FOO" is not known`},
		{"authorization", quick, cluster, cluster + "      apiServer: {extraArgs: [{name: authorization-mode, value: 'Node,RBACC'}]}\n", `"RBACC" is not one of AlwaysAllow`},
		{"authorization twice", quick, cluster, cluster + "      apiServer: {extraArgs: [{name: authorization-mode, value: 'Node,Node'}]}\n", `"Node" is listed twice`},
		{"issuer without a client", quick, cluster, cluster + "      apiServer: {extraArgs: [{name: oidc-issuer-url, value: 'https://example.com'}]}\n", "oidc-issuer-url and oidc-client-id belong together"},
		{"plugin on and off", quick, cluster, cluster + "      apiServer: {extraArgs: [{name: enable-admission-plugins, value: PodNodeSelector}, {name: disable-admission-plugins, value: PodNodeSelector}]}\n", "is enabled and disabled"},
		{"range of ports", quick, cluster, cluster + "      apiServer: {extraArgs: [{name: service-node-port-range, value: 40000-30000}]}\n", "is not a range of ports"},
		{"file of an argument", quick, cluster, cluster + "      apiServer: {extraArgs: [{name: audit-policy-file, value: /etc/kubernetes/audit.yaml}]}\n", "its container does not have the file /etc/kubernetes/audit.yaml"},
		{"audit policy", quick, cluster, auditPolicy("rules: [{level: metadata}]") + cluster + auditArguments, `kube-apiserver does not start: as audit-policy-file, rules[0].level: Unsupported value: "metadata"`},
		{"stage of an audit policy", quick, cluster, auditPolicy("rules: [{level: Metadata}]\n        omitStages: [RequestReceive]") + cluster + auditArguments, `omitStages[0]: Invalid value: "RequestReceive"`},
		{"configuration of the scheduler", quick, cluster, "    files:\n    - path: /etc/kubernetes/scheduler/config.yaml\n      content: |\n        apiVersion: kubescheduler.config.k8s.io/v1\n        kind: KubeSchedulerConfiguration\n" + cluster + "      scheduler: {extraArgs: [{name: config, value: /etc/scheduler/config.yaml}], extraVolumes: [{name: config, hostPath: /etc/kubernetes/scheduler, mountPath: /etc/scheduler}]}\n", "kube-scheduler does not start: as config, it has no configuration of a client, clientConnection.kubeconfig"},
		{"plugin of the scheduler", quick, cluster, "    files:\n    - path: /etc/scheduler/kube-scheduler-config.yaml\n      content: |\n        apiVersion: kubescheduler.config.k8s.io/v1\n        kind: KubeSchedulerConfiguration\n        clientConnection: {kubeconfig: /etc/kubernetes/scheduler.conf}\n        profiles: [{plugins: {score: {enabled: [{name: Coscheduling}]}}}]\n" + cluster + "      scheduler: {extraArgs: [{name: config, value: /etc/scheduler/kube-scheduler-config.yaml}], extraVolumes: [{name: config, hostPath: /etc/scheduler, mountPath: /etc/scheduler}]}\n", "the scheduler has no plugin Coscheduling"},
		{"credential providers", quick, kubelet, kubelet + "          - {name: image-credential-provider-config, value: /etc/ecr.yaml}\n          - {name: image-credential-provider-bin-dir, value: /usr/bin}\n      files: [{path: /etc/ecr.yaml, content: 'providers: []'}]\n", "kubelet does not start: as image-credential-provider-config, it has no apiVersion, or no kind — add apiVersion and kind: CredentialProviderConfig"},
		{"block of a Node", quick, config, "        - {name: node-cidr-mask-size, value: '12'}\n" + config, "192.168.0.0/16 is smaller than the block of one Node, /12"},
		{"bits of a Node", quick, config, "        - {name: node-cidr-mask-size-ipv4, value: '33'}\n" + config, "is 33, and addresses have 32 bits"},
		{"controller", quick, config, "        - {name: controllers, value: '*,-nosuch'}\n" + config, `"nosuch" is not a controller`},
		{"bind address", quick, cluster, cluster + "      scheduler: {extraArgs: [{name: bind-address, value: localhost}]}\n", `"localhost" is not an IP address`},
		{"flag of etcd", quick, cluster, cluster + "      etcd: {local: {extraArgs: [{name: nosuchflag, value: '1'}]}}\n", "etcd has no argument nosuchflag"},
		{"value of etcd", quick, cluster, cluster + "      etcd: {local: {extraArgs: [{name: quota-backend-bytes, value: 8GB}]}}\n", `quota-backend-bytes of etcd: "8GB" is not a whole number`},
		{"variable of etcd", quick, cluster, cluster + "      etcd: {local: {extraEnvs: [{name: ETCD_QUOTA_BACKEND_BYTES, value: 8GB}]}}\n", `extraEnvs[0].value: etcd does not start: "8GB" is not a whole number`},
		{"first etcd that joins", quick, cluster, cluster + "      etcd: {local: {extraArgs: [{name: initial-cluster-state, value: existing}]}}\n", "the first etcd does not start: it finds no members"},
		{"variable of a Secret", quick, cluster, cluster + "      apiServer: {extraEnvs: [{name: A, valueFrom: {secretKeyRef: {name: a, key: b}}}]}\n", "extraEnvs[0].valueFrom: kube-apiserver does not start: it runs before there is an API server"},
		{"variable of a ConfigMap", quick, cluster, cluster + "      scheduler: {extraEnvs: [{name: A, valueFrom: {configMapKeyRef: {name: a, key: b}}}]}\n", "extraEnvs[0].valueFrom: kube-scheduler does not start: it runs before there is an API server"},
		{"variable of no field", quick, cluster, cluster + "      scheduler: {extraEnvs: [{name: A, valueFrom: {fieldRef: {fieldPath: metadata.foo}}}]}\n", `extraEnvs[0].valueFrom.fieldRef.fieldPath: kube-scheduler does not start: "metadata.foo" is not one of`},
		{"variable with two values", quick, cluster, cluster + "      etcd: {local: {extraEnvs: [{name: A, value: b, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]}}\n", "extraEnvs[0].valueFrom: etcd does not start: stands beside a value"},
		{"phase of etcd", quick, "    joinConfiguration:\n", "    joinConfiguration:\n      skipPhases: [etcd-join]\n", "without the phase etcd-join, there is no etcd on the machine"},
		{"cgroup driver", quick, kubelet, kubelet + "          - {name: cgroup-driver, value: cgroup}\n", `"cgroup" is not one of cgroupfs, systemd`},
		{"eviction", quick, kubelet, kubelet + "          - {name: eviction-hard, value: 'memory.free<100Mi'}\n", `"memory.free" is not one of memory.available`},
		{"soft eviction", quick, kubelet, kubelet + "          - {name: eviction-soft, value: 'memory.available<1Gi'}\n", "eviction-soft-grace-period has not"},
		{"reservation", quick, kubelet, kubelet + "          - {name: system-reserved, value: cpu=lots}\n", `"lots" is not a quantity`},
		{"static CPUs", quick, kubelet, kubelet + "          - {name: cpu-manager-policy, value: static}\n", "needs reserved CPUs"},
		{"address of a Node", quick, kubelet, kubelet + "          - {name: node-ip, value: 10.0.0}\n", `"10.0.0" is not an IP address`},
		{"durations of an election", quick, config, "        - {name: leader-elect-lease-duration, value: 5s}\n" + config, "leader-elect-lease-duration, 5s, is not longer than leader-elect-renew-deadline, 10s"},
		{"retries of an election", quick, cluster, cluster + "      scheduler: {extraArgs: [{name: leader-elect-retry-period, value: 9s}]}\n", "is not longer than 1.2 times leader-elect-retry-period, 9s"},
		{"negative number", quick, cluster, cluster + "      apiServer: {extraArgs: [{name: max-requests-inflight, value: '-5'}]}\n", "-5 is negative"},
		{"negative duration", quick, cluster, cluster + "      apiServer: {extraArgs: [{name: request-timeout, value: -5s}]}\n", "-5s is negative"},
		{"chance", quick, cluster, cluster + "      apiServer: {extraArgs: [{name: goaway-chance, value: '0.5'}]}\n", "0.5 is not a number from 0 to 0.02"},
		{"anonymous requests", quick, cluster, cluster + "      apiServer: {extraArgs: [{name: anonymous-auth, value: 'false'}]}\n", "kubeadm's probes get the status 401"},
		{"port of the probes", quick, cluster, cluster + "      scheduler: {extraArgs: [{name: secure-port, value: '0'}]}\n", "kubeadm's probes use the port 10259"},
		{"port of kube-apiserver", quick, cluster, cluster + "      apiServer: {extraArgs: [{name: secure-port, value: '7443'}]}\n", "kubeadm's probes use the port 6443"},
		{"issuer of service accounts", quick, cluster, cluster + "      apiServer: {extraArgs: [{name: service-account-issuer, value: 'http://a b'}]}\n", "is not a URL"},
		{"name of a volume", quick, cluster, cluster + "      apiServer: {extraVolumes: [{name: My_Volume, hostPath: /etc/a, mountPath: /etc/a}]}\n", `"My_Volume" is not the name of a volume`},
		{"volume of kubeadm", quick, cluster, cluster + "      apiServer: {extraVolumes: [{name: k8s-certs, hostPath: /etc/a, mountPath: /etc/a}]}\n", "takes the place of kubeadm's volume k8s-certs"},
		{"a command that ends the script", quick, worker, "      preKubeadmCommands: ['echo a; exit 0']\n" + worker, "the machine would not join: all commands are one script, and exit ends it"},
		{"a command that replaces the shell", quick, worker, "      preKubeadmCommands: [exec /opt/setup]\n" + worker, "exec replaces its shell"},
		{"a command that never ends", quick, worker, "      preKubeadmCommands: [sleep infinity]\n" + worker, "sleep never ends"},
		{"a follower", quick, worker, "      preKubeadmCommands: [tail -f /var/log/cloud-init.log]\n" + worker, "tail never ends"},
		{"an endless loop", quick, worker, "      preKubeadmCommands: ['while true; do date; sleep 5; done']\n" + worker, "the loop never ends"},
		{"one taint twice", quick, kubelet, kubelet + "          - {name: register-with-taints, value: 'a=b:NoSchedule,a=c:NoSchedule'}\n", "two taints have the key a and the effect NoSchedule"},
		{"path of two volumes", quick, cluster, cluster + "      scheduler: {extraVolumes: [{name: a, hostPath: /a, mountPath: /a}, {name: b, hostPath: /b, mountPath: /a}]}\n", "/a is the path of another volume"},
		{"path of kubeadm's volume", quick, cluster, cluster + "      apiServer: {extraVolumes: [{name: a, hostPath: /a, mountPath: /etc/ssl/certs}]}\n", "/etc/ssl/certs is the path of another volume"},
		{"type of a path", quick, cluster, cluster + "      apiServer: {extraVolumes: [{name: a, hostPath: /a, mountPath: /a, pathType: Folder}]}\n", `"Folder" is not a type of a path`},
		{"variable", quick, cluster, cluster + "      apiServer: {extraEnvs: [{name: 'A=B', value: x}]}\n", `"A=B" is not the name of a variable`},
		{"variable of etcd", quick, cluster, cluster + "      etcd: {local: {extraEnvs: [{name: 'A=B', value: x}]}}\n", `"A=B" is not the name of a variable`},
		{"thresholds of images", quick, kubelet, kubelet + "          - {name: image-gc-high-threshold, value: '60'}\n", "image-gc-low-threshold, 80, is not less than image-gc-high-threshold, 60"},
		{"memory manager", quick, kubelet, kubelet + "          - {name: memory-manager-policy, value: Static}\n", "needs reserved memory"},
		{"no groups to enforce reservations", quick, kubelet, kubelet + "          - {name: cgroups-per-qos, value: 'false'}\n", "without cgroups-per-qos, the kubelet cannot enforce reservations"},
		{"enforced twice", quick, kubelet, kubelet + "          - {name: enforce-node-allocatable, value: 'pods,pods'}\n", "enforce-node-allocatable has a value twice"},
		{
			"enforced in two ways", quick, kubelet,
			kubelet + "          - {name: enforce-node-allocatable, value: 'pods,kube-reserved,kube-reserved-compressible'}\n          - {name: kube-reserved-cgroup, value: /kube}\n",
			"enforce-node-allocatable has kube-reserved and kube-reserved-compressible",
		},
		{
			"Capacity Block of several types", "machine-pool", "    instanceType: m6i.large\n    iam",
			"    instanceType: m6i.large\n    marketType: CapacityBlock\n    capacityReservationId: cr-0123456789abcdef0\n    iam",
			"a launch template for a Capacity Block cannot be used with mixedInstancesPolicy",
		},
		{"cgroup of a reservation", quick, kubelet, kubelet + "          - {name: enforce-node-allocatable, value: 'pods,kube-reserved'}\n", "kube-reserved-cgroup is not set"},
		{"period", quick, kubelet, kubelet + "          - {name: cpu-cfs-quota-period, value: 5s}\n", "5s is not a duration from 1ms to 1s"},
		{"sysctl", quick, kubelet, kubelet + "          - {name: allowed-unsafe-sysctls, value: 'kernel/*x'}\n", "is not a sysctl"},
		{"host name", quick, kubelet, kubelet + "          - {name: hostname-override, value: Bad_Name}\n", `"Bad_Name" is not the name of a Node`},
		{"type of a patch", quick, worker, patched("kubeletconfiguration0+replace.yaml", "maxPods: 50") + folder, "no type of patches"},
		{"patch", quick, worker, patched("kube-apiserver0+merge.yaml", "a: [") + folder, "the patch is neither YAML nor JSON"},
		{"JSON patch", quick, worker, patched("kubeletconfiguration0+json.yaml", "maxPods: 50") + folder, "a patch of the type json is a list"},
		{"number in a patch", quick, worker, patched("kubeletconfiguration0+merge.yaml", "maxPods: many") + folder, "maxPods is many, not a whole number"},
		{"value in a patch", quick, worker, patched("kubeletconfiguration0+merge.yaml", "evictionHard: {memory.free: 5%}") + folder, `"memory.free" is not one of`},
		{"value in a JSON patch", quick, worker, patched("kubeletconfiguration0+json.yaml", "[{op: add, path: /cgroupDriver, value: cgroup2}]") + folder, `"cgroup2" is not one of cgroupfs, systemd`},
		{"gate in a patch", quick, worker, patched("kubeletconfiguration.yaml", "featureGates: {NoSuchGate: true}") + folder, "has no feature gate NoSuchGate"},
		{"fields of a patch", quick, worker, patched("kubeletconfiguration0+merge.yaml", "shutdownGracePeriodCriticalPods: 10s") + folder, "is a part of shutdownGracePeriod, which is 0s"},
		{"group of a token", quick, "    initConfiguration:\n", "    initConfiguration:\n      bootstrapTokens: [{token: abcdef.0123456789abcdef, groups: [admins]}]\n", `"admins" is not a group of bootstrap tokens`},
		{"end of a token", quick, "    initConfiguration:\n", "    initConfiguration:\n      bootstrapTokens: [{token: abcdef.0123456789abcdef, ttlSeconds: 60, expires: '2030-01-01T00:00:00Z'}]\n", "ttlSeconds or expires, not both"},
		{"two discoveries", quick, registered, "    joinConfiguration:\n      discovery: {file: {kubeConfigPath: /a}, bootstrapToken: {token: abcdef.0123456789abcdef, unsafeSkipCAVerification: true}}\n      nodeRegistration:\n", "kubeadm accepts bootstrapToken or file, not both"},
		{"port of two listeners", quick, lb, lb + "    additionalListeners: [{port: 6443, protocol: TCP}]\n", "the load balancer has a listener on port 6443 already"},
		{"interface of two machines", "three-zones", "      iamInstanceProfile: control-plane.cluster-api-provider-aws.sigs.k8s.io\n", "      iamInstanceProfile: control-plane.cluster-api-provider-aws.sigs.k8s.io\n      networkInterfaces: [eni-0123456789abcdef0]\n", "3 machines would have the same network interface"},
		{"two subnets of a zone", "listed-subnets", lb, lb + "    subnets: [public-a, public-b, nodes-a]\n", "nodes-a is in the zone us-east-1a, as public-a is"},
		{"spot on a host", quick, machine, machine + "      tenancy: host\n      spotMarketOptions: {}\n", "spot instances do not run on Dedicated Hosts"},
		{"placement group of a host", quick, machine, machine + "      tenancy: host\n      placementGroupName: a\n", "Dedicated Hosts are not in placement groups"},
		{"periods of a bucket", quick, network, network + "  s3Bucket: {name: boot..data, controlPlaneIAMInstanceProfile: a, nodesIAMInstanceProfiles: [b]}\n", "S3 permits no two periods side by side"},
		{"service-linked role", eks, plane, plane + "  accessConfig: {authenticationMode: api}\n  accessEntries: [{principalARN: 'arn:aws:iam::123456789012:role/aws-service-role/eks.amazonaws.com/AWSServiceRoleForAmazonEKS'}]\n", "EKS takes no access entry for a service-linked role"},
		{"prefix of groups", eks, plane, plane + "  oidcIdentityProviderConfig: {clientId: a, identityProviderConfigName: b, issuerUrl: 'https://example.com', groupsPrefix: 'system:'}\n", "a prefix cannot contain system:"},
		{"query of an issuer", eks, plane, plane + "  oidcIdentityProviderConfig: {clientId: a, identityProviderConfigName: b, issuerUrl: 'https://example.com/?a=b'}\n", "an issuer has no query and no fragment"},
		{"issuer in a VPC", eks, plane, plane + "  oidcIdentityProviderConfig: {clientId: a, identityProviderConfigName: b, issuerUrl: 'https://10.0.0.1:8443/realms/a'}\n", "10.0.0.1 is not in the internet"},
		{"issuer of a Service", eks, plane, plane + "  oidcIdentityProviderConfig: {clientId: a, identityProviderConfigName: b, issuerUrl: 'https://dex.dex.svc.cluster.local'}\n", "dex.dex.svc.cluster.local is not in the internet"},
		{"issuer on this machine", eks, plane, plane + "  oidcIdentityProviderConfig: {clientId: a, identityProviderConfigName: b, issuerUrl: 'https://localhost:5556'}\n", "localhost is not in the internet"},
		{"issuer of IPv6", eks, plane, plane + "  oidcIdentityProviderConfig: {clientId: a, identityProviderConfigName: b, issuerUrl: 'https://[fd00::1]/'}\n", "fd00::1 is not in the internet"},
		{"client of an issuer", eks, plane, plane + "  oidcIdentityProviderConfig: {clientId: '', identityProviderConfigName: b, issuerUrl: 'https://example.com'}\n", "spec.oidcIdentityProviderConfig.clientId: is missing"},
		{"disk of an image", eks, group, group + "  diskSize: 10\n", "10 GiB: the image of the nodes has 20"},
		{"disk of Windows", eks, group, "  amiType: WINDOWS_CORE_2022_x86_64\n  diskSize: 40\n", "40 GiB: the image of the nodes has 50"},
		{"group of remote access", eks, group, group + "  remoteAccess: {sshKeyName: a, sourceSecurityGroups: [default]}\n", `"default" is not the ID of a security group`},
		{"preflight checks", quick, registered, registered + "        ignorePreflightErrors: [all, NumCPU]\n", `kubeadm accepts no other checks beside "all"`},
		{"phase", quick, registered, "    joinConfiguration:\n      skipPhases: [addon/coredns]\n      nodeRegistration:\n", "kubeadm has no phase addon/coredns"},
		{"port of the API server", quick, "    initConfiguration:\n", "    initConfiguration:\n      localAPIEndpoint: {bindPort: 7443}\n", "the load balancer forwards to port 6443"},
		{"usage of a token", quick, "    initConfiguration:\n", "    initConfiguration:\n      bootstrapTokens: [{token: abcdef.0123456789abcdef, usages: [login]}]\n", `"login" is not a usage of a token`},
		{"domain of Services", quick, "  clusterNetwork:\n", "  clusterNetwork:\n    serviceDomain: Cluster_Local\n", `"Cluster_Local" is not a domain of DNS`},
		{"owner of a file", quick, worker, "      files: [{path: /etc/x, content: x, owner: root root}]\n" + worker, `"root root" is not a user and a group`},
		{"encoding of a file", quick, worker, "      files: [{path: /etc/x, content: '!', encoding: base64}]\n" + worker, "is not base64, which encoding says"},
		{"compressed file", quick, worker, "      files: [{path: /etc/x, content: aGVsbG8=, encoding: gzip+base64}]\n" + worker, "is not compressed by gzip"},
		{"user", quick, worker, "      users: [{name: Ada Lovelace}]\n" + worker, `"Ada Lovelace" is not the name of a user of Linux`},
		{"label of a filesystem", quick, worker, "      diskSetup: {filesystems: [{device: /dev/xvdb, filesystem: xfs, label: a-long-name-of-data}]}\n" + worker, "xfs permits 12"},
		{"image", quick, machine, machine + "      ami: {id: ami-x}\n", `"ami-x" is not the ID of an image`},
		{"instance profile", quick, machine, strings.Replace(machine, "nodes.cluster-api", "path/nodes.cluster-api", 1), "a path is not part of the name"},
		{"reserved bucket", quick, network, network + "  s3Bucket: {name: xn--foo, controlPlaneIAMInstanceProfile: a, nodesIAMInstanceProfiles: [b]}\n", "S3 reserves names that begin with xn--"},
		{"URL that never works", quick, network, network + "  s3Bucket: {name: boot-data, presignedURLDuration: -1h, controlPlaneIAMInstanceProfile: a, nodesIAMInstanceProfiles: [b]}\n", "-1h0m0s: a link that never works"},
		{"URL of no time", quick, network, network + "  s3Bucket: {name: boot-data, presignedURLDuration: 0s, controlPlaneIAMInstanceProfile: a, nodesIAMInstanceProfiles: [b]}\n", "0s: a link that never works"},
		{"URL of a moment", quick, network, network + "  s3Bucket: {name: boot-data, presignedURLDuration: 1s, controlPlaneIAMInstanceProfile: a, nodesIAMInstanceProfiles: [b]}\n", "1s: the link to the boot data ends before the machine runs"},
		{"long URL", quick, network, network + "  s3Bucket: {name: boot-data, presignedURLDuration: 200h, controlPlaneIAMInstanceProfile: a, nodesIAMInstanceProfiles: [b]}\n", "S3 permits at most 168h"},

		{"group of administrators", eks, plane, plane + "  accessConfig: {authenticationMode: api}\n  accessEntries: [{principalARN: 'arn:aws:iam::123456789012:role/a', kubernetesGroups: ['system:masters']}]\n", `"system:masters": EKS reserves names of groups that begin with system:`},
		{"session", eks, plane, plane + "  accessConfig: {authenticationMode: api}\n  accessEntries: [{principalARN: 'arn:aws:sts::123456789012:assumed-role/a/b'}]\n", "is a session of a role, not an IAM role or user"},
		{"other partition", eks, plane, plane + "  accessConfig: {authenticationMode: api}\n  accessEntries: [{principalARN: 'arn:aws-cn:iam::123456789012:role/a'}]\n", "is of the partition aws-cn, but the region us-east-1 is in aws"},
		{"policy of IAM", eks, plane, plane + "  accessConfig: {authenticationMode: api}\n  accessEntries: [{principalARN: 'arn:aws:iam::123456789012:role/a', accessPolicies: [{policyARN: 'arn:aws:iam::aws:policy/ReadOnlyAccess', accessScope: {type: cluster}}]}]\n", "is not the ARN of an access policy of EKS"},
		{"configuration of an add-on", eks, plane, plane + "  addons: [{name: coredns, version: v1.12.1-eksbuild.2, configuration: '{\"replicaCount\": 2'}]\n", "is neither an object of JSON nor a mapping of YAML"},
		{"key of EKS", eks, plane, plane + "  encryptionConfig: {resources: [secrets], provider: 'arn:aws:iam::123456789012:role/a'}\n", "is not the ARN of a KMS key"},
		{"alias of a key of EKS", eks, plane, plane + "  encryptionConfig: {resources: [secrets], provider: alias/secrets}\n", `"alias/secrets" is not an ARN — write the ARN of the alias: arn:aws:kms:us-east-1:ACCOUNT:alias/secrets`},
		{"issuer", eks, plane, plane + "  oidcIdentityProviderConfig: {clientId: a, identityProviderConfigName: b, issuerUrl: 'http://example.com'}\n", "is not a URL that begins with https://"},
		{"encrypted resources", eks, plane, plane + "  encryptionConfig: {resources: [configmaps], provider: 'arn:aws:kms:us-east-1:123456789012:key/1234abcd-12ab-34cd-56ef-1234567890ab'}\n", `EKS does not encrypt "configmaps"`},
		{"version of an AMI", eks, group, group + "  amiVersion: latest\n", `"latest" is not the version of an AMI of EKS`},
		{"AMI of another Kubernetes", eks, group, group + "  amiVersion: 1.33.0-20250101\n", "1.33.0-20250101 is for Kubernetes 1.33, and the nodes have v1.34"},
		{"disk of a node group", eks, group, group + "  diskSize: 200000\n", "a volume of the type gp3 has 1 to 65536"},
		{"queue in order", eks, group, group + "  lifecycleHooks: [{name: a, lifecycleTransition: 'autoscaling:EC2_INSTANCE_LAUNCHING', roleARN: 'arn:aws:iam::123456789012:role/a', notificationTargetARN: 'arn:aws:sqs:us-east-1:123456789012:a.fifo'}]\n", "spec.lifecycleHooks[0].notificationTargetARN: lifecycle hooks cannot send to FIFO queues"},
		{"heartbeat", eks, group, group + "  lifecycleHooks: [{name: a, lifecycleTransition: 'autoscaling:EC2_INSTANCE_LAUNCHING', heartbeatTimeout: 3h}]\n", "must be 30 seconds to 2 hours"},
		{"setting of nodeadm's kubelet", "eks-machines", "          maxPods: 58\n", "          maxPods: many\n", "the kubelet does not start: maxPods is many, not a whole number"},
		{"nodeadm's containerd", "eks-machines", "      kubelet:\n        config:\n", "      containerd: {config: '[plugins'}\n      kubelet:\n        config:\n", "nodeadm fails: the configuration of containerd is not TOML"},
		{"strategy of a refresh", "machine-pool", "    instanceWarmup: 120\n", "    instanceWarmup: 120\n    strategy: Fast\n", "spec.refreshPreferences.strategy"},
		{"share of a refresh", "machine-pool", "    minHealthyPercentage: 90\n", "    minHealthyPercentage: 150\n", "must be 0 to 100"},
		{"lifecycle hook", eks, group, group + "  lifecycleHooks: [{name: Größe, lifecycleTransition: 'autoscaling:EC2_INSTANCE_LAUNCHING'}]\n", "the name of a lifecycle hook has up to 255 letters"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			text := manifests.Edit(t, manifests.Read(t, "../../../../configs/"+tt.file+".yaml"), tt.old, tt.edited)
			_, err := manifests.Load(t, text, input.LoadOptions{})
			require.ErrorAs(t, err, new(*manifest.InvalidError))
			assert.Contains(t, err.Error(), tt.want)
			assert.NotContains(t, err.Error(), "\n", "one problem")
			assert.Contains(t, err.Error(), " — ", "it says what to do")
		})
	}
}

// patched writes a patch of kubeadm for workers.
func patched(name, text string) string {
	return "      files: [{path: /etc/kubernetes/patches/" + name + ", content: " + strconv.Quote(text) + "}]\n"
}

// many writes tags.
func many(n int) string {
	var tags []string
	for i := range n {
		tags = append(tags, "t"+string(rune('a'+i/26))+string(rune('a'+i%26))+": x")
	}
	return strings.Join(tags, ", ")
}

// certificate says what is wrong with a certificate.
type certificate struct {
	leaf, otherKey, parameters bool
	ends                       time.Duration // from now; 0: ten years
}

// authority returns the data of a Secret with a certificate and a key.
func authority(t *testing.T, c certificate) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	if c.ends == 0 {
		c.ends = 87600 * time.Hour
	}
	spec := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "ca"}, NotBefore: time.Now().Add(-2400 * time.Hour), NotAfter: time.Now().Add(c.ends),
		IsCA: !c.leaf, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature,
	}
	if !c.leaf {
		spec.KeyUsage |= x509.KeyUsageCertSign
	}
	raw, err := x509.CreateCertificate(rand.Reader, spec, spec, key.Public(), key)
	require.NoError(t, err)
	if c.otherKey {
		key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		require.NoError(t, err)
	}
	private, err := x509.MarshalECPrivateKey(key)
	require.NoError(t, err)
	text := pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: private})
	if c.parameters {
		text = append(pem.EncodeToMemory(&pem.Block{Type: "EC PARAMETERS", Bytes: []byte("P-256")}), text...)
	}
	out, err := yaml.Marshal(map[string]any{"stringData": map[string]string{
		"tls.crt": string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw})), "tls.key": string(text),
	}})
	require.NoError(t, err)
	return string(out)
}

// EKS compares the disk of a node group with the snapshot of the image, which is smaller than the root device in Amazon Linux 2. CAPA compares
// the volume of a launch template with the root device.
func TestDisksOfAmazonLinux2(t *testing.T) {
	const group, template = "  amiType: AL2023_x86_64_STANDARD\n  instanceType: t3.large\n", "  awsLaunchTemplate: {instanceType: t3.large, rootVolume: {size: 10, type: gp3}}\n"
	old := strings.Replace(manifests.Read(t, "../../../../configs/eks.yaml"), "version: v1.34", "version: v1.32", 1)
	for what, want := range map[string]string{
		"  instanceType: t3.large\n  diskSize: 10\n":                             "", // CAPA's default is Amazon Linux 2
		"  amiType: AL2_x86_64\n  instanceType: t3.large\n  diskSize: 4\n":       "",
		"  amiType: AL2_ARM_64\n  instanceType: m7g.large\n  diskSize: 10\n":     "",
		"  amiType: AL2_x86_64\n  instanceType: t3.large\n  diskSize: 3\n":       "3 GiB: the image of the nodes has 4",
		"  amiType: AL2_x86_64_GPU\n  instanceType: g5.xlarge\n  diskSize: 9\n":  "9 GiB: the image of the nodes has 10",
		"  amiType: AL2_x86_64_GPU\n  instanceType: g5.xlarge\n  diskSize: 20\n": "",
		"  amiType: AL2_x86_64\n" + template:                                     "10 GiB: the image of the nodes has 20",
	} {
		_, err := manifests.Load(t, manifests.Edit(t, old, group, what), input.LoadOptions{})
		if want == "" {
			require.NoError(t, err, what)
		} else {
			require.ErrorContains(t, err, want, what)
		}
	}
	// The size of the images with drivers is not known: 10 GiB is the least that they can be built with.
	c := manifests.MustLoad(t, manifests.Edit(t, old, group, "  amiType: AL2_x86_64_GPU\n  instanceType: g5.xlarge\n  diskSize: 10\n"), input.LoadOptions{})
	var warnings []string
	for _, w := range c.Warnings {
		warnings = append(warnings, w.String())
	}
	assert.Contains(
		t,
		strings.Join(warnings, "\n"),
		"spec.diskSize: 10 GiB: the image of the nodes may have up to 20, and EKS creates no node group then — use 20 or more",
	)
}

// A Cluster without a namespace is in that of the objects to which it refers, as with kubectl apply -n, unless they are in several.
func TestClusterWithoutNamespace(t *testing.T) {
	const plane, mirror = "kind: AWSManagedControlPlane\nmetadata:\n  name: eks\n", "kind: AWSManagedCluster\nmetadata:\n  name: eks\n"
	base := manifests.Read(t, "../../../../configs/eks.yaml")
	text := strings.Replace(base, plane, plane+"  namespace: fleet\n", 1)
	require.NotEqual(t, base, text)
	c := manifests.MustLoad(t, text, input.LoadOptions{})
	assert.Equal(t, "fleet", c.Namespace)
	require.Len(t, c.Warnings, 1)
	assert.Equal(t, "has no namespace: the Cluster is taken to be in fleet, as AWSManagedControlPlane/eks is", c.Warnings[0].What)
	_, err := manifests.Load(t, strings.Replace(text, mirror, mirror+"  namespace: other\n", 1), input.LoadOptions{})
	require.ErrorContains(t, err, "it is in the namespace fleet, but the Cluster is in default")
	c = manifests.MustLoad(
		t,
		text+"\n---\napiVersion: controlplane.cluster.x-k8s.io/v1beta2\n"+plane+"spec: {region: us-east-1, version: v1.34}\n",
		input.LoadOptions{},
	)
	assert.Equal(t, "default", c.Namespace, "it finds another one there")
}

// Some values stop a component in all versions of Kubernetes, also in those of which the arguments are not known.
func TestArgumentsOfAnyVersion(t *testing.T) {
	const config = "    clusterConfiguration:\n"
	base := strings.ReplaceAll(manifests.Read(t, "../../../../configs/quickstart.yaml"), "v1.34.2", "v1.25.16")
	for argument, want := range map[string]string{
		"{name: anonymous-auth, value: 'false'}":                   "kubeadm's probes get the status 401",
		"{name: secure-port, value: '443'}":                        "kubeadm's probes use the port 6443",
		"{name: tls-cipher-suites, value: TLS_FOO}":                `"TLS_FOO" is not known`,
		"{name: tls-min-version, value: VersionTLS12}":             "",
		"{name: enable-admission-plugins, value: NodeRestriction}": "",
	} {
		text := strings.Replace(base, config, config+"      apiServer: {extraArgs: ["+argument+"]}\n", 1)
		require.NotEqual(t, base, text)
		_, err := manifests.Load(t, text, input.LoadOptions{})
		if want == "" {
			require.NoError(t, err, argument)
			continue
		}
		require.ErrorContains(t, err, want, argument)
	}
}

// Certificates that the user brings are checked before anything is made.
func TestAuthoritiesOfTheUser(t *testing.T) {
	base := manifests.Read(t, "../../../../configs/quickstart.yaml") + "\n---\napiVersion: v1\nkind: Secret\nmetadata: {name: quickstart-"
	for _, tt := range []struct {
		name, suffix string
		c            certificate
		want         string
	}{
		{"good", "ca", certificate{}, ""},
		{"expired", "ca", certificate{ends: -time.Hour}, "the CA of the cluster: the certificate has expired on"},
		{"not a CA", "etcd", certificate{leaf: true}, "the CA of etcd: the certificate is not that of a certificate authority"},
		{"another key", "proxy", certificate{otherKey: true}, "the CA of the front proxy: certificate and private key do not match"},
		{"parameters of the curve", "ca", certificate{parameters: true}, "the key begins with EC PARAMETERS: remove that block"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := manifests.Load(t, base+tt.suffix+"}\n"+authority(t, tt.c), input.LoadOptions{})
			if tt.want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, tt.want)
		})
	}
	c := manifests.MustLoad(t, base+"ca}\n"+authority(t, certificate{ends: 20 * 24 * time.Hour}), input.LoadOptions{})
	require.Len(t, c.Warnings, 1)
	assert.Contains(t, c.Warnings[0].What, "and with it all certificates of the cluster")
}
