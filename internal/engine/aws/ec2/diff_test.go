package ec2_test

import (
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsec2 "github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/stretchr/testify/require"
	infrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/api/v1beta2"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/ec2"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/identity"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
	"github.com/clusterawsadm/clusterawsadm/internal/enginetest"
)

// Rules are compared in the form that DescribeSecurityGroups returns: without ports for
// protocols that have none, icmpv6 for 58, and canonical CIDR blocks.
func TestRulesDiff(t *testing.T) {
	k := enginetest.NewFixture(t)
	vpc, me, node1 := k.VPC(), k.Group("me"), k.Group("node")
	address := enginetest.Existing(k, "elastic-ip/a", ec2.ElasticIPState{Object: enginetest.Object("eipalloc-1"), PublicIP: "192.0.2.1"})
	k.Observe()
	rules := func(shared bool, r ...ec2.IngressRule) *ec2.SecurityGroupRules {
		return &ec2.SecurityGroupRules{Group: me, Rules: r, Shared: shared}
	}
	for name, c := range map[string]struct {
		want ec2.IngressRule
		have string
	}{
		"tcp port":       {ec2.IngressRule{Protocol: "tcp", First: 22, Last: 22, CIDR: "192.0.2.0/24", Description: "SSH"}, "tcp 22 192.0.2.0/24 SSH"},
		"range":          {ec2.IngressRule{Protocol: "udp", First: 1, Last: 9, From: node1}, "udp 1-9 sg-node"},
		"all protocols":  {ec2.IngressRule{Protocol: "-1", First: 0, Last: 0, From: me, Description: "a b  c"}, "-1 all sg-me a b  c"},
		"IP in IP":       {ec2.IngressRule{Protocol: "4", First: -1, Last: 65535, From: node1, Description: "IP-in-IP (calico)"}, "4 all sg-node IP-in-IP (calico)"},
		"ESP":            {ec2.IngressRule{Protocol: "50", From: node1}, "50 all sg-node"},
		"ping":           {ec2.IngressRule{Protocol: "icmp", First: 8, Last: -1, CIDR: "0.0.0.0/0"}, "icmp 8--1 0.0.0.0/0"},
		"all of ICMP":    {ec2.IngressRule{Protocol: "icmp", First: -1, Last: -1, CIDR: "0.0.0.0/0"}, "icmp -1 0.0.0.0/0"},
		"ICMPv6":         {ec2.IngressRule{Protocol: "58", First: -1, Last: -1, CIDR: "::/0"}, "icmpv6 -1 ::/0"},
		"IPv6 block":     {ec2.IngressRule{Protocol: "tcp", First: 1, Last: 1, CIDR: "2001:DB8:0:0::/32"}, "tcp 1 2001:db8::/32"},
		"bits of hosts":  {ec2.IngressRule{Protocol: "tcp", First: 1, Last: 1, CIDR: "10.1.2.3/16"}, "tcp 1 10.1.0.0/16"},
		"NAT gateway":    {ec2.IngressRule{Protocol: "tcp", First: 6443, Last: 6443, Address: address}, "tcp 6443 192.0.2.1/32"},
		"VPC":            {ec2.IngressRule{Protocol: "tcp", First: 1, Last: 1, VPC: vpc}, "tcp 1 10.0.0.0/16"},
		"VPC's IPv6":     {ec2.IngressRule{Protocol: "tcp", First: 1, Last: 1, VPC: vpc, IPv6: true}, "tcp 1 2600:1f14:2:4a00::/56"},
		"existing group": {ec2.IngressRule{Protocol: "tcp", First: 1, Last: 1, FromID: "sg-9"}, "tcp 1 sg-9"},
	} {
		have := &ec2.SecurityGroupRulesState{Group: "sg-me", Lines: []string{c.have}}
		require.Empty(t, rules(false, c.want).Diff(have), name)
		require.Empty(t, rules(true, c.want).Diff(have), name)
		require.Equal(t, []string{`+ ingress from "" to "` + c.have + `"`}, enginetest.Lines(rules(false, c.want).Diff(&ec2.SecurityGroupRulesState{})), name)
	}

	ssh := ec2.IngressRule{Protocol: "tcp", First: 22, Last: 22, CIDR: "192.0.2.0/24", Description: "SSH"}
	have := &ec2.SecurityGroupRulesState{Group: "sg-me", Lines: []string{"tcp 22 192.0.2.0/24 ssh for all", "tcp 443 0.0.0.0/0"}}
	require.Equal(t, []string{
		`+ ingress from "tcp 22 192.0.2.0/24 ssh for all" to ""`, `+ ingress from "tcp 443 0.0.0.0/0" to ""`, `+ ingress from "" to "tcp 22 192.0.2.0/24 SSH"`,
	}, enginetest.Lines(rules(false, ssh).Diff(have)))
	require.Equal(t, []string{
		`+ ingress from "tcp 22 192.0.2.0/24 ssh for all" to ""`, `+ ingress from "" to "tcp 22 192.0.2.0/24 SSH"`,
	}, enginetest.Lines(rules(true, ssh).Diff(have)), "other rules of a shared group are not changed")
	twice := ssh
	twice.CIDR, twice.Description = "192.0.2.7/24", "the same to AWS"
	require.Len(t, rules(false, ssh, twice).Diff(&ec2.SecurityGroupRulesState{}), 1)
	require.NotEqual(t, ec2.IngressRule{VPC: vpc}.DuplicateKey(), ec2.IngressRule{VPC: vpc, IPv6: true}.DuplicateKey())
}

