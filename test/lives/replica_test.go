package lives_test

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/smithy-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	infrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/api/v1beta2"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	ec2sim "github.com/clusterawsadm/clusterawsadm/internal/awssim/ec2"
	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/run"
	"github.com/clusterawsadm/clusterawsadm/internal/enginetest"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// copied plans in an account, and returns the result and a copy of the account. The account
// is only read, and the copy has no secrets.
func copied(t *testing.T, m *manifest.Cluster, a *awssim.AWS) (twin *awssim.AWS, plan plan.Plan, refused error) {
	t.Helper()
	before := len(a.Calls())
	asked := awssim.NewAsked()
	plan, refused = run.Open(m, cluster.Target{Config: asked.Listen(a.Config()), Owner: "test"}).Plan(t.Context())
	twin, remarks, err := awssim.Copy(t.Context(), a.Config(), asked, awssim.Options{Region: m.Region})
	require.NoError(t, err)
	assert.Empty(t, remarks)
	for _, c := range a.Calls()[before:] {
		assert.True(t, cloud.Reads(c.Operation) || c.Operation == "AssumeRole", "%s %s", c.Service, c.Operation)
	}
	var file bytes.Buffer
	require.NoError(t, twin.Save(&file))
	secret := regexp.MustCompile(`BEGIN [A-Z ]+|LS0tLS1CRUdJTi|[a-z0-9]{6}\.[a-z0-9]{16}"|"UserData": *"[^"]`)
	assert.Empty(t, secret.FindAllString(file.String(), -1))
	return twin, plan, refused
}

// requireSamePlan compares the plan in a copy with the one in the account. The boot data of
// pools contains the certificate of the cluster, which is not copied.
func requireSamePlan(t *testing.T, m *manifest.Cluster, twin *awssim.AWS, want plan.Plan, refused error) {
	t.Helper()
	have, err := enginetest.Open(m, twin.Process()).Plan(t.Context())
	if refused == nil {
		require.NoError(t, err)
	} else {
		require.EqualError(t, err, refused.Error())
	}
	require.Len(t, have.Steps, len(want.Steps))
	for n, s := range want.Steps {
		if len(have.Steps[n].Diff) == 1 && (have.Steps[n].Diff[0].Field == "bootstrapData" || have.Steps[n].Diff[0].Field == "machines") {
			have.Steps[n].Diff, have.Steps[n].Action = nil, plan.Keep
		}
		assert.Equal(t, s, have.Steps[n], s.Resource)
	}
	assert.Equal(t, want.Quotas, have.Quotas)
	assert.Equal(t, want.Graph, have.Graph)
}

// A plan in a copy of an account is the plan in the account, before the cluster exists and
// when it does.
func TestPlanInACopy(t *testing.T) {
	for _, file := range enginetest.Examples(t) {
		m := enginetest.LoadQuick(t, file)
		t.Run(enginetest.Name(file), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := awssim.New(awssim.Options{Region: m.Region})
				enginetest.Prepare(t, a, m)
				twin, plan, refused := copied(t, m, a)
				requireSamePlan(t, m, twin, plan, refused)
				enginetest.MustApply(t, m, a)
				twin, plan, refused = copied(t, m, a)
				requireSamePlan(t, m, twin, plan, refused)
			})
		})
	}
}

// What prevents a run in the account prevents it in the copy, in the same words.
func TestRefusalInACopy(t *testing.T) {
	m := enginetest.LoadQuick(t, "quickstart.yaml")
	for what, spoil := range map[string]func(*awssim.State){
		"no more VPCs":      func(s *awssim.State) { s.EC2.Limits.VPCs = len(s.EC2.VPCs) },
		"no more addresses": func(s *awssim.State) { s.EC2.Limits.Addresses = 1 },
		"few vCPUs":         func(s *awssim.State) { s.EC2.Limits.VCPUs = 1 },
		"no profile":        func(s *awssim.State) { clear(s.IAM.Profiles) },
		"no images":         func(s *awssim.State) { clear(s.EC2.Images) },
		"taken name": func(s *awssim.State) {
			arn := "arn:aws:elasticloadbalancing:us-east-1:" + awssim.Account + ":loadbalancer/net/" + m.Namespace + "-" + m.Name + "-apiserver/0123456789abcdef"
			s.ELB.LoadBalancers[arn] = &awssim.LoadBalancer{ARN: arn, Name: m.Namespace + "-" + m.Name + "-apiserver", Type: "network", Scheme: "internal", VPC: "vpc-of-a-neighbour"}
		},
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := awssim.New(awssim.Options{Region: m.Region})
				a.Edit(spoil)
				twin, plan, refused := copied(t, m, a)
				require.Error(t, refused)
				requireSamePlan(t, m, twin, plan, refused)
			})
		})
	}
}

