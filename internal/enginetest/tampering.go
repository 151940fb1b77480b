package enginetest

import (
	"bytes"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/kind"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/look"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/run"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// Victim is a resource of an existing cluster, and its fields with one remedy.
type Victim struct {
	Resource plan.ID
	ID       string // cloud ID
	Fields   []string
}

// VictimsOf lists the owned resources with their fields that have the remedy.
func VictimsOf(t *testing.T, m *manifest.Cluster, a *awssim.AWS, r plan.Remedy) (out []Victim) {
	t.Helper()
	g, err := Open(m, a.Process()).Graph()
	require.NoError(t, err)
	for _, s := range MustPlan(t, m, a).Steps {
		if s.Action != plan.Keep {
			continue
		}
		v := Victim{Resource: s.Resource, ID: s.CloudID}
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
			if is && !slices.Contains(v.Fields, d.Field) {
				v.Fields = append(v.Fields, d.Field)
			}
		}
		out = append(out, v)
	}
	return out
}

// KeyOf returns the key of a field in the tables.
func KeyOf(n plan.ID, field string) string {
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

// Tampering changes every field of an existing cluster that a run restores.
type Tampering struct {
	Victims []Victim
	Rounds  int
}

// TamperingOf tampers with all kinds of a cluster.
func TamperingOf(t *testing.T, m *manifest.Cluster, a *awssim.AWS) Tampering {
	t.Helper()
	return tamperingOf(t, m, a, AllKinds)
}

// tamperingOf leaves out the resources of other kinds.
func tamperingOf(t *testing.T, m *manifest.Cluster, a *awssim.AWS, of Kinds) (x Tampering) {
	t.Helper()
	x.Victims = slices.DeleteFunc(VictimsOf(t, m, a, plan.InPlace), func(v Victim) bool { return !of(v.Resource.Kind()) })
	a.Edit(func(s *awssim.State) {
		for i := range x.Victims {
			v := &x.Victims[i]
			v.Fields = slices.DeleteFunc(v.Fields, func(f string) bool { return identifies(m, *v, f) || others(s, m, *v, f) })
			x.Rounds = max(x.Rounds, len(v.Fields))
		}
	})
	return x
}

// Identify reads the IDs of the resources from a plan: one that the run has created again has another.
func (x Tampering) Identify(p plan.Plan) {
	for _, s := range p.Steps {
		for i := range x.Victims {
			if x.Victims[i].Resource == s.Resource {
				x.Victims[i].ID = s.CloudID
			}
		}
	}
}

// Round changes one field of every resource, each time another one, and returns the
// changes that the next plan has to contain.
func (x Tampering) Round(t *testing.T, a *awssim.AWS, round int) map[string]bool {
	t.Helper()
	want, nth, table := map[string]bool{}, map[string]int{}, Tampers()
	a.Edit(func(s *awssim.State) {
		for _, v := range x.Victims {
			n := round + nth[v.Resource.Kind()] // resources of one kind may have the same name: not all lose their identity tags at once
			nth[v.Resource.Kind()]++
			if round >= len(v.Fields) {
				continue
			}
			field := v.Fields[n%len(v.Fields)]
			if v.Resource.Kind() == "bootstrap-names" {
				continue // of machines that exist, no name is desired any more
			}
			do := table[KeyOf(v.Resource, field)]
			require.NotNil(t, do, "no tamper for %q of %s", field, v.Resource)
			do(s, v.ID, field)
			if field == "authenticationMode" { // all examples have the mode API
				want["eks-authentication: "+field] = true
				continue
			}
			want[string(v.Resource)+": "+field] = true
			if pool := replaces(v.Resource, field); pool != "" {
				want[pool] = true
			}
		}
	})
	return want
}

// Kinds reports whether a test is about a kind of resource.
type Kinds func(kind string) bool

// AllKinds are the kinds of all packages.
func AllKinds(string) bool { return true }

// RequireRestored creates a cluster, changes every field of the kinds outside of a run, and deletes the cluster.
// In each round, one field of every resource is changed, each time another one: the next plan contains exactly
// that, and an apply restores it.
func RequireRestored(t *testing.T, m *manifest.Cluster, a *awssim.AWS, of Kinds) {
	t.Helper()
	before := a.Inventory()
	MustApply(t, m, a)
	time.Sleep(Booting)
	standing := unversioned(a.Detailed())
	tampering := tamperingOf(t, m, a, of)
	for round := range tampering.Rounds {
		want := tampering.Round(t, a, round)
		require.Equal(t, want, changed(t, MustPlan(t, m, a)))
		MustApply(t, m, a)
		time.Sleep(5 * time.Minute) // machines of pools are replaced by Auto Scaling
		a.Edit(Tidy)
		after := MustPlan(t, m, a)
		require.True(t, after.Empty(), "%v", Steps(after))
		require.Equal(t, standing, unversioned(a.Detailed()), "round %d", round)
		tampering.Identify(after)
	}
	MustDelete(t, m, a)
	require.Equal(t, before, a.Inventory())
}

// RequireConflicts changes each field of the kinds that AWS does not permit to change, in a copy of the account,
// and requires that a run is refused. try says whether to try a field.
func RequireConflicts(t *testing.T, m *manifest.Cluster, a *awssim.AWS, of Kinds, try func(field string) bool) {
	t.Helper()
	var account bytes.Buffer
	require.NoError(t, a.Save(&account))
	for _, v := range VictimsOf(t, m, a, plan.Replace) {
		for _, field := range v.Fields {
			k := KeyOf(v.Resource, field)
			if !of(v.Resource.Kind()) || !try(k) || names(k) {
				continue
			}
			do := Conflicts()[k]
			require.NotNil(t, do, "no conflict for %q of %s", field, v.Resource)
			b, err := awssim.Load(bytes.NewReader(account.Bytes()), awssim.Options{Region: m.Region})
			require.NoError(t, err)
			b.Edit(func(s *awssim.State) { do(s, v.ID, field) })
			RequireRefused(t, m, b, v.Resource, field)
		}
	}
}

// LifeOfKinds is the life of the kinds of one package, in the clusters of some examples: they cost what a plan
// says, every field that somebody changes is restored or refused, and they are deleted: by their manifest, and by
// their name after controllers have created resources beside them. The examples have every field of the tables for
// these kinds.
func LifeOfKinds(t *testing.T, kinds []*kind.Kind, files ...string) {
	t.Helper()
	of := func(k string) bool { return slices.ContainsFunc(kinds, func(x *kind.Kind) bool { return x.Name == k }) }
	tampers, conflicts := Tampers(), Conflicts()
	for _, all := range []map[string]Tamper{tampers, conflicts} {
		maps.DeleteFunc(all, func(field string, _ Tamper) bool { k, _, _ := strings.Cut(field, " "); return !of(k) })
	}
	for _, file := range files {
		t.Run(Name(file), func(t *testing.T) {
			m := LoadQuick(t, file)
			synctest.Test(t, func(t *testing.T) {
				a := awssim.New(awssim.Options{Region: m.Region, Lag: Lag})
				Prepare(t, a, m)
				before := a.Inventory()
				priced := cluster.Target{Config: a.Config(), Owner: "test", Cost: true}
				planned, err := run.Open(m, priced).Plan(t.Context())
				require.NoError(t, err)
				MustApply(t, m, a)
				existing, err := run.Open(m, priced).Plan(t.Context())
				require.NoError(t, err)
				require.Equal(t, []float64{planned.Cost.After, planned.Cost.After}, []float64{existing.Cost.Before, existing.Cost.After}, "monthly costs")
				for _, r := range []plan.Remedy{plan.InPlace, plan.Replace} {
					for _, v := range VictimsOf(t, m, a, r) {
						for _, field := range v.Fields {
							delete(tampers, KeyOf(v.Resource, field))
						}
					}
				}
				RequireConflicts(t, m, a, of, func(field string) bool { _, left := conflicts[field]; delete(conflicts, field); return left })
				time.Sleep(Booting)
				status, err := look.Status(t.Context(), Open(m, a.Process()))
				require.NoError(t, err)
				for _, r := range status.Resources {
					require.Contains(t, []string{"ok", "existing"}, r.State, "%s: %s", r.Resource, r.Detail)
				}
				Lives(t, a, m)
				_, err = run.OpenByName(m.Name, priced).Delete(t.Context(), Everything)
				require.NoError(t, err)
				require.Equal(t, before, a.Inventory())
			})
			synctest.Test(t, func(t *testing.T) {
				a := awssim.New(awssim.Options{Region: m.Region})
				Prepare(t, a, m)
				RequireRestored(t, m, a, of)
			})
		})
	}
	require.Empty(t, slices.Sorted(maps.Keys(tampers)), "fields that no example of these has")
	require.Empty(t, slices.Sorted(maps.Keys(conflicts)), "fields that no example of these has")
}

// names reports whether a resource is looked up by the field: another name is another
// resource. It also excludes fields that are only shown for new machines; those that a
// manifest pins are in TestPinned.
func names(field string) bool {
	return slices.Contains([]string{
		"security-group name", "load-balancer name", "target-group name", "listener port", "bucket name", "vpc-block cidr",
		"machine image", "machine subnet", "machine key", "bastion image", "bastion subnet", "bastion key",
	}, field)
}

// identifies reports whether a field is left out because a run does not restore it. Without the tag of the cluster, a run does not find the
// resource; a node group or a Fargate profile then belongs to somebody else (TestPartsOfOthersAreConflicts). The keys of the cluster are
// incomplete only after a run was killed.
func identifies(m *manifest.Cluster, v Victim, field string) bool {
	if kind := v.Resource.Kind(); kind == "node-group" || kind == "fargate-profile" {
		return strings.HasPrefix(field, "tag "+cloud.CloudProviderTagPrefix)
	}
	return field == "tag "+cloud.ClusterTagPrefix+m.Name || v.Resource.Kind() == "certificates"
}

// others reports whether a field is a tag that was on a subnet before: its value is not
// compared.
func others(s *awssim.State, m *manifest.Cluster, v Victim, field string) bool {
	return v.Resource.Kind() == "subnet-tags" &&
		!slices.Contains(strings.Fields(TagsOf(s, v.ID)["clusterawsadm/added/"+m.Name]), strings.TrimPrefix(field, "tag "))
}
