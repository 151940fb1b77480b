package lives_test

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	expinfrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/exp/api/v1beta2"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/internal/enginetest"
	"github.com/clusterawsadm/clusterawsadm/internal/regex"
	"github.com/clusterawsadm/clusterawsadm/internal/sweep"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// TestFieldsAreRemoved sets each field of each kind that changes an existing cluster without replacing
// machines, creates, takes the change back, and creates again: the cluster is as the manifest says
// again, or the run is refused before its first write. It never waits for what AWS does not do: where an
// API keeps a setting that a call leaves out, that is a conflict. Fields that an example sets are also
// removed first.
func TestFieldsAreRemoved(t *testing.T) {
	t.Parallel()
	r := &removals{done: map[string]bool{}, tried: map[string]int{}, number: map[string]int{}, stride: 101}
	examples := []string{"eks-addons", "machine-pool"}
	if enginetest.Sweeping() {
		examples = fieldExamples()
		r.part, r.stride = sweep.Part()
	}
	for _, example := range examples {
		r.example(t, example)
	}
	t.Logf("%d fields were changed and changed back", len(r.done))
	require.NotEmpty(t, r.done)
}

// removals is the work of TestFieldsAreRemoved.
type removals struct {
	done   map[string]bool // fields that were changed and changed back
	tried  map[string]int  // number of values, by field
	part   int             // of the sweep
	stride int             // one field in so many
	number map[string]int  // of fields, in the order in which they are found
}

// mostValues is how many values of a field are tried until one of them changes the cluster in place.
const mostValues = 8

func (r *removals) example(t *testing.T, example string) {
	t.Helper()
	objects := objectsOf(t, example)
	base, err := loadObjects(t, objects)
	require.NoError(t, err)
	base = enginetest.Quick(base)
	synctest.Test(t, func(t *testing.T) {
		living := func() *awssim.AWS {
			a := enginetest.Account(base, 0)
			enginetest.Prepare(t, a, base)
			enginetest.MustApply(t, base, a)
			time.Sleep(enginetest.Booting)
			return a
		}
		a := living()
		for i, original := range objects {
			kind, api := original["kind"].(string), original["apiVersion"].(string)
			schema := schemaOf(t, kind, api[strings.Index(api, "/")+1:])
			if schema == nil {
				continue
			}
			for _, f := range fieldsOf(schema, func() any { return objects[i] }, func(v any) { objects[i] = v.(map[string]any) }) {
				if only := os.Getenv("FIELD"); only != "" && !strings.Contains(kind+" "+f.path, only) {
					continue
				}
				values := candidates(f.name, f.schema, 0)
				if f.get() != nil {
					values = append([]any{nil}, values...)
				}
				for _, value := range values {
					name := fmt.Sprintf("%s %s %t", kind, f.path, value == nil)
					if _, known := r.number[name]; !known {
						r.number[name] = len(r.number)
					}
					if r.number[name]%r.stride != r.part || r.done[name] || r.tried[name] >= mostValues || fmt.Sprint(value) == fmt.Sprint(f.get()) {
						continue
					}
					r.tried[name]++
					f.set(value)
					m, err := loadObjects(t, objects)
					objects[i] = original
					if err != nil {
						continue
					}
					m = enginetest.Quick(m)
					changed, broken := r.there(t, base, m, a, fmt.Sprintf("%s: %s = %v", example, name, value))
					r.done[name] = r.done[name] || changed
					if broken {
						a = living()
					}
				}
			}
		}
	})
}

// there changes the cluster and changes it back. It reports whether the cluster was changed, and whether it
// is not as before.
func (r *removals) there(t *testing.T, base, m *manifest.Cluster, a *awssim.AWS, what string) (changed, broken bool) {
	t.Helper()
	p, err := enginetest.Open(m, a.Process()).Plan(t.Context())
	if err != nil || !inPlace(p) {
		return false, false
	}
	before := resourcesOf(a)
	if err := r.apply(t, m, a, what); errors.As(err, new(*plan.RefusedError)) {
		return false, false
	}
	err = r.apply(t, base, a, what+", taken back")
	if err != nil {
		require.NotErrorAs(t, err, new(*plan.TimeoutError), "%s, taken back", what)
		return true, true
	}
	if p := enginetest.MustPlan(t, base, a); slices.ContainsFunc(p.Steps, plan.Step.Does) {
		t.Errorf("%s, taken back: there are still differences: %v", what, p.Steps)
		return true, true
	}
	after := resourcesOf(a)
	if slices.ContainsFunc(staying(), func(field string) bool { return strings.Contains(what, field) }) {
		return true, !slices.Equal(before, after)
	}
	if lost, left := enginetest.Without(before, after), enginetest.Without(after, before); len(lost)+len(left) > 0 {
		t.Errorf("%s, taken back: lost %q, left %q", what, lost, left)
		return true, true
	}
	return true, false
}

