package rules

import (
	"fmt"
	"path"
	"slices"

	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/boot"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
)

// checkIgnitionConfig checks what Ignition does before it starts systemd: one error in its configuration, and the machine stays in emergency mode.
// Only Flatcar reads the version of the configuration that Cluster API writes, and Flatcar mounts /usr read-only ("Flatcar disk partitions" in its
// documentation).
func (c *checks) checkIgnitionConfig(o *manifest.Entry, prefix string, spec *bootstrapv1.KubeadmConfigSpec) {
	if spec.Format != bootstrapv1.Ignition {
		return
	}
	config := boot.ReadIgnition(spec)
	for _, p := range config.Problems {
		c.failFirst(o.Problem(prefix+"."+p.Field, "Ignition refuses it: "+p.What, "correct it"))
	}
	for _, n := range config.Nodes {
		at, in, owner := prefix+"."+n.Field, "", prefix+"."+n.Field
		if n.In != "" {
			in = n.In + ": "
		} else {
			at, owner = at+".path", at+".owner"
		}
		if file := path.Clean(n.Path); isInside(file, "/usr") {
			c.failFirst(o.Problem(at, fmt.Sprintf("%sIgnition could not write %s: Flatcar mounts /usr read-only", in, file), "write to /opt or /etc"))
		}
		for _, account := range []struct{ kind, name string }{{"user", n.User}, {"group", n.Group}} {
			kind, name := account.kind, account.name
			switch {
			case name == "", slices.Contains(config.Accounts, name), slices.Contains(imageAccounts(), name), slices.Contains(flatcarAccounts(), name):
			default:
				c.failFirstWarning(
					o.Problem(owner, fmt.Sprintf("%sIgnition could not write %s: there is no %s %s, unless the image has it", in, n.Path, kind, name), "write root:root"),
				)
			}
		}
	}
}

// flatcarAccounts lists users and groups of Flatcar that Debian and Red Hat do not have (baselayout in https://github.com/flatcar).
func flatcarAccounts() []string {
	return []string{"core", "docker", "etcd", "ntp", "dhcp", "wheel", "portage", "cdrw", "usb", "users", "sgx", "systemd-bus-proxy"}
}
