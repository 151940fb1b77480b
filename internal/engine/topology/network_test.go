package topology_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	infrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/api/v1beta2"
	ekscontrolplanev1 "sigs.k8s.io/cluster-api-provider-aws/v2/controlplane/eks/api/v1beta2"
	expinfrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/exp/api/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/ec2"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/eks"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/elb"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/identity"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/incluster"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/topology"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// Blocks are split as in CAPA.
func TestSplit(t *testing.T) {
	for _, c := range []struct {
		block           string
		zones           int
		public, private string
	}{
		{"10.0.0.0/16", 1, "10.0.0.0/17", "10.0.128.0/17"},
		{"10.0.0.0/16", 2, "10.0.0.0/19 10.0.32.0/19", "10.0.64.0/18 10.0.128.0/18"},
		{"10.0.0.0/16", 3, "10.0.0.0/20 10.0.16.0/20 10.0.32.0/20", "10.0.64.0/18 10.0.128.0/18 10.0.192.0/18"},
		{"10.0.0.0/16", 4, "10.0.0.0/21 10.0.8.0/21 10.0.16.0/21 10.0.24.0/21", "10.0.32.0/19 10.0.64.0/19 10.0.96.0/19 10.0.128.0/19"},
		{"172.20.16.0/24", 1, "172.20.16.0/25", "172.20.16.128/25"},
		{"172.20.16.0/24", 3, "172.20.16.0/28 172.20.16.16/28 172.20.16.32/28", "172.20.16.64/26 172.20.16.128/26 172.20.16.192/26"},
	} {
		public, private, err := topology.Split(c.block, c.zones, false)
		require.NoError(t, err)
		require.Equal(t, strings.Fields(c.public), public, "%s in %d zones", c.block, c.zones)
		require.Equal(t, strings.Fields(c.private), private, "%s in %d zones", c.block, c.zones)
		private, public, err = topology.Split(c.block, c.zones, true)
		require.NoError(t, err)
		require.Equal(t, strings.Fields(c.public), public, "PreferPublic: %s in %d zones", c.block, c.zones)
		require.Equal(t, strings.Fields(c.private), private)
	}
	for block, zones := range map[string]int{"10.0.0.0/25": 3, "10.0.0.0/28": 1, "10.0.0.0/32": 1, "10.0.0.0/27": 2} {
		_, _, err := topology.Split(block, zones, false)
		require.ErrorContains(t, err, "is too small", "%s in %d zones", block, zones)
	}
	_, _, err := topology.Split("10.0.0.0", 3, false)
	require.Error(t, err)
}

// subnetsOf returns the subnets of a graph, in order.
func subnetsOf(c topology.Cluster) (out []*ec2.Subnet) {
	for _, n := range c.Resources() {
		if ref, ok := n.(*graph.Ref[ec2.SubnetState]); ok {
			if s, ok := ref.Desired().(*ec2.Subnet); ok {
				out = append(out, s)
			}
		}
	}
	return out
}

// The preferred kind of subnet counts its /64s from 2, the other kind continues from
// there; each zone has a public one first.
func TestIPv6Indices(t *testing.T) {
	for schema, want := range map[infrav1.SubnetSchemaType][]int{infrav1.SubnetSchemaPreferPrivate: {5, 2, 6, 3, 7, 4}, infrav1.SubnetSchemaPreferPublic: {2, 5, 3, 6, 4, 7}} {
		m := examples(t)["quickstart"]
		m.Infra.Spec.NetworkSpec.VPC.IPv6, m.Infra.Spec.NetworkSpec.VPC.SubnetSchema = &infrav1.IPv6{}, &schema
		var got []int
		for i, s := range subnetsOf(build(t, m, inventory(m))) {
			require.Equal(t, i%2 == 0, s.Public)
			got = append(got, s.IPv6Index)
		}
		require.Equal(t, want, got, schema)
	}
}

// zonesOf lists the zones of a graph's private subnets.
func zonesOf(c topology.Cluster) (out []string) {
	for _, s := range subnetsOf(c) {
		if !s.Public {
			out = append(out, strings.TrimPrefix(s.Zone, "us-east-1"))
		}
	}
	return out
}

