package rules

import (
	"cmp"
	"fmt"
	"net/netip"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"

	infrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/api/v1beta2"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/boot"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
)

// The arguments of a manifest take the place of those that kubeadm sets (ArgumentsToCommand in cmd/kubeadm/app/util/arguments.go of
// Kubernetes). With the values that the functions of this file refuse, a component may start, but the cluster does not come up.

// replaced is an argument of a manifest that takes the place of one of kubeadm.
type replaced struct{ name, what, fix string }

// checkReplaced checks the arguments of the components of a control plane that replace those of kubeadm.
func (c *checks) checkReplaced(o *manifest.Entry, path string, config *bootstrapv1.ClusterConfiguration) {
	for _, x := range []struct {
		field string
		args  []bootstrapv1.Arg
		check func(args map[string]string) []replaced
	}{
		{".apiServer.extraArgs", config.APIServer.ExtraArgs, func(args map[string]string) []replaced { return c.replacedOfServer(args, config) }},
		{".controllerManager.extraArgs", config.ControllerManager.ExtraArgs, func(args map[string]string) []replaced {
			return slices.Concat(c.replacedOfControllers(args), withoutControllers(args), c.forgottenNodes(args), boundElsewhere(args))
		}},
		{".scheduler.extraArgs", config.Scheduler.ExtraArgs, boundElsewhere},
		{".etcd.local.extraArgs", config.Etcd.Local.ExtraArgs, func(args map[string]string) []replaced { return c.replacedOfEtcd(args, boot.EtcdDataDir(config)) }},
	} {
		for _, r := range x.check(valuesOf(x.args)) {
			c.failFirst(o.Problem(argumentAt(o, path+x.field, x.args, r.name), r.what, r.fix))
		}
	}
	c.warnOfControllers(o, path+".controllerManager.extraArgs", config.ControllerManager.ExtraArgs)
}

// argumentAt returns the path of the first argument with a name.
func argumentAt(o *manifest.Entry, path string, args []bootstrapv1.Arg, name string) string {
	return argumentPath(o, path, slices.IndexFunc(args, func(a bootstrapv1.Arg) bool { return a.Name == name }), name)
}

// valuesOf returns the values of arguments, without those that a script or cloud-init fills in.
func valuesOf(args []bootstrapv1.Arg) map[string]string {
	values := map[string]string{}
	for _, a := range args {
		if value := manifest.Deref(a.Value); !isFilledIn(value) {
			values[a.Name] = value
		}
	}
	return values
}

// isFilledIn reports whether a script or cloud-init fills in a part of a value.
func isFilledIn(value string) bool { return strings.ContainsAny(value, "${}") }

// replacedOfServer returns the arguments of the API server with which no cluster comes up.
func (c *checks) replacedOfServer(args map[string]string, config *bootstrapv1.ClusterConfiguration) (bad []replaced) {
	if on, err := strconv.ParseBool(args["enable-bootstrap-token-auth"]); err == nil && !on && c.nodes() > 1 {
		bad = append(bad, replaced{
			"enable-bootstrap-token-auth", "machines join with bootstrap tokens, which the API server would not accept", "remove it: kubeadm sets it",
		})
	}
	if modes := args["authorization-mode"]; modes != "" && !gives(strings.Split(modes, ",")) {
		bad = append(bad, replaced{
			"authorization-mode", modes + ": kubelets have their rights by the mode Node, and all others by RBAC", "set it to Node,RBAC, or remove it",
		})
	}
	if ip, err := netip.ParseAddr(args["bind-address"]); err == nil && !ip.IsUnspecified() { // GetAPIServerProbeAddress in cmd/kubeadm/app/util/staticpod
		bad = append(bad, replaced{
			"bind-address", fmt.Sprintf("kubeadm and the load balancer reach the API server at the address of its machine, not at %s", ip), "use 0.0.0.0, or remove it",
		})
	}
	if slices.Contains(strings.Split(args["enable-admission-plugins"], ","), "AlwaysDeny") {
		bad = append(bad, replaced{"enable-admission-plugins", "the admission plugin AlwaysDeny denies all requests, those of kubeadm too", "remove it"})
	}
	if what := missingAPI(args["runtime-config"], c.nodes() > 1); what != "" {
		bad = append(bad, replaced{"runtime-config", what, "remove it, or turn it on"})
	}
	bad = append(bad, replacedAdmission(args)...)
	if what := c.otherServices(args["service-cluster-ip-range"]); what != "" {
		bad = append(bad, replaced{"service-cluster-ip-range", what, "set spec.clusterNetwork.services.cidrBlocks of the Cluster instead"})
	}
	if servers := args["etcd-servers"]; servers != "" && !config.Etcd.External.IsDefined() && !listens(servers, etcdClients, "127.0.0.1", "::1", "localhost") {
		bad = append(bad, replaced{"etcd-servers", "the API server would not use the etcd on its machine, https://127.0.0.1:2379", "remove it, or set etcd.external"})
	}
	return bad
}

