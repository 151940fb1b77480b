package replica

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/servicequotas"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim/ec2"
)

// quotas reads the limits of the account. A quota that the source does not list has the
// default of the simulated account.
func (r *reader) quotas(ctx context.Context) error {
	values := map[string]int{}
	for _, service := range []string{"ec2", "vpc", "eks", "elasticloadbalancing"} {
		p := servicequotas.NewListServiceQuotasPaginator(servicequotas.NewFromConfig(r.Config), &servicequotas.ListServiceQuotasInput{ServiceCode: &service})
		err := pages(ctx, p, func(p *servicequotas.ListServiceQuotasOutput) {
			for _, q := range p.Quotas {
				if q.Value != nil {
					values[aws.ToString(q.QuotaCode)] = int(*q.Value)
				}
			}
		})
		if err != nil {
			return err
		}
	}
	set := func(to *int, code string) {
		if v, ok := values[code]; ok {
			*to = v
		}
	}
	l := &r.to.EC2.Limits
	set(&l.Addresses, "L-0263D0A3")
	set(&l.VPCs, "L-F678F1CE")
	set(&l.RulesPerGroup, "L-0EA8095F")
	set(&l.NATGatewaysPerZone, "L-FE5A380F")
	if l.OtherVCPUs == nil {
		l.OtherVCPUs = map[string]int{}
	}
	for _, q := range ec2.VCPUQuotas() {
		if v, ok := values[q.Code]; ok {
			l.OtherVCPUs[q.Code] = v
		}
	}
	set(&r.to.ELB.Limits.Application, "L-53DA6B97")
	set(&r.to.ELB.Limits.Network, "L-69A177A2")
	set(&r.to.ELB.Limits.Classic, "L-E9E9831D")
	set(&r.to.EKS.Limits.Clusters, "L-1194D53C")
	set(&r.to.EKS.Limits.NodeGroups, "L-6D54EA21")
	return nil
}
