package run_test

import (
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/boot"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/run"
	"github.com/clusterawsadm/clusterawsadm/internal/enginetest"
	"github.com/clusterawsadm/clusterawsadm/internal/kubesim"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

const staging = "staging-of-restores"

// restores returns the cluster for a new process that restores a backup.
func restores(m *manifest.Cluster, p *awssim.Process, r *cluster.Restore) *run.Cluster {
	return run.Open(m, cluster.Target{Config: p.Config(), Owner: "test", Transport: enginetest.Transport(p), Wait: plan.NodesJoined, Drain: true, Restore: r})
}

// backedUp creates a cluster with an object, backs it up, changes the object, and creates a bucket.
func backedUp(t *testing.T, example string) (*manifest.Cluster, *awssim.AWS, *cluster.Restore) {
	t.Helper()
	m, a := enginetest.Running(t, example)
	enginetest.AddNetwork(a)
	time.Sleep(time.Minute) // the cloud controller manager sets the provider IDs
	enginetest.Inside(a, func(c *kubesim.Cluster) { c.Settle(time.Now()) })
	enginetest.AddSettings(a, "before")
	write, read := enginetest.BackupKeys(t)
	file := filepath.Join(t.TempDir(), "demo.backup")
	_, err := enginetest.Waiting(m, a.Process(), plan.NodesJoined).Backup(t.Context(), file, write)
	require.NoError(t, err)
	enginetest.AddSettings(a, "after")
	in := &awss3.CreateBucketInput{Bucket: aws.String(staging)}
	if m.Region != "us-east-1" {
		t.Fatal("the region of the example needs a location constraint")
	}
	_, err = awss3.NewFromConfig(a.Process().Config()).CreateBucket(t.Context(), in)
	require.NoError(t, err)
	return m, a, &cluster.Restore{File: file, Keys: read, Bucket: staging}
}

// loseControlPlane terminates all machines of the control plane, and makes a call, so that the
// account notices.
func loseControlPlane(t *testing.T, a *awssim.AWS) {
	t.Helper()
	a.Edit(func(s *awssim.State) {
		for _, i := range s.EC2.Instances {
			if strings.Contains(i.Tags["clusterawsadm/resource"], "-control-plane/") && i.Terminating.IsZero() {
				i.Terminating, i.Terminated = time.Now(), time.Now()
			}
		}
	})
	time.Sleep(time.Minute)
	_, err := awss3.NewFromConfig(a.Process().Config()).ListBuckets(t.Context(), &awss3.ListBucketsInput{})
	require.NoError(t, err)
}

// requireRestored requires that the cluster has the objects of the snapshot, one API server, Nodes
// for exactly the machines that run, and nothing staged any more.
func requireRestored(t *testing.T, m *manifest.Cluster, a *awssim.AWS) {
	t.Helper()
	a.Edit(func(s *awssim.State) {
		require.Len(t, s.Kubernetes, 1)
		alive, inits := map[string]bool{}, 0
		for _, i := range s.EC2.Instances {
			if i.Terminating.IsZero() && i.Boot != nil {
				require.Empty(t, i.Boot.Failed)
				alive[i.Boot.Node] = true
				data, err := boot.Decompress(i.Boot.Data)
				require.NoError(t, err)
				if strings.Contains(string(data), "restore-etcd.sh") {
					inits++
				}
			}
		}
		require.Equal(t, 1, inits, "machines that run kubeadm init")
		for _, c := range s.Kubernetes {
			assert.Equal(t, "before", kubesim.Value(c.Get("/api/v1/namespaces/default/configmaps/settings"), "data", "value"))
			for _, o := range c.All("Node") {
				assert.True(t, alive[kubesim.Value(o, "metadata", "name")], "Node %s has no machine", kubesim.Value(o, "metadata", "name"))
			}
			assert.Len(t, c.All("Node"), len(alive))
			assert.True(t, c.Quorate())
		}
		assert.Empty(t, s.S3.Buckets[staging].Objects)
	})
	p, err := restores(m, a.Process(), nil).Plan(t.Context())
	require.NoError(t, err)
	for _, s := range p.Steps {
		assert.False(t, s.Does(), "%s: %s %v", s.Resource, s.Action, s.Diff)
	}
}

// TestRestore loses all machines of the control plane, and restores the backup: the objects are
// there, workers stay, and the next plan has no changes. Before and after, a restore is refused,
// because the control plane is alive.
func TestRestore(t *testing.T) {
	for _, example := range []string{"quickstart", "three-zones"} {
		t.Run(example, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m, a, backup := backedUp(t, example)
				refused := func(what string) {
					n := len(a.Calls())
					_, err := restores(m, a.Process(), backup).Apply(t.Context(), cluster.Options{})
					require.ErrorAs(t, err, new(*plan.RefusedError))
					require.ErrorContains(t, err, what)
					for _, c := range a.Calls()[n:] {
						assert.False(t, strings.HasPrefix(c.Operation, "Run") || c.Operation == "PutObject", c.Operation)
					}
				}
				refused("the control plane has machines")
				loseControlPlane(t, a)
				workers := enginetest.MachinesOf(a, "-md-")
				res, err := restores(m, a.Process(), backup).Apply(t.Context(), cluster.Options{Observe: enginetest.Tell(t)})
				require.NoError(t, err)
				assert.NotEmpty(t, res.Endpoint)
				assert.Equal(t, workers, enginetest.MachinesOf(a, "-md-"), "workers stay")
				requireRestored(t, m, a)
				refused("the control plane has machines")
				enginetest.MustDelete(t, m, a)
			})
		})
	}
}

