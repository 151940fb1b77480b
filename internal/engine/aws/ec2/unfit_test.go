package ec2_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	"github.com/clusterawsadm/clusterawsadm/internal/awssim/ec2"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/run"
	"github.com/clusterawsadm/clusterawsadm/internal/enginetest"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
)

// IDs of subnets and of the VPC in the example byo-vpc.yaml, and of what the tests add to the account.
const (
	nic, otherNIC = "eni-0123456789abcdef0", "eni-0123456789abcdef1"
	privateA      = "subnet-0000000000000002a"
	privateB      = "subnet-0000000000000002b"
	ownImage      = "ami-0123456789abcdef0"
	companyVPC    = "vpc-0123456789abcdef0"
)

// workerArguments are the arguments of the kubelet of workers, in the quick start.
const workerArguments = "          kubeletExtraArgs:\n          - name: cloud-provider\n            value: external"

func thing(id string) awssim.Thing { return awssim.Thing{ID: id, Tags: map[string]string{}} }

// interfaceIn adds a network interface to a subnet. owner is the instance that uses it; "" for none.
func interfaceIn(id, subnet, owner string) func(*awssim.State) {
	return func(s *awssim.State) {
		address := strings.TrimSuffix(s.EC2.Subnets[subnet].CIDR, "0/24") + "99"
		s.EC2.Interfaces[id] = &awssim.Interface{
			Thing: thing(id), VPC: s.EC2.Subnets[subnet].VPC, Subnet: subnet, Type: "interface", PrivateIP: address, Owner: owner,
		}
	}
}

// subnetIn adds a subnet of a VPC in a zone.
func subnetIn(id, vpc, zone string) func(*awssim.State) {
	return func(s *awssim.State) {
		s.EC2.Subnets[id] = &awssim.Subnet{Thing: thing(id), VPC: vpc, CIDR: "10.0.9.0/24", Zone: zone, HostnameType: "ip-name", Next: 16}
	}
}

func both(edits ...func(*awssim.State)) func(*awssim.State) {
	return func(s *awssim.State) {
		for _, edit := range edits {
			edit(s)
		}
	}
}

// image adds an image of the account.
func image(i awssim.Image) func(*awssim.State) {
	return func(s *awssim.State) {
		i.Thing, i.Name, i.Owner, i.Architecture, i.RootDevice, i.RootSize = thing(ownImage), "mine", "123456789012", "x86_64", "/dev/sda1", 8
		s.EC2.Images[ownImage] = &i
	}
}

// groupOf adds a security group to a VPC.
func groupOf(vpc string) func(*awssim.State) {
	return func(s *awssim.State) {
		s.EC2.SecurityGroups["sg-0123456789abcdef9"] = &awssim.SecurityGroup{Thing: thing("sg-0123456789abcdef9"), Name: "other", VPC: vpc}
	}
}

// trust sets who may assume the roles with a word in their names.
func trust(word, document string) func(*awssim.State) {
	return func(s *awssim.State) {
		for name, r := range s.IAM.Roles {
			if strings.Contains(name, word) {
				r.Service, r.Trust = "", document
			}
		}
	}
}

func policyFor(principal, action string) string {
	return `{"Version":"2012-10-17","Statement":{"Effect":"Allow","Principal":` + principal + `,"Action":` + action + `}}`
}

