package run_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	astypes "github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/internal/enginetest"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// failures are the states of resources of EC2, Elastic Load Balancing and Auto Scaling that AWS does not
// leave by itself (the enums of its API models). Those of NAT gateways and instances are in
// TestNATGatewayFails and TestLaunchFails, those of EKS in TestEKSFails.
var failures = []struct {
	what, file string
	fail       func(s *awssim.State, why string)
	why        string // code and message
	told       string
	within     time.Duration
	final      bool // only a deletion helps
}{
	{
		"load balancer", enginetest.Quickstart, func(s *awssim.State, why string) { s.ELB.Failure = why },
		"Insufficient IP addresses", "failed: Insufficient IP addresses", 6 * time.Minute, true,
	},
	{
		"VPC endpoint", "flatcar.yaml", func(s *awssim.State, why string) { s.EC2.EndpointFailure = why },
		"InternalError: the endpoint could not be created", "AWS reports failed: InternalError: the endpoint could not be created", 6 * time.Minute, false,
	},
	{
		"IPv6 block", enginetest.IPv6Example, func(s *awssim.State, why string) { s.EC2.BlockFailure = why },
		"The pool has no free block", "AWS reports failed: The pool has no free block", 6 * time.Minute, false,
	},
	{
		"secondary block", "listed-subnets.yaml", func(s *awssim.State, why string) { s.EC2.BlockFailure = why },
		"The block is not available", "AWS reports failed: The block is not available", 6 * time.Minute, false,
	},
	{
		"VPC endpoint that is rejected", "flatcar.yaml", func(s *awssim.State, why string) { s.EC2.EndpointFailure, s.EC2.FailedState = why, "rejected" },
		"InternalError: the owner rejects it", "AWS reports rejected: InternalError: the owner rejects it", 6 * time.Minute, false,
	},
	{
		"VPC endpoint that is expired", "flatcar.yaml", func(s *awssim.State, why string) { s.EC2.EndpointFailure, s.EC2.FailedState = why, "expired" },
		"InternalError: nobody accepts it", "AWS reports expired: InternalError: nobody accepts it", 6 * time.Minute, false,
	},
	{
		"IPv6 block that is failing", enginetest.IPv6Example, func(s *awssim.State, why string) { s.EC2.BlockFailure, s.EC2.FailedState = why, "failing" },
		"The pool has no free block", "AWS reports failing: The pool has no free block", 6 * time.Minute, false,
	},
	{
		"add-on that is degraded",
		enginetest.EKSAddons,
		func(s *awssim.State, why string) { s.EKS.Faults.DegradeAddon = why },
		"ConfigurationConflict: another manager owns the field",
		"AWS reports DEGRADED: ConfigurationConflict: another manager owns the field",
		20 * time.Minute,
		false,
	},
	{
		"EKS cluster", enginetest.EKSAddons, func(s *awssim.State, why string) { s.EKS.Faults.CreateCluster = why },
		"InternalFailure: the control plane could not be created", "FAILED: InternalFailure: the control plane could not be created", 15 * time.Minute, true,
	},
	{
		"launch of a group", enginetest.MachinePool, func(s *awssim.State, why string) { s.EC2.LaunchRefusal = why },
		"VcpuLimitExceeded: You have requested more vCPU capacity than your current vCPU limit of 5 allows",
		"AWS reports Failed: You have requested more vCPU capacity than your current vCPU limit of 5 allows Launching EC2 instance failed.", 15 * time.Minute, false,
	},
}

// A resource that AWS gives up on ends the run at once, with AWS's reason. The next run tries again.
func TestFailureStatesEndWaits(t *testing.T) {
	for _, f := range failures {
		t.Run(f.what, func(t *testing.T) {
			m := enginetest.LoadQuick(t, f.file)
			synctest.Test(t, func(t *testing.T) {
				a := enginetest.Prepared(t, m)
				before, began := a.Inventory(), time.Now()
				a.Edit(func(s *awssim.State) { f.fail(s, f.why) })
				_, err := enginetest.Open(m, a.Process()).Apply(t.Context(), cluster.Options{})
				require.ErrorContains(t, err, f.told)
				require.ErrorAs(t, err, new(*graph.FailedError))
				require.Less(t, time.Since(began), f.within)
				first, _, _ := strings.Cut(err.Error(), "): ")
				_, err = enginetest.Open(m, a.Process()).Apply(t.Context(), cluster.Options{})
				require.ErrorContains(t, err, f.told, "the next run")
				if f.final {
					require.ErrorContains(t, err, first+"): ", "the same part of the manifest")
				}
				require.Equal(t, f.final, errors.As(err, new(*plan.RefusedError)), "%v", err)
				if f.final {
					enginetest.MustDelete(t, m, a)
				}
				a.Edit(func(s *awssim.State) { f.fail(s, "") })
				enginetest.MustApply(t, m, a)
				enginetest.RequireNoChange(t, m, a)
				a.Edit(func(s *awssim.State) { f.fail(s, f.why) })
				enginetest.MustDelete(t, m, a)
				require.Equal(t, before, a.Inventory())
			})
		})
	}
}

