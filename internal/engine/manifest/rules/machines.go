package rules

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	infrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/api/v1beta2"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest/hooks"
	"github.com/clusterawsadm/clusterawsadm/internal/regex"
)

// mostMachineGroups is the quota of security groups of a network interface, L-2AFB9258. AWS raises it
// to 16 ("Amazon VPC quotas").
const mostMachineGroups = 16

// checkHardware checks what EC2 requires of a machine: its disks, price, groups and IDs.
func (c *checks) checkHardware(o *manifest.Entry, path string, spec *infrav1.AWSMachineSpec) {
	c.checkDisks(o, path, spec)
	c.checkDedicated(o, path, spec)
	c.checkPrice(o, path+".spotMarketOptions.maxPrice", spec.SpotMarketOptions)
	for i, g := range spec.AdditionalSecurityGroups {
		if g.ID != nil {
			c.checkID(o, fmt.Sprintf("%s.additionalSecurityGroups[%d].id", path, i), *g.ID, "sg", "a security group")
		}
	}
	if n := len(spec.AdditionalSecurityGroups); n > mostMachineGroups {
		c.fail(
			o.Problem(
				path+".additionalSecurityGroups",
				fmt.Sprintf("%d groups: a network interface has at most %d, with those of the cluster", n, mostMachineGroups),
				"remove some",
			),
		)
	}
	for i, id := range spec.NetworkInterfaces {
		c.checkID(o, fmt.Sprintf("%s.networkInterfaces[%d]", path, i), id, "eni", "a network interface")
	}
	for _, x := range []struct {
		field, prefix, what string
		id                  *string
	}{
		{"capacityReservationId", "cr", "a capacity reservation", spec.CapacityReservationID},
		{"hostID", "h", "a Dedicated Host", spec.HostID},
		{"ami.id", "ami", "an image", spec.AMI.ID},
	} {
		if x.id != nil && *x.id != "" {
			c.checkID(o, path+"."+x.field, *x.id, x.prefix, x.what)
		}
	}
	c.checkIAMName(o, path+".iamInstanceProfile", spec.IAMInstanceProfile, "an instance profile")
	if s := spec.Subnet; s != nil && s.ID == nil && len(s.Filters) == 0 {
		c.fail(o.Problem(path+".subnet", "names no subnet", "set id or filters, or remove it"))
	}
	c.warnOfHardware(o, path, spec)
	for _, role := range slices.Sorted(maps.Keys(spec.SecurityGroupOverrides)) {
		c.checkID(o, path+".securityGroupOverrides."+string(role), spec.SecurityGroupOverrides[role], "sg", "a security group")
	}
	c.checkMachineTags(o, path, spec.AdditionalTags)
	if c.cluster.Infra.Spec.NetworkSpec.VPC.ID == "" && !c.cluster.Infra.Spec.NetworkSpec.VPC.IsIPv6Enabled() {
		c.checkWithoutIPv6(o, path, spec)
	}
}

// warnOfHardware warns of fields without an effect.
func (c *checks) warnOfHardware(o *manifest.Entry, path string, spec *infrav1.AWSMachineSpec) {
	c.warnOverrides(o, path+".securityGroupOverrides", spec.SecurityGroupOverrides)
	if c.cluster.EKS == nil && spec.AMI.EKSOptimizedLookupType != nil {
		c.warn(o.Problem(path+".ami.eksLookupType", "has no effect: the images of EKS are for its nodes", "remove it"))
	}
}

// checkType refuses instance types that launch no image of Linux with hardware virtualization, which all images of Kubernetes have ("Linux AMI
// virtualization types" in the EC2 user guide: of the previous generation, only C3 and M3 have both).
func (c *checks) checkType(o *manifest.Entry, path, name string) {
	family, _, _ := strings.Cut(name, ".")
	if slices.Contains([]string{"c1", "m1", "m2", "t1"}, family) {
		c.fail(
			o.Problem(path, name+" launches no image with hardware virtualization (HVM), which all images of Kubernetes have", "use another type, such as t3.large"),
		)
	}
}

// neverDedicated are the families of burstable instances that cannot be Dedicated Instances ("Supported purchasing options for T
// instances" in "Burstable performance instances", EC2 user guide).
func neverDedicated() []string { return []string{"t2", "t3a", "t4g"} }

