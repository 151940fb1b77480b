package render

import "github.com/clusterawsadm/clusterawsadm/pkg/plan"

// Areas lists the areas in the order in which they are shown.
func Areas() []plan.Area {
	return []plan.Area{
		plan.AreaPrerequisites, plan.AreaNetwork, plan.AreaSecurity, plan.AreaLoadBalancer,
		plan.AreaControlPlane, plan.AreaWorkers, plan.AreaKubernetes, plan.AreaOther,
	}
}