// copiedDespite plans in an account, and copies the account while it answers some calls with errors.
func copiedDespite(
	t *testing.T, m *manifest.Cluster, a *awssim.AWS, refuse func(service, operation string) error,
) (twin *awssim.AWS, want plan.Plan, remarks []string) {
	t.Helper()
	asked, p := awssim.NewAsked(), a.Process()
	want, err := run.Open(m, cluster.Target{Config: asked.Listen(a.Config()), Owner: "test"}).Plan(t.Context())
	require.NoError(t, err)
	p.Refuse = refuse
	twin, remarks, err = awssim.Copy(t.Context(), p.Config(), asked, awssim.Options{Region: m.Region})
	require.NoError(t, err)
	return twin, want, remarks
}

// The copy of a part that the caller may not read is as in a new account.
func TestCopyWithoutPermissions(t *testing.T) {
	m := enginetest.LoadQuick(t, "quickstart.yaml")
	synctest.Test(t, func(t *testing.T) {
		twin, want, remarks := copiedDespite(t, m, awssim.New(awssim.Options{Region: m.Region}), func(service, _ string) error {
			if service == "IAM" || service == "Service Quotas" {
				return &smithy.GenericAPIError{Code: "AccessDenied", Message: "not authorized"}
			}
			return nil
		})
		assert.Equal(t, []string{
			"instance profiles and roles cannot be read (AccessDenied): the copy has what the simulated account assumes",
			"OpenID Connect providers cannot be read (AccessDenied): the copy has what the simulated account assumes",
			"quotas cannot be read (AccessDenied): the copy has what the simulated account assumes",
		}, remarks)
		requireSamePlan(t, m, twin, want, nil)
	})
}

// A copy is complete even if AWS throttles the calls that read the account.
func TestCopyOfAThrottledAccount(t *testing.T) {
	m := enginetest.LoadQuick(t, "quickstart.yaml")
	synctest.Test(t, func(t *testing.T) {
		a := awssim.New(awssim.Options{Region: m.Region})
		enginetest.MustApply(t, m, a)
		refused := map[string]int{}
		twin, want, remarks := copiedDespite(t, m, a, func(service, operation string) error {
			if refused[service+operation]++; refused[service+operation] <= 12 {
				return &smithy.GenericAPIError{Code: "Throttling", Message: "Rate exceeded"}
			}
			return nil
		})
		assert.Empty(t, remarks)
		requireSamePlan(t, m, twin, want, nil)
	})
}

// A call that an emulator does not implement is not repeated for minutes.
func TestCopyOfAnEmulator(t *testing.T) {
	m := enginetest.LoadQuick(t, "quickstart.yaml")
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		_, _, remarks := copiedDespite(t, m, awssim.New(awssim.Options{Region: m.Region}), func(service, _ string) error {
			if service == "IAM" {
				return &smithy.GenericAPIError{Code: "InternalFailure", Message: "not implemented", Fault: smithy.FaultServer}
			}
			return nil
		})
		assert.Contains(t, remarks, "instance profiles and roles cannot be read (InternalFailure): the copy has what the simulated account assumes")
		assert.Less(t, time.Since(began), 2*time.Minute)
	})
}

// The copy has the zones of the account and their IDs, and its instance types, also those that the
// program does not know, where the account offers them.
func TestCopyOfZonesAndInstanceTypes(t *testing.T) {
	m := enginetest.LoadQuick(t, "quickstart.yaml")
	for _, spec := range enginetest.MachineSpecs(m) {
		spec.InstanceType = "t99.large"
	}
	synctest.Test(t, func(t *testing.T) {
		a := awssim.New(awssim.Options{Region: m.Region})
		info, err := ec2.NewFromConfig(a.Config()).
			DescribeInstanceTypes(t.Context(), &ec2.DescribeInstanceTypesInput{InstanceTypes: []types.InstanceType{"t3.large"}})
		require.NoError(t, err)
		newType := info.InstanceTypes[0]
		newType.InstanceType = "t99.large"
		a.Edit(func(s *awssim.State) {
			zone := func(name, id string, in types.AvailabilityZoneOptInStatus) ec2sim.Zone {
				return ec2sim.Zone{Name: name, ID: id, Group: m.Region, OptIn: in}
			}
			edge := zone("us-east-1-xyz-1a", "use1-xyz1-az1", types.AvailabilityZoneOptInStatusNotOptedIn)
			edge.Parent = "us-east-1b"
			s.EC2.Listed = &ec2sim.Listed{
				Zones: []ec2sim.Zone{
					zone("us-east-1b", "use1-az4", "opt-in-not-required"),
					zone("us-east-1d", "use1-az2", "opt-in-not-required"),
					zone("us-east-1f", "use1-az9", "opt-in-not-required"),
					edge,
				},
				Types:  map[string]types.InstanceTypeInfo{"t99.large": newType},
				Offers: map[string][]string{"t99.large": {"us-east-1b", "us-east-1f"}},
			}
		})
		twin, planned, refused := copied(t, m, a)
		require.NoError(t, refused)
		requireSamePlan(t, m, twin, planned, nil)
		for _, id := range []plan.ID{"subnet/private/us-east-1b", "subnet/private/us-east-1f"} {
			assert.True(t, slices.ContainsFunc(planned.Steps, func(s plan.Step) bool { return s.Resource == id }), id)
		}
		twin.Edit(func(s *awssim.State) {
			a.Edit(func(source *awssim.State) { assert.Equal(t, source.EC2.Listed, s.EC2.Listed) })
		})
		enginetest.MustApply(t, m, twin)
		enginetest.MustDelete(t, m, twin)
	})
}

