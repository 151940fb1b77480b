package rules

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/blang/semver/v4"
	infrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/api/v1beta2"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/internal/regions"
)

// MinorsBehind is by how many minor versions a kubelet may be older than the API server, by the
// version skew policy of Kubernetes.
const MinorsBehind = 3

const (
	oldestMinor             = 22                      // the oldest Kubernetes minor version that Cluster API supports
	apiPort                 = manifest.DefaultAPIPort // the port of the API server, and of every NLB
	longestLoadBalancerName = 32                      // a longer generated name is replaced by a hash

)

// checkWhole applies the rules that involve more than one object. CAPA and Cluster API
// would report these problems only while they create the cluster.
func (c *checks) checkWhole(cluster *manifest.Entry) {
	c.checkName(cluster)
	if c.cluster.Infra != nil {
		c.checkLoadBalancers(c.infra)
		c.checkNetwork(c.infra)
		c.checkVPCBlocks()
		c.checkIngressRules()
		c.checkBalancerRules()
		c.checkTagRules()
		c.checkBucket()
		if ami := c.cluster.Infra.Spec.Bastion.AMI; ami != "" {
			c.checkID(c.infra, "spec.bastion.ami", ami, "ami", "an image")
		}
		if !c.managed { // that of EKS has no effect, and CAPA writes it with https://
			c.checkHost(cluster, "spec.controlPlaneEndpoint.host", c.cluster.Object.Spec.ControlPlaneEndpoint.Host)
		}
		if port := c.cluster.Object.Spec.ClusterNetwork.APIServerPort; port < 0 || port > mostPort {
			c.fail(cluster.Problem("spec.clusterNetwork.apiServerPort", fmt.Sprintf("%d is not a port", port), fmt.Sprintf("use 1 to %d", mostPort)))
		}
	}
	c.checkIdentities()
	if c.managed {
		c.checkEKS(cluster)
	} else {
		c.checkControlPlane()
		c.checkGroupNames()
		c.checkLengths()
		c.checkAuthorities()
		c.checkClusterNetwork(cluster)
	}
	c.checkWorkers()
	c.checkPools()
	c.checkNodes()
	c.checkObjects()
	c.checkSize()
	c.checkWithoutEffect()
}

// checkName rejects names that a network load balancer cannot have. Names of security
// groups need no check: CAPA changes those that begin with sg-.
func (c *checks) checkName(o *manifest.Entry) {
	if c.cluster.Infra == nil || c.cluster.Infra.Spec.ControlPlaneLoadBalancer == nil {
		return
	}
	lb := c.cluster.Infra.Spec.ControlPlaneLoadBalancer
	if lb.LoadBalancerType != infrav1.LoadBalancerTypeNLB {
		return
	}
	const reserved, fix = "AWS reserves names of load balancers that begin with internal-", "choose another name"
	if lb.Name != nil && strings.HasPrefix(*lb.Name, "internal-") {
		c.fail(c.infra.Problem("spec.controlPlaneLoadBalancer.name", reserved, fix))
	}
	generated := c.cluster.Namespace + "-" + c.cluster.Name + "-apiserver"
	if lb.Name == nil && strings.HasPrefix(generated, "internal-") && len(generated) <= longestLoadBalancerName {
		c.fail(o.Problem("metadata.namespace", reserved+"; the generated name would be "+generated, "set spec.controlPlaneLoadBalancer.name of the AWSCluster"))
	}
}

// checkLoadBalancers rejects settings that cannot work, and warns about those that have
// no effect.
func (c *checks) checkLoadBalancers(o *manifest.Entry) {
	primary, secondary := c.cluster.Infra.Spec.ControlPlaneLoadBalancer, c.cluster.Infra.Spec.SecondaryControlPlaneLoadBalancer
	c.checkLoadBalancer(o, "spec.controlPlaneLoadBalancer", primary)
	c.checkLoadBalancer(o, "spec.secondaryControlPlaneLoadBalancer", secondary)
	c.checkLoopback(o, primary)
	if primary == nil {
		return
	}
	if secondary != nil && primary.Name != nil && secondary.Name != nil && *primary.Name == *secondary.Name {
		c.fail(o.Problem("spec.secondaryControlPlaneLoadBalancer.name", "both load balancers have the same name", "change one of them"))
	}
}

