package ec2

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
)

// MachinesOf lists the machines of the cluster that are not being terminated: those with its owned tag, and those with
// the tag of its name in Kubernetes, which EKS gives to the machines of node groups, and Karpenter to its own.
func MachinesOf(ctx context.Context, c *cloud.Clients, kubernetes string) ([]InstanceState, error) {
	var all []InstanceState
	seen := map[string]bool{}
	for _, filters := range [][]types.Filter{
		c.OwnedFilters(NotTerminating()),
		{cloud.Filter("tag:"+cloud.CloudProviderTagPrefix+kubernetes, cloud.Owned), NotTerminating()},
	} {
		found, err := describeInstances(ctx, c, filters)
		if err != nil {
			return nil, err
		}
		for _, m := range found {
			if !seen[m.ID] {
				seen[m.ID] = true
				all = append(all, *m)
			}
		}
	}
	return all, nil
}
