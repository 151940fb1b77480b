package kubernetes

import (
	"cmp"
	"fmt"
	"net/netip"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/yaml"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim/ec2"
	"github.com/clusterawsadm/clusterawsadm/internal/regex"
)

// Arguments of a manifest take the place of those that kubeadm sets (ArgumentsToCommand in cmd/kubeadm/app/util/arguments.go). With some
// values, a component starts, and the cluster does not come up.

// replacedServer returns why kubeadm init fails with some arguments of the API server; "" if it does not. services is the block of
// Services in the ClusterConfiguration.
func replacedServer(args any, services string, local bool) string {
	if modes := argument(args, "authorization-mode"); modes != "" && !lists(modes, "AlwaysAllow", "ABAC", "Webhook") {
		// The API server gives kubelets no rights but by the Node authorizer: the binding of the role system:node is empty
		// ("Using Node Authorization", documentation of Kubernetes). Everybody else has rights by RBAC.
		if !lists(modes, "Node") {
			return "kubeadm init: error execution phase upload-config/kubelet: error writing CRISocket information for the control-plane node: " +
				"nodes is forbidden"
		}
		if !lists(modes, "RBAC") {
			return "kubeadm init: error execution phase wait-control-plane: the kube-controller-manager check failed"
		}
	}
	// The probes of kubeadm ask at the advertised address (GetAPIServerProbeAddress in cmd/kubeadm/app/util/staticpod).
	if a, err := netip.ParseAddr(argument(args, "bind-address")); err == nil && !a.IsUnspecified() {
		return "kubeadm init: error execution phase wait-control-plane: the kube-apiserver check failed: connection refused"
	}
	if lists(argument(args, "enable-admission-plugins"), "AlwaysDeny") {
		return `kubeadm init: error execution phase upload-config/kubeadm: admission plugin "AlwaysDeny" denied the request`
	}
	off := argument(args, "disable-admission-plugins")
	if lists(off, "NodeRestriction") && argument(args, "enable-admission-plugins") == "" { // which kubeadm sets to NodeRestriction
		return "kube-apiserver: [NodeRestriction] in enable-admission-plugins and disable-admission-plugins overlapped"
	}
	if lists(off, "ServiceAccount") { // no volume with a token (plugin/pkg/admission/serviceaccount)
		return "kube-proxy: open /var/run/secrets/kubernetes.io/serviceaccount/token: no such file or directory"
	}
	given, _, _ := strings.Cut(argument(args, "service-cluster-ip-range"), ",")
	services, _, _ = strings.Cut(services, ",")
	if dns := tenth(services); given != "" && dns.IsValid() {
		if block, err := netip.ParsePrefix(given); err != nil || !block.Contains(dns) || tenth(given) != dns {
			return fmt.Sprintf("kubeadm init: error execution phase addon/coredns: unable to create/update the DNS service: Service \"kube-dns\" is invalid: "+
				"spec.clusterIPs: Invalid value: [%q]: the provided network does not match the current range", dns)
		}
	}
	if servers := argument(args, "etcd-servers"); local && servers != "" && !serves(servers, "2379", "127.0.0.1", "localhost", "::1") {
		return "kube-apiserver: Error while dialing: connection to etcd failed: context deadline exceeded"
	}
	return ""
}

// boundElsewhere returns why a kube-controller-manager or kube-scheduler does not start: no machine has the address on which it would listen.
func boundElsewhere(component string, args any) string {
	if a, err := netip.ParseAddr(argument(args, "bind-address")); err == nil && !a.IsUnspecified() && !a.IsLoopback() {
		return fmt.Sprintf("%s: listen tcp %s: bind: cannot assign requested address", component, a)
	}
	return ""
}

// tenth returns the tenth address of a block, which kubeadm gives to the Service of CoreDNS (GetDNSIP in cmd/kubeadm/app/constants).
func tenth(block string) netip.Addr {
	p, err := netip.ParsePrefix(block)
	if err != nil {
		return netip.Addr{}
	}
	a := p.Masked().Addr()
	for range 10 {
		a = a.Next()
	}
	return a
}

// lists reports whether a list that is separated by commas has at least one of the words.
func lists(list string, words ...string) bool {
	return slices.ContainsFunc(strings.Split(list, ","), func(item string) bool { return slices.Contains(words, item) })
}

