package manifest

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	infrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/api/v1beta2"
	eksbootstrapv1 "sigs.k8s.io/cluster-api-provider-aws/v2/bootstrap/eks/api/v1beta2"
	expinfrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/exp/api/v1beta2"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
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
			l.warn(o.problem(path+".dataSecretName", "has no effect: EKS writes the user data of a node group without a launch template", "set awsLaunchTemplate of the AWSManagedMachinePool, or remove the name"))
		}
		return
	}
	config := l.follow(contract(o, path+".configRef", b.ConfigRef), kindNodeadm, kindEKSConfig)
	if config == nil {
		return
	}
	if spec, _ := config.value["spec"].(map[string]any); len(spec) > 0 {
		l.warn(config.problem("spec", "has no effect: EKS writes the user data of a node group without a launch template", "set awsLaunchTemplate of the AWSManagedMachinePool, or empty this"))
	}
}

// Template returns the launch template of a pool, or nil if EKS creates it.
func (p Pool) Template() *expinfrav1.AWSLaunchTemplate {
	if p.Managed != nil {
		return p.Managed.Spec.AWSLaunchTemplate
	}
	return &p.Scaling.Spec.AWSLaunchTemplate
}

// Hooks returns the lifecycle hooks of a pool.
func (p Pool) Hooks() []expinfrav1.AWSLifecycleHook {
	if p.Managed != nil {
		return p.Managed.Spec.AWSLifecycleHooks
	}
	return p.Scaling.Spec.AWSLifecycleHooks
}

// asPoolMachine returns a machine of an AWSMachinePool, with the fields that rules for
// machines check.
func asPoolMachine(name string, t *expinfrav1.AWSLaunchTemplate, ignition *infrav1.Ignition) *infrav1.AWSMachine {
	m := &infrav1.AWSMachine{Spec: infrav1.AWSMachineSpec{
		AMI: t.AMI, ImageLookupOrg: t.ImageLookupOrg, ImageLookupFormat: t.ImageLookupFormat, ImageLookupBaseOS: t.ImageLookupBaseOS,
		Ignition: ignition, InstanceMetadataOptions: t.InstanceMetadataOptions,
	}}
	m.Name = name
	return m
}

// Limits of AWS for pools.
const (
	shortestTemplate, longestTemplate = 3, 128 // length of a launch template's name
	mostTaints                        = 50     // taints of a node group
)

// checkPools checks the MachinePools. Most rules for EKS need the control plane.
func (l *loader) checkPools() {
	if l.managed && l.cluster.EKS == nil {
		return
	}
	users, names := map[string]string{}, map[string]string{}
	for _, p := range l.cluster.Pools {
		o := l.lookup(kindPool, p.Object.Name)
		l.checkWorkerVersion(o, "spec.template.spec.version", p.Object.Spec.Template.Spec.Version)
		ref := p.Object.Spec.Template.Spec.InfrastructureRef
		if other := users[ref.Kind+"/"+ref.Name]; other != "" {
			l.fail(o.problem("spec.template.spec.infrastructureRef.name", fmt.Sprintf("%s uses %s/%s already", other, ref.Kind, ref.Name), "create one for each pool"))
		}
		users[ref.Kind+"/"+ref.Name] = o.title()
		if m := p.Managed; m != nil {
			group := l.lookup(kindManagedPool, m.Name)
			if other := names[m.Spec.EKSNodegroupName]; other != "" && other != group.title() {
				l.fail(group.problem("spec.eksNodegroupName", fmt.Sprintf("%s has the same name in EKS, %s", other, m.Spec.EKSNodegroupName), "set eksNodegroupName"))
			}
			names[m.Spec.EKSNodegroupName] = group.title()
			l.checkNodeGroup(o, group, p)
		}
		if p.Scaling != nil {
			l.checkScaling(o, l.lookup(kindScalingPool, p.Scaling.Name), p)
		}
		l.checkBootstrap(p.Bootstrap)
	}
}