// A copy has the ID and the partition of the account everywhere, in what it copied and in what is
// created in it.
func TestCopyHasTheIDOfItsSource(t *testing.T) {
	const number = "210987654321"
	for region, partition := range map[string]string{"us-gov-west-1": "aws-us-gov", "cn-north-1": "aws-cn"} {
		for _, file := range []string{"quickstart", "classic-elb", "machine-pool", "eks", "eks-fargate"} {
			t.Run(region+"/"+file, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					m := loadIn(t, region, ""+file+".yaml")
					a := awssim.New(awssim.Options{Region: m.Region, Number: number, EKSRoles: true})
					enginetest.Prepare(t, a, m)
					twin, _, _ := copied(t, m, a)
					enginetest.MustApply(t, m, twin)
					requireOfAccount(t, number, partition, twin)
					again, _, _ := copied(t, m, twin)
					requireOfAccount(t, number, partition, again)
				})
			})
		}
	}
}

// loadIn loads an example as in another region than us-east-1.
func loadIn(t *testing.T, region, file string) *manifest.Cluster {
	t.Helper()
	text, err := enginetest.Read(file)
	require.NoError(t, err)
	moved := filepath.Join(t.TempDir(), filepath.Base(file))
	require.NoError(t, os.WriteFile(moved, bytes.ReplaceAll(text, []byte("us-east-1"), []byte(region)), 0o600))
	return enginetest.LoadQuick(t, moved)
}

// requireOfAccount checks the account and the partition of all ARNs in an account, and the names
// of load balancers.
func requireOfAccount(t *testing.T, number, partition string, a *awssim.AWS) {
	t.Helper()
	var file bytes.Buffer
	require.NoError(t, a.Save(&file))
	assert.NotContains(t, file.String(), awssim.Account)
	for _, arn := range regexp.MustCompile(`arn:[^"\\ ]+`).FindAllString(file.String(), -1) {
		part := strings.SplitN(arn, ":", 6)
		assert.Equal(t, partition, part[1], arn)
		assert.Contains(t, []string{number, "aws", ""}, part[4], arn)
	}
	for _, name := range regexp.MustCompile(`"DNSName": "([^"]*)"`).FindAllStringSubmatch(file.String(), -1) {
		assert.Equal(t, partition == "aws-cn", strings.HasSuffix(name[1], ".amazonaws.com.cn"), name[1])
	}
}

// An image that belongs to the account is in the copy, whether the manifest names it or looks it up.
func TestCopyOfOwnImages(t *testing.T) {
	for what, use := range map[string]func(*infrav1.AWSMachineSpec){
		"by ID": func(s *infrav1.AWSMachineSpec) { s.AMI.ID = aws.String("ami-0abcdef0123456789") },
		"looked up": func(s *infrav1.AWSMachineSpec) {
			s.ImageLookupOrg, s.ImageLookupFormat = "111122223333", "golden-{{.K8sVersion}}-*"
		},
	} {
		t.Run(what, func(t *testing.T) {
			m := enginetest.LoadQuick(t, "quickstart.yaml")
			for _, spec := range enginetest.MachineSpecs(m) {
				use(spec)
			}
			synctest.Test(t, func(t *testing.T) {
				a := awssim.New(awssim.Options{Region: m.Region, Number: "111122223333"})
				a.Edit(func(s *awssim.State) {
					created := time.Now().AddDate(0, -2, 0).UTC().Truncate(time.Second)
					s.EC2.Images["ami-0abcdef0123456789"] = &ec2sim.Image{
						Thing: awssim.Thing{ID: "ami-0abcdef0123456789", Tags: map[string]string{"team": "platform"}, Born: created}, Created: created,
						Name: "golden-1.34.2-7", Owner: "111122223333", Description: "ours", Architecture: "x86_64", RootDevice: "/dev/xvda", RootSize: 20,
						Devices: []ec2sim.Device{{Name: "/dev/xvda", Snapshot: "snap-0abcdef0123456789", Type: "gp3", Size: 20, IOPS: 3000, Encrypted: true}},
					}
				})
				twin, plan, refused := copied(t, m, a)
				require.NoError(t, refused)
				requireSamePlan(t, m, twin, plan, nil)
				enginetest.MustApply(t, m, twin)
				enginetest.RequireNoChange(t, m, twin)
				twin.Edit(func(s *awssim.State) {
					for _, i := range s.EC2.Instances {
						assert.Equal(t, "ami-0abcdef0123456789", i.Image)
					}
				})
				enginetest.MustDelete(t, m, twin)
			})
		})
	}
}
