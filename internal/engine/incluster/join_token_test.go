package incluster_test

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

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	s3types "github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/stretchr/testify/require"
	infrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/api/v1beta2"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/boot"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/internal/enginetest"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// planned lists the steps of a run that may use the API server.
func planned(t *testing.T, m *manifest.Cluster, a *awssim.AWS) []string {
	t.Helper()
	p, err := enginetest.Waiting(m, a.Process(), plan.APIServer).Plan(t.Context())
	require.NoError(t, err)
	return enginetest.Done(p)
}

// A machine that is added after the token has expired joins with a new one, which is
// created first and is not in any output.
func TestLateMachinesJoin(t *testing.T) {
	for _, backend := range []string{"", "ssm-parameter-store", "none"} {
		t.Run(backend, func(t *testing.T) {
			m := enginetest.LoadQuick(t, enginetest.ThreeZones)
			init := &m.Deployments[0].Template.Spec.Template.Spec.CloudInit
			if init.SecureSecretsBackend = "ssm-parameter-store"; backend != "ssm-parameter-store" {
				init.SecureSecretsBackend = ""
			}
			init.InsecureSkipSecretsManager = backend == "none"
			synctest.Test(t, func(t *testing.T) {
				a := enginetest.Account(m, enginetest.Lag)
				enginetest.ApplyAndWait(t, m, a)
				enginetest.Passes(a, 3*time.Hour)
				require.Equal(t, 6, enginetest.JoinedMachines(a))
				require.Empty(t, enginetest.TokensOf(a))
				before, old := len(a.Calls()), enginetest.KeptToken(m, a)
				require.Empty(t, planned(t, m, a), "nothing is added, and nothing due")
				for _, c := range enginetest.Since(a, before) {
					require.NotContains(t, c.Operation, "/kube-system/secrets")
				}
				four := int32(4)
				m.Deployments[0].Object.Spec.Replicas = &four
				p, err := enginetest.Waiting(m, a.Process(), plan.APIServer).Plan(t.Context())
				require.NoError(t, err)
				require.Equal(t, []string{"update join-token", "create machine/three-zones-md-0/3"}, enginetest.Done(p))
				shown := fmt.Sprint(p.Steps)
				_, err = enginetest.Waiting(m, a.Process(), plan.APIServer).
					Apply(t.Context(), cluster.Options{Observe: func(e plan.Event) { shown += fmt.Sprintf("%+v", e) }})
				require.NoError(t, err)
				enginetest.Passes(a, 5*time.Minute)
				require.Equal(t, 7, enginetest.JoinedMachines(a))
				token := enginetest.KeptToken(m, a)
				require.NotEqual(t, old, token)
				_, secret, _ := strings.Cut(token, ".")
				_, oldSecret, _ := strings.Cut(old, ".")
				require.NotContains(t, shown, secret)
				require.NotContains(t, shown, oldSecret)
				require.Empty(t, planned(t, m, a))
				enginetest.RequireNoChange(t, m, a)
				enginetest.MustDelete(t, m, a)
			})
		})
	}
}

// A token from an hour ago is used, without a request to the API server.
func TestYoungTokenIsNotRenewed(t *testing.T) {
	m := enginetest.LoadQuick(t, enginetest.ThreeZones)
	synctest.Test(t, func(t *testing.T) {
		a := enginetest.Account(m, enginetest.Lag)
		enginetest.ApplyAndWait(t, m, a)
		enginetest.Passes(a, time.Hour)
		four := int32(4)
		m.Deployments[0].Object.Spec.Replicas = &four
		before := len(a.Calls())
		require.Equal(t, []string{"create machine/three-zones-md-0/3"}, planned(t, m, a))
		for _, c := range enginetest.Since(a, before) {
			require.NotContains(t, c.Operation, "/kube-system/secrets")
		}
		enginetest.ApplyAndWait(t, m, a)
		enginetest.Passes(a, 5*time.Minute)
		require.Equal(t, 7, enginetest.JoinedMachines(a))
		enginetest.Passes(a, time.Hour)
		five := int32(5)
		m.Deployments[0].Object.Spec.Replicas = &five
		require.Equal(t, []string{"update join-token", "create machine/three-zones-md-0/4"}, planned(t, m, a), "it expires while the machine boots")
	})
}

