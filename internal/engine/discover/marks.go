package discover

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/autoscaling"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/boot"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/incluster"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/topology"
)

// marks are the labels and taints of the Nodes of a group. Those that Kubernetes, AWS or Cluster
// API set by themselves are omitted.
type marks struct {
	nodes   int               // how many Nodes the group has
	synced  map[string]string // labels of all, which Cluster API copies from the Machines
	kubelet map[string]string // labels of all, which their kubelets have set
	others  map[string]string // labels of all, which somebody else has set
	taints  []corev1.Taint    // of all
	some    []string          // labels and taints that only some of the Nodes have
}

// marksOf returns the labels and taints of the Nodes of some machines.
func (s *SelfManaged) marksOf(controlPlane bool, machines ...string) (m marks) {
	m.synced, m.kubelet, m.others = map[string]string{}, map[string]string{}, map[string]string{}
	var nodes []incluster.Marks
	for _, id := range machines {
		if node, joined := s.Nodes[id]; joined {
			nodes = append(nodes, node)
		}
	}
	m.nodes = len(nodes)
	some := map[string]bool{}
	for _, node := range nodes {
		for key, label := range node.Labels {
			switch {
			case isUsualLabel(key, controlPlane):
			case all(nodes, func(x incluster.Marks) bool { v, has := x.Labels[key]; return has && v == label }):
				byKubelet := all(nodes, func(x incluster.Marks) bool { return x.ByKubelet[key] })
				m.add(key, label, byKubelet)
			default:
				some[key] = true
			}
		}
		for _, t := range node.Taints {
			switch {
			case isUsualTaint(t) || slices.ContainsFunc(m.taints, isTaint(t)):
			case all(nodes, func(x incluster.Marks) bool { return slices.ContainsFunc(x.Taints, isTaint(t)) }):
				m.taints = append(m.taints, corev1.Taint{Key: t.Key, Value: t.Value, Effect: t.Effect})
			default:
				some["taint "+t.ToString()] = true
			}
		}
	}
	m.some = slices.Sorted(maps.Keys(some))
	return m
}

func all(nodes []incluster.Marks, is func(incluster.Marks) bool) bool {
	return !slices.ContainsFunc(nodes, func(x incluster.Marks) bool { return !is(x) })
}

// add adds a label that all Nodes have.
func (m marks) add(key, label string, byKubelet bool) {
	switch {
	case byKubelet:
		m.kubelet[key] = label
	case len(topology.NodeLabels(map[string]string{key: label})) > 0:
		m.synced[key] = label
	default:
		m.others[key] = label
	}
}

// HasAllNodes reports whether all machines of groups and pools were found as Nodes.
func (s *SelfManaged) HasAllNodes() bool {
	joined := func(id string) bool { _, has := s.Nodes[id]; return has }
	for _, g := range s.readGroups() {
		for _, m := range g.machines {
			if !joined(m.ID) {
				return false
			}
		}
	}
	return s.Nodes != nil && !slices.ContainsFunc(s.Pools, func(p Pool) bool {
		return slices.ContainsFunc(p.Group.Instances, func(i autoscaling.PoolInstance) bool { return !joined(i.ID) })
	})
}

func isTaint(t corev1.Taint) func(corev1.Taint) bool {
	return func(x corev1.Taint) bool { return x.Key == t.Key && x.Value == t.Value && x.Effect == t.Effect }
}

// within reports whether a domain is another one, or below it.
func within(domain, parent string) bool {
	return domain == parent || strings.HasSuffix(domain, "."+parent)
}

// isUsualLabel reports whether Kubernetes or AWS sets a label: the kubelet, kubeadm, the cloud
// controller manager, CSI drivers, the VPC CNI or Node Feature Discovery.
// https://kubernetes.io/docs/reference/labels-annotations-taints/
func isUsualLabel(key string, controlPlane bool) bool {
	domain, name, qualified := strings.Cut(key, "/")
	switch {
	case !qualified:
		return false
	case key == corev1.LabelNodeExcludeBalancers:
		return controlPlane // kubeadm sets it there
	case domain == "node-role.kubernetes.io":
		return name == "control-plane" || name == "master"
	case strings.HasPrefix(domain, "topology.") || within(domain, "feature.node.kubernetes.io"):
		return true
	case within(domain, "node-restriction.kubernetes.io"):
		return false
	case within(domain, "node.kubernetes.io") || within(domain, "kubelet.kubernetes.io"):
		return key == corev1.LabelInstanceTypeStable || key == corev1.LabelWindowsBuild
	}
	return within(domain, "kubernetes.io") || within(domain, "k8s.io") || domain == "eks.amazonaws.com" || domain == "vpc.amazonaws.com"
}