func (c *checks) checkLoadBalancer(o *manifest.Entry, path string, lb *infrav1.AWSLoadBalancerSpec) {
	if lb == nil {
		return
	}
	switch lb.LoadBalancerType {
	case infrav1.LoadBalancerTypeALB:
		c.fail(o.Problem(path+".loadBalancerType", "alb cannot work: an Application Load Balancer takes no TCP listeners", "use nlb"))
	case infrav1.LoadBalancerTypeELB:
		c.fail(o.Problem(path+".loadBalancerType", "elb cannot work: CAPA creates a Gateway Load Balancer for it", "use nlb or classic"))
	case infrav1.LoadBalancerTypeDisabled:
		if c.cluster.Infra.Spec.ControlPlaneEndpoint.Host == "" && c.cluster.Object.Spec.ControlPlaneEndpoint.Host == "" {
			c.fail(o.Problem("spec.controlPlaneEndpoint", "without a load balancer the address of the API server is unknown", "set host and port"))
		}
	case infrav1.LoadBalancerTypeClassic, infrav1.LoadBalancerTypeNLB:
	}
}

// checkNetwork checks that the settings of an existing VPC are complete.
func (c *checks) checkNetwork(o *manifest.Entry) {
	if what := regions.Malformed(c.cluster.Region); what != "" && o.IsSet("spec.region") {
		c.fail(o.Problem("spec.region", what, "correct it"))
	}
	network := c.cluster.Infra.Spec.NetworkSpec
	_, owned := network.VPC.Tags[infrav1.NameAWSProviderOwned+c.cluster.Name]
	existing := network.VPC.ID != "" && !owned
	if c.cluster.External {
		c.checkExternal(o, network.VPC.ID)
	}
	if id := network.VPC.ID; id != "" && !strings.HasPrefix(id, "vpc-") {
		c.fail(o.Problem("spec.network.vpc.id", fmt.Sprintf("%q is not the id of a VPC", id), "set an id that begins with vpc-"))
	}
	c.warnOverrides(o, "spec.network.securityGroupOverrides", network.SecurityGroupOverrides)
	for role, id := range network.SecurityGroupOverrides {
		if !strings.HasPrefix(id, "sg-") {
			c.fail(
				o.Problem("spec.network.securityGroupOverrides."+string(role), fmt.Sprintf("%q is not the id of a security group", id), "set an id that begins with sg-"),
			)
		}
	}
	if existing {
		c.checkExistingSubnets(o)
	} else {
		c.checkNewSubnets(o)
	}
	if len(network.SecurityGroupOverrides) > 0 && !existing {
		c.fail(
			o.Problem("spec.network.securityGroupOverrides", "security groups can be set only with an existing VPC", "set spec.network.vpc.id, or remove the overrides"),
		)
	}
}

// checkExistingSubnets checks that the subnets of an existing VPC are listed, by their ids or blocks, as
// in CAPA's FindEqual.
func (c *checks) checkExistingSubnets(o *manifest.Entry) {
	all := c.cluster.Infra.Spec.NetworkSpec.Subnets
	if len(all) == 0 {
		c.fail(o.Problem("spec.network.vpc.id", "an existing VPC needs the subnets to use", "list their ids in spec.network.subnets"))
	}
	for i, s := range all {
		if !strings.HasPrefix(s.GetResourceID(), "subnet-") && s.CidrBlock == "" && s.IPv6CidrBlock == "" {
			c.fail(
				o.Problem(
					fmt.Sprintf("spec.network.subnets[%d].id", i),
					fmt.Sprintf("%q is not the id of a subnet of the existing VPC", s.ID),
					"set an id that begins with subnet-, or the cidrBlock of the subnet",
				),
			)
		}
	}
}

// checkNewSubnets checks that the listed subnets of a new VPC say where they are: CreateSubnet needs a
// zone, and a block unless the subnet is for IPv6 only.
func (c *checks) checkNewSubnets(o *manifest.Entry) {
	for i, s := range c.cluster.Infra.Spec.NetworkSpec.Subnets {
		at := fmt.Sprintf("spec.network.subnets[%d]", i)
		if s.AvailabilityZone == "" {
			c.fail(o.Problem(at, "the subnet has no zone", "set availabilityZone"))
		}
		if s.CidrBlock == "" && !s.IsIPv6 {
			c.fail(o.Problem(at, "the subnet has no block", "set cidrBlock"))
		}
	}
}

// checkControlPlane checks the version and the machines of the control plane.
func (c *checks) checkControlPlane() {
	if plane := c.cluster.ControlPlane; plane != nil {
		o := c.lookup(manifest.KindControlPlane, plane.Object.Name)
		c.checkVersion(o, "spec.version", plane.Object.Spec.Version)
		c.checkFormat(o, "spec.kubeadmConfigSpec.format", plane.Object.Spec.KubeadmConfigSpec.Format, plane.Template)
		c.checkTemplate(plane.Template)
		if c.cluster.Infra != nil {
			c.warnOtherCluster(c.infra, "spec.additionalTags", c.cluster.Infra.Spec.AdditionalTags)
		}
		if t := plane.Template; t != nil {
			c.warnOtherCluster(c.lookup("AWSMachineTemplate", t.Name), "spec.template.spec.additionalTags", t.Spec.Template.Spec.AdditionalTags)
		}
		if plane.Object.Spec.Replicas != nil {
			c.checkOneInterface(plane.Template, int(*plane.Object.Spec.Replicas))
		}
	}
	for _, m := range c.cluster.Machines {
		if m.ControlPlane && c.cluster.ControlPlane != nil {
			c.fail(
				c.lookup(manifest.KindMachine, m.Object.Name).
					Problem("metadata.labels", "a control plane is either a KubeadmControlPlane or stand-alone Machines, not both", "remove one of them"),
			)
		}
	}
}