// TestRestoreWithLostAddresses restores a backup on machines that have the addresses of those that
// were lost, and so the names of their Nodes.
func TestRestoreWithLostAddresses(t *testing.T) {
	for _, example := range []string{"quickstart", "three-zones"} {
		t.Run(example, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m, a, backup := backedUp(t, example)
				names := namesOf(a, "-control-plane/")
				loseControlPlane(t, a)
				a.Edit(func(s *awssim.State) {
					for _, subnet := range s.EC2.Subnets {
						subnet.Next = 0
					}
				})
				_, err := restores(m, a.Process(), backup).Apply(t.Context(), cluster.Options{Observe: enginetest.Tell(t)})
				require.NoError(t, err)
				requireRestored(t, m, a)
				assert.ElementsMatch(t, names, namesOf(a, "-control-plane/"), "the addresses were not given again")
				time.Sleep(time.Minute)
				running := enginetest.MachinesOf(a, "")
				enginetest.Inside(a, func(c *kubesim.Cluster) {
					c.Settle(time.Now())
					for _, o := range c.All("Node") {
						id := kubesim.Value(o, "spec", "providerID")
						assert.Contains(t, running, path.Base(id), "Node %s has the provider ID of a lost machine", kubesim.Value(o, "metadata", "name"))
					}
				})
			})
		})
	}
}

// namesOf lists the names of the Nodes of the running machines of groups with a word in their name.
func namesOf(a *awssim.AWS, word string) (names []string) {
	ids := enginetest.MachinesOf(a, word)
	a.Edit(func(s *awssim.State) {
		for _, id := range ids {
			names = append(names, s.EC2.Instances[id].Boot.Node)
		}
	})
	return names
}

// TestRestoreElsewhere deletes the whole cluster, and restores it: with new machines, a new load
// balancer, and the keys of the backup.
func TestRestoreElsewhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, a, backup := backedUp(t, "quickstart")
		enginetest.MustDeleteAll(t, m, a)
		_, err := restores(m, a.Process(), backup).Apply(t.Context(), cluster.Options{Observe: enginetest.Tell(t)})
		require.NoError(t, err)
		requireRestored(t, m, a)
	})
}

// TestRestoreKilled kills a restore at each of its calls, or at some. Until then, no second run is needed; after
// it, a run without --restore continues, or says that it needs the file. There is never an empty
// cluster.
func TestRestoreKilled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, first, backup := backedUp(t, "quickstart")
		loseControlPlane(t, first)
		for at := enginetest.First(1, 0); ; at += enginetest.Stride(1) {
			a, err := first.After(0)
			require.NoError(t, err)
			p := a.Process()
			struck, call := false, ""
			p.Fault = func(n int, service, op string) awssim.Fault {
				if n == at {
					struck, call = true, service+" "+op
					return awssim.KillAfter
				}
				return awssim.None
			}
			_, err = restores(m, p, backup).Apply(t.Context(), cluster.Options{})
			if !struck {
				require.NoError(t, err)
				break
			}
			time.Sleep(2 * time.Minute)
			began := false
			a.Edit(func(s *awssim.State) { _, began = s.SSM.Parameters["/clusterawsadm/"+m.Name+"/restore"] })
			var continues *cluster.Restore
			if !began {
				continues = backup // nothing was recorded yet
			}
			_, err = restores(m, a.Process(), continues).Apply(t.Context(), cluster.Options{})
			if err != nil && began && strings.Contains(err.Error(), "continue it with --restore FILE") {
				_, err = restores(m, a.Process(), backup).Apply(t.Context(), cluster.Options{})
			}
			a.Edit(func(s *awssim.State) {
				for _, i := range s.EC2.Instances {
					if i.Boot != nil && i.Terminating.IsZero() {
						require.Empty(t, i.Boot.Failed, "killed at call %d: %s", at, call)
					}
				}
			})
			require.NoError(t, err, "killed at call %d: %s", at, call)
			requireRestored(t, m, a)
			require.False(t, t.Failed(), "killed at call %d: %s", at, call)
		}
	})
}

