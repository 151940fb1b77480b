package incluster

import (
	"context"
	"encoding/json"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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

// fieldsOfWriter decodes what the API server records in managedFields about the fields that a writer has set last by an operation; "" is any. The
// name of a writer is its field manager, or the first part of its user agent.
func fieldsOfWriter[F any](all []metav1.ManagedFieldsEntry, writer string, operation metav1.ManagedFieldsOperationType) (out []F) {
	for _, entry := range all {
		var fields F
		if entry.Manager != writer || operation != "" && entry.Operation != operation || entry.FieldsV1 == nil {
			continue
		}
		if json.Unmarshal(entry.FieldsV1.GetRawBytes(), &fields) == nil { // otherwise it is of another version of the format
			out = append(out, fields)
		}
	}
	return out
}

// labelFields are the labels of an object in managedFields.
type labelFields struct {
	Metadata struct {
		Labels map[string]any `json:"f:labels"`
	} `json:"f:metadata"`
}

// labelsByKubelet returns the keys of the labels whose last writer is the kubelet.
func labelsByKubelet(o *corev1.Node) map[string]bool {
	keys := map[string]bool{}
	for _, fields := range fieldsOfWriter[labelFields](o.ManagedFields, "kubelet", "") {
		for field := range fields.Metadata.Labels {
			if key, ok := strings.CutPrefix(field, "f:"); ok {
				keys[key] = true
			}
		}
	}
	return keys
}
