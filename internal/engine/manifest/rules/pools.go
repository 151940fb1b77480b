package rules

import (
	"fmt"

	infrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/api/v1beta2"
	expinfrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/exp/api/v1beta2"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
)

// Limits of AWS for pools.
const (
	shortestTemplate, longestTemplate = 3, 128 // length of a launch template's name
	mostTaints                        = 50     // taints of a node group
)

// checkPools checks the MachinePools. Most rules for EKS need the control plane.
func (c *checks) checkPools() {
	if c.managed && c.cluster.EKS == nil {
		return
	}
	users, names := map[string]string{}, map[string]string{}
	for _, p := range c.cluster.Pools {
		o := c.lookup(manifest.KindPool, p.Object.Name)
		c.checkWorkerVersion(o, "spec.template.spec.version", p.Object.Spec.Template.Spec.Version)
		ref := p.Object.Spec.Template.Spec.InfrastructureRef
		if other := users[ref.Kind+"/"+ref.Name]; other != "" {
			c.fail(o.Problem("spec.template.spec.infrastructureRef.name", fmt.Sprintf("%s uses %s/%s already", other, ref.Kind, ref.Name), "create one for each pool"))
		}
		users[ref.Kind+"/"+ref.Name] = o.Title()
		if m := p.Managed; m != nil {
			group := c.lookup(manifest.KindManagedPool, m.Name)
			if other := names[m.Spec.EKSNodegroupName]; other != "" && other != group.Title() {
				c.fail(group.Problem("spec.eksNodegroupName", fmt.Sprintf("%s has the same name in EKS, %s", other, m.Spec.EKSNodegroupName), "set eksNodegroupName"))
			}
			names[m.Spec.EKSNodegroupName] = group.Title()
			c.checkNodeGroup(o, group, p)
		}
		if p.Scaling != nil {
			c.checkScaling(o, c.lookup(manifest.KindScalingPool, p.Scaling.Name), p)
		}
		if p.Managed != nil {
			group := c.lookup(manifest.KindManagedPool, p.Managed.Name)
			c.checkHooks(group, p.Hooks())
			c.checkRolePolicies(group, &p.Managed.Spec.RoleAdditionalPolicies, p.Managed.Spec.RolePermissionsBoundary)
		} else if p.Scaling != nil {
			c.checkHooks(c.lookup(manifest.KindScalingPool, p.Scaling.Name), p.Hooks())
		}
	}
}

// checkRange checks that the number of replicas is between minimum and maximum size,
// unless an autoscaler sets it.
func (c *checks) checkRange(o *manifest.Entry, p manifest.Pool, least, most *int32) {
	if _, delegated := p.Object.Annotations[clusterv1.ReplicasManagedByAnnotation]; delegated {
		return
	}
	n := int32(p.Replicas()) //nolint:gosec // converted from int32
	title := manifest.KindScalingPool
	if p.Managed != nil {
		title = manifest.KindManagedPool
	}
	switch {
	case least != nil && n < *least:
		c.fail(o.Problem("spec.replicas", fmt.Sprintf("%d is less than minSize of the %s, %d", n, title, *least), "change one of them"))
	case most != nil && n > *most:
		c.fail(o.Problem("spec.replicas", fmt.Sprintf("%d is more than maxSize of the %s, %d", n, title, *most), "change one of them"))
	}
}

// checkScaling checks an Auto Scaling group.
func (c *checks) checkScaling(o, group *manifest.Entry, p manifest.Pool) {
	spec := &p.Scaling.Spec
	t := &spec.AWSLaunchTemplate
	c.checkImage(o, "spec.template.spec.version", p.Object.Spec.Template.Spec.Version, t.AMI)
	c.checkRange(o, p, &spec.MinSize, &spec.MaxSize)
	c.checkTemplateName(group, p.Scaling.Name)
	machine := asPoolMachine(group.Name, t, spec.Ignition)
	c.checkMachineSpec(group, "spec.awsLaunchTemplate", machine.Spec)
	c.checkMixed(group, spec)
	if t.InstanceType == "" && (spec.MixedInstancesPolicy == nil || len(spec.MixedInstancesPolicy.Overrides) == 0) {
		c.fail(group.Problem("spec.awsLaunchTemplate.instanceType", "no instance type is set", "set it, or mixedInstancesPolicy.overrides"))
	}
	if config := p.Bootstrap.Kubeadm; config != nil {
		c.checkPoolIgnition(c.lookup(manifest.KindConfig, config.Name), config.Spec.Format, machine)
	}
	if c.managed {
		c.checkNodeImage(group, "spec.awsLaunchTemplate", machine.Spec, p.Bootstrap.EKS != nil, p.Bootstrap.Nodeadm != nil)
		if t.IamInstanceProfile == "" {
			c.warn(
				group.Problem(
					"spec.awsLaunchTemplate.iamInstanceProfile",
					"without an instance profile the machines cannot join: they have no AWS credentials for EKS",
					"set it, for example to nodes.cluster-api-provider-aws.sigs.k8s.io",
				),
			)
		}
	}
}

