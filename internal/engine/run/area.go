package run

import (
	"cmp"
	"slices"
	"strings"
	"sync"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/kind"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/bootdata"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/incluster"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// kindsByName returns all kinds, by their names.
//
//nolint:gochecknoglobals // computed once from declarations, and never changed
var kindsByName = sync.OnceValue(func() map[string]kind.Kind {
	all := map[string]kind.Kind{}
	for _, k := range slices.Concat(aws.Kinds(), bootdata.Kinds(), incluster.Kinds()) {
		all[k.Name] = *k
	}
	return all
})

// AreaOf returns the area of a resource, which its kind declares. The area of a machine
// follows from its origin or, if that is "", from the name of its group.
func AreaOf(id plan.ID, origin string) plan.Area {
	area := kindsByName()[id.Unretired().Kind()].Area
	if area == kind.AreaMachines {
		return machineArea(id, origin)
	}
	return cmp.Or(area, plan.AreaOther)
}

// setAreas sets the areas of the steps of a plan.
func setAreas(steps []plan.Step) {
	for i, s := range steps {
		steps[i].Area = AreaOf(s.Resource, s.Origin)
	}
}

func machineArea(id plan.ID, origin string) plan.Area {
	switch {
	case strings.Contains(origin, "KubeadmControlPlane/"):
		return plan.AreaControlPlane
	case strings.Contains(origin, "MachineDeployment/"):
		return plan.AreaWorkers
	}
	for word := range strings.SplitSeq(string(id), "/") {
		if strings.HasPrefix(word, "control-plane") || strings.HasSuffix(word, "control-plane") {
			return plan.AreaControlPlane
		}
	}
	return plan.AreaWorkers
}
