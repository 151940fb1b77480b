package adopt

import (
	"context"
	"slices"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/eks"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/run"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
)

// EKSClusters lists the names of all EKS clusters in the region of the target's Config, sorted, whoever has made them.
func EKSClusters(ctx context.Context, t cluster.Target) ([]string, error) {
	c := cloud.New(t.Config, "", run.ClientOptions(t))
	c.Snapshot()
	names, err := eks.Names(cloud.InSnapshot(cloud.ReadOnly(ctx)), c)
	return slices.Sorted(slices.Values(names)), err
}
