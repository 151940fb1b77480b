package incluster

import (
	"context"
	"encoding/json"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/clusterawsadm/clusterawsadm/internal/kube"
)

// Marks are the labels and taints of a Node.
type Marks struct {
	Labels    map[string]string
	ByKubelet map[string]bool // keys of the labels that the kubelet has set
	Taints    []corev1.Taint
}

// ListMarks lists the Nodes that an API server has, and their labels and taints by the name of the
// Node.
func ListMarks(ctx context.Context, k *kube.Client) (*NodeList, map[string]Marks, error) {
	l, marks := newNodeList(), map[string]Marks{}
	err := eachNode(ctx, k, func(o *corev1.Node) {
		l.add(nodeState(o))
		marks[o.Name] = Marks{Labels: o.Labels, ByKubelet: labelsByKubelet(o), Taints: o.Spec.Taints}
	})
	return l, marks, err
}

// labelsByKubelet returns the keys of the labels whose last writer is the kubelet. The API server
// records it in managedFields, with the first part of the user agent as the name of the writer.
func labelsByKubelet(o *corev1.Node) map[string]bool {
	keys := map[string]bool{}
	for _, entry := range o.ManagedFields {
		if entry.Manager != "kubelet" || entry.FieldsV1 == nil {
			continue
		}
		var fields struct {
			Metadata struct {
				Labels map[string]any `json:"f:labels"`
			} `json:"f:metadata"`
		}
		if json.Unmarshal(entry.FieldsV1.GetRawBytes(), &fields) != nil {
			continue // another version of the format
		}
		for field := range fields.Metadata.Labels {
			if key, ok := strings.CutPrefix(field, "f:"); ok {
				keys[key] = true
			}
		}
	}
	return keys
}
