package reconcile_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"

	"github.com/clusterawsadm/clusterawsadm/pkg/plan"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	s3types "github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/stretchr/testify/require"
	infrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/api/v1beta2"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/boot"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
)

// applyAndWait applies and waits until the control plane has joined.
func applyAndWait(t *testing.T, m *manifest.Cluster, a *awssim.AWS) {
	t.Helper()
	_, err := waiting(m, a.Process(), plan.APIServer).Apply(t.Context(), cluster.Options{Observe: tell(t)})
	require.NoError(t, err)
}

// planned lists the steps of a run that may use the API server.
func planned(t *testing.T, m *manifest.Cluster, a *awssim.AWS) []string {
	t.Helper()
	p, err := waiting(m, a.Process(), plan.APIServer).Plan(t.Context())
	require.NoError(t, err)
	return done(p)
}

// keptToken is the token in the account.
func keptToken(m *manifest.Cluster, a *awssim.AWS) (token string) {
	a.Edit(func(s *awssim.State) { token = s.SSM.Parameters["/clusterawsadm/"+m.Name+"/pki/token"].Value })
	return token
}

// tokensOf lists the bootstrap tokens of the only cluster, by name of the Secret: their
// expiry, and whether the control plane renews them.
func tokensOf(a *awssim.AWS) map[string]string {
	out := map[string]string{}
	a.Edit(func(s *awssim.State) {
		for _, c := range s.Kubernetes {
			c.Settle(time.Now())
			for path, o := range c.Objects {
				_, name, ok := strings.Cut(path, "/secrets/bootstrap-token-")
				if !ok {
					continue
				}
				data, _ := o["data"].(map[string]any)
				value := func(key string) string {
					text, _ := data[key].(string)
					raw, _ := base64.StdEncoding.DecodeString(text)
					return string(raw)
				}
				expires, _ := time.Parse(time.RFC3339, value("expiration"))
				out[name] = fmt.Sprint(time.Until(expires).Round(time.Minute))
				if strings.HasPrefix(value("description"), "superseded") {
					out[name] += " superseded"
				}
			}
		}
	})
	return out
}

// joinedMachines counts the machines that have joined.
func joinedMachines(a *awssim.AWS) (n int) {
	a.Edit(func(s *awssim.State) {
		for _, i := range s.EC2.Instances {
			if i.Boot != nil && !i.Boot.Joined.IsZero() && i.Boot.Failed == "" {
				n++
			}
		}
	})
	return n
}

// passes advances the time, and the simulation.
func passes(a *awssim.AWS, d time.Duration) {
	step := 10 * time.Minute
	for end := time.Now().Add(d); time.Now().Before(end); {
		time.Sleep(min(step, time.Until(end)))
		a.Edit(func(*awssim.State) {})
		step += step / 4 // the simulation advances with calls
	}
}

// grows adds a machine to each pool, as an autoscaler does.
func grows(a *awssim.AWS) {
	a.Edit(func(s *awssim.State) {
		for _, g := range s.AutoScaling.Groups {
			g.Desired++
		}
	})
	passes(a, time.Hour)
}

// A machine that is added after the token has expired joins with a new one, which is
// created first and is not in any output.
func TestLateMachinesJoin(t *testing.T) {
	for _, backend := range []string{"", "ssm-parameter-store", "none"} {
		t.Run(backend, func(t *testing.T) {
			m := loadQuick(t, threeZones)
			init := &m.Deployments[0].Template.Spec.Template.Spec.CloudInit
			if init.SecureSecretsBackend = "ssm-parameter-store"; backend != "ssm-parameter-store" {
				init.SecureSecretsBackend = ""
			}
			init.InsecureSkipSecretsManager = backend == "none"
			synctest.Test(t, func(t *testing.T) {
				a := account(m, lag)
				applyAndWait(t, m, a)
				passes(a, 3*time.Hour)
				require.Equal(t, 6, joinedMachines(a))
				require.Empty(t, tokensOf(a))
				before, old := len(a.Calls()), keptToken(m, a)
				require.Empty(t, planned(t, m, a), "nothing is added, and nothing due")
				for _, c := range since(a, before) {
					require.NotContains(t, c.Operation, "/secrets")
				}
				four := int32(4)
				m.Deployments[0].Object.Spec.Replicas = &four
				p, err := waiting(m, a.Process(), plan.APIServer).Plan(t.Context())
				require.NoError(t, err)
				require.Equal(t, []string{"update join-token", "create machine/three-zones-md-0/3"}, done(p))
				shown := fmt.Sprint(p.Steps)
				_, err = waiting(m, a.Process(), plan.APIServer).Apply(t.Context(), cluster.Options{Observe: func(e plan.Event) { shown += fmt.Sprintf("%+v", e) }})
				require.NoError(t, err)
				passes(a, 5*time.Minute)
				require.Equal(t, 7, joinedMachines(a))
				token := keptToken(m, a)
				require.NotEqual(t, old, token)
				_, secret, _ := strings.Cut(token, ".")
				_, oldSecret, _ := strings.Cut(old, ".")
				require.NotContains(t, shown, secret)
				require.NotContains(t, shown, oldSecret)
				require.Empty(t, planned(t, m, a))
				requireNoChange(t, m, a)
				mustDelete(t, m, a)
			})
		})
	}
}

