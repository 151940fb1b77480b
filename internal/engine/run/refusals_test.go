package run_test

import (
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/smithy-go"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	elbsim "github.com/clusterawsadm/clusterawsadm/internal/awssim/elb"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/run"
	"github.com/clusterawsadm/clusterawsadm/internal/enginetest"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
)

// Answers that are likely to change do not end a run: AWS has not noticed an earlier call
// yet, or has no capacity at the moment.
func TestRefusalsThatPass(t *testing.T) {
	for _, c := range []struct{ example, op, code, message string }{
		{"quickstart", "RegisterTargets", "InvalidTarget", "The following targets are not in a running state and cannot be registered: 'i-0123'"},
		{"quickstart", "RunInstances", "InvalidParameterValue", "Value (nodes.cluster-api-provider-aws.sigs.k8s.io) for parameter iamInstanceProfile.name is invalid. Invalid IAM Instance Profile name"},
		{"quickstart", "RunInstances", "PendingVerification", "Your request for accessing resources in this region is being validated"},
		{"quickstart", "RunInstances", "InsufficientInstanceCapacity", "We currently do not have sufficient t3.large capacity in the Availability Zone you requested"},
		{"quickstart", "CreateRoute", "InvalidParameterValue", "invalid value for parameter gateway-id: igw-0123"},
		{"quickstart", "CreateLoadBalancer", "InvalidSubnet", "VPC vpc-0123 has no internet gateway"},
		{"quickstart", "PutParameter", "TooManyUpdates", "There are concurrent updates for a resource"},
		{"classic-elb", "RegisterInstancesWithLoadBalancer", "InvalidInstance", "Could not find EC2 instance i-0123"},
		{"machine-pool", "CreateAutoScalingGroup", "ValidationError", "You must use a valid fully-formed launch template. Value (nodes) for parameter iamInstanceProfile.name is invalid. Invalid IAM Instance Profile name"},
		{"quickstart", "CreateTargetGroup", "ValidationError", "The VPC ID 'vpc-0123' is not found"},
		{"eks-addons", "CreateCluster", "InvalidParameterException", "roleArn, arn:aws:iam::123456789012:role/eks, does not exist"},
		{"eks-addons", "CreateCluster", "InvalidParameterException", "Error in role params"},
		{"eks-addons", "CreateCluster", "InvalidParameterException", "Role could not be assumed because the trusted entity is not correct"},
		{"eks-addons", "CreateCluster", "InvalidParameterException", "The provided role doesn't have the Amazon EKS Managed Policies associated with it."},
		{"eks-addons", "CreateCluster", "InvalidParameterException", "IAM role's policy must include the `ec2:DescribeSubnets` action"},
		{"eks-addons", "CreateAddon", "InvalidParameterException", "Role arn:aws:iam::123456789012:role/addon does not exist"},
		{"eks-templates", "CreateNodegroup", "InvalidParameterException", "The launch template with ID lt-0123 does not exist"},
		{"eks-fargate", "CreateFargateProfile", "InvalidParameterException", "Misconfigured PodExecutionRole Trust Policy; Please add the eks-fargate-pods.amazonaws.com Service Principal"},
		{"eks-machines", "CreateAccessEntry", "InvalidParameterException", "The specified principalArn is invalid: invalid principal."},
	} {
		t.Run(c.op+"/"+c.code, func(t *testing.T) {
			m := enginetest.LoadQuick(t, ""+c.example+".yaml")
			synctest.Test(t, func(t *testing.T) {
				a := enginetest.Prepared(t, m)
				before, p := a.Inventory(), a.Process()
				var mu sync.Mutex
				refused := 0
				p.Refuse = func(_, op string) error {
					mu.Lock()
					defer mu.Unlock()
					if op != c.op || refused >= 4 {
						return nil
					}
					refused++
					return &smithy.GenericAPIError{Code: c.code, Message: c.message}
				}
				_, err := enginetest.Open(m, p).Apply(t.Context(), cluster.Options{})
				require.NoError(t, err)
				require.Equal(t, 4, refused)
				enginetest.RequireNoChange(t, m, a)
				enginetest.MustDelete(t, m, a)
				require.Equal(t, before, a.Inventory())
			})
		})
	}
}

