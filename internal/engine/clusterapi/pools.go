package clusterapi

import (
	"bytes"

	expinfrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/exp/api/v1beta2"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/boot"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
)

// addPools completes the objects of MachinePools, and adds the Secrets with the user data of
// their machines. A controller replaces the machines of a pool if the user data in its
// launch template differs from that in the Secret.
func (b *builder) addPools() {
	for _, p := range b.m.Pools {
		owner := b.find("MachinePool", p.Object.Name)
		pool, ok := owner.Object.(*clusterv1.MachinePool)
		if !ok {
			continue
		}
		if p.Scaling != nil {
			b.ownedByPool("AWSMachinePool", p.Scaling.Name, pool)
		} else {
			b.ownedByPool("AWSManagedMachinePool", p.Managed.Name, pool)
		}
		if config := b.ownedByPool(pool.Spec.Template.Spec.Bootstrap.ConfigRef.Kind, pool.Spec.Template.Spec.Bootstrap.ConfigRef.Name, pool); config != nil {
			b.addUserData(pool, config)
		}
	}
}

// ownedByPool makes a pool the owner of an object, and records the tags of an
// AWSMachinePool.
func (b *builder) ownedByPool(kind, name string, pool *clusterv1.MachinePool) manifest.Object {
	x := b.find(kind, name)
	if x == nil {
		return nil
	}
	x.Owner = &Owner{pool, true}
	if a, ok := x.Object.(*expinfrav1.AWSMachinePool); ok {
		if tags := b.tags(a.Spec.AdditionalTags); len(tags) > 0 {
			a.SetAnnotations(merged(a.GetAnnotations(), map[string]string{tagsAnnotation: text(tags)}))
		}
	}
	return x.Object
}

// addUserData adds the Secret with the user data of a pool. As in Cluster API, it has the
// name of the bootstrap configuration.
//
// The status of a KubeadmConfig says that the user data exists: otherwise Cluster API's
// controller makes it anew, because it reads dataSecretName of Machines, and not that of a
// MachinePool (Cluster API 1.13.4, ConfigOwner.DataSecretName).
func (b *builder) addUserData(pool *clusterv1.MachinePool, config manifest.Object) {
	data, ok := b.s.UserData[pool.Name]
	if !ok {
		return
	}
	name, format := config.GetName(), "cloud-config"
	if bytes.HasPrefix(bytes.TrimSpace(data), []byte("{")) {
		format = "ignition"
	}
	pool.Spec.Template.Spec.Bootstrap.DataSecretName = &name
	b.addSecret(name, map[string][]byte{"value": data, "format": []byte(format)}, &Owner{config, true})
	if k, ok := config.(*bootstrapv1.KubeadmConfig); ok {
		b.addToken(k)
		b.find("KubeadmConfig", name).Status = map[string]any{"initialization": map[string]any{"dataSecretCreated": true}, "dataSecretName": name}
	}
}

// addToken writes the bootstrap token in the user data of a pool into its configuration. After
// the handover, no machine of the control plane renews the token: Cluster API's controller
// replaces it, and the user data, before it expires. Without a token in the configuration, the
// controller does not, and machines of the pool cannot join after that.
func (b *builder) addToken(k *bootstrapv1.KubeadmConfig) {
	if b.s.Token != "" && boot.ByToken(&k.Spec) {
		k.Spec.JoinConfiguration.Discovery.BootstrapToken.Token = b.s.Token
	}
}