// serves reports whether at least one of the URLs is an https URL with this port and one of these hosts.
func serves(urls, port string, hosts ...string) bool {
	return slices.ContainsFunc(strings.Split(urls, ","), func(text string) bool {
		u, err := url.Parse(text)
		return err == nil && u.Scheme == "https" && u.Port() == port && slices.Contains(hosts, u.Hostname())
	})
}

// unsigned are the flags of etcd that do not take negative numbers. Those of etcd 3.4.23 were tried with "-1"; those of later versions are
// in server/embed/config.go.
const unsigned = ` auth-token-ttl bcrypt-cost election-timeout heartbeat-interval max-concurrent-streams max-request-bytes max-snapshots max-txn-ops max-wals
	self-signed-cert-validity snapshot-count bootstrap-defrag-threshold-megabytes experimental-bootstrap-defrag-threshold-megabytes `

// etcdGates are the feature gates of etcd 3.6 (server/features/etcd_features.go).
const etcdGates = `StopGRPCServiceOnDefrag InitialCorruptCheck CompactHashCheck TxnModeWriteWithSharedBuffer LeaseCheckpoint LeaseCheckpointPersist
	SetMemberLocalAddr AllAlpha AllBeta`

// replacedEtcd returns why an etcd of kubeadm does not start, or why the API server does not reach it, with an argument. kubeadm sets
// its name, its peers and its addresses (getEtcdCommand in cmd/kubeadm/app/phases/etcd/local.go).
func replacedEtcd(name, value, data string) string {
	inside := func(file string) bool {
		return path.Clean(file) == path.Clean(data) || strings.HasPrefix(path.Clean(file), path.Clean(data)+"/")
	}
	switch name {
	case "name":
		return fmt.Sprintf("couldn't find local name %q in the initial cluster configuration", value)
	case "initial-cluster":
		return "couldn't find local name in the initial cluster configuration"
	case "initial-advertise-peer-urls":
		return "--initial-cluster has other URLs, but missing from --initial-advertise-peer-urls=" + value
	case "discovery", "discovery-srv", "discovery-endpoints":
		return `multiple discovery or bootstrap flags are set. Choose one of "initial-cluster", "discovery", "discovery-endpoints" or "discovery-srv"`
	case "data-dir", "wal-dir":
		if !inside(value) {
			return value + " is in the container only: after its next start, the member has lost its data"
		}
	case "log-outputs":
		for output := range strings.SplitSeq(value, ",") {
			if !slices.Contains([]string{"default", "stdout", "stderr"}, output) && !inside(output) {
				return fmt.Sprintf("open %s: no such file or directory", output)
			}
		}
	case "listen-client-urls":
		if !serves(value, "2379", "127.0.0.1", "localhost", "0.0.0.0", "::", "::1") {
			return "the API server dials https://127.0.0.1:2379: connection refused"
		}
	case "listen-metrics-urls":
		for text := range strings.SplitSeq(value, ",") {
			if u, err := url.Parse(text); err == nil && (u.Port() == "2379" || u.Port() == "2380") {
				return "listen tcp " + u.Host + ": bind: address already in use"
			}
		}
	case "force-new-cluster":
		if on, err := strconv.ParseBool(value); err == nil && on {
			return "forces a new cluster of one member at each start"
		}
	case "feature-gates":
		for pair := range strings.SplitSeq(value, ",") {
			if gate, _, _ := strings.Cut(pair, "="); !slices.Contains(strings.Fields(etcdGates), gate) {
				return "unrecognized feature gate: " + gate
			}
		}
	}
	if strings.Contains(unsigned, " "+name+" ") && strings.HasPrefix(value, "-") {
		return fmt.Sprintf("invalid value %q for flag -%s: parse error", value, name)
	}
	return ""
}

// machine is a machine that kubeadm makes a part of a cluster.
type machine struct {
	plane bool // of the control plane
	has   func(address string) bool
}