// A NAT gateway that fails ends the run with AWS's reason. The next run creates another.
func TestNATGatewayFails(t *testing.T) {
	m := enginetest.LoadQuick(t, enginetest.Quickstart)
	synctest.Test(t, func(t *testing.T) {
		a := enginetest.Account(m, enginetest.Lag)
		before, began := a.Inventory(), time.Now()
		a.Edit(func(s *awssim.State) {
			s.EC2.NATGatewayFailure = "InternalError: Network interface could not be created"
		})
		_, err := enginetest.Open(m, a.Process()).Apply(t.Context(), cluster.Options{})
		require.ErrorContains(t, err, "failed: InternalError: Network interface could not be created")
		require.Less(t, time.Since(began), 5*time.Minute)
		a.Edit(func(s *awssim.State) { s.EC2.NATGatewayFailure = "" })
		enginetest.MustApply(t, m, a)
		enginetest.RequireNoChange(t, m, a)
		enginetest.MustDelete(t, m, a)
		require.Equal(t, before, a.Inventory())
	})
}

// A machine that AWS terminates at its launch ends the run with AWS's reason. One that
// loses its spot capacity at once is launched again.
func TestLaunchFails(t *testing.T) {
	m := enginetest.LoadQuick(t, enginetest.Quickstart)
	for failure, fatal := range map[string]bool{
		"Client.VolumeLimitExceeded: Volume limit exceeded":                                               true,
		"Client.InvalidKMSKey.InvalidState: The KMS key provided is in an incorrect state":                true,
		"Server.SpotInstanceTermination: Instance terminated by the Spot service due to lack of capacity": false,
	} {
		t.Run(strings.Split(failure, ":")[0], func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := enginetest.Account(m, enginetest.Lag)
				before, began := a.Inventory(), time.Now()
				a.Edit(func(s *awssim.State) { s.EC2.LaunchFailure = failure })
				go func() {
					time.Sleep(3 * time.Minute)
					a.Edit(func(s *awssim.State) { s.EC2.LaunchFailure = "" })
				}()
				_, err := enginetest.Open(m, a.Process()).Apply(t.Context(), cluster.Options{})
				if fatal {
					require.ErrorContains(t, err, "was terminated at its launch: "+failure)
					require.Less(t, time.Since(began), 5*time.Minute)
				} else {
					require.NoError(t, err)
				}
				time.Sleep(3 * time.Minute)
				enginetest.MustApply(t, m, a)
				enginetest.RequireNoChange(t, m, a)
				enginetest.MustDelete(t, m, a)
				require.Equal(t, before, a.Inventory())
			})
		})
	}
}

// A lifecycle hook of launches that no program completes ends the run with Auto Scaling's reason, once it has abandoned two machines.
func TestHookAbandonsMachines(t *testing.T) {
	m := enginetest.Quick(enginetest.Rewritten(t, "machine-pool.yaml", "EC2_INSTANCE_TERMINATING", "EC2_INSTANCE_LAUNCHING", "CONTINUE", "ABANDON"))
	synctest.Test(t, func(t *testing.T) {
		a, began := enginetest.Prepared(t, m), time.Now()
		_, err := enginetest.Open(m, a.Process()).Apply(t.Context(), cluster.Options{})
		require.ErrorContains(t, err, "Instance failed to complete user's Lifecycle Action")
		require.ErrorContains(t, err, "was abandoned: Heartbeat Timeout (0 in service of 2)")
		require.Less(t, time.Since(began), 12*time.Minute)

		m := enginetest.Quick(enginetest.Load(t, "machine-pool.yaml", nil))
		enginetest.MustApply(t, m, a)
		enginetest.RequireNoChange(t, m, a)
	})
}

