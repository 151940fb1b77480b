package quota_test

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	infrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/api/v1beta2"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	ekssim "github.com/clusterawsadm/clusterawsadm/internal/awssim/eks"
	elbsim "github.com/clusterawsadm/clusterawsadm/internal/awssim/elb"
	eventsim "github.com/clusterawsadm/clusterawsadm/internal/awssim/eventbridge"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/run"
	"github.com/clusterawsadm/clusterawsadm/internal/enginetest"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// A plan shows each quota that it needs some of: the limit, what is in use, and what the
// plan needs.
func TestQuotasOfAPlan(t *testing.T) {
	for file, want := range map[string][]plan.Quota{
		"quickstart": {
			{Name: "NAT gateways in us-east-1a", Service: "vpc", Code: "L-FE5A380F", Limit: 5, Needed: 1},
			{Name: "NAT gateways in us-east-1b", Service: "vpc", Code: "L-FE5A380F", Limit: 5, Needed: 1},
			{Name: "NAT gateways in us-east-1c", Service: "vpc", Code: "L-FE5A380F", Limit: 5, Needed: 1},
			{Name: "Network Load Balancers", Service: "elasticloadbalancing", Code: "L-69A177A2", Limit: 50, Needed: 1},
			{Name: "VPCs", Service: "vpc", Code: "L-F678F1CE", Limit: 5, Used: 1, Needed: 1},
			{Name: "elastic IP addresses", Service: "ec2", Code: "L-0263D0A3", Limit: 5, Needed: 3},
			{Name: "inbound rules in security-group/controlplane", Service: "vpc", Code: "L-0EA8095F", Limit: 60, Needed: 9},
			{Name: "vCPUs of Standard instances", Service: "ec2", Code: "L-1216C47A", Limit: 5000, Needed: 4},
		},
		"classic-elb": {{Name: "Classic Load Balancers", Service: "elasticloadbalancing", Code: "L-E9E9831D", Limit: 20, Needed: 1}},
		"eks-addons": {
			{Name: "EKS clusters", Service: "eks", Code: "L-1194D53C", Limit: 100, Needed: 1},
			{Name: "managed node groups in eks-cluster", Service: "eks", Code: "L-6D54EA21", Limit: 30, Needed: 2},
		},
	} {
		t.Run(file, func(t *testing.T) {
			path := file + ".yaml"
			m := enginetest.LoadQuick(t, path)
			synctest.Test(t, func(t *testing.T) {
				a := enginetest.Prepared(t, m)
				plan := enginetest.MustPlan(t, m, a)
				for _, q := range want {
					assert.Contains(t, plan.Quotas, q)
				}
				if file == "quickstart" {
					assert.Len(t, plan.Quotas, len(want))
				}
				enginetest.MustApply(t, m, a)
				assert.Empty(t, enginetest.MustPlan(t, m, a).Quotas, "nothing has to be created")
			})
		})
	}
}

// Of a quota that only resources of the plan take, those that exist are in use.
func TestQuotaThatExistingResourcesTake(t *testing.T) {
	const file = "eks-addons.yaml"
	quotas := func(p plan.Plan) []plan.Quota {
		return slices.DeleteFunc(p.Quotas, func(q plan.Quota) bool { return q.Code != "L-6D54EA21" })
	}
	synctest.Test(t, func(t *testing.T) {
		m := enginetest.LoadQuick(t, file)
		a := enginetest.Prepared(t, m)
		enginetest.MustApply(t, m, a)
		m.Pools[0].Object.Spec.Replicas = new(int32(3))
		require.Empty(t, quotas(enginetest.MustPlan(t, m, a)), "a node group is scaled")
		added := m.Pools[0]
		added.Object = added.Object.DeepCopy()
		added.Object.Name, added.Object.Spec.Template.Spec.InfrastructureRef.Name = "another", "another"
		managed := m.Pools[0].Managed.DeepCopy()
		managed.Name, managed.Spec.EKSNodegroupName = "another", "another"
		added.Managed = managed
		m.Pools = append(m.Pools, added)
		require.Equal(t, []plan.Quota{{Name: "managed node groups in eks-cluster", Service: "eks", Code: "L-6D54EA21", Limit: 30, Used: 2, Needed: 1}},
			quotas(enginetest.MustPlan(t, m, a)))
	})
}

