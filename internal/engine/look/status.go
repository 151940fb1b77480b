// Package look shows a cluster: its status and Nodes, its logs and kubeconfig, and what it lacks until it
// is ready. It only reads.
package look

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/autoscaling"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/ec2"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/eks"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/kind"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/bootdata"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/discover"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/incluster"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/run"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/topology"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// Status reads the state of the cluster: of the resources of the manifest, or, without
// one, of those with the tag of the cluster.
func Status(ctx context.Context, c *run.Cluster) (cluster.Status, error) {
	return newView(c).status(ctx)
}

// view is a look at a cluster, and what a status says about it.
type view struct{ *run.Looking }

func newView(c *run.Cluster) *view {
	return &view{&run.Looking{Session: run.Begin(c, nil), Shows: true}}
}

func (v *view) status(ctx context.Context) (cluster.Status, error) {
	s := cluster.Status{Name: v.Cluster.Name, Region: v.Cluster.Region}
	look := v.lookByManifest
	if v.Cluster.Manifest == nil {
		look = v.lookByTag
	}
	if err := look(ctx, &s); err != nil {
		return s, err
	}
	v.readRecord(ctx, &s)
	var nodes *incluster.NodeList
	if s.Stopped != nil && !v.controlPlaneRuns() {
		s.API = &cluster.APIStatus{State: cluster.APINone}
	} else if s.API, nodes = v.readNodes(ctx); ctx.Err() != nil {
		return s, context.Cause(ctx)
	}
	s.Nodes = nodeStatuses(nodes)
	kinds := slices.Concat(aws.Kinds(), bootdata.Kinds(), incluster.Kinds())
	for _, step := range v.Plan.Steps {
		n := v.Built.Resource(step.Resource)
		if n == nil || step.Action == plan.Leave || n.Role() == graph.RoleSwept {
			continue
		}
		one := cluster.ResourceStatus{Resource: step.Resource, CloudID: step.CloudID, Origin: step.Origin, Changes: changes(step)}
		var reported string
		reported, one.Detail = kind.Status(kinds, n.Observed())
		one.State = v.stateOf(step, reported)
		err := v.addState(ctx, &one, n.Observed(), nodes)
		if err != nil {
			return s, err
		}
		if s.Stopped != nil && run.IsStopped(n.Observed()) {
			one.State, one.Changes, one.Node = "stopped", nil, ""
		}
		s.Resources = append(s.Resources, one)
	}
	return s, nil
}

// addState adds to the status of a resource what its state says of Nodes.
func (v *view) addState(ctx context.Context, one *cluster.ResourceStatus, state graph.State, nodes *incluster.NodeList) error {
	switch have := state.(type) {
	case *ec2.InstanceState:
		addNode(one, have, nodes)
	case *autoscaling.GroupState, *eks.NodeGroupState:
		return v.withPool(ctx, one, have, nodes)
	case *ec2.FlowLogState:
		addDelivery(one, have)
	case *incluster.NodeState:
		if one.State == "ok" && !have.Ready {
			one.State = "pending"
		}
	}
	return nil
}

// controlPlaneRuns reports whether EKS runs the control plane, or one of its machines is not stopped.
func (v *view) controlPlaneRuns() bool {
	for _, n := range v.Built.Resources() {
		switch have := n.Observed().(type) {
		case *eks.ClusterState:
			return true
		case *ec2.InstanceState:
			if have.Tags[cloud.RoleTag] == topology.RoleControlPlane && !have.Stopped {
				return true
			}
		}
	}
	return false
}

// addDelivery says that records of a flow log are not delivered: no run mends that, and no wait is for it.
func addDelivery(s *cluster.ResourceStatus, have *ec2.FlowLogState) {
	if s.State == "ok" && have.Undelivered() {
		s.State = "differs"
	}
}

// withPool adds to the status of a pool the Nodes of its machines.
func (v *view) withPool(ctx context.Context, s *cluster.ResourceStatus, pool graph.State, nodes *incluster.NodeList) error {
	if nodes == nil {
		return nil
	}
	switch have := pool.(type) {
	case *autoscaling.GroupState:
		inventory, err := ec2.InstanceInventory(cloud.InSnapshot(cloud.ReadOnly(ctx)), v.Cloud)
		if err != nil {
			return err
		}
		wanted := int(have.Desired)
		if have.Weighted() || have.Suspends("Launch") {
			wanted = 0
		}
		addNodes(s, nodesOfGroup(have, nodes, inventory), wanted)
	case *eks.NodeGroupState:
		addNodes(s, nodesOfNodeGroup(have.Name, nodes), int(have.Desired))
	}
	return nil
}

