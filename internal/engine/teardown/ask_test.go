package teardown_test

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/run"
	"github.com/clusterawsadm/clusterawsadm/internal/enginetest"
	"github.com/clusterawsadm/clusterawsadm/internal/kubesim"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// asking are the options of a deletion, by manifest or by name, that first deletes the
// objects in the cluster.
func asking(t *testing.T, m *manifest.Cluster, p *awssim.Process, byName bool, warned *[]string) *run.Cluster {
	t.Helper()
	target := cluster.Target{Config: p.Config(), Owner: "test", Transport: enginetest.Transport(p), AskCluster: true, Warn: func(text string) {
		t.Log(text)
		if warned != nil {
			*warned = append(*warned, text)
		}
	}}
	if byName {
		target.Config.Region = m.Region
		return run.OpenByName(m.Name, target)
	}
	return run.Open(m, target)
}

// withoutArchive lists the resources of the account, and requires that one of them is the
// volume of the claim "archive", whose reclaim policy is Retain. It is left out.
func withoutArchive(t *testing.T, a *awssim.AWS) []string {
	t.Helper()
	isArchive := func(line string) bool {
		return strings.HasPrefix(line, "Volume ") && strings.Contains(line, "kubernetes.io/created-for/pvc/name=archive")
	}
	all := a.Detailed()
	require.Len(t, slices.DeleteFunc(slices.Clone(all), func(l string) bool { return !isArchive(l) }), 1)
	all = slices.DeleteFunc(all, isArchive)
	if len(all) == 0 {
		return nil
	}
	return all
}

// works adds a workload to a cluster: two Services with load balancers, two databases
// with a claim each, and one claim without a pod.
func works(t *testing.T, a *awssim.AWS) {
	t.Helper()
	time.Sleep(enginetest.Settled)
	enginetest.AddNetwork(a)
	put(a, kubesim.Object{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": kubesim.Object{"name": "ebs-csi-controller", "namespace": "kube-system"}})
	for _, name := range []string{"web", "api"} {
		put(a, kubesim.Object{
			"apiVersion": "v1", "kind": "Service", "metadata": kubesim.Object{"name": name, "namespace": "default"}, "spec": kubesim.Object{"type": "LoadBalancer"},
		})
	}
	put(a, kubesim.Object{
		"apiVersion": "v1", "kind": "Service", "metadata": kubesim.Object{"name": "tunnel", "namespace": "default"},
		"spec": kubesim.Object{"type": "LoadBalancer", "loadBalancerClass": "tailscale"},
	})
	const driver = "ebs.csi.aws.com"
	put(a, kubesim.Object{
		"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "provisioner": driver, "metadata": kubesim.Object{"name": "keep"}, "reclaimPolicy": "Retain",
	})
	put(a, kubesim.Object{
		"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "provisioner": driver,
		"metadata": kubesim.Object{"name": "gp3", "annotations": kubesim.Object{"storageclass.kubernetes.io/is-default-class": "true"}},
	})
	time.Sleep(time.Minute) // Nodes become ready; otherwise nothing is scheduled
	put(a, kubesim.Object{
		"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": kubesim.Object{"name": "db", "namespace": "default"},
		"spec": kubesim.Object{"replicas": 2.0, "volumeClaimTemplates": []any{kubesim.Object{"metadata": kubesim.Object{"name": "data"}, "spec": kubesim.Object{}}}},
	})
	for name, class := range map[string]string{"scratch": "gp3", "archive": "keep"} {
		put(a, kubesim.Object{
			"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": kubesim.Object{"name": name, "namespace": "default"},
			"spec": kubesim.Object{"storageClassName": class},
		})
	}
	for range 6 {
		time.Sleep(10 * time.Second)
		a.Inventory() // a call, so that the simulation advances
	}
	inventory := strings.Join(a.Inventory(), "\n")
	require.Equal(t, 2, strings.Count(inventory, "SecurityGroup k8s-elb-"), inventory)
	a.Edit(func(s *awssim.State) {
		require.Len(t, volumesIn(s), 4)
		attached := 0
		for _, v := range volumesIn(s) {
			if v.Instance != "" {
				attached++
			}
		}
		require.Equal(t, 2, attached)
	})
}

func volumesIn(s *awssim.State) (out []*awssim.Volume) {
	for _, v := range s.EC2.Volumes {
		if v.Tags["ebs.csi.aws.com/cluster"] == "true" {
			out = append(out, v)
		}
	}
	return out
}

func put(a *awssim.AWS, o kubesim.Object) {
	a.Edit(func(s *awssim.State) {
		for _, c := range s.Kubernetes {
			c.Put(time.Now(), o)
		}
	})
}

// stop removes controllers of the cluster.
func stop(a *awssim.AWS, name string) {
	a.Edit(func(s *awssim.State) {
		for _, c := range s.Kubernetes {
			for _, kind := range []string{"Deployment", "DaemonSet"} {
				for _, o := range c.All(kind) {
					if kubesim.Value(o, "metadata", "name") == name {
						c.Drop(o)
					}
				}
			}
		}
	})
}

// asked returns the objects of the cluster that the plan deletes.
func asked(p plan.Plan) (out []string) {
	for _, s := range p.Steps {
		if s.Resource.Kind() == "in-cluster" {
			out = append(out, s.CloudID)
		}
	}
	return out
}

// TestControllersCleanUp deletes a cluster: the objects with AWS resources are deleted
// before everything else.
func TestControllersCleanUp(t *testing.T) {
	for _, c := range []struct {
		name, file string
		byName     bool
	}{{"by manifest", enginetest.Quickstart, false}, {"by name", enginetest.Quickstart, true}, {"EKS", enginetest.EKSAddons, false}, {"EKS by name", enginetest.EKSAddons, true}} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := enginetest.LoadQuick(t, c.file)
				if m.EKS != nil {
					m.EKS.ControlPlane.Spec.Logging = nil // EKS keeps logs, and a deletion warns of them
				}
				a := enginetest.Prepared(t, m)
				before := a.Detailed()
				enginetest.MustApply(t, m, a)
				works(t, a)
				var warned []string
				p, err := asking(t, m, a.Process(), c.byName, &warned).PlanDelete(t.Context(), cluster.Options{})
				require.NoError(t, err)
				require.ElementsMatch(t, []string{
					"Service default/api, Service default/web",
					"PersistentVolumeClaim default/data-db-0, PersistentVolumeClaim default/data-db-1, PersistentVolumeClaim default/scratch",
				}, asked(p))
				began, from := time.Now(), len(a.Calls())
				gone := false
				_, err = asking(t, m, a.Process(), c.byName, &warned).Delete(t.Context(), cluster.Options{Observe: func(e plan.Event) {
					if f := enginetest.Tell(t); f != nil {
						f(e)
					}
					if e.Resource.Kind() != "in-cluster" && e.What == plan.Deleting && !gone {
						gone = true
						a.Edit(func(s *awssim.State) {
							assert.Len(t, volumesIn(s), 1, "only what is retained is there when the rest goes")
						})
						for _, l := range a.Inventory() {
							assert.NotContains(t, l, "k8s-elb-")
						}
					}
				}})
				require.NoError(t, err)
				require.True(t, gone)
				require.Empty(t, warned)
				require.Equal(t, before, withoutArchive(t, a))
				t.Logf("%s, %d calls", time.Since(began), len(a.Calls())-from)
			})
		})
	}
}

