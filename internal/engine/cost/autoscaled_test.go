package cost_test

import (
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/internal/enginetest"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// New bounds move the number of machines that an autoscaler has set, as AWS does: the plan shows it, and its cost is that of as many machines.
func TestBoundsOfAutoscaledPools(t *testing.T) {
	for file, x := range map[string]struct {
		step, field string
		bounds      func(pool *manifest.Pool, least, most int32)
		grow        func(s *awssim.State, n int32)
	}{
		enginetest.MachinePool: {
			"auto-scaling-group/machine-pool-mp-0", "replicas",
			func(p *manifest.Pool, least, most int32) {
				p.Scaling.Spec.MinSize, p.Scaling.Spec.MaxSize = least, most
			},
			func(s *awssim.State, n int32) { s.AutoScaling.Groups["machine-pool-mp-0"].Desired = n },
		},
		enginetest.EKSSmall: {
			"node-group/default_eks-pool-0", "scaling.desiredSize",
			func(p *manifest.Pool, least, most int32) {
				p.Managed.Spec.Scaling.MinSize, p.Managed.Spec.Scaling.MaxSize = &least, &most
			},
			func(s *awssim.State, n int32) {
				for _, g := range s.EKS.Clusters["default_eks"].NodeGroups {
					g.Desired = n
				}
			},
		},
	} {
		t.Run(file, func(t *testing.T) {
			m := enginetest.LoadQuick(t, file)
			pool := &m.Pools[0]
			pool.Object.Annotations = map[string]string{clusterv1.ReplicasManagedByAnnotation: "external-autoscaler"}
			synctest.Test(t, func(t *testing.T) {
				a := enginetest.Prepared(t, m)
				enginetest.MustApply(t, m, a)
				a.Edit(func(s *awssim.State) { x.grow(s, 4) })
				time.Sleep(10 * time.Minute)
				four := mustPrice(t, m, a)
				require.InDelta(t, four.Before, four.After, 0.001)
				for _, c := range []struct {
					least, most int32
					want        []string // have, want
				}{
					{1, 3, []string{"4", "3"}},
					{5, 6, []string{"3", "5"}},
					{1, 5, nil},
				} {
					x.bounds(pool, c.least, c.most)
					p, _ := priced(t, m, a.Process(), "")
					require.Equal(t, c.want, changed(p, x.step, x.field))
					assert.Equal(t, c.want == nil, math.Abs(p.Cost.Before-p.Cost.After) < 0.01)
					enginetest.MustApply(t, m, a)
					time.Sleep(10 * time.Minute)
					enginetest.RequireNoChange(t, m, a)
					assert.InDelta(t, p.Cost.After, mustPrice(t, m, a).Before, 0.01, "the plan has said what it costs afterwards")
				}
			})
		})
	}
}

// changed returns the two values of a field in a plan; nil if it does not change.
func changed(p plan.Plan, resource, field string) []string {
	for _, s := range p.Steps {
		for _, c := range s.Diff {
			if string(s.Resource) == resource && c.Field == field {
				return []string{c.Have, c.Want}
			}
		}
	}
	return nil
}
