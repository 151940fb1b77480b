package topology_test

import (
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	infrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/api/v1beta2"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/run"
	"github.com/clusterawsadm/clusterawsadm/internal/enginetest"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// A load balancer does not forward to machines in a zone in which it has no subnet, and clients do not reach an internet-facing one in private
// subnets.
func TestWhereTheLoadBalancerReachesTheControlPlane(t *testing.T) {
	const none = ""
	for name, c := range map[string]struct {
		file, subnets, want string
	}{
		"all zones of the machines":      {"listed-subnets.yaml", "    loadBalancerType: nlb\n    subnets: [public-a, public-b]\n", none},
		"internal, in private ones":      {"listed-subnets.yaml", "    loadBalancerType: nlb\n    scheme: internal\n    subnets: [nodes-a, nodes-b]\n", none},
		"internet-facing, in private":    {"listed-subnets.yaml", "    loadBalancerType: nlb\n    subnets: [public-a, nodes-b]\n", `listed-subnets.yaml:30 .*subnets\[1\]: the subnet nodes-b is private, and the load balancer is internet-facing`},
		"classic, in private":            {"listed-subnets.yaml", "    loadBalancerType: classic\n    subnets: [nodes-a]\n", `the subnet nodes-a is private`},
		"existing subnets, with routes":  {enginetest.ByoVPC, "    loadBalancerType: nlb\n    subnets: [subnet-0000000000000001a, subnet-0000000000000001b]\n", none},
		"existing subnets, behind a NAT": {enginetest.ByoVPC, "    loadBalancerType: nlb\n    subnets: [subnet-0000000000000002a]\n", `load balancer in the subnet subnet-0000000000000002a, whose route table rtb-\S+ leads to the NAT gateway nat-`},
		"classic, existing, behind NAT":  {enginetest.ByoVPC, "    loadBalancerType: classic\n    subnets: [subnet-0000000000000002a]\n", `leads to the NAT gateway nat-`},
	} {
		t.Run(name, func(t *testing.T) {
			m := enginetest.Rewritten(t, c.file, "    loadBalancerType: nlb\n", c.subnets)
			requireRefusal(t, m, c.want)
		})
	}
	for name, c := range map[string]struct{ subnets, zone, want string }{
		"a zone without the load balancer": {"    subnets: [public-b]\n", "us-east-1a", `machines of the control plane are in us-east-1a, and the load balancer has subnets in us-east-1b only`},
		"the machines may be anywhere":     {"    subnets: [public-b]\n", "", none},
		"across zones":                     {"    subnets: [public-b]\n    crossZoneLoadBalancing: true\n", "us-east-1a", none},
		"the same zone":                    {"    subnets: [public-b]\n", "us-east-1b", none},
	} {
		t.Run(name, func(t *testing.T) {
			m := enginetest.Rewritten(t, "listed-subnets.yaml", "    loadBalancerType: nlb\n", "    loadBalancerType: nlb\n"+c.subnets)
			if c.zone == "" {
				requireRefusal(t, m, c.want)
				return
			}
			private := map[string]string{"us-east-1a": "nodes-a", "us-east-1b": "nodes-b"}[c.zone]
			m.ControlPlane.Template.Spec.Template.Spec.Subnet = &infrav1.AWSResourceReference{ID: &private}
			requireRefusal(t, m, c.want)
		})
	}
}

// A load balancer takes one subnet of a zone. The manifest need not say in which zones existing subnets are.
func TestSubnetsOfALoadBalancerInOneZone(t *testing.T) {
	for _, kind := range []infrav1.LoadBalancerType{infrav1.LoadBalancerTypeNLB, infrav1.LoadBalancerTypeClassic} {
		m := enginetest.LoadQuick(t, enginetest.ByoVPC)
		lb := m.Infra.Spec.ControlPlaneLoadBalancer
		lb.LoadBalancerType, lb.Scheme = kind, &infrav1.ELBSchemeInternal
		lb.Subnets = []string{"subnet-0000000000000001a", "subnet-0000000000000002a"}
		for i := range m.Infra.Spec.NetworkSpec.Subnets {
			m.Infra.Spec.NetworkSpec.Subnets[i].AvailabilityZone = ""
		}
		requireRefusal(t, m, `subnets: subnet-0000000000000001a and subnet-0000000000000002a are both in us-east-1a, and a load balancer takes one subnet of a zone`)
	}
}

// The load balancer of another cluster forwards to the machines of that one.
func TestLoadBalancerOfAnotherCluster(t *testing.T) {
	m := enginetest.Load(t, "byo-load-balancer.yaml", nil)
	synctest.Test(t, func(t *testing.T) {
		a := enginetest.Prepared(t, m)
		a.Edit(func(s *awssim.State) {
			for _, lb := range s.ELB.LoadBalancers {
				lb.Tags = map[string]string{"sigs.k8s.io/cluster-api-provider-aws/cluster/other": "owned"}
			}
		})
		_, err := enginetest.Open(m, a.Process()).Plan(t.Context())
		require.ErrorAs(t, err, new(*plan.RefusedError))
		require.Regexp(t, `byo-load-balancer.yaml:\d+ AWSCluster/\S+ spec.controlPlaneLoadBalancer.name: \S+ is the load balancer of the cluster other`, err.Error())
	})
}

// In an existing VPC without DNS, machines do not find the API server. The plan warns of it.
func TestExistingVPCWithoutDNS(t *testing.T) {
	m := enginetest.LoadQuick(t, enginetest.ByoVPC)
	synctest.Test(t, func(t *testing.T) {
		a := enginetest.Prepared(t, m)
		a.Edit(func(s *awssim.State) {
			for _, v := range s.EC2.VPCs {
				v.DNSSupport = false
			}
		})
		var warnings []string
		target := cluster.Target{Config: a.Process().Config(), Owner: "test", Wait: plan.APIServer, Warn: func(w string) { warnings = append(warnings, w) }}
		_, err := run.Open(m, target).Plan(t.Context())
		require.NoError(t, err)
		require.Contains(t, strings.Join(warnings, "\n"), "has enableDnsSupport off")
		target.Transport = enginetest.Transport(a.Process())
		_, err = run.Open(m, target).Apply(t.Context(), cluster.Options{})
		require.ErrorAs(t, err, new(*plan.TimeoutError))
	})
}

func requireRefusal(t *testing.T, m *manifest.Cluster, want string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		a := enginetest.Prepared(t, m)
		_, err := enginetest.Open(m, a.Process()).Plan(t.Context())
		if want == "" {
			require.NoError(t, err)
			return
		}
		require.ErrorAs(t, err, new(*plan.RefusedError))
		assert.Regexp(t, want, err.Error())
	})
}