// Zones are in order of name, or in an order that depends only on the name of the
// cluster; those that have subnets of the cluster come first.
func TestZones(t *testing.T) {
	m := examples(t)["quickstart"]
	inv := inventory(m)
	inv.Zones = nil
	for _, z := range "abcdef" {
		inv.Zones = append(inv.Zones, "us-east-1"+string(z))
	}
	require.Equal(t, []string{"a", "b", "c"}, zonesOf(build(t, m, inv)))
	vpc := &m.Infra.Spec.NetworkSpec.VPC
	vpc.AvailabilityZoneUsageLimit = new(2)
	require.Equal(t, []string{"a", "b"}, zonesOf(build(t, m, inv)))
	for _, z := range []string{"e", "f"} {
		inv.Subnets = append(inv.Subnets, ec2.SubnetState{Zone: "us-east-1" + z})
	}
	inv.Subnets = append(
		inv.Subnets,
		ec2.SubnetState{Zone: "us-east-1d", Object: identity.Object{Tags: cloud.Tags{"sigs.k8s.io/cluster-api-provider-aws/association": "secondary"}}},
	)
	require.Equal(t, []string{"e", "f"}, zonesOf(build(t, m, inv)), "a cluster stays where it is")
	vpc.AvailabilityZoneUsageLimit = new(3)
	require.Equal(t, []string{"a", "e", "f"}, zonesOf(build(t, m, inv)))
	inv.Subnets = nil
	vpc.AvailabilityZoneSelection = new(infrav1.AZSelectionSchemeRandom)
	chosen := map[string]bool{}
	for _, name := range strings.Fields("alpha beta gamma delta epsilon zeta eta theta") {
		m.Name = name
		zones := zonesOf(build(t, m, inv))
		require.Len(t, zones, 3)
		require.True(t, slices.IsSorted(zones))
		slices.Reverse(inv.Zones)
		require.Equal(t, zones, zonesOf(build(t, m, inv)), "whatever the order in which AWS lists them")
		slices.Reverse(inv.Zones)
		chosen[strings.Join(zones, "")] = true
	}
	require.Greater(t, len(chosen), 2)
	inv.Types = map[string]ec2.InstanceType{m.ControlPlane.Template.Spec.Template.Spec.InstanceType: {Zones: []string{"us-east-1b", "us-east-1d", "us-east-1f"}}}
	require.Equal(t, []string{"b", "d", "f"}, zonesOf(build(t, m, inv)), "zones that offer the instance types are preferred")
	inv.Types = nil
	inv.Zones = nil
	_, err := topology.Build(m, inv, topology.Options{})
	require.ErrorContains(t, err, "no availability zone")
}

