package rules

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/klog/v2"
	expinfrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/exp/api/v1beta2"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	"sigs.k8s.io/yaml"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
)

const (
	formerPlaneLabel = "node-role.kubernetes.io/master"
	planeLabel       = "node-role.kubernetes.io/control-plane" // of kubeadm, with an empty value, and the key of its taint
	uninitialized    = "node.cloudprovider.kubernetes.io/uninitialized"
)

// nodesOf are Nodes with the same labels and taints.
type nodesOf struct {
	labels map[string]string
	taints []corev1.Taint
	count  int
}

// nodeGroups collects the Nodes that the machines of a manifest become.
type nodeGroups struct {
	all   []nodesOf
	known bool // the labels and taints of all of them
}

// nodeGroups returns the Nodes that the machines of the manifest become. It returns false if the labels or taints of some are not known.
func (c *checks) nodeGroups() ([]nodesOf, bool) {
	g := &nodeGroups{known: !c.cluster.EKS.HasAutoMode() && (c.cluster.EKS == nil || c.cluster.EKS.Karpenter == nil && len(c.cluster.EKS.Fargate) == 0)}
	if p := c.cluster.ControlPlane; p != nil {
		g.addPlane(p.Object.Spec.MachineTemplate.ObjectMeta.Labels, &p.Object.Spec.KubeadmConfigSpec, p.Replicas())
	}
	for _, m := range c.cluster.Machines {
		switch {
		case m.Bootstrap == nil:
			g.known = false
		case m.ControlPlane:
			g.addPlane(m.Object.Labels, &m.Bootstrap.Spec, 1)
		default:
			g.addWorkers(m.Object.Labels, &m.Bootstrap.Spec, 1)
		}
	}
	for _, d := range c.cluster.Deployments {
		if d.Bootstrap == nil {
			g.known = false
			continue
		}
		g.addWorkers(d.Object.Spec.Template.Labels, &d.Bootstrap.Spec.Template.Spec, scaled(d.Object.Annotations, d.Replicas()))
	}
	for _, p := range c.cluster.Pools {
		g.addPool(p)
	}
	return g.all, g.known && len(g.all) > 0
}

func (g *nodeGroups) addPool(p manifest.Pool) {
	switch {
	case p.Managed != nil && p.Bootstrap == (manifest.Bootstrap{}):
		n := managedNodes(&p.Managed.Spec)
		n.count = manyNodes // EKS or a scaler may change it
		g.all = append(g.all, n)
		g.known = g.known && !isWindows(&p.Managed.Spec)
	case p.Bootstrap.Kubeadm != nil:
		g.addWorkers(nil, &p.Bootstrap.Kubeadm.Spec, manyNodes)
	default:
		g.known = false
	}
}

// addPlane adds the Nodes of a control plane: the first one, and those that join. kubeadm adds its label to them, and its taint unless the
// manifest sets taints (MarkControlPlane in kubeadm).
func (g *nodeGroups) addPlane(labels map[string]string, spec *bootstrapv1.KubeadmConfigSpec, count int) {
	for i, r := range []*bootstrapv1.NodeRegistrationOptions{&spec.InitConfiguration.NodeRegistration, &spec.JoinConfiguration.NodeRegistration} {
		n := g.add(labels, spec, r)
		n.labels[planeLabel], n.count = "", 1
		if i > 0 {
			n.count = count - 1
		}
		if r.Taints == nil {
			n.taints = append(n.taints, corev1.Taint{Key: planeLabel, Effect: corev1.TaintEffectNoSchedule})
		}
		g.all = append(g.all, n)
	}
}

func (g *nodeGroups) addWorkers(labels map[string]string, spec *bootstrapv1.KubeadmConfigSpec, count int) {
	n := g.add(labels, spec, &spec.JoinConfiguration.NodeRegistration)
	n.count = count
	g.all = append(g.all, n)
}

// manyNodes is the number of Nodes where an autoscaler or another program changes it.
const manyNodes = 1 << 20

// scaled returns the number of machines; manyNodes if the cluster autoscaler or another program changes it.
func scaled(annotations map[string]string, replicas int) int {
	for key := range annotations {
		if strings.Contains(key, "autoscaler") || strings.HasSuffix(key, "replicas-managed-by") {
			return manyNodes
		}
	}
	return cmp.Or(replicas, manyNodes)
}

