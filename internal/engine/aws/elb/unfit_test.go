package elb_test

import (
	"testing"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	"github.com/clusterawsadm/clusterawsadm/internal/awssim/elb"
	"github.com/clusterawsadm/clusterawsadm/internal/enginetest"
)

// edited is a case: an edit of an example, a change of the account, and what the plan says of it.
type edited struct {
	file string
	edit []string
	have func(s *awssim.State)
	want string // a pattern of the refusal; "": it is created
}

func (e edited) try(t *testing.T) {
	t.Helper()
	enginetest.TryEdited(t, e.file, e.edit, e.have, e.want)
}

// The existing load balancer of an API server can be used, or the plan says what is wrong with it.
func TestUnfitLoadBalancers(t *testing.T) {
	const file, field = "byo-load-balancer.yaml", `^targets/api \(byo-load-balancer.yaml:\d+ AWSCluster/byo-load-balancer spec.controlPlaneLoadBalancer.name\): the `
	balancer := func(edit func(*elb.LoadBalancer)) func(*awssim.State) {
		return func(s *awssim.State) {
			for _, b := range s.ELB.LoadBalancers {
				edit(b)
			}
		}
	}
	listener := func(edit func(*elb.Listener)) func(*awssim.State) {
		return func(s *awssim.State) {
			for _, l := range s.ELB.Listeners {
				edit(l)
			}
		}
	}
	group := func(edit func(*elb.TargetGroup)) func(*awssim.State) {
		return func(s *awssim.State) {
			for _, g := range s.ELB.TargetGroups {
				edit(g)
			}
		}
	}
	for name, c := range map[string]edited{
		"failed":            {file, nil, balancer(func(b *elb.LoadBalancer) { b.Failed = "no addresses" }), field + `load balancer company-api is failed: no addresses, and AWS does not repair it`},
		"of applications":   {file, nil, balancer(func(b *elb.LoadBalancer) { b.Type = "application" }), field + `load balancer company-api is of the type application`},
		"in another VPC":    {file, nil, balancer(func(b *elb.LoadBalancer) { b.VPC = "vpc-9" }), field + `load balancer company-api is in the VPC vpc-9, and the cluster in vpc-0123456789abcdef0`},
		"TLS":               {file, nil, listener(func(l *elb.Listener) { l.Protocol = "TLS" }), field + `listener on the port 6443 of the load balancer company-api has the protocol TLS`},
		"UDP":               {file, nil, listener(func(l *elb.Listener) { l.Protocol = "UDP" }), field + `listener on the port 6443 of the load balancer company-api has the protocol UDP`},
		"TCP and UDP":       {file, nil, both(listener(func(l *elb.Listener) { l.Protocol = "TCP_UDP" }), group(func(g *elb.TargetGroup) { g.Protocol = "TCP_UDP" })), ""},
		"another port":      {file, nil, listener(func(l *elb.Listener) { l.Port = 443 }), `target-group/api .*: the load balancer has no listener on the port 6443 that forwards to a target group: add one`},
		"targets elsewhere": {file, nil, group(func(g *elb.TargetGroup) { g.VPC = "vpc-9" }), field + `target group company-api behind the port 6443 of the load balancer company-api is in the VPC vpc-9`},
		"targets of TLS":    {file, nil, group(func(g *elb.TargetGroup) { g.Protocol = "TLS" }), field + `target group company-api behind the port 6443 of the load balancer company-api has the protocol TLS`},
		"targets of IPv6":   {file, nil, group(func(g *elb.TargetGroup) { g.IPType = "ipv6" }), field + `target group company-api .* is for IPv6, and the machines have no primary IPv6 address`},
	} {
		t.Run(name, func(t *testing.T) { c.try(t) })
	}
}

func both(edits ...func(*awssim.State)) func(*awssim.State) {
	return func(s *awssim.State) {
		for _, edit := range edits {
			edit(s)
		}
	}
}
