package manifest

import (
	"slices"
	"strings"

	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
)

// KubeletArguments returns arguments as the kubelet receives them. kubeadm writes them into a file for systemd, which splits $KUBELET_KUBEADM_ARGS
// into words and removes quotes and backslashes ("Command lines" in systemd.service(5)), so that control-plane="":NoSchedule is a taint without a
// value. A run passes the arguments to kubeadm as they are in the manifest.
func KubeletArguments(args []bootstrapv1.Arg) []bootstrapv1.Arg {
	out := slices.Clone(args)
	for i, a := range out {
		if a.Value != nil {
			value := withoutQuotes(*a.Value)
			out[i].Value = &value
		}
	}
	return out
}

// withoutQuotes removes the quotes of a word as systemd does. One without an end is kept: systemd refuses the line.
func withoutQuotes(word string) string {
	var out strings.Builder
	quote, escaped := rune(0), false
	for _, c := range word {
		switch {
		case escaped:
			out.WriteRune(c)
			escaped = false
		case c == '\\':
			escaped = true
		case quote == 0 && (c == '"' || c == '\''):
			quote = c
		case c == quote:
			quote = 0
		default:
			out.WriteRune(c)
		}
	}
	if quote != 0 || escaped {
		return word
	}
	return out.String()
}
