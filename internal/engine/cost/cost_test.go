package cost_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	infrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/api/v1beta2"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest/loader"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/run"
	"github.com/clusterawsadm/clusterawsadm/internal/enginetest"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
	"github.com/clusterawsadm/clusterawsadm/pkg/input"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// priced returns the plan of a process with its cost, and the warnings.
func priced(t *testing.T, m *manifest.Cluster, p *awssim.Process, cacheDir string) (plan.Plan, []string) {
	t.Helper()
	var warnings []string
	plan, err := run.Open(m, cluster.Target{
		Config: p.Config(), Owner: "test", Transport: enginetest.Transport(p), Drain: true, Wait: plan.NodesReady,
		Cost: true, CacheDir: cacheDir, Warn: func(text string) { warnings = append(warnings, text) },
	}).Plan(t.Context())
	require.NoError(t, err)
	return plan, warnings
}

// mustPrice returns the cost of a plan in a new process, which has no warnings about it.
func mustPrice(t *testing.T, m *manifest.Cluster, a *awssim.AWS) *plan.Cost {
	t.Helper()
	plan, warnings := priced(t, m, a.Process(), "")
	require.NotNil(t, plan.Cost, warnings)
	for _, w := range warnings {
		require.NotContains(t, w, "cost")
	}
	return plan.Cost
}

// sum is what a group of items costs a month, before and after.
type sum struct {
	pieces        int // after
	before, after float64
}

// sums adds the items of a cost by group.
func sums(c *plan.Cost) map[string]sum {
	all := map[string]sum{}
	for _, i := range c.Items {
		s := all[i.Group]
		all[i.Group] = sum{s.pieces + i.After.Pieces, s.before + i.Before.Quantity*i.UnitPrice, s.after + i.After.Quantity*i.UnitPrice}
	}
	return all
}

// requireSums compares sums to the hundredth.
func requireSums(t *testing.T, want, have map[string]sum) {
	t.Helper()
	for group, s := range have {
		w, ok := want[group]
		require.True(t, ok, "%s: %+v", group, s)
		assert.Equal(t, w.pieces, s.pieces, group)
		assert.InDelta(t, w.before, s.before, 0.005, group)
		assert.InDelta(t, w.after, s.after, 0.005, group)
	}
	require.Len(t, have, len(want))
}

// What each kind of resources costs, computed by hand from the prices of the simulated
// account: 730 hours a month.
func TestCostOfAPlan(t *testing.T) {
	network := func(addresses int) map[string]sum {
		return map[string]sum{
			"NAT gateways":          {pieces: 3, after: 3 * 730 * 0.045},
			"public IPv4 addresses": {pieces: addresses, after: float64(addresses) * 730 * 0.005},
		}
	}
	for file, want := range map[string]map[string]sum{
		"quickstart": plus(network(6), map[string]sum{ // 3 of NAT gateways, 3 of the load balancer
			"t3.large":               {pieces: 2, after: 2 * 730 * 0.0832},
			"gp3 volumes":            {pieces: 2, after: 2 * 40 * 0.08},
			"Network Load Balancers": {pieces: 1, after: 730 * 0.0225},
		}),
		"classic-elb": plus(network(6), map[string]sum{
			"t3.large":               {pieces: 2, after: 2 * 730 * 0.0832},
			"gp3 volumes":            {pieces: 2, after: 2 * 40 * 0.08},
			"Classic Load Balancers": {pieces: 1, after: 730 * 0.025},
		}),
		"bastion": plus(network(7), map[string]sum{
			"t3.large":               {pieces: 2, after: 2 * 730 * 0.0832},
			"t3.micro":               {pieces: 1, after: 730 * 0.0104},
			"gp2 volumes":            {pieces: 1, after: 8 * 0.10}, // of the bastion, as the image has it
			"gp3 volumes":            {pieces: 2, after: 2 * 40 * 0.08},
			"Network Load Balancers": {pieces: 2, after: 2 * 730 * 0.0225}, // one is internal
		}),
		"machine-pool": plus(network(6), map[string]sum{
			"t3.large":               {pieces: 1, after: 730 * 0.0832},
			"m6i.large":              {pieces: 2, after: 2 * 730 * 0.096}, // half of the second machine is none
			"gp3 volumes":            {pieces: 3, after: 3 * 40 * 0.08},
			"Network Load Balancers": {pieces: 1, after: 730 * 0.0225},
		}),
		"spot-volumes-placement": plus(network(6), map[string]sum{
			"m5.large dedicated":     {pieces: 3, after: 3 * 730 * 0.096 * 1.06},
			"m5.large spot":          {pieces: 2, after: 2 * 730 * 0.096 * 0.45}, // in the most expensive zone, us-east-1f
			"m6i.large":              {pieces: 1, after: 730 * 0.096},
			"gp3 volumes":            {pieces: 6, after: 3*(40*0.08+(250-125)*0.04) + (2*30+40)*0.08},
			"io2 volumes":            {pieces: 3, after: 3 * (20*0.125 + 3000*0.065)},
			"Network Load Balancers": {pieces: 1, after: 730 * 0.0225},
		}),
		"eks-addons": plus(network(3), map[string]sum{
			"EKS control planes": {pieces: 1, after: 730 * 0.10},
			"m6i.large":          {pieces: 2, after: 2 * 730 * 0.096},
			"m6i.xlarge spot":    {pieces: 1, after: 730 * 0.192 * 0.45},
			"gp3 volumes":        {pieces: 3, after: (2*50 + 20) * 0.08},
		}),
		"eks-fargate": plus(network(3), map[string]sum{"EKS control planes": {pieces: 1, after: 730 * 0.10}}),
	} {
		t.Run(file, func(t *testing.T) {
			path := file + ".yaml"
			m := enginetest.LoadQuick(t, path)
			synctest.Test(t, func(t *testing.T) {
				a := enginetest.Prepared(t, m)
				c := mustPrice(t, m, a)
				requireSums(t, want, sums(c))
				total := 0.0
				for _, s := range want {
					total += s.after
				}
				assert.Zero(t, c.Before)
				assert.InDelta(t, total, c.After, 0.01)
				assert.Equal(t, "USD", c.Currency)
				assert.Equal(t, "2026-09-18", c.Prices)
				assert.Equal(t, file == "eks-fargate" || file == "eks-addons", strings.Contains(strings.Join(c.NotCounted, ","), "Fargate pods"))
				assert.Contains(t, c.NotCounted, "data transfer")

				enginetest.MustApply(t, m, a)
				c = mustPrice(t, m, a)
				assert.InDelta(t, total, c.Before, 0.01, "what exists costs what was planned: %+v", sums(c))
				assert.InDelta(t, total, c.After, 0.01)
			})
		})
	}
}

