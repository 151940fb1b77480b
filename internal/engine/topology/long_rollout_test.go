package topology_test

import (
	"context"
	"maps"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/internal/enginetest"
	"github.com/clusterawsadm/clusterawsadm/internal/kubesim"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// tokenCalls counts the calls about tokens in the cluster.
func tokenCalls(calls []awssim.Call) (n int) {
	for _, c := range calls {
		if c.Service == "Kubernetes" && strings.Contains(c.Operation, "/kube-system/secrets") {
			n++
		}
	}
	return n
}

// Replacing workers one at a time takes hours, longer than a token is valid: the run
// renews it, with few calls.
func TestTokenOutlastsRollout(t *testing.T) {
	for name, x := range map[string]struct {
		workers int32
		age     time.Duration
		calls   int
	}{
		"old, 20 workers":         {20, 80 * time.Minute, 4},
		"made anew, 60 workers":   {60, 24 * time.Hour, 5},
		"young, a single machine": {1, time.Hour, 0},
	} {
		if x.workers > 20 && !enginetest.Sweeping() { // seconds of real time
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				a := enginetest.Alive(t, enginetest.Sized(t, 1, x.workers))
				aged(enginetest.Sized(t, 1, x.workers), a, x.age)
				before := len(a.Calls())
				enginetest.MustRoll(t, enginetest.Larger(t, x.workers), a)
				require.LessOrEqual(t, tokenCalls(enginetest.Since(a, before)), x.calls)
				require.Len(t, enginetest.NodeNames(a), int(x.workers)+1)
				enginetest.RequireDone(t, enginetest.Larger(t, x.workers), a)
			})
		})
	}
}

// aged waits until the token has that age.
func aged(m *manifest.Cluster, a *awssim.AWS, age time.Duration) {
	var made time.Time
	a.Edit(func(s *awssim.State) { made = s.SSM.Parameters["/clusterawsadm/"+m.Name+"/pki/token"].Modified })
	enginetest.Passes(a, time.Until(made.Add(age)))
}

// booting reports whether a machine has not joined yet.
func isBooting(a *awssim.AWS) (yes bool) {
	a.Edit(func(s *awssim.State) {
		for _, i := range s.EC2.Instances {
			yes = yes || i.Terminating.IsZero() && (i.Boot == nil || i.Boot.Joined.IsZero() || time.Now().Before(i.Boot.Joined))
		}
	})
	return yes
}

// A token that somebody deletes during a rollout stays deleted: machines join with
// another one.
func TestTokenWithdrawnInRollout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := enginetest.Larger(t, 6)
		a := enginetest.Alive(t, enginetest.Sized(t, 1, 6))
		aged(m, a, 89*time.Minute)
		old := enginetest.KeptToken(m, a)
		go func() {
			for time.Sleep(90 * time.Second); isBooting(a); {
				time.Sleep(time.Second)
			}
			enginetest.Inside(a, func(c *kubesim.Cluster) {
				id, _, _ := strings.Cut(old, ".")
				delete(c.Objects, "/api/v1/namespaces/kube-system/secrets/bootstrap-token-"+id)
			})
		}()
		enginetest.MustRoll(t, m, a)
		token := enginetest.KeptToken(m, a)
		require.NotEqual(t, old, token)
		id, _, _ := strings.Cut(token, ".")
		require.Contains(t, enginetest.TokensOf(a), id)
		require.Len(t, enginetest.TokensOf(a), 1)
		enginetest.RequireDone(t, enginetest.Larger(t, 6), a)
	})
}

// callsAboutTokens returns the numbers of the calls of a rollout about tokens in the
// cluster.
func callsAboutTokens(t *testing.T) (calls []int) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		a := enginetest.Alive(t, enginetest.Sized(t, 1, 3))
		aged(enginetest.Sized(t, 1, 3), a, 89*time.Minute)
		before := len(a.Calls())
		enginetest.MustRoll(t, enginetest.Larger(t, 3), a)
		for n, c := range enginetest.Since(a, before) {
			if tokenCalls([]awssim.Call{c}) > 0 {
				calls = append(calls, n+1)
			}
		}
	})
	return calls
}