// gives reports whether kubelets and all other clients have rights with these modes of authorization. Kubelets have none by RBAC: the role
// system:node is bound to nobody ("Using Node Authorization" in the documentation of Kubernetes).
func gives(modes []string) bool {
	if slices.ContainsFunc(modes, func(mode string) bool { return slices.Contains([]string{"AlwaysAllow", "ABAC", "Webhook"}, mode) }) {
		return true // policies that are not known here
	}
	return slices.Contains(modes, "Node") && slices.Contains(modes, "RBAC")
}

// otherServices returns why Services do not work with the blocks of an argument: kubeadm has chosen addresses of others. "" if they do.
func (c *checks) otherServices(argument string) string {
	given, services := firstBlock(argument), firstBlock(Services(c.cluster)[0])
	if !given.IsValid() || !services.IsValid() || given.Addr() == services.Addr() && given.Bits() <= services.Addr().BitLen()-fewestAddressBits {
		return ""
	}
	return fmt.Sprintf("Services have addresses of %s: those of kubeadm, such as that of CoreDNS, are in %s", given, services)
}

// firstBlock returns the first block of a list with commas; one that is not valid for none.
func firstBlock(list string) netip.Prefix {
	text, _, _ := strings.Cut(list, ",")
	block, err := netip.ParsePrefix(strings.TrimSpace(text))
	if err != nil {
		return netip.Prefix{}
	}
	return block.Masked()
}

// boundElsewhere returns the argument bind-address of a kube-controller-manager or kube-scheduler if no machine has the address.
func boundElsewhere(args map[string]string) []replaced {
	ip, err := netip.ParseAddr(args["bind-address"])
	if err != nil || ip.IsUnspecified() || ip.IsLoopback() {
		return nil
	}
	return []replaced{{"bind-address", fmt.Sprintf("it cannot listen on %s: AWS chooses the addresses of machines", ip), "use 0.0.0.0, or remove it"}}
}

// joinControllers are the controllers of the kube-controller-manager without which no machine joins ("TLS bootstrapping" and "Bootstrap
// tokens" in the documentation of Kubernetes), each with its older name. The first one runs only if it is named.
func joinControllers() [][2]string {
	return [][2]string{
		{"bootstrap-signer-controller", "bootstrapsigner"},
		{"certificatesigningrequest-approving-controller", "csrapproving"},
		{"certificatesigningrequest-signing-controller", "csrsigning"},
	}
}

// replacedOfControllers returns the list of controllers if it has none of those that machines need to join.
func (c *checks) replacedOfControllers(args map[string]string) []replaced {
	const kubeadms = "*,bootstrapsigner,tokencleaner" // cmd/kubeadm/app/phases/controlplane/manifests.go
	list, set := args["controllers"]
	if !set || list == "" || c.nodes() <= 1 {
		return nil
	}
	items := strings.Split(list, ",")
	for i, names := range joinControllers() {
		is := func(prefix string) bool {
			return slices.Contains(items, prefix+names[0]) || slices.Contains(items, prefix+names[1])
		}
		if !is("") && (i == 0 || !slices.Contains(items, "*") || is("-")) {
			return []replaced{{
				"controllers", fmt.Sprintf("no machine joins the cluster without the controller %s, which %s leaves out", names[0], list),
				fmt.Sprintf("begin with %s, or remove the argument", kubeadms),
			}}
		}
	}
	return nil
}

// Ports of etcd.
const (
	etcdClients = "2379"
	etcdPeers   = "2380"
)

// listens reports whether at least one of the URLs is an https URL with this port and one of these hosts.
func listens(urls, port string, hosts ...string) bool {
	return slices.ContainsFunc(strings.Split(urls, ","), func(text string) bool {
		u, err := url.Parse(strings.TrimSpace(text))
		return err == nil && u.Scheme == "https" && u.Port() == port && slices.Contains(hosts, u.Hostname())
	})
}

