package manifest

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/boot"

	"github.com/blang/semver/v4"
	infrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/api/v1beta2"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
)

// MinorsBehind is by how many minor versions a kubelet may be older than the API server, by the
// version skew policy of Kubernetes.
const MinorsBehind = 3

const (
	oldestMinor             = 22   // the oldest Kubernetes minor version that Cluster API supports
	apiPort                 = 6443 // the port of the API server, and of every NLB
	longestLoadBalancerName = 32   // a longer generated name is replaced by a hash

	ownedTagPrefix = "sigs.k8s.io/cluster-api-provider-aws/cluster/"
)

// checkWhole applies the rules that involve more than one object. CAPA and Cluster API
// would report these problems only while they create the cluster.
func (l *loader) checkWhole(cluster *object) {
	l.checkName(cluster)
	if l.cluster.Infra != nil {
		l.checkLoadBalancers(cluster, l.infra)
		l.checkNetwork(l.infra)
		l.checkVPCBlocks()
		l.checkIngressRules()
		l.checkBalancerRules()
		l.checkTagRules()
		l.checkBucket()
		if ami := l.cluster.Infra.Spec.Bastion.AMI; ami != "" {
			l.checkID(l.infra, "spec.bastion.ami", ami, "ami", "an image")
		}
		l.checkHost(cluster, "spec.controlPlaneEndpoint.host", l.cluster.Object.Spec.ControlPlaneEndpoint.Host)
		if port := l.cluster.Object.Spec.ClusterNetwork.APIServerPort; port < 0 || port > mostPort {
			l.fail(cluster.problem("spec.clusterNetwork.apiServerPort", fmt.Sprintf("%d is not a port", port), fmt.Sprintf("use 1 to %d", mostPort)))
		}
	}
	if l.managed {
		l.checkEKS(cluster)
	} else {
		l.checkControlPlane(cluster)
		l.checkSecrets()
		l.checkAuthorities()
		l.checkClusterNetwork(cluster)
	}
	l.checkWorkers()
	l.checkPools()
	l.checkNodes()
	l.checkSize()
	l.checkWithoutEffect()
	l.checkAnnotations()
}

// checkName rejects names that a network load balancer cannot have. Names of security
// groups need no check: CAPA changes those that begin with sg-.
func (l *loader) checkName(o *object) {
	if l.cluster.Infra == nil || l.cluster.Infra.Spec.ControlPlaneLoadBalancer == nil {
		return
	}
	lb := l.cluster.Infra.Spec.ControlPlaneLoadBalancer
	if lb.LoadBalancerType != infrav1.LoadBalancerTypeNLB {
		return
	}
	const reserved, fix = "AWS reserves names of load balancers that begin with internal-", "choose another name"
	if lb.Name != nil && strings.HasPrefix(*lb.Name, "internal-") {
		l.fail(l.infra.problem("spec.controlPlaneLoadBalancer.name", reserved, fix))
	}
	generated := l.cluster.Namespace + "-" + l.cluster.Name + "-apiserver"
	if lb.Name == nil && strings.HasPrefix(generated, "internal-") && len(generated) <= longestLoadBalancerName {
		l.fail(o.problem("metadata.namespace", reserved+"; the generated name would be "+generated, "set spec.controlPlaneLoadBalancer.name of the AWSCluster"))
	}
}

// checkLoadBalancers rejects settings that cannot work, and warns about those that have
// no effect.
func (l *loader) checkLoadBalancers(cluster, o *object) {
	primary, secondary := l.cluster.Infra.Spec.ControlPlaneLoadBalancer, l.cluster.Infra.Spec.SecondaryControlPlaneLoadBalancer
	l.checkLoadBalancer(o, "spec.controlPlaneLoadBalancer", primary)
	l.checkLoadBalancer(o, "spec.secondaryControlPlaneLoadBalancer", secondary)
	if primary == nil {
		return
	}
	if secondary != nil && primary.Name != nil && secondary.Name != nil && *primary.Name == *secondary.Name {
		l.fail(o.problem("spec.secondaryControlPlaneLoadBalancer.name", "both load balancers have the same name", "change one of them"))
	}
	port := l.cluster.Object.Spec.ClusterNetwork.APIServerPort
	if primary.LoadBalancerType == infrav1.LoadBalancerTypeNLB && port != 0 && port != apiPort {
		l.warn(
			cluster.problem(
				"spec.clusterNetwork.apiServerPort",
				fmt.Sprintf("a network load balancer always listens on %d", apiPort),
				"use a classic load balancer for another port",
			),
		)
	}
}