// checkWorkers checks MachineDeployments and stand-alone Machines.
func (c *checks) checkWorkers() {
	for _, d := range c.cluster.Deployments {
		o := c.lookup(manifest.KindDeployment, d.Object.Name)
		spec := d.Object.Spec.Template.Spec
		if d.Template != nil {
			c.checkImage(o, "spec.template.spec.version", spec.Version, d.Template.Spec.Template.Spec.AMI)
			c.checkTemplate(d.Template)
			c.checkOneInterface(d.Template, d.Replicas())
		}
		c.checkWorkerVersion(o, "spec.template.spec.version", spec.Version)
		if d.Bootstrap != nil {
			config := c.lookup(manifest.KindConfigTemplate, d.Bootstrap.Name)
			c.checkFormat(config, "spec.template.spec.format", d.Bootstrap.Spec.Template.Spec.Format, d.Template)
		}
		if c.managed {
			c.checkDeploymentOfEKS(d)
		}
	}
	for _, m := range c.cluster.Machines {
		o := c.lookup(manifest.KindMachine, m.Object.Name)
		if m.Infra != nil {
			c.checkImage(o, "spec.version", m.Object.Spec.Version, m.Infra.Spec.AMI)
			c.checkMachineSpec(c.lookup(manifest.KindAWSMachine, m.Infra.Name), "spec", m.Infra.Spec)
		}
		c.checkWorkerVersion(o, "spec.version", m.Object.Spec.Version)
		if m.Bootstrap != nil {
			config := c.lookup(manifest.KindConfig, m.Bootstrap.Name)
			c.checkIgnition(config, "spec.format", m.Bootstrap.Spec.Format, m.Infra)
		}
		if c.managed {
			c.checkMachineOfEKS(m)
		}
	}
}

// checkImage checks that an AMI can be found: by ID, or by version.
func (c *checks) checkImage(o *manifest.Entry, path, version string, ami infrav1.AMIReference) {
	if version == "" && ami.ID == nil {
		c.fail(o.Problem(path, "neither a version nor an AMI is set", "set the version, or ami.id of the machine's AWS object"))
	}
}

func (c *checks) checkTemplate(t *infrav1.AWSMachineTemplate) {
	if t != nil {
		c.checkMachineSpec(c.lookup(manifest.KindAWSMachineTemplate, t.Name), "spec.template.spec", t.Spec.Template.Spec)
	}
}

// checkOneInterface refuses network interfaces that several machines would have: an interface is attached to one instance
// (InvalidNetworkInterface.InUse, "Error codes for the Amazon EC2 API").
func (c *checks) checkOneInterface(t *infrav1.AWSMachineTemplate, replicas int) {
	if t != nil && len(t.Spec.Template.Spec.NetworkInterfaces) > 0 && replicas > 1 {
		c.fail(
			c.lookup(manifest.KindAWSMachineTemplate, t.Name).Problem(
				"spec.template.spec.networkInterfaces",
				fmt.Sprintf("%d machines would have the same network interface, and EC2 attaches one to one machine", replicas),
				"remove it, or use a template for each machine",
			),
		)
	}
}

// checkMachineSpec rejects what EC2 does not launch. With instance tags in the metadata
// service, EC2 permits no tag with a slash in its key, and the tags of a cluster have slashes.
func (c *checks) checkMachineSpec(o *manifest.Entry, path string, spec infrav1.AWSMachineSpec) {
	if o == nil {
		return
	}
	c.checkType(o, path+".instanceType", spec.InstanceType)
	if spec.PlacementGroupPartition > 0 && spec.PlacementGroupName == "" {
		c.fail(
			o.Problem(
				path+".placementGroupPartition",
				"a partition is one of a placement group, and placementGroupName is not set",
				"set placementGroupName, or remove this field",
			),
		)
	}
	if m := spec.InstanceMetadataOptions; m != nil && m.InstanceMetadataTags == infrav1.InstanceMetadataEndpointStateEnabled {
		c.fail(o.Problem(path+".instanceMetadataOptions.instanceMetadataTags",
			"EC2 does not launch a machine with this setting and a tag whose key contains a slash, such as the cluster's tags", "set it to disabled"))
	}
	if m := spec.InstanceMetadataOptions; m != nil && m.HTTPEndpoint == infrav1.InstanceMetadataEndpointStateDisabled {
		c.fail(
			o.Problem(
				path+".instanceMetadataOptions.httpEndpoint",
				"without the metadata service a machine cannot read its user data, so that it does nothing",
				"set it to enabled, with httpTokens: required",
			),
		)
	}
	if c.cluster.Infra != nil {
		c.checkHardware(o, path, &spec)
	}
}

