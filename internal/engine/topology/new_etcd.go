package topology

import (
	"fmt"
	"slices"
	"strings"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/ec2"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/secrets"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
)

// LostControlPlane reports whether the cluster was begun, and none of the machines of its control
// plane exists any more: its etcd is lost, and the first machine that a run would launch would run
// kubeadm init, and begin an empty one.
func (inv Inventory) LostControlPlane() bool {
	return inv.Initialized && !slices.ContainsFunc(inv.Machines, isControlPlane)
}

func isControlPlane(m ec2.InstanceState) bool { return m.Tags[cloud.RoleTag] == RoleControlPlane }

// beginsNewEtcd reports whether the run begins a new etcd in place of one that is lost, or that never
// was.
func (in inputs) beginsNewEtcd() bool {
	return (in.o.NewEtcd || in.inv.NeverRan) && in.inv.LostControlPlane()
}

// addNewEtcd adds the step that frees the init marker of a lost control plane. It returns the
// resource that new machines of the control plane wait for.
func addNewEtcd(g *graph.Graph, in inputs) []graph.Resource {
	if !in.beginsNewEtcd() {
		return nil
	}
	return []graph.Resource{graph.Expect(g, "init-marker/lost", &secrets.FreeMarker{Lost: in.inv.InitMachine, NeverRan: in.inv.NeverRan})}
}

// hasLostCluster reports whether a worker was launched for a cluster whose etcd is lost. Its kubelet
// has a certificate of the same CA, but it registers only once, when it starts (registerWithAPIServer
// in pkg/kubelet/kubelet_node_status.go of Kubernetes v1.34.2): it does not become a Node of the new
// cluster, and it stops its pods, which the new API server does not have.
func (in inputs) hasLostCluster(m ec2.InstanceState) bool {
	if m.Tags[cloud.RoleTag] != RoleNode {
		return false
	}
	return in.beginsNewEtcd() && !in.inv.NeverRan || !in.inv.EtcdSince.IsZero() && m.LaunchedAt.Before(in.inv.EtcdSince)
}

// newEtcdRemarks say what a new etcd means for what the lost cluster had.
func (in inputs) newEtcdRemarks(groups []groupPlan) (remarks []string) {
	if !in.beginsNewEtcd() || in.inv.NeverRan {
		return nil
	}
	remarks = append(
		remarks,
		fmt.Sprintf("a new, empty etcd replaces that of %s: all objects of the cluster are lost, except for the add-ons of the manifest, which are installed again; "+
			"load balancers and volumes that its controllers have made stay in AWS until the cluster is deleted", in.inv.InitMachine),
	)
	workers, replaced := 0, 0
	for _, m := range in.inv.Machines {
		if in.hasLostCluster(m) {
			workers++
		}
	}
	for _, x := range groups {
		replaced += len(x.unhealthy)
	}
	if workers > 0 {
		does := "the run replaces them"
		if replaced < workers {
			does = fmt.Sprintf("the run replaces %d; terminate the others, and run again without --wait=infrastructure and --drain=false", replaced)
		}
		remarks = append(remarks, fmt.Sprintf("%s of the lost cluster: their kubelets do not register again, and stop their pods; %s", workersOf(workers), does))
	}
	var pools []string
	for _, x := range in.m.Pools {
		if x.Scaling != nil {
			pools = append(pools, x.Object.Name)
		}
	}
	if len(pools) > 0 {
		remarks = append(
			remarks,
			fmt.Sprintf(
				"the machines of %s are of the lost cluster, too: terminate them when the new control plane answers, and Auto Scaling launches others",
				strings.Join(pools, ", "),
			),
		)
	}
	return remarks
}

func workersOf(n int) string {
	if n == 1 {
		return "1 worker is"
	}
	return fmt.Sprintf("%d workers are", n)
}
