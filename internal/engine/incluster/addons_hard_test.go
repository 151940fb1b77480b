package incluster_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest/loader"
	"github.com/clusterawsadm/clusterawsadm/internal/enginetest"
	"github.com/clusterawsadm/clusterawsadm/internal/kubesim"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
	"github.com/clusterawsadm/clusterawsadm/pkg/input"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// The manifest of an operator in a common order: the object first, then the parts of its
// webhook, and the namespace of all last.
const operatorYAML = `
apiVersion: v1
kind: List
items:
- apiVersion: example.org/v1
  kind: Widget
  metadata: {name: one, namespace: widgets}
  spec: {size: 3}
- apiVersion: admissionregistration.k8s.io/v1
  kind: ValidatingWebhookConfiguration
  metadata: {name: widgets}
  webhooks:
  - name: widgets.example.org
    clientConfig: {service: {name: widgets, namespace: widgets, path: /}}
    rules: [{apiGroups: [example.org], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [widgets]}]
    sideEffects: None
    admissionReviewVersions: [v1]
- apiVersion: v1
  kind: Service
  metadata: {name: widgets, namespace: widgets}
  spec: {ports: [{port: 443}], selector: {app: widgets}}
- apiVersion: apps/v1
  kind: Deployment
  metadata: {name: widgets, namespace: widgets}
  spec:
    selector: {matchLabels: {app: widgets}}
    template:
      metadata: {labels: {app: widgets}}
      spec: {containers: [{name: widgets, image: "example.org/widgets:1", ports: [{containerPort: 443}]}]}
- apiVersion: apiextensions.k8s.io/v1
  kind: CustomResourceDefinition
  metadata: {name: widgets.example.org}
  spec:
    group: example.org
    scope: Namespaced
    names: {kind: Widget, plural: widgets, singular: widget, listKind: WidgetList}
    versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]
---
apiVersion: v1
kind: Namespace
metadata: {name: widgets}
`

// The webhook responds only after a Node is ready, which requires the pod network of
// another set. The same holds for a second run.
func TestAddonsWebhook(t *testing.T) {
	m := withAddon(t, operatorYAML)
	saved := bare(t, m)
	synctest.Test(t, func(t *testing.T) {
		a := restored(t, m, saved)
		ctx, cancel := context.WithTimeout(t.Context(), 15*time.Second)
		defer cancel()
		_, err := enginetest.Waiting(m, a.Process(), plan.NodesReady).Apply(ctx, cluster.Options{Observe: enginetest.Tell(t)})
		require.Error(t, err)
		enginetest.Inside(a, func(c *kubesim.Cluster) {
			assert.Nil(t, c.Get("/apis/example.org/v1/namespaces/widgets/widgets/one"))
			assert.NotNil(t, c.Get("/apis/apps/v1/namespaces/widgets/deployments/widgets"))
		})
		began := time.Now()
		brought(t, m, a)
		assert.Less(t, time.Since(began), time.Minute)
		assert.Empty(t, stepsOf(t, m, a))
		enginetest.Inside(a, func(c *kubesim.Cluster) {
			require.NotNil(t, c.Get("/apis/example.org/v1/namespaces/widgets/widgets/one"))
			c.Running = time.Now() // the webhook is not available
		})
		steps := stepsOf(t, m, a)
		require.Len(t, steps, 1)
		assert.Equal(t, "Widget widgets/one", steps[0].Diff[0].Field)
		assert.Equal(t, "not known yet", steps[0].Diff[0].Have)
		brought(t, m, a)
	})
}

