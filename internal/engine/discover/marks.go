package discover

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/autoscaling"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/incluster"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/topology"
	"github.com/clusterawsadm/clusterawsadm/internal/text"
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

// pairs lists labels as "key=value", sorted.
func pairs(labels map[string]string) (out []string) {
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		out = append(out, key+"="+labels[key])
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

// comment describes the labels and taints that are not in the manifest: those that the import
// does not know, and those that the bootstrap configuration does not set. asked reports whether
// the import has read the Nodes from the API server.
func (m marks) comment(asked bool, set registered) string {
	var lines []string
	switch unset := m.unset(set); {
	case !asked:
		return "Not known: labels and taints of the Nodes."
	case m.nodes == 0:
		return "Not known: labels and taints. None of the machines was found as a Node."
	case len(unset) > 0:
		lines = append(
			lines,
			text.Wrap("All Nodes also have: "+listed(unset)+". This manifest does not set that, and Nodes that are added do not have it.", commentWidth),
		)
	}
	for _, t := range usualTaints(true) {
		if slices.ContainsFunc(set.taints, isTaint(t)) && !slices.ContainsFunc(m.taints, isTaint(t)) {
			lines = append(lines, text.Wrap("Nodes that are added have the taint "+t.ToString()+". It has been removed from others.", commentWidth))
		}
	}
	if len(m.some) > 0 {
		lines = append(lines, text.Wrap("Left out, because only some Nodes have it, or with another value: "+listed(m.some)+".", commentWidth))
	}
	return strings.Join(lines, "\n")
}

// mostListed is the number of labels and taints that a comment lists.
const mostListed = 12

// listed returns the first words of a list, and the number of the others.
func listed(words []string) string {
	if more := len(words) - mostListed; more > 0 {
		words = append(slices.Clone(words[:mostListed]), fmt.Sprintf("%d more", more))
	}
	return strings.Join(words, ", ")
}
