package rules

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"
	infrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/api/v1beta2"
	expinfrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/exp/api/v1beta2"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
)

// checkNodeGroup checks a node group of EKS.
func (c *checks) checkNodeGroup(o, group *manifest.Entry, p manifest.Pool) {
	spec := &p.Managed.Spec
	c.checkEKSName(group, "spec.eksNodegroupName", spec.EKSNodegroupName, longestGroup)
	c.checkRoleName(group, spec.RoleName)
	c.warnNoEffectOnRole(group, spec.RolePath, spec.RolePermissionsBoundary, len(spec.RoleAdditionalPolicies))
	if s := spec.Scaling; s != nil {
		c.checkRange(o, p, s.MinSize, s.MaxSize)
	}
	c.checkLabels(group, spec.Labels)
	c.checkTaints(group, spec.Taints)
	c.checkRemoteGroups(group, spec.RemoteAccess)
	own := OwnImage(p.Managed)
	if version, without := c.withoutAL2(); without && !own && spec.AMIType != nil && strings.HasPrefix(string(*spec.AMIType), "AL2_") {
		c.fail(
			group.Problem(
				"spec.amiType",
				fmt.Sprintf("EKS has no Amazon Linux 2 AMIs (%s) for %s", *spec.AMIType, version),
				fmt.Sprintf("set amiType, for example to %s", successorOf(spec)),
			),
		)
	}
	if spec.AMIVersion != nil && !own && !ForeignImage(p.Managed) {
		c.checkImageVersion(group, spec, c.versionOf(p.Object.Spec.Template.Spec.Version))
	}
	c.checkTypes(group, p)
	c.checkNodeDisk(group, spec)
	c.checkWindows(group, spec)
	if d := spec.DiskSize; d != nil && (*d < 1 || *d > largestGroupDisk) {
		c.fail(group.Problem("spec.diskSize", fmt.Sprintf("%d GiB: a volume of the type gp3 has 1 to %d", *d, largestGroupDisk), "use another size, or remove it"))
	}
	if ForeignImage(p.Managed) {
		c.checkForeignImage(o, group, p)
	}
	if spec.AWSLaunchTemplate != nil {
		c.checkGroupTemplate(group, spec)
		c.checkGroupImage(o, group, p)
	}
}

// successorOf returns the AMI type of Amazon Linux 2023 that takes the place of one of Amazon Linux 2. Without an AMI type
// in the manifest, the default is that of x86_64, also for instance types of another architecture.
func successorOf(spec *expinfrav1.AWSManagedMachinePoolSpec) expinfrav1.ManagedMachineAMIType {
	switch {
	case *spec.AMIType == expinfrav1.Al2x86_64GPU:
		return expinfrav1.Al2023x86_64Nvidia
	case *spec.AMIType == expinfrav1.Al2Arm64, manifest.ArchitectureOf(manifest.Deref(spec.InstanceType)) == "arm64":
		return expinfrav1.Al2023Arm64
	}
	return expinfrav1.Al2023x86_64
}

func (c *checks) checkRemoteGroups(group *manifest.Entry, access *expinfrav1.ManagedRemoteAccess) {
	if access == nil {
		return
	}
	for i, id := range access.SourceSecurityGroups {
		c.checkID(group, fmt.Sprintf("spec.remoteAccess.sourceSecurityGroups[%d]", i), id, "sg", "a security group")
	}
}

