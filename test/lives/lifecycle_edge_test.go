package lives_test

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	infrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/api/v1beta2"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/internal/enginetest"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// A deletion by name alone leaves the account as it was before, including tags.
func TestLifecycleByName(t *testing.T) {
	enginetest.Each(t, awssim.Options{Lag: enginetest.Lag}, func(t *testing.T, a *awssim.AWS, m *manifest.Cluster) {
		before := a.Detailed()
		enginetest.MustApply(t, m, a)
		_, err := enginetest.ByName(m.Name, a).Delete(t.Context(), cluster.Options{Observe: enginetest.Tell(t)})
		require.NoError(t, err)
		require.Equal(t, before, a.Detailed())
	})
}

// Pages of two items make no difference.
func TestSmallPages(t *testing.T) {
	enginetest.Each(t, awssim.Options{Page: 2}, func(t *testing.T, a *awssim.AWS, m *manifest.Cluster) {
		before := a.Detailed()
		enginetest.MustApply(t, m, a)
		enginetest.RequireNoChange(t, m, a)
		enginetest.MustDelete(t, m, a)
		require.Equal(t, before, a.Detailed())
	})
}

// Two clusters do not affect each other if the name of one begins with the name of the
// other, and they are in different namespaces.
func TestTwoClusters(t *testing.T) {
	one := enginetest.Rewritten(t, enginetest.Quickstart, "quickstart", "demo")
	two := enginetest.Rewritten(t, enginetest.Quickstart, "quickstart", "demo-2", "metadata:\n", "metadata:\n  namespace: other\n")
	for name, pair := range map[string][2]*manifest.Cluster{"longer": {one, two}, "shorter": {two, one}} {
		for how, remove := range map[string]func(*testing.T, *manifest.Cluster, *awssim.AWS){
			"manifest": func(t *testing.T, m *manifest.Cluster, a *awssim.AWS) { t.Helper(); enginetest.MustDelete(t, m, a) },
			"name": func(t *testing.T, m *manifest.Cluster, a *awssim.AWS) {
				t.Helper()
				_, err := enginetest.ByName(m.Name, a).Delete(t.Context(), cluster.Options{})
				require.NoError(t, err)
			},
		} {
			t.Run(name+" by "+how, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					first, second := pair[0], pair[1]
					a := enginetest.Account(first, 0)
					a.Edit(func(s *awssim.State) { s.EC2.Limits.Addresses = 10 })
					enginetest.MustApply(t, first, a)
					time.Sleep(enginetest.Booting) // the machines have booted, and deleted their boot data
					alone := a.Detailed()
					enginetest.MustApply(t, second, a)
					enginetest.RequireNoChange(t, first, a)
					enginetest.RequireNoChange(t, second, a)
					require.Subset(t, a.Detailed(), alone)
					remove(t, second, a)
					require.Equal(t, alone, a.Detailed())
					enginetest.RequireNoChange(t, first, a)
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
		one, two := enginetest.Quick(
			enginetest.Load(t, enginetest.Quickstart, nil),
		), enginetest.Rewritten(
			t,
			enginetest.Quickstart,
			"metadata:\n",
			"metadata:\n  namespace: other\n",
		)
		a := enginetest.Account(one, 0)
		enginetest.MustApply(t, one, a)
		time.Sleep(enginetest.Booting)
		standing, calls := a.Detailed(), len(a.Calls())
		for _, do := range []func() error{
			func() error {
				_, err := enginetest.Open(two, a.Process()).Apply(t.Context(), cluster.Options{})
				return err
			},
			func() error {
				_, err := enginetest.Open(two, a.Process()).Delete(t.Context(), cluster.Options{})
				return err
			},
		} {
			err := do()
			require.ErrorAs(t, err, new(*plan.RefusedError))
			require.ErrorContains(t, err, "namespace default")
		}
		require.Empty(t, enginetest.Writes(enginetest.Since(a, calls)))
		require.Equal(t, enginetest.Unnumbered(standing), enginetest.Unnumbered(a.Detailed()))
	})
}

// The name of a load balancer is shortened to the limit of AWS.
func TestLongName(t *testing.T) {
	for _, file := range []string{enginetest.Quickstart, "classic-elb.yaml"} {
		t.Run(enginetest.Name(file), func(t *testing.T) {
			m := enginetest.Rewritten(t, file, enginetest.Name(file), "a-name-that-is-longer-than-a-load-balancer-takes")
			synctest.Test(t, func(t *testing.T) {
				a := enginetest.Account(m, 0)
				enginetest.MustApply(t, m, a)
				enginetest.RequireNoChange(t, m, a)
				at := slices.IndexFunc(a.Inventory(), func(l string) bool { return strings.Contains(l, "LoadBalancer ") })
				require.Regexp(t, `LoadBalancer [a-z0-9]{28}-k8s$`, a.Inventory()[at])
				enginetest.MustDelete(t, m, a)
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
		m := enginetest.Rewritten(t, enginetest.Quickstart, balancer, subnets("e", "a"))
		synctest.Test(t, func(t *testing.T) {
			a := enginetest.Account(m, 0)
			enginetest.MustApply(t, m, a)
			a.Edit(func(s *awssim.State) {
				for _, i := range s.EC2.Instances {
					require.Equal(t, "us-east-1a", i.Zone)
				}
			})
			enginetest.MustDelete(t, m, a)
		})
	})
	for what, m := range map[string]*manifest.Cluster{
		"us-east-1a, us-east-1b, us-east-1c, us-east-1d, us-east-1f":                        enginetest.Rewritten(t, enginetest.Quickstart, balancer, subnets("e")),
		"us-east-1e, but in us-east-1a":                                                     enginetest.Rewritten(t, enginetest.Quickstart, balancer, subnets("a", "e"), "      version: v1.34.2\n      bootstrap:", "      version: v1.34.2\n      failureDomain: us-east-1e\n      bootstrap:"),
		"no private subnet in us-east-1f":                                                   enginetest.Rewritten(t, enginetest.Quickstart, "      version: v1.34.2\n      bootstrap:", "      version: v1.34.2\n      failureDomain: us-east-1f\n      bootstrap:"),
		"t9.large is not offered in any zone of the cluster, nor in any other of us-east-1": enginetest.Rewritten(t, enginetest.Quickstart, "t3.large", "t9.large"),
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := enginetest.Account(m, 0)
				_, err := enginetest.Open(m, a.Process()).Apply(t.Context(), cluster.Options{})
				require.ErrorAs(t, err, new(*plan.RefusedError))
				require.ErrorContains(t, err, what)
				require.Empty(t, enginetest.Writes(a.Calls()))
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
		a := enginetest.Account(enginetest.Load(t, enginetest.ThreeZones, nil), enginetest.Lag)
		enginetest.MustApply(t, enginetest.Quick(enginetest.WithWorkers(t, enginetest.ThreeZones, 3)), a)
		step := func(m *manifest.Cluster, want ...string) {
			enginetest.Quick(m) // as created
			require.ElementsMatch(t, want, does(enginetest.MustPlan(t, m, a)))
			enginetest.MustApply(t, m, a)
			enginetest.RequireNoChange(t, m, a)
		}
		const md = "machine/three-zones-md-0/"
		step(enginetest.WithWorkers(t, enginetest.ThreeZones, 5), "create "+md+"3", "create "+md+"4")
		step(enginetest.WithWorkers(t, enginetest.ThreeZones, 2), "delete retired/"+md+"2", "delete retired/"+md+"3", "delete retired/"+md+"4")
		gone := enginetest.Load(t, enginetest.ThreeZones, nil)
		gone.Deployments = nil
		step(gone, "delete retired/"+md+"0", "delete retired/"+md+"1", "delete boot-data/unused") // the last one is the recorded name of its secret
		enginetest.MustDelete(t, gone, a)
		require.Empty(t, a.Inventory())
	})
}

func TestBastionOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := enginetest.Quick(enginetest.Load(t, "bastion.yaml", nil))
		a := enginetest.Account(m, enginetest.Lag)
		enginetest.MustApply(t, m, a)
		m.Infra.Spec.Bastion.Enabled = false
		require.ElementsMatch(t, []string{
			"update security-group-rules/controlplane", "update security-group-rules/node", "delete retired/bastion", "delete security-group/bastion",
		}, does(enginetest.MustPlan(t, m, a)))
		enginetest.MustApply(t, m, a)
		enginetest.RequireNoChange(t, m, a)
		enginetest.MustDelete(t, m, a)
		require.Empty(t, a.Inventory())
	})
}

