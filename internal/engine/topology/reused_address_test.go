package topology_test

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/run"
	"github.com/clusterawsadm/clusterawsadm/internal/enginetest"
	"github.com/clusterawsadm/clusterawsadm/internal/kubesim"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// reusing is a cluster in which a machine is lost, and AWS gives its address to another one.
type reusing struct {
	t    *testing.T
	a    *awssim.AWS
	name string // of the Node of the lost machine
}

// lose terminates a machine; the next one in its subnet gets its address.
func (r *reusing) lose(machine string) {
	r.a.Edit(func(s *awssim.State) {
		i := enginetest.MachineOf(s, machine)
		r.name = i.Boot.Node
	})
	enginetest.Terminate(r.a, machine, time.Second)
	time.Sleep(2 * time.Minute)
	r.a.Inventory()
	r.a.Edit(func(s *awssim.State) {
		for _, subnet := range s.EC2.Subnets {
			subnet.Next = 0
		}
	})
}

// holder returns the machine that has the address of the lost one.
func (r *reusing) holder() (id, resource string) {
	r.a.Edit(func(s *awssim.State) {
		for _, i := range s.EC2.Instances {
			for _, n := range s.EC2.Interfaces {
				if i.Terminating.IsZero() && n.Owner == i.ID && strings.HasPrefix(r.name, "ip-"+strings.ReplaceAll(n.PrivateIP, ".", "-")+".") {
					id, resource = i.ID, i.Tags["clusterawsadm/resource"]
				}
			}
		}
	})
	return id, resource
}

// requireOwnNodes requires that every Node is that of a machine that runs, and has its role.
func (r *reusing) requireOwnNodes() {
	r.t.Helper()
	type machine struct {
		id      string
		control bool
	}
	of := map[string]machine{}
	r.a.Edit(func(s *awssim.State) {
		for _, i := range s.EC2.Instances {
			if i.Terminating.IsZero() {
				of[i.Boot.Node] = machine{i.ID, i.Boot.ControlPlane}
			}
		}
	})
	enginetest.Inside(r.a, func(c *kubesim.Cluster) {
		c.Settle(time.Now())
		for _, o := range c.All("Node") {
			id, name := kubesim.Value(o, "spec", "providerID"), kubesim.Value(o, "metadata", "name")
			assert.True(r.t, id == "" || path.Base(id) == of[name].id, "Node %s of %s has the provider ID %s", name, of[name].id, id)
			marks, _ := o["metadata"].(kubesim.Object)["labels"].(kubesim.Object)
			_, control := marks["node-role.kubernetes.io/control-plane"]
			assert.Equal(r.t, of[name].control, control, "Node %s of %s", name, of[name].id)
		}
	})
}

// The replacement of a lost machine of the control plane gets its address, and so the name of its member
// and of its Node. kubeadm join adds no member, and etcd does not start without its data. The next run
// removes the member, the Node and the replacement, and launches another one.
func TestReplacementWithTheAddressOfALostMember(t *testing.T) {
	for _, ccm := range []bool{true, false} {
		for _, waits := range []time.Duration{20 * time.Second, 3 * time.Minute, time.Hour} {
			t.Run(fmt.Sprintf("ccm=%v/%s", ccm, waits), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					m := enginetest.Sized(t, 3, 1)
					r := &reusing{t: t, a: enginetest.Alive(t, m)}
					if !ccm {
						enginetest.RemoveCloudControllerManager(r.a)
					}
					r.lose("machine/three-zones-control-plane/1")
					enginetest.MustApply(t, m, r.a) // it uses no API server
					time.Sleep(waits)
					r.a.Inventory()
					_, who := r.holder()
					require.Contains(t, who, "-control-plane/", "the address was not given again")
					r.heals(3, 1, !ccm)
				})
			})
		}
	}
}

// heals requires that a run heals the cluster.
func (r *reusing) heals(control, workers int32, local bool) {
	r.t.Helper()
	target := enginetest.RollingTarget(r.a.Process())
	if local { // no cloud controller manager completes Nodes
		target.Wait = plan.APIServer
	}
	m := enginetest.Sized(r.t, control, workers)
	_, err := run.Open(m, target).Apply(r.t.Context(), cluster.Options{Observe: (&enginetest.Witness{T: r.t, A: r.a}).Observe})
	if end := new(plan.TimeoutError); errors.As(err, &end) {
		r.t.Log(strings.Join(end.Findings, "\n"))
	}
	require.NoError(r.t, err)
	time.Sleep(2 * time.Minute)
	enginetest.RequireHealthy(r.t, r.a, int(control), int(workers))
	r.requireOwnNodes()
	p, err := run.Open(m, target).Plan(r.t.Context())
	require.NoError(r.t, err)
	require.True(r.t, p.Empty(), "%v", enginetest.Steps(p))
}

// The run that finds the loss launches the replacement: the member and the Node go before.
func TestMemberGoesBeforeItsAddressIsGivenAgain(t *testing.T) {
	for _, ccm := range []bool{true, false} {
		t.Run(fmt.Sprint("ccm=", ccm), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := &reusing{t: t, a: enginetest.Alive(t, enginetest.Sized(t, 3, 1))}
				if !ccm {
					enginetest.RemoveCloudControllerManager(r.a)
				}
				r.lose("machine/three-zones-control-plane/1")
				r.heals(3, 1, !ccm)
				_, who := r.holder()
				require.Contains(t, who, "-control-plane/", "the address was not given again")
			})
		})
	}
}

