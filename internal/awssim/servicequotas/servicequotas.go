package servicequotas

import (
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/servicequotas"
	"github.com/aws/aws-sdk-go-v2/service/servicequotas/types"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim/core"
	"github.com/clusterawsadm/clusterawsadm/internal/awssim/ec2"
)

func (svc *Service) simulate() {
	core.On(svc.Account, svc.getServiceQuota, "ServiceCode", "QuotaCode")
	core.On(svc.Account, svc.listServiceQuotas, "ServiceCode", "NextToken", "MaxResults")
}

// quotas returns the simulated quotas, sorted by service and code.
func (svc *Service) quotas() []types.ServiceQuota {
	quota := func(service, code, name string, value int) types.ServiceQuota {
		return types.ServiceQuota{
			ServiceCode: aws.String(service), ServiceName: aws.String(map[string]string{"ec2": "Amazon Elastic Compute Cloud (Amazon EC2)", "vpc": "Amazon Virtual Private Cloud (Amazon VPC)"}[service]),
			QuotaCode: aws.String(code), QuotaName: aws.String(name), Value: aws.Float64(float64(value)), Unit: aws.String("None"), Adjustable: true,
			QuotaArn: aws.String(svc.RegionalARN("servicequotas", service+"/"+code)), QuotaAppliedAtLevel: types.AppliedLevelEnumAccount,
		}
	}
	l := svc.ec2.Quotas()
	return []types.ServiceQuota{
		quota("ec2", "L-0263D0A3", "EC2-VPC Elastic IPs", l.Addresses),
		quota("ec2", "L-1216C47A", "Running On-Demand Standard (A, C, D, H, I, M, R, T, Z) instances", l.VCPUs),
		quota("vpc", "L-0EA8095F", "Inbound or outbound rules per security group", l.RulesPerGroup),
		quota("vpc", "L-F678F1CE", "VPCs per Region", l.VPCs),
		quota("vpc", "L-FE5A380F", "NAT gateways per Availability Zone", ec2.NATGatewaysPerZone),
	}
}

func (svc *Service) getServiceQuota(in *servicequotas.GetServiceQuotaInput) (*servicequotas.GetServiceQuotaOutput, error) {
	for _, q := range svc.quotas() {
		if *q.ServiceCode == aws.ToString(in.ServiceCode) && *q.QuotaCode == aws.ToString(in.QuotaCode) {
			return &servicequotas.GetServiceQuotaOutput{Quota: &q}, nil
		}
	}
	return nil, svc.noQuota(aws.ToString(in.ServiceCode), aws.ToString(in.QuotaCode))
}

// noQuota returns the error for an unknown quota: "not simulated" if the code has the
// format of a quota code.
func (svc *Service) noQuota(service, code string) error {
	if (service == "ec2" || service == "vpc") && strings.HasPrefix(code, "L-") && len(code) == 10 {
		return core.NotSimulated("the quota %s of %s", code, service)
	}
	return &types.NoSuchResourceException{Message: aws.String("The request failed because the specified quota does not exist.")}
}

func (svc *Service) listServiceQuotas(in *servicequotas.ListServiceQuotasInput) (*servicequotas.ListServiceQuotasOutput, error) {
	list := slices.DeleteFunc(svc.quotas(), func(q types.ServiceQuota) bool { return *q.ServiceCode != aws.ToString(in.ServiceCode) })
	if len(list) == 0 {
		return nil, &types.NoSuchResourceException{Message: aws.String("The request failed because the specified service does not exist.")}
	}
	part, next, err := core.Page(svc.Account, list, in.NextToken, in.MaxResults, 100)
	return &servicequotas.ListServiceQuotasOutput{Quotas: part, NextToken: next}, err
}