// AWS accepts a deletion, and gives up on it. The run ends at once, with AWS's reason, and the next one
// tries again.
func TestDeletionsThatFail(t *testing.T) {
	for what, f := range map[string]struct {
		file   string
		fail   func(s *awssim.State, why string)
		change func(m *manifest.Cluster) // what is deleted, other than the cluster
		why    string
		told   string
	}{
		"VPC endpoint": {
			"flatcar.yaml", func(s *awssim.State, why string) { s.EC2.EndpointDeleteFailure = why }, nil,
			"InternalError: the endpoint could not be deleted", "delete: AWS reports failed: InternalError: the endpoint could not be deleted",
		},
		"VPC endpoint in the answer": {
			"flatcar.yaml", func(s *awssim.State, why string) { s.EC2.EndpointRefusal = why }, nil,
			"OperationNotPermitted: the endpoint is managed by a service", "OperationNotPermitted: the endpoint is managed by a service",
		},
		"Fargate profile": {
			"eks-fargate.yaml", func(s *awssim.State, why string) { s.EKS.Faults.DeleteFargate = why }, nil,
			"InternalFailure: the pods could not be deleted", "delete: AWS reports DELETE_FAILED: InternalFailure: the pods could not be deleted",
		},
		"node group": {
			enginetest.EKSAddons, func(s *awssim.State, why string) { s.EKS.Faults.DeleteNodeGroup = why }, nil,
			"Ec2SecurityGroupDeletionFailure: DependencyViolation for sg-1", "delete: AWS reports DELETE_FAILED: Ec2SecurityGroupDeletionFailure: DependencyViolation for sg-1",
		},
		"EKS cluster": {
			enginetest.EKSAddons, func(s *awssim.State, why string) { s.EKS.Faults.DeleteCluster = why }, nil,
			"ResourceLimitExceeded: the interfaces could not be deleted", "delete: AWS reports FAILED: ResourceLimitExceeded: the interfaces could not be deleted",
		},
		"add-on": {
			enginetest.EKSAddons, func(s *awssim.State, why string) { s.EKS.Faults.DeleteAddon = why },
			func(m *manifest.Cluster) {
				addons := m.EKS.ControlPlane.Spec.Addons
				*addons = (*addons)[:len(*addons)-1]
			},
			"K8sResourceNotFound: the objects could not be deleted", "delete: AWS reports DELETE_FAILED: K8sResourceNotFound: the objects could not be deleted",
		},
	} {
		t.Run(what, func(t *testing.T) {
			m, changed := enginetest.LoadQuick(t, f.file), enginetest.LoadQuick(t, f.file)
			synctest.Test(t, func(t *testing.T) {
				a := enginetest.Prepared(t, m)
				before := a.Inventory()
				enginetest.MustApply(t, m, a)
				run := func() error {
					_, err := enginetest.Open(m, a.Process()).Delete(t.Context(), cluster.Options{})
					return err
				}
				if f.change != nil {
					f.change(changed)
					run = func() error {
						_, err := enginetest.Open(changed, a.Process()).Apply(t.Context(), cluster.Options{})
						return err
					}
				}
				a.Edit(func(s *awssim.State) { f.fail(s, f.why) })
				for _, n := range []string{"first", "next"} {
					began := time.Now()
					require.ErrorContains(t, run(), f.told, n)
					require.Less(t, time.Since(began), 12*time.Minute, n)
				}
				a.Edit(func(s *awssim.State) { f.fail(s, "") })
				require.NoError(t, run())
				enginetest.MustDelete(t, changed, a)
				require.Equal(t, before, a.Inventory())
			})
		})
	}
}