// A worker gets the address of a lost machine of the control plane, and so the name of its Node, which
// keeps the provider ID, label and taint of the lost one.
func TestWorkerWithTheAddressOfALostMember(t *testing.T) {
	for _, ccm := range []bool{true, false} {
		for _, waits := range []time.Duration{time.Second, 5 * time.Minute} {
			t.Run(fmt.Sprintf("ccm=%v/%s", ccm, waits), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					r := &reusing{t: t, a: enginetest.Alive(t, enginetest.Sized(t, 3, 1))}
					if !ccm {
						enginetest.RemoveCloudControllerManager(r.a)
					}
					r.lose(sharesSubnetWithWorkers)
					enginetest.MustApply(t, enginetest.Sized(t, 2, 4), r.a) // it launches workers only
					time.Sleep(waits)
					r.a.Inventory()
					_, who := r.holder()
					require.Contains(t, who, "-md-", "the address was not given to a worker")
					r.heals(3, 4, !ccm)
				})
			})
		}
	}
}

// A worker gets the address of a lost worker, and so its Node with the provider ID of the lost one.
func TestWorkerWithTheAddressOfALostWorker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &reusing{t: t, a: enginetest.Alive(t, enginetest.Sized(t, 3, 2))}
		enginetest.RemoveCloudControllerManager(r.a)
		r.lose("machine/three-zones-md-0/1")
		enginetest.MustApply(t, enginetest.Sized(t, 3, 2), r.a)
		time.Sleep(5 * time.Minute)
		_, who := r.holder()
		require.Contains(t, who, "-md-", "the address was not given to a worker")
		r.heals(3, 2, true)
	})
}

const sharesSubnetWithWorkers = "machine/three-zones-control-plane/0"

// The run that heals is killed at some call; the next one heals.
func TestReusedAddressMayDie(t *testing.T) {
	for _, worker := range []bool{false, true} {
		for _, ccm := range []bool{true, false} {
			for n := enginetest.First(49, 0); n < 400; n += enginetest.Stride(49) {
				t.Run(fmt.Sprintf("worker=%v/ccm=%v/%d", worker, ccm, n), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						control, workers := int32(3), int32(1)
						r := &reusing{t: t, a: enginetest.Alive(t, enginetest.Sized(t, 3, 1))}
						if !ccm {
							enginetest.RemoveCloudControllerManager(r.a)
						}
						r.lose(sharesSubnetWithWorkers)
						if worker {
							control, workers = 2, 4
						}
						enginetest.MustApply(t, enginetest.Sized(t, control, workers), r.a)
						time.Sleep(5 * time.Minute)
						r.a.Inventory()
						ctx, cancel := context.WithCancel(t.Context())
						defer cancel()
						p := r.a.Process()
						p.Killed = cancel
						p.Fault = func(call int, _, _ string) awssim.Fault {
							if call == n {
								return awssim.KillAfter
							}
							return awssim.None
						}
						target := enginetest.RollingTarget(p)
						if !ccm {
							target.Wait = plan.APIServer
						}
						_, _ = run.Open(enginetest.Sized(t, 3, workers), target).Apply(ctx, cluster.Options{Observe: (&enginetest.Witness{T: t, A: r.a}).Observe})
						r.heals(3, workers, !ccm)
					})
				})
			}
		}
	}
}

// Somebody deletes the Node of a healthy machine of the control plane, and the API server deletes the pods
// on it. The member has neither Node nor pod, as that of a lost machine, but its etcd answers: it stays.
func TestMemberWithoutANodeStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := enginetest.Sized(t, 3, 1)
		a := enginetest.Alive(t, m)
		var name string
		a.Edit(func(s *awssim.State) { name = enginetest.MachineOf(s, "machine/three-zones-control-plane/1").Boot.Node })
		enginetest.Inside(a, func(c *kubesim.Cluster) {
			for at, o := range c.Objects {
				if at == "/api/v1/nodes/"+name || kubesim.Value(o, "spec", "nodeName") == name {
					delete(c.Objects, at)
				}
			}
		})
		enginetest.Terminate(a, "machine/three-zones-control-plane/2", time.Second) // the run compares the members with the machines
		time.Sleep(time.Minute)
		_, err := enginetest.Rolling(m, a.Process()).Apply(t.Context(), cluster.Options{Observe: (&enginetest.Witness{T: t, A: a}).Observe})
		require.ErrorContains(t, err, "etcd on "+name+" to answer")
		enginetest.Inside(a, func(c *kubesim.Cluster) {
			require.Len(t, c.Members, 2)
			assert.True(t, slices.ContainsFunc(c.Members, func(x *kubesim.Member) bool { return x.Name == name }))
		})
	})
}

// A cluster with one machine of the control plane whose Node has the provider ID of another one, as after
// its volume was attached to a new instance with the same address: the run does not replace the only member.
func TestOnlyMemberWithAReusedAddressStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := enginetest.Sized(t, 1, 1)
		a := enginetest.Alive(t, m)
		had := enginetest.MachinesOf(a, "-control-plane/")
		enginetest.Inside(a, func(c *kubesim.Cluster) {
			for _, o := range c.All("Node") {
				if strings.HasSuffix(kubesim.Value(o, "spec", "providerID"), had[0]) {
					o["spec"].(kubesim.Object)["providerID"] = "aws:///us-east-1a/i-00000000000000001"
				}
			}
		})
		var said []string
		target := enginetest.RollingTarget(a.Process())
		target.Warn = func(text string) { said = append(said, text) }
		_, err := run.Open(m, target).Apply(t.Context(), cluster.Options{})
		require.Error(t, err)
		assert.Contains(t, strings.Join(said, "\n"), had[0]+": it has the address of i-00000000000000001, which does not exist any more")
		assert.Equal(t, had, enginetest.MachinesOf(a, "-control-plane/"))
		enginetest.Inside(a, func(c *kubesim.Cluster) { require.Len(t, c.Members, 1) })
	})
}
