package adopt_test

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsec2 "github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	simec2 "github.com/clusterawsadm/clusterawsadm/internal/awssim/ec2"
	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/adopt"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/ec2"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest/loader"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/run"
	"github.com/clusterawsadm/clusterawsadm/internal/enginetest"
	"github.com/clusterawsadm/clusterawsadm/internal/kubesim"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
	"github.com/clusterawsadm/clusterawsadm/pkg/input"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// controllers is a management cluster: the objects that it has of a cluster.
type controllers struct {
	objects []map[string]any
	tokens  int // that the controllers have made
}

var somewhere = plan.Manager{ID: "0123", Name: "the management cluster"}

// create keeps the objects of a handover, with their owners.
func (c *controllers) create(_ context.Context, all []cluster.Object) error {
	c.objects = nil
	for _, o := range all {
		x := maps.Clone(o.Content)
		if o.Owner != nil {
			meta := maps.Clone(x["metadata"].(map[string]any))
			meta["ownerReferences"] = []any{
				map[string]any{"apiVersion": o.Owner.APIVersion, "kind": o.Owner.Kind, "name": o.Owner.Name, "uid": "4567", "controller": o.Owner.Controller},
			}
			x["metadata"] = meta
		}
		c.objects = append(c.objects, x)
	}
	return nil
}

// handedOver hands a cluster over.
func handedOver(t *testing.T, m *manifest.Cluster, a *awssim.AWS) *controllers {
	t.Helper()
	c := &controllers{}
	err := adopt.Handover(t.Context(), enginetest.Waiting(m, a.Process(), plan.APIServer), cluster.HandoverOptions{
		To: somewhere, Create: c.create, Release: func(context.Context) error { return nil },
	})
	require.NoError(t, err)
	return c
}

// madeByControllers changes an account with a cluster to look as if Cluster API had created it, and
// returns its controllers.
func madeByControllers(t *testing.T, m *manifest.Cluster, a *awssim.AWS) *controllers {
	t.Helper()
	objects, err := adopt.Objects(t.Context(), enginetest.Waiting(m, a.Process(), plan.APIServer))
	require.NoError(t, err)
	c := &controllers{}
	require.NoError(t, c.create(t.Context(), objects.Items))
	a.Edit(func(s *awssim.State) {
		enginetest.AsClusterAPI(m, s)
		poolsAsClusterAPI(t, s)
	})
	replacesControlPlane(a)
	return c
}

// replacesControlPlane changes the machines of the control plane to look as if Cluster API had
// launched them: none keeps the token of runs valid.
func replacesControlPlane(a *awssim.AWS) {
	a.Edit(func(s *awssim.State) {
		for _, i := range s.EC2.Instances {
			delete(i.Tags, "clusterawsadm/keeps-join-token")
			if i.Boot != nil {
				i.Boot.KeepsEvery = 0
			}
		}
	})
}

// tokenPattern matches the bootstrap token in the boot data of a machine.
var tokenPattern = regexp.MustCompile(`token: [a-z0-9]{6}\.[a-z0-9]{16}`)

// rotates makes another bootstrap token for each pool, as Cluster API does after half of its 15
// minutes, and another version of the launch template with it, as CAPA does.
func (c *controllers) rotates(t *testing.T, a *awssim.AWS) {
	t.Helper()
	a.Edit(func(s *awssim.State) {
		for _, id := range slices.Sorted(maps.Keys(s.EC2.LaunchTemplates)) {
			template := s.EC2.LaunchTemplates[id]
			c.tokens++
			name, secret := fmt.Sprintf("capi%02d", c.tokens), fmt.Sprintf("%016d", c.tokens)
			last := template.Versions[fmt.Sprint(template.Last)]
			data := tokenPattern.ReplaceAll(bootDataOf(t, s, last), []byte("token: "+name+"."+secret))
			require.Contains(t, string(data), name+"."+secret)
			v := &simec2.LaunchTemplateVersion{Number: template.Last + 1, Born: time.Now(), Data: last.Data}
			v.Data.UserData = aws.String(base64.StdEncoding.EncodeToString(data))
			if v.Data.InstanceMarketOptions != nil {
				v.Data.InstanceMarketOptions = &types.LaunchTemplateInstanceMarketOptionsRequest{
					MarketType:  types.MarketTypeSpot,
					SpotOptions: &types.LaunchTemplateSpotMarketOptionsRequest{},
				}
			}
			v.Data.TagSpecifications = slices.Clone(last.Data.TagSpecifications)
			for n, tags := range v.Data.TagSpecifications {
				v.Data.TagSpecifications[n].Tags = slices.Clone(tags.Tags)
				for i, tag := range tags.Tags {
					if aws.ToString(tag.Key) == ec2.BootHashTag {
						v.Data.TagSpecifications[n].Tags[i].Value = aws.String(fmt.Sprintf("%x", sha256.Sum256(data)))
					}
				}
			}
			if template.Last++; len(template.Versions) > 2 {
				delete(template.Versions, fmt.Sprint(last.Number-1)) // CAPA keeps the default version and two others
			}
			template.Versions[fmt.Sprint(v.Number)] = v
			for _, k := range s.Kubernetes {
				k.Settle(time.Now())
				k.Put(time.Now(), bootstrapToken(name, secret, time.Now().Add(15*time.Minute)))
			}
		}
	})
}

