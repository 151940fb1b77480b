package topology_test

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/stretchr/testify/require"
	infrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/api/v1beta2"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/internal/enginetest"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// tagged adds a tag to each field of a manifest that takes tags.
func tagged(m *manifest.Cluster, name string) *manifest.Cluster {
	add := func(to *infrav1.Tags, of string) {
		*to = infrav1.Tags(cloneTags(*to))
		(*to)["former-"+of+"-"+name] = "x"
	}
	spec := &m.Infra.Spec
	add(&spec.AdditionalTags, "cluster")
	for i := range spec.NetworkSpec.Subnets {
		add(&spec.NetworkSpec.Subnets[i].Tags, "subnet")
	}
	for _, g := range m.Deployments {
		add(&g.Template.Spec.Template.Spec.AdditionalTags, "worker")
	}
	if m.ControlPlane != nil {
		add(&m.ControlPlane.Template.Spec.Template.Spec.AdditionalTags, "plane")
	}
	for _, p := range m.Pools {
		if p.Managed != nil {
			add(&p.Managed.Spec.AdditionalTags, "managed")
		} else {
			add(&p.Scaling.Spec.AdditionalTags, "pool")
		}
	}
	if m.EKS != nil {
		for _, f := range m.EKS.Fargate {
			add(&f.Spec.AdditionalTags, "fargate")
		}
		if p := m.EKS.ControlPlane.Spec.OIDCIdentityProviderConfig; p != nil {
			add(&p.Tags, "issuer")
		}
	}
	return m
}

func cloneTags(t infrav1.Tags) map[string]string {
	if t == nil {
		return map[string]string{}
	}
	return maps.Clone(t)
}

// formerTags lists the places of an account that have a tag of tagged, without those that are not in use any more, and without boot data, which is
// deleted when the machines have joined.
func formerTags(t *testing.T, a *awssim.AWS) (places []string) {
	t.Helper()
	time.Sleep(enginetest.Booting)
	a.Inventory() // until then, machines are terminated
	a.Edit(func(s *awssim.State) {
		unused := []string{"/Secrets/", "/SSM/Parameters//cluster.x-k8s.io/"}
		for id, i := range s.EC2.Instances {
			if i.State(time.Now()) == types.InstanceStateNameTerminated {
				unused = append(unused, "/EC2/Instances/"+id)
			}
		}
		for id, x := range s.EC2.LaunchTemplates {
			versions := slices.SortedFunc(maps.Keys(x.Versions), func(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b)) })
			for _, n := range versions[:len(versions)-1] {
				unused = append(unused, "/EC2/LaunchTemplates/"+id+"/Versions/"+n+"/")
			}
		}
		raw, err := json.Marshal(s)
		require.NoError(t, err)
		var all any
		require.NoError(t, json.Unmarshal(raw, &all))
		visitTexts("", all, func(path, text string) {
			isUnused := slices.ContainsFunc(unused, func(prefix string) bool { return strings.HasPrefix(path, prefix) })
			if strings.Contains(text, "former-") && !isUnused && !strings.HasSuffix(path, "/History") {
				places = append(places, path+": "+text)
			}
		})
	})
	slices.Sort(places)
	return slices.Compact(places)
}

// visitTexts calls a function for each text of a JSON document, also for the names of fields.
func visitTexts(path string, v any, visit func(path, text string)) {
	switch v := v.(type) {
	case map[string]any:
		for k, x := range v {
			visit(path+"/"+k, k)
			visitTexts(path+"/"+k, x, visit)
		}
	case []any:
		for _, x := range v {
			visitTexts(path, x, visit)
		}
	case string:
		visit(path, v)
	}
}

