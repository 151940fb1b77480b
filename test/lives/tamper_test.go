package lives_test

import (
	"bytes"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/internal/enginetest"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// victim is a resource of an existing cluster, and its fields with one remedy.
type victim struct {
	node   plan.ID
	id     string // cloud ID
	fields []string
}

// victims lists the owned resources with their fields that have the remedy.
func victims(t *testing.T, m *manifest.Cluster, a *awssim.AWS, r plan.Remedy) (out []victim) {
	t.Helper()
	g, err := enginetest.Open(m, a.Process()).Graph()
	require.NoError(t, err)
	for _, s := range enginetest.MustPlan(t, m, a).Steps {
		if s.Action != plan.Keep {
			continue
		}
		v := victim{node: s.Resource, id: s.CloudID}
		node := g.Resource(s.Resource)
		if node == nil { // the graph of a manifest is built without asking AWS, and EKS is not in us-east-1c
			node = g.Resource(plan.ID(strings.ReplaceAll(string(s.Resource), "us-east-1d", "us-east-1c")))
		}
		for _, d := range node.Wanted() {
			is := d.Remedy == r || r == plan.Replace && d.Want == plan.Unknown && d.Remedy == plan.ByItself // the value may turn out to be the same
			if slices.Contains(
				[]string{"tag clusterawsadm/template", "tag clusterawsadm/keeps-join-token", "tag clusterawsadm/created-with", "bootstrapSelfManagedAddons"},
				d.Field,
			) {
				continue // they record how a machine or a cluster was made and are not restored: rollout_test.go, join_token_test.go, eks_support_test.go
			}
			if is && !slices.Contains(v.fields, d.Field) {
				v.fields = append(v.fields, d.Field)
			}
		}
		out = append(out, v)
	}
	return out
}

// key returns the key of a field in the tables.
func key(n plan.ID, field string) string {
	field, _, _ = strings.Cut(field, " ")
	return n.Kind() + " " + field
}

// changed lists the changes of a plan: each resource with each of its fields.
func changed(t *testing.T, p plan.Plan) map[string]bool {
	t.Helper()
	out := map[string]bool{}
	for _, s := range p.Steps {
		if s.Does() {
			require.Equal(t, plan.Update, s.Action, "%s %v", s.Resource, s.Diff)
			for _, d := range s.Diff {
				out[string(s.Resource)+": "+d.Field] = true
			}
		}
	}
	return out
}

// Whatever somebody changes outside of a run, the next plan contains exactly that, and an
// apply restores it. In each round, one field of every resource is changed, each time
// another one.
func TestTamper(t *testing.T) {
	enginetest.Each(t, awssim.Options{}, func(t *testing.T, a *awssim.AWS, m *manifest.Cluster) {
		before := a.Inventory()
		enginetest.MustApply(t, m, a)
		time.Sleep(enginetest.Booting)
		standing := unversioned(a.Detailed())
		tampering := tamperingOf(t, m, a)
		for round := range tampering.rounds {
			want := tampering.round(t, a, round)
			require.Equal(t, want, changed(t, enginetest.MustPlan(t, m, a)))
			enginetest.MustApply(t, m, a)
			time.Sleep(5 * time.Minute) // machines of pools are replaced by Auto Scaling
			a.Edit(tidy)
			after := enginetest.MustPlan(t, m, a)
			require.True(t, after.Empty(), "%v", enginetest.Steps(after))
			require.Equal(t, standing, unversioned(a.Detailed()), "round %d", round)
			tampering.identify(after)
		}
		enginetest.MustDelete(t, m, a)
		require.Equal(t, before, a.Inventory())
	})
}

// tampering changes every field of an existing cluster that a run restores.
type tampering struct {
	victims []victim
	rounds  int
}

func tamperingOf(t *testing.T, m *manifest.Cluster, a *awssim.AWS) (x tampering) {
	t.Helper()
	x.victims = victims(t, m, a, plan.InPlace)
	a.Edit(func(s *awssim.State) {
		for i := range x.victims {
			v := &x.victims[i]
			v.fields = slices.DeleteFunc(v.fields, func(f string) bool { return identifies(m, *v, f) || others(s, m, *v, f) })
			x.rounds = max(x.rounds, len(v.fields))
		}
	})
	return x
}

// identify reads the IDs of the resources from a plan: one that the run has created again has another.
func (x tampering) identify(p plan.Plan) {
	for _, s := range p.Steps {
		for i := range x.victims {
			if x.victims[i].node == s.Resource {
				x.victims[i].id = s.CloudID
			}
		}
	}
}

// round changes one field of every resource, each time another one, and returns the
// changes that the next plan has to contain.
func (x tampering) round(t *testing.T, a *awssim.AWS, round int) map[string]bool {
	t.Helper()
	want, nth, table := map[string]bool{}, map[string]int{}, tampers()
	a.Edit(func(s *awssim.State) {
		for _, v := range x.victims {
			n := round + nth[v.node.Kind()] // resources of one kind may have the same name: not all lose their identity tags at once
			nth[v.node.Kind()]++
			if round >= len(v.fields) {
				continue
			}
			field := v.fields[n%len(v.fields)]
			if v.node.Kind() == "bootstrap-names" {
				continue // of machines that exist, no name is desired any more
			}
			do := table[key(v.node, field)]
			require.NotNil(t, do, "no tamper for %q of %s", field, v.node)
			do(s, v.id, field)
			if field == "authenticationMode" { // all examples have the mode API
				want["eks-authentication: "+field] = true
				continue
			}
			want[string(v.node)+": "+field] = true
			if pool := replaces(v.node, field); pool != "" {
				want[pool] = true
			}
		}
	})
	return want
}

// Changes that AWS does not permit are refused before the first write, and the plan shows
// them.
func TestConflicts(t *testing.T) {
	seen := map[string]bool{} // fields of all examples
	ran := 0
	var mu sync.Mutex
	t.Run("examples", func(t *testing.T) {
		enginetest.Each(t, awssim.Options{}, func(t *testing.T, a *awssim.AWS, m *manifest.Cluster) {
			mu.Lock()
			ran++
			mu.Unlock()
			enginetest.MustApply(t, m, a)
			var account bytes.Buffer
			require.NoError(t, a.Save(&account))
			for _, v := range victims(t, m, a, plan.Replace) {
				for _, field := range v.fields {
					mu.Lock()
					done := seen[key(v.node, field)]
					seen[key(v.node, field)] = true
					mu.Unlock()
					if done || names(key(v.node, field)) {
						continue
					}
					do := conflicts()[key(v.node, field)]
					require.NotNil(t, do, "no conflict for %q of %s", field, v.node)
					b, err := awssim.Load(bytes.NewReader(account.Bytes()), awssim.Options{Region: m.Region})
					require.NoError(t, err)
					b.Edit(func(s *awssim.State) { do(s, v.id, field) })
					enginetest.RequireRefused(t, m, b, v.node, field)
				}
			}
		})
	})
	if ran < len(enginetest.Examples(t)) {
		return // -run has chosen some
	}
	for field := range conflicts() {
		require.True(t, seen[field], "no example has the field %q", field)
	}
}

// names reports whether a resource is looked up by the field: another name is another
// resource. It also excludes fields that are only shown for new machines; those that a
// manifest pins are in TestPinned.
func names(field string) bool {
	return slices.Contains([]string{
		"security-group name", "load-balancer name", "target-group name", "listener port", "bucket name", "vpc-block cidr",
		"machine image", "machine subnet", "bastion image", "bastion subnet",
	}, field)
}

// A machine whose manifest has an image, zone or subnet must have that one; otherwise any
// value is accepted.
func TestPinned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := enginetest.Quick(enginetest.Load(t, enginetest.Quickstart, nil))
		a := enginetest.Account(m, 0)
		enginetest.MustApply(t, m, a)
		a.Edit(func(s *awssim.State) {
			for id, i := range s.EC2.Instances {
				i.Subnet, i.Zone, i.Image = otherSubnet(s, id, "us-east-1b"), "us-east-1b", "ami-0123456789abcdef0"
			}
		})
		enginetest.RequireNoChange(t, m, a)
		const node = plan.ID("machine/quickstart-md-0/0")
		spec := &m.Deployments[0].Template.Spec.Template.Spec
		spec.AMI.ID = aws.String("ami-00000000000000000")
		enginetest.RequireRefused(t, m, a, node, "image")
		spec.AMI.ID = nil
		m.Deployments[0].Object.Spec.Template.Spec.FailureDomain = "us-east-1c"
		enginetest.RequireRefused(t, m, a, node, "subnet")
	})
}