func bootstrapToken(id, secret string, expires time.Time) kubesim.Object {
	data := kubesim.Object{}
	for k, v := range map[string]string{
		"token-id": id, "token-secret": secret, "usage-bootstrap-authentication": "true", "usage-bootstrap-signing": "true",
		"expiration": expires.UTC().Format(time.RFC3339), "description": "token generated by cluster-api-bootstrap-provider-kubeadm",
	} {
		data[k] = base64.StdEncoding.EncodeToString([]byte(v))
	}
	return kubesim.Object{
		"apiVersion": "v1", "kind": "Secret", "type": "bootstrap.kubernetes.io/token", "data": data,
		"metadata": kubesim.Object{"name": "bootstrap-token-" + id, "namespace": "kube-system"},
	}
}

// manifest returns the manifest of the objects, with the keys of the cluster or without.
func (c *controllers) manifest(t *testing.T, keys bool) *manifest.Cluster {
	t.Helper()
	text, err := adopt.ManifestOf(c.objects)
	require.NoError(t, err)
	sources := []input.Source{{Name: "taken.yaml", Data: text}}
	for _, o := range c.objects {
		if name := o["metadata"].(map[string]any)["name"]; keys && o["kind"] == "Secret" && regexp.MustCompile(`-(ca|etcd|proxy|sa)$`).MatchString(fmt.Sprint(name)) {
			data, err := yaml.Marshal(o)
			require.NoError(t, err)
			sources = append(sources, input.Source{Name: fmt.Sprint(name), Data: data})
		}
	}
	m, err := loader.Load(sources, input.LoadOptions{})
	require.NoError(t, err)
	return m
}

// open opens the cluster with the manifest of the objects.
func (c *controllers) open(t *testing.T, p *awssim.Process, keys bool) *run.Cluster {
	t.Helper()
	return run.Open(c.manifest(t, keys), cluster.Target{Config: p.Config(), Owner: "test", Transport: enginetest.Transport(p), Wait: plan.APIServer})
}

// takes takes the cluster back.
func (c *controllers) takes(ctx context.Context, t *testing.T, p *awssim.Process) error {
	t.Helper()
	steps, err := adopt.PlanTakeback(ctx, c.open(t, p, true), somewhere)
	if err != nil {
		return err
	}
	_, err = adopt.Takeback(ctx, c.open(t, p, true), somewhere, steps)
	return err
}

// twoPools is the example with a machine pool, and another pool beside it, without a mixed instances
// policy. Its file is in a temporary folder.
func twoPools(t *testing.T) string {
	t.Helper()
	text, err := enginetest.Read(enginetest.MachinePool)
	require.NoError(t, err)
	_, pool, _ := strings.Cut(string(text), "kind: MachinePool\n")
	pool = "---\napiVersion: cluster.x-k8s.io/v1beta2\nkind: MachinePool\n" + strings.ReplaceAll(pool, "machine-pool-mp-0", "machine-pool-mp-1")
	mixed := regexp.MustCompile(`(?s)  mixedInstancesPolicy:.*?(  suspendProcesses:)`)
	require.Regexp(t, mixed, pool)
	file := filepath.Join(t.TempDir(), "machine-pool.yaml")
	spot := mixed.ReplaceAllString(strings.Replace(pool, "    rootVolume:", "    spotMarketOptions: {}\n    rootVolume:", 1), "$1")
	require.NoError(t, os.WriteFile(file, []byte(string(text)+spot), 0o600))
	return file
}