// add returns Nodes with the labels of their machines, and those of their kubelets.
func (g *nodeGroups) add(labels map[string]string, spec *bootstrapv1.KubeadmConfigSpec, r *bootstrapv1.NodeRegistrationOptions) nodesOf {
	if len(spec.Files) > 0 && marksNodes(spec.Files) || marksNodes(spec.PreKubeadmCommands) || marksNodes(spec.PostKubeadmCommands) {
		g.known = false
	}
	n := nodesOf{labels: map[string]string{"kubernetes.io/os": "linux"}}
	maps.Copy(n.labels, labels)
	for _, a := range manifest.KubeletArguments(r.KubeletExtraArgs) {
		g.known = n.argument(a.Name, manifest.Deref(a.Value)) && g.known
	}
	if r.Taints != nil {
		n.taints = append(n.taints, *r.Taints...)
	}
	return n
}

// marksNodes reports whether files or commands may set labels or taints of Nodes.
func marksNodes[T any](parts []T) bool {
	text := fmt.Sprint(parts)
	return slices.ContainsFunc([]string{"kubectl", "registerWithTaints", "node-labels", "nodeRegistration", "base64", "gzip"}, func(s string) bool {
		return strings.Contains(text, s)
	})
}

// managedNodes are the nodes of a node group of EKS.
func managedNodes(spec *expinfrav1.AWSManagedMachinePoolSpec) nodesOf {
	group := nodesOf{labels: map[string]string{"kubernetes.io/os": "linux"}}
	maps.Copy(group.labels, spec.Labels)
	effects := map[expinfrav1.TaintEffect]corev1.TaintEffect{
		expinfrav1.TaintEffectNoSchedule: corev1.TaintEffectNoSchedule, expinfrav1.TaintEffectNoExecute: corev1.TaintEffectNoExecute,
		expinfrav1.TaintEffectPreferNoSchedule: corev1.TaintEffectPreferNoSchedule,
	}
	for _, t := range spec.Taints {
		group.taints = append(group.taints, corev1.Taint{Key: t.Key, Value: t.Value, Effect: effects[t.Effect]})
	}
	return group
}

// argument reads labels and taints from an argument of the kubelet. It returns false if a script replaces a part of the value.
func (n *nodesOf) argument(name, value string) bool {
	switch name {
	case "node-labels":
		for pair := range strings.SplitSeq(value, ",") {
			key, label, _ := strings.Cut(pair, "=")
			n.labels[key] = label
		}
	case "register-with-taints":
		for text := range strings.SplitSeq(value, ",") {
			if at := strings.LastIndex(text, ":"); at >= 0 {
				key, taint, _ := strings.Cut(text[:at], "=")
				n.taints = append(n.taints, corev1.Taint{Key: key, Value: taint, Effect: corev1.TaintEffect(text[at+1:])})
			}
		}
	case "config":
		return false
	default:
		return true
	}
	return !isFilledIn(value)
}

// mayHave reports whether a Node may have the label with a value that is accepted. The values of other labels of Kubernetes and AWS depend on
// the machine, and are not known.
func (n *nodesOf) mayHave(key string, is func(value string, set bool) bool) bool {
	domain, _, prefixed := strings.Cut(key, "/")
	value, set := n.labels[key]
	machines := prefixed && domain != "node-role.kubernetes.io" && key != "kubernetes.io/os" &&
		(strings.HasSuffix(domain, "kubernetes.io") || strings.HasSuffix(domain, "k8s.io") || strings.HasSuffix(domain, "amazonaws.com"))
	return is(value, set) || machines && !set
}

// unmet returns the nodeSelector or the affinity of a pod that the Node does not meet; "" if there is none.
func (n *nodesOf) unmet(pod *corev1.PodSpec) string {
	for _, key := range slices.Sorted(maps.Keys(pod.NodeSelector)) {
		want := pod.NodeSelector[key]
		if !n.mayHave(key, func(v string, set bool) bool { return set && v == want }) {
			return "nodeSelector " + key + "=" + want
		}
	}
	a := pod.Affinity
	if a == nil || a.NodeAffinity == nil || a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return ""
	}
	terms := a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
	meets := func(t corev1.NodeSelectorTerm) bool {
		return !slices.ContainsFunc(t.MatchExpressions, func(e corev1.NodeSelectorRequirement) bool { return !n.meets(e) })
	}
	if !slices.ContainsFunc(terms, meets) {
		return "affinity.nodeAffinity"
	}
	return ""
}

func (n *nodesOf) meets(e corev1.NodeSelectorRequirement) bool {
	return n.mayHave(e.Key, func(v string, set bool) bool {
		switch e.Operator {
		case corev1.NodeSelectorOpIn:
			return set && slices.Contains(e.Values, v)
		case corev1.NodeSelectorOpNotIn:
			return !set || !slices.Contains(e.Values, v)
		case corev1.NodeSelectorOpExists:
			return set
		case corev1.NodeSelectorOpDoesNotExist:
			return !set
		case corev1.NodeSelectorOpGt, corev1.NodeSelectorOpLt:
			return set
		}
		return true
	})
}