func plus(a, b map[string]sum) map[string]sum {
	for k, v := range b {
		a[k] = v
	}
	return a
}

// A machine less, another type, a larger disk: the plan says what changes.
func TestCostOfAChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := enginetest.Alive(t, enginetest.Sized(t, 1, 3))
		all := mustPrice(t, enginetest.Sized(t, 1, 3), a).After
		c := mustPrice(t, enginetest.Sized(t, 1, 1), a)
		assert.InDelta(t, all, c.Before, 0.01)
		assert.InDelta(t, -2*(730*0.0832+40*0.08), c.After-c.Before, 0.02, "%+v", sums(c))
		c = mustPrice(t, enginetest.Sized(t, 1, 4), a)
		assert.InDelta(t, 730*0.0832+40*0.08, c.After-c.Before, 0.02, "%+v", sums(c))
	})
	synctest.Test(t, func(t *testing.T) {
		a := enginetest.Alive(t, enginetest.Sized(t, 1, 1))
		m := enginetest.Larger(t, 1)
		m.Deployments[0].Template.Spec.Template.Spec.RootVolume = &infrav1.Volume{Size: 60, Type: infrav1.VolumeTypeGP3}
		c := mustPrice(t, m, a)
		requireChange(t, c, "t3.large", -730*0.0832)
		requireChange(t, c, "m5.xlarge", 730*0.192)
		requireChange(t, c, "gp3 volumes", (60-40)*0.08)
		assert.InDelta(t, 730*(0.192-0.0832)+(60-40)*0.08, c.After-c.Before, 0.02)
	})
}

func requireChange(t *testing.T, c *plan.Cost, group string, want float64) {
	t.Helper()
	s := sums(c)[group]
	assert.InDelta(t, want, s.after-s.before, 0.005, group)
}

// A version of Kubernetes with extended support costs six times as much; an upgrade saves it.
func TestCostOfExtendedSupport(t *testing.T) {
	raw, err := enginetest.Read("eks.yaml")
	require.NoError(t, err)
	version := func(to string) *manifest.Cluster {
		m, err := loader.Load([]input.Source{{Name: "eks.yaml", Data: bytes.ReplaceAll(raw, []byte("version: v1.34"), []byte("version: "+to))}}, input.LoadOptions{
			Lookup: func(string) (string, bool) { return "", false },
		})
		require.NoError(t, err)
		return m
	}
	synctest.Test(t, func(t *testing.T) {
		old := version("v1.33")
		a := enginetest.Prepared(t, old)
		c := mustPrice(t, old, a)
		requireChange(t, c, "EKS control planes", 730*0.10)
		requireChange(t, c, "EKS extended support", 730*0.50)
		enginetest.MustApply(t, old, a)
		c = mustPrice(t, version("v1.34"), a)
		requireChange(t, c, "EKS control planes", 0)
		requireChange(t, c, "EKS extended support", -730*0.50)
		assert.InDelta(t, -365, c.After-c.Before, 0.01)

		plan, warnings := priced(t, old, enginetest.Refusing(a, "EKS", "DescribeClusterVersions", awssim.Denied), "")
		require.NotNil(t, plan.Cost)
		assert.Contains(
			t,
			strings.Join(warnings, "\n"),
			"the cost is not complete: whether EKS has extended support for Kubernetes 1.33 is not known: the caller lacks the IAM action eks:DescribeClusterVersions",
		)
	})
}

