package manifest

import (
	"cmp"
	"fmt"

	expinfrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/exp/api/v1beta2"
)

// checkWithoutEffect warns about fields that have no effect because of another field.
func (l *loader) checkWithoutEffect() {
	if l.cluster.Infra != nil {
		l.checkBastion()
		l.checkPartition()
	}
	for _, o := range l.objects {
		switch x := o.typed.(type) {
		case *expinfrav1.AWSMachinePool:
			l.checkSubnetType(o, x.Spec.AvailabilityZones)
		case *expinfrav1.AWSManagedMachinePool:
			l.checkSubnetType(o, x.Spec.AvailabilityZones)
			l.checkRemoteAccess(o, x.Spec.RemoteAccess)
		}
	}
	for _, p := range l.cluster.Pools {
		if c := p.Bootstrap.Kubeadm; c != nil {
			l.checkWorkerConfig(l.lookup(kindConfig, c.Name), "spec")
		}
	}
	for _, m := range l.cluster.Machines {
		if c := m.Bootstrap; c != nil && !m.ControlPlane {
			l.checkWorkerConfig(l.lookup(kindConfig, c.Name), "spec")
		}
	}
	for _, d := range l.cluster.Deployments {
		if c := d.Bootstrap; c != nil {
			l.checkWorkerConfig(l.lookup(kindConfigTemplate, c.Name), "spec.template.spec")
		}
	}
}

// isSet reports whether the manifest sets a field. Defaults do not count.
func (o *object) isSet(path string) bool {
	_, set := o.set[path]
	return set && o.valueAt(path) != nil
}

func (l *loader) checkBastion() {
	if l.cluster.Infra.Spec.Bastion.Enabled {
		return
	}
	for _, name := range []string{"instanceType", "ami", "allowedCIDRBlocks", "disableIngressRules"} {
		if path := "spec.bastion." + name; l.infra.isSet(path) {
			l.warn(l.infra.problem(path, "has no effect: there is no bastion", "set spec.bastion.enabled: true, or remove it"))
		}
	}
}

// checkPartition warns about a partition that does not have the region.
func (l *loader) checkPartition() {
	const path = "spec.partition"
	given, _ := l.infra.valueAt(path).(string)
	if is := PartitionOf(l.cluster.Region); given != "" && given != is {
		l.warn(l.infra.problem(path, fmt.Sprintf("the region %s is in the partition %s, not %s", l.cluster.Region, is, given), "remove it"))
	}
}

// checkDataSecret warns about user data if there is also a bootstrap configuration. Cluster API
// replaces dataSecretName by the name of the Secret that it creates from the configuration.
func (l *loader) checkDataSecret(o *object, path string) {
	if path += ".dataSecretName"; o.isSet(path) {
		l.warn(o.problem(path, "has no effect: configRef is set, too", "remove one of them"))
	}
}

// checkSubnetType warns about a type of subnets if the pool has no list of zones.
func (l *loader) checkSubnetType(o *object, zones []string) {
	const path = "spec.availabilityZoneSubnetType"
	if o.isSet(path) && len(zones) == 0 {
		l.warn(o.problem(path, "has no effect without availabilityZones", "set availabilityZones, or remove it"))
	}
}

// checkRemoteAccess warns about permissions for SSH if the nodes have no key.
func (l *loader) checkRemoteAccess(o *object, access *expinfrav1.ManagedRemoteAccess) {
	if access == nil || l.cluster.Infra == nil {
		return
	}
	if key := cmp.Or(access.SSHKeyName, l.cluster.Infra.Spec.SSHKeyName); key != nil && *key == "" {
		l.warn(o.problem("spec.remoteAccess", "has no effect: the nodes have no key for SSH", "set spec.remoteAccess.sshKeyName, or remove it"))
	}
}

// checkWorkerConfig warns about the parts of a worker's configuration that kubeadm join does
// not read.
func (l *loader) checkWorkerConfig(o *object, prefix string) {
	if o == nil {
		return
	}
	for _, name := range []string{"clusterConfiguration", "initConfiguration"} {
		path := prefix + "." + name
		if content, _ := o.valueAt(path).(map[string]any); len(content) > 0 {
			l.warn(
				o.problem(
					path,
					"has no effect on a worker: it is for the first machine of the control plane",
					"set spec.kubeadmConfigSpec."+name+" of the KubeadmControlPlane",
				),
			)
		}
	}
}