// TestRestoreRefuses refuses backups that do not fit, before the first write.
func TestRestoreRefuses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, a, backup := backedUp(t, "quickstart")
		loseControlPlane(t, a)
		for why, change := range map[string]func(*manifest.Cluster, *cluster.Restore){
			"name an existing bucket":                func(_ *manifest.Cluster, r *cluster.Restore) { r.Bucket = "" },
			"decrypt":                                func(_ *manifest.Cluster, r *cluster.Restore) { _, r.Keys = enginetest.BackupKeys(t) },
			"restore with the version of the backup": func(m *manifest.Cluster, _ *cluster.Restore) { m.ControlPlane.Object.Spec.Version = "v1.36.0" },
			"which does not start with it": func(m *manifest.Cluster, _ *cluster.Restore) {
				m.ControlPlane.Object.Spec.KubeadmConfigSpec.ClusterConfiguration.Etcd.Local.ImageTag = "3.4.13-0"
			},
			"it is a backup of cluster":  func(m *manifest.Cluster, _ *cluster.Restore) { m.Name = "other" },
			"the backup is damaged":      func(_ *manifest.Cluster, r *cluster.Restore) { r.File = cutOff(t, r.File) },
			"parsing age header":         func(_ *manifest.Cluster, r *cluster.Restore) { r.File = "restore_test.go" },
			"use s3://BUCKET/KEY":        func(_ *manifest.Cluster, r *cluster.Restore) { r.File = "s3://" + staging + "/x/" },
			"bucket nowhere does not":    func(_ *manifest.Cluster, r *cluster.Restore) { r.File = "s3://nowhere/x" },
			"no such file":               func(_ *manifest.Cluster, r *cluster.Restore) { r.File += "x" },
			"a backup contains the keys": func(_ *manifest.Cluster, r *cluster.Restore) { r.Keys = cluster.BackupKeys{} },
		} {
			m, r := enginetest.Load(t, "quickstart.yaml", nil), *backup
			change(m, &r)
			n := len(a.Calls())
			_, err := restores(m, a.Process(), &r).Apply(t.Context(), cluster.Options{})
			require.ErrorAs(t, err, new(*plan.RefusedError), why)
			require.ErrorContains(t, err, why)
			require.NotContains(t, err.Error(), "\n", "one line")
			requireNothingDone(t, a, n)
		}
		_ = m
	})
}

// cutOff returns a copy of a file without its end.
func cutOff(t *testing.T, file string) string {
	t.Helper()
	data, err := os.ReadFile(file)
	require.NoError(t, err)
	short := filepath.Join(t.TempDir(), "short.backup")
	require.NoError(t, os.WriteFile(short, data[:len(data)-1000], 0o600))
	return short
}

// TestDeletedLoadBalancer deletes the load balancer of the API server. AWS does not give its DNS name again. The test follows both ways out
// that the plan names.
func TestDeletedLoadBalancer(t *testing.T) {
	for _, way := range []string{"restore", "new etcd"} {
		t.Run(way, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m, a, backup := backedUp(t, "three-zones")
				api := elasticloadbalancingv2.NewFromConfig(a.Process().Config())
				all, err := api.DescribeLoadBalancers(t.Context(), &elasticloadbalancingv2.DescribeLoadBalancersInput{})
				require.NoError(t, err)
				_, err = api.DeleteLoadBalancer(t.Context(), &elasticloadbalancingv2.DeleteLoadBalancerInput{LoadBalancerArn: all.LoadBalancers[0].LoadBalancerArn})
				require.NoError(t, err)
				_, err = restores(m, a.Process(), nil).Plan(t.Context())
				require.ErrorAs(t, err, new(*plan.RefusedError))
				require.ErrorContains(t, err, "--restore")
				require.ErrorContains(t, err, "--new-etcd=three-zones")
				c := restores(m, a.Process(), backup)
				if way == "new etcd" {
					loseControlPlane(t, a)
					c = restores(m, a.Process(), nil)
					c.Target.NewEtcd = "three-zones"
				} else {
					enginetest.MustDeleteAll(t, m, a)
				}
				_, err = c.Apply(t.Context(), cluster.Options{Observe: func(e plan.Event) {
					if e.Resource == "api-server" && e.What == plan.Done {
						enginetest.AddNetwork(a)
					}
					if tell := enginetest.Tell(t); tell != nil {
						tell(e)
					}
				}})
				require.NoError(t, err)
				if way == "restore" {
					requireRestored(t, m, a)
				}
				p, err := restores(m, a.Process(), nil).Plan(t.Context())
				require.NoError(t, err)
				require.True(t, p.Empty(), "%v", enginetest.Steps(p))
			})
		})
	}
}