// TestAPIServerUnavailable deletes a cluster whose API server is unreachable, or denies
// access.
func TestAPIServerUnavailable(t *testing.T) {
	for _, c := range []struct {
		name, warning string
		spoil         func(*awssim.State)
		silent        bool
	}{
		{"dead", "connection refused", func(s *awssim.State) {
			for _, g := range s.ELB.TargetGroups {
				g.Targets = nil
			}
			for _, b := range s.ELB.Classic {
				clear(b.Instances)
			}
		}, false},
		{"no keys", "the keys of the cluster are not in this account", func(s *awssim.State) {
			for name := range s.SSM.Parameters {
				if strings.Contains(name, "/pki/") {
					delete(s.SSM.Parameters, name)
				}
			}
		}, false},
		{"private", "i/o timeout", func(s *awssim.State) {
			for _, b := range s.ELB.LoadBalancers {
				b.Scheme = "internal"
			}
			for _, b := range s.ELB.Classic {
				b.Scheme = "internal"
			}
		}, false},
		{"no control plane", "", func(s *awssim.State) {
			for _, i := range s.EC2.Instances {
				if i.Tags["sigs.k8s.io/cluster-api-provider-aws/role"] == "control-plane" {
					i.Terminating, i.Terminated = time.Now(), time.Now()
				}
			}
		}, true},
	} {
		for _, byName := range []bool{false, true} {
			t.Run(c.name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					m := enginetest.LoadQuick(t, enginetest.Quickstart)
					a := enginetest.Prepared(t, m)
					before := a.Inventory()
					enginetest.MustApply(t, m, a)
					works(t, a)
					a.Edit(c.spoil)
					time.Sleep(enginetest.Lag)
					var warned []string
					began := time.Now()
					p, err := asking(t, m, a.Process(), byName, &warned).PlanDelete(t.Context(), cluster.Options{})
					require.NoError(t, err)
					require.Empty(t, asked(p))
					require.LessOrEqual(t, time.Since(began), 12*time.Second)
					if c.silent {
						require.Empty(t, warned)
						require.Less(t, time.Since(began), time.Second)
					} else {
						require.Len(t, warned, 1)
						require.Contains(t, warned[0], c.warning)
					}
					require.Equal(t, 4, p.CountKind("volume", plan.Keep), "without an answer, the reclaim policies are unknown")
					_, err = asking(t, m, a.Process(), byName, nil).Delete(t.Context(), cluster.Options{})
					require.NoError(t, err)
					a.Edit(func(s *awssim.State) { require.Len(t, volumesIn(s), 4) })
					_, err = asking(t, m, a.Process(), byName, nil).Delete(t.Context(), enginetest.Everything)
					require.NoError(t, err)
					require.Equal(t, before, a.Inventory())
				})
			})
		}
	}
}

