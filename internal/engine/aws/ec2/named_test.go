package ec2_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	kmstypes "github.com/aws/aws-sdk-go-v2/service/kms/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	infrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/api/v1beta2"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/internal/enginetest"
)

const (
	keyARN   = "arn:aws:kms:us-east-1:123456789012:key/1234abcd-12ab-34cd-56ef-1234567890ab"
	instance = "      instanceType: t3.large\n      iamInstanceProfile: nodes.cluster-api-provider-aws.sigs.k8s.io\n"
	disk     = "      rootVolume:\n        size: 40\n        type: gp3\n        encrypted: true\n"
)

// volumes is a list of n volumes.
func volumes(n int) string {
	text := "      nonRootVolumes:\n"
	for i := range n {
		text += fmt.Sprintf("      - {deviceName: /dev/xvd%c%c, size: 8}\n", 'b'+i/26, 'a'+i%26)
	}
	return text
}

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

// What a manifest names exists and can be used, or the plan says so at its line.
func TestNamedThingsAreLookedUp(t *testing.T) {
	volume := func(key string) []string {
		return []string{instance + disk, "      rootVolume: {size: 80, encrypted: true, encryptionKey: '" + key + "'}\n" + instance}
	}
	hook := func(role string) []string {
		const result = "    defaultResult: CONTINUE\n"
		return []string{result, result + "    notificationTargetARN: arn:aws:sqs:us-east-1:123456789012:drain\n    roleARN: " + role + "\n"}
	}
	key := func(k awssim.Key) func(*awssim.State) { return func(s *awssim.State) { s.KMS.Keys[keyARN] = &k } }
	for name, c := range map[string]edited{
		"no key of a volume": {
			enginetest.Quickstart, volume("alias/nope"), nil,
			`machine/\S+ \(quickstart.yaml:\d+ AWSMachineTemplate/quickstart-md-0 spec.template.spec.rootVolume.encryptionKey\): rootVolume.encryptionKey: the KMS key alias/nope does not exist`,
		},
		"a key that goes": {enginetest.Quickstart, volume(keyARN), key(awssim.Key{State: kmstypes.KeyStatePendingDeletion}), `will be deleted: cancel that`},
		"no capacity reservation": {
			enginetest.Quickstart,
			[]string{instance, "      capacityReservationId: cr-0123456789abcdef0\n" + instance},
			nil,
			`AWSMachineTemplate/quickstart-md-0 spec.template.spec.capacityReservationId\): capacityReservationId: the capacity reservation cr-0123456789abcdef0 does not exist`,
		},
		"no host": {
			enginetest.Quickstart,
			[]string{instance, "      tenancy: host\n      hostID: h-0123456789abcdef0\n" + instance},
			nil,
			`spec.template.spec.hostID\): hostID: the Dedicated Host h-0123456789abcdef0 does not exist`,
		},
		"no host with auto-placement": {
			enginetest.Quickstart,
			[]string{instance, "      tenancy: host\n" + instance},
			func(s *awssim.State) {
				s.EC2.Hosts = map[string]*awssim.Host{
					"h-1": {}, "h-2": {AutoPlacement: true, Type: "m5.large"}, "h-3": {AutoPlacement: true, State: "released"}, "h-4": {AutoPlacement: true, Zone: "us-east-1f"},
				}
			},
			`spec.template.spec.tenancy\): tenancy: host without hostID needs a Dedicated Host with auto-placement for this kind of machine, and us-east-1\w has none: set hostID`,
		},
		"a host with auto-placement": {
			enginetest.Quickstart,
			[]string{instance, "      tenancy: host\n" + instance},
			func(s *awssim.State) {
				s.EC2.Hosts = map[string]*awssim.Host{"h-1": {AutoPlacement: true, Family: "t3"}}
			}, "",
		},
		"more volumes than the type takes": {
			enginetest.Quickstart,
			[]string{instance, volumes(27) + instance},
			nil,
			`spec.template.spec.nonRootVolumes: the instance type t3.large takes 27 EBS volumes, and the machine has 28 with its root volume: remove some, or use another type$`,
		},
		"as many volumes as the type takes": {enginetest.Quickstart, []string{instance, volumes(26) + instance}, nil, ""},
		"more volumes than the type of a pool takes": {
			"machine-pool.yaml",
			[]string{"  awsLaunchTemplate:\n", "  awsLaunchTemplate:\n" + strings.ReplaceAll(volumes(27), "      ", "    ")},
			nil,
			`nonRootVolumes: the instance type \S+ takes 27 EBS volumes, and the machine has 28`,
		},
		"no role of a lifecycle hook": {
			"machine-pool.yaml", hook("arn:aws:iam::123456789012:role/nope"), nil,
			`auto-scaling-group/\S+ \(machine-pool.yaml:\d+ AWSMachinePool/machine-pool-mp-0 spec.lifecycleHooks\[0\].roleARN\): there is no role nope`,
		},
		"a role of a lifecycle hook in another account": {
			"machine-pool.yaml", hook("arn:aws:iam::999999999999:role/ops"), nil, `a role of another account cannot be passed to a service`,
		},
		"a role of a lifecycle hook": {"machine-pool.yaml", hook("arn:aws:iam::123456789012:role/ops"), func(s *awssim.State) {
			s.IAM.Roles["ops"] = &awssim.Role{Name: "ops"}
		}, ""},
		"AWS's own key": {enginetest.Quickstart, volume("alias/aws/ebs"), nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			c.try(t)
		})
	}
}

