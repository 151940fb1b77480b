package rules

import (
	"fmt"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
)

// mostMachines is the number of Nodes that Kubernetes supports in one cluster: see
// "Considerations for large clusters" in its documentation.
const mostMachines = 5000

// checkSize rejects more machines than Kubernetes supports. Those of pools do not count:
// they are not listed one by one in a plan, and quotas of AWS limit them.
func (c *checks) checkSize() {
	total, most, largest := int64(len(c.cluster.Machines)), int64(0), (*manifest.Entry)(nil)
	add := func(kind, name string, replicas int) {
		n := int64(replicas)
		if total += n; n > most {
			most, largest = n, c.lookup(kind, name)
		}
	}
	if p := c.cluster.ControlPlane; p != nil {
		add(manifest.KindControlPlane, p.Object.Name, p.Replicas())
	}
	for _, d := range c.cluster.Deployments {
		add(manifest.KindDeployment, d.Object.Name, d.Replicas())
	}
	if total > mostMachines && largest != nil {
		c.fail(largest.Problem("spec.replicas", fmt.Sprintf("the cluster would have %d machines, but Kubernetes supports up to %d Nodes", total, mostMachines),
			"reduce the number of machines"))
	}
}