// replacedKubelet returns why a machine does not become a Node with some arguments of its kubelet, which take the place of those of
// kubeadm and of its systemd unit (10-kubeadm.conf in kubernetes/release). name is the name that kubeadm gives to the Node; "" if it is not
// known.
func replacedKubelet(args any, name string, m machine) string {
	const amount = `[a-z0-9-]+=[0-9.]+([munkKMGTPE]i?)?` // such as memory=1Gi
	for flag, usual := range map[string]string{
		"kubeconfig": "/etc/kubernetes/kubelet.conf", "bootstrap-kubeconfig": "/etc/kubernetes/bootstrap-kubelet.conf",
	} {
		if v := argument(args, flag); v != "" && v != usual {
			return "kubeadm: error execution phase kubelet-start: timed out waiting for the kubelet to perform TLS Bootstrap"
		}
	}
	if v := argument(args, "hostname-override"); v != "" && !strings.ContainsAny(v, "{$") && v != name {
		return fmt.Sprintf("kubelet: node %q is not allowed to modify node %q", name, v)
	}
	for ip := range strings.SplitSeq(argument(args, "node-ip"), ",") {
		if a, err := netip.ParseAddr(ip); err == nil && !a.IsUnspecified() && !m.has(ip) {
			return fmt.Sprintf("kubelet: failed to validate nodeIP: node IP: %q not found in the host's network interfaces", ip)
		}
	}
	if v := argument(args, "reserved-memory"); v != "" && !regex.Of(`^\d+:`+amount+`(,`+amount+`)*(;\d+:.*)?$`).MatchString(v) {
		return fmt.Sprintf("kubelet: invalid argument %q for \"--reserved-memory\" flag: invalid reserved memory", v)
	}
	return cmp.Or(useless(args, m), unhealthy(args))
}

// useless returns why a machine, of kubeadm or of EKS, does not become a Node that runs pods.
func useless(args any, m machine) string { return cmp.Or(unregistered(args), unreached(args, m)) }

// unregistered returns why a machine has no Node, or a Node no machine.
func unregistered(args any) string {
	if on, err := strconv.ParseBool(argument(args, "register-node")); err == nil && !on { // AnnotateCRISocket in cmd/kubeadm/app/phases/patchnode
		return "kubeadm: error execution phase kubelet-start: error writing CRISocket: nodes not found"
	}
	// The cloud controller manager deletes a Node if no instance has its provider ID (InstanceExistsByProviderID in cloud-provider-aws).
	if v := argument(args, "provider-id"); v != "" && !strings.ContainsAny(v, "{$") {
		return fmt.Sprintf("cloud-controller-manager: Invalid format for AWS instance (%s)", v)
	}
	return ""
}

// unhealthy returns why kubeadm waits in vain for a healthy kubelet: its health check has another address than the one that kubeadm configured
// (WaitForKubelet in cmd/kubeadm/app/util/apiclient).
func unhealthy(args any) string {
	port, address := argument(args, "healthz-port"), argument(args, "healthz-bind-address")
	if port != "" && port != "10248" || !slices.Contains([]string{"", "127.0.0.1", "0.0.0.0", "::"}, address) {
		return "kubeadm: error execution phase kubelet-start: The HTTP call equal to 'curl -sSL http://127.0.0.1:10248/healthz' returned error"
	}
	return ""
}

// unreached returns why a kubelet does not run, or runs no pods of the control plane (ListenAndServeKubeletServer in pkg/kubelet/server).
func unreached(args any, m machine) string {
	if v := argument(args, "pod-manifest-path"); m.plane && v != "" && path.Clean(v) != "/etc/kubernetes/manifests" {
		return "kubeadm init: error execution phase wait-control-plane: connect: connection refused"
	}
	if a, err := netip.ParseAddr(argument(args, "address")); err == nil && !a.IsUnspecified() && !a.IsLoopback() && !m.has(a.String()) {
		return fmt.Sprintf("kubelet: Failed to listen and serve: listen tcp %s: bind: cannot assign requested address", a)
	}
	if v := argument(args, "read-only-port"); v == cmp.Or(argument(args, "port"), "10250") || v == "10248" {
		return fmt.Sprintf("kubelet: Failed to listen and serve: listen tcp 0.0.0.0:%s: bind: address already in use", v)
	}
	if argument(args, "max-pods") == "0" { // pkg/kubelet/lifecycle: no pod fits, those of the control plane neither
		return "kubelet: Predicate OutOfpods failed: Node didn't have enough resource: pods, requested: 1, used: 0, capacity: 0"
	}
	return ""
}