// checkDedicated checks what a machine on a Dedicated Host cannot have ("Dedicated Hosts restrictions" and "Placement groups", rules
// and limitations, in the EC2 user guide).
func (c *checks) checkDedicated(o *manifest.Entry, path string, spec *infrav1.AWSMachineSpec) {
	family, _, _ := strings.Cut(spec.InstanceType, ".")
	if spec.Tenancy == "dedicated" && slices.Contains(neverDedicated(), family) {
		c.fail(o.Problem(path+".tenancy", family+" instances cannot be Dedicated Instances", "remove it, or use another type, such as t3 or m6i"))
	}
	if spec.Tenancy != "host" {
		return
	}
	if spec.SpotMarketOptions != nil || spec.MarketType == infrav1.MarketTypeSpot {
		c.fail(o.Problem(path+".tenancy", "spot instances do not run on Dedicated Hosts", "remove it, or spotMarketOptions and marketType"))
	}
	if spec.PlacementGroupName != "" {
		c.fail(o.Problem(path+".placementGroupName", "Dedicated Hosts are not in placement groups", "remove it, or tenancy: host"))
	}
}

// checkWithoutIPv6 refuses settings for IPv6 in a VPC that has none: RunInstances would.
func (c *checks) checkWithoutIPv6(o *manifest.Entry, path string, spec *infrav1.AWSMachineSpec) {
	const what, fix = "the subnets have no IPv6 addresses", "remove it, or set spec.network.vpc.ipv6: {}"
	if spec.AssignPrimaryIPv6 != nil && *spec.AssignPrimaryIPv6 == infrav1.PrimaryIPv6AssignmentStateEnabled {
		c.fail(o.Problem(path+".assignPrimaryIPv6", what, fix))
	}
	if n := spec.PrivateDNSName; n != nil && n.EnableResourceNameDNSAAAARecord != nil && *n.EnableResourceNameDNSAAAARecord {
		c.fail(o.Problem(path+".privateDnsName.enableResourceNameDnsAAAARecord", what, fix))
	}
}

// checkPrice checks the most that a spot instance may cost by the hour: SpotMarketOptions in the EC2
// API reference.
func (c *checks) checkPrice(o *manifest.Entry, path string, spot *infrav1.SpotMarketOptions) {
	if spot == nil || spot.MaxPrice == nil || *spot.MaxPrice == "" {
		return
	}
	price, err := strconv.ParseFloat(*spot.MaxPrice, 64)
	if err != nil || price <= 0 || !regex.Of(`^[0-9.]+$`).MatchString(*spot.MaxPrice) {
		c.fail(
			o.Problem(
				path,
				fmt.Sprintf("%q is not a price in US dollars", *spot.MaxPrice),
				`write a number such as "0.05", or remove it: the limit is then the price on demand`,
			),
		)
	}
}

// disk has the limits of a type of volumes: "Amazon EBS volume types" in the EBS user guide.
type disk struct {
	least, most         int64 // GiB
	leastIOPS, mostIOPS int64 // 0: not settable
	perGiB              int64 // IOPS for each GiB
	mostThroughput      int64 // MiB/s; 0: not settable
	notRoot             bool
}

func disks() map[infrav1.VolumeType]disk {
	const tebibyte = 1024
	return map[infrav1.VolumeType]disk{
		"gp2":      {least: 1, most: 16 * tebibyte},
		"gp3":      {least: 1, most: 64 * tebibyte, leastIOPS: 3000, mostIOPS: 80_000, perGiB: 500, mostThroughput: 2000},
		"io1":      {least: 4, most: 16 * tebibyte, leastIOPS: 100, mostIOPS: 64_000, perGiB: 50},
		"io2":      {least: 4, most: 64 * tebibyte, leastIOPS: 100, mostIOPS: 256_000, perGiB: 1000},
		"st1":      {least: 125, most: 16 * tebibyte, notRoot: true},
		"sc1":      {least: 125, most: 16 * tebibyte, notRoot: true},
		"standard": {least: 1, most: tebibyte},
	}
}

