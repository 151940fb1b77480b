package reconcile_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
	"github.com/clusterawsadm/clusterawsadm/pkg/reconcile"
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
		"load balancer", quickstart, func(s *awssim.State, why string) { s.ELB.Failure = why },
		"Insufficient IP addresses", "failed: Insufficient IP addresses", 6 * time.Minute, true,
	},
	{
		"VPC endpoint", "../../configs/flatcar.yaml", func(s *awssim.State, why string) { s.EC2.EndpointFailure = why },
		"InternalError: the endpoint could not be created", "AWS reports failed: InternalError: the endpoint could not be created", 6 * time.Minute, false,
	},
	{
		"IPv6 block", ipv6Example, func(s *awssim.State, why string) { s.EC2.BlockFailure = why },
		"The pool has no free block", "AWS reports failed: The pool has no free block", 6 * time.Minute, false,
	},
	{
		"secondary block", "../../configs/listed-subnets.yaml", func(s *awssim.State, why string) { s.EC2.BlockFailure = why },
		"The block is not available", "AWS reports failed: The block is not available", 6 * time.Minute, false,
	},
	{
		"launch of a group", machinePool, func(s *awssim.State, why string) { s.EC2.LaunchRefusal = why },
		"VcpuLimitExceeded: You have requested more vCPU capacity than your current vCPU limit of 5 allows",
		"AWS reports Failed: You have requested more vCPU capacity than your current vCPU limit of 5 allows Launching EC2 instance failed.", 15 * time.Minute, false,
	},
}

// A resource that AWS gives up on ends the run at once, with AWS's reason. The next run tries again.
func TestFailureStatesEndWaits(t *testing.T) {
	for _, f := range failures {
		t.Run(f.what, func(t *testing.T) {
			m := loadQuick(t, f.file)
			synctest.Test(t, func(t *testing.T) {
				a := prepared(t, f.file, m)
				before, began := a.Inventory(), time.Now()
				a.Edit(func(s *awssim.State) { f.fail(s, f.why) })
				_, err := open(m, a.Process()).Apply(t.Context(), reconcile.Options{})
				require.ErrorAs(t, err, new(*graph.FailedError))
				require.ErrorContains(t, err, f.told)
				require.Less(t, time.Since(began), f.within)
				_, err = open(m, a.Process()).Apply(t.Context(), reconcile.Options{})
				require.ErrorContains(t, err, f.told, "the next run")
				require.Equal(t, f.final, errors.As(err, new(*reconcile.RefusedError)), "%v", err)
				if f.final {
					mustDelete(t, m, a)
				}
				a.Edit(func(s *awssim.State) { f.fail(s, "") })
				mustApply(t, m, a)
				requireNoChange(t, m, a)
				a.Edit(func(s *awssim.State) { f.fail(s, f.why) })
				mustDelete(t, m, a)
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
		"impaired load balancer": {quickstart, func(s *awssim.State, why string) { s.ELB.Impaired = why }, "Insufficient capacity"},
		"no capacity": {
			machinePool, func(s *awssim.State, why string) { s.EC2.LaunchRefusal = why },
			"InsufficientInstanceCapacity: We currently do not have sufficient m5.large capacity in the Availability Zone you requested (us-east-1a).",
		},
	} {
		t.Run(what, func(t *testing.T) {
			m := loadQuick(t, f.file)
			synctest.Test(t, func(t *testing.T) {
				a := prepared(t, f.file, m)
				a.Edit(func(s *awssim.State) { f.fail(s, f.why) })
				go func() {
					time.Sleep(12 * time.Minute)
					a.Edit(func(s *awssim.State) { f.fail(s, "") })
				}()
				mustApply(t, m, a)
				requireNoChange(t, m, a)
				time.Sleep(12 * time.Minute)
				mustDelete(t, m, a)
			})
		})
	}
}