// machineOf returns the machine of a status; nil if it is that of another resource, or if the
// machine does not exist.
func (v *view) machineOf(s cluster.ResourceStatus) *ec2.InstanceState {
	if n := v.Built.Resource(s.Resource); n != nil {
		if m, ok := n.Observed().(*ec2.InstanceState); ok {
			return m
		}
	}
	return nil
}

// stateOf returns the state of a resource, by its step in the plan and, in a plan to
// delete by tag, by the state that AWS reports.
func (v *view) stateOf(s plan.Step, reported string) string {
	switch {
	case v.behindAPIServer(s):
		return "unknown"
	case s.Action == plan.Remove && v.Cluster.Manifest == nil:
		return okOrPending(reported)
	}
	return stateByAction(s.Action)
}

// behindAPIServer reports whether a resource is in the cluster and cannot be read,
// because the API server does not answer.
func (v *view) behindAPIServer(s plan.Step) bool {
	n, server := v.Built.Resource(s.Resource), v.Built.Resource(incluster.APIServerKind)
	if server == nil || n == server || s.CloudID != "" || n.Role() != graph.RoleInstalled && n.Role() != graph.RoleExpected {
		return false
	}
	have, seen := server.Observed().(*incluster.APIServerState)
	return seen && !have.Answers()
}

// lookByManifest reads the state of the resources of the manifest.
func (v *view) lookByManifest(ctx context.Context, s *cluster.Status) error {
	if err := v.Look(ctx); err != nil {
		return err
	}
	s.Version, s.Endpoint, s.Since = v.Cluster.Manifest.Version, run.Known(v.Built.Endpoint.String()), v.since()
	return nil
}

// since returns when the EKS cluster was created, or the oldest machine of the control plane
// launched; nil if there is none.
func (v *view) since() (oldest *time.Time) {
	for _, n := range v.Built.Resources() {
		var at time.Time
		switch have := n.Observed().(type) {
		case *eks.ClusterState:
			at = have.Created
		case *ec2.InstanceState:
			if have.Tags[cloud.RoleTag] == "control-plane" {
				at = have.LaunchedAt
			}
		}
		if !at.IsZero() && (oldest == nil || at.Before(*oldest)) {
			oldest = &at
		}
	}
	return oldest
}

// lookByTag reads the state of the resources with the tag of the cluster.
func (v *view) lookByTag(ctx context.Context, s *cluster.Status) (err error) {
	d := run.NewDeleting(v.Session, cluster.Options{})
	v.Looking = d.Looking
	if err := d.Look(ctx, false); err != nil {
		return err
	}
	slices.Reverse(v.Plan.Steps)
	ctx = cloud.InSnapshot(cloud.ReadOnly(ctx))
	if all, err := discover.Overviews(ctx, v.Cloud); err == nil && all[s.Name] != nil { // as below
		s.Version = all[s.Name].Version
		if since := all[s.Name].Since; !since.IsZero() {
			s.Since = &since
		}
	}
	if s.Endpoint, err = v.StoredAddress(ctx); err != nil || s.Endpoint != "" {
		return err
	}
	if e, err := eks.Tagged(ctx, v.Cloud); err == nil && e != nil { // without the permission there is none to show
		s.Endpoint = strings.TrimPrefix(e.Endpoint, "https://")
	}
	return nil
}

// changes returns the differences of a resource that exists.
func changes(s plan.Step) plan.Diff {
	if s.Action == plan.Create {
		return nil
	}
	return s.Diff
}

func stateByAction(a plan.Action) string {
	switch a {
	case plan.Create:
		return "missing"
	case plan.Update:
		return "differs"
	case plan.Settle, plan.Await:
		return "pending"
	case plan.Conflict:
		return "conflict"
	case plan.Existing:
		return "existing"
	case plan.Remove:
		return "extra"
	case plan.Keep, plan.Leave:
	}
	return "ok"
}

func okOrPending(state string) string {
	if state == "" || state == "running" || state == "available" || state == "active" {
		return "ok"
	}
	return "pending"
}