// If the quota is enough for some of many machines, these are launched.
func TestQuotaForSomeMachines(t *testing.T) {
	m := enginetest.LoadQuick(t, enginetest.Quickstart)
	m.Deployments[0].Object.Spec.Replicas = new(int32(20))
	synctest.Test(t, func(t *testing.T) {
		a := enginetest.Account(m, enginetest.Lag)
		before, quota := a.Inventory(), 0
		a.Edit(func(s *awssim.State) { quota, s.EC2.Limits.VCPUs = s.EC2.Limits.VCPUs, 2*(1+12) })
		_, err := enginetest.Open(m, a.Process()).Apply(t.Context(), cluster.Options{})
		require.ErrorContains(t, err, "VcpuLimitExceeded")
		require.Equal(t, 1+12, strings.Count(strings.Join(a.Inventory(), "\n"), "Instance "))
		a.Edit(func(s *awssim.State) { s.EC2.Limits.VCPUs = quota })
		enginetest.MustApply(t, m, a)
		enginetest.RequireNoChange(t, m, a)
		enginetest.MustDelete(t, m, a)
		require.Equal(t, before, a.Inventory())
	})
}

// A load balancer of somebody else that is deleted between two calls ends no run.
func TestNeighboursLoadBalancerIsDeleted(t *testing.T) {
	m := enginetest.LoadQuick(t, enginetest.Quickstart)
	const theirs = "arn:aws:elasticloadbalancing:us-east-1:123456789012:loadbalancer/net/theirs/50dc6c495c0c9188"
	synctest.Test(t, func(t *testing.T) {
		a := enginetest.Account(m, enginetest.Lag)
		before := a.Inventory()
		arrives := func() {
			a.Edit(func(s *awssim.State) {
				s.ELB.LoadBalancers[theirs] = &elbsim.LoadBalancer{
					ARN:     theirs,
					Name:    "theirs",
					Type:    "network",
					Scheme:  "internal",
					VPC:     "vpc-theirs",
					IPType:  "ipv4",
					DNSName: "theirs.example",
				}
			})
		}
		leaves := func(p *awssim.Process) *int {
			calls := new(int)
			var mu sync.Mutex
			listed := false
			p.Refuse = func(service, op string) error {
				mu.Lock()
				defer mu.Unlock()
				listed = listed || service == "Elastic Load Balancing v2" && op == "DescribeLoadBalancers"
				if listed && service == "Elastic Load Balancing v2" && op == "DescribeTags" {
					*calls++
					a.Edit(func(s *awssim.State) { delete(s.ELB.LoadBalancers, theirs) })
				}
				return nil
			}
			return calls
		}
		arrives()
		p := a.Process()
		_ = leaves(p)
		_, err := enginetest.Open(m, p).Apply(t.Context(), cluster.Options{})
		require.NoError(t, err)
		enginetest.RequireNoChange(t, m, a)
		arrives()
		p = a.Process()
		calls := leaves(p)
		_, err = run.OpenByName(m.Name, cluster.Target{Config: p.Config(), Owner: "test"}).Delete(t.Context(), cluster.Options{})
		require.NoError(t, err)
		require.NotZero(t, *calls)
		require.Equal(t, before, a.Inventory())
	})
}

// A call that does not know yet what another one has returned is repeated.
func TestReadsOfDifferentAge(t *testing.T) {
	for op, code := range map[string]string{
		"DescribeVpcAttribute": "InvalidVpcID.NotFound", "DescribeTargetGroupAttributes": "TargetGroupNotFound",
		"DescribeLoadBalancerAttributes": "LoadBalancerNotFound", "DescribeTags": "LoadBalancerNotFound",
	} {
		t.Run(op, func(t *testing.T) {
			m := enginetest.LoadQuick(t, enginetest.Quickstart)
			synctest.Test(t, func(t *testing.T) {
				a := enginetest.Account(m, enginetest.Lag)
				before, p := a.Inventory(), a.Process()
				var mu sync.Mutex
				refused := 0
				p.Refuse = func(_, called string) error {
					mu.Lock()
					defer mu.Unlock()
					if called != op || refused >= 2 {
						return nil
					}
					refused++
					return &smithy.GenericAPIError{Code: code, Message: "does not exist"}
				}
				_, err := enginetest.Open(m, p).Apply(t.Context(), cluster.Options{})
				require.NoError(t, err)
				require.Equal(t, 2, refused)
				enginetest.RequireNoChange(t, m, a)
				enginetest.MustDelete(t, m, a)
				require.Equal(t, before, a.Inventory())
			})
		})
	}
}
