package reconcile_test

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
	"github.com/clusterawsadm/clusterawsadm/pkg/input"

	"github.com/clusterawsadm/clusterawsadm/pkg/plan"

	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/pkg/reconcile"
)

const quickstart = "../../configs/quickstart.yaml"

// rewritten reads an example and replaces texts: pairs of old and new.
func rewritten(t *testing.T, file string, oldnew ...string) *manifest.Cluster {
	t.Helper()
	raw, err := os.ReadFile(file)
	require.NoError(t, err)
	for i := 0; i < len(oldnew); i += 2 {
		require.Contains(t, string(raw), oldnew[i])
		raw = bytes.ReplaceAll(raw, []byte(oldnew[i]), []byte(oldnew[i+1]))
	}
	m, err := manifest.Load([]input.Source{{Name: filepath.Base(file), Data: raw}}, input.LoadOptions{})
	require.NoError(t, err)
	return quick(m)
}

// byName returns the cluster without its manifest.
func byName(name string, a *awssim.AWS) *reconcile.Cluster {
	return reconcile.OpenByName(name, cluster.Target{Config: a.Config(), Owner: "test"})
}

// A deletion by name alone leaves the account as it was before, including tags.
func TestLifecycleByName(t *testing.T) {
	each(t, awssim.Options{Lag: lag}, func(t *testing.T, a *awssim.AWS, m *manifest.Cluster) {
		before := a.Detailed()
		mustApply(t, m, a)
		_, err := byName(m.Name, a).Delete(t.Context(), cluster.Options{Observe: tell(t)})
		require.NoError(t, err)
		require.Equal(t, before, a.Detailed())
	})
}

// Pages of two items make no difference.
func TestSmallPages(t *testing.T) {
	each(t, awssim.Options{Page: 2}, func(t *testing.T, a *awssim.AWS, m *manifest.Cluster) {
		before := a.Detailed()
		mustApply(t, m, a)
		requireNoChange(t, m, a)
		mustDelete(t, m, a)
		require.Equal(t, before, a.Detailed())
	})
}

// Two clusters do not affect each other if the name of one begins with the name of the
// other, and they are in different namespaces.
func TestTwoClusters(t *testing.T) {
	one := rewritten(t, quickstart, "quickstart", "demo")
	two := rewritten(t, quickstart, "quickstart", "demo-2", "metadata:\n", "metadata:\n  namespace: other\n")
	for name, pair := range map[string][2]*manifest.Cluster{"longer": {one, two}, "shorter": {two, one}} {
		for how, remove := range map[string]func(*testing.T, *manifest.Cluster, *awssim.AWS){
			"manifest": func(t *testing.T, m *manifest.Cluster, a *awssim.AWS) { t.Helper(); mustDelete(t, m, a) },
			"name": func(t *testing.T, m *manifest.Cluster, a *awssim.AWS) {
				t.Helper()
				_, err := byName(m.Name, a).Delete(t.Context(), cluster.Options{})
				require.NoError(t, err)
			},
		} {
			t.Run(name+" by "+how, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					first, second := pair[0], pair[1]
					a := account(first, 0)
					a.Edit(func(s *awssim.State) { s.EC2.Limits.Addresses = 10 })
					mustApply(t, first, a)
					time.Sleep(booting) // the machines have booted, and deleted their boot data
					alone := a.Detailed()
					mustApply(t, second, a)
					requireNoChange(t, first, a)
					requireNoChange(t, second, a)
					require.Subset(t, a.Detailed(), alone)
					remove(t, second, a)
					require.Equal(t, alone, a.Detailed())
					requireNoChange(t, first, a)
					remove(t, first, a)
					require.Empty(t, a.Inventory())
				})
			})
		}
	}
}

