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

// withoutWindows says why machines with Windows do not join: their boot data are scripts and files for Linux.
const withoutWindows = "machines boot with scripts for Linux, so that those with Windows do not join: " +
	"only managed node groups of EKS may have Windows (amiType WINDOWS_…)"

// searchesWindows refuses a machine whose image is to be one of Windows, and reports whether it is.
func (c *checks) searchesWindows(o *manifest.Entry, path string, spec *infrav1.AWSMachineSpec) bool {
	base := spec.ImageLookupBaseOS
	if c.cluster.Infra != nil && manifest.Deref(spec.AMI.ID) == "" {
		base = cmp.Or(base, c.cluster.Infra.Spec.ImageLookupBaseOS)
	}
	if !strings.HasPrefix(strings.ToLower(base), "windows") {
		return false
	}
	c.fail(o.Problem(path, fmt.Sprintf("imageLookupBaseOS of the machines is %s: %s", base, withoutWindows), "use an image of Linux"))
	return true
}

// checkWindowsConfig refuses a configuration that is for machines with Windows: the first sign of it.
func (c *checks) checkWindowsConfig(o *manifest.Entry, prefix string, spec *bootstrapv1.KubeadmConfigSpec) {
	report := func(path, what string) {
		c.fail(o.Problem(prefix+path, what+": "+withoutWindows, "use Linux, and remove it"))
	}
	drive, shell := regex.Of(`^[A-Za-z]:[\\/]`), regex.Of(`(?i)^\s*(powershell|pwsh|cmd)(\.exe)?\s|\.ps1\b`)
	for i, f := range spec.Files {
		if drive.MatchString(f.Path) {
			report(fmt.Sprintf(".files[%d].path", i), f.Path+" is a path of Windows")
			return
		}
	}
	for i, command := range spec.PreKubeadmCommands {
		if shell.MatchString(command) {
			report(fmt.Sprintf(".preKubeadmCommands[%d]", i), "the command is one of Windows")
			return
		}
	}
}