// All types of rules are the same in the request and in the response of EC2.
func TestRulesRoundTrip(t *testing.T) {
	a := awssim.New(awssim.Options{})
	c := cloud.New(a.Config(), "demo", cloud.Options{})
	ctx := t.Context()
	vpc, err := c.EC2.CreateVpc(ctx, &awsec2.CreateVpcInput{CidrBlock: aws.String("10.0.0.0/16")})
	require.NoError(t, err)
	made, err := c.EC2.CreateSecurityGroup(ctx, &awsec2.CreateSecurityGroupInput{VpcId: vpc.Vpc.VpcId, GroupName: aws.String("g"), Description: aws.String("g")})
	require.NoError(t, err)
	group := graph.New()
	ref := graph.Use(
		group,
		"g",
		ec2.SecurityGroupByID(graph.Use(group, "vpc", ec2.VPCByID(*vpc.Vpc.VpcId)), *made.GroupId),
		graph.With(graph.On(group.Resource("vpc"))),
	)
	r := &ec2.SecurityGroupRules{Group: ref, Rules: []ec2.IngressRule{
		{Protocol: "-1", From: ref, Description: "all of us"},
		{Protocol: "4", From: ref, First: -1, Last: 65535},
		{Protocol: "50", CIDR: "192.0.2.0/24"},
		{Protocol: "58", First: -1, Last: -1, CIDR: "2001:db8::/32"},
		{Protocol: "icmp", First: 8, Last: -1, CIDR: "0.0.0.0/0", Description: "ping"},
		{Protocol: "tcp", First: 1, Last: 9, CIDR: "192.0.2.0/24", Description: "x y"},
		{Protocol: "udp", First: 4789, Last: 4789, From: ref},
	}}
	rules := graph.Add(group, "rules", r)
	x := &graph.Executor{Cloud: c}
	require.NoError(t, x.Apply(ctx, group))
	have, ok := rules.Found()
	require.True(t, ok)
	require.Empty(t, r.Diff(&have))
	require.Len(t, have.Lines, 7)
	_, err = r.Update(ctx, c, &have, r.Diff(&ec2.SecurityGroupRulesState{Lines: []string{"tcp 443 0.0.0.0/0"}})[:1])
	require.NoError(t, err, "a rule that does not exist is not an error")
}