// A manifest names something that exists but that AWS does not accept for this use: the plan is refused, with the line of the field.
func TestUnfitThings(t *testing.T) {
	attached := []string{
		"replicas: 2", "replicas: 1", instance, instance + "      networkInterfaces: [" + nic + "]\n",
		"      additionalSecurityGroups:\n      - id: sg-0aaaaaaaaaaaaaaa2\n      - filters:\n        - name: tag:purpose\n          values: [monitoring]\n", "",
	}
	two := append([]string(nil), attached...)
	two[3] = instance + "      networkInterfaces: [" + nic + ", " + otherNIC + "]\n"
	own := []string{instance, instance + "      ami: {id: " + ownImage + "}\n"}
	old := []string{instance, strings.Replace(instance, "t3.large", "m4.large", 1) + "      ami: {id: " + ownImage + "}\n"}
	const field = `byo-vpc.yaml:\d+ AWSMachineTemplate/byo-vpc-md-0 spec.template.spec.networkInterfaces`
	for name, c := range map[string]edited{
		"an interface":        {"byo-vpc.yaml", attached, interfaceIn(nic, privateA, ""), ""},
		"an interface in use": {"byo-vpc.yaml", attached, interfaceIn(nic, privateA, "i-0123456789abcdef0"), field + `\[0\]\): the network interface ` + nic + ` is in use by the instance i-0123456789abcdef0: detach it`},
		"interfaces in two zones": {
			"byo-vpc.yaml", two, both(interfaceIn(nic, privateA, ""), interfaceIn(otherNIC, privateB, "")),
			field + `\[1\]\): the network interface ` + otherNIC + ` is in the zone us-east-1b, and ` + nic + ` in us-east-1a`,
		},
		"an interface in a zone without the type": {
			"byo-vpc.yaml", attached, both(subnetIn("subnet-9", companyVPC, "us-east-1e"), interfaceIn(nic, "subnet-9", "")),
			field + `\[0\]\): the network interface ` + nic + ` is in the zone us-east-1e, which does not offer the instance type t3.large, but us-east-1a, `,
		},
		"an interface of another VPC": {
			"byo-vpc.yaml", attached, both(subnetIn("subnet-9", "vpc-9", "us-east-1a"), interfaceIn(nic, "subnet-9", "")),
			field + `\[0\]\): the network interface ` + nic + ` is in the VPC vpc-9, and the cluster in ` + companyVPC,
		},
		"an interface for a new VPC": {
			enginetest.Quickstart, []string{instance, instance + "      networkInterfaces: [" + nic + "]\n"}, both(func(s *awssim.State) {
				for id := range s.EC2.Subnets {
					interfaceIn(nic, id, "")(s)
				}
			}), `the network interface ` + nic + ` is in the VPC vpc-\w+, and the run creates another one`,
		},
		"a subnet for a new VPC": {
			enginetest.Quickstart,
			[]string{instance, instance + "      subnet: {id: subnet-0123456789abcdef9}\n"},
			nil,
			`spec.template.spec.*\): subnet subnet-0123456789abcdef9 is not in the VPC, which the run creates: name a subnet of spec.network.subnets`,
		},
		"an image that is copied": {
			enginetest.Quickstart, own, image(awssim.Image{Ready: time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC)}),
			`spec.template.spec.ami.id\): image ` + ownImage + ` is pending: wait until it is available \(aws ec2 wait image-available --image-ids ` + ownImage + `\)`,
		},
		"an image that has failed": {
			enginetest.Quickstart, own, image(awssim.Image{Failure: "a key", Ready: time.Date(1999, 1, 1, 0, 0, 0, 0, time.UTC)}),
			`image ` + ownImage + ` is failed \(a key\), not available: use another one`,
		},
		"an image":                    {enginetest.Quickstart, own, image(awssim.Image{BootMode: "uefi"}), ""},
		"an image for UEFI":           {enginetest.Quickstart, old, image(awssim.Image{BootMode: "uefi"}), `spec.template.spec.ami.id\): the image ` + ownImage + ` starts with uefi, and the instance type m4.large does not`},
		"an image for both":           {enginetest.Quickstart, old, image(awssim.Image{BootMode: "uefi-preferred"}), ""},
		"an image for a TPM":          {enginetest.Quickstart, old, image(awssim.Image{TPM: "v2.0"}), `the image ` + ownImage + ` needs NitroTPM, and the instance type m4.large has none`},
		"an image without ENA":        {enginetest.Quickstart, own, image(awssim.Image{NoENA: true}), `is not enabled for the Elastic Network Adapter \(ENA\), which the instance type t3.large needs`},
		"an old image on an old type": {enginetest.Quickstart, old, image(awssim.Image{NoENA: true}), ""},
		"an instance profile without a role": {
			enginetest.Quickstart,
			[]string{instance, instance},
			func(s *awssim.State) { s.IAM.Profiles["nodes.cluster-api-provider-aws.sigs.k8s.io"].Role = "" },
			`spec.template.spec.iamInstanceProfile\): instance profile nodes.cluster-api-provider-aws.sigs.k8s.io has no role: add one`,
		},
		"a placement group without partitions": {
			"spot-volumes-placement.yaml", nil, func(s *awssim.State) { s.EC2.PlacementGroups["spread-over-racks"] = "spread" },
			`spec.template.spec.placementGroupPartition\): placementGroupPartition 2: the placement group spread-over-racks has the strategy spread, so no partitions`,
		},
		"a placement group with one partition": {
			"spot-volumes-placement.yaml", nil, func(s *awssim.State) { s.EC2.Partitions["spread-over-racks"] = 1 },
			`placementGroupPartition 2: the placement group spread-over-racks has 1 partitions`,
		},
		"a type that is in no cluster placement group": {
			enginetest.Quickstart,
			[]string{instance, instance + "      placementGroupName: near\n"},
			func(s *awssim.State) { s.EC2.PlacementGroups["near"] = "cluster" },
			`the instance type t3.large cannot be in a placement group with the strategy cluster, such as near`,
		},
		"two zones of a cluster placement group": {
			"listed-subnets.yaml",
			[]string{"name: listed-subnets-md-0\nspec:\n  template:\n    spec:\n      instanceType: t3.large", "name: listed-subnets-md-0\nspec:\n  template:\n    spec:\n      placementGroupName: near\n      instanceType: m5.large"},
			func(s *awssim.State) {
				s.EC2.PlacementGroups["near"] = "cluster"
				s.EC2.Instances["i-0123456789abcdef0"] = &awssim.Instance{
					Thing: thing("i-0123456789abcdef0"), Type: "m5.large", Zone: "us-east-1f", Placement: ec2.Placement{Group: "near"},
				}
			}, `the placement group near has the strategy cluster, so all of its machines are in one zone, and these are in us-east-1f and us-east-1`,
		},
		"eight machines in a zone of a spread placement group": {
			enginetest.ThreeZones,
			[]string{"replicas: 3\n  selector", "replicas: 8\n  selector", instance, strings.Replace(instance, "t3.large", "m5.large", 1) + "      placementGroupName: apart\n"},
			func(s *awssim.State) { s.EC2.PlacementGroups["apart"] = "spread" },
			`machine/three-zones-md-0/7 .*: the placement group apart has the strategy spread, so at most 7 running machines in a zone`,
		},
		"seven machines in a zone of a spread placement group": {
			enginetest.ThreeZones,
			[]string{"replicas: 3\n  selector", "replicas: 7\n  selector", instance, strings.Replace(instance, "t3.large", "m5.large", 1) + "      placementGroupName: apart\n"},
			func(s *awssim.State) { s.EC2.PlacementGroups["apart"] = "spread" }, "",
		},
		"dedicated machines in a spread placement group": {
			enginetest.Quickstart,
			[]string{instance, strings.Replace(instance, "t3.large", "m5.large", 1) + "      placementGroupName: apart\n      tenancy: dedicated\n"},
			func(s *awssim.State) { s.EC2.PlacementGroups["apart"] = "spread" },
			`tenancy dedicated: the placement group apart has the strategy spread, which takes no Dedicated Instances`,
		},
		"a health check that takes all of its interval": {
			enginetest.Quickstart,
			[]string{"    loadBalancerType: nlb\n", "    loadBalancerType: nlb\n    healthCheck: {intervalSeconds: 10, timeoutSeconds: 10}\n"},
			nil, "",
		},
		"more memory reserved than there is": {
			enginetest.Quickstart,
			[]string{workerArguments, workerArguments + "\n          - {name: system-reserved, value: 'memory=6Gi'}\n          - {name: kube-reserved, value: 'memory=3Gi'}"},
			nil, `instanceType: the kubelet would not start: it reserves 9Gi of memory, and t3.large has 8Gi: reserve less, or use a larger type`,
		},
		"more memory kept free than there is": {
			enginetest.Quickstart,
			[]string{workerArguments, workerArguments + "\n          - {name: eviction-hard, value: 'nodefs.available<10%,memory.available<99%'}\n          - {name: kube-reserved, value: 'memory=1Gi'}"},
			nil, `instanceType: the kubelet would not start: it reserves \S+ of memory, and t3.large has 8Gi: reserve less, or use a larger type`,
		},
		"more CPUs reserved than there are": {
			enginetest.Quickstart,
			[]string{workerArguments, workerArguments + "\n          - {name: reserved-cpus, value: '0-3'}"},
			nil, `instanceType: the kubelet would not start: reserved-cpus has the CPU 3, and t3.large has 0 to 1: reserve less, or use a larger type`,
		},
		"reserved memory and CPUs": {
			enginetest.Quickstart,
			[]string{workerArguments, workerArguments + "\n          - {name: system-reserved, value: 'cpu=500m,memory=1Gi'}\n          - {name: kube-reserved, value: 'cpu=100m,memory=512Mi'}"},
			nil, "",
		},
		"dedicated machines in seven partitions": {
			enginetest.Quickstart,
			[]string{instance, strings.Replace(instance, "t3.large", "m5.large", 1) + "      placementGroupName: racks\n      tenancy: dedicated\n"},
			func(s *awssim.State) { s.EC2.PlacementGroups["racks"] = "partition" },
			`tenancy dedicated: the placement group racks has 7 partitions, and with Dedicated Instances it has at most 2`,
		},
		"a burstable type in a VPC of dedicated machines": {
			"byo-vpc.yaml",
			[]string{instance, strings.Replace(instance, "t3.large", "t3a.large", 1)},
			func(s *awssim.State) { s.EC2.VPCs[companyVPC].Tenancy = "dedicated" },
			`instanceType\): instanceType t3a.large: the VPC ` + companyVPC + ` has the tenancy dedicated, and t3a instances cannot be Dedicated Instances`,
		},
		"types in a VPC of dedicated machines": {
			"byo-vpc.yaml", []string{instance, instance}, func(s *awssim.State) { s.EC2.VPCs[companyVPC].Tenancy = "dedicated" }, "",
		},
		"nothing but reservations, and none": {
			enginetest.Quickstart,
			[]string{instance, "      capacityReservationPreference: CapacityReservationsOnly\n" + instance},
			func(s *awssim.State) {
				s.EC2.Reservations = map[string]*awssim.Reservation{"cr-1": {Type: "m5.large"}, "cr-2": {Type: "t3.large", Zone: "us-east-1f"}}
			},
			`capacityReservationPreference\): capacityReservationPreference CapacityReservationsOnly: this account has no active capacity reservation for t3.large in us-east-1\w`,
		},
		"nothing but reservations": {
			enginetest.Quickstart,
			[]string{instance, "      capacityReservationPreference: CapacityReservationsOnly\n" + instance},
			func(s *awssim.State) {
				s.EC2.Reservations = map[string]*awssim.Reservation{"cr-1": {Type: "t3.large"}}
			}, "",
		},
		"a volume that Wavelength Zones do not have": {
			"wavelength.yaml",
			[]string{"type: gp2 #", "type: gp3 #"},
			nil,
			`^wavelength.yaml:\d+ AWSMachineTemplate/\S+ spec.template.spec.rootVolume.type: Wavelength Zones have no volumes of the type gp3: use gp2`,
		},
		"a NAT gateway without a way out": {
			"byo-vpc.yaml", []string{instance, instance}, func(s *awssim.State) {
				subnetIn("subnet-9", companyVPC, "us-east-1a")(s) // it has the main table of the VPC, which leads nowhere
				for _, n := range s.EC2.NATGateways {
					n.Subnet = "subnet-9"
				}
			}, `machines in the subnet ` + privateA + ` reach neither the internet nor the APIs of AWS: its route table \S+ leads to the NAT gateway nat-\w+, which is in the subnet subnet-9, whose route table rtb-\w+ has no default route`,
		},
		"subnets without IPv4": {
			"byo-vpc.yaml", []string{instance, instance}, func(s *awssim.State) {
				for i, id := range []string{privateA, privateB} {
					x := s.EC2.Subnets[id]
					x.CIDR, x.IPv6CIDR, x.Native = "", fmt.Sprintf("2600:1f18:1:%d::/64", i), true
				}
			}, `byo-vpc.yaml:\d+ KubeadmControlPlane/byo-vpc-control-plane spec: the subnet ` + privateA + ` has IPv6 addresses only, and Services have IPv4 addresses \(10.96.0.0/12\)`,
		},
		"a zone that does not exist": {
			"listed-subnets.yaml",
			[]string{"availabilityZone: us-east-1a", "availabilityZone: us-east-1z"},
			nil,
			`^listed-subnets.yaml:\d+ AWSCluster/listed-subnets spec.network.subnets\[0\].availabilityZone: region us-east-1 has no zone us-east-1z`,
		},
		"a VPC without internet gateway": {
			"byo-vpc.yaml", []string{instance, instance}, func(s *awssim.State) {
				for _, g := range s.EC2.InternetGateways {
					if g.VPC == companyVPC {
						g.VPC = ""
					}
				}
			}, `load-balancer/network \(byo-vpc.yaml:\d+ AWSCluster/byo-vpc spec.network.vpc.id\): the VPC ` + companyVPC + ` has no internet gateway`,
		},
		"a role of machines that EC2 may not assume": {
			enginetest.Quickstart,
			[]string{instance, instance},
			trust("nodes.cluster-api", policyFor(`{"Service":"ssm.amazonaws.com"}`, `"sts:AssumeRole"`)),
			`AWSMachineTemplate/quickstart-md-0 spec.template.spec.iamInstanceProfile\): .* get no credentials, and do not join: the trust policy of the role nodes.cluster-api\S+ does not let ec2`,
		},
		"a role of a pool that EC2 may not assume": {
			"machine-pool.yaml",
			[]string{"instanceType: t3.large", "instanceType: t3.large"},
			trust("nodes.cluster-api", policyFor(`{"Service":"ssm.amazonaws.com"}`, `"sts:AssumeRole"`)),
			`launch-template/machine-pool-mp-0 .* get no credentials, and do not join: the trust policy of the role nodes.cluster-api\S+ does not let ec2`,
		},
		"a source in another VPC": {
			"quickstart.yaml",
			[]string{"  region: us-east-1\n", "  region: us-east-1\n  network: {additionalNodeIngressRules: [{description: a, protocol: tcp, fromPort: 1, toPort: 2, sourceSecurityGroupIds: [sg-0123456789abcdef9]}]}\n"},
			groupOf("vpc-9"),
			`spec.network.additionalNodeIngressRules.*: the security group sg-0123456789abcdef9 is in the VPC vpc-9, and the run creates another one`,
		},
		"a source in a VPC that may be peered": {
			"byo-vpc.yaml",
			[]string{"  network:\n", "  network:\n    additionalNodeIngressRules: [{description: a, protocol: tcp, fromPort: 1, toPort: 2, sourceSecurityGroupIds: [sg-0123456789abcdef9]}]\n"},
			groupOf("vpc-9"), "",
		},
		"a type without IPv6": {
			enginetest.IPv6Example, []string{"instanceType: t3.large", "instanceType: m3.large"}, nil, `the instance type m3.large takes no IPv6 addresses`,
		},
		"a subnet of another VPC": {
			"quickstart.yaml",
			[]string{"      instanceType: t3.large\n      iamInstanceProfile: nodes", "      instanceType: t3.large\n      subnet: {filters: [{name: availability-zone, values: [us-east-1e]}]}\n      iamInstanceProfile: nodes"},
			nil, `no subnet of the cluster's VPC matches availability-zone=us-east-1e: subnet-\w+ does, in the VPC vpc-\w+`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			c.try(t)
		})
	}
}

