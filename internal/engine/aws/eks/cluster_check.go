package eks

import (
	"context"
	"fmt"
	"strings"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
)

// Check implements graph.Checked: EKS refuses versions of Kubernetes that it does not offer. Without
// the permission to list them, which is optional, nothing is said.
func (k *Cluster) Check(ctx context.Context, c *cloud.Clients) (refusal string, err error) {
	if k.Version == "" {
		return "", nil
	}
	offered, err := Versions(ctx, c)
	switch {
	case cloud.Denied(err), err == nil && len(offered) == 0:
		return "", nil
	case err != nil:
		return "", err
	}
	var names []string
	for _, v := range offered {
		if v.Version == k.Version {
			return "", nil
		}
		names = append(names, "v"+v.Version)
	}
	return fmt.Sprintf("EKS does not offer Kubernetes %s: use one of %s", k.Version, strings.Join(names, ", ")), nil
}
