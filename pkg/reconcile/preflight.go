package reconcile

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/service/servicequotas"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/ec2"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
)

// quota is a limit of the account that a plan may exceed.
type quota struct {
	kind, service, code, name string
	least                     int // the default of every account: up to that, the quota is not read
	used                      func(context.Context, *cloud.Clients) (int, error)
}

func quotas() []quota {
	return []quota{
		{"vpc", "vpc", "L-F678F1CE", "VPCs", 5, ec2.CountVPCs},
		{"elastic-ip", "ec2", "L-0263D0A3", "elastic IP addresses", 5, ec2.CountAddresses},
	}
}

// preflight finds what would stop the run half way: conflicts and exceeded quotas.
func preflight(ctx context.Context, c *cloud.Clients, p graph.Plan) error {
	reasons := conflicts(p)
	ctx = cloud.InSnapshot(cloud.ReadOnly(ctx))
	for _, q := range quotas() {
		reason, err := q.exceeded(ctx, c, p)
		if err != nil {
			return err
		}
		if reason != nil {
			reasons = append(reasons, reason)
		}
	}
	if len(reasons) > 0 {
		return &RefusedError{reasons}
	}
	return nil
}

// conflicts lists the differences that cannot be changed.
func conflicts(p graph.Plan) (reasons []error) {
	for _, s := range p.Conflicts() {
		for _, d := range s.Diff {
			if d.Remedy == graph.Replace {
				reasons = append(reasons, &graph.ResourceError{Resource: s.Resource, Origin: s.Origin, Err: &graph.ConflictError{Change: d}})
			}
		}
	}
	return reasons
}

// exceeded says why the plan exceeds the quota, if it does. A quota that cannot be read
// is not checked.
func (q quota) exceeded(ctx context.Context, c *cloud.Clients, p graph.Plan) (reason, err error) {
	wanted := p.CountKind(q.kind, graph.Create)
	if wanted == 0 {
		return nil, nil // no reason, and no error
	}
	used, err := q.used(ctx, c)
	if err != nil || used+wanted <= q.least {
		return nil, err
	}
	out, unread := c.Quotas.GetServiceQuota(ctx, &servicequotas.GetServiceQuotaInput{ServiceCode: &q.service, QuotaCode: &q.code})
	if unread != nil || out.Quota == nil || out.Quota.Value == nil {
		return nil, nil //nolint:nilerr // a quota that cannot be read is not checked
	}
	if limit := int(*out.Quota.Value); used+wanted > limit {
		reason = fmt.Errorf("the plan creates %d %s, but %[4]s allows %[3]d and %[5]d are in use: delete some, or request a higher quota (%[6]s)", wanted, q.name, limit, c.Region, used, q.code)
	}
	return reason, nil
}