// checkVersion rejects versions for which no kubeadm configuration can be written.
func (c *checks) checkVersion(o *manifest.Entry, path, version string) {
	v, err := semver.Parse(strings.TrimPrefix(version, "v"))
	if err == nil && (v.Major != 1 || v.Minor < oldestMinor) {
		fix := fmt.Sprintf("use v1.%d or newer", oldestMinor)
		if c.cluster.EKS != nil {
			fix = "use a version that EKS offers: aws eks describe-cluster-versions"
		}
		c.fail(o.Problem(path, fmt.Sprintf("Kubernetes %s is not supported", version), fix))
	}
}

// checkWorkerVersion compares a version with that of the control plane.
func (c *checks) checkWorkerVersion(o *manifest.Entry, path, version string) {
	if version == "" {
		return
	}
	c.checkVersion(o, path, version)
	worker, err := semver.Parse(strings.TrimPrefix(version, "v"))
	if err != nil {
		return
	}
	plane, err := semver.ParseTolerant(c.cluster.Version)
	if err != nil {
		return
	}
	switch {
	case worker.Minor > plane.Minor:
		c.fail(o.Problem(path, fmt.Sprintf("%s is newer than the control plane, %s", version, c.cluster.Version), "upgrade the control plane first"))
	case worker.Minor+MinorsBehind < plane.Minor:
		c.fail(
			o.Problem(
				path,
				fmt.Sprintf("%s is more than %d minor versions older than the control plane, %s", version, MinorsBehind, c.cluster.Version),
				"use a newer version",
			),
		)
	}
}

func (c *checks) checkFormat(o *manifest.Entry, path string, format bootstrapv1.Format, template *infrav1.AWSMachineTemplate) {
	if template != nil {
		c.checkIgnition(o, path, format, &infrav1.AWSMachine{ObjectMeta: template.ObjectMeta, Spec: template.Spec.Template.Spec})
	}
}

// checkIgnition checks that the machine's AWSMachine and its bootstrap configuration have
// the same format, which the image reads, and that Ignition data has a bucket.
func (c *checks) checkIgnition(o *manifest.Entry, path string, format bootstrapv1.Format, machine *infrav1.AWSMachine) {
	if machine == nil || c.cluster.Infra == nil {
		return
	}
	if machine.Spec.Ignition != nil && format != bootstrapv1.Ignition {
		c.fail(
			o.Problem(
				path,
				fmt.Sprintf("the machine expects Ignition (spec.ignition of %s), but the format of this configuration is cloud-config", machine.Name),
				"set format: ignition",
			),
		)
		return
	}
	inline := machine.Spec.Ignition != nil && machine.Spec.Ignition.StorageType == infrav1.IgnitionStorageTypeOptionUnencryptedUserData
	if format == bootstrapv1.Ignition && !inline && c.cluster.Infra.Spec.S3Bucket == nil {
		c.fail(o.Problem(path, "Ignition data is stored in a bucket, and AWSCluster/"+c.cluster.Infra.Name+" has none",
			"set spec.s3Bucket there, or ignition.storageType: UnencryptedUserData on the machine"))
		return
	}
	c.checkImageFormat(o, path, format, &machine.Spec)
}

// longestKey is how many bytes a parameter of SSM holds, where the keys of a cluster are stored.
const longestKey = 8192

// checkLengths refuses certificates and keys that a parameter of SSM cannot hold.
func (c *checks) checkLengths() {
	for _, suffix := range manifest.Authorities() {
		o := c.lookup(manifest.KindSecret, c.cluster.Name+"-"+suffix)
		if o == nil || c.cluster.Secrets[o.Name] == nil {
			continue
		}
		data := c.cluster.Secrets[o.Name].Data
		for _, entry := range slices.Sorted(maps.Keys(data)) {
			if n := len(data[entry]); n > longestKey {
				c.fail(o.Problem("data", fmt.Sprintf("%s has %d bytes, but a parameter of SSM, where the keys of the cluster are stored, holds %d", entry, n, longestKey),
					"leave out certificates that are not needed, such as that of the root"))
			}
		}
	}
}