// A token from an hour ago is used, without a request to the API server.
func TestYoungTokenIsNotRenewed(t *testing.T) {
	m := loadQuick(t, threeZones)
	synctest.Test(t, func(t *testing.T) {
		a := account(m, lag)
		applyAndWait(t, m, a)
		passes(a, time.Hour)
		four := int32(4)
		m.Deployments[0].Object.Spec.Replicas = &four
		before := len(a.Calls())
		require.Equal(t, []string{"create machine/three-zones-md-0/3"}, planned(t, m, a))
		for _, c := range since(a, before) {
			require.NotContains(t, c.Operation, "/secrets")
		}
		applyAndWait(t, m, a)
		passes(a, 5*time.Minute)
		require.Equal(t, 7, joinedMachines(a))
		passes(a, time.Hour)
		five := int32(5)
		m.Deployments[0].Object.Spec.Replicas = &five
		require.Equal(t, []string{"update join-token", "create machine/three-zones-md-0/4"}, planned(t, m, a), "it expires while the machine boots")
	})
}

// If the API server does not respond, no machine is launched that could not join.
func TestNoTokenNoMachine(t *testing.T) {
	m := loadQuick(t, threeZones)
	synctest.Test(t, func(t *testing.T) {
		a := account(m, lag)
		applyAndWait(t, m, a)
		passes(a, 3*time.Hour)
		four := int32(4)
		m.Deployments[0].Object.Spec.Replicas = &four
		a.Edit(func(s *awssim.State) {
			for _, c := range s.Kubernetes {
				c.Up = time.Now().Add(100 * time.Hour)
			}
		})
		require.Contains(t, planned(t, m, a), "settle join-token")
		_, err := waiting(m, a.Process(), plan.APIServer).Apply(t.Context(), cluster.Options{Observe: tell(t)})
		require.ErrorContains(t, err, "join-token: gave up after 10m0s waiting for API server to become reachable (no machine that is added could join), is unreachable: connect: connection refused")
		a.Edit(func(s *awssim.State) { require.Len(t, s.EC2.Instances, 6) })
	})
}

// Pools grow between runs: the control plane renews the token.
func TestPoolGrowsByItself(t *testing.T) {
	for _, file := range []string{machinePool, "../../configs/flatcar-pool.yaml"} {
		for _, kept := range []bool{true, false} {
			t.Run(fmt.Sprint(name(file), "/kept ", kept), func(t *testing.T) {
				m := loadQuick(t, file)
				pool := m.Pools[0].Scaling.Name
				m.Pools[0].Object.Annotations = map[string]string{"cluster.x-k8s.io/replicas-managed-by": "external-autoscaler"}
				synctest.Test(t, func(t *testing.T) {
					a := prepared(t, file, m)
					applyAndWait(t, m, a)
					passes(a, 10*time.Minute)
					first := joinedMachines(a)
					if !kept {
						a.Edit(func(s *awssim.State) {
							for _, i := range s.EC2.Instances {
								i.Boot.KeepsEvery = 0
							}
						})
					}
					passes(a, 10*time.Hour)
					a.Edit(func(s *awssim.State) { s.AutoScaling.Groups[pool].Desired++ })
					passes(a, time.Hour)
					want := first
					if kept {
						want++
						require.Empty(t, planned(t, m, a))
					}
					require.Equal(t, want, joinedMachines(a))
				})
			})
		}
	}
}

// A week later a run creates another token; the old one expires. A machine that boots
// later reads the new one, with the same version of the launch template.
func TestTokenIsRotated(t *testing.T) {
	for _, file := range []string{machinePool, "../../configs/flatcar-pool.yaml"} {
		t.Run(name(file), func(t *testing.T) {
			m := loadQuick(t, file)
			pool := m.Pools[0].Scaling.Name
			m.Pools[0].Object.Annotations = map[string]string{"cluster.x-k8s.io/replicas-managed-by": "external-autoscaler"}
			synctest.Test(t, func(t *testing.T) {
				a := prepared(t, file, m)
				applyAndWait(t, m, a)
				passes(a, 7*24*time.Hour-5*time.Minute)
				first, old := joinedMachines(a), keptToken(m, a)
				require.Empty(t, planned(t, m, a))
				passes(a, 10*time.Minute)
				require.Equal(t, []string{"update join-token"}, planned(t, m, a))
				applyAndWait(t, m, a)
				id, _, _ := strings.Cut(old, ".")
				require.Equal(t, "2h0m0s superseded", tokensOf(a)[id])
				require.Empty(t, planned(t, m, a))
				passes(a, 10*time.Hour)
				require.Len(t, tokensOf(a), 1)
				a.Edit(func(s *awssim.State) { s.AutoScaling.Groups[pool].Desired++ })
				passes(a, time.Hour)
				require.Equal(t, first+1, joinedMachines(a))
				for _, i := range poolOf(a, pool).Instances {
					require.Equal(t, "1", i.Template.Version)
				}
				require.Empty(t, planned(t, m, a))
			})
		})
	}
}

