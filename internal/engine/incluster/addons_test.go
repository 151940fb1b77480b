package incluster_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	infrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/api/v1beta2"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/incluster"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest/loader"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/run"
	"github.com/clusterawsadm/clusterawsadm/internal/enginetest"
	"github.com/clusterawsadm/clusterawsadm/internal/kubesim"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
	"github.com/clusterawsadm/clusterawsadm/pkg/input"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

const addonsExample = "resource-sets.yaml"

// Paths of objects of the example.
const (
	flannelPath = "/apis/apps/v1/namespaces/kube-flannel/daemonsets/flannel"
	managerPath = "/apis/apps/v1/namespaces/kube-system/daemonsets/aws-cloud-controller-manager"
	teamPath    = "/apis/example.com/v1/teams/platform"
)

// brought returns the cluster for a new process that waits for its Nodes.
func brought(t *testing.T, m *manifest.Cluster, a *awssim.AWS) {
	t.Helper()
	_, err := enginetest.Waiting(m, a.Process(), plan.NodesReady).Apply(t.Context(), cluster.Options{Observe: enginetest.Tell(t)})
	require.NoError(t, err)
}

// stepsOf returns the steps of a plan.
func stepsOf(t *testing.T, m *manifest.Cluster, a *awssim.AWS) (steps []plan.Step) {
	t.Helper()
	p, err := enginetest.Waiting(m, a.Process(), plan.NodesReady).Plan(t.Context())
	require.NoError(t, err)
	for _, s := range p.Steps {
		if s.Does() {
			steps = append(steps, s)
		}
	}
	return steps
}

// TestAddons creates a cluster whose Nodes become ready with the objects of its
// ClusterResourceSets.
func TestAddons(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := enginetest.Quick(enginetest.Load(t, addonsExample, nil))
		a := enginetest.Account(m, enginetest.Lag)
		brought(t, m, a)
		assert.Empty(t, stepsOf(t, m, a))
		enginetest.Inside(a, func(c *kubesim.Cluster) {
			for _, path := range []string{flannelPath, managerPath, teamPath, "/apis/rbac.authorization.k8s.io/v1/clusterroles/flannel"} {
				assert.NotNil(t, c.Get(path), path)
			}
		})
	})
}

// The cloud controller manager does not start on a control plane with the tags of two clusters: no Node gets ready.
func TestTagsOfTwoClusters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := enginetest.Quick(enginetest.Load(t, addonsExample, nil))
		m.Infra.Spec.AdditionalTags = infrav1.Tags{"kubernetes.io/cluster/other": "owned"}
		a := enginetest.Account(m, enginetest.Lag)
		_, err := enginetest.Waiting(m, a.Process(), plan.NodesReady).Apply(t.Context(), cluster.Options{})
		require.ErrorContains(t, err, "node/")
	})
}

// A plan for a new cluster lists the objects, and sends nothing to an API server.
func TestAddonsBeforeTheCluster(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := enginetest.Load(t, addonsExample, nil)
		a := enginetest.Account(m, enginetest.Lag)
		steps := stepsOf(t, m, a)
		at := slices.IndexFunc(steps, func(s plan.Step) bool { return s.Resource == "resource-set/network" })
		require.GreaterOrEqual(t, at, 0)
		assert.Equal(t, plan.Create, steps[at].Action)
		assert.Equal(t, "resource-sets.yaml:144 ClusterResourceSet/network", steps[at].Origin)
		assert.Equal(t, plan.Change{Field: "ConfigMap kube-flannel/flannel", Want: "as written", Remedy: plan.InPlace}, steps[at].Diff[0])
		assert.Len(t, steps[at].Diff, 6)
		for _, c := range a.Calls() {
			assert.NotEqual(t, "Kubernetes", c.Service)
		}
	})
}

// A run that does not wait for the API server reports what it does not apply.
func TestAddonsPostponed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := enginetest.Load(t, addonsExample, nil)
		a := enginetest.Account(m, enginetest.Lag)
		var warnings []string
		c := run.Open(m, cluster.Target{Config: a.Config(), Owner: "test", Warn: func(text string) { warnings = append(warnings, text) }})
		p, err := c.Plan(t.Context())
		require.NoError(t, err)
		assert.Zero(t, p.CountKind("resource-set", plan.Create))
		assert.Equal(t, []string{"not applied before the API server answers, which this run does not wait for: " +
			"add-ons network, cloud-controller, teams; run again with --wait=joined or --wait=ready"}, warnings)
	})
}

// change edits an object outside of a run.
func change(c *kubesim.Cluster, path string, edit func(o kubesim.Object)) {
	raw, _ := json.Marshal(c.Get(path))
	o := kubesim.Object{}
	_ = json.Unmarshal(raw, &o)
	edit(o)
	c.Put(time.Now(), o)
}

// under returns the object at a path of names and indexes.
func under(o kubesim.Object, path ...any) kubesim.Object {
	var at any = o
	for _, p := range path {
		switch p := p.(type) {
		case string:
			at = at.(kubesim.Object)[p]
		case int:
			at = at.([]any)[p]
		}
	}
	return at.(kubesim.Object)
}

