package loader

import (
	expinfrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/exp/api/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
)

// resolvePools finds the MachinePools of the cluster.
func (l *loader) resolvePools() {
	for _, o := range l.ofKind(manifest.KindPool) {
		o.Used = true
		p, ok := o.Typed.(*clusterv1.MachinePool)
		if !ok || !l.belongs(o, p.Spec.ClusterName) {
			continue
		}
		pool := manifest.Pool{Object: p}
		machine := p.Spec.Template.Spec
		switch x := l.poolMachines(o, machine.InfrastructureRef).(type) {
		case *expinfrav1.AWSManagedMachinePool:
			pool.Managed = x
			pool.NodeGroupSettings = l.nodeGroupSettings(l.lookup(manifest.KindManagedPool, x.Name))
		case *expinfrav1.AWSMachinePool:
			pool.Scaling = x
		}
		secret := machine.Bootstrap.DataSecretName
		switch m := pool.Managed; {
		case m == nil && pool.Scaling == nil && !machine.Bootstrap.ConfigRef.IsDefined(): // whether it needs a Secret is not known
		case m != nil && m.Spec.AWSLaunchTemplate == nil:
			l.unusedBootstrap(o, machine.Bootstrap)
		case m != nil && secret != nil && *secret == "": // EKS adds the user data that nodes need
		default:
			pool.Bootstrap = asBootstrap(l.bootstrap(o, "spec.template.spec.bootstrap", machine.Bootstrap, false))
		}
		l.cluster.Pools = append(l.cluster.Pools, pool)
	}
}

// poolMachines returns the AWS object of a pool. If it is nil, the problem was reported.
func (l *loader) poolMachines(o *manifest.Entry, ref clusterv1.ContractVersionedObjectReference) any {
	r := contract(o, "spec.template.spec.infrastructureRef", ref)
	wanted := []string{manifest.KindScalingPool}
	if l.managed {
		wanted = []string{manifest.KindManagedPool, manifest.KindScalingPool}
	} else if r.kind == manifest.KindManagedPool {
		if found := l.lookup(r.kind, r.name); found != nil {
			found.Used = true
		}
		l.fail(o.Problem(r.path+".kind", "AWSManagedMachinePool is a node group of EKS, and this cluster is self-managed", "use AWSMachinePool"))
		return nil
	}
	if found := l.follow(r, wanted...); found != nil {
		return found.Typed
	}
	return nil
}

// unusedBootstrap warns about the bootstrap configuration of a node group whose user data
// EKS writes. Cluster API requires that one is set.
func (l *loader) unusedBootstrap(o *manifest.Entry, b clusterv1.Bootstrap) {
	const path = "spec.template.spec.bootstrap"
	if !b.ConfigRef.IsDefined() {
		if b.DataSecretName != nil && *b.DataSecretName != "" {
			l.warn(
				o.Problem(
					path+".dataSecretName",
					"has no effect: EKS writes the user data of a node group without a launch template",
					"set awsLaunchTemplate of the AWSManagedMachinePool, or remove the name",
				),
			)
		}
		return
	}
	l.checkDataSecret(o, path)
	config := l.follow(contract(o, path+".configRef", b.ConfigRef), manifest.KindNodeadm, manifest.KindEKSConfig)
	if config == nil {
		return
	}
	if spec, _ := config.Value["spec"].(map[string]any); len(spec) > 0 {
		l.warn(
			config.Problem(
				"spec",
				"has no effect: EKS writes the user data of a node group without a launch template",
				"set awsLaunchTemplate of the AWSManagedMachinePool, or empty this",
			),
		)
	}
}