// A quota that is too small is an error before the first write.
func TestQuotaIsExceeded(t *testing.T) {
	const network = "arn:aws:elasticloadbalancing:us-east-1:123456789012:loadbalancer/net/theirs/50dc6c495c0c9188"
	for name, c := range map[string]struct {
		file string
		edit func(s *awssim.State)
		want string
	}{
		"VPCs": {
			"quickstart", func(s *awssim.State) { s.EC2.Limits.VPCs = 1 },
			"the plan needs 1 VPCs, but us-east-1 allows 1 and 1 are in use: delete some, or request a higher quota (vpc L-F678F1CE)",
		},
		"addresses": {
			"quickstart", func(s *awssim.State) { s.EC2.Limits.Addresses = 2 },
			"the plan needs 3 elastic IP addresses, but us-east-1 allows 2 and 0 are in use: reduce them in the manifest, or request a higher quota (ec2 L-0263D0A3)",
		},
		"rules": {
			"quickstart", func(s *awssim.State) { s.EC2.Limits.RulesPerGroup = 8 },
			"the plan needs 9 inbound rules in security-group/controlplane, but us-east-1 allows 8 and 0 are in use: reduce them in the manifest, or request a higher quota (vpc L-0EA8095F)",
		},
		"network load balancers": {"quickstart", func(s *awssim.State) {
			s.ELB.Limits.Network = 1
			s.ELB.LoadBalancers[network] = &elbsim.LoadBalancer{ARN: network, Name: "theirs", Type: "network", Scheme: "internal", VPC: "vpc-theirs", IPType: "ipv4", DNSName: "theirs.example"}
		}, "the plan needs 1 Network Load Balancers, but us-east-1 allows 1 and 1 are in use: delete some, or request a higher quota (elasticloadbalancing L-69A177A2)"},
		"classic load balancers": {"classic-elb", func(s *awssim.State) {
			s.ELB.Limits.Classic = 1
			s.ELB.Classic["theirs"] = &elbsim.ClassicLoadBalancer{Name: "theirs", Scheme: "internal", DNSName: "theirs.example"}
		}, "the plan needs 1 Classic Load Balancers, but us-east-1 allows 1 and 1 are in use: delete some, or request a higher quota (elasticloadbalancing L-E9E9831D)"},
		"EKS clusters": {"eks", func(s *awssim.State) {
			s.EKS.Limits.Clusters = 1
			s.EKS.Clusters["theirs"] = &ekssim.Cluster{Name: "theirs"}
		}, "the plan needs 1 EKS clusters, but us-east-1 allows 1 and 1 are in use: delete some, or request a higher quota (eks L-1194D53C)"},
		"rules of EventBridge": {"eks-karpenter", func(s *awssim.State) {
			s.EventBridge.MostRules = 1
			s.EventBridge.Rules["theirs"] = &eventsim.Rule{Name: "theirs", Pattern: `{"source":["aws.ec2"]}`, State: "ENABLED"}
		}, "the plan needs 1 EventBridge rules, but us-east-1 allows 1 and 1 are in use: delete some, or request a higher quota (events L-244521F2)"},
		"control plane": {
			"three-zones", func(s *awssim.State) { s.EC2.Limits.VCPUs = 5 },
			"the plan needs 6 vCPUs of Standard instances for the control plane, but us-east-1 allows 5 and 0 are in use: reduce them in the manifest, or request a higher quota (ec2 L-1216C47A)",
		},
	} {
		t.Run(name, func(t *testing.T) {
			path := c.file + ".yaml"
			m := enginetest.LoadQuick(t, path)
			synctest.Test(t, func(t *testing.T) {
				a := enginetest.Prepared(t, m)
				a.Edit(c.edit)
				assert.Contains(t, enginetest.Refused(t, m, a), c.want)
			})
		})
	}
}

// Addresses, NAT gateways and machines of others count, too.
func TestQuotasThatOthersUse(t *testing.T) {
	theirs, m := enginetest.LoadQuick(t, enginetest.ThreeZones), enginetest.LoadQuick(t, enginetest.Quickstart)
	synctest.Test(t, func(t *testing.T) {
		a := enginetest.Account(theirs, enginetest.Lag)
		a.Edit(func(s *awssim.State) { s.EC2.Limits.Addresses = 10 })
		enginetest.MustApply(t, theirs, a)
		used := map[string]int{}
		for _, q := range enginetest.MustPlan(t, m, a).Quotas {
			used[q.Name] = q.Used
		}
		assert.Equal(t, map[string]int{
			"NAT gateways in us-east-1a": 1, "NAT gateways in us-east-1b": 1, "NAT gateways in us-east-1c": 1, "Network Load Balancers": 1, "VPCs": 2,
			"elastic IP addresses": 3, "inbound rules in security-group/controlplane": 0, "vCPUs of Standard instances": 12,
		}, used)
	})
}

// warnings returns what a plan warns of.
func warnings(t *testing.T, m *manifest.Cluster, p *awssim.Process) string {
	t.Helper()
	var all []string
	_, err := run.Open(m, cluster.Target{Config: p.Config(), Owner: "test", Warn: func(text string) { all = append(all, text) }}).Plan(t.Context())
	require.NoError(t, err)
	return strings.Join(all, "\n")
}