// overReserved returns why a kubelet does not start on a machine that has less than it reserves (validateNodeAllocatable in
// pkg/kubelet/cm/node_container_manager_linux.go, and getReservedCPUs in cmd/kubelet/app/server.go).
func (svc *Service) overReserved(i *ec2.Instance, args any) string {
	cpus, memory := svc.EC2.SizeOf(i.Type)
	if cpus == 0 {
		return ""
	}
	for cpu := range strings.FieldsFuncSeq(argument(args, "reserved-cpus"), func(r rune) bool { return r == ',' || r == '-' }) {
		if n, err := strconv.Atoi(cpu); err == nil && n >= cpus {
			return fmt.Sprintf("kubelet: invalid reserved cpus: cpu %d is not among the online cpus 0-%d", n, cpus-1)
		}
	}
	reserved := map[string]*resource.Quantity{"cpu": {}, "memory": {}}
	for threshold := range strings.SplitSeq(argument(args, "eviction-hard"), ",") { // hardEvictionReservation in pkg/kubelet/cm/helpers.go
		if amount, is := strings.CutPrefix(threshold, "memory.available<"); is {
			q, err := resource.ParseQuantity(amount)
			if share, whole := strings.CutSuffix(amount, "%"); whole {
				percent, bad := strconv.ParseFloat(share, 64)
				q, err = *resource.NewQuantity(int64(percent/100*float64(memory<<20)), resource.BinarySI), bad
			}
			if err == nil {
				reserved["memory"].Add(q)
			}
		}
	}
	for item := range strings.SplitSeq(argument(args, "system-reserved")+","+argument(args, "kube-reserved"), ",") {
		name, amount, _ := strings.Cut(item, "=")
		if q, err := resource.ParseQuantity(amount); err == nil && reserved[name] != nil {
			reserved[name].Add(q)
		}
	}
	if reserved["cpu"].CmpInt64(int64(cpus)) > 0 || reserved["memory"].CmpInt64(int64(memory)<<20) > 0 {
		return "kubelet: Failed to start ContainerManager: invalid Node Allocatable configuration: a reservation exceeds the capacity"
	}
	return ""
}

// joinRefused returns why a machine cannot join a cluster with this ClusterConfiguration (cmd/kubeadm/app/discovery/token, and "Bootstrap
// tokens" and "TLS bootstrapping" in the documentation of Kubernetes).
func joinRefused(config string, plane bool) string {
	if !regex.Of(`enable-bootstrap-token-auth|controllers|cluster-signing-|(listen|advertise)-(client|peer)-urls`).MatchString(config) {
		return "" // without the cost of parsing, which many machines would pay
	}
	var doc struct {
		APIServer         struct{ ExtraArgs any }
		ControllerManager struct{ ExtraArgs any }
		Etcd              struct{ Local struct{ ExtraArgs any } }
	}
	if err := yaml.Unmarshal([]byte(config), &doc); err != nil {
		return err.Error()
	}
	if argument(doc.APIServer.ExtraArgs, "enable-bootstrap-token-auth") == "false" {
		return "kubeadm join: couldn't validate the identity of the API Server: Unauthorized"
	}
	if signsOthers(doc.ControllerManager.ExtraArgs) {
		return "kubeadm join: timed out waiting for the kubelet to perform TLS Bootstrap: x509: certificate signed by unknown authority"
	}
	if on := argument(doc.ControllerManager.ExtraArgs, "controllers"); on != "" {
		runs := func(names ...string) bool { // those of the default, "*", without the two that are off by default
			return lists(on, names...) || lists(on, "*") && names[0] != "bootstrapsigner" &&
				!slices.ContainsFunc(names, func(n string) bool { return lists(on, "-"+n) })
		}
		switch {
		case !runs("bootstrapsigner", "bootstrap-signer-controller"):
			return "kubeadm join: could not find a JWS signature in the cluster-info ConfigMap for token ID"
		case !runs("csrapproving", "certificatesigningrequest-approving-controller"), !runs("csrsigning", "certificatesigningrequest-signing-controller"):
			return "kubeadm join: timed out waiting for the kubelet to perform TLS Bootstrap"
		}
	}
	if !plane {
		return ""
	}
	for _, flag := range []string{"listen-client-urls", "listen-peer-urls", "advertise-client-urls"} {
		port := map[bool]string{true: "2380", false: "2379"}[flag == "listen-peer-urls"]
		if v := argument(doc.Etcd.Local.ExtraArgs, flag); v != "" && !serves(v, port, "0.0.0.0", "::") {
			return "kubeadm join: error execution phase etcd-join: context deadline exceeded: members do not reach each other"
		}
	}
	return ""
}