// A name that exists in another namespace is refused: the tags would be the same.
func TestOneNameInTwoNamespaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one, two := quick(load(t, quickstart, nil)), rewritten(t, quickstart, "metadata:\n", "metadata:\n  namespace: other\n")
		a := account(one, 0)
		mustApply(t, one, a)
		time.Sleep(booting)
		standing, calls := a.Detailed(), len(a.Calls())
		for _, do := range []func() error{
			func() error { _, err := open(two, a.Process()).Apply(t.Context(), cluster.Options{}); return err },
			func() error { _, err := open(two, a.Process()).Delete(t.Context(), cluster.Options{}); return err },
		} {
			err := do()
			require.ErrorAs(t, err, new(*plan.RefusedError))
			require.ErrorContains(t, err, "namespace default")
		}
		require.Empty(t, writes(since(a, calls)))
		require.Equal(t, unnumbered(standing), unnumbered(a.Detailed()))
	})
}

// The name of a load balancer is shortened to the limit of AWS.
func TestLongName(t *testing.T) {
	for _, file := range []string{quickstart, "../../configs/classic-elb.yaml"} {
		t.Run(name(file), func(t *testing.T) {
			m := rewritten(t, file, name(file), "a-name-that-is-longer-than-a-load-balancer-takes")
			synctest.Test(t, func(t *testing.T) {
				a := account(m, 0)
				mustApply(t, m, a)
				requireNoChange(t, m, a)
				at := slices.IndexFunc(a.Inventory(), func(l string) bool { return strings.Contains(l, "LoadBalancer ") })
				require.Regexp(t, `LoadBalancer [a-z0-9]{28}-k8s$`, a.Inventory()[at])
				mustDelete(t, m, a)
				require.Empty(t, a.Inventory())
			})
		})
	}
}

// Machines are launched where their type is offered. If there is no such zone, the run is
// refused, and the error lists the zones that offer it.
func TestWhereTypesAreOffered(t *testing.T) {
	subnets := func(zones ...string) string {
		list := "  network:\n    subnets:\n"
		for i, z := range zones {
			for _, kind := range []string{"public", "private"} {
				block := map[string]string{"public": "10.0." + string(rune('0'+i)) + ".0/24", "private": "10.0.1" + string(rune('0'+i)) + ".0/24"}[kind]
				list += "    - {id: " + kind + z + ", availabilityZone: us-east-1" + z + ", cidrBlock: " + block + ", isPublic: " + map[string]string{"public": "true", "private": "false"}[kind] + "}\n"
			}
		}
		return list + "  controlPlaneLoadBalancer:\n"
	}
	const balancer = "  controlPlaneLoadBalancer:\n"
	t.Run("another zone", func(t *testing.T) {
		m := rewritten(t, quickstart, balancer, subnets("e", "a"))
		synctest.Test(t, func(t *testing.T) {
			a := account(m, 0)
			mustApply(t, m, a)
			a.Edit(func(s *awssim.State) {
				for _, i := range s.EC2.Instances {
					require.Equal(t, "us-east-1a", i.Zone)
				}
			})
			mustDelete(t, m, a)
		})
	})
	for what, m := range map[string]*manifest.Cluster{
		"us-east-1a, us-east-1b, us-east-1c, us-east-1d, us-east-1f":                        rewritten(t, quickstart, balancer, subnets("e")),
		"us-east-1e, but in us-east-1a":                                                     rewritten(t, quickstart, balancer, subnets("a", "e"), "      version: v1.34.2\n      bootstrap:", "      version: v1.34.2\n      failureDomain: us-east-1e\n      bootstrap:"),
		"no private subnet in us-east-1f":                                                   rewritten(t, quickstart, "      version: v1.34.2\n      bootstrap:", "      version: v1.34.2\n      failureDomain: us-east-1f\n      bootstrap:"),
		"t9.large is not offered in any zone of the cluster, nor in any other of us-east-1": rewritten(t, quickstart, "t3.large", "t9.large"),
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := account(m, 0)
				_, err := open(m, a.Process()).Apply(t.Context(), cluster.Options{})
				require.ErrorAs(t, err, new(*plan.RefusedError))
				require.ErrorContains(t, err, what)
				require.Empty(t, writes(a.Calls()))
				require.Empty(t, a.Inventory())
			})
		})
	}
}

// does lists the steps of a plan as "action resource".
func does(p plan.Plan) (out []string) {
	for _, s := range p.Steps {
		if s.Does() {
			node := string(s.Resource)
			if s.Action == plan.Remove {
				node = strings.TrimSuffix(node, "/"+s.CloudID)
			}
			out = append(out, string(s.Action)+" "+node)
		}
	}
	return out
}