// checkNodeDisk compares the size of the root volume with that of the image: EKS creates no node group with a smaller one. The
// images of Amazon Linux 2023 have 20 GiB, those of Windows 50 (diskSize of CreateNodegroup in the EKS API reference; "expect size
// >= 20GB", https://github.com/cilium/cilium/pull/43051). Those of Amazon Linux 2 declare 20, but their snapshots have 4, or at least 10 with
// the drivers of an accelerator: https://github.com/awslabs/amazon-eks-ami/issues/1142 and its doc/usage/al2.md until 2026. EKS compares
// diskSize with the snapshot, and CAPA compares the size in a launch template with what the image declares. Bottlerocket uses the size for
// another volume.
func (c *checks) checkNodeDisk(group *manifest.Entry, spec *expinfrav1.AWSManagedMachinePoolSpec) {
	const linux, linux2, drivers, windows = 20, 4, 10, 50
	kind, least := "", int64(linux)
	if spec.AMIType != nil {
		kind = string(*spec.AMIType)
	}
	switch {
	case isWindows(spec):
		least = windows
	case strings.HasPrefix(kind, "BOTTLEROCKET") || kind == string(expinfrav1.Custom):
		return
	}
	path, size, sure := "spec.diskSize", int64(0), least
	if spec.DiskSize != nil {
		size = int64(*spec.DiskSize)
	}
	if t := spec.AWSLaunchTemplate; t != nil {
		if t.AMI.ID != nil || t.RootVolume == nil {
			return
		}
		path, size = "spec.awsLaunchTemplate.rootVolume.size", t.RootVolume.Size
	} else {
		switch kind {
		case string(expinfrav1.Al2x86_64), string(expinfrav1.Al2Arm64):
			least, sure = linux2, linux2
		case string(expinfrav1.Al2x86_64GPU):
			sure = drivers
		}
	}
	switch {
	case size <= 0:
	case size < sure:
		c.fail(group.Problem(path, fmt.Sprintf("%d GiB: the image of the nodes has %d", size, sure), fmt.Sprintf("use %d or more, or remove it", least)))
	case size < least:
		c.warn(group.Problem(path,
			fmt.Sprintf("%d GiB: the image of the nodes may have up to %d, and EKS creates no node group then", size, least),
			fmt.Sprintf("use %d or more", least),
		))
	}
}

// largestGroupDisk is the size of the largest volume of the type gp3 in GiB ("Amazon EBS volume types", EBS user guide).
const largestGroupDisk = 65536

// checkImageVersion checks the version of an AMI that EKS publishes. It has the form that its distribution uses, and
// contains the version of Kubernetes ("Retrieve Amazon Linux AMI version information", "… Bottlerocket …" and
// "… Windows AMI version information" in the EKS user guide).
func (c *checks) checkImageVersion(group *manifest.Entry, spec *expinfrav1.AWSManagedMachinePoolSpec, v kubernetesVersion) {
	form, example := `^1\.(\d+)\.\d+-\d{8}$`, "1.34.1-20250915"
	kind := ""
	if spec.AMIType != nil {
		kind = string(*spec.AMIType)
	}
	switch {
	case strings.HasPrefix(kind, "BOTTLEROCKET"):
		form, example = `^\d+\.\d+\.\d+-[0-9a-f]{8}$`, "1.46.0-dc1e9cc1"
	case isWindows(spec):
		form, example = `^1\.(\d+)-\d{4}\.\d{2}\.\d{2}$`, "1.34-2025.09.13"
	}
	found := regexp.MustCompile(form).FindStringSubmatch(*spec.AMIVersion)
	switch date := releaseDate(*spec.AMIVersion); {
	case len(found) > 1 && (date == nil || date.Year() < firstEKS):
		c.fail(group.Problem(
			"spec.amiVersion",
			fmt.Sprintf("%s has no date on which EKS can have published it", *spec.AMIVersion),
			"correct the date at its end, or remove it",
		))
	case found == nil:
		c.fail(
			group.Problem("spec.amiVersion", fmt.Sprintf("%q is not the version of an AMI of EKS", *spec.AMIVersion), "write one such as "+example+", or remove it"),
		)
	case len(found) > 1 && v.minor > 0 && found[1] != fmt.Sprint(v.minor):
		c.fail(
			group.Problem(
				"spec.amiVersion",
				fmt.Sprintf("%s is for Kubernetes 1.%s, and the nodes have %s", *spec.AMIVersion, found[1], v.text),
				fmt.Sprintf("use a version that begins with 1.%d, or remove it", v.minor),
			),
		)
	}
}

// checkTypes checks how many instance types EKS chooses between (instanceTypes of CreateNodegroup, EKS API reference).
func (c *checks) checkTypes(group *manifest.Entry, p manifest.Pool) {
	c.checkType(group, "spec.instanceType", manifest.Deref(p.Managed.Spec.InstanceType))
	const most = 20
	if n := len(p.InstanceTypes); n > most {
		c.fail(group.AnnotationProblem(
			manifest.AnnotationInstanceTypes,
			fmt.Sprintf("a node group has at most %d instance types, this one has %d", most, n),
			"remove some",
		))
	}
}

