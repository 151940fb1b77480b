package enginetest

import (
	"fmt"
	"strings"
	"testing"
	"time"

	elb "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2"

	infrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/api/v1beta2"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2/types"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	"github.com/clusterawsadm/clusterawsadm/internal/awssim/iam"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
)

// Prepare creates the existing resources that an example refers to: a VPC with its
// content, a load balancer, a placement group, reserved capacity, roles.
func Prepare(t *testing.T, _ string, a *awssim.AWS, m *manifest.Cluster) {
	t.Helper()
	a.Edit(func(s *awssim.State) {
		for _, id := range m.Identity {
			if id.Role != nil {
				name := id.Role.RoleArn[strings.LastIndex(id.Role.RoleArn, "/")+1:]
				s.IAM.Roles[name] = administrator(name)
			}
		}
		for name, service := range eksRoles(m) {
			s.IAM.Roles[name] = &awssim.Role{Name: name, Service: service}
		}
		if m.EKS != nil {
			for _, p := range m.EKS.PodIdentities {
				if name := p.RoleARN[strings.LastIndex(p.RoleARN, "/")+1:]; name != "" {
					s.IAM.Roles[name] = &awssim.Role{Name: name, Service: "pods.eks.amazonaws.com"}
				}
			}
		}
		if m.EKS.HasAutoMode() && !m.EKS.EnableIAM {
			cluster, node := &awssim.Role{Name: *m.EKS.ControlPlane.Spec.RoleName}, &awssim.Role{Name: m.EKS.AutoMode.Role}
			cluster.MakeAutoCluster(m.Partition())
			node.MakeAutoNode(m.Partition())
			s.IAM.Roles[cluster.Name], s.IAM.Roles[node.Name] = cluster, node
		}
		bringKeys(s, m)
		for _, spec := range MachineSpecs(m) {
			if spec.PlacementGroupName != "" {
				s.EC2.PlacementGroups[spec.PlacementGroupName] = "partition"
			}
			if id := aws.ToString(spec.CapacityReservationID); id != "" {
				s.EC2.Reservations[id] = &awssim.Reservation{}
			}
		}
		if m.Infra.Spec.NetworkSpec.VPC.ID != "" {
			bringVPC(&s.EC2, m)
		}
	})
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

// eksRoles lists the existing roles for an EKS cluster, with the services that assume them.
func eksRoles(m *manifest.Cluster) map[string]string {
	roles := map[string]string{}
	if m.EKS == nil {
		return roles
	}
	if addons := m.EKS.ControlPlane.Spec.Addons; addons != nil {
		for _, a := range *addons {
			if arn := aws.ToString(a.ServiceAccountRoleArn); arn != "" {
				roles[arn[strings.LastIndex(arn, "/")+1:]] = "eks.amazonaws.com"
			}
		}
	}
	for _, e := range m.EKS.ControlPlane.Spec.AccessEntries {
		if _, name, ok := strings.Cut(e.PrincipalARN, ":role/"); ok {
			roles[name] = "eks.amazonaws.com"
		}
	}
	if m.EKS.EnableIAM {
		return roles
	}
	roles[*m.EKS.ControlPlane.Spec.RoleName] = "eks.amazonaws.com"
	for _, f := range m.EKS.Fargate {
		roles[f.Spec.RoleName] = "eks-fargate-pods.amazonaws.com"
	}
	for _, p := range m.Pools {
		if p.Managed != nil {
			roles[p.Managed.Spec.RoleName] = "ec2.amazonaws.com"
		}
	}
	return roles
}

// bringKeys adds the KMS keys that a manifest names by their ARNs.
func bringKeys(s *awssim.State, m *manifest.Cluster) {
	var keys []string
	if m.EKS != nil && m.EKS.ControlPlane.Spec.EncryptionConfig != nil {
		keys = append(keys, aws.ToString(m.EKS.ControlPlane.Spec.EncryptionConfig.Provider))
	}
	for _, spec := range MachineSpecs(m) {
		for _, v := range spec.NonRootVolumes {
			keys = append(keys, v.EncryptionKey)
		}
		if spec.RootVolume != nil {
			keys = append(keys, spec.RootVolume.EncryptionKey)
		}
	}
	for _, key := range keys {
		if strings.HasPrefix(key, "arn:") {
			s.KMS.Keys[key] = &awssim.Key{}
		}
	}
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

// administrator returns a role that may do everything.
func administrator(name string) *awssim.Role {
	return &awssim.Role{Name: name, Holder: iam.Holder{Attached: []string{"arn:aws:iam::aws:policy/AdministratorAccess"}}}
}