// If the control plane fits, a quota of vCPUs that is too small for the workers is a
// warning: the run launches those that fit. Each family of instance types has its own
// quota, and so have spot instances.
func TestQuotaForSomeWorkers(t *testing.T) {
	for name, c := range map[string]struct {
		edit func(spec *infrav1.AWSMachineSpec, s *awssim.State)
		want string
	}{
		"standard": {
			func(_ *infrav1.AWSMachineSpec, s *awssim.State) { s.EC2.Limits.VCPUs = 9 },
			"the plan needs 12 vCPUs of Standard instances, but us-east-1 allows 9 and 0 are in use: only some machines run (1 of 3 of machine/three-zones-md-0) until there is a higher quota (ec2 L-1216C47A)",
		},
		"another family": {func(spec *infrav1.AWSMachineSpec, s *awssim.State) {
			spec.InstanceType = "g4dn.xlarge"
			s.EC2.Limits.OtherVCPUs["L-DB2E81BA"] = 4
		}, "the plan needs 12 vCPUs of G and VT instances, but us-east-1 allows 4 and 0 are in use: only some machines run (1 of 3 of machine/three-zones-md-0) until there is a higher quota (ec2 L-DB2E81BA)"},
		"spot": {func(spec *infrav1.AWSMachineSpec, s *awssim.State) {
			spec.SpotMarketOptions = &infrav1.SpotMarketOptions{}
			s.EC2.Limits.OtherVCPUs["L-34B43A08"] = 5
		}, "the plan needs 6 vCPUs of Standard spot instances, but us-east-1 allows 5 and 0 are in use: only some machines run (2 of 3 of machine/three-zones-md-0) until there is a higher quota (ec2 L-34B43A08)"},
	} {
		t.Run(name, func(t *testing.T) {
			m := enginetest.LoadQuick(t, enginetest.ThreeZones)
			synctest.Test(t, func(t *testing.T) {
				a := enginetest.Account(m, enginetest.Lag)
				a.Edit(func(s *awssim.State) { c.edit(&m.Deployments[0].Template.Spec.Template.Spec, s) })
				assert.Equal(t, c.want, warnings(t, m, a.Process()))
			})
		})
	}
}

// A quota of vCPUs without room for any of the machines ends the plan: a run would launch nothing, and fail at its end.
func TestQuotaForNoWorkers(t *testing.T) {
	for file, c := range map[string]struct {
		edit func(*manifest.Cluster, *awssim.State)
		want string
	}{
		"three-zones": {
			func(m *manifest.Cluster, s *awssim.State) {
				m.Deployments[0].Template.Spec.Template.Spec.InstanceType = "g4dn.xlarge"
				s.EC2.Limits.OtherVCPUs["L-DB2E81BA"] = 0
			},
			"the plan needs 12 vCPUs of G and VT instances for machine/three-zones-md-0, of which none would run, but us-east-1 allows 0 and 0 are in use: " +
				"reduce them in the manifest, or request a higher quota (ec2 L-DB2E81BA)",
		},
		"flatcar-pool": {
			func(_ *manifest.Cluster, s *awssim.State) { s.EC2.Limits.VCPUs = 3 },
			"the plan needs 6 vCPUs of Standard instances for auto-scaling-group/flatcar-pool-mp-0, of which none would run, but us-east-1 allows 3",
		},
		"eks": {
			func(_ *manifest.Cluster, s *awssim.State) { s.EC2.Limits.VCPUs = 1 },
			"the plan needs 4 vCPUs of Standard instances for node-group/default_eks-pool-0, of which none would run, but us-east-1 allows 1",
		},
	} {
		t.Run(file, func(t *testing.T) {
			m := enginetest.LoadQuick(t, file+".yaml")
			synctest.Test(t, func(t *testing.T) {
				a := enginetest.Prepared(t, m)
				a.Edit(func(s *awssim.State) { c.edit(m, s) })
				_, err := run.Open(m, cluster.Target{Config: a.Process().Config(), Owner: "test", Warn: func(string) {}}).Plan(t.Context())
				var refused *plan.RefusedError
				require.ErrorAs(t, err, &refused)
				assert.ErrorContains(t, err, c.want)
			})
		})
	}
}