// firstEKS is the year in which EKS began ("Document history", EKS user guide).
const firstEKS = 2018

// releaseDate returns the date at the end of a version of an AMI; nil if it is none.
func releaseDate(version string) *time.Time {
	_, text, _ := strings.Cut(version, "-")
	d, err := time.Parse("20060102", strings.ReplaceAll(text, ".", ""))
	if err != nil {
		return nil
	}
	return &d
}

// OwnImage reports whether the nodes of a node group use an AMI of its launch template: a
// given one, or for the AMI type CUSTOM one that is looked up.
func OwnImage(m *expinfrav1.AWSManagedMachinePool) bool {
	t := m.Spec.AWSLaunchTemplate
	return t != nil && (t.AMI.ID != nil || m.Spec.AMIType != nil && *m.Spec.AMIType == expinfrav1.Custom)
}

// ForeignImage reports whether the nodes of a node group use an AMI of a launch template that
// another tool has made.
func ForeignImage(m *expinfrav1.AWSManagedMachinePool) bool {
	return m.Spec.AWSLaunchTemplate == nil && m.Spec.AMIType != nil && *m.Spec.AMIType == expinfrav1.Custom
}

// checkForeignImage checks a node group whose AMI is in a launch template of another tool: EKS
// does not change its version.
func (c *checks) checkForeignImage(o, group *manifest.Entry, p manifest.Pool) {
	if p.Managed.Spec.AMIVersion != nil {
		c.fail(group.Problem("spec.amiVersion", "the launch template has a custom AMI, which has no version in EKS", "remove it"))
	}
	if p.Object.Spec.Template.Spec.Version != "" {
		c.warn(
			o.Problem(
				"spec.template.spec.version",
				"has no effect: the AMI is in a launch template of another tool, which decides the version",
				"remove it, or set awsLaunchTemplate.ami.id",
			),
		)
	}
}

// checkGroupImage compares the AMI with the bootstrap configuration. For its own AMIs,
// EKS adds user data in MIME multi-part format.
func (c *checks) checkGroupImage(o, group *manifest.Entry, p manifest.Pool) {
	const config = "spec.template.spec.bootstrap"
	spec := &p.Managed.Spec
	machine := asPoolMachine(group.Name, spec.AWSLaunchTemplate, nil).Spec
	if OwnImage(p.Managed) {
		c.checkNodeImage(group, "spec.awsLaunchTemplate", machine, p.Bootstrap.EKS != nil, p.Bootstrap.Nodeadm != nil)
		if secret := p.Object.Spec.Template.Spec.Bootstrap.DataSecretName; p.Bootstrap == (manifest.Bootstrap{}) && (secret == nil || *secret == "") {
			c.warn(
				o.Problem(config, "for custom AMIs EKS adds no user data, and none is set: the node joins only if the AMI does that by itself", "use a NodeadmConfig"),
			)
		}
		return
	}
	if machine.AMI.EKSOptimizedLookupType != nil || machine.ImageLookupFormat+machine.ImageLookupOrg+machine.ImageLookupBaseOS != "" {
		c.fail(
			group.Problem(
				"spec.awsLaunchTemplate",
				"EKS selects the AMI by amiType; no AMI is looked up",
				"remove ami.eksLookupType and imageLookup*, or set amiType: CUSTOM",
			),
		)
	}
	switch {
	case p.Bootstrap.EKS != nil:
		c.fail(
			o.Problem(
				config+".configRef",
				"for its own AMIs, EKS does not accept the script of an EKSConfig",
				"use a NodeadmConfig, or a custom AMI (awsLaunchTemplate.ami.id)",
			),
		)
	case p.Bootstrap.Nodeadm != nil && spec.AMIType != nil && !strings.HasPrefix(string(*spec.AMIType), "AL2023_"):
		c.fail(group.Problem("spec.amiType", fmt.Sprintf("AMIs of the type %s have no nodeadm", *spec.AMIType), "set it, for example to AL2023_x86_64_STANDARD"))
	}
}