// If a quota of vCPUs has no room for all machines, those of the control plane are launched first.
func TestLastVCPUsAreForTheControlPlane(t *testing.T) {
	m := enginetest.Load(t, "bastion.yaml", nil)
	m.Deployments[0].Object.Spec.Replicas = new(int32(2)) // without room for any of them, the plan is refused
	synctest.Test(t, func(t *testing.T) {
		a := enginetest.Prepared(t, m)
		a.Edit(func(s *awssim.State) { s.EC2.Limits.VCPUs = 5 })
		_, err := enginetest.Open(m, a.Process()).Apply(t.Context(), cluster.Options{})
		require.ErrorContains(t, err, "machine/bastion-md-0/")
		require.ErrorContains(t, err, "VcpuLimitExceeded")
		require.NotContains(t, err.Error(), "machine/bastion-control-plane")
		assert.Len(t, enginetest.MachinesOf(a, "control-plane"), 1)
	})
}

// What may change by itself, or may be intended, is a warning. It appears once for all machines of a group.
func TestDoubts(t *testing.T) {
	for name, c := range map[string]struct {
		file string
		edit []string
		have func(s *awssim.State)
		want string
	}{
		"a low spot price": {
			"spot-volumes-placement.yaml",
			[]string{`maxPrice: "0.08"`, `maxPrice: "0.001"`},
			nil,
			`^spot-volumes-placement.yaml:\d+ AWSMachineTemplate/spot-volumes-placement-md-0 spec.template.spec.spotMarketOptions.maxPrice: maxPrice 0.001 is less than the spot price of m5.large in us-east-1a now, 0.0384`,
		},
		"a low spot price of a pool": {
			"machine-pool.yaml", []string{
				"    instanceType: m6i.large\n    iam", "    spotMarketOptions: {maxPrice: \"0.001\"}\n    instanceType: m6i.large\n    iam",
				"  mixedInstancesPolicy:\n    instancesDistribution:\n      onDemandBaseCapacity: 1\n      onDemandPercentageAboveBaseCapacity: 50\n      spotAllocationStrategy: price-capacity-optimized\n    overrides:\n    - instanceType: m6i.large\n    - instanceType: m5.large\n    - instanceType: m5.xlarge\n", "",
			}, nil, `spec.awsLaunchTemplate.spotMarketOptions.maxPrice: maxPrice 0.001 is less than the spot price of m6i.large in us-east-1 now`,
		},
		"an internal load balancer": {
			"byo-load-balancer.yaml", nil, func(s *awssim.State) {
				for _, b := range s.ELB.LoadBalancers {
					b.Scheme = "internal"
				}
			}, `^byo-load-balancer.yaml:\d+ AWSCluster/byo-load-balancer spec.controlPlaneLoadBalancer.name: the load balancer company-api is internal, not internet-facing`,
		},
		"a target group of another port": {
			"byo-load-balancer.yaml", nil, func(s *awssim.State) {
				for _, g := range s.ELB.TargetGroups {
					g.Port = 443
				}
			}, `the target group company-api behind the port 6443 of the load balancer company-api forwards to the port 443 of the machines, and kubeadm's API server listens on 6443`,
		},
		"a subnet in another zone": {
			"byo-vpc.yaml",
			[]string{"- id: subnet-0000000000000002b # private, in us-east-1b\n      availabilityZone: us-east-1b", "- id: subnet-0000000000000002b\n      availabilityZone: us-east-1c"},
			nil,
			`^byo-vpc.yaml:\d+ AWSCluster/byo-vpc spec.network.subnets\[3\].availabilityZone: subnet subnet-0000000000000002b is in us-east-1b, not in us-east-1c`,
		},
		"an add-on that keeps what EKS installs": {
			"eks-addons.yaml",
			[]string{"  - name: coredns\n", "  - name: coredns\n    conflictResolution: none\n"},
			nil,
			`^eks-addons.yaml:\d+ .* spec.addons\[\d\].conflictResolution: conflictResolution none: EKS installs coredns with the cluster`,
		},
		"a VPC without DNS": {
			"eks-byo-vpc.yaml", nil, func(s *awssim.State) { s.EC2.VPCs[companyVPC].DNSHostnames = false },
			`^eks-byo-vpc.yaml:\d+ .*: the VPC ` + companyVPC + ` has enableDnsHostnames off, which EKS requires`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				plain, m := enginetest.LoadQuick(t, c.file), enginetest.Rewritten(t, c.file, c.edit...)
				a := enginetest.Prepared(t, plain)
				if c.have != nil {
					a.Edit(c.have)
				}
				var told []string
				_, err := run.Open(m, cluster.Target{Config: a.Config(), Owner: "test", Warn: func(w string) { told = append(told, w) }}).Plan(t.Context())
				require.NoError(t, err)
				found := 0
				for _, w := range told {
					if regexp.MustCompile(c.want).MatchString(w) {
						found++
					}
				}
				assert.Equal(t, 1, found, told)
			})
		})
	}
}
