package render

import (
	"slices"
	"strings"

	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
	"github.com/clusterawsadm/clusterawsadm/pkg/reconcile"
)

// Areas lists the areas in the order in which they are shown.
func Areas() []plan.Area {
	return []plan.Area{
		plan.AreaPrerequisites, plan.AreaNetwork, plan.AreaSecurity, plan.AreaLoadBalancer,
		plan.AreaControlPlane, plan.AreaWorkers, plan.AreaKubernetes, plan.AreaOther,
	}
}

// GroupOf returns the common prefix of the IDs of machines and Nodes of one group:
// "machine/md-0" of "machine/md-0/17", and "retired/machine/md-0" of
// "retired/machine/md-0/17/i-0123". It is "" for a resource that is not one of many.
func GroupOf(id plan.ID) string {
	words := strings.Split(string(id), "/")
	last, retired := 1, id.Unretired() != id
	if retired {
		last = 2
	}
	if !retired && !slices.Contains([]string{reconcile.KindMachine, reconcile.KindNode}, id.Kind()) || len(words) < last+2 {
		return ""
	}
	return strings.Join(words[:len(words)-last], "/")
}
