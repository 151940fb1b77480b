package servicequotas

import (
	"cmp"
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

// services are the names of services, by their code.
func services() map[string]string {
	return map[string]string{
		"ec2": "Amazon Elastic Compute Cloud (Amazon EC2)", "vpc": "Amazon Virtual Private Cloud (Amazon VPC)",
		"eks": "Amazon Elastic Kubernetes Service (Amazon EKS)", "elasticloadbalancing": "Elastic Load Balancing (ELB)",
		"events": "Amazon EventBridge (CloudWatch Events)",
	}
}

// quotas returns the simulated quotas, sorted by service and code.
func (svc *Service) quotas() []types.ServiceQuota {
	var all []types.ServiceQuota
	add := func(service, code, name string, value int) {
		all = append(all, types.ServiceQuota{
			ServiceCode: aws.String(service), ServiceName: aws.String(services()[service]),
			QuotaCode: aws.String(code), QuotaName: aws.String(name), Value: aws.Float64(float64(value)), Unit: aws.String("None"), Adjustable: true,
			QuotaArn: aws.String(svc.RegionalARN("servicequotas", service+"/"+code)), QuotaAppliedAtLevel: types.AppliedLevelEnumAccount,
		})
	}
	l, balancers, eks := svc.ec2.Quotas(), svc.elb.Quotas(), svc.eks.Quotas()
	add("ec2", "L-0263D0A3", "EC2-VPC Elastic IPs", l.Addresses)
	for _, q := range ec2.VCPUQuotas() {
		add("ec2", q.Code, q.Name, l.VCPUsOf(q.Code))
	}
	add("eks", "L-1194D53C", "Clusters", eks.Clusters)
	add("eks", "L-6D54EA21", "Managed node groups per cluster", eks.NodeGroups)
	add("elasticloadbalancing", "L-53DA6B97", "Application Load Balancers per Region", balancers.Application)
	add("elasticloadbalancing", "L-69A177A2", "Network Load Balancers per Region", balancers.Network)
	add("elasticloadbalancing", "L-E9E9831D", "Classic Load Balancers per Region", balancers.Classic)
	add("events", "L-244521F2", "Number of rules", svc.events.MostRules())
	add("vpc", "L-0EA8095F", "Inbound or outbound rules per security group", l.RulesPerGroup)
	add("vpc", "L-2AFB9258", "Security groups per network interface", ec2.GroupsPerInterface)
	add("vpc", "L-83CA0A9D", "IPv4 CIDR blocks per VPC", ec2.BlocksPerVPC)
	add("vpc", "L-F678F1CE", "VPCs per Region", l.VPCs)
	add("vpc", "L-FE5A380F", "NAT gateways per Availability Zone", l.NATGatewaysPerZone)
	slices.SortFunc(all, func(a, b types.ServiceQuota) int {
		return cmp.Or(strings.Compare(*a.ServiceCode, *b.ServiceCode), strings.Compare(*a.QuotaCode, *b.QuotaCode))
	})
	return all
}

// find returns a quota, or the error for an unknown one.
func (svc *Service) find(service, code *string) (*types.ServiceQuota, error) {
	for _, q := range svc.quotas() {
		if *q.ServiceCode == aws.ToString(service) && *q.QuotaCode == aws.ToString(code) {
			return &q, nil
		}
	}
	if known := services()[aws.ToString(service)] != ""; known && strings.HasPrefix(aws.ToString(code), "L-") && len(*code) == 10 {
		return nil, core.NotSimulated("the quota %s of %s", *code, *service)
	}
	return nil, noQuota()
}

func noQuota() error {
	return &types.NoSuchResourceException{Message: aws.String("The request failed because the specified quota does not exist.")}
}

// getServiceQuota returns the applied value of a quota. The documentation says that some
// quotas have only a default value, and not which: here, those of node groups do.
func (svc *Service) getServiceQuota(in *servicequotas.GetServiceQuotaInput) (*servicequotas.GetServiceQuotaOutput, error) {
	q, err := svc.find(in.ServiceCode, in.QuotaCode)
	if err != nil {
		return nil, err
	}
	if *q.QuotaCode == "L-6D54EA21" {
		return nil, noQuota()
	}
	return &servicequotas.GetServiceQuotaOutput{Quota: q}, nil
}

func (svc *Service) listServiceQuotas(in *servicequotas.ListServiceQuotasInput) (*servicequotas.ListServiceQuotasOutput, error) {
	list := slices.DeleteFunc(svc.quotas(), func(q types.ServiceQuota) bool { return *q.ServiceCode != aws.ToString(in.ServiceCode) })
	if len(list) == 0 {
		return nil, &types.NoSuchResourceException{Message: aws.String("The request failed because the specified service does not exist.")}
	}
	part, next, err := core.Page(svc.Account, list, in.NextToken, in.MaxResults, 100)
	return &servicequotas.ListServiceQuotasOutput{Quotas: part, NextToken: next}, err
}