// A plan reports control planes without the timer, and a run renews an expired token. Without the
// timer it is valid for a year; once there is one, for two hours at a time.
func TestPoolOfOldControlPlane(t *testing.T) {
	m := loadQuick(t, machinePool)
	pools := m.Pools
	synctest.Test(t, func(t *testing.T) {
		a := account(m, lag)
		m.Pools = nil
		applyAndWait(t, m, a)
		passes(a, 3*time.Hour)
		m.Pools = pools
		require.Contains(t, told(t, m, a)[0], "no machine of the control plane keeps the token valid")
		require.Equal(t, []string{"update bootstrap-names", "update join-token", "create launch-template/machine-pool-mp-0", "create auto-scaling-group/machine-pool-mp-0"}, planned(t, m, a))
		applyAndWait(t, m, a)
		passes(a, 5*time.Minute)
		require.Equal(t, 3, joinedMachines(a))
		left := func() time.Duration {
			all := slices.Collect(maps.Values(tokensOf(a)))
			require.Len(t, all, 1)
			d, err := time.ParseDuration(all[0])
			require.NoError(t, err)
			return d
		}
		require.InDelta(t, 365*24, left().Hours(), 1)
		require.Empty(t, planned(t, m, a))
		token := keptToken(m, a)
		passes(a, 100*24*time.Hour)
		a.Edit(func(s *awssim.State) { s.AutoScaling.Groups["machine-pool-mp-0"].Desired++ })
		passes(a, time.Hour)
		require.Equal(t, 4, joinedMachines(a))

		a.Edit(func(s *awssim.State) { // as if one of the control plane had been replaced
			for _, i := range s.EC2.Instances {
				if strings.HasPrefix(i.Tags["clusterawsadm/resource"], "machine/machine-pool-control-plane") {
					i.Tags["clusterawsadm/keeps-join-token"] = "true"
					i.Boot.KeepsEvery, i.Boot.KeepsFor, i.Boot.KeepsThose = 30*time.Minute, 2*time.Hour, base64.StdEncoding.EncodeToString([]byte(boot.TokenDescription))
				}
			}
		})
		m.Pools[0].Object.Spec.Replicas = new(int32(3))
		applyAndWait(t, m, a)
		require.NotEqual(t, token, keptToken(m, a), "it is older than a week")
		passes(a, 3*time.Hour)
		require.InDelta(t, 2, left().Hours(), 1)
		require.Empty(t, planned(t, m, a))
		grows(a)
		require.Equal(t, 5, joinedMachines(a))
	})
}

// A token in a launch template keeps its value: its expiry replaces no machine.
func TestTokenInUserDataStays(t *testing.T) {
	const file = "../../configs/flatcar-pool.yaml"
	m := loadQuick(t, file)
	pool := m.Pools[0].Scaling
	m.Pools[0].Object.Annotations = map[string]string{"cluster.x-k8s.io/replicas-managed-by": "external-autoscaler"}
	if pool.Spec.Ignition == nil {
		pool.Spec.Ignition = &infrav1.Ignition{Version: "2.3"}
	}
	pool.Spec.Ignition.StorageType = infrav1.IgnitionStorageTypeOptionUnencryptedUserData
	synctest.Test(t, func(t *testing.T) {
		a := prepared(t, file, m)
		applyAndWait(t, m, a)
		passes(a, 30*24*time.Hour)
		first, token := joinedMachines(a), keptToken(m, a)
		require.Empty(t, planned(t, m, a), "its age does not matter")
		id, _, _ := strings.Cut(token, ".")
		a.Edit(func(s *awssim.State) {
			for _, c := range s.Kubernetes {
				delete(c.Objects, "/api/v1/namespaces/kube-system/secrets/bootstrap-token-"+id)
			}
		})
		passes(a, time.Hour)
		require.Empty(t, tokensOf(a), "the control plane makes none")
		require.Equal(t, []string{"update join-token"}, planned(t, m, a))
		applyAndWait(t, m, a)
		require.Equal(t, token, keptToken(m, a))
		passes(a, 10*time.Hour)
		a.Edit(func(s *awssim.State) { s.AutoScaling.Groups[pool.Name].Desired++ })
		passes(a, time.Hour)
		require.Equal(t, first+1, joinedMachines(a))
		require.Empty(t, planned(t, m, a))
	})
}

