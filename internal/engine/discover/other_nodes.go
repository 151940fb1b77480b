package discover

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/autoscaling"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/ec2"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/kind"
	"github.com/clusterawsadm/clusterawsadm/internal/text"
)

// karpenterTag is the tag that Karpenter sets on the machines that it launches (https://karpenter.sh/docs/concepts/nodeclasses, "spec.tags").
const karpenterTag = "karpenter.sh/nodepool"

// OtherNodes describes the machines that are nodes of a cluster by their tags, and that are neither Cluster API's nor those of a node group:
// one line for each Auto Scaling group or single machine. Karpenter and EKS Auto Mode delete their machines themselves.
func OtherNodes(ctx context.Context, c *cloud.Clients, kubernetes string) (lines []string, err error) {
	all, err := ec2.NodesOf(ctx, c, kubernetes)
	if err != nil {
		return nil, fmt.Errorf("nodes of the cluster: %w", err)
	}
	groups := map[string]int{}
	for _, m := range all {
		group := m.Tags[ec2.GroupTag]
		switch {
		case m.IsOwned(c), m.Managed, m.Tags[karpenterTag] != "", m.Tags[kind.NodeGroupClusterTag] != "":
		case group != "":
			groups[group]++
		case m.Tags[cloud.CloudProviderTagPrefix+kubernetes] == cloud.Owned:
			lines = append(lines, fmt.Sprintf("instance/%s: %s; 'cluster delete' deletes it", m.ID, onlyOf(kubernetes)))
		default:
			lines = append(lines, fmt.Sprintf("instance/%s: %s", m.ID, onlyOf(kubernetes)))
		}
	}
	slices.Sort(lines)
	for _, group := range slices.Sorted(maps.Keys(groups)) {
		lines = append(lines, fmt.Sprintf("%s/%s with %s: %s", autoscaling.GroupKind, group, text.Count(groups[group], "node"), onlyOf(kubernetes)))
	}
	return lines, nil
}

// onlyOf says why a machine with the tag of nodes is left out.
func onlyOf(kubernetes string) string {
	return fmt.Sprintf(
		"it has the tag %s%s, but not those of Cluster API: another tool has made it, or it has lost them",
		cloud.CloudProviderTagPrefix,
		kubernetes,
	)
}
