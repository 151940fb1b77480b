package incluster

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/blang/semver/v4"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/boot"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
	"github.com/clusterawsadm/clusterawsadm/internal/kube"
	"github.com/clusterawsadm/clusterawsadm/internal/text"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// KubeadmConfig is the ConfigMap kubeadm-config, which kubeadm init creates, and
// which joining machines read. It is updated before the control plane is replaced.
type KubeadmConfig struct {
	API     *API
	Server  *graph.Ref[APIServerState]
	Version string // of the control plane: "v1.34.2"
	Spec    bootstrapv1.ClusterConfiguration
	// Unknown are machines without a template tag: those of Cluster API. Their version is
	// not known.
	Unknown []string
}

// KubeadmConfigState is the ConfigMap.
type KubeadmConfigState struct {
	Config *boot.ClusterConfig
	Lost   bool // kubeadm init has created it, and it does not exist any more
}

// CloudID implements graph.State.
func (KubeadmConfigState) CloudID() string { return "kube-system/kubeadm-config" }

var (
	_ graph.Desired[KubeadmConfigState] = (*KubeadmConfig)(nil)
	_ graph.Updater[KubeadmConfigState] = (*KubeadmConfig)(nil)
)

// Needs implements graph.Desired.
func (k *KubeadmConfig) Needs() []graph.Edge { return graph.On(k.Server) }

const clusterConfiguration = "ClusterConfiguration"

// Find implements graph.Desired.
func (k *KubeadmConfig) Find(ctx context.Context, c *cloud.Clients) (*KubeadmConfigState, error) {
	if !answers(k.Server) {
		return nil, nil // the API server does not answer yet
	}
	client, err := k.API.Client(c)
	if err != nil {
		return nil, err
	}
	var have corev1.ConfigMap
	err = client.Get(ctx, "/api/v1/namespaces/kube-system/configmaps/kubeadm-config", &have)
	if apierrors.IsNotFound(err) {
		return lostConfig(ctx, client)
	}
	if err != nil {
		return nil, retryUnavailable(ctx, err)
	}
	config, err := boot.ParseClusterConfig(have.Data[clusterConfiguration])
	return &KubeadmConfigState{Config: config}, err
}

// lostConfig tells a ConfigMap that does not exist yet, which is nil, from one that somebody has deleted: kubeadm init creates the ConfigMap
// cluster-info after it (its phase bootstrap-token comes after upload-config: cmd/kubeadm/app/cmd/init.go), and nothing creates it again.
func lostConfig(ctx context.Context, client *kube.Client) (*KubeadmConfigState, error) {
	var later corev1.ConfigMap
	err := client.Get(ctx, "/api/v1/namespaces/kube-public/configmaps/cluster-info", &later)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, retryUnavailable(ctx, err)
	}
	return &KubeadmConfigState{Lost: true}, nil
}

// Diff implements graph.Desired.
func (k *KubeadmConfig) Diff(have *KubeadmConfigState) (d plan.Diff) {
	if have.Lost {
		d.Fixed("configuration", "missing", k.Version, "somebody has deleted the ConfigMap kube-system/kubeadm-config, without which no machine can join: "+
			"restore it from a backup, or on a machine of the control plane with 'sudo kubeadm init phase upload-config all --config FILE', "+
			"where FILE has the ClusterConfiguration of the cluster")
		return d
	}
	if have.Config == nil {
		d.Await("version", "", k.Version)
		return d
	}
	if advice := k.obstacle(have.Config.Version); advice == "" {
		d.Set("version", have.Config.Version, k.Version)
	} else {
		d.Fixed("version", have.Config.Version, k.Version)
		d.Advise(advice)
	}
	lasting := map[string]bool{}
	for _, f := range have.Config.LastingFields(k.Spec) {
		d.Fixed(f.Field, f.Have, f.Want)
		d.Advise("kubeadm init has set it for all machines: set " + f.Field + " of clusterConfiguration back, or create another cluster")
		lasting[f.Field] = f.Have != f.Want
	}
	for _, f := range have.Config.Differs(k.Spec, k.Version) {
		if !lasting[f] {
			d.Set(f, "as before", "as in the manifest")
		}
	}
	return d
}

// obstacle returns what to do if kubeadm cannot upgrade to the version: it upgrades to a
// later patch or to the next minor version of a known version. "" if it can.
func (k *KubeadmConfig) obstacle(have string) string {
	from, err1 := semver.ParseTolerant(have)
	to, err2 := semver.ParseTolerant(k.Version)
	switch {
	case have == k.Version:
		return ""
	case len(k.Unknown) > 0:
		return "machines do not say which version they are of (" + text.Several(
			k.Unknown,
		) + "): take the cluster over with the version it has, or have them replaced by rollout.after"
	case err1 != nil || err2 != nil:
		return "Kubernetes is upgraded by one minor version at a time, and never downgraded"
	case to.LT(from):
		return "Kubernetes is never downgraded: set spec.version back to " + have
	case to.Major != from.Major || to.Minor-from.Minor > 1:
		return fmt.Sprintf("Kubernetes is upgraded by one minor version at a time: the next one is v%d.%d", from.Major, from.Minor+1)
	}
	return ""
}

// Update implements graph.Updater.
func (k *KubeadmConfig) Update(ctx context.Context, c *cloud.Clients, have *KubeadmConfigState, _ plan.Diff) (*KubeadmConfigState, error) {
	client, err := k.API.Client(c)
	if err != nil {
		return nil, err
	}
	if err := bindings(ctx, client); err != nil {
		return nil, retryUnavailable(ctx, err)
	}
	text, err := have.Config.Upgraded(k.Spec, k.Version)
	if err != nil {
		return nil, err
	}
	patch, err := json.Marshal(map[string]any{"data": map[string]string{clusterConfiguration: text}})
	if err != nil {
		return nil, err
	}
	_, err = client.Objects(kube.Core("configmaps"), metav1.NamespaceSystem).
		Patch(ctx, "kubeadm-config", types.MergePatchType, patch, metav1.PatchOptions{FieldManager: kube.FieldManager})
	return nil, retryUnavailable(ctx, err)
}

// bindings creates the ClusterRoleBindings that "kubeadm upgrade apply" of newer
// versions creates, where they are missing.
func bindings(ctx context.Context, client *kube.Client) error {
	for _, b := range []struct{ name, role, kind, subject string }{
		{"kubeadm:cluster-admins", "cluster-admin", "Group", "kubeadm:cluster-admins"},
		{"kubeadm:apiserver-kubelet-client", "system:kubelet-api-admin", "User", "kube-apiserver-kubelet-client"},
	} {
		o := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": map[string]any{"name": b.name},
			"roleRef":  map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": b.role},
			"subjects": []any{map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": b.kind, "name": b.subject}},
		}}
		at := client.Objects(schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterrolebindings"}, "")
		if _, err := at.Create(ctx, o, metav1.CreateOptions{FieldManager: kube.FieldManager}); err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("ClusterRoleBinding %s: %w", b.name, err)
		}
	}
	return nil
}

// StoredClusterConfig returns the configuration that kubeadm has stored in the cluster; nil if there
// is none.
func StoredClusterConfig(ctx context.Context, k *kube.Client) (*boot.ClusterConfig, error) {
	var have corev1.ConfigMap
	err := k.Get(ctx, "/api/v1/namespaces/kube-system/configmaps/kubeadm-config", &have)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return boot.ParseClusterConfig(have.Data[clusterConfiguration])
}