// A rollout needs room for the machines that it has at the same time, not for all that it launches: the old ones leave. The
// instance type of the new ones has as many vCPUs.
func TestQuotaForARollout(t *testing.T) {
	const rolls = "m5.large"
	spec := func(m *manifest.Cluster, control bool) *infrav1.AWSMachineSpec {
		if control {
			return &m.ControlPlane.Template.Spec.Template.Spec
		}
		return &m.Deployments[0].Template.Spec.Template.Spec
	}
	for name, c := range map[string]struct {
		control       bool
		kind          string
		room          int
		warns, refuse string
	}{
		"control plane":                  {true, rolls, 2, "", ""},
		"control plane, no room":         {true, rolls, 1, "", "the plan needs 2 vCPUs of Standard instances for the control plane, but us-east-1 allows 13 and 12 are in use"},
		"larger control planes":          {true, "m5.xlarge", 8, "", ""},
		"larger control planes, no room": {true, "m5.xlarge", 7, "", "the plan needs 8 vCPUs of Standard instances for the control plane"},
		"workers":                        {false, rolls, 2, "", ""},
		"workers, no room":               {false, rolls, 1, "only some machines run (0 of 3 new ones of machine/three-zones-md-0)", ""},
		"larger workers":                 {false, "m5.xlarge", 8, "", ""},
		"larger workers, room for two":   {false, "m5.xlarge", 6, "only some machines run (2 of 3 new ones of machine/three-zones-md-0)", ""},
	} {
		t.Run(name, func(t *testing.T) {
			m, changed := enginetest.LoadQuick(t, enginetest.ThreeZones), enginetest.LoadQuick(t, enginetest.ThreeZones)
			spec(changed, c.control).InstanceType = c.kind
			synctest.Test(t, func(t *testing.T) {
				a := enginetest.Alive(t, m)
				a.Edit(func(s *awssim.State) { s.EC2.Limits.VCPUs = 12 + c.room })
				target, told := enginetest.RollingTarget(a.Process()), ""
				target.Warn = func(text string) { told += text }
				_, err := run.Open(changed, target).Plan(t.Context())
				if c.refuse != "" {
					assert.ErrorContains(t, err, c.refuse)
					return
				}
				require.NoError(t, err)
				if c.warns == "" {
					assert.NotContains(t, told, "vCPUs")
					enginetest.MustRoll(t, changed, a)
					return
				}
				assert.Contains(t, told, c.warns)
			})
		})
	}
}

// Machines of pools and of node groups count, too.
func TestQuotaForPools(t *testing.T) {
	for file, c := range map[string]struct {
		vcpus int
		want  string
	}{
		"flatcar-pool": {5, "the plan needs 6 vCPUs of Standard instances, but us-east-1 allows 5 and 0 are in use: only some machines run (1 of 2 of auto-scaling-group/flatcar-pool-mp-0) until there is a higher quota (ec2 L-1216C47A)"},
		"eks":          {3, "the plan needs 4 vCPUs of Standard instances, but us-east-1 allows 3 and 0 are in use: only some machines run (1 of 2 of node-group/default_eks-pool-0) until there is a higher quota (ec2 L-1216C47A)"},
	} {
		t.Run(file, func(t *testing.T) {
			path := file + ".yaml"
			m := enginetest.LoadQuick(t, path)
			synctest.Test(t, func(t *testing.T) {
				a := enginetest.Prepared(t, m)
				a.Edit(func(s *awssim.State) { s.EC2.Limits.VCPUs = c.vcpus })
				assert.Equal(t, c.want, warnings(t, m, a.Process()))
			})
		})
	}
}

// Quotas that cannot be read are named in a warning, and end no run.
func TestQuotasAreUnknown(t *testing.T) {
	m := enginetest.LoadQuick(t, enginetest.Quickstart)
	for op, want := range map[string]string{
		"GetServiceQuota": "these quotas are not checked (UnauthorizedOperation): NAT gateways, Network Load Balancers, VPCs, elastic IP addresses, inbound rules, vCPUs of Standard instances",
	} {
		t.Run(op, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := enginetest.Account(m, enginetest.Lag).Process()
				p.Fault = func(_ int, _, called string) awssim.Fault {
					if called == op {
						return awssim.Denied
					}
					return awssim.None
				}
				assert.Equal(t, want, warnings(t, m, p))
				_, err := enginetest.Open(m, p).Apply(t.Context(), cluster.Options{})
				require.NoError(t, err)
			})
		})
	}
}

// A quota that was lowered below what is in use says nothing about a control plane that does not grow.
func TestLoweredQuota(t *testing.T) {
	m := enginetest.LoadQuick(t, "three-zones.yaml")
	synctest.Test(t, func(t *testing.T) {
		a := enginetest.Prepared(t, m)
		enginetest.MustApply(t, m, a)
		a.Edit(func(s *awssim.State) { s.EC2.Limits.VCPUs = 2 })
		enginetest.RequireNoChange(t, m, a)
		grown := *m.Deployments[0].Object.Spec.Replicas + 1
		m.Deployments[0].Object.Spec.Replicas = &grown
		_, err := run.Open(m, cluster.Target{Config: a.Process().Config(), Owner: "test", Warn: func(string) {}}).Plan(t.Context())
		require.ErrorAs(t, err, new(*plan.RefusedError))
		require.ErrorContains(t, err, "of which none would run")
		require.NotContains(t, err.Error(), "needs 0 vCPUs")
	})
}