// A cluster is taken back whose pools have got another bootstrap token from the controllers: the
// takeback makes the versions of the launch templates that it has said before, and replaces no
// machine. Machines that the pools add much later join, also if no machine of the control plane
// keeps the token valid. A change of the manifest replaces the machines.
func TestTakebackAfterRotation(t *testing.T) {
	templates := []string{"launch-template/machine-pool-mp-0", "launch-template/machine-pool-mp-1"}
	withToken := append([]string{"join-token"}, templates...)
	renews := map[string][]string{
		"handed over":                         templates,
		"handed over, control plane replaced": withToken,
		"handed over, token deleted":          withToken,
		"made by controllers":                 withToken,
	}
	for name, give := range map[string]func(*testing.T, *manifest.Cluster, *awssim.AWS) *controllers{
		"handed over": handedOver,
		"handed over, control plane replaced": func(t *testing.T, m *manifest.Cluster, a *awssim.AWS) *controllers {
			t.Helper()
			c := handedOver(t, m, a)
			replacesControlPlane(a)
			enginetest.Passes(a, 9*24*time.Hour)
			return c
		},
		"handed over, token deleted": func(t *testing.T, m *manifest.Cluster, a *awssim.AWS) *controllers {
			t.Helper()
			a.Edit(func(s *awssim.State) {
				for _, k := range s.Kubernetes {
					maps.DeleteFunc(k.Objects, func(path string, _ kubesim.Object) bool { return strings.Contains(path, "/secrets/bootstrap-token-") })
				}
			})
			return handedOver(t, m, a)
		},
		"made by controllers": madeByControllers,
	} {
		t.Run(name, func(t *testing.T) {
			m := enginetest.LoadQuick(t, twoPools(t))
			for _, p := range m.Pools {
				p.Object.Annotations = map[string]string{"cluster.x-k8s.io/replicas-managed-by": "external-autoscaler"}
			}
			synctest.Test(t, func(t *testing.T) {
				a := enginetest.Account(m, enginetest.Lag)
				enginetest.ApplyAndWait(t, m, a)
				enginetest.Passes(a, 20*time.Minute)
				require.Equal(t, 5, enginetest.JoinedMachines(a))
				c := give(t, m, a)
				for range 5 {
					enginetest.Passes(a, 7*time.Minute)
					c.rotates(t, a)
				}
				a.Edit(func(s *awssim.State) { s.AutoScaling.Groups["machine-pool-mp-0"].Desired++ }) // of another version
				for range 7 {
					enginetest.Passes(a, time.Minute)
				}
				require.Equal(t, 6, enginetest.JoinedMachines(a), "it joins with the token of the controllers")
				c.rotates(t, a)
				machines := instances(a)

				p := a.Process()
				steps, err := adopt.PlanTakeback(t.Context(), c.open(t, p, true), somewhere)
				require.NoError(t, err)
				require.Equal(t, renews[name], resources(steps))
				_, err = adopt.Takeback(t.Context(), c.open(t, p, true), somewhere, nil)
				require.ErrorAs(t, err, new(*plan.RefusedError))
				require.ErrorContains(t, err, "launch-template/machine-pool-mp-0: ")
				before := len(a.Calls())
				_, err = adopt.Takeback(t.Context(), c.open(t, p, true), somewhere, steps)
				require.NoError(t, err)
				require.Equal(t, machines, instances(a))
				writes := map[string]int{}
				for _, call := range enginetest.Since(a, before) {
					if !cloud.Reads(call.Operation) && (call.Service == "EC2" || call.Service == "Auto Scaling") {
						writes[call.Operation]++
					}
				}
				require.LessOrEqual(
					t,
					len(slices.DeleteFunc(enginetest.Since(a, before), func(c awssim.Call) bool { return !strings.HasPrefix(c.Operation, "POST ") })),
					1,
					"one bootstrap token",
				)
				delete(writes, "CreateTags")
				delete(writes, "CreateOrUpdateTags")
				require.Equal(t, map[string]int{"CreateLaunchTemplateVersion": 2, "DeleteLaunchTemplateVersions": 2}, writes)
				require.Empty(t, plannedOf(t, c, a))

				enginetest.Passes(a, 100*24*time.Hour)
				joined := enginetest.JoinedMachines(a)
				enginetest.Grows(a)
				require.Equal(t, joined+2, enginetest.JoinedMachines(a))
				losesMachines(t, a)
				require.Equal(t, joined+2, enginetest.JoinedMachines(a), "machines that the groups replace by themselves join")

				old := inService(a)
				changes(t, c)
				_, err = c.open(t, a.Process(), false).Apply(t.Context(), cluster.Options{Observe: enginetest.Tell(t)})
				require.NoError(t, err)
				for _, id := range inService(a) {
					require.NotContains(t, old, id, "a changed template replaces all machines")
				}
				require.Empty(t, plannedOf(t, c, a))
			})
		})
	}
}

