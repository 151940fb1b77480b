package rules

import (
	"fmt"
	"strings"

	infrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/api/v1beta2"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
)

// checkNodeImage compares the AMI of an EKS node with its bootstrap configuration: only
// Amazon Linux 2 has bootstrap.sh, and only Amazon Linux 2023 has nodeadm.
func (c *checks) checkNodeImage(o *manifest.Entry, path string, spec infrav1.AWSMachineSpec, script, nodeadm bool) {
	if spec.Ignition != nil {
		ignition := strings.TrimSuffix(path, ".awsLaunchTemplate") + ".ignition"
		c.fail(o.Problem(ignition, "Ignition is for self-managed clusters", "remove it"))
	}
	if c.ownImage(spec) {
		c.checkSearchedNode(o, path, &spec, script, nodeadm)
		return
	}
	kind := infrav1.AmazonLinux
	if t := spec.AMI.EKSOptimizedLookupType; t != nil {
		kind = *t
	}
	old := kind == infrav1.AmazonLinux || kind == infrav1.AmazonLinuxGPU
	successor := infrav1.AmazonLinux2023
	if kind == infrav1.AmazonLinuxGPU {
		successor = infrav1.AmazonLinux2023GPU
	}
	path += ".ami.eksLookupType"
	switch version, without := c.withoutAL2(); {
	case old && without && script: // the AMIs of Amazon Linux 2023 do not read an EKSConfig
		c.fail(o.Problem(
			path, fmt.Sprintf("EKS has no Amazon Linux 2 AMIs (%s) for %s", kind, version),
			fmt.Sprintf("set it to %s, and use a NodeadmConfig instead of the EKSConfig", successor),
		))
	case old && without:
		c.fail(o.Problem(path, fmt.Sprintf("EKS has no Amazon Linux 2 AMIs (%s) for %s", kind, version), fmt.Sprintf("set it to %s", successor)))
	case old && nodeadm:
		c.fail(o.Problem(path, fmt.Sprintf("Amazon Linux 2 AMIs (%s) have no nodeadm", kind), fmt.Sprintf("set it to %s, or use an EKSConfig", successor)))
	case !old && script:
		c.fail(o.Problem(path, fmt.Sprintf("Amazon Linux 2023 AMIs (%s) have no bootstrap.sh, which EKSConfig calls", kind), "use a NodeadmConfig"))
	}
}

// ownImage reports whether a machine uses an AMI that is not from EKS.
func (c *checks) ownImage(spec infrav1.AWSMachineSpec) bool {
	plane := c.cluster.Infra
	return plane == nil || spec.AMI.ID != nil || spec.ImageLookupOrg+spec.ImageLookupFormat+spec.ImageLookupBaseOS != "" ||
		plane.Spec.ImageLookupOrg+plane.Spec.ImageLookupFormat+plane.Spec.ImageLookupBaseOS != ""
}

// checkDeploymentOfEKS applies the rules for a MachineDeployment whose machines join an
// EKS cluster.
func (c *checks) checkDeploymentOfEKS(d manifest.Deployment) {
	if d.Template != nil {
		o := c.lookup(manifest.KindAWSMachineTemplate, d.Template.Name)
		c.checkNodeImage(o, "spec.template.spec", d.Template.Spec.Template.Spec, d.EKSBootstrap != nil, d.NodeadmBootstrap != nil)
	}
}

// checkMachineOfEKS does the same for a stand-alone Machine.
func (c *checks) checkMachineOfEKS(m manifest.Machine) {
	if m.Infra != nil {
		c.checkNodeImage(c.lookup(manifest.KindAWSMachine, m.Infra.Name), "spec", m.Infra.Spec, m.EKSBootstrap != nil, m.NodeadmBootstrap != nil)
	}
}