// existing is an example in an existing VPC whose content is changed first.
func existing(t *testing.T, m *manifest.Cluster, edit func(s *awssim.State)) *awssim.AWS {
	t.Helper()
	a := enginetest.Prepared(t, m)
	a.Edit(edit)
	return a
}

// Machines that fetch their boot data need a way to the APIs of AWS.
func TestSubnetsWithoutWayOut(t *testing.T) {
	m := enginetest.LoadQuick(t, enginetest.ByoVPC)
	for name, c := range map[string]struct {
		edit func(s *awssim.State)
		want string
	}{
		"no default route": {func(s *awssim.State) {
			for _, table := range s.EC2.RouteTables {
				table.Routes = deleteRoutes(table.Routes, "nat-")
			}
		}, `machines in the subnet subnet-\w+ reach neither the internet nor the APIs of AWS: its route table rtb-\w+ has no default route, and the VPC has no interface endpoints`},
		"a gateway that is gone": {func(s *awssim.State) {
			clear(s.EC2.NATGateways)
		}, `has a route to 0.0.0.0/0 that leads to nat-\w+, which does not exist or does not work`},
		"a route to a proxy, perhaps": {func(s *awssim.State) {
			for _, table := range s.EC2.RouteTables {
				for i, r := range table.Routes {
					if r.Destination == "0.0.0.0/0" && strings.HasPrefix(r.Target, "nat-") {
						table.Routes[i] = awssim.Route{Destination: "172.16.0.0/12", Target: "tgw-0123456789abcdef0"}
					}
				}
			}
		}, ""},
		"a gateway that leads to a proxy, perhaps": {func(s *awssim.State) {
			for _, table := range s.EC2.RouteTables {
				for i, r := range table.Routes {
					if r.Destination == "0.0.0.0/0" && strings.HasPrefix(r.Target, "nat-") {
						table.Routes[i].Destination = "172.16.0.0/12"
					} else if r.Destination == "0.0.0.0/0" {
						table.Routes = append(table.Routes, awssim.Route{Destination: "172.16.0.0/12", Target: "tgw-0123456789abcdef0"})
					}
				}
			}
		}, ""},
		"a gateway for private addresses only": {func(s *awssim.State) {
			for _, table := range s.EC2.RouteTables {
				for i, r := range table.Routes {
					if r.Destination == "0.0.0.0/0" && strings.HasPrefix(r.Target, "nat-") {
						table.Routes[i].Destination = "10.9.0.0/16"
					}
				}
			}
		}, `its route table rtb-\w+ has no default route, and the VPC has no interface endpoints`},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := existing(t, m, c.edit)
				_, err := enginetest.Open(m, a.Process()).Plan(t.Context())
				if c.want == "" {
					require.NotContains(t, errorText(err), "reach neither")
					return
				}
				assert.Regexp(t, c.want, errorText(err))
			})
		})
	}
}

