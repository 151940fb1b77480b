package teardown_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/run"
	"github.com/clusterawsadm/clusterawsadm/internal/enginetest"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// Resources that controllers have created are deleted with the cluster, for every
// example.
func TestDeletionSweepsWhatTheClusterMade(t *testing.T) {
	enginetest.Each(t, awssim.Options{Lag: enginetest.Lag}, func(t *testing.T, a *awssim.AWS, m *manifest.Cluster) {
		before := a.Detailed()
		enginetest.MustApply(t, m, a)
		enginetest.Lives(t, a, m)
		enginetest.MustDeleteAll(t, m, a)
		require.Equal(t, before, a.Detailed())
	})
}

// The same with only the name of the cluster.
func TestDeletionByNameSweepsWhatTheClusterMade(t *testing.T) {
	enginetest.Each(t, awssim.Options{Lag: enginetest.Lag}, func(t *testing.T, a *awssim.AWS, m *manifest.Cluster) {
		before := a.Detailed()
		enginetest.MustApply(t, m, a)
		enginetest.Lives(t, a, m)
		_, err := enginetest.ByName(m.Name, a).Delete(t.Context(), enginetest.Everything)
		require.NoError(t, err)
		require.Equal(t, before, a.Detailed())
	})
}

// insideExamples are the examples for which a deletion is killed at every call.
func insideExamples() []string {
	return []string{"quickstart.yaml", "byo-vpc.yaml", enginetest.EKSSmall}
}

// A deletion of leftovers that is killed at any call is completed by the next, by
// manifest or by name.
func TestSweepMayDie(t *testing.T) {
	for _, file := range enginetest.Sample(insideExamples()) {
		m := enginetest.LoadQuick(t, file)
		for _, fault := range []awssim.Fault{awssim.KillAfter, awssim.Denied} {
			t.Run(enginetest.Name(file)+"/"+string(fault), func(t *testing.T) {
				t.Parallel()
				for tries, n, over := 0, enginetest.First(2, 0), false; !over; tries, n = tries+1, n+enginetest.Stride(2) {
					synctest.Test(t, func(t *testing.T) {
						a := enginetest.Prepared(t, m)
						before := a.Detailed()
						enginetest.MustApply(t, m, a)
						enginetest.Lives(t, a, m)
						p := a.Process()
						err := enginetest.Spoilt(t, p, n, fault, func(ctx context.Context) error {
							_, err := enginetest.Open(m, p).Delete(ctx, enginetest.Everything)
							return err
						})
						over = err == nil && p.Calls() < n
						if tries%2 == 0 {
							enginetest.MustDeleteAll(t, m, a)
						} else {
							_, err := enginetest.ByName(m.Name, a).Delete(t.Context(), enginetest.Everything)
							require.NoError(t, err)
						}
						require.Equal(t, before, a.Detailed(), "call %d", n)
					})
				}
			})
		}
	}
}

// Volumes to keep are reported, and do not count as left behind.
func TestVolumesAreKept(t *testing.T) {
	for _, file := range []string{enginetest.ThreeZones, enginetest.EKSSmall} {
		t.Run(enginetest.Name(file), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := enginetest.LoadQuick(t, file)
				a := enginetest.Prepared(t, m)
				before := a.Inventory()
				enginetest.MustApply(t, m, a)
				x := enginetest.InsiderOf(t, a, m)
				x.Service("web")
				kept := []string{x.Volume("data-0", true), x.Volume("data-1", false)}
				time.Sleep(enginetest.Lag)
				keeps := func(p plan.Plan) (out []string) {
					for _, s := range p.Steps {
						if s.Action == plan.Keep {
							out = append(out, s.CloudID)
							require.Contains(t, s.Origin, "made in the cluster for default/data-")
						}
					}
					return out
				}
				p, err := enginetest.Open(m, a.Process()).PlanDelete(t.Context(), cluster.Options{Volumes: cluster.KeepVolumes})
				require.NoError(t, err)
				require.ElementsMatch(t, kept, keeps(p))
				require.Contains(t, enginetest.StepOf(t, p, "classic-load-balancer/web").Origin, "default/web")
				res, err := enginetest.Open(m, a.Process()).Delete(t.Context(), cluster.Options{Volumes: cluster.KeepVolumes})
				require.NoError(t, err)
				require.ElementsMatch(t, kept, keeps(res.Plan))
				require.Equal(t, append(slices.Clone(before), "Volume "+m.Name+"-dynamic-data-0", "Volume "+m.Name+"-dynamic-data-1"), a.Inventory())
				enginetest.MustDeleteAll(t, m, a)
				require.Equal(t, before, a.Inventory())
			})
		})
	}
}

