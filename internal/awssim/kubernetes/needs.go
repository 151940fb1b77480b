package kubernetes

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"time"
)

// unserved returns which client of the API server fails because runtime-config turns off what it asks for: kubeadm init writes ConfigMaps, Roles,
// a DaemonSet and a Deployment; the scheduler and the admission plugins wait for lists that never come.
func unserved(config string) string {
	clients := [][2]string{
		{"/v1/nodes", "kubeadm init: error execution phase upload-config: the server could not find the requested resource"},
		{"/v1/configmaps", "kubeadm init: error execution phase upload-config: the server could not find the requested resource"},
		{"rbac.authorization.k8s.io/v1/roles", "kubeadm init: unable to create RBAC role: the server could not find the requested resource"},
		{"rbac.authorization.k8s.io/v1/clusterrolebindings", "kubeadm init: unable to create ClusterRoleBinding: the server could not find it"},
		{"apps/v1/daemonsets", "kubeadm init: error execution phase addon/kube-proxy: the server could not find the requested resource"},
		{"apps/v1/deployments", "kubeadm init: error execution phase addon/coredns: the server could not find the requested resource"},
		{"apps/v1/replicasets", "kube-controller-manager: the Deployment coredns gets no pods"},
		{"coordination.k8s.io/v1/leases", "kube-scheduler: error retrieving resource lock: the server could not find the requested resource"},
		{"discovery.k8s.io/v1/endpointslices", "kube-proxy: failed to list *v1.EndpointSlice: the server could not find the requested resource"},
		{"storage.k8s.io/v1/storageclasses", "kube-scheduler: failed to list *v1.StorageClass: the server could not find the requested resource"},
		{"policy/v1/poddisruptionbudgets", "kube-scheduler: failed to list *v1.PodDisruptionBudget: the server could not find the requested resource"},
		{"scheduling.k8s.io/v1/priorityclasses", "pods \"kube-proxy\" is forbidden: not yet ready to handle request"},
		{"admissionregistration.k8s.io/v1/mutatingwebhookconfigurations", "kubeadm init: is forbidden: not yet ready to handle request"},
	}
	for _, client := range clients {
		on := true
		version := path.Dir(client[0])
		for _, key := range []string{"api/all", "api/ga", version, client[0]} { // from the general to the special
			for item := range strings.SplitSeq(config, ",") {
				if name, value, _ := strings.Cut(strings.TrimSpace(item), "="); name == key {
					on = !slices.Contains([]string{"false", "0", "f", "F", "FALSE", "False"}, value)
				}
			}
		}
		if !on {
			return client[1]
		}
	}
	return ""
}

// exchanged returns what does not work with files of kubeadm that were exchanged. keys is the folder of certificates. A file that the boot data
// write is the user's, and may be anything.
func exchanged(server, controllers any, keys string, local bool, files map[string]string) string {
	named := func(args any, name, usual string) string {
		file := argument(args, name)
		if rest, is := below(file, keys); file != "" && is && files[path.Clean(file)] == "" {
			return strings.TrimPrefix(rest, "/")
		}
		return usual // of kubeadm, or of the user
	}
	if named(server, "client-ca-file", "ca.crt") != "ca.crt" {
		return "kubeadm init: Unauthorized: x509: certificate signed by unknown authority"
	}
	if local && (named(server, "etcd-cafile", "etcd/ca.crt") != "etcd/ca.crt" ||
		named(server, "etcd-certfile", "apiserver-etcd-client.crt") != "apiserver-etcd-client.crt" ||
		named(server, "etcd-keyfile", "apiserver-etcd-client.key") != "apiserver-etcd-client.key") {
		return "kube-apiserver: connection to etcd failed: tls: failed to verify certificate: x509: certificate signed by unknown authority"
	}
	if named(server, "tls-cert-file", "apiserver.crt") != "apiserver.crt" || named(server, "tls-private-key-file", "apiserver.key") != "apiserver.key" {
		return "kubeadm init: error execution phase wait-control-plane: x509: certificate is not valid for the API server"
	}
	stem := func(file string) string { return strings.TrimSuffix(file, path.Ext(file)) }
	signs, checks := stem(named(server, "service-account-signing-key-file", "sa.key")), false
	for _, arg := range pairs(server) {
		checks = checks || arg[0] == "service-account-key-file" && stem(named([]any{map[string]any{"name": "f", "value": arg[1]}}, "f", signs+".pub")) == signs
	}
	if !checks && (argument(server, "service-account-key-file") != "" || signs != "sa") {
		return "kube-proxy: Unauthorized: invalid bearer token: square/go-jose: error in cryptographic primitive"
	}
	if named(controllers, "root-ca-file", "ca.crt") != "ca.crt" {
		return "kube-proxy: tls: failed to verify certificate: x509: certificate signed by unknown authority"
	}
	return ""
}

// signsOthers reports whether the certificates of kubelets that join are signed with another key of kubeadm than that of the cluster.
func signsOthers(args any) bool {
	cert, key := argument(args, "cluster-signing-cert-file"), argument(args, "cluster-signing-key-file")
	kubeadms := func(file string) bool { return strings.HasPrefix(path.Clean(file), "/etc/kubernetes/pki/") }
	return kubeadms(cert) && path.Clean(cert) != "/etc/kubernetes/pki/ca.crt" || kubeadms(key) && path.Clean(key) != "/etc/kubernetes/pki/ca.key"
}

// idle returns what nobody does because a controller of the kube-controller-manager does not run, or forgets Nodes.
func idle(args any) string {
	list := argument(args, "controllers")
	for _, x := range [][3]string{
		{"daemonset", "daemonset-controller", "kube-proxy: DESIRED 0"},
		{"deployment", "deployment-controller", "coredns: READY 0/2"},
		{"replicaset", "replicaset-controller", "coredns: READY 0/2"},
		{"endpointslice", "endpointslice-controller", "kube-dns: no endpoints"},
		{"root-ca-cert-publisher", "root-ca-certificate-publisher-controller", "MountVolume.SetUp failed: configmap \"kube-root-ca.crt\" not found"},
		{"nodelifecycle", "node-lifecycle-controller", "coredns: 0/1 nodes are available: 1 node(s) had untolerated taint {node.kubernetes.io/not-ready: }"},
	} {
		if list != "" && !lists(list, x[0], x[1]) && (!lists(list, "*") || lists(list, "-"+x[0], "-"+x[1])) {
			return fmt.Sprintf("kube-controller-manager without %s: %s", x[1], x[2])
		}
	}
	// A kubelet renews its lease every 10 seconds, and its status every 5 minutes (pkg/kubelet/apis/config/v1beta1/defaults.go).
	if d, err := time.ParseDuration(argument(args, "node-monitor-grace-period")); err == nil && d < 10*time.Second {
		return "NodeStatusUnknown: Kubelet stopped posting node status"
	}
	return ""
}
