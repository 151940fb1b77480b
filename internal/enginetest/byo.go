package enginetest

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	elb "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2"

	infrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/api/v1beta2"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2/types"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/assume"
	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
)

// Prepare creates the existing resources that an example refers to: roles, keys, a placement group and reserved capacity as
// --simulate-assume does, and a VPC and a load balancer of somebody else, with tags and members of his own.
func Prepare(t *testing.T, a *awssim.AWS, m *manifest.Cluster) {
	t.Helper()
	assumed := slices.DeleteFunc(m.Assumed(), func(x cluster.Assumed) bool {
		return !slices.Contains([]string{cluster.AssumedRole, cluster.AssumedKMSKey, cluster.AssumedPlacementGroup, cluster.AssumedReservation}, x.Kind)
	})
	_, err := assume.Put(t.Context(), a, assumed)
	require.NoError(t, err)
	if m.Infra.Spec.NetworkSpec.VPC.ID != "" {
		a.Edit(func(s *awssim.State) { bringVPC(&s.EC2, m) })
	}
	if lb := m.Infra.Spec.ControlPlaneLoadBalancer; m.Infra.Spec.NetworkSpec.VPC.ID != "" && lb != nil && lb.Name != nil {
		bringLoadBalancer(t, a, m, *lb.Name)
	}
}

// MachineSpecs lists the machine specs of the manifest.
func MachineSpecs(m *manifest.Cluster) (out []*infrav1.AWSMachineSpec) {
	if cp := m.ControlPlane; cp != nil {
		out = append(out, &cp.Template.Spec.Template.Spec)
	}
	for _, d := range m.Deployments {
		out = append(out, &d.Template.Spec.Template.Spec)
	}
	for _, x := range m.Machines {
		out = append(out, &x.Infra.Spec)
	}
	return out
}

// bringVPC adds an existing VPC with the IDs in the manifest.
func bringVPC(s *awssim.EC2State, m *manifest.Cluster) {
	spec := m.Infra.Spec.NetworkSpec
	thing := func(id, name string) awssim.Thing {
		return awssim.Thing{ID: id, Tags: map[string]string{"Name": name, "owner": "network-team"}}
	}
	everything := awssim.Rule{ID: "sgr-0000000000000000f", Protocol: "-1", From: -1, To: -1, CIDR: "0.0.0.0/0"}
	group := func(id, name string) *awssim.SecurityGroup {
		return &awssim.SecurityGroup{Thing: thing(id, name), VPC: spec.VPC.ID, Name: name, Description: name, Egress: []awssim.Rule{everything}}
	}
	const gateway, main, office = "igw-00000000000000001", "rtb-00000000000000000", "sg-0aaaaaaaaaaaaaaa2"
	s.VPCs[spec.VPC.ID] = &awssim.VPC{Thing: thing(spec.VPC.ID, "company"), CIDR: "10.0.0.0/16", Tenancy: "default", DNSHostnames: true, DNSSupport: true}
	s.InternetGateways[gateway] = &awssim.InternetGateway{Thing: thing(gateway, "company"), VPC: spec.VPC.ID}
	s.RouteTables[main] = &awssim.RouteTable{Thing: thing(main, "main"), VPC: spec.VPC.ID, Main: "rtbassoc-00000000000000000", Associations: map[string]string{}}
	s.SecurityGroups["sg-00000000000000000"] = group("sg-00000000000000000", "default")
	s.SecurityGroups[office] = group(office, "monitoring")
	s.SecurityGroups[office].Tags["purpose"] = "monitoring"
	for role, id := range spec.SecurityGroupOverrides {
		s.SecurityGroups[id] = group(id, "company-"+string(role))
		s.SecurityGroups[id].Ingress = []awssim.Rule{{ID: "sgr-0000000000000000e", Protocol: "-1", From: -1, To: -1, CIDR: "10.0.0.0/16"}}
	}
	nats := map[string]string{} // by zone
	for _, public := range []bool{true, false} {
		for i, given := range spec.Subnets {
			if given.IsPublic != public {
				continue
			}
			zone := m.Region + given.ID[len(given.ID)-1:]
			subnet := &awssim.Subnet{
				Thing: thing(given.ID, fmt.Sprintf("company-%d", i)), VPC: spec.VPC.ID, CIDR: fmt.Sprintf("10.0.%d.0/24", i), Zone: zone,
				MapPublicIP: public, HostnameType: "ip-name", Next: 16,
			}
			tagSubnet(subnet, i, m.KubernetesName())
			s.Subnets[given.ID] = subnet
			table := &awssim.RouteTable{
				Thing: thing(fmt.Sprintf("rtb-0000000000000001%d", i), fmt.Sprintf("company-%d", i)), VPC: spec.VPC.ID,
				Associations: map[string]string{fmt.Sprintf("rtbassoc-0000000000000001%d", i): given.ID},
			}
			s.RouteTables[table.ID] = table
			via := gateway
			if public {
				nats[zone] = bringNAT(s, thing, subnet, i)
			} else {
				via = nats[zone]
			}
			table.Routes = []awssim.Route{{Destination: "0.0.0.0/0", Target: via}}
		}
	}
}