func (l *loader) checkLoadBalancer(o *object, path string, lb *infrav1.AWSLoadBalancerSpec) {
	if lb == nil {
		return
	}
	switch lb.LoadBalancerType {
	case infrav1.LoadBalancerTypeALB:
		l.fail(o.problem(path+".loadBalancerType", "alb cannot work: an Application Load Balancer takes no TCP listeners", "use nlb"))
	case infrav1.LoadBalancerTypeELB:
		l.fail(o.problem(path+".loadBalancerType", "elb cannot work: CAPA creates a Gateway Load Balancer for it", "use nlb or classic"))
	case infrav1.LoadBalancerTypeDisabled:
		if l.cluster.Infra.Spec.ControlPlaneEndpoint.Host == "" && l.cluster.Object.Spec.ControlPlaneEndpoint.Host == "" {
			l.fail(o.problem("spec.controlPlaneEndpoint", "without a load balancer the address of the API server is unknown", "set host and port"))
		}
	case infrav1.LoadBalancerTypeClassic, infrav1.LoadBalancerTypeNLB:
	}
}

// checkNetwork checks that the settings of an existing VPC are complete.
func (l *loader) checkNetwork(o *object) {
	network := l.cluster.Infra.Spec.NetworkSpec
	_, owned := network.VPC.Tags[ownedTagPrefix+l.cluster.Name]
	existing := network.VPC.ID != "" && !owned
	if l.cluster.External {
		l.checkExternal(o, network.VPC.ID)
	}
	if id := network.VPC.ID; id != "" && !strings.HasPrefix(id, "vpc-") {
		l.fail(o.problem("spec.network.vpc.id", fmt.Sprintf("%q is not the id of a VPC", id), "set an id that begins with vpc-"))
	}
	for role, id := range network.SecurityGroupOverrides {
		if !strings.HasPrefix(id, "sg-") {
			l.fail(
				o.problem("spec.network.securityGroupOverrides."+string(role), fmt.Sprintf("%q is not the id of a security group", id), "set an id that begins with sg-"),
			)
		}
	}
	if existing {
		l.checkExistingSubnets(o)
	} else {
		l.checkNewSubnets(o)
	}
	if len(network.SecurityGroupOverrides) > 0 && !existing {
		l.fail(
			o.problem("spec.network.securityGroupOverrides", "security groups can be set only with an existing VPC", "set spec.network.vpc.id, or remove the overrides"),
		)
	}
}