// The rules of every role are those of CAPA.
func TestSecurityRules(t *testing.T) {
	m := examples(t)["bastion"]
	spec := &m.Infra.Spec
	spec.SecondaryControlPlaneLoadBalancer = nil
	spec.Bastion.AllowedCIDRBlocks = []string{"192.0.2.0/24", "2001:db8::/32"}
	spec.ControlPlaneLoadBalancer.LoadBalancerType = infrav1.LoadBalancerTypeNLB
	spec.ControlPlaneLoadBalancer.Scheme = new(infrav1.ELBSchemeInternetFacing)
	spec.ControlPlaneLoadBalancer.IngressRules, spec.ControlPlaneLoadBalancer.AdditionalListeners = nil, []infrav1.AdditionalListenerSpec{
		{Port: 8132, Protocol: "TCP"},
	}
	network := &spec.NetworkSpec
	network.CNI = &infrav1.CNISpec{CNIIngressRules: infrav1.CNIIngressRules{
		{Description: "bgp (calico)", Protocol: "tcp", FromPort: 179, ToPort: 179}, {Description: "IP-in-IP (calico)", Protocol: "4", FromPort: -1, ToPort: 65535},
	}}
	network.NodePortIngressRuleCidrBlocks, network.AdditionalNodeIngressRules, network.AdditionalControlPlaneIngressRules = nil, nil, nil
	network.VPC.AvailabilityZoneUsageLimit = new(2)
	c := build(t, m, inventory(m))
	require.Equal(t, []string{"tcp 22-22 from 192.0.2.0/24: SSH"}, rulesOf(t, c, "bastion"))
	require.Equal(t, []string{
		"4 -1-65535 from controlplane: IP-in-IP (calico)", "4 -1-65535 from node: IP-in-IP (calico)",
		"tcp 179-179 from controlplane: bgp (calico)", "tcp 179-179 from node: bgp (calico)",
		"tcp 22-22 from bastion: SSH", "tcp 2379-2379 from controlplane: etcd", "tcp 2380-2380 from controlplane: etcd peer",
		"tcp 6443-6443 from apiserver-lb: Kubernetes API", "tcp 6443-6443 from controlplane: Kubernetes API", "tcp 6443-6443 from node: Kubernetes API",
	}, rulesOf(t, c, "controlplane"))
	require.Equal(t, []string{
		"4 -1-65535 from controlplane: IP-in-IP (calico)", "4 -1-65535 from node: IP-in-IP (calico)",
		"tcp 10250-10250 from controlplane: Kubelet API", "tcp 10250-10250 from node: Kubelet API",
		"tcp 179-179 from controlplane: bgp (calico)", "tcp 179-179 from node: bgp (calico)",
		"tcp 22-22 from bastion: SSH", "tcp 30000-32767 from 0.0.0.0/0: Node Port Services",
	}, rulesOf(t, c, "node"))
	require.Equal(t, []string{
		"tcp 6443-6443 from 0.0.0.0/0: Kubernetes API",
		"tcp 6443-6443 from elastic-ip/" + m.Region + "a: Kubernetes API",
		"tcp 6443-6443 from elastic-ip/" + m.Region + "b: Kubernetes API",
	}, rulesOf(t, c, "apiserver-lb"))
	require.Equal(t, []string{
		"tcp 6443-6443 from VPC: Allow NLB traffic to the control plane instances.",
		"tcp 8132-8132 from VPC: Allow NLB traffic to the control plane instances on port 8132.",
	}, rulesOf(t, c, "lb"))

	spec.ControlPlaneLoadBalancer.PreserveClientIP = true
	spec.ControlPlaneLoadBalancer.Scheme = new(infrav1.ELBSchemeInternal)
	spec.ControlPlaneLoadBalancer.IngressRules = []infrav1.IngressRule{
		{Description: "office", Protocol: "tcp", FromPort: 6443, ToPort: 6443, CidrBlocks: []string{"192.0.2.0/24", "198.51.100.0/24"}},
	}
	network.AdditionalNodeIngressRules = []infrav1.IngressRule{
		{Description: "bare", Protocol: "udp", FromPort: 1, ToPort: 2},
		{Description: "roles", Protocol: "-1", SourceSecurityGroupRoles: []infrav1.SecurityGroupRole{"node", "bastion"}, SourceSecurityGroupIDs: []string{"sg-1"}},
		{Description: "nat", Protocol: "tcp", FromPort: 5, ToPort: 5, NatGatewaysIPsSource: true},
	}
	network.VPC.IPv6 = &infrav1.IPv6{}
	network.NodePortIngressRuleCidrBlocks = []string{"192.0.2.0/24"}
	c = build(t, m, inventory(m))
	require.Equal(t, []string{"tcp 22-22 from 192.0.2.0/24: SSH", "tcp 22-22 from 2001:db8::/32: SSH"}, rulesOf(t, c, "bastion"))
	require.Equal(t, []string{
		"tcp 6443-6443 from 192.0.2.0/24: office", "tcp 6443-6443 from 198.51.100.0/24: office",
		"tcp 6443-6443 from VPC (IPv6): Kubernetes API IPv6", "tcp 6443-6443 from VPC: Kubernetes API",
	}, rulesOf(t, c, "apiserver-lb"))
	require.Equal(t, []string{
		"tcp 6443-6443 from 0.0.0.0/0: Allow NLB traffic to the control plane instances.",
		"tcp 6443-6443 from ::/0: Allow NLB traffic to the control plane instances.",
		"tcp 8132-8132 from 0.0.0.0/0: Allow NLB traffic to the control plane instances on port 8132.",
		"tcp 8132-8132 from ::/0: Allow NLB traffic to the control plane instances on port 8132.",
	}, rulesOf(t, c, "lb"))
	node := rulesOf(t, c, "node")
	for _, want := range []string{
		"udp 1-2 from controlplane: bare", "-1 0-0 from node: roles", "-1 0-0 from bastion: roles", "-1 0-0 from sg-1: roles",
		"tcp 5-5 from elastic-ip/" + m.Region + "a: nat", "tcp 5-5 from elastic-ip/" + m.Region + "b: nat", "tcp 30000-32767 from 192.0.2.0/24: Node Port Services",
	} {
		require.Contains(t, node, want)
	}
	require.NotContains(t, node, "tcp 30000-32767 from 0.0.0.0/0: Node Port Services")

	spec.ControlPlaneLoadBalancer.LoadBalancerType = infrav1.LoadBalancerTypeClassic
	require.Empty(t, rulesOf(t, build(t, m, inventory(m)), "lb"), "left to the cloud controller manager")
}