// isUsualTaint reports whether a controller sets a taint, and removes it.
func isUsualTaint(t corev1.Taint) bool {
	domain, _, _ := strings.Cut(t.Key, "/")
	switch {
	case domain == "node-role.kubernetes.io" || within(domain, "node-restriction.kubernetes.io"):
		return false
	case t.Key == "ToBeDeletedByClusterAutoscaler" || t.Key == "DeletionCandidateOfClusterAutoscaler":
		return true
	}
	return within(domain, "kubernetes.io") || within(domain, "k8s.io") || within(domain, "node.cluster.x-k8s.io")
}

// usualTaints returns the taints that kubeadm gives to a Node without any in its configuration.
func usualTaints(controlPlane bool) []corev1.Taint {
	if controlPlane {
		return []corev1.Taint{{Key: "node-role.kubernetes.io/control-plane", Effect: corev1.TaintEffectNoSchedule}}
	}
	return nil
}

func sameTaints(x, y []corev1.Taint) bool {
	return len(x) == len(y) && !slices.ContainsFunc(x, func(t corev1.Taint) bool { return !slices.ContainsFunc(y, isTaint(t)) })
}

// register completes the registration of a Node with labels and taints.
func (m marks) register(r *bootstrapv1.NodeRegistrationOptions, controlPlane bool) {
	if len(m.kubelet) > 0 {
		r.KubeletExtraArgs = append(r.KubeletExtraArgs, arguments(nodeLabelsArgument, strings.Join(pairs(m.kubelet), ","))...)
	}
	if m.nodes > 0 && !sameTaints(m.taints, usualTaints(controlPlane)) {
		taints := slices.Clone(m.taints)
		r.Taints = &taints
	}
}

// pairs lists labels as "key=value", sorted.
func pairs(labels map[string]string) (out []string) {
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		out = append(out, key+"="+labels[key])
	}
	return out
}

// mostPermuted is the number of labels or taints of which all orders are tried.
const mostPermuted = 4

// orders returns all lists of some elements of a list, the longest first. If there are too many
// elements, it returns the list and the empty one.
func orders[T any](list []T) [][]T {
	if len(list) > mostPermuted {
		return [][]T{list, {}}
	}
	out := [][]T{{}}
	for i, first := range list {
		for _, rest := range orders(slices.Delete(slices.Clone(list), i, i+1)) {
			out = append(out, append([]T{first}, rest...))
		}
	}
	slices.SortStableFunc(out, func(x, y []T) int { return len(y) - len(x) })
	return out
}

// registrations returns the registrations of Nodes with which they may have got their labels and
// taints. The order of labels in the argument of the kubelet is not known, nor that of the
// arguments, nor which of the taints somebody has added later.
func (m marks) registrations(arguments [][]bootstrapv1.Arg) (out []bootstrapv1.NodeRegistrationOptions) {
	if m.nodes == 0 {
		return nil
	}
	for _, taints := range orders(m.taints) {
		out = append(out, bootstrapv1.NodeRegistrationOptions{Taints: &taints})
	}
	if len(m.kubelet) == 0 {
		return out
	}
	labels := pairs(m.kubelet)
	for _, order := range orders(labels) {
		if len(order) < len(labels) {
			break // all of these labels are from the kubelet
		}
		text := strings.Join(order, ",")
		own := bootstrapv1.Arg{Name: nodeLabelsArgument, Value: &text}
		for _, others := range arguments {
			for at := range len(others) + 1 {
				out = append(out, bootstrapv1.NodeRegistrationOptions{KubeletExtraArgs: slices.Insert(slices.Clone(others), at, own)})
			}
		}
	}
	return out
}