// checkRange checks that the number of replicas is between minimum and maximum size,
// unless an autoscaler sets it.
func (l *loader) checkRange(o *object, p Pool, least, most *int32) {
	if _, delegated := p.Object.Annotations[clusterv1.ReplicasManagedByAnnotation]; delegated {
		return
	}
	n := int32(p.Replicas()) //nolint:gosec // converted from int32
	title := kindScalingPool
	if p.Managed != nil {
		title = kindManagedPool
	}
	switch {
	case least != nil && n < *least:
		l.fail(o.problem("spec.replicas", fmt.Sprintf("%d is less than minSize of the %s, %d", n, title, *least), "change one of them"))
	case most != nil && n > *most:
		l.fail(o.problem("spec.replicas", fmt.Sprintf("%d is more than maxSize of the %s, %d", n, title, *most), "change one of them"))
	}
}

// checkScaling checks an Auto Scaling group.
func (l *loader) checkScaling(o, group *object, p Pool) {
	spec := &p.Scaling.Spec
	t := &spec.AWSLaunchTemplate
	l.checkImage(o, "spec.template.spec.version", p.Object.Spec.Template.Spec.Version, t.AMI)
	l.checkRange(o, p, &spec.MinSize, &spec.MaxSize)
	l.checkTemplateName(group, p.Scaling.Name)
	machine := asPoolMachine(group.name, t, spec.Ignition)
	l.checkMetadata(group, "spec.awsLaunchTemplate", machine.Spec)
	if t.InstanceType == "" && (spec.MixedInstancesPolicy == nil || len(spec.MixedInstancesPolicy.Overrides) == 0) {
		l.fail(group.problem("spec.awsLaunchTemplate.instanceType", "no instance type is set", "set it, or mixedInstancesPolicy.overrides"))
	}
	if c := p.Bootstrap.Kubeadm; c != nil {
		l.checkPoolIgnition(l.lookup(kindConfig, c.Name), c.Spec.Format, machine)
	}
	if l.managed {
		l.checkNodeImage(group, "spec.awsLaunchTemplate", machine.Spec, p.Bootstrap.EKS != nil, p.Bootstrap.Nodeadm != nil)
		if t.IamInstanceProfile == "" {
			l.warn(group.problem("spec.awsLaunchTemplate.iamInstanceProfile", "without an instance profile the machines cannot join: they have no AWS credentials for EKS", "set it, for example to nodes.cluster-api-provider-aws.sigs.k8s.io"))
		}
	}
}

// checkPoolIgnition is checkIgnition for a pool. The user data contains all Ignition data
// unless a bucket is set.
func (l *loader) checkPoolIgnition(config *object, format bootstrapv1.Format, machine *infrav1.AWSMachine) {
	if machine.Spec.Ignition == nil {
		machine.Spec.Ignition = &infrav1.Ignition{StorageType: infrav1.IgnitionStorageTypeOptionUnencryptedUserData}
		if format != bootstrapv1.Ignition {
			return
		}
	}
	l.checkIgnition(config, "spec.format", format, machine)
}

// checkTemplateName checks the name of a launch template.
func (l *loader) checkTemplateName(o *object, name string) {
	if n := len(name); n < shortestTemplate || n > longestTemplate {
		l.fail(o.problem("metadata.name", fmt.Sprintf("the name of its launch template, %s, must have %d to %d characters", name, shortestTemplate, longestTemplate), "choose another name"))
	}
}