// untolerated returns a taint of the Node that a pod does not tolerate; "" if there is none.
func (n *nodesOf) untolerated(pod *corev1.PodSpec, more ...corev1.Taint) string {
	for _, t := range slices.Concat(n.taints, more) {
		if t.Effect == corev1.TaintEffectPreferNoSchedule || slices.ContainsFunc(pod.Tolerations, func(x corev1.Toleration) bool { return toleratesTaint(x, t) }) {
			continue
		}
		return "taint " + t.Key + ":" + string(t.Effect)
	}
	return ""
}

// toleratesTaint reports whether a pod with the toleration may run on a Node with the taint. The operators that compare numbers are off by default.
func toleratesTaint(x corev1.Toleration, t corev1.Taint) bool {
	return x.ToleratesTaint(klog.Background(), &t, false)
}

// checkPlacement checks that the pods for which a run waits can be scheduled on a Node of the manifest (NodeAffinity and TaintToleration of
// the kube-scheduler). Nodes do not become ready without the cloud controller manager and the pod network.
func (c *checks) checkPlacement(workloads []podsOf) {
	nodes, known := c.nodeGroups()
	if !known {
		return
	}
	for _, chart := range c.cluster.Charts {
		if chart.Title == "aws-cloud-controller-manager" && c.cluster.EKS == nil {
			c.checkControllerChart(chart, nodes)
		}
	}
	for _, w := range workloads {
		if !w.isScheduled() {
			continue
		}
		var more []corev1.Taint
		isController := manifest.HasCloudController([]*manifest.Document{w.Document})
		if isController && c.cluster.EKS == nil {
			more = append(more, newNode())
		}
		isNetwork := manifest.HasPodNetwork([]*manifest.Document{w.Document})
		switch {
		case isNetwork:
			c.checkNetworkPlacement(w, nodes)
		case isController || w.Kind() != "DaemonSet" && c.waitsFor(w):
			c.checkOnePlace(w, nodes, more)
		}
	}
}

// isScheduled reports whether the kube-scheduler places the pods when they are created.
func (w podsOf) isScheduled() bool {
	pod := &w.pod.Spec
	other := pod.SchedulerName != "" && pod.SchedulerName != corev1.DefaultSchedulerName
	return pod.NodeName == "" && len(pod.SchedulingGates) == 0 && !other && w.Kind() != "CronJob"
}

// newNode is the taint of a Node that no cloud controller manager has initialized (k8s.io/cloud-provider/api).
func newNode() corev1.Taint {
	return corev1.Taint{Key: uninitialized, Value: "true", Effect: corev1.TaintEffectNoSchedule}
}

// checkControllerChart checks the values of the chart of the cloud controller manager. The defaults of the chart are correct, and depend on
// its version.
func (c *checks) checkControllerChart(chart manifest.Chart, nodes []nodesOf) {
	var given struct {
		NodeSelector map[string]string
		Tolerations  []corev1.Toleration
	}
	raw, err := yaml.Marshal(chart.Values)
	if err != nil || yaml.Unmarshal(raw, &given) != nil {
		return
	}
	if given.Tolerations == nil {
		given.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
	}
	d := &manifest.Document{At: manifest.Problem{Object: chart.Origin}, Object: map[string]any{"kind": "chart", "metadata": map[string]any{"name": chart.Title}}}
	if o := c.lookup(manifest.KindHelmChart, chart.Name); o != nil {
		d.At = o.Problem("spec.valuesTemplate", "", "")
	}
	w := podsOf{object: object{c, d}}
	w.pod.Spec.NodeSelector, w.pod.Spec.Tolerations = given.NodeSelector, given.Tolerations
	c.checkOnePlace(w, nodes, []corev1.Taint{newNode()})
}

// waitsFor reports whether a run that waits for ready Nodes also waits for these pods. If there are no workers, it waits only for pods that
// tolerate the taint of the control plane.
func (c *checks) waitsFor(w podsOf) bool {
	taint := corev1.Taint{Key: planeLabel, Effect: corev1.TaintEffectNoSchedule}
	return c.hasMachinesForPods() || slices.ContainsFunc(w.pod.Spec.Tolerations, func(x corev1.Toleration) bool { return toleratesTaint(x, taint) })
}

// hasMachinesForPods reports whether the manifest has machines other than those of the control plane.
func (c *checks) hasMachinesForPods() bool {
	return slices.ContainsFunc(c.cluster.Machines, func(m manifest.Machine) bool { return !m.ControlPlane }) ||
		slices.ContainsFunc(c.cluster.Deployments, func(d manifest.Deployment) bool { return d.Replicas() > 0 }) ||
		slices.ContainsFunc(c.cluster.Pools, func(p manifest.Pool) bool { return p.Replicas() > 0 })
}