// registered are the labels and taints with which a bootstrap configuration registers a Node.
type registered struct {
	labels map[string]string
	taints []corev1.Taint
}

// Arguments of the kubelet.
const (
	nodeLabelsArgument = "node-labels"
	taintsArgument     = "register-with-taints"
)

// registeredByKubeadm returns what kubeadm registers a Node with.
func registeredByKubeadm(r bootstrapv1.NodeRegistrationOptions, controlPlane bool) registered {
	out := registered{labelsIn(argument(r.KubeletExtraArgs, nodeLabelsArgument)), usualTaints(controlPlane)}
	if r.Taints != nil {
		out.taints = *r.Taints
	}
	if text := argument(r.KubeletExtraArgs, taintsArgument); text != "" {
		out.taints = taintsIn(text)
	}
	return out
}

// registeredByEKS returns what the bootstrap of EKS registers a Node with.
func registeredByEKS(b *boot.BootedEKS) (out registered) {
	switch {
	case b == nil:
	case b.Config != nil:
		args := b.Config.KubeletExtraArgs
		return registered{labelsIn(args[nodeLabelsArgument]), taintsIn(args[taintsArgument])}
	case b.Nodeadm != nil && b.Nodeadm.Kubelet != nil:
		for _, flag := range b.Nodeadm.Kubelet.Flags {
			switch name, text, _ := strings.Cut(strings.TrimLeft(flag, "-"), "="); name {
			case nodeLabelsArgument:
				out.labels = labelsIn(text)
			case taintsArgument:
				out.taints = taintsIn(text)
			}
		}
	}
	return out
}

// labelsIn reads the labels in an argument of the kubelet.
func labelsIn(text string) map[string]string {
	out := map[string]string{}
	for pair := range strings.SplitSeq(text, ",") {
		if key, label, ok := strings.Cut(pair, "="); ok {
			out[key] = strings.Trim(label, `"`)
		}
	}
	return out
}

// taintsIn reads the taints in an argument of the kubelet: "key=value:effect".
func taintsIn(text string) (out []corev1.Taint) {
	for one := range strings.SplitSeq(text, ",") {
		if what, effect, ok := strings.Cut(one, ":"); ok {
			key, value, _ := strings.Cut(what, "=")
			out = append(out, corev1.Taint{Key: key, Value: value, Effect: corev1.TaintEffect(effect)})
		}
	}
	return out
}

// unset lists the labels and taints of all Nodes that their registration does not set.
func (m marks) unset(set registered) []string {
	labels := maps.Clone(m.others)
	maps.Copy(labels, m.kubelet)
	maps.DeleteFunc(labels, func(key, label string) bool { v, is := set.labels[key]; return is && v == label })
	out := pairs(labels)
	for _, t := range m.taints {
		if !slices.ContainsFunc(set.taints, isTaint(t)) {
			out = append(out, "taint "+t.ToString())
		}
	}
	return out
}

// comment says what is not known of labels and taints, and which of them nothing sets. asked
// reports whether the API server was asked.
func (m marks) comment(asked bool, set registered) string {
	var lines []string
	switch unset := m.unset(set); {
	case !asked:
		return "Not known: labels and taints of the Nodes."
	case m.nodes == 0:
		return "Not known: labels and taints. None of the machines is a Node."
	case len(unset) > 0:
		lines = append(lines, wrapped("All Nodes also have: "+listed(unset)+". This manifest does not set that, and Nodes that are added do not have it."))
	}
	if len(m.some) > 0 {
		lines = append(lines, wrapped("Left out, because only some Nodes have it, or with another value: "+listed(m.some)+"."))
	}
	return strings.Join(lines, "\n")
}

// mostListed is the number of labels and taints that a comment lists.
const mostListed = 12

// listed lists the first words of a list, and says how many more there are.
func listed(words []string) string {
	if more := len(words) - mostListed; more > 0 {
		words = append(slices.Clone(words[:mostListed]), fmt.Sprintf("%d more", more))
	}
	return strings.Join(words, ", ")
}