// Tags that are removed from the manifest are in the plan, and are removed from all resources on which runs have set them. After that, nothing in the
// account mentions them.
func TestFormerTagsAreRemoved(t *testing.T) {
	for _, example := range enginetest.Examples(t) {
		t.Run(example, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := enginetest.Prepared(t, enginetest.LoadQuick(t, example))
				before := a.Inventory()
				with, without := tagged(enginetest.LoadQuick(t, example), "a"), enginetest.LoadQuick(t, example)
				enginetest.MustApply(t, with, a)
				require.NotEmpty(t, formerTags(t, a))
				p := enginetest.MustPlan(t, without, a)
				require.Positive(t, p.Count(plan.Update))
				if len(without.Pools) == 0 { // whose machines are replaced
					require.Less(t, p.Expected, time.Minute)
				}
				enginetest.MustApply(t, without, a)
				enginetest.RequireNoChange(t, without, a)
				require.Empty(t, formerTags(t, a))
				enginetest.MustDeleteAll(t, without, a)
				require.Equal(t, before, a.Inventory())
			})
		})
	}
}

// If a run dies while it sets or removes tags, the next runs still know which tags to remove.
func TestRemovalOfTagsMayDie(t *testing.T) {
	examples := []string{"quickstart.yaml", "eks-addons.yaml", "machine-pool.yaml", "byo-vpc.yaml"}
	first, stride := 11, 37
	if enginetest.Sweeping() {
		first, stride = enginetest.First(3, 0), enginetest.Stride(3)
	}
	for _, example := range examples {
		t.Run(example, func(t *testing.T) {
			t.Parallel()
			for n, over := first, false; !over; n += stride {
				synctest.Test(t, func(t *testing.T) {
					load := func() *manifest.Cluster { return enginetest.LoadQuick(t, example) }
					a := enginetest.Prepared(t, load())
					dies := func(m *manifest.Cluster) bool {
						p := a.Process()
						err := enginetest.Spoilt(t, p, n, awssim.KillAfter, func(ctx context.Context) error {
							_, err := enginetest.Open(m, p).Apply(ctx, cluster.Options{})
							return err
						})
						time.Sleep(enginetest.Booting) // the last heartbeat is seen by then
						return err != nil || p.Calls() >= n
					}
					enginetest.MustApply(t, load(), a)
					over = !dies(tagged(load(), "a"))
					over = !dies(tagged(load(), "b")) && over
					over = !dies(load()) && over
					enginetest.MustApply(t, load(), a)
					enginetest.RequireNoChange(t, load(), a)
					require.Empty(t, formerTags(t, a), "call %d", n)
				})
			}
		})
	}
}

// Runs leave the tags of others alone: tags with other keys, and tags that somebody sets after their key was removed from the manifest.
func TestTagsOfOthersStay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		load := func() *manifest.Cluster { return enginetest.LoadQuick(t, enginetest.Quickstart) }
		a := enginetest.Prepared(t, load())
		enginetest.MustApply(t, tagged(load(), "a"), a)
		tag := func(key string) {
			a.Edit(func(s *awssim.State) {
				for _, v := range s.EC2.VPCs {
					v.Tags[key] = "of others"
				}
				for _, i := range s.EC2.Instances {
					i.Tags[key] = "of others"
				}
			})
		}
		tag("other")
		enginetest.MustApply(t, load(), a)
		enginetest.RequireNoChange(t, load(), a)
		tag("former-cluster-a")
		enginetest.RequireNoChange(t, load(), a)
		a.Edit(func(s *awssim.State) {
			for _, v := range s.EC2.VPCs {
				require.Equal(t, "of others", v.Tags["other"])
				require.Equal(t, "of others", v.Tags["former-cluster-a"])
			}
		})
	})
}

// Tags are removed before others are set: a resource has 50 tags at most.
func TestManyTagsAreReplaced(t *testing.T) {
	for _, example := range []string{"quickstart.yaml", "classic-elb.yaml", "machine-pool.yaml", "eks-karpenter.yaml"} {
		t.Run(example, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				many := func(letter string) *manifest.Cluster {
					m := enginetest.LoadQuick(t, example)
					m.Infra.Spec.AdditionalTags = infrav1.Tags{}
					for n := range 30 {
						m.Infra.Spec.AdditionalTags[fmt.Sprintf("former-%s-%d", letter, n)] = "x"
					}
					return m
				}
				a := enginetest.Prepared(t, many("a"))
				enginetest.MustApply(t, many("a"), a)
				enginetest.MustApply(t, many("b"), a)
				enginetest.RequireNoChange(t, many("b"), a)
			})
		})
	}
}
