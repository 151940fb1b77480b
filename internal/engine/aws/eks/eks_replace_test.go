package eks_test

import (
	"context"
	"path"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	ekscontrolplanev1 "sigs.k8s.io/cluster-api-provider-aws/v2/controlplane/eks/api/v1beta2"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	ekssim "github.com/clusterawsadm/clusterawsadm/internal/awssim/eks"
	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/internal/enginetest"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// replacement is a part of an EKS cluster that a manifest replaces by one with another name.
type replacement struct {
	file    string
	replace func(*manifest.Cluster)
	// works returns the names of the parts of the kind that work.
	works func(*awssim.State) []string
	fails func(*awssim.State) // while it is called, nothing new of the kind works
	mend  func(*awssim.State)
	// denied is the call that is refused, where AWS has no other way to fail.
	denied string
}

// joinFails lets the machines fail that have not booted.
func joinFails(s *awssim.State) {
	for _, i := range s.EC2.Instances {
		if i.Boot == nil {
			i.JoinFails = 1
		}
	}
}

func replacements() map[string]replacement {
	faults := func(f ekssim.Faults) func(*awssim.State) {
		return func(s *awssim.State) { s.EKS.Faults = f }
	}
	noFaults := faults(ekssim.Faults{})
	const failed = "NodeCreationFailure: Instances failed to join the kubernetes cluster"
	nodes := func(ofPools bool) func(s *awssim.State) (names []string) {
		return func(s *awssim.State) (names []string) {
			for _, i := range s.EC2.Instances {
				group, isPool := i.Tags["aws:autoscaling:groupName"]
				if !isPool {
					group = path.Dir(i.Tags[cloud.ResourceTag])
				}
				if isPool == ofPools && i.Terminating.IsZero() && i.Boot != nil && !i.Boot.Joined.IsZero() && i.Boot.Failed == "" && !slices.Contains(names, group) {
					names = append(names, group)
				}
			}
			return names
		}
	}
	joins := func(s *awssim.State) { // those that have failed try again
		for _, i := range s.EC2.Instances {
			if i.JoinFails = 0; i.Boot != nil {
				i.Boot.Failed = ""
			}
		}
	}
	fargate := func(leaves, stays string) replacement {
		return replacement{
			file: "eks-fargate.yaml",
			replace: func(m *manifest.Cluster) {
				for _, f := range m.EKS.Fargate {
					if f.Spec.ProfileName == leaves {
						f.Spec.ProfileName = "other"
					}
				}
			},
			works: func(s *awssim.State) (names []string) {
				for name, f := range enginetest.Plane(s).Fargate {
					if f.CreateFailure == "" && f.Deleted.IsZero() && name != stays {
						names = append(names, name)
					}
				}
				return names
			},
			fails: faults(ekssim.Faults{CreateFargate: "AccessDenied: the role may not be used"}), mend: noFaults,
		}
	}
	return map[string]replacement{
		"node group": {
			file:    enginetest.EKSSmall,
			replace: func(m *manifest.Cluster) { m.Pools[0].Managed.Spec.EKSNodegroupName = "pool-b" },
			works: func(s *awssim.State) (names []string) {
				for name, g := range enginetest.Plane(s).NodeGroups {
					if g.Joined && g.CreateFailure == "" && g.Deleted.IsZero() && len(g.Instances) > 0 {
						names = append(names, name)
					}
				}
				return names
			},
			fails: faults(ekssim.Faults{CreateNodeGroup: failed}), mend: noFaults,
		},
		"Fargate profile":                fargate("default_eks-fargate-default", "default_eks-fargate-system"),
		"Fargate profile of kube-system": fargate("default_eks-fargate-system", "default_eks-fargate-default"),
		"add-on": {
			file: enginetest.EKSAddons,
			replace: func(m *manifest.Cluster) {
				(*m.EKS.ControlPlane.Spec.Addons)[3] = ekscontrolplanev1.Addon{Name: "metrics-server", Version: "v0.8.0-eksbuild.2"}
			},
			works: func(s *awssim.State) (names []string) {
				for _, name := range []string{"metrics-server", "eks-pod-identity-agent"} {
					if d := enginetest.Plane(s).Addons[name]; d != nil && d.Deleted.IsZero() && d.Failure == "" {
						names = append(names, name)
					}
				}
				return names
			},
			fails: faults(ekssim.Faults{CreateAddon: "AccessDenied: the service account may not be changed"}), mend: noFaults,
		},
		"access entry": {
			file: enginetest.EKSAddons,
			replace: func(m *manifest.Cluster) {
				e := &m.EKS.ControlPlane.Spec.AccessEntries[0]
				e.PrincipalARN = strings.Replace(e.PrincipalARN, "operators", "admins", 1)
			},
			works: func(s *awssim.State) (names []string) {
				for principal, e := range enginetest.Plane(s).Access {
					if strings.Contains(principal, ":role/") && slices.ContainsFunc(e.Policies, func(p ekssim.AccessPolicy) bool { return p.ARN == adminPolicy }) {
						names = append(names, principal)
					}
				}
				return names
			},
			denied: "AssociateAccessPolicy",
		},
		"machine pool": {
			file: "eks-machines.yaml",
			replace: func(m *manifest.Cluster) {
				i := slices.IndexFunc(m.Pools, func(p manifest.Pool) bool { return p.Scaling != nil })
				m.Pools[i].Scaling.Name = "pool-b"
			},
			works: nodes(true), fails: joinFails, mend: joins,
		},
		"deployment": {
			file: "eks-machines.yaml",
			replace: func(m *manifest.Cluster) {
				m.Deployments[0].Object.Name = "md-b"
			},
			works: nodes(false), fails: joinFails, mend: joins,
		},
	}
}

// What a manifest replaces works until what takes its place works: while the new one fails, in a run
// that is killed at any write, and in the next run, which completes it.
func TestPartsAreReplacedOneByOne(t *testing.T) {
	for name, r := range replacements() {
		t.Run(name, func(t *testing.T) {
			before, after := enginetest.Load(t, r.file, nil), enginetest.Load(t, r.file, nil)
			r.replace(after)
			for kill := range 40 {
				done := false
				synctest.Test(t, func(t *testing.T) {
					a := enginetest.Prepared(t, before)
					enginetest.Prepare(t, a, after) // the roles that it names
					_, err := enginetest.Rolling(before, a.Process()).Apply(t.Context(), cluster.Options{Observe: enginetest.Tell(t)})
					require.NoError(t, err)
					time.Sleep(enginetest.Booting)
					works := func() (names []string) {
						a.Edit(func(s *awssim.State) { names = r.works(s) })
						slices.Sort(names)
						return names
					}
					old := works()
					require.Len(t, old, 1)

					if kill == 0 {
						err := r.failing(t, a, after)
						require.Error(t, err)
						require.Equal(t, old, works(), "the new one fails: %v", err)
						if r.mend != nil {
							a.Edit(r.mend)
						}
					} else {
						calls := len(a.Calls())
						err := killedAtWrite(t, a, after, kill)
						done = err == nil
						require.NotEmpty(t, works(), "killed at write %d: %v", kill, enginetest.Writes(enginetest.Since(a, calls)))
					}
					watch := func(e plan.Event) {
						assert.NotEmpty(t, works(), "%s %s", e.What, e.Resource)
						if told := enginetest.Tell(t); told != nil {
							told(e)
						}
					}
					_, err = enginetest.Rolling(after, a.Process()).Apply(t.Context(), cluster.Options{Observe: watch})
					require.NoError(t, err)
					require.NotEqual(t, old, works())
					require.Len(t, works(), 1, "kill %d", kill)
					enginetest.RequireDone(t, after, a)
				})
				if done || t.Failed() {
					return
				}
			}
			t.Fatal("more than 40 writes")
		})
	}
}

// failing runs a replacement whose new part fails.
func (r replacement) failing(t *testing.T, a *awssim.AWS, after *manifest.Cluster) error {
	t.Helper()
	p := a.Process()
	p.Fault = func(_ int, _, op string) awssim.Fault {
		if op == r.denied {
			return awssim.Denied
		}
		return awssim.None
	}
	_, err := enginetest.Rolling(after, p).Apply(t.Context(), cluster.Options{Observe: func(plan.Event) {
		if r.fails != nil {
			a.Edit(r.fails)
		}
	}})
	return err
}

// killedAtWrite runs until its n-th write, or to its end if it has fewer.
func killedAtWrite(t *testing.T, a *awssim.AWS, after *manifest.Cluster, n int) error {
	t.Helper()
	written := 0
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	p := a.Process()
	p.Killed, p.Fault = cancel, func(_ int, service, op string) awssim.Fault {
		if len(enginetest.Writes([]awssim.Call{{Service: service, Operation: op}})) > 0 {
			if written++; written == n {
				return awssim.KillAfter
			}
		}
		return awssim.None
	}
	_, err := enginetest.Rolling(after, p).Apply(ctx, cluster.Options{})
	return err
}
