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

// Limits of AWS for pools.
const (
	shortestTemplate, longestTemplate = 3, 128 // characters of a launch template's name
	mostTaints                        = 50     // of a node group
)

// checkPools checks the MachinePools. Without the control plane little can be
// said of those in EKS.
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
			l.fail(o.problem("spec.template.spec.infrastructureRef.name", fmt.Sprintf("%s uses %s/%s already", other, ref.Kind, ref.Name), "give each pool its own"))
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

// checkRange makes sure that the machines wanted are as many as there may be.
// Who leaves the number to an autoscaler need not care.
func (l *loader) checkRange(o *object, p Pool, least, most *int32) {
	if _, delegated := p.Object.Annotations[clusterv1.ReplicasManagedByAnnotation]; delegated {
		return
	}
	n := int32(p.Replicas()) //nolint:gosec // it was one
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
		l.fail(group.problem("spec.awsLaunchTemplate.instanceType", "nothing says what type the machines are of", "set it, or mixedInstancesPolicy.overrides"))
	}
	if c := p.Bootstrap.Kubeadm; c != nil {
		l.checkPoolIgnition(l.lookup(kindConfig, c.Name), c.Spec.Format, machine)
	}
	if l.managed {
		l.checkNodeImage(group, "spec.awsLaunchTemplate", machine.Spec, p.Bootstrap.EKS != nil, p.Bootstrap.Nodeadm != nil)
		if t.IamInstanceProfile == "" {
			l.warn(group.problem("spec.awsLaunchTemplate.iamInstanceProfile", "without an instance profile the machines cannot join: they have no credentials to talk to EKS", "set it, for example to nodes.cluster-api-provider-aws.sigs.k8s.io"))
		}
	}
}

// checkPoolIgnition is checkIgnition for a pool, whose user data holds all of
// it unless a bucket is asked for.
func (l *loader) checkPoolIgnition(config *object, format bootstrapv1.Format, machine *infrav1.AWSMachine) {
	if machine.Spec.Ignition == nil {
		machine.Spec.Ignition = &infrav1.Ignition{StorageType: infrav1.IgnitionStorageTypeOptionUnencryptedUserData}
		if format != bootstrapv1.Ignition {
			return
		}
	}
	l.checkIgnition(config, "spec.format", format, machine)
}

// checkTemplateName checks the name that a launch template gets.
func (l *loader) checkTemplateName(o *object, name string) {
	if n := len(name); n < shortestTemplate || n > longestTemplate {
		l.fail(o.problem("metadata.name", fmt.Sprintf("its launch template would be named %s, and such a name has %d to %d characters", name, shortestTemplate, longestTemplate), "choose another name"))
	}
}

// checkNodeGroup checks a node group of EKS.
func (l *loader) checkNodeGroup(o, group *object, p Pool) {
	spec := &p.Managed.Spec
	l.checkEKSName(group, "spec.eksNodegroupName", spec.EKSNodegroupName, longestGroup)
	l.checkRoleName(group, spec.RoleName)
	l.tellIdleRole(group, spec.RolePath, spec.RolePermissionsBoundary, len(spec.RoleAdditionalPolicies))
	if s := spec.Scaling; s != nil {
		l.checkRange(o, p, s.MinSize, s.MaxSize)
	}
	l.checkLabels(group, spec.Labels)
	l.checkTaints(group, spec.Taints)
	own := OwnImage(p.Managed)
	if version, without := l.withoutAL2(); without && !own && spec.AMIType != nil && strings.HasPrefix(string(*spec.AMIType), "AL2_") {
		l.fail(group.problem("spec.amiType", fmt.Sprintf("EKS has no images of Amazon Linux 2 (%s) for %s", *spec.AMIType, version), "set amiType, for example to AL2023_x86_64_STANDARD"))
	}
	if !own && spec.AMIType != nil && *spec.AMIType == expinfrav1.Custom {
		l.fail(group.problem("spec.amiType", "CUSTOM needs an AMI", "set awsLaunchTemplate.ami.id"))
	}
	if spec.AWSLaunchTemplate != nil {
		l.checkGroupTemplate(group, spec)
		l.checkGroupImage(o, group, p)
	}
}

// OwnImage tells whether the nodes of a node group boot from an image of its
// launch template: one that is named, or, of kind CUSTOM, looked up.
func OwnImage(m *expinfrav1.AWSManagedMachinePool) bool {
	t := m.Spec.AWSLaunchTemplate
	return t != nil && (t.AMI.ID != nil || m.Spec.AMIType != nil && *m.Spec.AMIType == expinfrav1.Custom)
}