// checkMixed checks which machines of a group are spot instances: InstancesDistribution in the API
// reference of Amazon EC2 Auto Scaling.
func (c *checks) checkMixed(group *manifest.Entry, spec *expinfrav1.AWSMachinePoolSpec) {
	if spec.MixedInstancesPolicy == nil {
		return
	}
	const path, whole, mostTypes = "spec.mixedInstancesPolicy.instancesDistribution", 100, 40
	for i, x := range spec.MixedInstancesPolicy.Overrides {
		c.checkType(group, fmt.Sprintf("spec.mixedInstancesPolicy.overrides[%d].instanceType", i), x.InstanceType)
	}
	if n := len(spec.MixedInstancesPolicy.Overrides); n > mostTypes { // LaunchTemplateOverrides, the same API reference
		c.fail(group.Problem(
			"spec.mixedInstancesPolicy.overrides",
			fmt.Sprintf("a group has at most %d instance types, this one has %d", mostTypes, n),
			"remove some",
		))
	}
	if spec.AWSLaunchTemplate.MarketType == infrav1.MarketTypeSpot {
		c.fail(
			group.Problem(
				"spec.awsLaunchTemplate.marketType",
				"a launch template for spot instances cannot be used with mixedInstancesPolicy, which sets the number of spot instances",
				"remove it",
			),
		)
	}
	if spec.AWSLaunchTemplate.MarketType == infrav1.MarketTypeCapacityBlock { // the launch template has InstanceMarketOptions, too
		c.fail(group.Problem(
			"spec.awsLaunchTemplate.marketType",
			"a launch template for a Capacity Block cannot be used with mixedInstancesPolicy: the block has one instance type",
			"remove mixedInstancesPolicy",
		))
	}
	d := spec.MixedInstancesPolicy.InstancesDistribution
	if d == nil {
		return
	}
	if n := d.OnDemandBaseCapacity; n != nil && *n < 0 {
		c.fail(group.Problem(path+".onDemandBaseCapacity", "must not be negative", "use 0 or more"))
	}
	if n := d.OnDemandPercentageAboveBaseCapacity; n != nil && (*n < 0 || *n > whole) {
		c.fail(group.Problem(path+".onDemandPercentageAboveBaseCapacity", fmt.Sprintf("%d is not a percentage", *n), "use 0 to 100"))
	}
}

// checkPoolIgnition is checkIgnition for a pool. The user data contains all Ignition data
// unless a bucket is set.
func (c *checks) checkPoolIgnition(config *manifest.Entry, format bootstrapv1.Format, machine *infrav1.AWSMachine) {
	if machine.Spec.Ignition == nil {
		machine.Spec.Ignition = &infrav1.Ignition{StorageType: infrav1.IgnitionStorageTypeOptionUnencryptedUserData}
		if format != bootstrapv1.Ignition {
			c.checkImageFormat(config, "spec.format", format, &machine.Spec)
			return
		}
	}
	c.checkIgnition(config, "spec.format", format, machine)
}

// checkTemplateName checks the name of a launch template.
func (c *checks) checkTemplateName(o *manifest.Entry, name string) {
	if n := len(name); n < shortestTemplate || n > longestTemplate {
		c.fail(
			o.Problem(
				"metadata.name",
				fmt.Sprintf("the name of its launch template, %s, must have %d to %d characters", name, shortestTemplate, longestTemplate),
				"choose another name",
			),
		)
	}
}

// asPoolMachine returns a machine of an AWSMachinePool, with the fields that rules for
// machines check.
func asPoolMachine(name string, t *expinfrav1.AWSLaunchTemplate, ignition *infrav1.Ignition) *infrav1.AWSMachine {
	m := &infrav1.AWSMachine{Spec: infrav1.AWSMachineSpec{
		AMI: t.AMI, ImageLookupOrg: t.ImageLookupOrg, ImageLookupFormat: t.ImageLookupFormat, ImageLookupBaseOS: t.ImageLookupBaseOS,
		Ignition: ignition, InstanceMetadataOptions: t.InstanceMetadataOptions, InstanceType: t.InstanceType,
		RootVolume: t.RootVolume, NonRootVolumes: t.NonRootVolumes, AdditionalSecurityGroups: t.AdditionalSecurityGroups,
		SpotMarketOptions: t.SpotMarketOptions, CapacityReservationID: t.CapacityReservationID, PrivateDNSName: t.PrivateDNSName,
	}}
	m.Name = name
	return m
}
