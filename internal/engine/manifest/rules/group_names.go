package rules

import (
	"fmt"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
)

// checkGroupNames reports a MachineDeployment with the name of the control plane: the identity tag of a machine has the
// name of its group, and does not say which of the two it is.
func (c *checks) checkGroupNames() {
	cp := c.cluster.ControlPlane
	if cp == nil {
		return
	}
	for _, d := range c.cluster.Deployments {
		if o := c.lookup(manifest.KindDeployment, d.Object.Name); d.Object.Name == cp.Object.Name {
			c.fail(o.Problem(
				"metadata.name", fmt.Sprintf("%s is also the name of the KubeadmControlPlane, and machines are named after their group", o.Name), "choose another name",
			))
		}
	}
}