// TestControllersDoNotRun waits for controllers that do not run, until the time limit, and
// then deletes their AWS resources.
func TestControllersDoNotRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := enginetest.LoadQuick(t, enginetest.Quickstart)
		a := enginetest.Prepared(t, m)
		before := a.Detailed()
		enginetest.MustApply(t, m, a)
		works(t, a)
		stop(a, "aws-cloud-controller-manager")
		stop(a, "ebs-csi-controller")
		var warned []string
		var ended time.Duration
		began := time.Now()
		_, err := asking(t, m, a.Process(), false, &warned).Delete(t.Context(), cluster.Options{Observe: func(e plan.Event) {
			if e.Resource.Kind() == "machine" && e.What == plan.Deleting && ended == 0 {
				ended = time.Since(began)
			}
		}})
		require.NoError(t, err)
		require.Len(t, warned, 2)
		require.Contains(t, strings.Join(warned, "\n"), "Service default/api, Service default/web")
		require.Contains(t, strings.Join(warned, "\n"), "PersistentVolumeClaim default/data-db-0")
		require.GreaterOrEqual(t, ended, 5*time.Minute)
		require.Less(t, ended, 6*time.Minute)
		require.Equal(t, before, withoutArchive(t, a))
	})
}

// TestAskClusterKeepsVolumes keeps claims.
func TestAskClusterKeepsVolumes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := enginetest.LoadQuick(t, enginetest.Quickstart)
		a := enginetest.Prepared(t, m)
		enginetest.MustApply(t, m, a)
		works(t, a)
		o := cluster.Options{Volumes: cluster.KeepVolumes}
		p, err := asking(t, m, a.Process(), true, nil).PlanDelete(t.Context(), o)
		require.NoError(t, err)
		require.Equal(t, []string{"Service default/api, Service default/web"}, asked(p))
		from := len(a.Calls())
		_, err = asking(t, m, a.Process(), true, nil).Delete(t.Context(), o)
		require.NoError(t, err)
		for _, c := range enginetest.Since(a, from) {
			require.NotContains(t, c.Operation, "/persistentvolumeclaims")
			require.NotContains(t, c.Operation, "/pods")
		}
		a.Edit(func(s *awssim.State) { require.Len(t, volumesIn(s), 4) })
	})
}

// TestWithoutAskCluster: without AskCluster, a deletion does not call the API server.
func TestWithoutAskCluster(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := enginetest.LoadQuick(t, enginetest.Quickstart)
		a := enginetest.Prepared(t, m)
		enginetest.MustApply(t, m, a)
		time.Sleep(enginetest.Settled)
		from := len(a.Calls())
		enginetest.MustDelete(t, m, a)
		for _, c := range enginetest.Since(a, from) {
			require.NotEqual(t, "Kubernetes", c.Service)
		}
	})
}

// TestAskClusterCalls compares the AWS calls of deletions with and without AskCluster. If
// only the name is known, the run has to find the API server first, with two calls. How
// often a deletion is tried while the resource is in use, and instances and network interfaces are listed
// until they are deleted, differs from run to run.
func TestAskClusterCalls(t *testing.T) {
	for byName, more := range map[bool]int{false: 0, true: 2} {
		synctest.Test(t, func(t *testing.T) {
			m := enginetest.LoadQuick(t, enginetest.Quickstart)
			a := enginetest.Prepared(t, m)
			cost := func(ask bool) int {
				enginetest.MustApply(t, m, a)
				time.Sleep(enginetest.Settled)
				from := len(a.Calls())
				c := asking(t, m, a.Process(), byName, nil)
				if !ask {
					c = enginetest.Open(m, a.Process())
					if byName {
						c = run.OpenByName(m.Name, cluster.Target{Config: a.Config(), Owner: "test"})
					}
				}
				_, err := c.Delete(t.Context(), cluster.Options{})
				require.NoError(t, err)
				calls := slices.DeleteFunc(enginetest.Since(a, from), func(c awssim.Call) bool {
					return slices.Contains([]string{"Kubernetes", "SSM", "Secrets Manager"}, c.Service) // those of the lock depend on the time that it takes
				})
				n, ops := enginetest.Counted(calls)
				t.Logf("%d calls %v", n, ops)
				for op, times := range ops {
					if op == "DescribeInstances" || byName && (strings.HasPrefix(op, "Delete") || op == "DescribeNetworkInterfaces") {
						n -= times
					}
				}
				most := map[bool]int{false: 80, true: 54}[byName] // of which 5 ask whether something is protected
				if ask {
					most += more
				}
				require.LessOrEqual(t, n, most)
				return n
			}
			without, with := cost(false), cost(true)
			require.LessOrEqual(t, with, without+more)
		})
	}
}
