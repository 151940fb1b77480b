package aws_test

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
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/elb"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/identity"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/s3"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
)

// Rules are compared in the form that DescribeSecurityGroups returns: without ports for
// protocols that have none, icmpv6 for 58, and canonical CIDR blocks.
func TestRulesDiff(t *testing.T) {
	k := newFixture(t)
	vpc, me, node1 := k.vpc(), k.group("me"), k.group("node")
	address := existing(k, "elastic-ip/a", ec2.ElasticIPState{Object: object("eipalloc-1"), PublicIP: "192.0.2.1"})
	k.observe()
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
		require.Equal(t, []string{`+ ingress from "" to "` + c.have + `"`}, lines(rules(false, c.want).Diff(&ec2.SecurityGroupRulesState{})), name)
	}

	ssh := ec2.IngressRule{Protocol: "tcp", First: 22, Last: 22, CIDR: "192.0.2.0/24", Description: "SSH"}
	have := &ec2.SecurityGroupRulesState{Group: "sg-me", Lines: []string{"tcp 22 192.0.2.0/24 ssh for all", "tcp 443 0.0.0.0/0"}}
	require.Equal(t, []string{
		`+ ingress from "tcp 22 192.0.2.0/24 ssh for all" to ""`, `+ ingress from "tcp 443 0.0.0.0/0" to ""`, `+ ingress from "" to "tcp 22 192.0.2.0/24 SSH"`,
	}, lines(rules(false, ssh).Diff(have)))
	require.Equal(t, []string{
		`+ ingress from "tcp 22 192.0.2.0/24 ssh for all" to ""`, `+ ingress from "" to "tcp 22 192.0.2.0/24 SSH"`,
	}, lines(rules(true, ssh).Diff(have)), "other rules of a shared group are not changed")
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
	k := newFixture(t)
	vpc := k.vpc()
	subnet := existing(k, "subnet", ec2.SubnetState{Object: object("subnet-1"), VPC: "vpc-1"})
	nat := existing(k, "nat", ec2.NATGatewayState{Object: object("nat-1")})
	egress := existing(k, "eigw", ec2.EgressOnlyGatewayState{Object: object("eigw-1")})
	k.observe()
	r := &ec2.RouteTable{VPC: vpc, Subnet: subnet, Routes: []ec2.Route{{To: "0.0.0.0/0", Via: nat}, {To: "::/0", Via: egress}}}
	state := func(routes map[string]string, subnets ...string) *ec2.RouteTableState {
		s := &ec2.RouteTableState{Object: object("rtb-1"), Routes: routes, Associations: map[string]string{}}
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
	}, lines(r.Diff(state(map[string]string{"0.0.0.0/0": "nat-rogue"}, "subnet-9"))))
}

func TestNetworkDiffs(t *testing.T) {
	k := newFixture(t)
	vpc := k.vpc()
	k.observe()
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
	bad.CIDR, bad.IPv6State, bad.DNSHostnames, bad.DNSSupport, bad.Object = "10.1.0.0/16", "associating", false, false, object("vpc-1")
	require.Equal(t, []string{
		`… ipv6 from "associating" to "associated"`, `! cidr from "10.1.0.0/16" to "10.0.0.0/16"`, `+ dnsSupport from "false" to "true"`,
		`+ dnsHostnames from "false" to "true"`, `+ tag a from "" to "b"`,
	}, lines(v.Diff(&bad)))

	s := &ec2.Subnet{VPC: vpc, CIDR: "10.0.64.0/18", Zone: "us-east-1a", IPv6Index: 2}
	have := ec2.SubnetState{
		Object:     object("subnet-1"),
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
	}, lines(s.Diff(&have)))
	native := &ec2.Subnet{VPC: vpc, Zone: "us-east-1a", IPv6CIDR: "2600:1f14:2:4a07::/64", HostnameType: "resource-name"}
	have = ec2.SubnetState{Object: object("subnet-2"), Zone: "us-east-1a", IPv6CIDR: "2600:1f14:2:4a07::/64", AssignIPv6: true, HostnameType: "ip-name"}
	require.Equal(t, []string{`+ dns64 from "false" to "true"`, `+ hostnameType from "ip-name" to "resource-name"`}, lines(native.Diff(&have)))
}