// checkGroupTemplate rejects settings of a launch template that EKS does not accept for a
// node group.
func (c *checks) checkGroupTemplate(group *manifest.Entry, spec *expinfrav1.AWSManagedMachinePoolSpec) {
	const path = "spec.awsLaunchTemplate"
	t := spec.AWSLaunchTemplate
	c.checkTemplateName(group, c.cluster.EKS.ControlPlane.Name+"-"+group.Name)
	c.checkMachineSpec(group, path, asPoolMachine(group.Name, t, nil).Spec)
	if t.IamInstanceProfile != "" {
		c.fail(group.Problem(path+".iamInstanceProfile", "EKS creates the instance profile of a node group", "remove it, and set roleName"))
	}
	if t.SpotMarketOptions != nil || t.MarketType == infrav1.MarketTypeSpot {
		c.fail(group.Problem(path+".spotMarketOptions", "EKS does not accept launch templates with spot instances", "set capacityType: spot"))
	}
	if t.MarketType == infrav1.MarketTypeCapacityBlock {
		c.checkBlock(group, spec)
	} else if manifest.Deref(t.CapacityReservationID) != "" && spec.CapacityType != nil && *spec.CapacityType == expinfrav1.ManagedMachinePoolCapacityTypeSpot {
		c.fail(group.Problem(path+".capacityReservationId", spotReserved, "remove it, or capacityType: spot"))
	}
	c.checkRootDevice(group, spec)
	if spec.RemoteAccess != nil {
		c.fail(
			group.Problem(
				"spec.remoteAccess",
				"EKS does not accept remoteAccess together with a launch template",
				"use sshKeyName and additionalSecurityGroups of awsLaunchTemplate",
			),
		)
	}
	if spec.AMIVersion != nil && (t.AMI.ID != nil || spec.AMIType != nil && *spec.AMIType == expinfrav1.Custom) {
		c.fail(group.Problem("spec.amiVersion", "the launch template has a custom AMI, which has no version in EKS", "remove it"))
	}
}

// checkBlock checks the settings of a node group in a Capacity Block ("Create a managed node group with Capacity Blocks for ML",
// EKS user guide).
func (c *checks) checkBlock(group *manifest.Entry, spec *expinfrav1.AWSManagedMachinePoolSpec) {
	const path = "spec.awsLaunchTemplate"
	_, several := group.Annotation(manifest.AnnotationInstanceTypes)
	switch t := spec.AWSLaunchTemplate; {
	case spec.CapacityType != nil && *spec.CapacityType == expinfrav1.ManagedMachinePoolCapacityTypeSpot:
		c.fail(group.Problem("spec.capacityType", "spot instances cannot be in a Capacity Block", "remove it, or awsLaunchTemplate.marketType"))
	case t.CapacityReservationID == nil || *t.CapacityReservationID == "":
		c.fail(group.Problem(path+".capacityReservationId", "is missing: a Capacity Block has an ID", "set it, or remove marketType"))
	case t.InstanceType == "" || spec.InstanceType != nil || several:
		c.fail(group.Problem(path+".instanceType", "EKS takes the instance type of a Capacity Block from the launch template only", "set it here, and nowhere else"))
	}
}

// spotReserved is the error for a spot node group with a capacity reservation. Capacity reservations are for On-Demand Instances
// (LaunchTemplateCapacityReservationSpecification in the EC2 API reference). CAPA refuses the same for machines (webhooks/awsmachine_webhook.go).
const spotReserved = "spot instances do not run in a capacity reservation: it is for On-Demand Instances"

// checkRootDevice checks that nonRootVolumes does not use the device name of the root volume. EC2 accepts each device name only once
// (BlockDeviceMapping in the EC2 API reference). The root device of an EKS image is /dev/xvda on Linux and /dev/sda1 on Windows. Bottlerocket
// images have a second volume, /dev/xvdb, which may be configured.
func (c *checks) checkRootDevice(group *manifest.Entry, spec *expinfrav1.AWSManagedMachinePoolSpec) {
	t, root := spec.AWSLaunchTemplate, "xvda"
	if t.AMI.ID != nil || spec.AMIType != nil && *spec.AMIType == expinfrav1.Custom {
		return // which is not known here
	}
	if isWindows(spec) {
		root = "sda1"
	}
	for i, v := range t.NonRootVolumes {
		at := fmt.Sprintf("spec.awsLaunchTemplate.nonRootVolumes[%d].deviceName", i)
		switch is := strings.TrimPrefix(v.DeviceName, "/dev/") == root; {
		case is && t.RootVolume != nil:
			c.fail(group.Problem(at, fmt.Sprintf("/dev/%s is the root volume of the image, which rootVolume sets", root), "use another, such as /dev/sdf"))
		case is:
			c.warn(group.Problem(
				at, fmt.Sprintf("/dev/%s is the root volume of the image: there would be no other", root), "use rootVolume, or another device, such as /dev/sdf",
			))
		}
	}
}