// Cluster API deletes objects of pools from the bucket after a day, because it stores them anew in
// every reconciliation, and sets a rule of the bucket for that, which stays when the cluster is
// taken back or imported. Machines of a pool still find their configuration.
func TestConfigurationOfPoolOutlivesRule(t *testing.T) {
	const file = "../../configs/flatcar-pool.yaml"
	m := loadQuick(t, file)
	pool := m.Pools[0].Scaling
	m.Pools[0].Object.Annotations = map[string]string{"cluster.x-k8s.io/replicas-managed-by": "external-autoscaler"}
	pool.Spec.Ignition = &infrav1.Ignition{Version: "2.3", StorageType: infrav1.IgnitionStorageTypeOptionClusterObjectStore}
	synctest.Test(t, func(t *testing.T) {
		a := prepared(t, file, m)
		applyAndWait(t, m, a)
		_, err := s3.NewFromConfig(a.Config()).PutBucketLifecycleConfiguration(t.Context(), &s3.PutBucketLifecycleConfigurationInput{
			Bucket: aws.String(m.Infra.Spec.S3Bucket.Name),
			LifecycleConfiguration: &s3types.BucketLifecycleConfiguration{Rules: []s3types.LifecycleRule{{
				ID: aws.String("machine-pool"), Status: s3types.ExpirationStatusEnabled, Expiration: &s3types.LifecycleExpiration{Days: aws.Int32(1)},
				Filter: &s3types.LifecycleRuleFilter{Prefix: aws.String("machine-pool/")},
			}}},
		})
		require.NoError(t, err)
		passes(a, 48*time.Hour)
		require.Equal(t, 3, joinedMachines(a))
		a.Edit(func(s *awssim.State) { s.AutoScaling.Groups[pool.Name].Desired++ })
		passes(a, time.Hour)
		require.Equal(t, 4, joinedMachines(a))
	})
}

// renewal is an account with a cluster whose token is due for renewal.
func renewal(t *testing.T, m *manifest.Cluster) *awssim.AWS {
	t.Helper()
	a := account(m, lag)
	applyAndWait(t, m, a)
	passes(a, 8*24*time.Hour)
	return a
}

// callsOfRenewal returns the numbers of the calls of a run from the last one before it
// creates a token.
func callsOfRenewal(t *testing.T, m *manifest.Cluster) (from, to int) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		a := renewal(t, m)
		p := a.Process()
		p.Fault = func(n int, service, op string) awssim.Fault {
			if service == "Kubernetes" && op == "POST" {
				from = n - 1
			}
			return awssim.None
		}
		_, err := waiting(m, p, plan.APIServer).Apply(t.Context(), cluster.Options{})
		require.NoError(t, err)
		to = p.Calls()
	})
	return from, to
}

// Whenever a run that creates another token is killed, the next one repairs it: account
// and cluster have the same token, and a pool grows.
func TestRenewalMayDie(t *testing.T) {
	m := loadQuick(t, machinePool)
	from, to := callsOfRenewal(t, m)
	require.Positive(t, from)
	for i, fault := range []awssim.Fault{awssim.KillBefore, awssim.KillAfter, awssim.LostBefore, awssim.LostAfter, awssim.Throttled, awssim.Broken, awssim.Denied} {
		t.Run(string(fault), func(t *testing.T) {
			t.Parallel()
			m := loadQuick(t, machinePool)
			for n := from - 1 + first(i); n <= to; n += stride(1) {
				synctest.Test(t, func(t *testing.T) {
					a := renewal(t, m)
					p := a.Process()
					_ = spoilt(t, p, n, fault, func(ctx context.Context) error {
						_, err := waiting(m, p, plan.APIServer).Apply(ctx, cluster.Options{Observe: tell(t)})
						return err
					})
					passes(a, 10*time.Minute)
					applyAndWait(t, m, a)
					passes(a, 3*time.Hour)
					applyAndWait(t, m, a)
					passes(a, 10*time.Hour)
					id, _, _ := strings.Cut(keptToken(m, a), ".")
					require.Equal(t, []string{id}, slices.Collect(maps.Keys(tokensOf(a))), "call %d", n)
					require.Empty(t, planned(t, m, a), "call %d", n)
					a.Edit(func(s *awssim.State) { s.AutoScaling.Groups["machine-pool-mp-0"].Desired++ })
					passes(a, time.Hour)
					require.Equal(t, 4, joinedMachines(a), "call %d", n)
				})
			}
		})
	}
}
