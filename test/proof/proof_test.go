package proof_test

import (
	"fmt"
	"hash/fnv"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/clusterawsadm/clusterawsadm/internal/enginetest"

	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
)

// sampleOf is which part of the edits "make test" tries: one in this number.
const sampleOf = 1601

// sampleOfOthers is which part of the edits of further examples a sweep tries.
const sampleOfOthers = 101

// edit is one wrong value in one field of one example.
type edit struct {
	example, field, class string
	value                 any
	objects               []map[string]any
}

func (e edit) String() string {
	value := text(e.value)
	if len(value) > 90 {
		value = value[:90] + "…"
	}
	return fmt.Sprintf("%s: %s = %s (%s)", e.example, e.field, value, e.class)
}

// The ends of an edit.
const (
	refused = "refused by the plan"
	warned  = "warned of, and created"
	created = "created without a word"
	broken  = "planned, and failed"
)

// tally counts the ends of edits.
type tally struct {
	sync.Mutex
	ends map[string]int
}

func (c *tally) add(end string) {
	c.Lock()
	defer c.Unlock()
	c.ends[end]++
}

// TestPlanIsAProof derives wrong values by class for every field of every example. Each is
// refused by the plan, or its cluster is created: "plan well, create fails" is a failure, but
// for the exceptions, which have their reasons.
func TestPlanIsAProof(t *testing.T) {
	counts := &tally{ends: map[string]int{}}
	unused := exceptions()
	edits, tries, derived := map[string][]edit{}, map[string]int{}, 0
	for _, example := range examples(t) {
		for _, e := range editsOf(t, example) {
			derived++
			what := e.field + "=" + text(e.value)
			if tries[what]++; chosen(e, tries[what]) {
				edits[example] = append(edits[example], e)
			}
		}
	}
	t.Run("examples", func(t *testing.T) {
		for _, example := range examples(t) {
			t.Run(example, func(t *testing.T) {
				t.Parallel()
				base := modelOf(t, example)
				for _, e := range edits[example] {
					end, err := tried(t, base, e)
					counts.add(end)
					if os.Getenv("TELL") != "" {
						t.Logf("%s: %v: %v", end, e, err)
					}
					if end != broken {
						continue
					}
					pattern := excepted(e, err)
					if pattern == "" {
						t.Errorf("%v: the plan accepts it, and the run fails: %v", e, err)
						continue
					}
					counts.Lock()
					delete(unused, pattern)
					counts.Unlock()
				}
			})
		}
	})
	t.Logf("%6d edits derived, of which %d are different", derived, len(tries))
	t.Logf("%6d tried", counts.ends[refused]+counts.ends[warned]+counts.ends[created]+counts.ends[broken])
	for _, end := range []string{refused, warned, created, broken} {
		t.Logf("%6d %s", counts.ends[end], end)
	}
	require.NotZero(t, counts.ends[refused])
	if enginetest.Sweeping() && !t.Failed() {
		require.Empty(t, unused, "exceptions that nothing needs")
	}
}

// exceptions are patterns of edits whose runs may fail after a plan, with the reason.
func exceptions() map[string]string {
	const (
		hooks       = "somebody has to complete a lifecycle hook, and a plan does not know who"
		joins       = "the manifest says how machines find the cluster, and where that leads is not known"
		names       = "somebody has to make the name of the API server in DNS"
		network     = "warned of: a pod network may come from elsewhere, and a public address of the machines be among those that are permitted"
		images      = "which releases EKS has of a type of AMI is not listed by any API; the simulated one has fewer types"
		credentials = "warned of: an image may bring the credentials with which its machines join"
		many        = "etcd with a hundred members"
		roles       = "a role that exists is not one that EKS may use"
	)
	return map[string]string{
		`.*lifecycleHooks.*gave up.*`: hooks,
		`.*joinConfiguration\.(discovery|caCertPath).*(gave up|bootstrap data).*`:            joins,
		`.*[cC]ontrolPlaneEndpoint.*(gave up|connection refused|no such host).*`:             names,
		`.*(publicCIDRs|vpcCni\.disable|bootstrapSelfManagedAddons|spec\.addons).*gave up.*`: network,
		`.*ami(Version|Type) = .*(not supported|not available|Requested).*`:                  images,
		`.*AWSMachinePool .*iamInstanceProfile = null.*gave up.*`:                            credentials,
		`.*KubeadmControlPlane spec\.replicas.*`:                                             many,
		`.*serviceAccountRoleARN.*`:                                                          roles,
	}
}