// replacedOfEtcd returns the arguments with which etcd does not start, loses its data, or is not reached. kubeadm sets its name, its
// peers and its addresses for each machine (getEtcdCommand in cmd/kubeadm/app/phases/etcd/local.go).
func (c *checks) replacedOfEtcd(args map[string]string, data string) (bad []replaced) {
	for _, name := range strings.Fields("name initial-cluster initial-advertise-peer-urls discovery discovery-srv discovery-endpoints") {
		if _, set := args[name]; set {
			bad = append(bad, replaced{name, "etcd does not start: kubeadm sets its name and its peers for each machine", "remove it"})
		}
	}
	for _, name := range []string{"data-dir", "wal-dir"} {
		if folder := args[name]; folder != "" && !isInside(path.Clean(folder), data) {
			bad = append(bad, replaced{
				name,
				fmt.Sprintf("etcd would lose its data at the next start of its container: %s is not in %s, which kubeadm mounts", folder, data),
				"set etcd.local.dataDir",
			})
		}
	}
	if on, err := strconv.ParseBool(args["force-new-cluster"]); err == nil && on {
		bad = append(bad, replaced{"force-new-cluster", "each start of etcd would remove all other members", "remove it"})
	}
	return slices.Concat(bad, unusableEtcd(args, data), c.unreachableEtcd(args))
}

// unusableEtcd returns the outputs and ports that etcd cannot open.
func unusableEtcd(args map[string]string, data string) (bad []replaced) {
	if outputs := args["log-outputs"]; outputs != "" {
		for output := range strings.SplitSeq(outputs, ",") {
			if !slices.Contains([]string{"default", "stdout", "stderr"}, output) && !isInside(output, data) {
				bad = append(bad, replaced{"log-outputs", "etcd does not start: its container has no folder for " + output, "use stderr, or a file in " + data})
			}
		}
	}
	for text := range strings.SplitSeq(args["listen-metrics-urls"], ",") {
		if u, err := url.Parse(text); err == nil && (u.Port() == etcdClients || u.Port() == etcdPeers) {
			bad = append(
				bad,
				replaced{"listen-metrics-urls", fmt.Sprintf("etcd does not start: it listens on port %s already", u.Port()), "use another port, such as 2381"},
			)
		}
	}
	return bad
}

// unreachableEtcd returns the addresses of etcd at which the API server, or other members, do not reach it.
func (c *checks) unreachableEtcd(args map[string]string) (bad []replaced) {
	anywhere, here := []string{"0.0.0.0", "::"}, []string{"127.0.0.1", "::1", "localhost"}
	for _, x := range []struct{ name, port string }{{"listen-client-urls", etcdClients}, {"listen-peer-urls", etcdPeers}, {"advertise-client-urls", etcdClients}} {
		urls, set := args[x.name]
		switch {
		case !set || urls == "":
		case x.name == "listen-client-urls" && !listens(urls, x.port, slices.Concat(anywhere, here)...):
			bad = append(bad, replaced{x.name, "the API server does not reach etcd: it connects to https://127.0.0.1:2379", "use https://0.0.0.0:2379, or remove it"})
		case c.planes() > 1 && !listens(urls, x.port, anywhere...):
			bad = append(
				bad,
				replaced{x.name, fmt.Sprintf("the machines of the control plane do not reach each other's etcd: all would have %s", urls), "remove it: kubeadm sets it"},
			)
		}
	}
	return bad
}

// planes returns the number of machines of the control plane.
func (c *checks) planes() (n int) {
	if p := c.cluster.ControlPlane; p != nil {
		n = p.Replicas()
	}
	for _, m := range c.cluster.Machines {
		if m.ControlPlane {
			n++
		}
	}
	return n
}