// Wherever a run that renews a token is killed, the next one completes the rollout.
func TestProlongingMayDie(t *testing.T) {
	calls := callsAboutTokens(t)
	require.GreaterOrEqual(t, len(calls), 2)
	for i, fault := range []awssim.Fault{awssim.KillBefore, awssim.KillAfter, awssim.LostBefore, awssim.LostAfter, awssim.Denied} {
		t.Run(string(fault), func(t *testing.T) {
			t.Parallel()
			for at, n := range calls {
				if at != i%len(calls) && !enginetest.Sweeping() {
					continue
				}
				synctest.Test(t, func(t *testing.T) {
					a := enginetest.Alive(t, enginetest.Sized(t, 1, 3))
					aged(enginetest.Sized(t, 1, 3), a, 89*time.Minute)
					p := a.Process()
					err := enginetest.Spoilt(t, p, n, fault, func(ctx context.Context) error {
						_, err := enginetest.Rolling(enginetest.Larger(t, 3), p).Apply(ctx, cluster.Options{})
						return err
					})
					if err != nil {
						enginetest.MustRoll(t, enginetest.Larger(t, 3), a)
					}
					require.Len(t, enginetest.NodeNames(a), 4)
					enginetest.RequireDone(t, enginetest.Larger(t, 3), a)
				})
			}
		})
	}
}

// foreign changes the cluster of an account to look as if Cluster API had created it:
// without the tags and parameters of this program. It returns the Secrets with its keys.
func foreign(a *awssim.AWS) (given map[string]*corev1.Secret) {
	given = map[string]*corev1.Secret{}
	a.Edit(func(s *awssim.State) {
		kept := map[string][]byte{}
		enginetest.EditKeys(s, "three-zones", func(keys map[string]string) {
			for file, key := range keys {
				kept[file] = []byte(key)
			}
		})
		maps.DeleteFunc(s.SSM.Parameters, func(name string, _ *awssim.Parameter) bool {
			return strings.HasPrefix(name, "/clusterawsadm/three-zones/")
		})
		for purpose, files := range map[string][2]string{"ca": {"ca.crt", "ca.key"}, "etcd": {"etcd-ca.crt", "etcd-ca.key"}, "proxy": {"front-proxy-ca.crt", "front-proxy-ca.key"}, "sa": {"sa.pub", "sa.key"}} {
			name := "three-zones-" + purpose
			given[name] = &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string][]byte{"tls.crt": kept[files[0]], "tls.key": kept[files[1]]}}
		}
		for _, i := range s.EC2.Instances {
			delete(i.Tags, "clusterawsadm/resource")
			delete(i.Tags, "clusterawsadm/template")
		}
	})
	return given
}

// A cluster of Cluster API is scaled in the run that adopts it, also right after another
// machine joined: its token is one that the cluster knows.
func TestAdoptedClusterGrows(t *testing.T) {
	for _, age := range []time.Duration{time.Minute, 24 * time.Hour} {
		t.Run(age.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := enginetest.Alive(t, enginetest.Sized(t, 1, 1))
				enginetest.Passes(a, age)
				given := foreign(a)
				grown := func() *manifest.Cluster {
					m := enginetest.Sized(t, 1, 2)
					m.Secrets = given
					return m
				}
				p, err := enginetest.Rolling(grown(), a.Process()).Plan(t.Context())
				require.NoError(t, err)
				require.Contains(t, enginetest.Done(p), "update join-token")
				enginetest.MustRoll(t, grown(), a)
				require.Equal(t, 3, enginetest.JoinedMachines(a))
				enginetest.RequireDone(t, grown(), a)
			})
		})
	}
}

// Wherever a run that adopts a cluster and adds a machine is killed, after the next one
// the machine has joined.
func TestAdoptingMayDie(t *testing.T) {
	for _, fault := range []awssim.Fault{awssim.KillBefore, awssim.KillAfter} {
		t.Run(string(fault), func(t *testing.T) {
			t.Parallel()
			for n, over := enginetest.First(3, 0), false; !over; n += enginetest.Stride(3) {
				synctest.Test(t, func(t *testing.T) {
					a := enginetest.Alive(t, enginetest.Sized(t, 1, 1))
					given := foreign(a)
					grown := enginetest.Sized(t, 1, 2)
					grown.Secrets = given
					p := a.Process()
					_ = enginetest.Spoilt(t, p, n, fault, func(ctx context.Context) error {
						_, err := enginetest.Rolling(grown, p).Apply(ctx, cluster.Options{})
						return err
					})
					over = p.Calls() < n
					enginetest.MustRoll(t, grown, a)
					require.Equal(t, 3, enginetest.JoinedMachines(a), "call %d", n)
				})
			}
		})
	}
}

// A run that does not use the API server launches no machine for a cluster without a
// token of this program.
func TestAdoptedClusterWithoutAsking(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := enginetest.Alive(t, enginetest.Sized(t, 1, 1))
		m := enginetest.Sized(t, 1, 2)
		m.Secrets = foreign(a)
		_, err := enginetest.Waiting(m, a.Process(), plan.Infrastructure).Apply(t.Context(), cluster.Options{Observe: enginetest.Tell(t)})
		require.ErrorContains(t, err, "no token is kept with which machines join this cluster: a run with --wait=api makes one")
		a.Edit(func(s *awssim.State) { require.Len(t, s.EC2.Instances, 2) })
	})
}
