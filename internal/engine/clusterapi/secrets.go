package clusterapi

import (
	corev1 "k8s.io/api/core/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/secret"
)

// addSecrets adds the Secrets with the keys of a self-managed cluster and with its
// kubeconfig. Those in the manifest have precedence: they are the user's.
func (b *builder) addSecrets() {
	if b.s.PKI == nil {
		return
	}
	for purpose, pair := range b.s.PKI.Pairs() {
		if len(pair.Cert) > 0 {
			b.addKeys(purpose, map[string][]byte{secret.TLSCrtDataName: pair.Cert, secret.TLSKeyDataName: pair.Key})
		}
	}
	if len(b.s.Kubeconfig) > 0 {
		b.addKeys(secret.Kubeconfig, map[string][]byte{secret.KubeconfigDataName: b.s.Kubeconfig})
	}
}

// addKeys adds a Secret with keys of the cluster. It belongs to the control plane, and is
// deleted with it.
func (b *builder) addKeys(purpose secret.Purpose, data map[string][]byte) {
	name := secret.Name(b.m.Name, purpose)
	if b.find("Secret", name) != nil {
		return
	}
	var owner *Owner
	if cp := b.m.ControlPlane; cp != nil {
		owner = &Owner{b.find("KubeadmControlPlane", cp.Object.Name).Object, true}
	}
	b.addSecret(name, data, owner)
}

// addSecret adds a Secret of the cluster.
func (b *builder) addSecret(name string, data map[string][]byte, owner *Owner) {
	s := &corev1.Secret{
		ObjectMeta: meta(name, map[string]string{clusterv1.ClusterNameLabel: b.m.Name}, nil),
		Type:       clusterv1.ClusterSecretType, Data: data,
	}
	typeMeta(s, corev1.SchemeGroupVersion, "Secret")
	b.add(s, owner)
}