// checkNodeGroup checks a node group of EKS.
func (l *loader) checkNodeGroup(o, group *object, p Pool) {
	spec := &p.Managed.Spec
	l.checkEKSName(group, "spec.eksNodegroupName", spec.EKSNodegroupName, longestGroup)
	l.checkRoleName(group, spec.RoleName)
	l.warnNoEffectOnRole(group, spec.RolePath, spec.RolePermissionsBoundary, len(spec.RoleAdditionalPolicies))
	if s := spec.Scaling; s != nil {
		l.checkRange(o, p, s.MinSize, s.MaxSize)
	}
	l.checkLabels(group, spec.Labels)
	l.checkTaints(group, spec.Taints)
	own := OwnImage(p.Managed)
	if version, without := l.withoutAL2(); without && !own && spec.AMIType != nil && strings.HasPrefix(string(*spec.AMIType), "AL2_") {
		l.fail(group.problem("spec.amiType", fmt.Sprintf("EKS has no Amazon Linux 2 AMIs (%s) for %s", *spec.AMIType, version), "set amiType, for example to AL2023_x86_64_STANDARD"))
	}
	if !own && spec.AMIType != nil && *spec.AMIType == expinfrav1.Custom {
		l.fail(group.problem("spec.amiType", "CUSTOM needs an AMI", "set awsLaunchTemplate.ami.id"))
	}
	if spec.AWSLaunchTemplate != nil {
		l.checkGroupTemplate(group, spec)
		l.checkGroupImage(o, group, p)
	}
}

// OwnImage reports whether the nodes of a node group use an AMI of its launch template: a
// given one, or for the AMI type CUSTOM one that is looked up.
func OwnImage(m *expinfrav1.AWSManagedMachinePool) bool {
	t := m.Spec.AWSLaunchTemplate
	return t != nil && (t.AMI.ID != nil || m.Spec.AMIType != nil && *m.Spec.AMIType == expinfrav1.Custom)
}

// checkGroupImage compares the AMI with the bootstrap configuration. For its own AMIs,
// EKS adds user data in MIME multi-part format.
func (l *loader) checkGroupImage(o, group *object, p Pool) {
	const config = "spec.template.spec.bootstrap"
	spec := &p.Managed.Spec
	machine := asPoolMachine(group.name, spec.AWSLaunchTemplate, nil).Spec
	if OwnImage(p.Managed) {
		l.checkNodeImage(group, "spec.awsLaunchTemplate", machine, p.Bootstrap.EKS != nil, p.Bootstrap.Nodeadm != nil)
		if secret := p.Object.Spec.Template.Spec.Bootstrap.DataSecretName; p.Bootstrap == (Bootstrap{}) && (secret == nil || *secret == "") {
			l.warn(o.problem(config, "for custom AMIs EKS adds no user data, and none is set: the node joins only if the AMI does that by itself", "use a NodeadmConfig"))
		}
		return
	}
	if machine.AMI.EKSOptimizedLookupType != nil || machine.ImageLookupFormat+machine.ImageLookupOrg+machine.ImageLookupBaseOS != "" {
		l.fail(group.problem("spec.awsLaunchTemplate", "EKS selects the AMI by amiType; no AMI is looked up", "remove ami.eksLookupType and imageLookup*, or set amiType: CUSTOM"))
	}
	switch {
	case p.Bootstrap.EKS != nil:
		l.fail(o.problem(config+".configRef", "for its own AMIs, EKS does not accept the script of an EKSConfig", "use a NodeadmConfig, or a custom AMI (awsLaunchTemplate.ami.id)"))
	case p.Bootstrap.Nodeadm != nil && spec.AMIType != nil && !strings.HasPrefix(string(*spec.AMIType), "AL2023_"):
		l.fail(group.problem("spec.amiType", fmt.Sprintf("AMIs of the type %s have no nodeadm", *spec.AMIType), "set it, for example to AL2023_x86_64_STANDARD"))
	}
}

