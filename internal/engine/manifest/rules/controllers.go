package rules

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
)

// neededController is a controller of the kube-controller-manager that clusters of kubeadm need, with its older name.
type neededController struct{ name, older, what string }

// addonControllers are the controllers without which kube-proxy, CoreDNS or the pod network do not run ("kube-controller-manager" in the
// documentation of Kubernetes). The node-lifecycle-controller removes the taint node.kubernetes.io/not-ready of new Nodes, and the configuration of
// pods has the ConfigMap kube-root-ca.crt.
func addonControllers() []neededController {
	return []neededController{
		{"daemonset-controller", "daemonset", "there are no pods of kube-proxy and of the pod network"},
		{"deployment-controller", "deployment", "there are no pods of CoreDNS"},
		{"replicaset-controller", "replicaset", "there are no pods of CoreDNS"},
		{"endpointslice-controller", "endpointslice", "Services, such as that of CoreDNS, have no endpoints"},
		{"root-ca-certificate-publisher-controller", "root-ca-cert-publisher", "no pod starts: its certificate of the API server is missing"},
		{"node-lifecycle-controller", "nodelifecycle", "Nodes keep the taint node.kubernetes.io/not-ready, and take no pods"},
	}
}

// runsController reports whether the value of the argument controllers starts a controller that runs by default.
func runsController(list string, x neededController) bool {
	items := strings.Split(list, ",")
	is := func(prefix string) bool {
		return slices.Contains(items, prefix+x.name) || slices.Contains(items, prefix+x.older)
	}
	return list == "" || is("") || slices.Contains(items, "*") && !is("-")
}

// withoutControllers returns the list of controllers if it has none of those that the pods of every cluster need.
func withoutControllers(args map[string]string) []replaced {
	for _, x := range addonControllers() {
		if !runsController(args["controllers"], x) {
			return []replaced{{
				"controllers", fmt.Sprintf("without the controller %s, %s", x.name, x.what), "begin with *,bootstrapsigner,tokencleaner, or remove the argument",
			}}
		}
	}
	return nil
}

// How often kubelets report: the renewal of their leases, a quarter of nodeLeaseDurationSeconds (pkg/kubelet/kubelet.go of Kubernetes).
const heartbeat = 10 * time.Second

// forgottenNodes returns a node-monitor-grace-period that is shorter than the time between two reports of a kubelet: all Nodes are Unknown
// between them.
func (c *checks) forgottenNodes(args map[string]string) []replaced {
	d, err := time.ParseDuration(args["node-monitor-grace-period"])
	if err != nil || d >= heartbeat || c.reportsOften() {
		return nil
	}
	return []replaced{{
		"node-monitor-grace-period", fmt.Sprintf("Nodes are Unknown after %s, and kubelets report every %s", d, heartbeat), "use 40s or more, or remove it",
	}}
}

// reportsOften reports whether the manifest may change how often kubelets report.
func (c *checks) reportsOften() bool {
	var all []bootstrapv1.File
	if p := c.cluster.ControlPlane; p != nil {
		all = p.Object.Spec.KubeadmConfigSpec.Files
	}
	return slices.ContainsFunc(all, func(f bootstrapv1.File) bool {
		return strings.Contains(f.Content, "nodeLeaseDurationSeconds") || f.Encoding != ""
	})
}

// warnOfControllers warns of settings with which a part of a cluster may not work: it depends on the pod network.
func (c *checks) warnOfControllers(o *manifest.Entry, path string, args []bootstrapv1.Arg) {
	const what = "Nodes get no blocks of addresses for pods, which flannel and others need"
	values := valuesOf(args)
	report := func(name, what, fix string) {
		to := c.warn
		if strings.HasPrefix(what, "Nodes get") && c.usesNodeBlocks() {
			to = c.failFirst
		}
		to(o.Problem(argumentAt(o, path, args, name), what, fix))
	}
	on, err := strconv.ParseBool(values["allocate-node-cidrs"])
	pods := len(c.cluster.Object.Spec.ClusterNetwork.Pods.CIDRBlocks) > 0 && (c.usesNodeBlocks() || !c.cluster.HasPodNetwork())
	switch {
	case err == nil && !on && pods:
		report("allocate-node-cidrs", what, "remove it")
	case !runsController(values["controllers"], neededController{name: "node-ipam-controller", older: "nodeipam"}) && pods:
		report("controllers", what, "add node-ipam-controller")
	}
	if !runsController(values["controllers"], neededController{name: "serviceaccount-controller", older: "serviceaccount"}) {
		report("controllers", "namespaces get no service account default, without which pods cannot be created", "add serviceaccount-controller")
	}
	if d, err := time.ParseDuration(values["node-monitor-grace-period"]); err == nil && d >= heartbeat && d < 2*heartbeat && !c.reportsOften() {
		c.warn(o.Problem(argumentAt(o, path, args, "node-monitor-grace-period"),
			fmt.Sprintf("Nodes are Unknown after %s, when one report of a kubelet is late: they report every %s", d, heartbeat), "use 40s or more"))
	}
}

// usesNodeBlocks reports whether the manifest installs flannel, which takes the addresses of pods from the Nodes
// (https://github.com/flannel-io/flannel/blob/master/Documentation/running.md: --kube-subnet-mgr).
func (c *checks) usesNodeBlocks() bool {
	return slices.ContainsFunc(c.cluster.ResourceSets, func(s manifest.ResourceSet) bool {
		return slices.ContainsFunc(s.Documents, func(d *manifest.Document) bool {
			return d.Kind() == "DaemonSet" && strings.Contains(fmt.Sprint(d.Object), "--kube-subnet-mgr")
		})
	})
}
