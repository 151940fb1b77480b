package loader

import "github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"

// Effect says what a run does if a field of a cluster that exists has changed.
type Effect string

// The effects of a changed field.
const (
	EffectReplace  Effect = "replace"  // machines are replaced
	EffectUpdate   Effect = "update"   // what exists is changed
	EffectScale    Effect = "scale"    // machines are launched or terminated
	EffectConflict Effect = "conflict" // refused: AWS or Kubernetes cannot change it
	EffectNone     Effect = "none"     // the field has no effect, depending on another one
)

// fieldEffect is what a run does with a field and with all fields below it. The longest path counts.
type fieldEffect struct {
	kinds  []string
	path   string // as in unsupportedField
	effect Effect
	text   string
}

// fieldEffects lists what changes of fields do. TestFieldEffects of internal/cli makes each change, and compares the plan.
func fieldEffects() []fieldEffect {
	const (
		workers     = "A change replaces the machines, within maxSurge and maxUnavailable of their MachineDeployment."
		plane       = "A change replaces the machines of the control plane, one at a time."
		fixed       = "AWS cannot change it: for a cluster that exists, a change is a conflict, and create is refused."
		fixedGroup  = "EKS cannot change it: for a node group that exists, a change is a conflict, and create is refused. Add a node group with another name."
		inPlace     = "A change is made in AWS without replacing anything."
		kubeadmNets = "kubeadm and the pod network cannot change it: for a cluster that exists, a change is a conflict, and create is refused."
		noBastion   = "It has no effect unless spec.bastion.enabled is true."
		noZones     = "It has no effect without availabilityZones."
		firstOnly   = "It has no effect on a worker: it is for the first machine of the control plane. A change still replaces the machines."
	)
	var (
		network  = []string{manifest.KindAWSCluster, manifest.KindManagedPlane}
		template = []string{manifest.KindAWSMachineTemplate}
		group    = []string{manifest.KindManagedPool}
		pools    = []string{manifest.KindScalingPool, manifest.KindManagedPool}
	)
	rows := []fieldEffect{
		{[]string{manifest.KindCluster}, "spec.clusterNetwork.pods", EffectConflict, kubeadmNets},
		{[]string{manifest.KindCluster}, "spec.clusterNetwork.services", EffectConflict, kubeadmNets},
		{[]string{manifest.KindCluster}, "spec.clusterNetwork.serviceDomain", EffectConflict, kubeadmNets},

		{network, "spec.network.vpc.cidrBlock", EffectConflict, fixed},
		{network, "spec.network.subnets[].cidrBlock", EffectConflict, fixed},
		{network, "spec.network.subnets[].availabilityZone", EffectConflict, fixed},
		{network, "spec.additionalTags", EffectUpdate, "A change is made on all resources of the cluster, without replacing anything."},
		{[]string{manifest.KindAWSCluster}, "spec.controlPlaneLoadBalancer.scheme", EffectConflict, fixed},
		{[]string{manifest.KindAWSCluster}, "spec.controlPlaneLoadBalancer.name", EffectConflict, fixed},

		{template, "spec.template.spec", EffectReplace, workers + " Those of a control plane are replaced one at a time."},
		{template, "spec.template.spec.additionalTags", EffectUpdate, "A change is made on the running machines."},
		{template, "spec.template.spec.additionalSecurityGroups", EffectUpdate, "A change is made on the running machines."},
		{template, "spec.template.spec.instanceMetadataOptions", EffectUpdate, "A change is made on the running machines."},

		{
			[]string{manifest.KindControlPlane},
			"spec.replicas",
			EffectScale,
			"A change launches or terminates machines of the control plane, one at a time, with their etcd members. The number is odd.",
		},
		{
			[]string{manifest.KindControlPlane},
			"spec.version",
			EffectReplace,
			plane + " It may be one minor version newer; the workers follow with their own fields. upgrade-plan shows which versions there are.",
		},
		{[]string{manifest.KindControlPlane}, "spec.kubeadmConfigSpec", EffectReplace, plane},
		{
			[]string{manifest.KindControlPlane},
			"spec.kubeadmConfigSpec.clusterConfiguration.dns",
			EffectUpdate,
			"A change is made in the cluster: CoreDNS gets the new image.",
		},
		{[]string{manifest.KindConfigTemplate}, "spec.template.spec", EffectReplace, workers},
		{[]string{manifest.KindDeployment}, "spec.replicas", EffectScale, "A change launches machines, or drains and terminates them."},
		{[]string{manifest.KindDeployment}, "spec.template.spec.version", EffectReplace, workers + " It is not newer than the control plane."},
		{[]string{manifest.KindDeployment}, "spec.template.spec.failureDomain", EffectReplace, workers},

		{
			[]string{manifest.KindManagedPlane},
			"spec.version",
			EffectUpdate,
			"EKS upgrades the control plane in place, by one minor version at a time. upgrade-plan shows which versions there are.",
		},
		{[]string{manifest.KindManagedPlane}, "spec.roleName", EffectConflict, fixed},
		{group, "spec.amiType", EffectConflict, fixedGroup},
		{group, "spec.capacityType", EffectConflict, fixedGroup},
		{group, "spec.diskSize", EffectConflict, fixedGroup},
		{group, "spec.instanceType", EffectConflict, fixedGroup},
		{group, "spec.scaling", EffectUpdate, inPlace},
		{group, "spec.labels", EffectUpdate, inPlace},
		{group, "spec.taints", EffectUpdate, inPlace},
		{
			[]string{manifest.KindFargateProfile},
			"spec.selectors",
			EffectConflict,
			"EKS cannot change it: a change is a conflict, and create is refused. Add a profile with another name.",
		},

		{pools, "spec.availabilityZoneSubnetType", EffectNone, noZones},
		{[]string{manifest.KindConfigTemplate}, "spec.template.spec.clusterConfiguration", EffectNone, firstOnly},
		{[]string{manifest.KindConfigTemplate}, "spec.template.spec.initConfiguration", EffectNone, firstOnly},
	}
	for _, name := range []string{"instanceType", "ami", "allowedCIDRBlocks", "disableIngressRules"} {
		rows = append(rows, fieldEffect{[]string{manifest.KindAWSCluster}, "spec.bastion." + name, EffectNone, noBastion})
	}
	return rows
}
