package rules

import (
	"cmp"
	"fmt"
	"strings"

	infrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/api/v1beta2"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/internal/regex"
)

// The default base OS and format of CAPA's image lookup (DefaultAmiNameFormat and defaultMachineAMILookupBaseOS in pkg/cloud/services/ec2/ami.go
// of CAPA).
const (
	usualBase   = "ubuntu-24.04"
	usualFormat = "capa-ami-{{.BaseOS}}-?{{.K8sVersion}}-*"
)

// searched is an image that CAPA looks up by its name.
type searched struct {
	base     string // the base OS, if it is a part of the name
	format   string
	upstream bool // of the account that publishes the images of Cluster API, with their usual names
}

// searchedImage returns the name pattern with which CAPA looks up the image of a machine. is is false if the image is not looked up by name.
func (c *checks) searchedImage(spec *infrav1.AWSMachineSpec) (x searched, is bool) {
	if c.cluster.Infra == nil || manifest.Deref(spec.AMI.ID) != "" {
		return x, false
	}
	all := &c.cluster.Infra.Spec
	org, base, format := cmp.Or(spec.ImageLookupOrg, all.ImageLookupOrg), cmp.Or(spec.ImageLookupBaseOS, all.ImageLookupBaseOS),
		cmp.Or(spec.ImageLookupFormat, all.ImageLookupFormat)
	if c.managed && org+base+format == "" { // an image of EKS
		return x, false
	}
	x.format, x.upstream = cmp.Or(format, usualFormat), org+format == ""
	if strings.Contains(x.format, ".BaseOS") {
		x.base = cmp.Or(base, usualBase)
	}
	return x, true
}

// Operating systems whose images read Ignition configurations, and those whose images have cloud-init (images/capi/packer/ami of
// https://github.com/kubernetes-sigs/image-builder). Flatcar reads user data of cloud-init with coreos-cloudinit, which knows no commands
// (config/config.go of https://github.com/flatcar/coreos-cloudinit), so that kubeadm does not run. cloud-init does not read Ignition
// configurations ("User data formats" in its documentation).
const (
	readIgnition = `flatcar|coreos|rhcos`
	haveInit     = `ubuntu|debian|rhel|rocky|centos|amazon-?2|amazon-linux|al2023|amzn`
)

// usesIgnition reports whether an image name contains the name of an operating system that reads Ignition configurations, or of one that has
// cloud-init. Both results are false if the name contains neither or both.
func usesIgnition(name string) (ignition, cloudInit bool) {
	has := func(systems string) bool {
		return regex.Of(`(^|[^a-z])(` + systems + `)`).MatchString(strings.ToLower(name))
	}
	ignition, cloudInit = has(readIgnition), has(haveInit)
	return ignition && !cloudInit, cloudInit && !ignition
}

// checkImageFormat checks that the image of a machine can read the format of its boot data. It refuses a wrong base OS. Other text in
// imageLookupFormat may be a part of any name, so it only warns.
func (c *checks) checkImageFormat(o *manifest.Entry, path string, format bootstrapv1.Format, spec *infrav1.AWSMachineSpec) {
	x, is := c.searchedImage(spec)
	if c.searchesWindows(o, path, spec) || !is {
		return
	}
	report, name := c.fail, x.base
	ignition, cloudInit := usesIgnition(name)
	if !ignition && !cloudInit {
		report, name = c.warn, strings.ReplaceAll(x.format, "{{.BaseOS}}", "")
		ignition, cloudInit = usesIgnition(name)
	}
	switch {
	case ignition && format != bootstrapv1.Ignition:
		report(o.Problem(
			path,
			fmt.Sprintf("images of %s run no commands of cloud-init, so that kubeadm does not run", name),
			"set format: ignition, or another imageLookupBaseOS",
		))
	case cloudInit && format == bootstrapv1.Ignition:
		report(o.Problem(
			path,
			fmt.Sprintf("images of %s have cloud-init, which does not read Ignition", name),
			"remove format: ignition, or set imageLookupBaseOS: flatcar-stable",
		))
	}
}

// checkSearchedNode checks that the image of an EKS node, if it is looked up by name, has the program that the bootstrap configuration uses:
// bootstrap.sh or nodeadm. The images of Cluster API have neither.
func (c *checks) checkSearchedNode(o *manifest.Entry, path string, spec *infrav1.AWSMachineSpec, script, nodeadm bool) {
	x, is := c.searchedImage(spec)
	if (script || nodeadm) && c.searchesWindows(o, path+".imageLookupBaseOS", spec) || !is {
		return
	}
	if spec.AMI.EKSOptimizedLookupType != nil {
		c.warn(o.Problem(path+".ami.eksLookupType", "has no effect together with imageLookup…: the image is looked up by its name", "remove one of them"))
	}
	program, config := "nodeadm", "NodeadmConfig"
	if script {
		program, config = "bootstrap.sh", "EKSConfig"
	}
	at := path + ".imageLookupBaseOS"
	if spec.ImageLookupBaseOS == "" {
		at = path + ".ami"
	}
	ignition, cloudInit := usesIgnition(x.base)
	switch {
	case !script && !nodeadm:
	case x.upstream:
		c.fail(o.Problem(
			at,
			fmt.Sprintf("the images of Cluster API (%s) have no %s, which %s uses", x.base, program, config),
			"remove imageLookup…: EKS has images of its own",
		))
	case nodeadm && (ignition || cloudInit && strings.Contains(x.base, "ubuntu")):
		c.warn(o.Problem(at, fmt.Sprintf("images of %s have no nodeadm, unless you have added it", x.base), "use an image of Amazon Linux 2023"))
	}
}