// An object that the API server rejects is reported with its position, without a wait, after
// the other objects are applied.
func TestAddonsWrong(t *testing.T) {
	for name, tt := range map[string]struct {
		yaml, want string
	}{
		"unknown kind": {
			"apiVersion: example.net/v1\nkind: Gadget\nmetadata: {name: a}\n",
			"Gadget a (dir/mine.yaml:1): the API server does not serve the kind Gadget of example.net/v1; bring its CustomResourceDefinition too",
		},
		"no namespace": {
			"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: nowhere}\n",
			`ConfigMap nowhere/a (dir/mine.yaml:1): namespaces "nowhere" not found; bring its Namespace too`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			m := withAddon(t, tt.yaml+"---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: b}\n")
			saved := bare(t, m)
			synctest.Test(t, func(t *testing.T) {
				a := restored(t, m, saved)
				began := time.Now()
				_, err := enginetest.Waiting(m, a.Process(), plan.NodesReady).Apply(t.Context(), cluster.Options{Observe: enginetest.Tell(t)})
				require.ErrorContains(t, err, tt.want)
				require.ErrorContains(t, err, "resource-set/mine.yaml (dir/mine.yaml): ")
				assert.Less(t, time.Since(began), time.Minute)
				assert.NotErrorAs(t, err, new(*plan.RefusedError))
				enginetest.Inside(a, func(c *kubesim.Cluster) {
					assert.NotNil(t, c.Get("/api/v1/namespaces/default/configmaps/b"))
				})
			})
		})
	}
}

// An object whose kind nobody has defined yet keeps no other resource from its changes, in this run or in a later one.
func TestAddonOfUndefinedKind(t *testing.T) {
	m := withAddon(t, "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: a}\n")
	synctest.Test(t, func(t *testing.T) {
		a := enginetest.Account(m, enginetest.Lag)
		for workers := range int32(2) {
			m.Deployments[0].Object.Spec.Replicas = new(workers + 1)
			_, err := enginetest.Waiting(m, a.Process(), plan.NodesReady).Apply(t.Context(), cluster.Options{Observe: enginetest.Tell(t)})
			require.ErrorContains(t, err, "bring its CustomResourceDefinition too")
			assert.NotErrorAs(t, err, new(*plan.RefusedError))
			steps := stepsOf(t, m, a)
			require.Len(t, steps, 1)
			assert.Equal(t, plan.ID("resource-set/mine.yaml"), steps[0].Resource)
		}
	})
}

// Objects in the cluster are deleted with it: a deletion does not call the API server for
// them.
func TestAddonsDelete(t *testing.T) {
	m := enginetest.LoadQuick(t, addonsExample)
	saved := bare(t, m)
	synctest.Test(t, func(t *testing.T) {
		a := restored(t, m, saved)
		brought(t, m, a)
		before := len(a.Calls())
		c := enginetest.Waiting(m, a.Process(), plan.NodesReady)
		p, err := c.PlanDelete(t.Context(), cluster.Options{})
		require.NoError(t, err)
		for _, s := range p.Steps {
			assert.False(t, strings.HasPrefix(string(s.Resource), "resource-set/"))
		}
		_, err = c.Delete(t.Context(), cluster.Options{Observe: enginetest.Tell(t)})
		require.NoError(t, err)
		for _, call := range a.Calls()[before:] {
			assert.NotEqual(t, "Kubernetes", call.Service, call.Operation)
		}
		assert.Empty(t, a.Inventory())
	})
}

// A pod network that the API server rejects is reported immediately: the run does not
// wait for Nodes that cannot become ready.
func TestNetworkRefused(t *testing.T) {
	raw, err := enginetest.Read("quickstart.yaml")
	require.NoError(t, err)
	network := `
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: network, namespace: nowhere}
spec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: a, image: a}]}}}
`
	m, err := loader.Load([]input.Source{{Name: "cluster.yaml", Data: raw}}, input.LoadOptions{CNI: []input.Source{{Name: "cni.yaml", Data: []byte(network)}}})
	require.NoError(t, err)
	m = enginetest.Quick(m)
	saved := bare(t, m)
	synctest.Test(t, func(t *testing.T) {
		a := restored(t, m, saved)
		began := time.Now()
		_, err := enginetest.Waiting(m, a.Process(), plan.NodesReady).Apply(t.Context(), cluster.Options{Observe: enginetest.Tell(t)})
		require.ErrorContains(t, err, `namespaces "nowhere" not found`)
		assert.NotContains(t, err.Error(), "node/")
		assert.Less(t, time.Since(began), time.Minute)
	})
}
