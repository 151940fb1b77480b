package resource

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/yaml"

	"clusterawsadm/internal/cloud"
	"clusterawsadm/pkg/reconcile/graph"
)

// KubeadmConfig is what kubeadm init leaves in the cluster for the machines
// that join: the ConfigMap kubeadm-config. Once it is there, kubeadm is done.
type KubeadmConfig struct {
	API    *API
	Server *graph.Ref[APIServerState]
}

// KubeadmConfigState is the ConfigMap.
type KubeadmConfigState struct {
	Version string // "v1.34.2"
}

// CloudID implements graph.State.
func (KubeadmConfigState) CloudID() string { return "kube-system/kubeadm-config" }

var _ graph.Expected[KubeadmConfigState] = (*KubeadmConfig)(nil)

// Needs implements graph.Expected.
func (k *KubeadmConfig) Needs() []graph.Edge { return graph.On(k.Server) }

// Find implements graph.Expected.
func (k *KubeadmConfig) Find(ctx context.Context, c *cloud.Clients) (*KubeadmConfigState, error) {
	if !answers(k.Server) {
		return nil, nil //nolint:nilnil // there is nobody to ask
	}
	client, err := k.API.client(c)
	if err != nil {
		return nil, err
	}
	var have struct {
		Data struct{ ClusterConfiguration string }
	}
	err = client.Get(ctx, "/api/v1/namespaces/kube-system/configmaps/kubeadm-config", &have)
	if apierrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // not yet
	}
	if err != nil {
		return nil, err
	}
	var config struct{ KubernetesVersion string }
	if err := yaml.Unmarshal([]byte(have.Data.ClusterConfiguration), &config); err != nil {
		return nil, err
	}
	return &KubeadmConfigState{config.KubernetesVersion}, nil
}

// Diff implements graph.Expected.
func (k *KubeadmConfig) Diff(have *KubeadmConfigState) (d graph.Diff) {
	if have.Version == "" {
		d.Await("version", "", graph.Unknown)
	}
	return d
}