// Shared resources stay, and so do those of others, even with the same names.
func TestSweepLeavesWhatIsNotOwned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		file := "byo-vpc.yaml"
		m := enginetest.LoadQuick(t, file)
		a := enginetest.Prepared(t, m)
		enginetest.MustApply(t, m, a)
		x := enginetest.InsiderOf(t, a, m)
		for i, tags := range []map[string]string{
			{"kubernetes.io/cluster/" + m.Name: "shared"},
			{"kubernetes.io/cluster/" + m.Name + "-2": "owned"},
			{"kubernetes.io/cluster/" + m.Name: "owned", "sigs.k8s.io/cluster-api-provider-aws/cluster/other": "owned"},
			{"elbv2.k8s.aws/cluster": m.Name + "-2"},
			{"team": "storage"},
		} {
			x.Tags = tags
			x.Groups = nil // rules in the cluster's groups prevent their deletion
			x.Service(fmt.Sprint("a", i))
			x.Balancer(fmt.Sprint("k8s-", i))
			x.Volume(fmt.Sprint("data-", i), false)
		}
		time.Sleep(enginetest.Lag)
		standing := func() (out []string) {
			for _, l := range a.Detailed() {
				if strings.Contains(l, "k8s-") || strings.Contains(l, "dynamic-") || strings.Contains(l, "LoadBalancer a") {
					out = append(out, l)
				}
			}
			return out
		}
		there := standing()
		require.NotEmpty(t, there)
		enginetest.MustDelete(t, m, a)
		require.Equal(t, there, standing())
	})
}

// The deletion of one of two clusters in a VPC deletes no resource of the other.
func TestTwoClustersInAVPC(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		file := "byo-vpc.yaml"
		m, other := enginetest.LoadQuick(t, file), enginetest.Rewritten(t, file, "byo-vpc", "other")
		enginetest.Quick(other)
		a := enginetest.Prepared(t, m)
		before := a.Inventory()
		enginetest.MustApply(t, m, a)
		enginetest.MustApply(t, other, a)
		enginetest.Lives(t, a, m)
		enginetest.Lives(t, a, other)
		of := func(m *manifest.Cluster) (out []string) {
			for _, l := range a.Inventory() {
				if strings.Contains(l, m.Name) {
					out = append(out, l)
				}
			}
			return out
		}
		theirs := of(other)
		require.Greater(t, len(theirs), 8)
		enginetest.MustDeleteAll(t, m, a)
		require.Empty(t, of(m))
		require.Equal(t, theirs, of(other))
		_, err := enginetest.ByName(other.Name, a).Delete(t.Context(), enginetest.Everything)
		require.NoError(t, err)
		require.Equal(t, before, a.Inventory())
	})
}

// If the cluster has no resources, resources of another cluster with that name in its
// tags are not deleted.
func TestLeftoversOfAnotherCluster(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		file := "byo-vpc.yaml"
		m := enginetest.LoadQuick(t, file)
		a := enginetest.Prepared(t, m)
		x := enginetest.InsiderOf(t, a, m)
		x.Groups = nil
		x.Service("web")
		x.Volume("data", false)
		_, err := x.EC2.CreateTags(t.Context(), &ec2.CreateTagsInput{Resources: []string{x.Subnet}, Tags: []types.Tag{
			{Key: aws.String("kubernetes.io/cluster/" + m.Name), Value: aws.String("owned")},
		}})
		require.NoError(t, err)
		time.Sleep(enginetest.Lag)
		before := a.Detailed()
		warned := ""
		for _, c := range []*run.Cluster{
			run.Open(m, cluster.Target{Config: a.Config(), Owner: "test", Warn: func(s string) { warned = s }}), enginetest.ByName(m.Name, a),
		} {
			res, err := c.Delete(t.Context(), cluster.Options{})
			require.NoError(t, err)
			require.True(t, res.Plan.Empty(), "%v", res.Plan)
		}
		require.Contains(t, warned, "another cluster uses that name")
		require.Equal(t, before, a.Detailed())
	})
}