// If the API server does not respond, no machine is launched that could not join.
func TestNoTokenNoMachine(t *testing.T) {
	m := enginetest.LoadQuick(t, enginetest.ThreeZones)
	synctest.Test(t, func(t *testing.T) {
		a := enginetest.Account(m, enginetest.Lag)
		enginetest.ApplyAndWait(t, m, a)
		enginetest.Passes(a, 3*time.Hour)
		four := int32(4)
		m.Deployments[0].Object.Spec.Replicas = &four
		a.Edit(func(s *awssim.State) {
			for _, c := range s.Kubernetes {
				c.Up = time.Now().Add(100 * time.Hour)
			}
		})
		require.Contains(t, planned(t, m, a), "settle join-token")
		_, err := enginetest.Waiting(m, a.Process(), plan.APIServer).Apply(t.Context(), cluster.Options{Observe: enginetest.Tell(t)})
		require.ErrorContains(
			t,
			err,
			"join-token: gave up after 10m0s waiting for API server to become reachable (no machine that is added could join), is unreachable: connect: connection refused",
		)
		a.Edit(func(s *awssim.State) { require.Len(t, s.EC2.Instances, 6) })
	})
}

// Pools grow between runs: the control plane renews the token.
func TestPoolGrowsByItself(t *testing.T) {
	for _, file := range []string{enginetest.MachinePool, "flatcar-pool.yaml"} {
		for _, kept := range []bool{true, false} {
			t.Run(fmt.Sprint(enginetest.Name(file), "/kept ", kept), func(t *testing.T) {
				m := enginetest.LoadQuick(t, file)
				pool := m.Pools[0].Scaling.Name
				m.Pools[0].Object.Annotations = map[string]string{"cluster.x-k8s.io/replicas-managed-by": "external-autoscaler"}
				synctest.Test(t, func(t *testing.T) {
					a := enginetest.Prepared(t, m)
					enginetest.ApplyAndWait(t, m, a)
					enginetest.Passes(a, 10*time.Minute)
					first := enginetest.JoinedMachines(a)
					if !kept {
						a.Edit(func(s *awssim.State) {
							for _, i := range s.EC2.Instances {
								i.Boot.KeepsEvery = 0
							}
						})
					}
					enginetest.Passes(a, 10*time.Hour)
					a.Edit(func(s *awssim.State) { s.AutoScaling.Groups[pool].Desired++ })
					enginetest.Passes(a, time.Hour)
					want := first
					if kept {
						want++
						require.Empty(t, planned(t, m, a))
					}
					require.Equal(t, want, enginetest.JoinedMachines(a))
				})
			})
		}
	}
}

