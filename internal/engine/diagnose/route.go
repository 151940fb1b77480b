package diagnose

import (
	"context"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsec2 "github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/ec2"
)

// route finds a machine that has no route to the internet.
func (q *machineCheck) route(ctx context.Context) (string, error) {
	inVPC := []types.Filter{cloud.Filter("vpc-id", q.machine.VPC)}
	tables, err := q.c.EC2.DescribeRouteTables(ctx, &awsec2.DescribeRouteTablesInput{Filters: inVPC})
	if err != nil {
		return "", err
	}
	table := tableOf(tables.RouteTables, q.machine.Subnet)
	if table == nil {
		return "", nil
	}
	why := q.noInternet(table)
	if why == "" {
		return "", nil
	}
	endpoints, err := q.c.EC2.DescribeVpcEndpoints(ctx, &awsec2.DescribeVpcEndpointsInput{Filters: inVPC})
	if err != nil {
		return "", err
	}
	for _, e := range endpoints.VpcEndpoints {
		if e.VpcEndpointType == types.VpcEndpointTypeInterface && ec2.EndpointStatus(e.State) == ec2.EndpointStatus(types.StateAvailable) {
			return "", nil // the machines may need no internet
		}
	}
	return fmt.Sprintf(
		"%s cannot reach the internet, nor the APIs of AWS: %s, the route table of its %s, %s, and the VPC has no interface endpoint. %s; %s",
		q.machine.ID,
		aws.ToString(table.RouteTableId),
		q.machine.Subnet,
		why,
		q.routeAdvice(table),
		q.rebootIt(),
	), nil
}

// routeAdvice says how a route table gets a route to the internet again: a run repairs only the tables of the cluster.
func (q *machineCheck) routeAdvice(t *types.RouteTable) string {
	if cloud.FromEC2(t.Tags)[q.c.OwnerTag()] == cloud.Owned {
		return "Run this again, which restores the routes of the cluster's own tables"
	}
	return "The table is not the cluster's, and no run changes it: add a default route to it, or interface endpoints to the VPC; " + ChangeFirst
}

// tableOf returns the route table that a subnet is associated with, or the main one.
func tableOf(all []types.RouteTable, subnet string) (table *types.RouteTable) {
	for i, t := range all {
		for _, a := range t.Associations {
			switch {
			case aws.ToString(a.SubnetId) == subnet:
				return &all[i]
			case aws.ToBool(a.Main):
				table = &all[i]
			}
		}
	}
	return table
}

// noInternet returns why a route table does not lead to the internet; "" if it does.
func (q *machineCheck) noInternet(t *types.RouteTable) (why string) {
	why = "has no default route"
	for _, r := range t.Routes {
		to := aws.ToString(r.DestinationCidrBlock) + aws.ToString(r.DestinationIpv6CidrBlock)
		via := ec2.RouteTarget(r)
		switch {
		case to != "0.0.0.0/0" && to != "::/0":
		case r.State == types.RouteStateBlackhole:
			why = fmt.Sprintf("has a route to %s that leads to %s, which does not exist or does not work", to, via)
		case to == "0.0.0.0/0" && strings.HasPrefix(via, "igw-") && q.machine.PublicIP == "":
			why = fmt.Sprintf("leads to the internet gateway %s, and the machine has no public address", via)
		default:
			return ""
		}
	}
	return why
}