// checkOnePlace warns about a workload whose pods can run on none of the Nodes of the manifest. For the cloud controller manager this is an error,
// because Nodes do not become ready without it.
func (c *checks) checkOnePlace(w podsOf, nodes []nodesOf, more []corev1.Taint) {
	reasons, places := []string{}, 0
	for _, n := range nodes {
		why := cmp.Or(n.unmet(&w.pod.Spec), n.untolerated(&w.pod.Spec, more...))
		if why == "" {
			places += n.count
			continue
		}
		if !slices.Contains(reasons, why) {
			reasons = append(reasons, why)
		}
	}
	if places > 0 {
		c.checkPlaces(w, places)
		return
	}
	slices.Sort(reasons)
	p := w.problem(
		fmt.Sprintf("no Node of the manifest takes the pods of %s (%s)", w.Title(), strings.Join(reasons, "; ")),
		"change "+w.at+"nodeSelector, affinity or tolerations, or the labels and taints of machines",
	)
	if given, set := w.pod.Spec.NodeSelector[planeLabel]; set && given != "" {
		p.Fix = fmt.Sprintf(`write %snodeSelector: {%s: ""}: the label of kubeadm has no value`, w.at, planeLabel)
	}
	if _, old := w.pod.Spec.NodeSelector[formerPlaneLabel]; old {
		p.Fix = fmt.Sprintf(`write %snodeSelector: {%s: ""}: kubeadm has given the label %s only before Kubernetes 1.24`, w.at, planeLabel, formerPlaneLabel)
	}
	report := c.warn
	if len(more) > 0 && c.initializedByController() {
		p.What += ": Nodes wait for this cloud controller manager"
		report = c.fail
	}
	report(p)
}

// checkPlaces warns if there are more pods than Nodes for them, and two of the pods cannot run on one Node, because of their anti-affinity or
// because they use the same port of the Node (InterPodAffinity and NodePorts of the kube-scheduler).
func (c *checks) checkPlaces(w podsOf, places int) {
	replicas := 1
	if n, err := strconv.Atoi(fmt.Sprint(manifest.ValueAt(w.Object, "spec.replicas"))); err == nil {
		replicas = n
	}
	why := alone(&w.pod)
	if why == "" || replicas <= places || w.Kind() == "DaemonSet" {
		return
	}
	c.warn(w.problem(
		fmt.Sprintf("%s has %d pods, of which %d find a Node: %s%s keeps two of them off one Node", w.Title(), replicas, places, w.at, why),
		"use fewer replicas, or more machines",
	))
}

// alone returns the field because of which two of the pods cannot run on one Node; "" if there is none.
func alone(pod *corev1.PodTemplateSpec) string {
	if a := pod.Spec.Affinity; a != nil && a.PodAntiAffinity != nil {
		for i, t := range a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution {
			s, err := metav1.LabelSelectorAsSelector(t.LabelSelector)
			if err == nil && t.TopologyKey == corev1.LabelHostname && s.Matches(labels.Set(pod.Labels)) && len(t.Namespaces) == 0 {
				return fmt.Sprintf("affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution[%d]", i)
			}
		}
	}
	for i := range pod.Spec.Containers {
		for j, p := range pod.Spec.Containers[i].Ports {
			if p.HostPort > 0 || pod.Spec.HostNetwork {
				return fmt.Sprintf("containers[%d].ports[%d]", i, j)
			}
		}
	}
	return ""
}

// initializedByController reports whether Nodes wait for a cloud controller manager, and the manifest has one.
func (c *checks) initializedByController() bool {
	return c.cluster.ControlPlane != nil && manifest.ExternalCloudProvider(&c.cluster.ControlPlane.Object.Spec.KubeadmConfigSpec) &&
		len(c.cluster.CloudControllers()) == 1
}

// checkNetworkPlacement refuses a pod network that cannot run on all Nodes of the manifest, unless there is another one.
func (c *checks) checkNetworkPlacement(w podsOf, nodes []nodesOf) {
	others := len(c.cluster.Charts) > 0
	for _, set := range c.cluster.ResourceSets {
		for _, d := range set.Documents {
			others = others || d != w.Document && manifest.HasPodNetwork([]*manifest.Document{d})
		}
	}
	if others || w.Kind() != "DaemonSet" || c.cluster.EKS != nil && c.cluster.HasVPCCNI() {
		return
	}
	for _, n := range nodes {
		if why := cmp.Or(n.unmet(&w.pod.Spec), n.untolerated(&w.pod.Spec)); why != "" {
			c.fail(w.problem(
				fmt.Sprintf("some Nodes of the manifest do not take the pods of %s (%s): without the pod network, they do not become ready", w.Title(), why),
				"write "+w.at+"tolerations: [{operator: Exists}], and no nodeSelector",
			))
			return
		}
	}
}
