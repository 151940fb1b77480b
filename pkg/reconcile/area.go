package reconcile

import (
	"cmp"
	"slices"
	"strings"
	"sync"

	"github.com/clusterawsadm/clusterawsadm/pkg/plan"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/kind"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/bootdata"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/incluster"
)

// Area is a part of a cluster: output is grouped by it.
type Area string

// The areas, in the order in which a cluster is created.
const (
	AreaPrerequisites = Area(kind.AreaPrerequisites)
	AreaNetwork       = Area(kind.AreaNetwork)
	AreaSecurity      = Area(kind.AreaSecurity)
	AreaLoadBalancer  = Area(kind.AreaLoadBalancer)
	AreaControlPlane  = Area(kind.AreaControlPlane)
	AreaWorkers       = Area(kind.AreaWorkers)
	AreaKubernetes    = Area(kind.AreaKubernetes)
	AreaOther         = Area("other") // of kinds from a newer version
)

// areaOfKind returns the area of each kind, by its name.
//
//nolint:gochecknoglobals // computed once from declarations, and never changed
var areaOfKind = sync.OnceValue(func() map[string]kind.Area {
	areas := map[string]kind.Area{}
	for _, k := range slices.Concat(aws.Kinds(), bootdata.Kinds(), incluster.Kinds()) {
		areas[k.Name] = k.Area
	}
	return areas
})

// AreaOf returns the area of a resource, which its kind declares. The area of a machine
// follows from its origin or, if that is "", from the name of its group.
func AreaOf(id plan.ID, origin string) Area {
	area := areaOfKind()[id.Unretired().Kind()]
	if area == kind.AreaMachines {
		return machineArea(id, origin)
	}
	return cmp.Or(Area(area), AreaOther)
}

func machineArea(id plan.ID, origin string) Area {
	switch {
	case strings.Contains(origin, "KubeadmControlPlane/"):
		return AreaControlPlane
	case strings.Contains(origin, "MachineDeployment/"):
		return AreaWorkers
	}
	for word := range strings.SplitSeq(string(id), "/") {
		if strings.HasPrefix(word, "control-plane") || strings.HasSuffix(word, "control-plane") {
			return AreaControlPlane
		}
	}
	return AreaWorkers
}