// withRules gives the subnets of a VPC a network ACL: those with a NAT gateway, or the others.
func withRules(vpc string, public bool, rules ...awssim.ACLRule) func(s *awssim.State) {
	return func(s *awssim.State) {
		a := &awssim.NetworkACL{Thing: awssim.Thing{ID: "acl-0123456789abcdef0"}, VPC: vpc, Rules: rules}
		for id, x := range s.EC2.Subnets {
			holds := false
			for _, n := range s.EC2.NATGateways {
				holds = holds || n.Subnet == id
			}
			if x.VPC == vpc && holds == public {
				a.Subnets = append(a.Subnets, id)
			}
		}
		s.EC2.NetworkACLs = map[string]*awssim.NetworkACL{a.ID: a}
	}
}

// Network ACLs of an existing VPC let machines connect to the APIs of AWS, and clients to the load balancer: a plan refuses what they
// permit to nobody, and warns of what they permit in part. What it accepts is created.
func TestNetworkACLs(t *testing.T) {
	m := enginetest.LoadQuick(t, enginetest.ByoVPC)
	vpc := m.Infra.Spec.NetworkSpec.VPC.ID
	rule := func(number int32, egress, deny bool, from, to int32) awssim.ACLRule {
		return awssim.ACLRule{Number: number, Egress: egress, Deny: deny, Protocol: "6", Block: "0.0.0.0/0", From: from, To: to}
	}
	all := func(egress bool) awssim.ACLRule {
		return awssim.ACLRule{Number: 100, Egress: egress, Protocol: "-1", Block: "0.0.0.0/0"}
	}
	for name, c := range map[string]struct {
		edit          func(s *awssim.State)
		refused, told string
	}{
		"everything denied": {withRules(vpc, false), `reach neither the internet nor the APIs of AWS: the network ACL acl-\w+ of subnet-\w+ permits no outbound connections to port 443`, ""},
		"no way out":        {withRules(vpc, false, all(false), rule(100, true, false, 80, 80)), `permits no outbound connections to port 443`, ""},
		"denied before it is permitted": {
			withRules(vpc, false, all(false), rule(90, true, true, 400, 500), all(true)), `permits no outbound connections to port 443`, "",
		},
		"no answers":                    {withRules(vpc, false, all(true), rule(100, false, false, 22, 22)), `permits no answers: no inbound TCP to ports 1024-65535`, ""},
		"answers to some ports":         {withRules(vpc, false, all(true), rule(100, false, false, 6443, 49151), rule(101, false, false, 10250, 10250)), "", "connections fail by chance"},
		"what is needed":                {withRules(vpc, false, all(true), rule(100, false, false, 1024, 65535)), "", ""},
		"no answers to NAT gateways":    {withRules(vpc, true, all(true), rule(100, false, false, 22, 443)), `permits no answers: no inbound TCP`, ""},
		"no clients of a load balancer": {withRules(vpc, true, all(true), rule(90, false, true, 6443, 6443), all(false)), `no client reaches port 6443 of the load balancer: the network ACL acl-\w+ of subnet-\w+ permits no inbound TCP to port 6443`, ""},
		"clients of a load balancer":    {withRules(vpc, true, all(true), rule(100, false, false, 6443, 6443), rule(110, false, false, 1024, 65535)), "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := existing(t, m, c.edit)
				var told []string
				k := enginetest.Open(m, a.Process())
				k.Target.Warn = func(text string) { told = append(told, text) }
				_, err := k.Plan(t.Context())
				if c.refused != "" {
					assert.Regexp(t, c.refused, errorText(err))
					return
				}
				require.NoError(t, err)
				if c.told != "" {
					assert.Contains(t, strings.Join(told, "\n"), c.told)
				} else {
					assert.NotContains(t, strings.Join(told, "\n"), "network ACL")
				}
				enginetest.MustApply(t, m, a)
			})
		})
	}
}