func TestRouteTableDiff(t *testing.T) {
	k := enginetest.NewFixture(t)
	vpc := k.VPC()
	subnet := enginetest.Existing(k, "subnet", ec2.SubnetState{Object: enginetest.Object("subnet-1"), VPC: "vpc-1"})
	nat := enginetest.Existing(k, "nat", ec2.NATGatewayState{Object: enginetest.Object("nat-1")})
	egress := enginetest.Existing(k, "eigw", ec2.EgressOnlyGatewayState{Object: enginetest.Object("eigw-1")})
	k.Observe()
	r := &ec2.RouteTable{VPC: vpc, Subnet: subnet, Routes: []ec2.Route{{To: "0.0.0.0/0", Via: nat}, {To: "::/0", Via: egress}}}
	state := func(routes map[string]string, subnets ...string) *ec2.RouteTableState {
		s := &ec2.RouteTableState{Object: enginetest.Object("rtb-1"), Routes: routes, Associations: map[string]string{}}
		for _, id := range subnets {
			s.Associations[id] = "rtbassoc-" + id
		}
		return s
	}
	require.Empty(
		t,
		r.Diff(state(map[string]string{"0.0.0.0/0": "nat-1", "::/0": "eigw-1", "10.9.0.0/16": "tgw-1"}, "subnet-1", "subnet-9")),
		"other routes are not changed",
	)
	require.Equal(t, []string{
		`+ route 0.0.0.0/0 from "nat-rogue" to "nat-1"`, `+ route ::/0 from "" to "eigw-1"`, `+ subnet from "" to "subnet-1"`,
	}, enginetest.Lines(r.Diff(state(map[string]string{"0.0.0.0/0": "nat-rogue"}, "subnet-9"))))
}

func TestNetworkDiffs(t *testing.T) {
	k := enginetest.NewFixture(t)
	vpc := k.VPC()
	k.Observe()
	v := &ec2.VPC{CIDR: "10.0.0.0/16", IPv6: true, Tags: cloud.Tags{"a": "b"}}
	good := ec2.VPCState{
		Object:       identity.Object{ID: "vpc-1", Tags: cloud.Tags{"a": "b", "theirs": "x"}},
		CIDR:         "10.0.0.0/16",
		IPv6State:    "associated",
		DNSHostnames: true,
		DNSSupport:   true,
	}
	require.Empty(t, v.Diff(&good))
	bad := good
	bad.CIDR, bad.IPv6State, bad.DNSHostnames, bad.DNSSupport, bad.Object = "10.1.0.0/16", "associating", false, false, enginetest.Object("vpc-1")
	require.Equal(t, []string{
		`… ipv6 from "associating" to "associated"`, `! cidr from "10.1.0.0/16" to "10.0.0.0/16"`, `+ dnsSupport from "false" to "true"`,
		`+ dnsHostnames from "false" to "true"`, `+ tag a from "" to "b"`,
	}, enginetest.Lines(v.Diff(&bad)))

	s := &ec2.Subnet{VPC: vpc, CIDR: "10.0.64.0/18", Zone: "us-east-1a", IPv6Index: 2}
	have := ec2.SubnetState{
		Object:     enginetest.Object("subnet-1"),
		VPC:        "vpc-1",
		CIDR:       "10.0.64.0/18",
		Zone:       "us-east-1a",
		IPv6CIDR:   "2600:1f14:2:4a02::/64",
		AssignIPv6: true,
	}
	require.Empty(t, s.Diff(&have))
	have.IPv6CIDR, have.MapPublicIP, have.Zone, have.AssignIPv6 = "2600:1f14:2:4a03::/64", true, "us-east-1b", false
	require.Equal(t, []string{
		`! zone from "us-east-1b" to "us-east-1a"`,
		`+ mapPublicIP from "true" to "false"`,
		`! ipv6 from "2600:1f14:2:4a03::/64" to "2600:1f14:2:4a02::/64"`,
		`+ assignIPv6 from "false" to "true"`,
	}, enginetest.Lines(s.Diff(&have)))
	native := &ec2.Subnet{VPC: vpc, Zone: "us-east-1a", IPv6CIDR: "2600:1f14:2:4a07::/64", HostnameType: "resource-name"}
	have = ec2.SubnetState{Object: enginetest.Object("subnet-2"), Zone: "us-east-1a", IPv6CIDR: "2600:1f14:2:4a07::/64", AssignIPv6: true, HostnameType: "ip-name"}
	require.Equal(t, []string{`+ dns64 from "false" to "true"`, `+ hostnameType from "ip-name" to "resource-name"`}, enginetest.Lines(native.Diff(&have)))
}