// The keys of a cluster with machines cannot be created again: if they are lost, the run
// is refused.
func TestLostKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := enginetest.Quick(enginetest.Load(t, enginetest.Quickstart, nil))
		a := enginetest.Account(m, 0)
		enginetest.MustApply(t, m, a)
		a.Edit(func(s *awssim.State) {
			enginetest.EditKeys(s, "quickstart", func(keys map[string]string) { delete(keys, "ca.key") })
		})
		enginetest.RequireRefused(t, m, a, "certificates", "keys")
		enginetest.MustDelete(t, m, a)
		require.Empty(t, a.Inventory())
	})
}

// identifies reports whether a resource is found by the field, so that without it there
// is no difference; and whether it belongs to a secret that is incomplete only after a
// killed run. Without the only tag of the cluster, a node group or a Fargate profile is somebody
// else's (TestPartsOfOthersAreConflicts).
func identifies(m *manifest.Cluster, v victim, field string) bool {
	if kind := v.node.Kind(); kind == "node-group" || kind == "fargate-profile" {
		return strings.HasPrefix(field, "tag "+cloud.CloudProviderTagPrefix)
	}
	return field == "tag "+cloud.ClusterTagPrefix+m.Name || v.node.Kind() == "certificates"
}

// others reports whether a field is a tag that was on a subnet before: its value is not
// compared.
func others(s *awssim.State, m *manifest.Cluster, v victim, field string) bool {
	return v.node.Kind() == "subnet-tags" &&
		!slices.Contains(strings.Fields(enginetest.TagsOf(s, v.id)["clusterawsadm/added/"+m.Name]), strings.TrimPrefix(field, "tag "))
}

// Every field in the table is in an example.
func TestTamperTableIsTight(t *testing.T) {
	unused := tampers()
	for _, file := range enginetest.Examples(t) {
		m := enginetest.Load(t, file, nil)
		g, err := enginetest.Open(m, enginetest.Account(m, 0).Process()).Graph()
		require.NoError(t, err)
		for _, n := range g.Resources() {
			for _, d := range n.Wanted() {
				delete(unused, key(n.ID(), d.Field))
			}
		}
	}
	require.Empty(t, slices.Collect(maps.Keys(unused)))
}