// The bastion has the account's default settings for the instance metadata service, because
// CAPA has no fields for them.
func TestBastionKeepsMetadataDefaults(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := enginetest.Quick(enginetest.Load(t, "bastion.yaml", nil))
		for _, template := range []*infrav1.AWSMachineTemplate{m.ControlPlane.Template, m.Deployments[0].Template} {
			template.Spec.Template.Spec.InstanceMetadataOptions.HTTPTokens = infrav1.HTTPTokensStateOptional
		}
		a := enginetest.Account(m, enginetest.Lag)
		a.Edit(func(s *awssim.State) { s.EC2.MetadataTokens = "required" })
		enginetest.MustApply(t, m, a)
		enginetest.RequireNoChange(t, m, a)
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
	m := enginetest.LoadQuick(t, enginetest.Quickstart)
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
		a := enginetest.Account(m, enginetest.Lag)
		enginetest.MustApply(t, m, a)
		enginetest.RequireNoChange(t, m, a)
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
		require.Equal(
			t,
			map[string]int{
				"quickstart-control-plane ": 1,
				"quickstart-md-0 team-a":    7,
				"quickstart-md-0-b team-b":  7,
				"volume ":                   1,
				"volume team-a":             7,
				"volume team-b":             7,
			},
			owners,
		)
	})
}