// checkExistingSubnets checks that the subnets of an existing VPC are listed, by their ids or blocks, as
// in CAPA's FindEqual.
func (l *loader) checkExistingSubnets(o *object) {
	all := l.cluster.Infra.Spec.NetworkSpec.Subnets
	if len(all) == 0 {
		l.fail(o.problem("spec.network.vpc.id", "an existing VPC needs the subnets to use", "list their ids in spec.network.subnets"))
	}
	for i, s := range all {
		if !strings.HasPrefix(s.GetResourceID(), "subnet-") && s.CidrBlock == "" && s.IPv6CidrBlock == "" {
			l.fail(
				o.problem(
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
func (l *loader) checkNewSubnets(o *object) {
	for i, s := range l.cluster.Infra.Spec.NetworkSpec.Subnets {
		at := fmt.Sprintf("spec.network.subnets[%d]", i)
		if s.AvailabilityZone == "" {
			l.fail(o.problem(at, "the subnet has no zone", "set availabilityZone"))
		}
		if s.CidrBlock == "" && !s.IsIPv6 {
			l.fail(o.problem(at, "the subnet has no block", "set cidrBlock"))
		}
	}
}

// checkControlPlane sets the version and checks the machines of the control plane.
func (l *loader) checkControlPlane(cluster *object) {
	if plane := l.cluster.ControlPlane; plane != nil {
		o := l.lookup(kindControlPlane, plane.Object.Name)
		l.checkVersion(o, "spec.version", plane.Object.Spec.Version)
		l.checkFormat(o, "spec.kubeadmConfigSpec.format", plane.Object.Spec.KubeadmConfigSpec.Format, plane.Template)
		l.checkFiles(o, "spec.kubeadmConfigSpec", &plane.Object.Spec.KubeadmConfigSpec)
		l.checkTemplate(plane.Template)
	}
	singles := 0
	for _, m := range l.cluster.Machines {
		if !m.ControlPlane {
			continue
		}
		singles++
		if l.cluster.ControlPlane != nil {
			l.fail(
				l.lookup(kindMachine, m.Object.Name).
					problem("metadata.labels", "a control plane is either a KubeadmControlPlane or stand-alone Machines, not both", "remove one of them"),
			)
			continue
		}
		if l.cluster.Version == "" {
			l.cluster.Version = m.Object.Spec.Version
		}
	}
	if singles == 0 && l.cluster.ControlPlane == nil && len(l.ofKind(kindMachine)) == len(l.cluster.Machines) &&
		!l.cluster.Object.Spec.ControlPlaneRef.IsDefined() {
		l.fail(
			cluster.problem(
				"spec.controlPlaneRef",
				"the cluster has no control plane",
				"set a KubeadmControlPlane, or add Machines with the label cluster.x-k8s.io/control-plane",
			),
		)
	}
}

// checkWorkers checks MachineDeployments and stand-alone Machines.
func (l *loader) checkWorkers() {
	for _, d := range l.cluster.Deployments {
		o := l.lookup(kindDeployment, d.Object.Name)
		spec := d.Object.Spec.Template.Spec
		if d.Template != nil {
			l.checkImage(o, "spec.template.spec.version", spec.Version, d.Template.Spec.Template.Spec.AMI)
			l.checkTemplate(d.Template)
		}
		l.checkWorkerVersion(o, "spec.template.spec.version", spec.Version)
		if d.Bootstrap != nil {
			config := l.lookup(kindConfigTemplate, d.Bootstrap.Name)
			l.checkFormat(config, "spec.template.spec.format", d.Bootstrap.Spec.Template.Spec.Format, d.Template)
			l.checkFiles(config, "spec.template.spec", &d.Bootstrap.Spec.Template.Spec)
		}
		if l.managed {
			l.checkDeploymentOfEKS(d)
		}
	}
	for _, m := range l.cluster.Machines {
		o := l.lookup(kindMachine, m.Object.Name)
		if m.Infra != nil {
			l.checkImage(o, "spec.version", m.Object.Spec.Version, m.Infra.Spec.AMI)
			l.checkMachineSpec(l.lookup(kindAWSMachine, m.Infra.Name), "spec", m.Infra.Spec)
		}
		l.checkWorkerVersion(o, "spec.version", m.Object.Spec.Version)
		if m.Bootstrap != nil {
			config := l.lookup(kindConfig, m.Bootstrap.Name)
			l.checkIgnition(config, "spec.format", m.Bootstrap.Spec.Format, m.Infra)
			l.checkFiles(config, "spec", &m.Bootstrap.Spec)
		}
		if l.managed {
			l.checkMachineOfEKS(m)
		}
	}
}

// checkImage checks that an AMI can be found: by ID, or by version.
func (l *loader) checkImage(o *object, path, version string, ami infrav1.AMIReference) {
	if version == "" && ami.ID == nil {
		l.fail(o.problem(path, "neither a version nor an AMI is set", "set the version, or ami.id of the machine's AWS object"))
	}
}

func (l *loader) checkTemplate(t *infrav1.AWSMachineTemplate) {
	if t != nil {
		l.checkMachineSpec(l.lookup(kindAWSMachineTemplate, t.Name), "spec.template.spec", t.Spec.Template.Spec)
	}
}

// checkMachineSpec rejects what EC2 does not launch. With instance tags in the metadata
// service, EC2 permits no tag with a slash in its key, and the tags of a cluster have slashes.
func (l *loader) checkMachineSpec(o *object, path string, spec infrav1.AWSMachineSpec) {
	if o == nil {
		return
	}
	if id := spec.AMI.ID; id != nil && !strings.HasPrefix(*id, "ami-") {
		l.fail(o.problem(path+".ami.id", fmt.Sprintf("%q is not the id of an image", *id), "set an id that begins with ami-"))
	}
	if spec.PlacementGroupPartition > 0 && spec.PlacementGroupName == "" {
		l.fail(
			o.problem(
				path+".placementGroupPartition",
				"a partition is one of a placement group, and placementGroupName is not set",
				"set placementGroupName, or remove this field",
			),
		)
	}
	if m := spec.InstanceMetadataOptions; m != nil && m.InstanceMetadataTags == infrav1.InstanceMetadataEndpointStateEnabled {
		l.fail(o.problem(path+".instanceMetadataOptions.instanceMetadataTags",
			"EC2 does not launch a machine with this setting and a tag whose key contains a slash, such as the cluster's tags", "set it to disabled"))
	}
	if m := spec.InstanceMetadataOptions; m != nil && m.HTTPEndpoint == infrav1.InstanceMetadataEndpointStateDisabled {
		l.fail(
			o.problem(
				path+".instanceMetadataOptions.httpEndpoint",
				"without the metadata service a machine cannot read its user data, so that it does nothing",
				"set it to enabled, with httpTokens: required",
			),
		)
	}
	if l.cluster.Infra != nil {
		l.checkHardware(o, path, &spec)
	}
}

// checkVersion rejects versions for which no kubeadm configuration can be written.
func (l *loader) checkVersion(o *object, path, version string) {
	v, err := semver.Parse(strings.TrimPrefix(version, "v"))
	if err == nil && (v.Major != 1 || v.Minor < oldestMinor) {
		l.fail(o.problem(path, fmt.Sprintf("Kubernetes %s is not supported", version), fmt.Sprintf("use v1.%d or newer", oldestMinor)))
	}
}

// checkWorkerVersion compares a version with that of the control plane.
func (l *loader) checkWorkerVersion(o *object, path, version string) {
	if version == "" {
		return
	}
	l.checkVersion(o, path, version)
	worker, err := semver.Parse(strings.TrimPrefix(version, "v"))
	if err != nil {
		return
	}
	plane, err := semver.ParseTolerant(l.cluster.Version)
	if err != nil {
		return
	}
	switch {
	case worker.Minor > plane.Minor:
		l.fail(o.problem(path, fmt.Sprintf("%s is newer than the control plane, %s", version, l.cluster.Version), "upgrade the control plane first"))
	case worker.Minor+MinorsBehind < plane.Minor:
		l.fail(
			o.problem(
				path,
				fmt.Sprintf("%s is more than %d minor versions older than the control plane, %s", version, MinorsBehind, l.cluster.Version),
				"use a newer version",
			),
		)
	}
}

func (l *loader) checkFormat(o *object, path string, format bootstrapv1.Format, template *infrav1.AWSMachineTemplate) {
	if template != nil {
		l.checkIgnition(o, path, format, &infrav1.AWSMachine{ObjectMeta: template.ObjectMeta, Spec: template.Spec.Template.Spec})
	}
}

// checkIgnition checks that the machine's AWSMachine and its bootstrap configuration have
// the same format, and that Ignition data has a bucket.
func (l *loader) checkIgnition(o *object, path string, format bootstrapv1.Format, machine *infrav1.AWSMachine) {
	if machine == nil || l.cluster.Infra == nil {
		return
	}
	if machine.Spec.Ignition != nil && format != bootstrapv1.Ignition {
		l.fail(
			o.problem(
				path,
				fmt.Sprintf("the machine expects Ignition (spec.ignition of %s), but the format of this configuration is cloud-config", machine.Name),
				"set format: ignition",
			),
		)
		return
	}
	if format != bootstrapv1.Ignition {
		return
	}
	inline := machine.Spec.Ignition != nil && machine.Spec.Ignition.StorageType == infrav1.IgnitionStorageTypeOptionUnencryptedUserData
	if !inline && l.cluster.Infra.Spec.S3Bucket == nil {
		l.fail(o.problem(path, "Ignition data is stored in a bucket, and AWSCluster/"+l.cluster.Infra.Name+" has none",
			"set spec.s3Bucket there, or ignition.storageType: UnencryptedUserData on the machine"))
	}
}

// checkFiles checks that the Secrets that a configuration names exist.
func (l *loader) checkFiles(o *object, path string, c *bootstrapv1.KubeadmConfigSpec) {
	for i, f := range c.Files {
		if f.ContentFrom.IsDefined() {
			l.secretKey(o, fmt.Sprintf("%s.files[%d].contentFrom.secret", path, i), f.ContentFrom.Secret.Name, f.ContentFrom.Secret.Key)
		}
	}
	for i, u := range c.Users {
		if u.PasswdFrom.IsDefined() {
			l.secretKey(o, fmt.Sprintf("%s.users[%d].passwdFrom.secret", path, i), u.PasswdFrom.Secret.Name, u.PasswdFrom.Secret.Key)
		}
	}
	at := path + ".ignition.containerLinuxConfig.additionalConfig"
	ignored, err := boot.CheckContainerLinuxConfig(c.Ignition.ContainerLinuxConfig)
	if err != nil {
		l.fail(o.problem(at, err.Error(), "change it: lines are counted from the first one of the text"))
	}
	for _, field := range ignored {
		l.warn(o.problem(at, field+" does not exist, and is ignored", "remove it"))
	}
}

// longestKey is how many bytes a parameter of SSM holds, where the keys of a cluster are stored.
const longestKey = 8192

// checkLength refuses certificates and keys that a parameter of SSM cannot hold.
func (l *loader) checkLength(o *object, data map[string][]byte) {
	for _, entry := range slices.Sorted(maps.Keys(data)) {
		if n := len(data[entry]); n > longestKey {
			l.fail(o.problem("data", fmt.Sprintf("%s has %d bytes, but a parameter of SSM, where the keys of the cluster are stored, holds %d", entry, n, longestKey),
				"leave out certificates that are not needed, such as that of the root"))
		}
	}
}

// checkSecrets checks the Secrets that Cluster API finds by name: the user's
// certificates, and those for external etcd.
func (l *loader) checkSecrets() {
	for _, suffix := range []string{"ca", "etcd", "proxy", "sa", "apiserver-etcd-client"} {
		o := l.lookup(kindSecret, l.cluster.Name+"-"+suffix)
		if o == nil {
			continue
		}
		o.used = true
		if s := l.cluster.Secrets[o.name]; s != nil {
			l.checkLength(o, s.Data)
		}
	}
	if l.cluster.ControlPlane == nil || !l.cluster.ControlPlane.Object.Spec.KubeadmConfigSpec.ClusterConfiguration.Etcd.External.IsDefined() {
		return
	}
	o := l.lookup(kindControlPlane, l.cluster.ControlPlane.Object.Name)
	path := "spec.kubeadmConfigSpec.clusterConfiguration.etcd.external"
	l.secretKey(o, path, l.cluster.Name+"-etcd", "tls.crt")
	l.secretKey(o, path, l.cluster.Name+"-apiserver-etcd-client", "tls.crt")
	l.secretKey(o, path, l.cluster.Name+"-apiserver-etcd-client", "tls.key")
}