// checkDisks checks the volumes of a machine, and the names of their devices.
func (c *checks) checkDisks(o *manifest.Entry, path string, spec *infrav1.AWSMachineSpec) {
	if spec.RootVolume != nil {
		c.checkDisk(o, path+".rootVolume", spec.RootVolume, true)
		if spec.RootVolume.DeviceName != "" {
			c.warn(o.Problem(path+".rootVolume.deviceName", "is ignored: the root volume has the device of the image, as in CAPA", "remove it"))
		}
	}
	names := map[string]int{}
	for i := range spec.NonRootVolumes {
		v, at := &spec.NonRootVolumes[i], fmt.Sprintf("%s.nonRootVolumes[%d]", path, i)
		c.checkDisk(o, at, v, false)
		name := strings.TrimPrefix(v.DeviceName, "/dev/")
		first, twice := names[name]
		switch {
		case v.DeviceName == "": // reported already
		case !regex.Of(`^(/dev/)?(sd[a-z]([1-9]|1[0-5])?|xvd[a-d]?[a-z])$`).MatchString(v.DeviceName): // "Device names for volumes", EC2 user guide
			c.fail(o.Problem(at+".deviceName", fmt.Sprintf("%q is not the name of a device in EC2", v.DeviceName), "use /dev/sdf to /dev/sdp"))
		case twice && spec.NonRootVolumes[first].DeviceName != v.DeviceName: // otherwise reported already
			c.fail(
				o.Problem(
					at+".deviceName",
					fmt.Sprintf("nonRootVolumes[%d] has the same device, %s", first, spec.NonRootVolumes[first].DeviceName),
					"use another, such as /dev/sdg",
				),
			)
		default:
			names[name] = i
		}
	}
}

func (c *checks) checkDisk(o *manifest.Entry, path string, v *infrav1.Volume, root bool) {
	kind := v.Type
	if kind == "" {
		kind = "gp2" // the default of EC2
	}
	c.checkKey(o, path+".encryptionKey", v.EncryptionKey)
	d, known := disks()[kind]
	switch {
	case !known:
		c.fail(o.Problem(path+".type", fmt.Sprintf("EC2 has no volumes of the type %q", v.Type), "use gp3, io2, io1, gp2, st1, sc1 or standard"))
		return
	case root && d.notRoot:
		c.fail(o.Problem(path+".type", fmt.Sprintf("a machine cannot start from a volume of the type %s", kind), "use gp3"))
		return
	case v.Size < d.least || v.Size > d.most:
		c.fail(o.Problem(path+".size", fmt.Sprintf("%d GiB: a volume of the type %s has %d to %d", v.Size, kind, d.least, d.most), "change the size or the type"))
		return
	case v.EncryptionKey != "" && (v.Encrypted == nil || !*v.Encrypted):
		c.fail(o.Problem(path+".encryptionKey", "AWS permits a key only for encrypted volumes", "set encrypted: true"))
	}
	c.checkIOPS(o, path+".iops", v, kind, d)
	c.checkThroughput(o, path+".throughput", v, kind, d)
}

func (c *checks) checkIOPS(o *manifest.Entry, path string, v *infrav1.Volume, kind infrav1.VolumeType, d disk) {
	most := max(d.leastIOPS, v.Size*d.perGiB)
	switch {
	case v.IOPS == 0:
	case d.mostIOPS == 0:
		c.fail(o.Problem(path, fmt.Sprintf("AWS permits no number of IOPS for volumes of the type %s", kind), "set type: gp3, or remove it"))
	case v.IOPS < d.leastIOPS || v.IOPS > d.mostIOPS:
		c.fail(o.Problem(path, fmt.Sprintf("%d: a volume of the type %s has %d to %d IOPS", v.IOPS, kind, d.leastIOPS, d.mostIOPS), "change the number"))
	case v.IOPS > most:
		c.fail(
			o.Problem(
				path,
				fmt.Sprintf("%d: a volume of the type %s has at most %d IOPS for each GiB, so %d for %d GiB", v.IOPS, kind, d.perGiB, most, v.Size),
				"set less, or a larger size",
			),
		)
	}
}

// checkThroughput checks the throughput of volumes that have a settable one; of others, webhooks tell.
func (c *checks) checkThroughput(o *manifest.Entry, path string, v *infrav1.Volume, kind infrav1.VolumeType, d disk) {
	if v.Throughput == nil || *v.Throughput == 0 || d.mostThroughput == 0 {
		return
	}
	n, iops := *v.Throughput, max(v.IOPS, d.leastIOPS)
	const iopsPerUnit = 4 // 0.25 MiB/s for each of the IOPS
	switch {
	case n < hooks.LeastThroughput || n > d.mostThroughput:
		c.fail(o.Problem(path, fmt.Sprintf("%d: a volume of the type %s has %d to %d MiB/s", n, kind, hooks.LeastThroughput, d.mostThroughput), "change the number"))
	case n*iopsPerUnit > iops:
		c.fail(o.Problem(path, fmt.Sprintf("%d: AWS permits 0.25 MiB/s for each of the %d IOPS, so %d", n, iops, iops/iopsPerUnit), "set less, or more iops"))
	}
}