// excepted returns the pattern of the exceptions that an edit and its error match; "" for none.
func excepted(e edit, err error) string {
	for pattern := range exceptions() {
		if regexp.MustCompile("(?s)^(" + pattern + ")$").MatchString(fmt.Sprintf("%v: %v", e, err)) {
			return pattern
		}
	}
	return ""
}

// tried plans the cluster of an edit in an account with what the example needs. What the plan
// accepts is created.
func tried(t *testing.T, base *manifest.Cluster, e edit) (end string, err error) {
	t.Helper()
	m, err := load(t, e.example, e.objects)
	if err != nil {
		requireOnce(t, e, err)
		return refused, err
	}
	synctest.Test(t, func(t *testing.T) {
		a := account(base)
		if m.Region() != base.Region {
			a = awssim.New(awssim.Options{Region: m.Region()})
		}
		var warnings []string
		warn := func(text string) { warnings = append(warnings, text) }
		for _, w := range m.Warnings {
			if !slices.ContainsFunc(base.Warnings, func(b manifest.Problem) bool { return b.What == w.What }) {
				warn(w.What)
			}
		}
		if _, err = open(m, a, warn).Plan(t.Context()); err != nil {
			end = refused
			return
		}
		if _, err = open(m, a, nil).Apply(t.Context(), cluster.Options{}); err != nil {
			end, err = broken, fmt.Errorf("%w (warnings: %q)", err, warnings)
			return
		}
		if end = created; len(warnings) > 0 {
			end = warned
		}
	})
	return end, err
}

// requireOnce requires that an error says each thing once.
func requireOnce(t *testing.T, e edit, err error) {
	t.Helper()
	seen := map[string]bool{}
	for line := range strings.SplitSeq(err.Error(), "\n") {
		if seen[line] {
			t.Errorf("%v: the same line twice: %s", e, line)
		}
		seen[line] = true
	}
}

// editsOf derives the edits of an example: all of them, or a sample.
func editsOf(t *testing.T, example string) (edits []edit) {
	t.Helper()
	objects := objectsOf(t, example)
	only := os.Getenv("PROOF_FIELD")
	for i, original := range objects {
		kind, _ := original["kind"].(string)
		api, _ := original["apiVersion"].(string)
		s := schemaOf(t, kind, api[strings.Index(api, "/")+1:])
		if s == nil {
			continue
		}
		for _, f := range fieldsOf(s, func() any { return objects[i] }, func(v any) { objects[i], _ = v.(map[string]any) }) {
			name := kind + " " + f.path
			if only != "" && !regexp.MustCompile(only).MatchString(name) {
				continue
			}
			for _, w := range f.wrongValues() {
				f.set(w.value)
				e := edit{example, name, w.class, w.value, slices.Clone(objects)}
				objects[i] = original
				edits = append(edits, e)
			}
		}
	}
	return edits
}

// chosen reports whether an edit is tried. A sweep tries each value of each field in one example, and
// some of them in the others; "make test" tries a sample. Each run has the same.
func chosen(e edit, times int) bool {
	h := fnv.New32a()
	_, _ = h.Write([]byte(e.String())) // it never fails
	switch {
	case os.Getenv("PROOF_FIELD") != "":
		return true
	case !enginetest.Sweeping():
		return h.Sum32()%sampleOf == 0
	}
	return times == 1 || h.Sum32()%sampleOfOthers == 0
}
