package elb_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/ec2"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/elb"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
	"github.com/clusterawsadm/clusterawsadm/internal/enginetest"
)

func TestBalancerDiffs(t *testing.T) {
	k := enginetest.NewFixture(t)
	vpc, group := k.VPC(), k.Group("lb")
	subnet := enginetest.Existing(k, "subnet", ec2.SubnetState{Object: enginetest.Object("subnet-1")})
	target := enginetest.Existing(k, "target", elb.TargetGroupState{Object: enginetest.Object("arn:tg/1")})
	balancer := enginetest.Existing(k, "lb", elb.LoadBalancerState{Object: enginetest.Object("arn:lb/1")})
	k.Observe()

	l := &elb.LoadBalancer{
		Name:      "demo",
		VPC:       vpc,
		Subnets:   []*graph.Ref[ec2.SubnetState]{subnet},
		Groups:    []*graph.Ref[ec2.SecurityGroupState]{group},
		ExtraIDs:  []string{"sg-x"},
		CrossZone: true,
	}
	have := elb.LoadBalancerState{
		Object:    enginetest.Object("arn:lb/1"),
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
		Object:   enginetest.Object("arn:lb/1"),
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
	}, enginetest.Lines(l.Diff(&bad)))
	bad.Status = "provisioning"
	require.Equal(t, []string{`… state from "provisioning" to "active"`, `! internal from "true" to "false"`}, enginetest.Lines(l.Diff(&bad)))

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
		Object:     enginetest.Object("arn:tg/1"),
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
	}, enginetest.Lines(g.Diff(&seen)))

	listener := &elb.Listener{LoadBalancer: balancer, Target: target, Port: 6443}
	require.Empty(t, listener.Diff(&elb.ListenerState{Object: enginetest.Object("arn:l/1"), Port: 6443, Target: "arn:tg/1"}))
	require.Equal(
		t,
		[]string{`+ target from "arn:tg/9" to "arn:tg/1"`},
		enginetest.Lines(listener.Diff(&elb.ListenerState{Object: enginetest.Object("arn:l/1"), Port: 6443, Target: "arn:tg/9"})),
	)
}