func TestInstanceDiff(t *testing.T) {
	k := enginetest.NewFixture(t)
	subnet := enginetest.Existing(k, "subnet", ec2.SubnetState{Object: enginetest.Object("subnet-1")})
	b, a := k.Group("b"), k.Group("a")
	k.Observe()
	i := &ec2.Instance{
		Spec: infrav1.AWSMachineSpec{
			InstanceType:             "t3.large",
			IAMInstanceProfile:       "nodes",
			InstanceMetadataOptions:  &infrav1.InstanceMetadataOptions{},
			AdditionalSecurityGroups: []infrav1.AWSResourceReference{{ID: aws.String("sg-a")}, {ID: aws.String("sg-0")}},
		},
		Subnet: subnet,
		Groups: []*graph.Ref[ec2.SecurityGroupState]{b, a},
		Key:    "default",
	}
	good := ec2.InstanceState{
		Object: enginetest.Object(
			"i-1",
		),
		Status:   "running",
		Type:     "t3.large",
		Image:    "ami-1",
		Subnet:   "subnet-9",
		Key:      "default",
		Profile:  "nodes",
		Groups:   []string{"sg-b", "sg-a", "sg-0"},
		Metadata: ec2.Metadata{Endpoint: "enabled", IPv6: "disabled", Tokens: "optional", Tags: "disabled", HopLimit: 1},
	}
	require.Empty(t, i.Diff(&good), "groups in any order; subnet and image are not set in the manifest")
	other := good
	other.Key = ""
	require.Empty(t, i.Diff(&other), "the key pair of the cluster is for new machines")
	i.Spec.SSHKeyName = aws.String("default")
	i.Pinned, i.Spec.AMI.ID = true, aws.String("ami-2")
	i.Spec.InstanceMetadataOptions = &infrav1.InstanceMetadataOptions{HTTPTokens: "required", HTTPPutResponseHopLimit: 2}
	bad := good
	bad.Type, bad.Key, bad.Profile, bad.Groups = "t3.small", "", "", []string{"sg-b", "sg-9"}
	require.Equal(t, []string{
		`! instanceType from "t3.small" to "t3.large"`,
		`! image from "ami-1" to "ami-2"`,
		`! subnet from "subnet-9" to "subnet-1"`,
		`! profile from "" to "nodes"`,
		`! key from "" to "default"`,
		`+ securityGroup from "sg-9" to ""`,
		`+ securityGroup from "" to "sg-0"`,
		`+ securityGroup from "" to "sg-a"`,
		`+ metadata from "endpoint enabled, ipv6 disabled, hop limit 1, tokens optional, tags disabled" to "endpoint enabled, ipv6 disabled, hop limit 2, tokens required, tags disabled"`,
	}, enginetest.Lines(i.Diff(&bad)))
	i.Spec.NetworkInterfaces = []string{"eni-1"}
	require.NotContains(t, strings.Join(enginetest.Lines(i.Diff(&bad)), "\n"), "subnet", "existing interfaces determine it")
	require.Equal(
		t,
		`… state from "pending" to "running"`,
		enginetest.Lines((&ec2.Instance{Subnet: subnet}).Diff(&ec2.InstanceState{Object: enginetest.Object("i-1"), Status: "pending"}))[0],
	)
	require.Equal(
		t,
		`! state from "stopped" to "running"`,
		enginetest.Lines((&ec2.Instance{Subnet: subnet}).Diff(&ec2.InstanceState{Object: enginetest.Object("i-1"), Status: string(types.InstanceStateNameStopped), Stopped: true}))[0],
	)
	stopping := ec2.InstanceState{Object: enginetest.Object("i-2"), Status: string(types.InstanceStateNameStopping), Stopped: true}
	require.Equal(
		t,
		"start it with 'aws ec2 wait instance-stopped --instance-ids i-2 && aws ec2 start-instances --instance-ids i-2'; or terminate it, and the next run launches another machine",
		(&ec2.Instance{Subnet: subnet}).Diff(&stopping)[0].Advice,
	)
	stopped := ec2.InstanceState{Object: enginetest.Object("i-1"), Status: string(types.InstanceStateNameStopped), Stopped: true}
	require.Equal(
		t,
		"aws ec2 wait instance-stopped --region us-east-1 --instance-ids i-2 && aws ec2 start-instances --region us-east-1 --instance-ids i-1 i-2",
		ec2.StartCommand("us-east-1", stopping, stopped),
	)
}