// staying lists the fields whose effect stays when they are removed (docs/guides/change-and-upgrade.md, "Remove a part").
func staying() []string {
	return []string{
		"additionalTags", ".tags", // AWS does not say who has set a tag
		"emptyRoutesDefaultVPCSecurityGroup", // the rules that were there are not known
		"privateDnsHostnameTypeOnLaunch", "secondaryCidrBlocks",
		"authenticationMode", // EKS makes access entries
	}
}

// resourcesOf describes the resources of an account, without machines and pools: those of a pool that has changed twice are other ones, and
// the plan compares them. The tag of an add-on whose objects do not stay any more says so.
func resourcesOf(a *awssim.AWS) []string {
	machines := regex.Of(`^(AutoScalingGroup|Instance|Interface|LaunchTemplate|Volume) `)
	lines := slices.DeleteFunc(enginetest.Unnumbered(enginetest.Described(a)), machines.MatchString)
	for i, line := range lines {
		lines[i] = strings.Replace(line, ` clusterawsadm/preserve-on-delete:"false"`, "", 1)
	}
	return lines
}

// apply applies a manifest. Its run may be refused, or AWS may refuse a value, but it does not wait without
// end.
func (r *removals) apply(t *testing.T, m *manifest.Cluster, a *awssim.AWS, what string) error {
	t.Helper()
	_, err := enginetest.Open(m, a.Process()).Apply(t.Context(), cluster.Options{})
	degraded := err != nil && strings.Contains(err.Error(), "InsufficientNumberOfReplicas") // CoreDNS without nodes and without Fargate
	if errors.As(err, new(*plan.TimeoutError)) && !degraded || errors.As(err, new(*graph.NotConvergingError)) {
		t.Errorf("%s: %v", what, err)
	}
	return err
}

// inPlace reports whether a plan changes something, and no machine is created or deleted.
func inPlace(p plan.Plan) bool {
	does := false
	for _, s := range p.Steps {
		kind := s.Resource.Kind()
		if s.Action == plan.Conflict || (s.Action == plan.Create || s.Action == plan.Remove) && slices.Contains([]string{
			"machine", "auto-scaling-group", "node-group", "eks-cluster", "vpc", "subnet", "load-balancer", "classic-load-balancer", "nat-gateway",
			"retired", "launch-template",
		}, kind) {
			return false
		}
		does = does || s.Does()
	}
	return does
}

// A lifecycle hook that loses a part gets AWS's default: PutLifecycleHook keeps what a call leaves out.
func TestRemovedPartsOfHooks(t *testing.T) {
	base := enginetest.LoadQuick(t, enginetest.MachinePool)
	synctest.Test(t, func(t *testing.T) {
		a := enginetest.Account(base, enginetest.Lag)
		enginetest.MustApply(t, base, a)
		time.Sleep(enginetest.Booting)
		for _, change := range []func(h *expinfrav1.AWSLifecycleHook){
			func(h *expinfrav1.AWSLifecycleHook) { h.DefaultResult = nil },
			func(h *expinfrav1.AWSLifecycleHook) { h.HeartbeatTimeout = nil },
			func(h *expinfrav1.AWSLifecycleHook) { h.NotificationMetadata = new("other") },
		} {
			m := enginetest.LoadQuick(t, enginetest.MachinePool)
			change(&m.Pools[0].Scaling.Spec.AWSLifecycleHooks[0])
			enginetest.MustApply(t, m, a)
			enginetest.RequireNoChange(t, m, a)
			enginetest.MustApply(t, base, a)
			enginetest.RequireNoChange(t, base, a)
		}
	})
}
