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

// neededController is a controller of the kube-controller-manager that a kubeadm cluster needs. older is its name in earlier versions, and what
// says what does not work without it.
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

// withoutControllers refuses a list of controllers that lacks one of addonControllers.
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

// heartbeat is the interval at which a kubelet renews its lease: a quarter of nodeLeaseDurationSeconds (pkg/kubelet/kubelet.go of Kubernetes).
const heartbeat = 10 * time.Second

// forgottenNodes refuses a node-monitor-grace-period that is shorter than heartbeat. With it, the status of all Nodes becomes Unknown between two
// heartbeats.
func (c *checks) forgottenNodes(args map[string]string) []replaced {
	d, err := time.ParseDuration(args["node-monitor-grace-period"])
	if err != nil || d >= heartbeat || c.reportsOften() {
		return nil
	}
	return []replaced{{
		"node-monitor-grace-period", fmt.Sprintf("Nodes are Unknown after %s, and kubelets report every %s", d, heartbeat), "use 40s or more, or remove it",
	}}
}

// reportsOften reports whether the manifest may change the heartbeat interval of kubelets.
func (c *checks) reportsOften() bool {
	var all []bootstrapv1.File
	if p := c.cluster.ControlPlane; p != nil {
		all = p.Object.Spec.KubeadmConfigSpec.Files
	}
	return slices.ContainsFunc(all, func(f bootstrapv1.File) bool {
		return strings.Contains(f.Content, "nodeLeaseDurationSeconds") || f.Encoding != ""
	})
}

// warnOfControllers checks settings of the kube-controller-manager with which only a part of a cluster may fail, depending on its pod network.
func (c *checks) warnOfControllers(o *manifest.Entry, path string, args []bootstrapv1.Arg) {
	const what = "Nodes get no blocks of addresses for pods, which flannel and others need"
	values := valuesOf(args)
	at := func(name string) string { return argumentAt(o, path, args, name) }
	needsBlocks := c.usesNodeBlocks()
	report := c.warn
	if needsBlocks {
		report = c.failFirst
	}
	on, err := strconv.ParseBool(values["allocate-node-cidrs"])
	pods := len(c.cluster.Object.Spec.ClusterNetwork.Pods.CIDRBlocks) > 0 && (needsBlocks || !c.cluster.HasPodNetwork())
	switch {
	case err == nil && !on && pods:
		report(o.Problem(at("allocate-node-cidrs"), what, "remove it"))
	case !runsController(values["controllers"], neededController{name: "node-ipam-controller", older: "nodeipam"}) && pods:
		report(o.Problem(at("controllers"), what, "add node-ipam-controller"))
	}
	if !runsController(values["controllers"], neededController{name: "serviceaccount-controller", older: "serviceaccount"}) {
		c.warn(o.Problem(at("controllers"), "namespaces get no service account default, without which pods cannot be created", "add serviceaccount-controller"))
	}
	if d, err := time.ParseDuration(values["node-monitor-grace-period"]); err == nil && d >= heartbeat && d < 2*heartbeat && !c.reportsOften() {
		c.warn(o.Problem(at("node-monitor-grace-period"),
			fmt.Sprintf("Nodes are Unknown after %s, when one report of a kubelet is late: they report every %s", d, heartbeat), "use 40s or more"))
	}
}

// usesNodeBlocks reports whether the manifest installs flannel, which takes the addresses of pods from the Nodes
// (https://github.com/flannel-io/flannel/blob/master/Documentation/running.md: --kube-subnet-mgr).
func (c *checks) usesNodeBlocks() bool {
	return c.hasObject(func(d *manifest.Document) bool {
		return d.Kind() == "DaemonSet" && strings.Contains(fmt.Sprint(d.Object), "--kube-subnet-mgr")
	})
}
