package incluster

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/component-helpers/resource"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/ec2"
)

// What every instance type that Cluster API can use has: pods that ask for less are not compared with the types of the machines.
const (
	smallCPU    = 1    // processors
	smallMemory = 1024 // MiB
)

// request is what a pod asks of its Node.
type request struct {
	of     AddonObject
	cpu    float64 // processors
	memory int64   // MiB
}

// fits reports whether an empty machine of a type has as much. The kernel uses a part of the memory, so that the whole of it is too much.
func (r request) fits(t ec2.InstanceType) bool {
	return r.cpu <= float64(t.VCPUs) && r.memory < t.MemoryMiB
}

// Doubts implements graph.Doubted. The kube-scheduler never places a pod that asks for more than any machine has (NodeResourcesFit in
// pkg/scheduler/framework/plugins/noderesources of Kubernetes), and the run waits for it.
func (w *Workloads) Doubts(ctx context.Context, c *cloud.Clients) (warnings []string, err error) {
	asked := w.largeRequests()
	if len(asked) == 0 || len(w.Types) == 0 {
		return nil, nil
	}
	found, err := ec2.InstanceTypes(ctx, c, w.Types)
	if err != nil {
		return nil, err
	}
	var types []ec2.InstanceType
	for _, name := range w.Types {
		t := found[name]
		if t.VCPUs == 0 || t.MemoryMiB == 0 {
			return nil, nil // not known
		}
		types = append(types, t)
	}
	for _, r := range asked {
		if slices.ContainsFunc(types, r.fits) {
			continue
		}
		largest := slices.MaxFunc(w.Types, func(a, b string) int {
			return cmp.Or(cmp.Compare(found[a].VCPUs, found[b].VCPUs), cmp.Compare(found[a].MemoryMiB, found[b].MemoryMiB), cmp.Compare(b, a))
		})
		warnings = append(warnings, fmt.Sprintf(
			"no machine of the manifest has room for a pod of %s (%s), for which the run waits: it requests %g CPU and %d MiB of memory, and a %s has %d CPUs and %d MiB: "+
				"lower resources.requests, or use a larger instance type",
			r.of.Title,
			r.of.Origin,
			r.cpu,
			r.memory,
			largest,
			found[largest].VCPUs,
			found[largest].MemoryMiB,
		))
	}
	return warnings, nil
}

// largeRequests returns what pods request, if it is much.
func (w *Workloads) largeRequests() (all []request) {
	for _, o := range w.Objects {
		pod, is := o.pod()
		if !is {
			continue
		}
		sum := resource.PodRequests(pod, resource.PodResourcesOptions{})
		r := request{of: o, cpu: sum.Cpu().AsApproximateFloat64(), memory: sum.Memory().Value() >> 20}
		if r.cpu > smallCPU || r.memory > smallMemory {
			all = append(all, r)
		}
	}
	return all
}

// pod returns a pod of a workload, with the requests that the API server sets by default: the limits (SetDefaults_Pod in
// pkg/apis/core/v1/defaults.go of Kubernetes).
func (o AddonObject) pod() (*corev1.Pod, bool) {
	template := o.Object
	if o.kind() != "Pod" {
		spec, _ := o.Object["spec"].(map[string]any)
		template, _ = spec["template"].(map[string]any)
	}
	var pod corev1.Pod
	if template["spec"] == nil || runtime.DefaultUnstructuredConverter.FromUnstructured(map[string]any{"spec": template["spec"]}, &pod) != nil {
		return nil, false
	}
	for _, containers := range [][]corev1.Container{pod.Spec.Containers, pod.Spec.InitContainers} {
		for i := range containers {
			r := &containers[i].Resources
			for name, limit := range r.Limits {
				if _, given := r.Requests[name]; !given {
					if r.Requests == nil {
						r.Requests = corev1.ResourceList{}
					}
					r.Requests[name] = limit
				}
			}
		}
	}
	return &pod, true
}
