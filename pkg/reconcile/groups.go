package reconcile

import (
	"fmt"
	"strings"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
	"github.com/clusterawsadm/clusterawsadm/pkg/input"
)

// Groups lists the groups of machines of the manifest, the control plane first. The groups of a topology are those
// of the Cluster: the objects that its ClusterClass makes are not in the manifest.
func (m *Manifest) Groups() (all []cluster.Group) {
	c := m.cluster
	plane := cluster.Group{Name: "control-plane", Title: "control plane", Path: "spec.replicas"}
	switch {
	case c.EKS != nil:
		plane.Refused = "EKS runs the control plane: it has no number of machines"
	case c.ControlPlane != nil:
		plane.Name, plane.Aliases = c.ControlPlane.Object.Name, []string{"control-plane"}
		plane.Object, plane.Machines = "KubeadmControlPlane/"+plane.Name, c.ControlPlane.Replicas()
	default:
		plane.Refused = "its machines are single Machines: add or remove their objects"
	}
	if t := c.Topology; t != nil {
		return m.inTopology(plane, t)
	}
	all = append(all, plane)
	for _, d := range c.Deployments {
		name := d.Object.Name
		all = append(all, cluster.Group{Name: name, Title: "MachineDeployment", Object: "MachineDeployment/" + name, Path: "spec.replicas", Machines: d.Replicas()})
	}
	for _, p := range c.Pools {
		all = append(all, poolGroup(p))
	}
	for i := range all {
		if short, ok := strings.CutPrefix(all[i].Name, c.Name+"-"); ok {
			all[i].Aliases = append(all[i].Aliases, short)
		}
	}
	return all
}

// inTopology lists the groups of a topology.
func (m *Manifest) inTopology(plane cluster.Group, t *clusterv1.Topology) []cluster.Group {
	object := "Cluster/" + m.cluster.Name
	if plane.Refused == "" {
		plane.Object, plane.Path = object, "spec.topology.controlPlane.replicas"
	}
	all := []cluster.Group{plane}
	add := func(list string, i int, title, name string, replicas *int32) {
		n := 1
		if replicas != nil {
			n = int(*replicas)
		}
		all = append(all, cluster.Group{
			Name: name, Aliases: []string{m.cluster.Name + "-" + name}, Title: title,
			Object: object, Path: fmt.Sprintf("spec.topology.workers.%s[%d].replicas", list, i), Machines: n,
		})
	}
	for i, d := range t.Workers.MachineDeployments {
		add("machineDeployments", i, "MachineDeployment", d.Name, d.Replicas)
	}
	for i, p := range t.Workers.MachinePools {
		add("machinePools", i, "MachinePool", p.Name, p.Replicas)
	}
	return all
}

// poolGroup is the group of a MachinePool.
func poolGroup(p manifest.Pool) cluster.Group {
	name := p.Object.Name
	g := cluster.Group{Name: name, Title: "MachinePool", Object: "MachinePool/" + name, Path: "spec.replicas", Machines: p.Replicas()}
	switch {
	case p.Managed != nil:
		g.Aliases = append(g.Aliases, p.Managed.Name, p.Managed.Spec.EKSNodegroupName)
		if s := p.Managed.Spec.Scaling; s != nil {
			g.Limits = &cluster.GroupLimits{
				Object: "AWSManagedMachinePool/" + p.Managed.Name, MinPath: "spec.scaling.minSize", MaxPath: "spec.scaling.maxSize", Min: s.MinSize, Max: s.MaxSize,
			}
		}
	case p.Scaling != nil:
		g.Aliases = append(g.Aliases, p.Scaling.Name)
		g.Limits = &cluster.GroupLimits{
			Object: "AWSMachinePool/" + p.Scaling.Name, MinPath: "spec.minSize", MaxPath: "spec.maxSize", Min: &p.Scaling.Spec.MinSize, Max: &p.Scaling.Spec.MaxSize,
		}
	}
	if by, ok := p.Object.Annotations[clusterv1.ReplicasManagedByAnnotation]; ok && by != "false" {
		g.Refused = "an autoscaler sets its size (annotation " + clusterv1.ReplicasManagedByAnnotation + ")"
	}
	return g
}

// At returns the position of a field, or of its nearest parent that is set. The object is "Kind/name". For an object that is
// not in the input, it is the zero position.
func (m *Manifest) At(object, path string) input.Position { return m.cluster.At(object, path) }