// In a set with Reconcile, changes by others to fields of the set are reverted; in a set
// with ApplyOnce, only missing objects are created.
func TestAddonsTamper(t *testing.T) {
	m := enginetest.LoadQuick(t, addonsExample)
	saved := bare(t, m)
	pod := []any{"spec", "template", "spec"}
	for name, tt := range map[string]struct {
		tamper func(c *kubesim.Cluster)
		want   []string // the differences of the next plan
	}{
		"field": {func(c *kubesim.Cluster) {
			change(c, flannelPath, func(o kubesim.Object) { under(o, append(pod, "containers", 0)...)["image"] = "evil" })
		}, []string{"resource-set/network DaemonSet kube-flannel/flannel: differs in spec.template.spec.containers[0].image → as written"}},
		"atomic list": {func(c *kubesim.Cluster) {
			change(c, flannelPath, func(o kubesim.Object) { under(o, pod...)["tolerations"] = []any{} })
		}, []string{"resource-set/network DaemonSet kube-flannel/flannel: differs in spec.template.spec.tolerations → as written"}},
		"many fields": {func(c *kubesim.Cluster) {
			change(c, "/api/v1/namespaces/kube-flannel/configmaps/flannel", func(o kubesim.Object) { o["data"] = kubesim.Object{} })
			change(c, flannelPath, func(o kubesim.Object) {
				for i := range 2 {
					under(o, append(pod, "initContainers", i)...)["image"] = "evil"
					under(o, append(pod, "initContainers", i)...)["command"] = []any{"sh"}
				}
			})
		}, []string{
			"resource-set/network ConfigMap kube-flannel/flannel: differs in data.cni-conf.json, data.net-conf.json → as written",
			"resource-set/network DaemonSet kube-flannel/flannel: differs in spec.template.spec.initContainers[0].command, " +
				"spec.template.spec.initContainers[0].image, spec.template.spec.initContainers[1].command, 1 more → as written",
		}},
		"additions": {func(c *kubesim.Cluster) { // not in the set: ignored
			change(c, flannelPath, func(o kubesim.Object) {
				spec := under(o, pod...)
				spec["containers"] = append(spec["containers"].([]any), kubesim.Object{"name": "mesh", "image": "mesh:1"})
				under(o, "metadata")["annotations"] = kubesim.Object{"touched.example.com/by": "ada"}
			})
		}, nil},
		"missing": {func(c *kubesim.Cluster) {
			delete(c.Objects, teamPath)
			delete(c.Objects, managerPath)
		}, []string{
			"resource-set/cloud-controller DaemonSet kube-system/aws-cloud-controller-manager:  → there",
			"resource-set/teams Team platform:  → as written",
			"workloads/cloud-controller DaemonSet kube-system/aws-cloud-controller-manager: it does not exist → ready",
		}},
		"left alone": {func(c *kubesim.Cluster) {
			change(c, managerPath, func(o kubesim.Object) { under(o, append(pod, "containers", 0)...)["image"] = "mine" })
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				a := restored(t, m, saved)
				brought(t, m, a)
				before := objects(a)
				enginetest.Inside(a, tt.tamper)
				tampered := objects(a)
				var got []string
				for _, s := range stepsOf(t, m, a) {
					for _, d := range s.Diff {
						got = append(got, fmt.Sprintf("%s %s: %s → %s", s.Resource, d.Field, d.Have, d.Want))
					}
				}
				assert.Equal(t, tt.want, got)
				brought(t, m, a)
				assert.Empty(t, stepsOf(t, m, a))
				if tt.want == nil {
					before = tampered
				}
				generation := regexp.MustCompile(`"(generation|observedGeneration)":\d+`)
				for i, now := range objects(a) {
					assert.Equal(t, generation.ReplaceAllString(before[i], ""), generation.ReplaceAllString(now, ""))
				}
			})
		})
	}
}

// withAddon loads the example with an add-on file.
func withAddon(t *testing.T, yaml string) *manifest.Cluster {
	t.Helper()
	raw, err := enginetest.Read(addonsExample)
	require.NoError(t, err)
	m, err := loader.Load(
		[]input.Source{{Name: "resource-sets.yaml", Data: raw}},
		input.LoadOptions{Addons: []input.Source{{Name: "dir/mine.yaml", Data: []byte(yaml)}}},
	)
	require.NoError(t, err)
	return enginetest.Quick(m)
}

const secretYAML = `
apiVersion: v1
kind: Secret
metadata: {name: token, namespace: kube-system}
stringData: {token: hunter2}
`

// The content of a Secret is not in any output.
func TestAddonsTellNoSecrets(t *testing.T) {
	m := withAddon(t, secretYAML)
	saved := bare(t, m)
	synctest.Test(t, func(t *testing.T) {
		a := restored(t, m, saved)
		brought(t, m, a)
		enginetest.Inside(a, func(c *kubesim.Cluster) {
			change(c, "/api/v1/namespaces/kube-system/secrets/token", func(o kubesim.Object) { under(o, "data")["token"] = "c3dvcmRmaXNo" })
		})
		steps := stepsOf(t, m, a)
		require.Len(t, steps, 1)
		assert.Equal(t, plan.ID("resource-set/mine.yaml"), steps[0].Resource)
		assert.Equal(t, "dir/mine.yaml", steps[0].Origin)
		assert.Equal(t, "differs in data.token", steps[0].Diff[0].Have)
		said := &apierrors.StatusError{ErrStatus: metav1.Status{Message: "hunter2 is no token", Code: 422, Reason: metav1.StatusReasonInvalid}}
		err := &incluster.AddonError{Object: incluster.AddonObject{Title: "Secret a/b", Origin: "mine.yaml:2", Object: map[string]any{"kind": "Secret"}}, Err: said}
		assert.Equal(t, "Secret a/b (mine.yaml:2): the API server says 422 Invalid", err.Error())
	})
}
