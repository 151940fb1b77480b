package manifest

import (
	infrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/api/v1beta2"
	expinfrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/exp/api/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// resolvePools finds the MachinePools of the cluster.
func (l *loader) resolvePools() {
	for _, o := range l.ofKind(kindPool) {
		o.used = true
		p, ok := o.typed.(*clusterv1.MachinePool)
		if !ok || !l.belongs(o, p.Spec.ClusterName) {
			continue
		}
		pool := Pool{Object: p}
		machine := p.Spec.Template.Spec
		switch x := l.poolMachines(o, machine.InfrastructureRef).(type) {
		case *expinfrav1.AWSManagedMachinePool:
			pool.Managed = x
			pool.NodeGroupSettings = l.nodeGroupSettings(l.lookup(kindManagedPool, x.Name))
		case *expinfrav1.AWSMachinePool:
			pool.Scaling = x
		}
		secret := machine.Bootstrap.DataSecretName
		switch m := pool.Managed; {
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
func (l *loader) poolMachines(o *object, ref clusterv1.ContractVersionedObjectReference) any {
	r := contract(o, "spec.template.spec.infrastructureRef", ref)
	wanted := []string{kindScalingPool}
	if l.managed {
		wanted = []string{kindManagedPool, kindScalingPool}
	} else if r.kind == kindManagedPool {
		if found := l.lookup(r.kind, r.name); found != nil {
			found.used = true
		}
		l.fail(o.problem(r.path+".kind", "AWSManagedMachinePool is a node group of EKS, and this cluster is self-managed", "use AWSMachinePool"))
		return nil
	}
	if found := l.follow(r, wanted...); found != nil {
		return found.typed
	}
	return nil
}

// unusedBootstrap warns about the bootstrap configuration of a node group whose user data
// EKS writes. Cluster API requires that one is set.
func (l *loader) unusedBootstrap(o *object, b clusterv1.Bootstrap) {
	const path = "spec.template.spec.bootstrap"
	if !b.ConfigRef.IsDefined() {
		if b.DataSecretName != nil && *b.DataSecretName != "" {
			l.warn(
				o.problem(
					path+".dataSecretName",
					"has no effect: EKS writes the user data of a node group without a launch template",
					"set awsLaunchTemplate of the AWSManagedMachinePool, or remove the name",
				),
			)
		}
		return
	}
	l.checkDataSecret(o, path)
	config := l.follow(contract(o, path+".configRef", b.ConfigRef), kindNodeadm, kindEKSConfig)
	if config == nil {
		return
	}
	if spec, _ := config.value["spec"].(map[string]any); len(spec) > 0 {
		l.warn(
			config.problem(
				"spec",
				"has no effect: EKS writes the user data of a node group without a launch template",
				"set awsLaunchTemplate of the AWSManagedMachinePool, or empty this",
			),
		)
	}
}

// Template returns the launch template of a pool, or nil if EKS creates it.
func (p Pool) Template() *expinfrav1.AWSLaunchTemplate {
	if p.Managed != nil {
		return p.Managed.Spec.AWSLaunchTemplate
	}
	return &p.Scaling.Spec.AWSLaunchTemplate
}

// NodeTags returns the tags of the nodes of a managed pool. EKS does not pass the tags of a node
// group on to its nodes, so that CAPA sets them on its Auto Scaling group.
func (c *Cluster) NodeTags(p Pool) infrav1.Tags {
	tags := infrav1.Tags{}
	if p.Managed != nil {
		tags.Merge(c.Infra.Spec.AdditionalTags)
		tags.Merge(p.Managed.Spec.AdditionalTags)
	}
	return tags
}

// Hooks returns the lifecycle hooks of a pool.
func (p Pool) Hooks() []expinfrav1.AWSLifecycleHook {
	if p.Managed != nil {
		return p.Managed.Spec.AWSLifecycleHooks
	}
	return p.Scaling.Spec.AWSLifecycleHooks
}