// An instance refresh that ends without having replaced the machines ends the run, with its state and AWS's
// reason. The next run starts another one.
func TestInstanceRefreshesThatFail(t *testing.T) {
	for _, status := range []astypes.InstanceRefreshStatus{
		astypes.InstanceRefreshStatusFailed, astypes.InstanceRefreshStatusCancelled, astypes.InstanceRefreshStatusRollbackFailed, astypes.InstanceRefreshStatusRollbackSuccessful,
	} {
		t.Run(string(status), func(t *testing.T) {
			m := enginetest.LoadQuick(t, enginetest.MachinePool)
			synctest.Test(t, func(t *testing.T) {
				a := enginetest.Prepared(t, m)
				before := a.Inventory()
				enginetest.MustApply(t, m, a)
				time.Sleep(enginetest.Booting)
				m.Pools[0].Scaling.Spec.AWSLaunchTemplate.InstanceType = "m5.xlarge"
				a.Edit(func(s *awssim.State) { s.AutoScaling.RefreshEnds = string(status) + ": the alarm is in ALARM state" })
				for _, n := range []string{"first", "next"} {
					began := time.Now()
					_, err := enginetest.Open(m, a.Process()).Apply(t.Context(), cluster.Options{})
					require.ErrorContains(t, err, string(status)+": the alarm is in ALARM state", n)
					require.Less(t, time.Since(began), 15*time.Minute, n)
				}
				a.Edit(func(s *awssim.State) { s.AutoScaling.RefreshEnds = "" })
				enginetest.MustApply(t, m, a)
				enginetest.RequireNoChange(t, m, a)
				enginetest.MustDelete(t, m, a)
				require.Equal(t, before, a.Inventory())
			})
		})
	}
}

// A subnet that AWS cannot set up ends the run, and the next one is refused before its first write: the
// error says how to delete it.
func TestSubnetsThatFail(t *testing.T) {
	for what, f := range map[string]struct {
		file      string
		fail      func(s *awssim.State, why string)
		why, told string
		within    time.Duration
	}{
		"IPv6 block": {
			enginetest.IPv6Example, func(s *awssim.State, why string) { s.EC2.SubnetFailure = why }, "The block conflicts with another subnet",
			"IPv6 block failed: The block conflicts with another subnet", 15 * time.Minute, // it fails after the run has read it
		},
		"IPv6 block that is failing": {
			enginetest.IPv6Example, func(s *awssim.State, why string) { s.EC2.SubnetFailure, s.EC2.FailedState = why, "failing" }, "The block conflicts with another subnet",
			"IPv6 block failing: The block conflicts with another subnet", 15 * time.Minute,
		},
		"state": {
			enginetest.Quickstart, func(s *awssim.State, why string) { s.EC2.SubnetState = why }, string(types.SubnetStateFailed), "failed", 3 * time.Minute,
		},
		"capacity": {
			enginetest.Quickstart, func(s *awssim.State, why string) { s.EC2.SubnetState = why }, string(types.SubnetStateFailedInsufficientCapacity), "failed-insufficient-capacity", 3 * time.Minute,
		},
	} {
		t.Run(what, func(t *testing.T) {
			m := enginetest.LoadQuick(t, f.file)
			synctest.Test(t, func(t *testing.T) {
				a := enginetest.Prepared(t, m)
				before, began := a.Inventory(), time.Now()
				a.Edit(func(s *awssim.State) { f.fail(s, f.why) })
				_, err := enginetest.Open(m, a.Process()).Apply(t.Context(), cluster.Options{})
				require.ErrorContains(t, err, f.told)
				require.Less(t, time.Since(began), f.within)
				calls := len(a.Calls())
				_, err = enginetest.Open(m, a.Process()).Apply(t.Context(), cluster.Options{})
				require.ErrorAs(t, err, new(*plan.RefusedError))
				require.ErrorContains(t, err, `cannot change state from "`+f.told+`" to "available": 'aws ec2 delete-subnet --subnet-id subnet-`)
				require.Empty(t, enginetest.Writes(enginetest.Since(a, calls)))
				enginetest.MustDelete(t, m, a)
				require.Equal(t, before, a.Inventory())
			})
		})
	}
}

// A load balancer that is impaired serves requests, and a group may get capacity later: a run goes on.
func TestPassingFailuresEndNoWait(t *testing.T) {
	for what, f := range map[string]struct {
		file string
		fail func(s *awssim.State, why string)
		why  string
	}{
		"impaired load balancer": {enginetest.Quickstart, func(s *awssim.State, why string) { s.ELB.Impaired = why }, "Insufficient capacity"},
		"no capacity": {
			enginetest.MachinePool, func(s *awssim.State, why string) { s.EC2.LaunchRefusal = why },
			"InsufficientInstanceCapacity: We currently do not have sufficient m5.large capacity in the Availability Zone you requested (us-east-1a).",
		},
	} {
		t.Run(what, func(t *testing.T) {
			m := enginetest.LoadQuick(t, f.file)
			synctest.Test(t, func(t *testing.T) {
				a := enginetest.Prepared(t, m)
				a.Edit(func(s *awssim.State) { f.fail(s, f.why) })
				go func() {
					time.Sleep(12 * time.Minute)
					a.Edit(func(s *awssim.State) { f.fail(s, "") })
				}()
				enginetest.MustApply(t, m, a)
				enginetest.RequireNoChange(t, m, a)
				time.Sleep(12 * time.Minute)
				enginetest.MustDelete(t, m, a)
			})
		})
	}
}
