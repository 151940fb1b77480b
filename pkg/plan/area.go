package plan

// Area is a part of a cluster: output is grouped by it.
type Area string

// The areas, in the order in which a cluster is created.
const (
	AreaPrerequisites Area = "prerequisites"
	AreaNetwork       Area = "network"
	AreaSecurity      Area = "security"
	AreaLoadBalancer  Area = "load balancer"
	AreaControlPlane  Area = "control plane"
	AreaWorkers       Area = "workers"
	AreaKubernetes    Area = "kubernetes"
	AreaOther         Area = "other" // of kinds from a newer version
)
