package rules

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	infrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/api/v1beta2"
	expinfrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/exp/api/v1beta2"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/internal/suggest"
)

// checkWithoutEffect warns about fields that have no effect because of another field.
func (c *checks) checkWithoutEffect() {
	if c.cluster.Infra != nil {
		c.checkBastion()
		c.checkPartition()
	}
	for _, p := range c.cluster.Pools {
		if x := p.Scaling; x != nil {
			c.checkSubnetType(c.lookup(manifest.KindScalingPool, x.Name), x.Spec.AvailabilityZones)
			c.checkSuspended(c.lookup(manifest.KindScalingPool, x.Name), x.Spec.SuspendProcesses)
		}
		if x := p.Managed; x != nil {
			o := c.lookup(manifest.KindManagedPool, x.Name)
			c.checkSubnetType(o, x.Spec.AvailabilityZones)
			c.checkRemoteAccess(o, x.Spec.RemoteAccess)
		}
		if config := p.Bootstrap.Kubeadm; config != nil {
			c.checkWorkerConfig(c.lookup(manifest.KindConfig, config.Name), "spec")
		}
	}
	for _, m := range c.cluster.Machines {
		if config := m.Bootstrap; config != nil && !m.ControlPlane {
			c.checkWorkerConfig(c.lookup(manifest.KindConfig, config.Name), "spec")
		}
	}
	for _, d := range c.cluster.Deployments {
		if config := d.Bootstrap; config != nil {
			c.checkWorkerConfig(c.lookup(manifest.KindConfigTemplate, config.Name), "spec.template.spec")
		}
	}
}

func (c *checks) checkBastion() {
	if c.cluster.Infra.Spec.Bastion.Enabled {
		c.checkType(c.infra, "spec.bastion.instanceType", c.cluster.Infra.Spec.Bastion.InstanceType)
		return
	}
	for _, name := range []string{"instanceType", "ami", "allowedCIDRBlocks", "disableIngressRules"} {
		if path := "spec.bastion." + name; c.infra.IsSet(path) && !manifest.IsZero(c.infra.ValueAt(path)) {
			c.warn(c.infra.Problem(path, "has no effect: there is no bastion", "set spec.bastion.enabled: true, or remove it"))
		}
	}
}

// warnOverrides warns of security groups for roles that do not exist.
func (c *checks) warnOverrides(o *manifest.Entry, path string, groups map[infrav1.SecurityGroupRole]string) {
	roles := []string{
		string(infrav1.SecurityGroupBastion), string(infrav1.SecurityGroupNode), string(infrav1.SecurityGroupEKSNodeAdditional),
		string(infrav1.SecurityGroupControlPlane), string(infrav1.SecurityGroupAPIServerLB), string(infrav1.SecurityGroupLB),
	}
	for _, role := range slices.Sorted(maps.Keys(groups)) {
		if slices.Contains(roles, string(role)) {
			continue
		}
		fix := "use one of " + strings.Join(roles, ", ")
		if near := suggest.Nearest(string(role), roles); near != "" {
			fix = "did you mean " + near + "?"
		}
		c.warn(o.Problem(path+"."+string(role), "has no effect: no security group has this role", fix))
	}
}

// checkPartition warns about a partition that does not have the region.
func (c *checks) checkPartition() {
	const path = "spec.partition"
	given, _ := c.infra.ValueAt(path).(string)
	if is := manifest.PartitionOf(c.cluster.Region); given != "" && given != is {
		c.warn(c.infra.Problem(path, fmt.Sprintf("the region %s is in the partition %s, not %s", c.cluster.Region, is, given), "remove it"))
	}
}

// checkSuspended warns about suspended processes without which a group gets no machines ("Suspend and resume Amazon EC2 Auto Scaling
// processes", Auto Scaling user guide).
func (c *checks) checkSuspended(o *manifest.Entry, s *expinfrav1.SuspendProcessesTypes) {
	const path = "spec.suspendProcesses"
	if s == nil {
		return
	}
	const what, fix = "EC2 Auto Scaling launches no machines for the pool: it does not grow, and lost machines are not replaced", "remove it when the pool has to grow"
	set := func(process *bool) bool { return process != nil && *process }
	switch p := s.Processes; {
	case p != nil && set(p.Launch):
		c.warn(o.Problem(path+".processes.launch", what, fix))
	case s.All && (p == nil || p.Launch == nil):
		c.warn(o.Problem(path+".all", what, fix))
	}
}

// checkSubnetType warns about a type of subnets if the pool has no list of zones.
func (c *checks) checkSubnetType(o *manifest.Entry, zones []string) {
	const path = "spec.availabilityZoneSubnetType"
	if o.IsSet(path) && len(zones) == 0 {
		c.warn(o.Problem(path, "has no effect without availabilityZones", "set availabilityZones, or remove it"))
	}
}

// checkRemoteAccess warns about permissions for SSH if the nodes have no key.
func (c *checks) checkRemoteAccess(o *manifest.Entry, access *expinfrav1.ManagedRemoteAccess) {
	if access == nil || c.cluster.Infra == nil {
		return
	}
	if key := cmp.Or(access.SSHKeyName, c.cluster.Infra.Spec.SSHKeyName); key != nil && *key == "" {
		c.warn(o.Problem("spec.remoteAccess", "has no effect: the nodes have no key for SSH", "set spec.remoteAccess.sshKeyName, or remove it"))
	}
}

// checkWorkerConfig warns about the parts of a worker's configuration that kubeadm join does
// not read.
func (c *checks) checkWorkerConfig(o *manifest.Entry, prefix string) {
	if o == nil {
		return
	}
	for _, name := range []string{"clusterConfiguration", "initConfiguration"} {
		path := prefix + "." + name
		if content, _ := o.ValueAt(path).(map[string]any); len(content) > 0 {
			c.warn(
				o.Problem(
					path,
					"has no effect on a worker: it is for the first machine of the control plane",
					"set spec.kubeadmConfigSpec."+name+" of the KubeadmControlPlane",
				),
			)
		}
	}
}
