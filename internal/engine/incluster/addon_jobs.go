package incluster

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterawsadm/clusterawsadm/internal/kube"
)

// JobsConfigMap is the ConfigMap in kube-system that records the Jobs of add-ons that delete themselves (ttlSecondsAfterFinished): a digest
// of each, by namespace and name. Such a Job is missing after it has run, and would be created again by each run. Cluster API keeps a digest
// of the objects of a ClusterResourceSet in its ClusterResourceSetBinding for the same purpose.
const JobsConfigMap = "clusterawsadm-jobs"

// notRecorded is the state of a Job that exists, and that the ConfigMap does not record.
const notRecorded = "not recorded"

const configMaps = "/api/v1/namespaces/" + metav1.NamespaceSystem + "/configmaps"

// expires reports whether an object is a Job that Kubernetes deletes after it has run.
func (o AddonObject) expires() bool {
	group, _, _ := strings.Cut(fmt.Sprint(o.Object["apiVersion"]), "/")
	ttl, _, _ := unstructured.NestedFieldNoCopy(o.Object, "spec", "ttlSecondsAfterFinished")
	return o.kind() == "Job" && group == "batch" && ttl != nil
}

// record returns what the ConfigMap has of a Job that has been applied.
func (o AddonObject) record() (key, digest string) {
	object := o.object()
	namespace := object.GetNamespace()
	if namespace == "" {
		namespace = metav1.NamespaceDefault
	}
	raw, err := json.Marshal(o.Object)
	if err != nil {
		raw = fmt.Append(nil, o.Object)
	}
	sum := sha256.Sum256(raw)
	return namespace + "." + object.GetName(), hex.EncodeToString(sum[:])
}

// recorded is what the ConfigMap has. It is read when it is needed first.
type recorded struct {
	k    *kube.Client
	read bool
	data map[string]string
}

// state returns the state of a Job that expires. seen is its state without the ConfigMap.
func (r *recorded) state(ctx context.Context, a *Addons, o AddonObject, seen string) (string, error) {
	if !o.expires() || seen != "" && seen != a.wanted() {
		return seen, nil
	}
	if !r.read {
		var have corev1.ConfigMap
		if err := r.k.Get(ctx, configMaps+"/"+JobsConfigMap, &have); err != nil && !apierrors.IsNotFound(err) {
			return seen, err
		}
		r.read, r.data = true, have.Data
	}
	key, digest := o.record()
	switch {
	case seen == "" && r.data[key] == digest: // it has run, and is deleted
		return a.wanted(), nil
	case seen != "" && (r.data[key] == "" || a.Reconcile && r.data[key] != digest):
		return notRecorded, nil
	}
	return seen, nil
}

// recordJob records a Job that has been applied. Several resource sets may do so at once.
func recordJob(ctx context.Context, k *kube.Client, o AddonObject) error {
	key, digest := o.record()
	data := map[string]string{key: digest}
	change := func() error {
		return k.Merge(ctx, configMaps+"/"+JobsConfigMap, map[string]any{"data": data})
	}
	err := change()
	if !apierrors.IsNotFound(err) {
		return err
	}
	err = k.Post(ctx, configMaps, &corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{Name: JobsConfigMap, Namespace: metav1.NamespaceSystem},
		Data:       data,
	})
	if apierrors.IsAlreadyExists(err) {
		return change()
	}
	return err
}