// checkGroupTemplate rejects settings of a launch template that EKS does not accept for a
// node group.
func (l *loader) checkGroupTemplate(group *object, spec *expinfrav1.AWSManagedMachinePoolSpec) {
	const path = "spec.awsLaunchTemplate"
	t := spec.AWSLaunchTemplate
	l.checkTemplateName(group, l.cluster.EKS.ControlPlane.Name+"-"+group.name)
	l.checkMetadata(group, path, asPoolMachine(group.name, t, nil).Spec)
	if t.IamInstanceProfile != "" {
		l.fail(group.problem(path+".iamInstanceProfile", "EKS creates the instance profile of a node group", "remove it, and set roleName"))
	}
	if t.SpotMarketOptions != nil || t.MarketType == infrav1.MarketTypeSpot {
		l.fail(group.problem(path+".spotMarketOptions", "EKS does not accept launch templates with spot instances", "set capacityType: spot"))
	}
	if t.MarketType == infrav1.MarketTypeCapacityBlock {
		l.fail(group.problem(path+".marketType", "Cluster API Provider AWS does not support capacity blocks for node groups", "use an AWSMachinePool"))
	}
	if spec.RemoteAccess != nil {
		l.fail(group.problem("spec.remoteAccess", "EKS does not accept remoteAccess together with a launch template", "use sshKeyName and additionalSecurityGroups of awsLaunchTemplate"))
	}
	if spec.AMIVersion != nil && (t.AMI.ID != nil || spec.AMIType != nil && *spec.AMIType == expinfrav1.Custom) {
		l.fail(group.problem("spec.amiVersion", "the launch template has a custom AMI, which has no version in EKS", "remove it"))
	}
}