// madeAndRotated is an account with a cluster of two pools that controllers have made, and whose
// token they have renewed.
func madeAndRotated(t *testing.T, m *manifest.Cluster) (*awssim.AWS, *controllers) {
	t.Helper()
	a := enginetest.Account(m, enginetest.Lag)
	enginetest.ApplyAndWait(t, m, a)
	enginetest.Passes(a, 20*time.Minute)
	c := madeByControllers(t, m, a)
	for range 3 {
		enginetest.Passes(a, 7*time.Minute)
		c.rotates(t, a)
	}
	return a, c
}

// writesOfTakeback returns the numbers of the calls of a takeback that write.
func writesOfTakeback(t *testing.T, m *manifest.Cluster) (calls []int) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		a, c := madeAndRotated(t, m)
		p := a.Process()
		p.Fault = func(n int, _, op string) awssim.Fault {
			if op != "GET" && !cloud.Reads(op) {
				calls = append(calls, n)
			}
			return awssim.None
		}
		require.NoError(t, c.takes(t.Context(), t, p))
	})
	return calls
}

// A takeback is killed or fails at a write, and is run again. Then each launch template has one
// version of this program, no machine is replaced, and machines that are added join. After a
// failure, the controllers run until the second takeback.
func TestTakebackMayDie(t *testing.T) {
	file := twoPools(t)
	managed := func() *manifest.Cluster {
		m := enginetest.LoadQuick(t, file)
		for _, p := range m.Pools {
			p.Object.Annotations = map[string]string{"cluster.x-k8s.io/replicas-managed-by": "external-autoscaler"}
		}
		return m
	}
	calls := writesOfTakeback(t, managed())
	require.Greater(t, len(calls), 10)
	for i, fault := range []awssim.Fault{awssim.KillBefore, awssim.KillAfter, awssim.LostAfter, awssim.Denied} {
		t.Run(string(fault), func(t *testing.T) {
			t.Parallel()
			for at := enginetest.First(1, i) - 1; at < len(calls); at += enginetest.Stride(1) {
				synctest.Test(t, func(t *testing.T) {
					a, c := madeAndRotated(t, managed())
					machines, p := instances(a), a.Process()
					err := enginetest.Spoilt(t, p, calls[at], fault, func(ctx context.Context) error { return c.takes(ctx, t, p) })
					if err != nil && fault == awssim.Denied {
						c.rotates(t, a)
					}
					require.NoError(t, c.takes(t.Context(), t, a.Process()), "call %d", calls[at])
					require.Empty(t, plannedOf(t, c, a), "call %d", calls[at])
					require.Equal(t, machines, instances(a), "call %d", calls[at])
					a.Edit(func(s *awssim.State) {
						for _, l := range s.EC2.LaunchTemplates {
							own := 0
							for _, v := range l.Versions {
								if v.Description != "" {
									own++
								}
							}
							require.Equal(t, 1, own, "call %d", calls[at])
						}
					})
					enginetest.Passes(a, 50*24*time.Hour)
					enginetest.Grows(a)
					require.Equal(t, 7, enginetest.JoinedMachines(a), "call %d", calls[at])
				})
			}
		})
	}
}

// resources lists the resources of steps.
func resources(steps []plan.Step) (out []string) {
	for _, s := range steps {
		out = append(out, string(s.Resource))
	}
	return out
}

// plannedOf lists the steps of a plan of the manifest that a takeback writes.
func plannedOf(t *testing.T, c *controllers, a *awssim.AWS) []string {
	t.Helper()
	p, err := c.open(t, a.Process(), false).Plan(t.Context())
	require.NoError(t, err)
	return enginetest.Done(p)
}

// losesMachines terminates a machine of each pool: its group launches another.
func losesMachines(t *testing.T, a *awssim.AWS) {
	t.Helper()
	var ids []string
	a.Edit(func(s *awssim.State) {
		for _, g := range s.AutoScaling.Groups {
			ids = append(ids, g.Instances[0].ID)
		}
	})
	_, err := awsec2.NewFromConfig(a.Process().Config()).TerminateInstances(t.Context(), &awsec2.TerminateInstancesInput{InstanceIds: ids})
	require.NoError(t, err)
	enginetest.Passes(a, time.Hour)
}

// changes changes the size of the disks of all pools.
func changes(t *testing.T, c *controllers) {
	t.Helper()
	for _, o := range c.objects {
		if o["kind"] == "AWSMachinePool" {
			template := o["spec"].(map[string]any)["awsLaunchTemplate"].(map[string]any)
			template["rootVolume"].(map[string]any)["size"] = int64(50)
		}
	}
}