// placed builds the graph of listed-subnets.yaml after a change, and returns the
// subnets of the load balancer, and of three machines of the control plane.
func placed(t *testing.T, change func(*infrav1.NetworkSpec, *infrav1.AWSLoadBalancerSpec)) (balancer, machines []string, err error) {
	t.Helper()
	m := examples(t)["listed-subnets"]
	m.ControlPlane.Object.Spec.Replicas = new(int32(3))
	change(&m.Infra.Spec.NetworkSpec, m.Infra.Spec.ControlPlaneLoadBalancer)
	c, err := topology.Build(m, topology.Inventory{}, topology.Options{})
	if err != nil {
		return nil, nil, err
	}
	for _, n := range c.Resources() {
		switch ref := n.(type) {
		case *graph.Ref[elb.LoadBalancerState]:
			for _, s := range ref.Desired().(*elb.LoadBalancer).Subnets {
				balancer = append(balancer, string(s.ID()))
			}
		case *graph.Ref[ec2.InstanceState]:
			if strings.HasPrefix(string(ref.ID()), "machine/listed-subnets-control-plane/") {
				machines = append(machines, string(ref.Desired().(*ec2.Instance).Subnet.ID()))
			}
		}
	}
	return balancer, machines, nil
}

// If the manifest lists the subnets of the load balancer, the control plane is placed in
// their zones.
func TestSubnetsOfTheLoadBalancer(t *testing.T) {
	const a, b = "subnet/private/nodes-a", "subnet/private/nodes-b"
	balancer, machines, err := placed(t, func(*infrav1.NetworkSpec, *infrav1.AWSLoadBalancerSpec) {})
	require.NoError(t, err)
	require.Equal(t, []string{"subnet/public/public-a", "subnet/public/public-b"}, balancer)
	require.Equal(t, []string{a, b, a}, machines)
	balancer, machines, err = placed(t, func(_ *infrav1.NetworkSpec, lb *infrav1.AWSLoadBalancerSpec) { lb.Subnets = []string{"public-b"} })
	require.NoError(t, err)
	require.Equal(t, []string{"subnet/public/public-b"}, balancer)
	require.Equal(t, []string{b, b, b}, machines)
	balancer, machines, err = placed(t, func(_ *infrav1.NetworkSpec, lb *infrav1.AWSLoadBalancerSpec) { lb.Subnets = []string{"subnet-0123"} })
	require.NoError(t, err)
	require.Equal(t, []string{"subnet/subnet-0123"}, balancer)
	require.Equal(t, []string{a, b, a}, machines)
	_, _, err = placed(t, func(_ *infrav1.NetworkSpec, lb *infrav1.AWSLoadBalancerSpec) { lb.Subnets = []string{"public-c"} })
	require.ErrorContains(t, err, "spec.controlPlaneLoadBalancer.subnets: subnet public-c is neither in spec.network.subnets nor the ID of a subnet")
}

// A private subnet needs a NAT gateway, which has to be in a public subnet of the same zone.
func TestPrivateSubnetWithoutEgress(t *testing.T) {
	_, _, err := placed(t, func(n *infrav1.NetworkSpec, _ *infrav1.AWSLoadBalancerSpec) {
		n.Subnets[3].AvailabilityZone = "us-east-1c"
	})
	require.ErrorContains(
		t,
		err,
		"spec.network.subnets[3]: the private subnet nodes-b has no way to the internet: add a public subnet in us-east-1c, for a NAT gateway",
	)
}

// No machine is placed in a subnet that CAPA's tag reserves for pods, whatever its position
// in the list.
func TestListedSubnetsForPods(t *testing.T) {
	for tag, want := range map[string]string{
		"secondary": "subnet/private/nodes-b subnet/private/nodes-a subnet/private/nodes-b",
		"":          "subnet/private/pods-a subnet/private/nodes-b subnet/private/pods-a",
	} {
		_, machines, err := placed(t, func(n *infrav1.NetworkSpec, _ *infrav1.AWSLoadBalancerSpec) {
			n.Subnets[2], n.Subnets[4] = n.Subnets[4], n.Subnets[2]
			n.Subnets[2].Tags = infrav1.Tags{"sigs.k8s.io/cluster-api-provider-aws/association": tag}
		})
		require.NoError(t, err)
		require.Equal(t, strings.Fields(want), machines, tag)
	}
}

