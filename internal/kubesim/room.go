package kubesim

import (
	"fmt"

	quantity "k8s.io/apimachinery/pkg/api/resource"
)

// room is what a Node has for pods: its capacity without what the kernel uses (about three percent of the memory) and without the 100 MiB that the
// kubelet keeps free (evictionHard, memory.available: "Kubelet Configuration (v1beta1)").
func (m *Machine) room() Object {
	out := Object{"pods": fmt.Sprint(m.maxPods())}
	if m.CPUs > 0 {
		out["cpu"], out["memory"] = fmt.Sprint(m.CPUs), fmt.Sprintf("%dMi", m.MemoryMiB*97/100-100)
	}
	return out
}

func (m *Machine) maxPods() int {
	if m.MaxPods == 0 {
		return mostPods
	}
	return m.MaxPods
}

// lacks returns the resource that a Node has not enough of for a pod, as the kube-scheduler names it; "" if the pod fits on the empty Node
// (NodeResourcesFit, pkg/scheduler/framework/plugins/noderesources/fit.go of Kubernetes v1.34.2). Pods do not take room from each other here,
// and only the processors and the memory of a Node are known.
func lacks(node, pod Object) string {
	for _, name := range []string{"cpu", "memory"} {
		has, known := value(node, "status", "allocatable", name).(string)
		if !known {
			continue
		}
		all := quantity.MustParse(has)
		var sum, largest quantity.Quantity
		for _, c := range list(pod, "spec", "containers") {
			sum.Add(requested(c, name))
		}
		for _, c := range list(pod, "spec", "initContainers") {
			if q := requested(c, name); text(c, "restartPolicy") == "Always" {
				sum.Add(q)
			} else if q.Cmp(largest) > 0 {
				largest = q
			}
		}
		if sum.Cmp(all) > 0 || largest.Cmp(all) > 0 {
			return name
		}
	}
	return ""
}

// requested returns the request of a container. Without one, it is the limit.
func requested(container Object, name string) quantity.Quantity {
	for _, kind := range []string{"requests", "limits"} {
		if v := value(container, "resources", kind, name); v != nil {
			if q, err := quantity.ParseQuantity(fmt.Sprint(v)); err == nil {
				return q
			}
		}
	}
	return quantity.Quantity{}
}