// Without prices, the plan goes on: a warning says why there are none.
func TestNoPrices(t *testing.T) {
	m := enginetest.LoadQuick(t, enginetest.ThreeZones)
	for name, x := range map[string]struct {
		fault awssim.Fault
		want  string
	}{
		"denied":  {awssim.Denied, "the cost is not known: the caller lacks the IAM action pricing:GetProducts"},
		"offline": {awssim.Unsent, "the cost is not known: "},
		"slow":    {awssim.Silent, "the cost is not known: AWS has not returned the prices within 3s"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := enginetest.Account(m, enginetest.Lag)
				began := time.Now()
				plan, warnings := priced(t, m, enginetest.Refusing(a, "Pricing", "", x.fault), "")
				require.Nil(t, plan.Cost)
				require.NotEmpty(t, plan.Steps)
				require.Less(t, time.Since(began), 10*time.Second)
				about := 0
				for _, w := range warnings {
					if strings.Contains(w, "cost") {
						about++
						assert.Contains(t, w, x.want)
					}
				}
				require.Equal(t, 1, about, warnings)
			})
		})
	}
}

// A spot price that cannot be read is at most that of On-Demand. A type without a price is
// named.
func TestPricesThatAreMissing(t *testing.T) {
	path := "spot-volumes-placement.yaml"
	m := enginetest.LoadQuick(t, path)
	synctest.Test(t, func(t *testing.T) {
		a := enginetest.Prepared(t, m)
		plan, _ := priced(t, m, enginetest.Refusing(a, "EC2", "DescribeSpotPriceHistory", awssim.Denied), "")
		requireChange(t, plan.Cost, "m5.large spot", 2*730*0.096)
		for _, i := range plan.Cost.Items {
			assert.Equal(t, i.Group == "m5.large spot", i.AtMost, i.Item)
		}
	})
	m = enginetest.LoadQuick(t, enginetest.ThreeZones)
	m.Region = "us-east-2"
	m.Deployments[0].Template.Spec.Template.Spec.InstanceType = "g4dn.xlarge" // whose price the simulated list does not have there
	synctest.Test(t, func(t *testing.T) {
		plan, warnings := priced(t, m, enginetest.Account(m, enginetest.Lag).Process(), "")
		require.Equal(t, []string{"g4dn.xlarge"}, plan.Cost.Unpriced)
		assert.Contains(t, warnings, "no price for g4dn.xlarge in us-east-2: it is not in the cost")
		requireChange(t, plan.Cost, "t3.large", 3*730*0.0832)
	})
}

// Prices are asked for once a day. Older ones are used if AWS does not return new ones.
func TestCacheOfPrices(t *testing.T) {
	m := enginetest.LoadQuick(t, enginetest.ThreeZones)
	dir := filepath.Join(t.TempDir(), "cache")
	synctest.Test(t, func(t *testing.T) {
		a := enginetest.Account(m, enginetest.Lag)
		asked := func(fault awssim.Fault) (calls int, cost *plan.Cost, warnings []string) {
			before := len(a.Calls())
			plan, warnings := priced(t, m, enginetest.Refusing(a, "Pricing", "", fault), dir)
			for _, c := range enginetest.Since(a, before) {
				if c.Operation == "GetProducts" {
					calls++
				}
			}
			return calls, plan.Cost, warnings
		}
		calls, first, _ := asked(awssim.None)
		require.NotZero(t, calls)
		files, err := filepath.Glob(filepath.Join(dir, "*"))
		require.NoError(t, err)
		require.Equal(t, []string{filepath.Join(dir, "prices-us-east-1.json")}, files)
		info, err := os.Stat(files[0])
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o600), info.Mode().Perm())

		time.Sleep(23 * time.Hour)
		calls, again, _ := asked(awssim.None)
		require.Zero(t, calls)
		require.Equal(t, first, again)

		time.Sleep(2 * time.Hour)
		_, old, warnings := asked(awssim.Denied)
		require.Equal(t, first, old)
		require.Contains(t, strings.Join(warnings, "\n"), "the prices are older than a day: the caller lacks the IAM action pricing:GetProducts")

		calls, _, _ = asked(awssim.None)
		require.NotZero(t, calls)

		require.NoError(t, os.WriteFile(files[0], []byte("{damaged"), 0o600))
		calls, again, _ = asked(awssim.None)
		require.NotZero(t, calls)
		require.Equal(t, first, again)
	})
}
