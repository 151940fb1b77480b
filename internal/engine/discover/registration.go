package discover

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/boot"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
)

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

// mostPermuted is the largest number of labels or taints for which orders returns all orders.
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

// registeredByKubeadm returns the labels and taints with which a kubelet that kubeadm configures
// registers its Node.
func registeredByKubeadm(r bootstrapv1.NodeRegistrationOptions, controlPlane bool) registered {
	out := registered{labelsIn(boot.Argument(manifest.KubeletArguments(r.KubeletExtraArgs), nodeLabelsArgument)), usualTaints(controlPlane)}
	if r.Taints != nil {
		out.taints = *r.Taints
	}
	if text := boot.Argument(manifest.KubeletArguments(r.KubeletExtraArgs), taintsArgument); text != "" {
		out.taints = taintsIn(text)
	}
	return out
}

// registeredByEKS returns the labels and taints with which the kubelet of a machine of EKS
// registers its Node.
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
