package reconcile

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/service/servicequotas"

	"clusterawsadm/internal/cloud"
	"clusterawsadm/pkg/reconcile/graph"
	"clusterawsadm/pkg/reconcile/resource"
)

// quota is a limit of the account that a plan may run into.
type quota struct {
	kind, service, code, name string
	least                     int // what AWS gives every account: up to that, nobody has to be asked
	used                      func(context.Context, *cloud.Clients) (int, error)
}

func quotas() []quota {
	return []quota{
		{"vpc", "vpc", "L-F678F1CE", "VPCs", 5, resource.CountVPCs},
		{"elastic-ip", "ec2", "L-0263D0A3", "elastic IP addresses", 5, resource.CountAddresses},
	}
}

// preflight finds what would stop the plan half way: conflicts, and quotas
// that it would exceed. A quota that may not be read is left to AWS.
func preflight(ctx context.Context, c *cloud.Clients, p graph.Plan) error {
	var reasons []error
	for _, s := range p.Conflicts() {
		for _, d := range s.Diff {
			if d.Remedy == graph.Replace {
				reasons = append(reasons, &graph.NodeError{Node: s.Node, Origin: s.Origin, Err: &graph.ConflictError{Change: d}})
			}
		}
	}
	ctx = cloud.InSnapshot(cloud.ReadOnly(ctx))
	for _, q := range quotas() {
		wanted := 0
		for _, s := range p.Steps {
			if s.Action == graph.Create && s.Node.Kind() == q.kind {
				wanted++
			}
		}
		if wanted == 0 {
			continue
		}
		used, err := q.used(ctx, c)
		if err != nil {
			return err
		}
		if used+wanted <= q.least {
			continue
		}
		out, err := c.Quotas.GetServiceQuota(ctx, &servicequotas.GetServiceQuotaInput{ServiceCode: &q.service, QuotaCode: &q.code})
		if err != nil || out.Quota == nil || out.Quota.Value == nil {
			continue
		}
		if limit := int(*out.Quota.Value); used+wanted > limit {
			reasons = append(reasons, fmt.Errorf("%d %s are wanted, but of %d that %s allows %d are in use: delete some, or ask for more (quota %s)", wanted, q.name, limit, c.Region, used, q.code))
		}
	}
	if len(reasons) > 0 {
		return &RefusedError{reasons}
	}
	return nil
}