// isWindows reports whether the AMI type of a node group is a Windows one.
func isWindows(spec *expinfrav1.AWSManagedMachinePoolSpec) bool {
	return spec.AMIType != nil && strings.HasPrefix(string(*spec.AMIType), "WINDOWS")
}

// checkWindows checks a Windows node group. Windows nodes are not supported in IPv6 clusters, and CoreDNS needs a Linux node or Fargate
// ("Deploy Windows nodes on EKS clusters", EKS user guide).
func (c *checks) checkWindows(group *manifest.Entry, spec *expinfrav1.AWSManagedMachinePoolSpec) {
	if !isWindows(spec) {
		return
	}
	if c.cluster.Infra.Spec.NetworkSpec.VPC.IPv6 != nil {
		c.fail(group.Problem("spec.amiType", "nodes with Windows cannot be in an IPv6 cluster", "use Linux, or remove network.vpc.ipv6"))
	}
	linux := c.hasMachines() || len(c.cluster.EKS.Fargate) > 0 || c.cluster.EKS.HasAutoMode() || c.cluster.EKS.Karpenter != nil ||
		slices.ContainsFunc(c.cluster.Pools, func(p manifest.Pool) bool { return p.Managed == nil || !isWindows(&p.Managed.Spec) })
	if !linux {
		c.warn(group.Problem("spec.amiType", "all nodes have Windows, and CoreDNS runs on Linux only: pods would have no DNS", "add a node group with Linux"))
	}
}

// checkLabels rejects labels that EKS or the kubelet does not accept.
func (c *checks) checkLabels(group *manifest.Entry, labels map[string]string) {
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		path := "spec.labels." + key
		domain, _, prefixed := strings.Cut(key, "/")
		switch {
		case len(validation.IsQualifiedName(key)) > 0:
			c.fail(group.Problem(path, "is not a label: "+validation.IsQualifiedName(key)[0], "change the key"))
		case prefixed && isReserved(domain):
			c.fail(group.Problem(path, "nodes may not set their own labels with the prefix "+domain, "choose another prefix, or label the nodes with kubectl"))
		}
		if bad := validation.IsValidLabelValue(labels[key]); len(bad) > 0 {
			c.fail(group.Problem(path, fmt.Sprintf("%q is not the value of a label: %s", labels[key], bad[0]), "change the value"))
		}
	}
}

// isReserved reports whether nodes may not set labels of a domain. EKS rejects some of
// these labels; with others the kubelet does not start.
func isReserved(domain string) bool {
	for _, free := range []string{"node.kubernetes.io", "kubelet.kubernetes.io"} {
		if domain == free || strings.HasSuffix(domain, "."+free) {
			return false
		}
	}
	for _, reserved := range []string{"kubernetes.io", "k8s.io", "eks.amazonaws.com"} {
		if domain == reserved || strings.HasSuffix(domain, "."+reserved) {
			return true
		}
	}
	return false
}

func (c *checks) checkTaints(group *manifest.Entry, taints expinfrav1.Taints) {
	if len(taints) > mostTaints {
		c.fail(group.Problem("spec.taints", fmt.Sprintf("a node group has at most %d taints, this one has %d", mostTaints, len(taints)), "remove some"))
	}
	for i, t := range taints {
		path := fmt.Sprintf("spec.taints[%d]", i)
		if bad := validation.IsQualifiedName(t.Key); len(bad) > 0 {
			c.fail(group.Problem(path+".key", fmt.Sprintf("%q is not the key of a taint: %s", t.Key, bad[0]), "change the key"))
		}
		if bad := validation.IsValidLabelValue(t.Value); len(bad) > 0 {
			c.fail(group.Problem(path+".value", fmt.Sprintf("%q is not the value of a taint: %s", t.Value, bad[0]), "change the value"))
		}
	}
}