// checkGroupImage compares what nodes boot from with what boots them. To what
// boots its own images EKS adds, which takes MIME multi-part.
func (l *loader) checkGroupImage(o, group *object, p Pool) {
	const config = "spec.template.spec.bootstrap"
	spec := &p.Managed.Spec
	machine := asPoolMachine(group.name, spec.AWSLaunchTemplate, nil).Spec
	if OwnImage(p.Managed) {
		l.checkNodeImage(group, "spec.awsLaunchTemplate", machine, p.Bootstrap.EKS != nil, p.Bootstrap.Nodeadm != nil)
		if secret := p.Object.Spec.Template.Spec.Bootstrap.DataSecretName; p.Bootstrap == (Bootstrap{}) && (secret == nil || *secret == "") {
			l.warn(o.problem(config, "EKS adds nothing to what a node with an AMI of yours boots with, and here is nothing: it joins only if the AMI does that by itself", "use a NodeadmConfig"))
		}
		return
	}
	if machine.AMI.EKSOptimizedLookupType != nil || machine.ImageLookupFormat+machine.ImageLookupOrg+machine.ImageLookupBaseOS != "" {
		l.fail(group.problem("spec.awsLaunchTemplate", "EKS chooses the AMI by amiType, and nothing is looked up", "remove ami.eksLookupType and imageLookup*, or set amiType: CUSTOM"))
	}
	switch {
	case p.Bootstrap.EKS != nil:
		l.fail(o.problem(config+".configRef", "EKS does not take the script of an EKSConfig for its own AMIs", "use a NodeadmConfig, or an AMI of your own (awsLaunchTemplate.ami.id)"))
	case p.Bootstrap.Nodeadm != nil && spec.AMIType != nil && !strings.HasPrefix(string(*spec.AMIType), "AL2023_"):
		l.fail(group.problem("spec.amiType", fmt.Sprintf("AMIs of the type %s have no nodeadm", *spec.AMIType), "set it, for example to AL2023_x86_64_STANDARD"))
	}
}

// checkGroupTemplate refuses what EKS does not take in the launch template of
// a node group.
func (l *loader) checkGroupTemplate(group *object, spec *expinfrav1.AWSManagedMachinePoolSpec) {
	const path = "spec.awsLaunchTemplate"
	t := spec.AWSLaunchTemplate
	l.checkTemplateName(group, l.cluster.EKS.ControlPlane.Name+"-"+group.name)
	l.checkMetadata(group, path, asPoolMachine(group.name, t, nil).Spec)
	if t.IamInstanceProfile != "" {
		l.fail(group.problem(path+".iamInstanceProfile", "EKS makes the instance profile of a node group", "remove it, and set roleName"))
	}
	if t.SpotMarketOptions != nil || t.MarketType == infrav1.MarketTypeSpot {
		l.fail(group.problem(path+".spotMarketOptions", "EKS takes no launch template that asks for spot instances", "set capacityType: spot"))
	}
	if t.MarketType == infrav1.MarketTypeCapacityBlock {
		l.fail(group.problem(path+".marketType", "node groups of Cluster API Provider AWS know no capacity blocks", "use an AWSMachinePool"))
	}
	if spec.RemoteAccess != nil {
		l.fail(group.problem("spec.remoteAccess", "EKS takes no remoteAccess beside a launch template", "use sshKeyName and additionalSecurityGroups of awsLaunchTemplate"))
	}
	if spec.AMIVersion != nil && (t.AMI.ID != nil || spec.AMIType != nil && *spec.AMIType == expinfrav1.Custom) {
		l.fail(group.problem("spec.amiVersion", "the launch template brings an AMI of its own, which has no version in EKS", "remove it"))
	}
}

// checkLabels refuses labels that EKS, or the kubelet, does not take.
func (l *loader) checkLabels(group *object, labels map[string]string) {
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		path := "spec.labels." + key
		domain, _, prefixed := strings.Cut(key, "/")
		switch {
		case len(validation.IsQualifiedName(key)) > 0:
			l.fail(group.problem(path, "is not a label: "+validation.IsQualifiedName(key)[0], "change the key"))
		case prefixed && isReserved(domain):
			l.fail(group.problem(path, "nodes may not give themselves labels of "+domain, "choose another prefix, or label the nodes with kubectl"))
		}
		if bad := validation.IsValidLabelValue(labels[key]); len(bad) > 0 {
			l.fail(group.problem(path, fmt.Sprintf("%q is not the value of a label: %s", labels[key], bad[0]), "change the value"))
		}
	}
}

// isReserved tells whether labels of a domain are not for nodes to set. EKS
// refuses some of them, and kubelets do not start with the others.
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
		l.fail(group.problem("spec.taints", fmt.Sprintf("a node group has at most %d taints, and this has %d", mostTaints, len(taints)), "remove some"))
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
			l.fail(group.problem(path, fmt.Sprintf("there is another taint %s with the effect %s", t.Key, t.Effect), "remove one of them"))
		} else {
			seen[key] = true
		}
	}
}

// checkNodeImage compares what a machine of EKS boots from with what boots it:
// bootstrap.sh is on Amazon Linux 2 only, and nodeadm on its successor.
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
		l.fail(o.problem(path, fmt.Sprintf("EKS has no images of Amazon Linux 2 (%s) for %s", kind, version), "set it to AmazonLinux2023"))
	case old && nodeadm:
		l.fail(o.problem(path, fmt.Sprintf("images of Amazon Linux 2 (%s) have no nodeadm", kind), "set it to AmazonLinux2023, or use an EKSConfig"))
	case !old && script:
		l.fail(o.problem(path, fmt.Sprintf("images of Amazon Linux 2023 (%s) have no bootstrap.sh, which EKSConfig calls", kind), "use a NodeadmConfig"))
	}
}

// ownImage tells whether a machine boots from another image than EKS's.
func (l *loader) ownImage(spec infrav1.AWSMachineSpec) bool {
	plane := l.cluster.Infra
	return plane == nil || spec.AMI.ID != nil || spec.ImageLookupOrg+spec.ImageLookupFormat+spec.ImageLookupBaseOS != "" ||
		plane.Spec.ImageLookupOrg+plane.Spec.ImageLookupFormat+plane.Spec.ImageLookupBaseOS != ""
}

// checkBootstrap makes sure that the Secrets are there that the configuration
// of a pool names.
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

// checkDeploymentOfEKS checks what is special about a MachineDeployment whose
// machines join EKS.
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

// checkMachineOfEKS is the same for a single Machine.
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
