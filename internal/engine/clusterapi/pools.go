package clusterapi

import (
	"bytes"

	corev1 "k8s.io/api/core/v1"
	infrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/api/v1beta2"
	expinfrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/exp/api/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
)

// addPools completes the objects of MachinePools: their machines exist, so that the Secret
// with their user data does, too. A controller replaces machines if the user data of the
// launch template differs from the Secret.
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
		tags := infrav1.Tags{}
		tags.Merge(b.m.Infra.Spec.AdditionalTags)
		tags.Merge(a.Spec.AdditionalTags)
		if len(tags) > 0 {
			a.SetAnnotations(merged(a.GetAnnotations(), map[string]string{tagsAnnotation: text(tags)}))
		}
	}
	return x.Object
}

// addUserData adds the Secret with the user data of a pool. As in Cluster API, it has the
// name of the bootstrap configuration.
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
	s := &corev1.Secret{
		ObjectMeta: meta(name, map[string]string{clusterv1.ClusterNameLabel: b.m.Name}, nil),
		Type:       clusterv1.ClusterSecretType, Data: map[string][]byte{"value": data, "format": []byte(format)},
	}
	typeMeta(s, corev1.SchemeGroupVersion, "Secret")
	b.add(s, &Owner{config, true})
}
