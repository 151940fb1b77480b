package adopt_test

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/internal/enginetest"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// A cluster whose resources have only Cluster API's tags is recognized: it gets the
// identity tags, and no other change.
func TestAdoption(t *testing.T) {
	enginetest.Each(t, awssim.Options{}, func(t *testing.T, a *awssim.AWS, m *manifest.Cluster) {
		before := a.Detailed()
		enginetest.MustApply(t, m, a)
		time.Sleep(enginetest.Booting)
		standing := a.Detailed()
		a.Edit(func(s *awssim.State) {
			for _, tags := range allTags(s) {
				delete(tags, "clusterawsadm/resource")
			}
		})
		for _, s := range enginetest.MustPlan(t, m, a).Steps {
			if s.Does() {
				require.Equal(t, plan.Update, s.Action, s.Resource)
				require.Equal(t, plan.Diff{{Field: "tag clusterawsadm/resource", Want: string(s.Resource), Remedy: plan.InPlace}}, s.Diff, s.Resource)
			}
		}
		enginetest.MustApply(t, m, a)
		enginetest.RequireNoChange(t, m, a)
		require.Equal(t, enginetest.Unnumbered(standing), enginetest.Unnumbered(a.Detailed()))
		enginetest.MustDelete(t, m, a)
		require.Equal(t, before, a.Detailed())
	})
}

// allTags lists the tags of every resource of an account except for those that are part
// of another one, such as the volumes of instances.
func allTags(s *awssim.State) (all []map[string]string) {
	for id, tags := range s.EC2.AllTags() {
		if !strings.HasPrefix(id, "vol-") {
			all = append(all, tags)
		}
	}
	for _, id := range slices.Concat(ids(s.ELB.Classic), ids(s.ELB.LoadBalancers), ids(s.ELB.TargetGroups), ids(s.ELB.Listeners), ids(s.S3.Buckets)) {
		all = append(all, enginetest.TagsOf(s, id))
	}
	for _, c := range s.EKS.Clusters {
		all = append(all, c.Tags)
		for _, g := range c.NodeGroups {
			all = append(all, g.Tags)
		}
		for _, x := range c.Addons {
			all = append(all, x.Tags)
		}
		for _, f := range c.Fargate {
			all = append(all, f.Tags)
		}
		for _, x := range c.Access {
			all = append(all, x.Tags)
		}
		for _, x := range c.Providers {
			all = append(all, x.Tags)
		}
	}
	for _, x := range s.IAM.Providers {
		all = append(all, x.Tags)
	}
	for _, r := range s.IAM.Roles {
		all = append(all, r.Tags)
	}
	return all
}

func ids[T any](m map[string]T) []string { return slices.Collect(maps.Keys(m)) }