// The service CIDR of an EKS cluster is the first IPv4 block in the manifest.
func TestServiceBlockOfEKS(t *testing.T) {
	m := examples(t)["eks"]
	m.Object.Spec.ClusterNetwork.Services.CIDRBlocks = []string{"fd00:1::/108", "10.96.0.0/16", "10.97.0.0/16"}
	for _, n := range build(t, m, inventory(m)).Resources() {
		if ref, ok := n.(*graph.Ref[eks.ClusterState]); ok {
			require.Equal(t, "10.96.0.0/16", ref.Desired().(*eks.Cluster).ServiceCIDR)
		}
	}
}

// If an autoscaler manages the number of nodes, spec.replicas does not change the minimum and
// maximum size.
func TestBoundsOfAnAutoscaler(t *testing.T) {
	for replicas, want := range map[int32]int32{1: 3, 4: 4, 10: 5} {
		m := examples(t)["eks"]
		pool := &m.Pools[0]
		pool.Object.Annotations = map[string]string{clusterv1.ReplicasManagedByAnnotation: "external"}
		pool.Object.Spec.Replicas = &replicas
		pool.Managed.Spec.Scaling = &expinfrav1.ManagedMachinePoolScaling{MinSize: new(int32(3)), MaxSize: new(int32(5))}
		groups := 0
		for _, n := range build(t, m, inventory(m)).Resources() {
			if ref, ok := n.(*graph.Ref[eks.NodeGroupState]); ok {
				groups++
				g := ref.Desired().(*eks.NodeGroup)
				require.Equal(t, []int32{3, want, 5}, []int32{g.MinSize, g.Desired, g.MaxSize})
			}
		}
		require.Equal(t, 1, groups)
	}
}

// Filters can select a subnet that this run will create.
func TestFiltersMatchOwnSubnets(t *testing.T) {
	for name, filters := range map[string][]infrav1.Filter{
		"nodes-b":            {{Name: "tag:Name", Values: []string{"nodes-?"}}, {Name: "availability-zone", Values: []string{"us-east-1b"}}},
		"nodes-a":            {{Name: "cidr-block", Values: []string{"10.0.0.0/8", "10.20.16.0/20"}}},
		"nodes-b (2)":        {{Name: "tag-key", Values: []string{"kubernetes.io/role/internal-elb"}}, {Name: "availabilityZone", Values: []string{"us-east-1b"}}},
		"public-a":           {{Name: "tag:tier", Values: []string{"*"}}},
		"of/the-workers":     {{Name: "tag:Name", Values: []string{"theirs"}}},
		"of/the-workers (2)": {{Name: "state", Values: []string{"available"}}},
	} {
		m := examples(t)["listed-subnets"]
		m.Deployments[0].Object.Name = "the-workers"
		m.Deployments[0].Template.Spec.Template.Spec.Subnet = &infrav1.AWSResourceReference{Filters: filters}
		found := ""
		for _, n := range build(t, m, inventory(m)).Resources() {
			if ref, ok := n.(*graph.Ref[ec2.InstanceState]); ok && strings.HasPrefix(string(ref.ID()), "machine/the-workers/") {
				found = string(ref.Desired().(*ec2.Instance).Subnet.ID())
			}
		}
		want, _, _ := strings.Cut(name, " ")
		require.True(t, strings.HasSuffix(found, "/"+want), "%s for %v", found, filters)
	}
}

// The ConfigMap aws-auth contains the ARNs of roles without their paths.
func TestRolesWithPathsInAWSAuth(t *testing.T) {
	m := examples(t)["eks-machines"]
	m.EKS.ControlPlane.Spec.AccessConfig.AuthenticationMode = ekscontrolplanev1.EKSAuthenticationModeConfigMap
	inv := inventory(m)
	inv.NodeRoles = map[string]string{"nodes.cluster-api-provider-aws.sigs.k8s.io": "arn:aws:iam::123456789012:role/teams/a/nodes"}
	c, err := topology.Build(m, inv, topology.Options{Wait: plan.APIServer})
	require.NoError(t, err)
	var arns []string
	for _, n := range c.Resources() {
		if ref, ok := n.(*graph.Ref[incluster.AWSAuthState]); ok {
			for _, x := range ref.Desired().(*incluster.AWSAuth).Wanted {
				arns = append(arns, x.ARN)
			}
		}
	}
	require.Equal(t, []string{"arn:aws:iam::123456789012:role/nodes"}, arns)
}
