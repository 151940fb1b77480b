package replica

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	sim "github.com/clusterawsadm/clusterawsadm/internal/awssim/ec2"
)

// network reads VPCs with their subnets, gateways, route tables and endpoints. They replace
// those of the simulated account all together, as they refer to one another.
func (r *reader) network(ctx context.Context) error {
	n := sim.State{
		VPCs:               sim.Table[*sim.VPC]{},
		Subnets:            sim.Table[*sim.Subnet]{},
		InternetGateways:   sim.Table[*sim.InternetGateway]{},
		EgressOnlyGateways: sim.Table[*sim.EgressOnlyGateway]{},
		CarrierGateways:    sim.Table[*sim.CarrierGateway]{},
		RouteTables:        sim.Table[*sim.RouteTable]{},
		NetworkACLs:        sim.Table[*sim.NetworkACL]{},
		Endpoints:          sim.Table[*sim.Endpoint]{},
		FlowLogs:           sim.Table[*sim.FlowLog]{},
	}
	for _, read := range []func(context.Context, *ec2.Client, *sim.State) error{r.vpcs, r.subnets, r.internetGateways, r.routeTables} {
		if err := read(ctx, ec2.NewFromConfig(r.Config), &n); err != nil {
			return err
		}
	}
	to := r.to.EC2
	to.VPCs, to.Subnets, to.InternetGateways, to.RouteTables = n.VPCs, n.Subnets, n.InternetGateways, n.RouteTables
	for _, more := range []struct {
		what string
		read func(context.Context, *ec2.Client, *sim.State) error
	}{
		{"egress-only internet gateways", r.egressOnly},
		{"carrier gateways", r.carrierGateways},
		{"network ACLs", r.networkACLs},
		{"VPC endpoints", r.endpoints},
		{"flow logs", r.flowLogs},
	} {
		if err := r.part(ctx, more.what, func(ctx context.Context) error { return more.read(ctx, ec2.NewFromConfig(r.Config), &n) }); err != nil {
			return err
		}
	}
	to.EgressOnlyGateways, to.CarrierGateways, to.Endpoints, to.FlowLogs = n.EgressOnlyGateways, n.CarrierGateways, n.Endpoints, n.FlowLogs
	to.NetworkACLs = n.NetworkACLs
	// The default network of the simulated account is no longer there, nor are its groups.
	to.SecurityGroups = sim.Table[*sim.SecurityGroup]{}
	return nil
}

func tagsOf(tags []types.Tag) map[string]string {
	m := map[string]string{}
	for _, t := range tags {
		m[aws.ToString(t.Key)] = aws.ToString(t.Value)
	}
	return m
}
