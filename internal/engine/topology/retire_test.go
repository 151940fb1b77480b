package topology_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/ec2"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/eks"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/identity"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/topology"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// awaited lists the resources that a resource waits for until they are settled, by edges that it
// has itself.
func awaited(r graph.Resource) (ids []string) {
	for _, e := range r.Needs() {
		if !e.Existing {
			ids = append(ids, string(e.Resource.ID()))
		}
	}
	return ids
}

// leavingInventory is an account with parts and machines under names that the manifest does not
// have any more.
func leavingInventory(m *manifest.Cluster) topology.Inventory {
	inv := inventory(m)
	inv.Now = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	owned := cloud.Tags{cloud.ClusterTagPrefix + m.Name: cloud.Owned}
	inv.Machines = []ec2.InstanceState{{
		Object: identity.Object{ID: "i-old", Tags: owned.With(cloud.Tags{
			"Name": "old-0", cloud.RoleTag: topology.RoleNode, cloud.ResourceTag: "machine/old/0", cloud.TemplateTag: "x",
		})}, Status: "running", Type: "t3.large", Zone: m.Region + "a",
	}}
	inv.Templates = []ec2.LaunchTemplateState{{Object: identity.Object{ID: "lt-old", Tags: owned.With(cloud.Tags{"Name": "old-pool"})}, Name: "old-pool"}}
	if m.EKS != nil {
		inv.EKS = eks.Parts{
			Cluster: &eks.ClusterState{Name: m.EKS.ControlPlane.Spec.EKSClusterName}, NodeGroups: []string{"old"}, Fargate: []string{"old"}, Addons: []string{"old"},
			AccessEntries: []string{"arn:aws:iam::123456789012:role/old"},
		}
	}
	return inv
}

// Everything that is deleted because it is not in the manifest any more waits for what could take
// its place (docs/adr/0033-create-before-destroy.md). A kind of which this table has no line fails.
func TestWhatLeavesWaitsForWhatStays(t *testing.T) {
	workers := []string{"machine", "auto-scaling-group", "node-group", "nodes", "node", "fargate-profile"}
	table := map[string][]string{
		"node-group": workers, "fargate-profile": workers, "drain": workers, "retired/machine": workers, "retired/auto-scaling-group": workers,
		"addon":        append([]string{"addon", "addons", "vpc-cni"}, workers...),
		"access-entry": {"access-entry", "aws-auth", "eks-authentication"},
		// Its objects may be those of an add-on that takes its place, and a release uninstalls all of its objects.
		"helm-leftovers": nil,
		// These follow what they belong to.
		"retired/launch-template": nil, "node-object": nil, "node-objects": nil, "boot-data": nil, "self-managed-addon": nil, "bootstrap-names": nil,
	}
	seen := map[string]bool{}
	for name, m := range examples(t) {
		if m.Infra.Spec.NetworkSpec.VPC.ID != "" || m.External {
			continue
		}
		for _, drain := range []bool{false, true} {
			c, err := topology.Build(m, leavingInventory(m), topology.Options{Wait: plan.NodesReady, Drain: drain})
			require.NoError(t, err, name)
			for _, r := range c.Resources() {
				if r.Role() != graph.RoleRetired {
					continue
				}
				kind := r.ID().Kind()
				if kind == "retired" {
					kind = "retired/" + plan.ID(string(r.ID())[len("retired/"):]).Kind()
				}
				kinds, known := table[kind]
				require.True(t, known, "%s: what does %s wait for?", name, r.ID())
				if kind == "retired/machine" && drain {
					continue // its drain waits
				}
				seen[kind] = true
				waits := awaited(r)
				for _, other := range c.Resources() {
					if other.Role() != graph.RoleRetired && other.Role() != graph.RoleExisting && slices.Contains(kinds, other.ID().Kind()) {
						assert.Contains(t, waits, string(other.ID()), "%s: %s", name, r.ID())
					}
				}
			}
		}
	}
	for kind, kinds := range table {
		assert.True(t, seen[kind] || kinds == nil, "no example retires a %s", kind)
	}
}

// The access entry of machines that leave stays until they are gone.
func TestAccessEntriesLeaveAfterTheirMachines(t *testing.T) {
	m := examples(t)["eks-machines"]
	c, err := topology.Build(m, leavingInventory(m), topology.Options{Wait: plan.NodesReady})
	require.NoError(t, err)
	waits := awaited(c.Resource("access-entry/arn:aws:iam::123456789012:role/old"))
	for _, id := range []string{"retired/machine/old/0/i-old", "node-group/old", "retired/auto-scaling-group/old-pool", "fargate-profile/old"} {
		assert.Contains(t, waits, id)
	}
}
