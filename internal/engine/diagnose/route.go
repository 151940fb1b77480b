package diagnose

import (
	"context"
	"fmt"
	"strings"

	awsec2 "github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/ec2"
)

// route finds a machine that has no route to the internet.
func (q *machineCheck) route(ctx context.Context) (string, error) {
	inVPC := []types.Filter{cloud.Filter("vpc-id", q.machine.VPC)}
	table, err := ec2.RouteTableOf(ctx, q.c, q.machine.VPC, q.machine.Subnet)
	if table == nil || err != nil {
		return "", err
	}
	noAddress := ""
	if q.machine.PublicIP == "" {
		noAddress = "the machine has no public address"
	}
	why := table.NoInternet(noAddress)
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
	advice, err := q.routeAdvice(ctx, table)
	return fmt.Sprintf(
		"%s cannot reach the internet, nor the APIs of AWS: %s, the route table of its %s, %s, and the VPC has no interface endpoint. %s",
		q.machine.ID,
		table.ID,
		q.machine.Subnet,
		why,
		advice,
	), err
}

// routeAdvice says how a route table gets a route to the internet again: a run repairs only the tables of the cluster.
// A run that ends early may not have made the table of a subnet of the cluster: the machine waits for it.
func (q *machineCheck) routeAdvice(ctx context.Context, t *ec2.RouteTableState) (string, error) {
	if t.IsOwned(q.c) {
		return "Run this again, which restores the routes of the cluster's own tables; " + q.rebootIt(), nil
	}
	subnets, err := ec2.SubnetsOf(ctx, q.c, q.machine.VPC)
	for _, s := range subnets {
		if s.ID == q.machine.Subnet && s.IsOwned(q.c) && t.Associations[s.ID] == "" {
			const advice = "It is that of the VPC, because the subnet has no table of the cluster yet: run this again, which makes it. The machine waits for 15 minutes; later, "
			return advice + strings.TrimPrefix(q.rebootIt(), "then "), nil
		}
	}
	return "The table is not the cluster's, and no run changes it: add a default route to it, or interface endpoints to the VPC; " + ChangeFirst + "; " + q.rebootIt(), err
}