// checkLabels rejects labels that EKS or the kubelet does not accept.
func (l *loader) checkLabels(group *object, labels map[string]string) {
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		path := "spec.labels." + key
		domain, _, prefixed := strings.Cut(key, "/")
		switch {
		case len(validation.IsQualifiedName(key)) > 0:
			l.fail(group.problem(path, "is not a label: "+validation.IsQualifiedName(key)[0], "change the key"))
		case prefixed && isReserved(domain):
			l.fail(group.problem(path, "nodes may not set their own labels with the prefix "+domain, "choose another prefix, or label the nodes with kubectl"))
		}
		if bad := validation.IsValidLabelValue(labels[key]); len(bad) > 0 {
			l.fail(group.problem(path, fmt.Sprintf("%q is not the value of a label: %s", labels[key], bad[0]), "change the value"))
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

func (l *loader) checkTaints(group *object, taints expinfrav1.Taints) {
	if len(taints) > mostTaints {
		l.fail(group.problem("spec.taints", fmt.Sprintf("a node group has at most %d taints, this one has %d", mostTaints, len(taints)), "remove some"))
	}
	seen := map[string]bool{}
	for i, t := range taints {
		path := fmt.Sprintf("spec.taints[%d]", i)
		if bad := validation.IsQualifiedName(t.Key); len(bad) > 0 {
			l.fail(group.problem(path+".key", fmt.Sprintf("%q is not the key of a taint: %s", t.Key, bad[0]), "change the key"))
		}
		if bad := validation.IsValidLabelValue(t.Value); len(bad) > 0 {
			l.fail(group.problem(path+".value", fmt.Sprintf("%q is not the value of a taint: %s", t.Value, bad[0]), "change the value"))
		}
		if key := t.Key + " " + string(t.Effect); seen[key] {
			l.fail(group.problem(path, fmt.Sprintf("duplicate taint %s with the effect %s", t.Key, t.Effect), "remove one of them"))
		} else {
			seen[key] = true
		}
	}
}

// checkNodeImage compares the AMI of an EKS node with its bootstrap configuration: only
// Amazon Linux 2 has bootstrap.sh, and only Amazon Linux 2023 has nodeadm.
func (l *loader) checkNodeImage(o *object, path string, spec infrav1.AWSMachineSpec, script, nodeadm bool) {
	if spec.Ignition != nil {
		ignition := strings.TrimSuffix(path, ".awsLaunchTemplate") + ".ignition"
		l.fail(o.problem(ignition, "Ignition is for self-managed clusters", "remove it"))
	}
	if l.ownImage(spec) {
		return
	}
	kind := infrav1.AmazonLinux
	if t := spec.AMI.EKSOptimizedLookupType; t != nil {
		kind = *t
	}
	old := kind == infrav1.AmazonLinux || kind == infrav1.AmazonLinuxGPU
	path += ".ami.eksLookupType"
	switch version, without := l.withoutAL2(); {
	case old && without:
		l.fail(o.problem(path, fmt.Sprintf("EKS has no Amazon Linux 2 AMIs (%s) for %s", kind, version), "set it to AmazonLinux2023"))
	case old && nodeadm:
		l.fail(o.problem(path, fmt.Sprintf("Amazon Linux 2 AMIs (%s) have no nodeadm", kind), "set it to AmazonLinux2023, or use an EKSConfig"))
	case !old && script:
		l.fail(o.problem(path, fmt.Sprintf("Amazon Linux 2023 AMIs (%s) have no bootstrap.sh, which EKSConfig calls", kind), "use a NodeadmConfig"))
	}
}

// ownImage reports whether a machine uses an AMI that is not from EKS.
func (l *loader) ownImage(spec infrav1.AWSMachineSpec) bool {
	plane := l.cluster.Infra
	return plane == nil || spec.AMI.ID != nil || spec.ImageLookupOrg+spec.ImageLookupFormat+spec.ImageLookupBaseOS != "" ||
		plane.Spec.ImageLookupOrg+plane.Spec.ImageLookupFormat+plane.Spec.ImageLookupBaseOS != ""
}

// checkBootstrap checks that the Secrets in the bootstrap configuration of a pool exist.
func (l *loader) checkBootstrap(b Bootstrap) {
	switch {
	case b.Kubeadm != nil:
		l.checkFiles(l.lookup(kindConfig, b.Kubeadm.Name), "spec", &b.Kubeadm.Spec)
	case b.EKS != nil:
		l.checkNodeFiles(l.lookup(kindEKSConfig, b.EKS.Name), "spec", b.EKS.Spec.Files, b.EKS.Spec.Users)
	case b.Nodeadm != nil:
		l.checkNodeFiles(l.lookup(kindNodeadm, b.Nodeadm.Name), "spec", b.Nodeadm.Spec.Files, b.Nodeadm.Spec.Users)
	}
}

// checkDeploymentOfEKS applies the rules for a MachineDeployment whose machines join an
// EKS cluster.
func (l *loader) checkDeploymentOfEKS(d Deployment) {
	if d.Template != nil {
		o := l.lookup(kindAWSMachineTemplate, d.Template.Name)
		l.checkNodeImage(o, "spec.template.spec", d.Template.Spec.Template.Spec, d.EKSBootstrap != nil, d.NodeadmBootstrap != nil)
	}
	if c := d.EKSBootstrap; c != nil {
		l.checkNodeFiles(l.lookup(kindEKSConfigTemplate, c.Name), "spec.template.spec", c.Spec.Template.Spec.Files, c.Spec.Template.Spec.Users)
	}
	if c := d.NodeadmBootstrap; c != nil {
		l.checkNodeFiles(l.lookup(kindNodeadmTemplate, c.Name), "spec.template.spec", c.Spec.Template.Spec.Files, c.Spec.Template.Spec.Users)
	}
}

// checkMachineOfEKS does the same for a stand-alone Machine.
func (l *loader) checkMachineOfEKS(m Machine) {
	if m.Infra != nil {
		l.checkNodeImage(l.lookup(kindAWSMachine, m.Infra.Name), "spec", m.Infra.Spec, m.EKSBootstrap != nil, m.NodeadmBootstrap != nil)
	}
	l.checkBootstrap(Bootstrap{EKS: m.EKSBootstrap, Nodeadm: m.NodeadmBootstrap})
}

// checkNodeFiles is checkFiles for nodes of EKS.
func (l *loader) checkNodeFiles(o *object, path string, files []eksbootstrapv1.File, users []eksbootstrapv1.User) {
	for i, f := range files {
		if f.ContentFrom != nil {
			l.secretKey(o, fmt.Sprintf("%s.files[%d].contentFrom.secret", path, i), f.ContentFrom.Secret.Name, f.ContentFrom.Secret.Key)
		}
	}
	for i, u := range users {
		if u.PasswdFrom != nil {
			l.secretKey(o, fmt.Sprintf("%s.users[%d].passwdFrom.secret", path, i), u.PasswdFrom.Secret.Name, u.PasswdFrom.Secret.Key)
		}
	}
}