// A week later a run creates another token; the old one expires. A machine that boots
// later reads the new one, with the same version of the launch template.
func TestTokenIsRotated(t *testing.T) {
	for _, file := range []string{enginetest.MachinePool, "flatcar-pool.yaml"} {
		t.Run(enginetest.Name(file), func(t *testing.T) {
			m := enginetest.LoadQuick(t, file)
			pool := m.Pools[0].Scaling.Name
			m.Pools[0].Object.Annotations = map[string]string{"cluster.x-k8s.io/replicas-managed-by": "external-autoscaler"}
			synctest.Test(t, func(t *testing.T) {
				a := enginetest.Prepared(t, m)
				enginetest.ApplyAndWait(t, m, a)
				enginetest.Passes(a, 7*24*time.Hour-5*time.Minute)
				first, old := enginetest.JoinedMachines(a), enginetest.KeptToken(m, a)
				require.Empty(t, planned(t, m, a))
				enginetest.Passes(a, 10*time.Minute)
				require.Equal(t, []string{"update join-token"}, planned(t, m, a))
				enginetest.ApplyAndWait(t, m, a)
				id, _, _ := strings.Cut(old, ".")
				require.Equal(t, "2h0m0s superseded", enginetest.TokensOf(a)[id])
				require.Empty(t, planned(t, m, a))
				enginetest.Passes(a, 10*time.Hour)
				require.Len(t, enginetest.TokensOf(a), 1)
				a.Edit(func(s *awssim.State) { s.AutoScaling.Groups[pool].Desired++ })
				enginetest.Passes(a, time.Hour)
				require.Equal(t, first+1, enginetest.JoinedMachines(a))
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
	m := enginetest.LoadQuick(t, enginetest.MachinePool)
	pools := m.Pools
	synctest.Test(t, func(t *testing.T) {
		a := enginetest.Account(m, enginetest.Lag)
		m.Pools = nil
		enginetest.ApplyAndWait(t, m, a)
		enginetest.Passes(a, 3*time.Hour)
		m.Pools = pools
		require.Contains(t, enginetest.Told(t, m, a)[0], "no machine of the control plane keeps the token valid")
		require.Equal(
			t,
			[]string{"update bootstrap-names", "update join-token", "create launch-template/machine-pool-mp-0", "create auto-scaling-group/machine-pool-mp-0"},
			planned(t, m, a),
		)
		enginetest.ApplyAndWait(t, m, a)
		enginetest.Passes(a, 5*time.Minute)
		require.Equal(t, 3, enginetest.JoinedMachines(a))
		left := func() time.Duration {
			all := slices.Collect(maps.Values(enginetest.TokensOf(a)))
			require.Len(t, all, 1)
			d, err := time.ParseDuration(all[0])
			require.NoError(t, err)
			return d
		}
		require.InDelta(t, 365*24, left().Hours(), 1)
		require.Empty(t, planned(t, m, a))
		token := enginetest.KeptToken(m, a)
		enginetest.Passes(a, 100*24*time.Hour)
		a.Edit(func(s *awssim.State) { s.AutoScaling.Groups["machine-pool-mp-0"].Desired++ })
		enginetest.Passes(a, time.Hour)
		require.Equal(t, 4, enginetest.JoinedMachines(a))

		a.Edit(func(s *awssim.State) { // as if one of the control plane had been replaced
			for _, i := range s.EC2.Instances {
				if strings.HasPrefix(i.Tags["clusterawsadm/resource"], "machine/machine-pool-control-plane") {
					i.Tags["clusterawsadm/keeps-join-token"] = "true"
					i.Boot.KeepsEvery, i.Boot.KeepsFor, i.Boot.KeepsThose = 30*time.Minute, 2*time.Hour, base64.StdEncoding.EncodeToString([]byte(boot.TokenDescription))
				}
			}
		})
		m.Pools[0].Object.Spec.Replicas = new(int32(3))
		enginetest.ApplyAndWait(t, m, a)
		require.NotEqual(t, token, enginetest.KeptToken(m, a), "it is older than a week")
		enginetest.Passes(a, 3*time.Hour)
		require.InDelta(t, 2, left().Hours(), 1)
		require.Empty(t, planned(t, m, a))
		enginetest.Grows(a)
		require.Equal(t, 5, enginetest.JoinedMachines(a))
	})
}

// A token in a launch template keeps its value: its expiry replaces no machine.
func TestTokenInUserDataStays(t *testing.T) {
	const file = "flatcar-pool.yaml"
	m := enginetest.LoadQuick(t, file)
	pool := m.Pools[0].Scaling
	m.Pools[0].Object.Annotations = map[string]string{"cluster.x-k8s.io/replicas-managed-by": "external-autoscaler"}
	if pool.Spec.Ignition == nil {
		pool.Spec.Ignition = &infrav1.Ignition{Version: "2.3"}
	}
	pool.Spec.Ignition.StorageType = infrav1.IgnitionStorageTypeOptionUnencryptedUserData
	synctest.Test(t, func(t *testing.T) {
		a := enginetest.Prepared(t, m)
		enginetest.ApplyAndWait(t, m, a)
		enginetest.Passes(a, 30*24*time.Hour)
		first, token := enginetest.JoinedMachines(a), enginetest.KeptToken(m, a)
		require.Empty(t, planned(t, m, a), "its age does not matter")
		id, _, _ := strings.Cut(token, ".")
		a.Edit(func(s *awssim.State) {
			for _, c := range s.Kubernetes {
				delete(c.Objects, "/api/v1/namespaces/kube-system/secrets/bootstrap-token-"+id)
			}
		})
		enginetest.Passes(a, time.Hour)
		require.Empty(t, enginetest.TokensOf(a), "the control plane makes none")
		require.Equal(t, []string{"update join-token"}, planned(t, m, a))
		enginetest.ApplyAndWait(t, m, a)
		require.Equal(t, token, enginetest.KeptToken(m, a))
		enginetest.Passes(a, 10*time.Hour)
		a.Edit(func(s *awssim.State) { s.AutoScaling.Groups[pool.Name].Desired++ })
		enginetest.Passes(a, time.Hour)
		require.Equal(t, first+1, enginetest.JoinedMachines(a))
		require.Empty(t, planned(t, m, a))
	})
}

// The Secret of a token in a launch template may still exist when a run renews it: it expires soon, because no machine keeps it
// valid, or somebody has changed its secret half. The Secret then gets the value of the launch template, and more time.
func TestTokenInUserDataIsRepaired(t *testing.T) {
	for name, spoil := range map[string]func(data map[string]any){
		"about to expire": func(map[string]any) {},
		"another secret": func(data map[string]any) {
			data["token-secret"] = base64.StdEncoding.EncodeToString([]byte("0123456789abcdef"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			m := enginetest.LoadQuick(t, "flatcar-pool.yaml")
			pool := m.Pools[0].Scaling
			m.Pools[0].Object.Annotations = map[string]string{"cluster.x-k8s.io/replicas-managed-by": "external-autoscaler"}
			pool.Spec.Ignition = &infrav1.Ignition{Version: "2.3", StorageType: infrav1.IgnitionStorageTypeOptionUnencryptedUserData}
			synctest.Test(t, func(t *testing.T) {
				a := enginetest.Prepared(t, m)
				enginetest.ApplyAndWait(t, m, a)
				enginetest.Passes(a, 10*time.Minute)
				first, token := enginetest.JoinedMachines(a), enginetest.KeptToken(m, a)
				id, _, _ := strings.Cut(token, ".")
				a.Edit(func(s *awssim.State) {
					for _, i := range s.EC2.Instances {
						i.Boot.KeepsEvery = 0
					}
				})
				enginetest.Passes(a, 90*time.Minute)
				a.Edit(func(s *awssim.State) {
					for _, c := range s.Kubernetes {
						data, _ := c.Objects["/api/v1/namespaces/kube-system/secrets/bootstrap-token-"+id]["data"].(map[string]any)
						require.NotNil(t, data, "the Secret exists")
						spoil(data)
					}
				})
				require.Equal(t, []string{"update join-token"}, planned(t, m, a))
				enginetest.ApplyAndWait(t, m, a)
				require.Equal(t, token, enginetest.KeptToken(m, a))
				require.Equal(t, map[string]string{id: "2h0m0s"}, enginetest.TokensOf(a))
				require.Empty(t, planned(t, m, a))
				enginetest.Grows(a)
				require.Equal(t, first+1, enginetest.JoinedMachines(a), "the secret half is that of the launch template")
			})
		})
	}
}

// Cluster API deletes objects of pools from the bucket after a day, because it stores them anew in
// every reconciliation, and sets a rule of the bucket for that, which stays when the cluster is
// taken back or imported. Machines of a pool still find their configuration.
func TestConfigurationOfPoolOutlivesRule(t *testing.T) {
	const file = "flatcar-pool.yaml"
	m := enginetest.LoadQuick(t, file)
	pool := m.Pools[0].Scaling
	m.Pools[0].Object.Annotations = map[string]string{"cluster.x-k8s.io/replicas-managed-by": "external-autoscaler"}
	pool.Spec.Ignition = &infrav1.Ignition{Version: "2.3", StorageType: infrav1.IgnitionStorageTypeOptionClusterObjectStore}
	synctest.Test(t, func(t *testing.T) {
		a := enginetest.Prepared(t, m)
		enginetest.ApplyAndWait(t, m, a)
		_, err := s3.NewFromConfig(a.Config()).PutBucketLifecycleConfiguration(t.Context(), &s3.PutBucketLifecycleConfigurationInput{
			Bucket: aws.String(m.Infra.Spec.S3Bucket.Name),
			LifecycleConfiguration: &s3types.BucketLifecycleConfiguration{Rules: []s3types.LifecycleRule{{
				ID: aws.String("machine-pool"), Status: s3types.ExpirationStatusEnabled, Expiration: &s3types.LifecycleExpiration{Days: aws.Int32(1)},
				Filter: &s3types.LifecycleRuleFilter{Prefix: aws.String("machine-pool/")},
			}}},
		})
		require.NoError(t, err)
		enginetest.Passes(a, 48*time.Hour)
		require.Equal(t, 3, enginetest.JoinedMachines(a))
		a.Edit(func(s *awssim.State) { s.AutoScaling.Groups[pool.Name].Desired++ })
		enginetest.Passes(a, time.Hour)
		require.Equal(t, 4, enginetest.JoinedMachines(a))
	})
}

// renewal is an account with a cluster whose token is due for renewal.
func renewal(t *testing.T, m *manifest.Cluster) *awssim.AWS {
	t.Helper()
	a := enginetest.Account(m, enginetest.Lag)
	enginetest.ApplyAndWait(t, m, a)
	enginetest.Passes(a, 8*24*time.Hour)
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
		_, err := enginetest.Waiting(m, p, plan.APIServer).Apply(t.Context(), cluster.Options{})
		require.NoError(t, err)
		to = p.Calls()
	})
	return from, to
}

// Whenever a run that creates another token is killed, the next one repairs it: account
// and cluster have the same token, and a pool grows.
func TestRenewalMayDie(t *testing.T) {
	m := enginetest.LoadQuick(t, enginetest.MachinePool)
	from, to := callsOfRenewal(t, m)
	require.Positive(t, from)
	for i, fault := range []awssim.Fault{awssim.KillBefore, awssim.KillAfter, awssim.LostBefore, awssim.LostAfter, awssim.Throttled, awssim.Broken, awssim.Denied} {
		t.Run(string(fault), func(t *testing.T) {
			t.Parallel()
			m := enginetest.LoadQuick(t, enginetest.MachinePool)
			for n := from - 1 + enginetest.First(1, i); n <= to; n += enginetest.Stride(1) {
				synctest.Test(t, func(t *testing.T) {
					a := renewal(t, m)
					p := a.Process()
					_ = enginetest.Spoilt(t, p, n, fault, func(ctx context.Context) error {
						_, err := enginetest.Waiting(m, p, plan.APIServer).Apply(ctx, cluster.Options{Observe: enginetest.Tell(t)})
						return err
					})
					enginetest.Passes(a, 10*time.Minute)
					enginetest.ApplyAndWait(t, m, a)
					enginetest.Passes(a, 3*time.Hour)
					enginetest.ApplyAndWait(t, m, a)
					enginetest.Passes(a, 10*time.Hour)
					id, _, _ := strings.Cut(enginetest.KeptToken(m, a), ".")
					require.Equal(t, []string{id}, slices.Collect(maps.Keys(enginetest.TokensOf(a))), "call %d", n)
					require.Empty(t, planned(t, m, a), "call %d", n)
					a.Edit(func(s *awssim.State) { s.AutoScaling.Groups["machine-pool-mp-0"].Desired++ })
					enginetest.Passes(a, time.Hour)
					require.Equal(t, 4, enginetest.JoinedMachines(a), "call %d", n)
				})
			}
		})
	}
}
