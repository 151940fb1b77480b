package reconcile

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/service/servicequotas"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/kind"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
)

// preflight finds what would stop the run half way: conflicts and exceeded quotas.
func preflight(ctx context.Context, c *cloud.Clients, p graph.Plan) error {
	reasons := conflicts(p)
	ctx = cloud.InSnapshot(cloud.ReadOnly(ctx))
	for _, k := range aws.Kinds() {
		reason, err := exceeded(ctx, c, k.Quota, p.CountKind(k.Name, graph.Create))
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

// exceeded says why a plan that creates that many resources exceeds their quota, if it
// does. A quota that cannot be read is not checked.
func exceeded(ctx context.Context, c *cloud.Clients, q *kind.Quota, wanted int) (reason, err error) {
	if q == nil || wanted == 0 {
		return nil, nil // no reason, and no error
	}
	used, err := q.Used(ctx, c)
	if err != nil || used+wanted <= q.Default {
		return nil, err
	}
	out, unread := c.Quotas.GetServiceQuota(ctx, &servicequotas.GetServiceQuotaInput{ServiceCode: &q.Service, QuotaCode: &q.Code})
	if unread != nil || out.Quota == nil || out.Quota.Value == nil {
		return nil, nil //nolint:nilerr // a quota that cannot be read is not checked
	}
	if limit := int(*out.Quota.Value); used+wanted > limit {
		reason = fmt.Errorf("the plan creates %d %s, but %s allows %d and %d are in use: delete some, or request a higher quota (%s)", wanted, q.Name, c.Region, limit, used, q.Code)
	}
	return reason, nil
}