func TestBalancerDiffs(t *testing.T) {
	k := newFixture(t)
	vpc, group := k.vpc(), k.group("lb")
	subnet := existing(k, "subnet", ec2.SubnetState{Object: object("subnet-1")})
	target := existing(k, "target", elb.TargetGroupState{Object: object("arn:tg/1")})
	balancer := existing(k, "lb", elb.LoadBalancerState{Object: object("arn:lb/1")})
	k.observe()

	l := &elb.LoadBalancer{
		Name:      "demo",
		VPC:       vpc,
		Subnets:   []*graph.Ref[ec2.SubnetState]{subnet},
		Groups:    []*graph.Ref[ec2.SecurityGroupState]{group},
		ExtraIDs:  []string{"sg-x"},
		CrossZone: true,
	}
	have := elb.LoadBalancerState{
		Object:    object("arn:lb/1"),
		Name:      "demo",
		Status:    "active",
		Subnets:   []string{"subnet-1"},
		Groups:    []string{"sg-x", "sg-lb"},
		CrossZone: true,
		IPType:    "ipv4",
	}
	require.Empty(t, l.Diff(&have))
	bare := have
	bare.Groups = nil
	require.Empty(t, l.Diff(&bare), "AWS adds no security groups to a load balancer without any")
	bad := elb.LoadBalancerState{
		Object:   object("arn:lb/1"),
		Name:     "demo",
		Status:   "active",
		Internal: true,
		Subnets:  []string{"subnet-9"},
		Groups:   []string{"sg-9"},
		IPType:   "dualstack",
	}
	require.Equal(t, []string{
		`! internal from "true" to "false"`,
		`+ ipAddressType from "dualstack" to "ipv4"`,
		`+ crossZone from "false" to "true"`,
		`+ subnet from "subnet-9" to ""`,
		`+ subnet from "" to "subnet-1"`,
		`+ securityGroup from "sg-9" to ""`,
		`+ securityGroup from "" to "sg-lb"`,
		`+ securityGroup from "" to "sg-x"`,
	}, lines(l.Diff(&bad)))
	bad.Status = "provisioning"
	require.Equal(t, []string{`… state from "provisioning" to "active"`, `! internal from "true" to "false"`}, lines(l.Diff(&bad)))

	check := elb.HealthCheck{Protocol: "HTTPS", Port: "6443", Path: "/readyz", Interval: 5, Timeout: 4, Healthy: 2, Unhealthy: 6}
	g := &elb.TargetGroup{
		Name:       "apiserver-target-abcde",
		VPC:        vpc,
		Port:       6443,
		IPType:     "ipv4",
		Check:      check,
		Attributes: map[string]string{"preserve_client_ip.enabled": "false"},
	}
	seen := elb.TargetGroupState{
		Object:     object("arn:tg/1"),
		Name:       "apiserver-target-zzzzz",
		Port:       6443,
		IPType:     "ipv4",
		Check:      check,
		Attributes: map[string]string{"preserve_client_ip.enabled": "false", "other": "x"},
	}
	require.Empty(t, g.Diff(&seen), "the name of an existing target group is not compared")
	seen.Port, seen.IPType, seen.Check.Path, seen.Attributes = 443, "ipv6", "", nil
	require.Equal(t, []string{
		`! port from "443" to "6443"`, `! ipAddressType from "ipv6" to "ipv4"`,
		`+ healthCheck from "HTTPS port 6443 every 5s, timeout 4s, 2 up, 6 down" to "HTTPS /readyz port 6443 every 5s, timeout 4s, 2 up, 6 down"`,
		`+ attribute preserve_client_ip.enabled from "" to "false"`,
	}, lines(g.Diff(&seen)))

	listener := &elb.Listener{LoadBalancer: balancer, Target: target, Port: 6443}
	require.Empty(t, listener.Diff(&elb.ListenerState{Object: object("arn:l/1"), Port: 6443, Target: "arn:tg/1"}))
	require.Equal(
		t,
		[]string{`+ target from "arn:tg/9" to "arn:tg/1"`},
		lines(listener.Diff(&elb.ListenerState{Object: object("arn:l/1"), Port: 6443, Target: "arn:tg/9"})),
	)
}

func TestInstanceDiff(t *testing.T) {
	k := newFixture(t)
	subnet := existing(k, "subnet", ec2.SubnetState{Object: object("subnet-1")})
	b, a := k.group("b"), k.group("a")
	k.observe()
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
		Object: object(
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
	}, lines(i.Diff(&bad)))
	i.Spec.NetworkInterfaces = []string{"eni-1"}
	require.NotContains(t, strings.Join(lines(i.Diff(&bad)), "\n"), "subnet", "existing interfaces determine it")
	require.Equal(
		t,
		`… state from "pending" to "running"`,
		lines((&ec2.Instance{Subnet: subnet}).Diff(&ec2.InstanceState{Object: object("i-1"), Status: "pending"}))[0],
	)
	require.Equal(
		t,
		`! state from "stopped" to "running"`,
		lines((&ec2.Instance{Subnet: subnet}).Diff(&ec2.InstanceState{Object: object("i-1"), Status: string(types.InstanceStateNameStopped), Stopped: true}))[0],
	)
}

// The bucket policy allows each role to read its prefixes, and denies requests without
// TLS. It equals its canonical form.
func TestBucketPolicy(t *testing.T) {
	b := &s3.Bucket{Name: "demo", Partition: "aws-cn", Account: "123456789012", Readers: map[string]s3.Reader{
		"control-plane": {Role: "cp", Prefixes: []string{"control-plane/*"}}, "nodes": {Role: "nodes", Prefixes: []string{"node/*", "machine-pool/*"}},
	}}
	d := b.Diff(&s3.BucketState{Name: "demo"})
	require.Len(t, d, 1)
	require.JSONEq(t, `{"Version": "2012-10-17", "Statement": [
		{"Sid": "ForceSSLOnlyAccess", "Effect": "Deny", "Principal": {"AWS": "*"}, "Action": "s3:*", "Resource": "arn:aws-cn:s3:::demo/*", "Condition": {"Bool": {"aws:SecureTransport": "false"}}},
		{"Sid": "control-plane", "Effect": "Allow", "Action": "s3:GetObject", "Resource": "arn:aws-cn:s3:::demo/control-plane/*", "Principal": {"AWS": "arn:aws-cn:iam::123456789012:role/cp"}},
		{"Sid": "nodes", "Effect": "Allow", "Action": "s3:GetObject", "Resource": ["arn:aws-cn:s3:::demo/machine-pool/*", "arn:aws-cn:s3:::demo/node/*"], "Principal": {"AWS": "arn:aws-cn:iam::123456789012:role/nodes"}}
	]}`, sortedStatements(t, d[0].Want))
	require.Empty(t, b.Diff(&s3.BucketState{Name: "demo", Policy: d[0].Want}))
}
