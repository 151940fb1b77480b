package manifest

import (
	"fmt"
	"strings"

	infrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/api/v1beta2"
	eksbootstrapv1 "sigs.k8s.io/cluster-api-provider-aws/v2/bootstrap/eks/api/v1beta2"
)

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