// A MachineDeployment grows, shrinks and is deleted; so is the bastion.
func TestScale(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := account(load(t, threeZones, nil), lag)
		mustApply(t, quick(withWorkers(t, threeZones, 3)), a)
		step := func(m *manifest.Cluster, want ...string) {
			quick(m) // as created
			require.ElementsMatch(t, want, does(mustPlan(t, m, a)))
			mustApply(t, m, a)
			requireNoChange(t, m, a)
		}
		const md = "machine/three-zones-md-0/"
		step(withWorkers(t, threeZones, 5), "create "+md+"3", "create "+md+"4")
		step(withWorkers(t, threeZones, 2), "delete retired/"+md+"2", "delete retired/"+md+"3", "delete retired/"+md+"4")
		gone := load(t, threeZones, nil)
		gone.Deployments = nil
		step(gone, "delete retired/"+md+"0", "delete retired/"+md+"1")
		mustDelete(t, gone, a)
		require.Empty(t, a.Inventory())
	})
}

func TestBastionOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := quick(load(t, "../../configs/bastion.yaml", nil))
		a := account(m, lag)
		mustApply(t, m, a)
		m.Infra.Spec.Bastion.Enabled = false
		require.ElementsMatch(t, []string{
			"update security-group-rules/controlplane", "update security-group-rules/node", "delete retired/bastion",
		}, does(mustPlan(t, m, a)))
		mustApply(t, m, a)
		requireNoChange(t, m, a)
		mustDelete(t, m, a)
		require.Empty(t, a.Inventory())
	})
}

// The bastion has the account's default settings for the instance metadata service, because
// CAPA has no fields for them.
func TestBastionKeepsMetadataDefaults(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := quick(load(t, "../../configs/bastion.yaml", nil))
		a := account(m, lag)
		a.Edit(func(s *awssim.State) { s.EC2.MetadataTokens = "required" })
		mustApply(t, m, a)
		requireNoChange(t, m, a)
		a.Edit(func(s *awssim.State) {
			tokens := map[string]string{}
			for _, i := range s.EC2.Instances {
				tokens[i.Tags["sigs.k8s.io/cluster-api-provider-aws/role"]] = i.Metadata.Tokens
			}
			require.Equal(t, map[string]string{"bastion": "required", "control-plane": "optional", "node": "optional"}, tokens)
		})
	})
}

// Machines of different deployments have their own tags, also if all else is the same.
func TestDeploymentsDoNotShareTags(t *testing.T) {
	m := loadQuick(t, quickstart)
	one := &m.Deployments[0]
	one.Object.Spec.Replicas = new(int32(7))
	one.Template.Spec.Template.Spec.CloudInit.InsecureSkipSecretsManager = true
	two := *one
	two.Object, two.Template = one.Object.DeepCopy(), one.Template.DeepCopy()
	two.Object.Name += "-b"
	one.Template.Spec.Template.Spec.AdditionalTags = map[string]string{"owner": "team-a"}
	two.Template.Spec.Template.Spec.AdditionalTags = map[string]string{"owner": "team-b"}
	m.Deployments = append(m.Deployments, two)
	synctest.Test(t, func(t *testing.T) {
		a := account(m, lag)
		mustApply(t, m, a)
		requireNoChange(t, m, a)
		owners := map[string]int{}
		a.Edit(func(s *awssim.State) {
			for _, i := range s.EC2.Instances {
				group, _, _ := strings.Cut(strings.TrimPrefix(i.Tags["clusterawsadm/resource"], "machine/"), "/")
				owners[group+" "+i.Tags["owner"]]++
			}
			for _, v := range s.EC2.Volumes {
				owners["volume "+v.Tags["owner"]]++
			}
		})
		require.Equal(t, map[string]int{"quickstart-control-plane ": 1, "quickstart-md-0 team-a": 7, "quickstart-md-0-b team-b": 7, "volume ": 1, "volume team-a": 7, "volume team-b": 7}, owners)
	})
}