// checkReplacedOfKubelet checks the arguments of a kubelet that take the place of those of kubeadm, and of its systemd unit
// (10-kubeadm.conf in github.com/kubernetes/release). A machine has the addresses that AWS gives to it, unless it has interfaces of its own.
func (c *checks) checkReplacedOfKubelet(o *manifest.Entry, at string, r *bootstrapv1.NodeRegistrationOptions, plane bool) {
	args := valuesOf(manifest.KubeletArguments(r.KubeletExtraArgs))
	fail := func(name, what, fix string) {
		c.failFirst(o.Problem(argumentAt(o, at+".kubeletExtraArgs", r.KubeletExtraArgs, name), what, fix))
	}
	for _, bad := range slices.Concat(c.uselessKubelet(args), unhealthyKubelet(args)) {
		fail(bad.name, bad.what, bad.fix)
	}
	if folder := args["pod-manifest-path"]; plane && folder != "" && path.Clean(folder) != staticPods {
		fail("pod-manifest-path", "the control plane would not start: kubeadm writes its pods into "+staticPods, "remove it")
	}
	for _, x := range []struct{ name, file string }{
		{"kubeconfig", "/etc/kubernetes/kubelet.conf"}, {"bootstrap-kubeconfig", "/etc/kubernetes/bootstrap-kubelet.conf"},
	} {
		if given := args[x.name]; given != "" && given != x.file {
			fail(x.name, fmt.Sprintf("kubeadm writes %s, and waits for a kubelet that uses it", x.file), "remove it")
		}
	}
	if name := args["hostname-override"]; name != "" && name != r.Name {
		fail(
			"hostname-override",
			fmt.Sprintf("the kubelet may not register a Node %q: kubeadm gives it the rights of another one", name),
			"set nodeRegistration.name instead",
		)
	}
	if addresses := args["node-ip"]; addresses != "" && !c.hasInterfaces() {
		for text := range strings.SplitSeq(addresses, ",") {
			if ip, err := netip.ParseAddr(text); err == nil && !ip.IsUnspecified() {
				fail("node-ip", fmt.Sprintf("AWS chooses the addresses of machines, and the kubelet does not accept one that its machine does not have: %s", ip),
					"write '{{ ds.meta_data.local_ipv4 }}', or remove it")
				return
			}
		}
	}
}

// unhealthyKubelet returns the arguments that move the health check of a kubelet away from the address at which kubeadm waits for it
// (WaitForKubelet in cmd/kubeadm/app/util/apiclient/wait.go).
func unhealthyKubelet(args map[string]string) (bad []replaced) {
	const what = "kubeadm asks for the health of the kubelet at 127.0.0.1:10248, and would find nobody there"
	if port := args["healthz-port"]; port != "" && port != kubeletHealth {
		bad = append(bad, replaced{"healthz-port", what, "remove it"})
	}
	if ip, err := netip.ParseAddr(args["healthz-bind-address"]); err == nil && !ip.IsUnspecified() && ip.String() != "127.0.0.1" {
		bad = append(bad, replaced{"healthz-bind-address", what, "remove it"})
	}
	return bad
}

// uselessKubelet returns the arguments with which a machine, of kubeadm or of EKS, does not become a Node that runs pods. With some, the kubelet
// does not start (ListenAndServeKubeletServer in pkg/kubelet/server); with others, the cloud controller manager does not find the machine.
func (c *checks) uselessKubelet(args map[string]string) (bad []replaced) {
	const remove = "remove it"
	if on, err := strconv.ParseBool(args["register-node"]); err == nil && !on {
		bad = append(bad, replaced{"register-node", "the machine would have no Node", remove})
	}
	if id := args["provider-id"]; id != "" {
		bad = append(bad, replaced{"provider-id", fmt.Sprintf("AWS chooses the IDs of machines: the cloud controller manager finds none for %s", id), remove})
	}
	if ip, err := netip.ParseAddr(args["address"]); err == nil && !ip.IsUnspecified() && !ip.IsLoopback() && !c.hasInterfaces() {
		bad = append(bad, replaced{"address", fmt.Sprintf("AWS chooses the addresses of machines, and the kubelet could not listen on %s", ip), remove})
	}
	if port := args["read-only-port"]; port != "" && (port == cmp.Or(args["port"], "10250") || port == kubeletHealth) {
		bad = append(
			bad,
			replaced{"read-only-port", fmt.Sprintf("the kubelet does not start: it listens on port %s already", port), "use another port, such as 10255"},
		)
	}
	if args["max-pods"] == "0" {
		bad = append(bad, replaced{"max-pods", "no pod would run on the machine, those of its network neither", "use a number such as 110, or remove it"})
	}
	return bad
}

// kubeletHealth is the port at which a kubelet of kubeadm says that it is healthy.
const kubeletHealth = "10248"

// hasInterfaces reports whether machines use existing network interfaces, whose addresses a manifest can name.
func (c *checks) hasInterfaces() bool {
	has := func(t *infrav1.AWSMachineTemplate) bool {
		return t != nil && len(t.Spec.Template.Spec.NetworkInterfaces) > 0
	}
	return c.cluster.ControlPlane != nil && has(c.cluster.ControlPlane.Template) ||
		slices.ContainsFunc(c.cluster.Deployments, func(d manifest.Deployment) bool { return has(d.Template) }) ||
		slices.ContainsFunc(c.cluster.Machines, func(m manifest.Machine) bool { return m.Infra != nil && len(m.Infra.Spec.NetworkInterfaces) > 0 })
}
