package adopt_test

import (
	"encoding/base64"
	"maps"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	simec2 "github.com/clusterawsadm/clusterawsadm/internal/awssim/ec2"
	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/adopt"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/ec2"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/boot"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest/loader"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/run"
	"github.com/clusterawsadm/clusterawsadm/internal/enginetest"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
	"github.com/clusterawsadm/clusterawsadm/pkg/input"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// hashOfCAPA has the form of CAPA's hash of bootstrap data.
const hashOfCAPA = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"

// poolsAsClusterAPI changes the pools of an account to look as if Cluster API had created them:
// bootstrap data is in the launch template, and has another hash.
func poolsAsClusterAPI(t *testing.T, s *awssim.State) {
	t.Helper()
	for _, template := range s.EC2.LaunchTemplates {
		for _, v := range template.Versions {
			data := bootDataOf(t, s, v)
			v.Data.UserData = aws.String(base64.StdEncoding.EncodeToString(data))
			for _, tags := range v.Data.TagSpecifications {
				for i := range tags.Tags {
					if aws.ToString(tags.Tags[i].Key) == ec2.BootHashTag {
						tags.Tags[i].Value = aws.String(hashOfCAPA)
					}
				}
			}
		}
	}
	maps.DeleteFunc(s.Secrets.Secrets, func(string, *awssim.Secret) bool { return true })
	for _, g := range s.AutoScaling.Groups {
		delete(g.Tags, cloud.ResourceTag)
	}
	for _, i := range s.EC2.Instances {
		if i.Tags[ec2.BootHashTag] != "" {
			i.Tags[ec2.BootHashTag] = hashOfCAPA
		}
	}
}

// bootDataOf returns what a version of a launch template leads to.
func bootDataOf(t *testing.T, s *awssim.State, v *simec2.LaunchTemplateVersion) []byte {
	t.Helper()
	raw, err := base64.StdEncoding.DecodeString(aws.ToString(v.Data.UserData))
	require.NoError(t, err)
	f, ok := boot.FetchOf(raw)
	if !ok {
		return raw
	}
	var chunks [][]byte
	for i := range f.Chunks {
		versions := s.Secrets.Secrets[boot.ChunkName(f.Backend, f.Prefix, i)].Versions
		require.NotEmpty(t, versions)
		chunks = append(chunks, versions[len(versions)-1].Binary)
	}
	data, err := boot.Join(f.Backend, chunks)
	require.NoError(t, err)
	return data
}

// A pool that Cluster API has made is imported with what its machines boot with, and adopted:
// no machine is replaced, then or in later runs, until the manifest changes.
func TestImportPoolOfClusterAPI(t *testing.T) {
	m := enginetest.Load(t, "machine-pool.yaml", nil)
	synctest.Test(t, func(t *testing.T) {
		a := awssim.New(awssim.Options{Region: m.Region})
		before := a.Detailed()
		enginetest.MustApply(t, m, a)
		time.Sleep(6 * time.Minute) // until all machines have joined
		enginetest.Reachable(a, "control-plane", "nodes")
		a.Edit(func(s *awssim.State) {
			enginetest.AsClusterAPI(m, s)
			poolsAsClusterAPI(t, s)
		})
		p := a.Process()
		target := cluster.Target{Config: p.Config(), Owner: "test", Transport: enginetest.Transport(p)}
		i, err := adopt.Import(t.Context(), m.Name, target, cluster.ImportOptions{KeysFromMachine: true})
		require.NoError(t, err)
		require.Empty(t, i.LeftOut)
		require.Empty(t, i.Differences, "%s", i.Manifest)
		require.Empty(t, i.Templates)
		require.Equal(t, []string{"machine-pool-mp-0"}, i.Later)
		for _, text := range []string{"onDemandBaseCapacity: 1", "price-capacity-optimized", "heartbeatTimeout: 2m0s", "azRebalance: true", "capacityRebalance: true"} {
			require.Contains(t, string(i.Manifest), text)
		}
		require.NotContains(t, string(i.Manifest), "Not known: what the machines boot with")
		require.NotContains(t, string(i.Manifest), "disable: true")
		machines := instances(a)

		_, err = i.Adopt(t.Context(), cluster.Options{})
		require.NoError(t, err)
		require.Equal(t, machines, instances(a))
		again := func(written string) *run.Cluster {
			m, err := loader.Load([]input.Source{{Name: "imported.yaml", Data: []byte(written)}}, input.LoadOptions{})
			require.NoError(t, err)
			p := a.Process()
			return run.Open(m, cluster.Target{Config: p.Config(), Owner: "test", Transport: enginetest.Transport(p), Wait: plan.APIServer})
		}
		plan, err := again(string(i.Manifest)).Plan(t.Context())
		require.NoError(t, err)
		var does []string
		for _, s := range plan.Steps {
			if s.Does() {
				does = append(does, string(s.Resource))
			}
		}
		require.ElementsMatch(t, []string{"join-token", "launch-template/machine-pool-mp-0"}, does)
		_, err = again(string(i.Manifest)).Apply(t.Context(), cluster.Options{Observe: enginetest.Tell(t)})
		require.NoError(t, err)
		require.Equal(t, machines, instances(a), "no machine is replaced")
		plan, err = again(string(i.Manifest)).Plan(t.Context())
		require.NoError(t, err)
		require.True(t, plan.Empty(), "%v", plan.Steps)

		i, err = adopt.Import(t.Context(), m.Name, target, cluster.ImportOptions{})
		require.NoError(t, err)
		require.Empty(t, i.Later, "the run has made the launch template")

		more := strings.Replace(string(i.Manifest), "replicas: 2", "replicas: 3", 1)
		_, err = again(more).Apply(t.Context(), cluster.Options{Observe: enginetest.Tell(t)})
		require.NoError(t, err)
		after := instances(a)
		require.Len(t, after, len(machines)+1)
		for id := range machines {
			require.True(t, after[id], "%s was replaced", id)
		}
		old := inService(a)
		rest, pool, _ := strings.Cut(more, "kind: AWSMachinePool\n")
		require.Contains(t, pool, "size: 40")
		larger := rest + "kind: AWSMachinePool\n" + strings.Replace(pool, "size: 40", "size: 50", 1)
		_, err = again(larger).Apply(t.Context(), cluster.Options{Observe: enginetest.Tell(t)})
		require.NoError(t, err)
		for _, id := range inService(a) {
			require.NotContains(t, old, id, "another template replaces all machines of the pool")
		}
		_, err = again(larger).Delete(t.Context(), cluster.Options{})
		require.NoError(t, err)
		require.Equal(t, before, a.Detailed())
	})
}

// A pool of EKS nodes that Cluster API has made joins without a bootstrap token. Its manifest speaks
// of none, and no machine is replaced.
func TestImportEKSPoolOfClusterAPI(t *testing.T) {
	enginetest.EachOf(t, []string{"eks-machines.yaml"}, awssim.Options{}, func(t *testing.T, a *awssim.AWS, m *manifest.Cluster) {
		enginetest.MustApply(t, m, a)
		time.Sleep(6 * time.Minute) // until all machines have joined
		a.Edit(func(s *awssim.State) {
			enginetest.AsClusterAPI(m, s)
			poolsAsClusterAPI(t, s)
		})
		p := a.Process()
		target := cluster.Target{Config: p.Config(), Owner: "test", Transport: enginetest.Transport(p)}
		i, err := adopt.Import(t.Context(), m.Name, target, cluster.ImportOptions{})
		require.NoError(t, err)
		require.Empty(t, i.Differences, "%s", i.Manifest)
		require.Equal(t, []string{"eks-machines-mp-0"}, i.Later)
		for _, text := range []string{"token", "disable: true"} {
			require.NotContains(t, string(i.Manifest), text)
		}

		_, err = i.Adopt(t.Context(), cluster.Options{})
		require.NoError(t, err)
		machines := instances(a)
		again, err := loader.Load([]input.Source{{Name: "imported.yaml", Data: i.Manifest}}, input.LoadOptions{})
		require.NoError(t, err)
		res, err := run.Open(again, target).Apply(t.Context(), cluster.Options{Observe: enginetest.Tell(t)})
		require.NoError(t, err)
		require.Equal(t, 1, res.Plan.CountKind("launch-template", plan.Update))
		require.Equal(t, machines, instances(a), "no machine is replaced")
	})
}

// instances lists the machines of an account by their IDs.
func instances(a *awssim.AWS) map[string]bool {
	out := map[string]bool{}
	a.Edit(func(s *awssim.State) {
		for id := range maps.Keys(s.EC2.Instances) {
			out[id] = true
		}
	})
	return out
}

// inService lists the machines in service of all pools.
func inService(a *awssim.AWS) (ids []string) {
	a.Edit(func(s *awssim.State) {
		for _, g := range s.AutoScaling.Groups {
			for _, i := range g.Instances {
				if i.State == "InService" {
					ids = append(ids, i.ID)
				}
			}
		}
	})
	return ids
}

// If there is a newer image than that of a launch template, the import names the ID: no run
// replaces machines because of the import.
func TestImportPoolBesideNewerImage(t *testing.T) {
	enginetest.EachOf(t, []string{"machine-pool.yaml"}, awssim.Options{}, func(t *testing.T, a *awssim.AWS, m *manifest.Cluster) {
		enginetest.MustApply(t, m, a)
		a.Edit(func(s *awssim.State) {
			s.EC2.Images["ami-0123456789abcdef0"] = &simec2.Image{
				Thing: simec2.Thing{ID: "ami-0123456789abcdef0"}, Name: "capa-ami-ubuntu-24.04-v1.34.2-9999999999", Owner: "819546954734", Architecture: "x86_64",
				RootDevice: "/dev/sda1", RootSize: 8, Created: time.Date(2040, 1, 1, 0, 0, 0, 0, time.UTC),
			}
		})
		target := cluster.Target{Config: a.Process().Config(), Owner: "test"}
		p, err := enginetest.Open(m, a.Process()).Plan(t.Context())
		require.NoError(t, err)
		require.False(t, p.Empty(), "the manifest without an ID takes the newer image")
		i, err := adopt.Import(t.Context(), m.Name, target, cluster.ImportOptions{})
		require.NoError(t, err)
		require.Empty(t, i.Differences)
		require.Contains(t, string(i.Manifest), "# There is a newer image: without this ID, a run would replace the machines.\n    ami:\n      id: ami-")
		again, err := loader.Load([]input.Source{{Name: "imported.yaml", Data: i.Manifest}}, input.LoadOptions{})
		require.NoError(t, err)
		p, err = run.Open(again, target).Plan(t.Context())
		require.NoError(t, err)
		require.True(t, p.Empty(), "%v", p.Steps)
	})
}