// tagSubnet sets different tags on subnets: on one, those of Cluster API for an existing
// cluster; on the next, those for a future cluster, as the AWS documentation says; on the
// third, none.
func tagSubnet(s *awssim.Subnet, i int, name string) {
	role, kind := "kubernetes.io/role/internal-elb", "private"
	if s.MapPublicIP {
		role, kind = "kubernetes.io/role/elb", "public"
	}
	switch i % 3 {
	case 0:
		s.Tags["kubernetes.io/cluster/another"], s.Tags[role], s.Tags["sigs.k8s.io/cluster-api-provider-aws/role"] = "shared", "1", kind
	case 1:
		s.Tags[role], s.Tags["kubernetes.io/cluster/"+name] = "", "shared"
	}
}

// bringNAT adds an existing NAT gateway to a public subnet.
func bringNAT(s *awssim.EC2State, thing func(id, name string) awssim.Thing, subnet *awssim.Subnet, i int) string {
	nat, address, nic := fmt.Sprintf("nat-0000000000000000%d", i), fmt.Sprintf("eipalloc-0000000000000000%d", i), fmt.Sprintf("eni-0000000000000000%d", i)
	s.Interfaces[nic] = &awssim.Interface{
		Thing: thing(nic, "company"), VPC: subnet.VPC, Subnet: subnet.ID, Description: "Interface for NAT Gateway " + nat, Type: "nat_gateway",
		PrivateIP: strings.Replace(subnet.CIDR, ".0/24", ".4", 1), Owner: nat, Managed: true,
	}
	s.Addresses[address] = &awssim.Address{
		Thing:       thing(address, "company"),
		PublicIP:    fmt.Sprintf("198.51.100.%d", i),
		Association: fmt.Sprintf("eipassoc-0000000000000000%d", i),
		Interface:   nic,
	}
	s.NATGateways[nat] = &awssim.NATGateway{Thing: thing(nat, "company"), VPC: subnet.VPC, Subnet: subnet.ID, Address: address, Interface: nic}
	return nat
}

// bringLoadBalancer adds an existing network load balancer whose listener on the API port
// forwards to a target group that may contain other machines.
func bringLoadBalancer(t *testing.T, a *awssim.AWS, m *manifest.Cluster, name string) {
	t.Helper()
	spec := m.Infra.Spec.NetworkSpec
	var subnets []string
	for _, s := range spec.Subnets {
		if s.IsPublic {
			subnets = append(subnets, s.ID)
		}
	}
	c := elb.NewFromConfig(a.Config())
	tags := []types.Tag{{Key: aws.String("owner"), Value: aws.String("network-team")}}
	lb, err := c.CreateLoadBalancer(t.Context(), &elb.CreateLoadBalancerInput{Name: &name, Type: types.LoadBalancerTypeEnumNetwork, Subnets: subnets, Tags: tags})
	require.NoError(t, err)
	group, err := c.CreateTargetGroup(t.Context(), &elb.CreateTargetGroupInput{
		Name: aws.String(
			"company-api",
		),
		VpcId:      &spec.VPC.ID,
		Port:       aws.Int32(6443),
		Protocol:   types.ProtocolEnumTcp,
		TargetType: types.TargetTypeEnumInstance,
		Tags:       tags,
	})
	require.NoError(t, err)
	_, err = c.CreateListener(t.Context(), &elb.CreateListenerInput{
		LoadBalancerArn: lb.LoadBalancers[0].LoadBalancerArn, Port: aws.Int32(6443), Protocol: types.ProtocolEnumTcp, Tags: tags,
		DefaultActions: []types.Action{{Type: types.ActionTypeEnumForward, TargetGroupArn: group.TargetGroups[0].TargetGroupArn}},
	})
	require.NoError(t, err)
	time.Sleep(5 * time.Minute) // until it is active
}