// A plan counts the free addresses of its subnets.
func TestFreeAddresses(t *testing.T) {
	m := enginetest.LoadQuick(t, enginetest.ByoVPC)
	synctest.Test(t, func(t *testing.T) {
		a := existing(t, m, func(s *awssim.State) {
			for _, x := range s.EC2.Subnets {
				if x.VPC == m.Infra.Spec.NetworkSpec.VPC.ID {
					x.CIDR = x.CIDR[:len(x.CIDR)-len("/20")] + "/28"
				}
			}
		})
		many := int32(31)
		m.Deployments[0].Object.Spec.Replicas = &many
		assert.Regexp(
			t,
			`machine/\S+ \(byo-vpc.yaml:\d+ .*\): not enough free IP addresses: subnet-\w+ has \d+ free addresses, and the plan needs more of them: use another or a larger subnet, or fewer machines`,
			enginetest.Refused(t, m, a),
		)
	})
}

// More machines of a pool that exists need free addresses as well.
func TestFreeAddressesForMoreMachines(t *testing.T) {
	for file, step := range map[string]string{enginetest.MachinePool: "auto-scaling-group/machine-pool-mp-0", enginetest.EKSSmall: "node-group/default_eks-pool-0"} {
		t.Run(file, func(t *testing.T) {
			m := enginetest.LoadQuick(t, file)
			m.Pools[0].Object.Spec.Replicas = new(int32(2))
			synctest.Test(t, func(t *testing.T) {
				a := enginetest.Prepared(t, m)
				enginetest.MustApply(t, m, a)
				a.Edit(func(s *awssim.State) { // almost all addresses are in use
					for _, x := range s.EC2.Subnets {
						if x.VPC != "" && x.Tags["Name"] != "" {
							x.CIDR = x.CIDR[:len(x.CIDR)-len("/20")] + "/28"
						}
					}
				})
				m.Pools[0].Object.Spec.Replicas = new(int32(45))
				if m.Pools[0].Scaling != nil {
					m.Pools[0].Scaling.Spec.MaxSize = 60
				} else {
					m.Pools[0].Managed.Spec.Scaling.MaxSize = new(int32(60))
				}
				_, err := enginetest.Open(m, a.Process()).Plan(t.Context())
				assert.Regexp(t, step+` \(\S+:\d+ .*\): not enough free IP addresses: .* free addresses, and it needs 43:`, errorText(err))
			})
		})
	}
}

func deleteRoutes(routes []awssim.Route, to string) (out []awssim.Route) {
	for _, r := range routes {
		if len(r.Target) < len(to) || r.Target[:len(to)] != to {
			out = append(out, r)
		}
	}
	return out
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// A VPC takes as many blocks as the account's quota permits, and its subnets do not overlap with those that exist.
func TestBlocksOfAVPC(t *testing.T) {
	many := func(n int) (blocks []infrav1.VpcCidrBlock) {
		for i := range n {
			blocks = append(blocks, infrav1.VpcCidrBlock{IPv4CidrBlock: fmt.Sprintf("100.%d.0.0/16", 64+i)})
		}
		return blocks
	}
	synctest.Test(t, func(t *testing.T) {
		m := enginetest.LoadQuick(t, "listed-subnets.yaml")
		a := enginetest.Account(m, 0)
		m.Infra.Spec.NetworkSpec.VPC.SecondaryCidrBlocks = many(5)
		require.Contains(t, enginetest.Refused(t, m, a), "the plan needs 5 IPv4 blocks in the VPC, but us-east-1 allows 5 and 1 are in use")
		m.Infra.Spec.NetworkSpec.VPC.SecondaryCidrBlocks = many(4)
		enginetest.MustApply(t, m, a)
		m.Infra.Spec.NetworkSpec.Subnets[2].IsPublic = true
		_, err := enginetest.Open(m, a.Process()).Plan(t.Context())
		require.Regexp(t, `cidrBlock 10\.20\.16\.0/20 overlaps with 10\.20\.16\.0/20 of the subnet subnet-\w+ \(nodes-a\), which exists in the VPC`, errorText(err))
	})
}
