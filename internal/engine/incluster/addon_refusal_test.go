package incluster_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/internal/enginetest"
	samples "github.com/clusterawsadm/clusterawsadm/internal/enginetest/objects"
	"github.com/clusterawsadm/clusterawsadm/internal/kubesim"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// refusedObject is a change of an object that the API server refuses, and what a plan says of it.
type refusedObject struct{ have, after, want string }

// Changes of existing objects: a plan refuses them with what to do, before the first write.
func refusedChanges() map[string]refusedObject {
	deployment := "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a, namespace: default}\nspec: {selector: {matchLabels: {app: APP}}, " +
		"template: {metadata: {labels: {app: APP}}, spec: {containers: [{name: c, image: i}]}}}\n"
	class := "apiVersion: storage.k8s.io/v1\nkind: StorageClass\nmetadata: {name: fast}\nprovisioner: ebs.csi.aws.com\nparameters: {type: TYPE}\n"
	secret := "apiVersion: v1\nkind: Secret\nmetadata: {name: a, namespace: default}\nimmutable: true\nstringData: {a: DATA}\n"
	set := "apiVersion: apps/v1\nkind: StatefulSet\nmetadata: {name: a, namespace: default}\nspec: {serviceName: NAME, selector: {matchLabels: {app: a}}, " +
		"template: {metadata: {labels: {app: a}}, spec: {containers: [{name: c, image: i}]}}}\n"
	return map[string]refusedObject{
		"selector": {
			strings.ReplaceAll(deployment, "APP", "a"), strings.ReplaceAll(deployment, "APP", "b"),
			`Deployment default/a: spec.selector: Invalid value: {"matchLabels":{"app":"b"}}: field is immutable; ` +
				"the API server does not permit this change of an existing object: set the old value back, or delete the object " +
				"(kubectl delete deployment a -n default) and run again, which creates it again; its pods stop meanwhile",
		},
		"StorageClass": {
			strings.ReplaceAll(class, "TYPE", "gp3"), strings.ReplaceAll(class, "TYPE", "gp2"),
			"StorageClass fast: parameters: Forbidden: updates to parameters are forbidden; " +
				"the API server does not permit this change of an existing object: set the old value back, or delete the object " +
				"(kubectl delete storageclass fast) and run again, which creates it again; volumes that exist stay as they are",
		},
		"Secret": {
			strings.ReplaceAll(secret, "DATA", "hunter2"), strings.ReplaceAll(secret, "DATA", "hunter3"),
			"Secret default/a: the API server says 422 Invalid: data; the API server does not permit this change",
		},
		"StatefulSet": {
			strings.ReplaceAll(set, "NAME", "a"), strings.ReplaceAll(set, "NAME", "b"),
			"which creates it again; its pods stop meanwhile, except with --cascade=orphan; its claims and their data stay",
		},
		"claim": {
			"apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: a, namespace: default}\n" +
				"spec: {storageClassName: a, accessModes: [ReadWriteOnce], resources: {requests: {storage: 10Gi}}}\n",
			"apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: a, namespace: default}\n" +
				"spec: {storageClassName: a, accessModes: [ReadWriteOnce], resources: {requests: {storage: 5Gi}}}\n",
			"the deletion of a claim deletes its volume with all data, unless the reclaim policy of the volume is Retain",
		},
	}
}

// judged returns the error of a plan, and its warnings.
func judged(t *testing.T, m *manifest.Cluster, a *awssim.AWS) (p plan.Plan, warnings []string, err error) {
	t.Helper()
	c := enginetest.Waiting(m, a.Process(), plan.NodesJoined)
	c.Target.Warn = func(text string) { warnings = append(warnings, text) }
	p, err = c.Plan(t.Context())
	return p, warnings, err
}

// A change that the API server refuses because a field is immutable is a problem of the plan, at the position of the object. A run writes
// nothing.
func TestImmutableFields(t *testing.T) {
	saved := bare(t, withAddon(t, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n"))
	for name, tt := range refusedChanges() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			before, after := withAddon(t, tt.have), withAddon(t, tt.after+"---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: new}\n")
			synctest.Test(t, func(t *testing.T) {
				a := restored(t, before, saved)
				installed(t, before, a)
				p, warnings, err := judged(t, after, a)
				var refused *plan.RefusedError
				require.ErrorAs(t, err, &refused)
				require.Len(t, refused.Reasons, 1)
				var at *plan.ResourceError
				require.ErrorAs(t, refused.Reasons[0], &at)
				assert.Equal(t, plan.ID("resource-set/mine.yaml"), at.Resource)
				assert.Equal(t, "dir/mine.yaml:1", at.Origin)
				require.ErrorContains(t, at.Err, tt.want)
				assert.NotContains(t, err.Error(), "hunter")
				assert.Empty(t, warnings)
				assert.NotEmpty(t, p.Steps)
				now := unwatched(a)
				_, err = enginetest.Waiting(after, a.Process(), plan.NodesJoined).Apply(t.Context(), cluster.Options{})
				require.ErrorAs(t, err, &refused)
				assert.Equal(t, now, unwatched(a))
			})
		})
	}
}

// All changes that the API server refuses are problems of one plan; those that it accepts are not.
func TestEveryImmutableField(t *testing.T) {
	updates, err := samples.Updates()
	require.NoError(t, err)
	var before, after strings.Builder
	var refused, accepted []string
	for _, u := range updates {
		before.WriteString("---\n" + yamlOf(t, u.Have))
		after.WriteString("---\n" + yamlOf(t, u.After))
		title := u.Have["kind"].(string) + " "
		if namespace, _ := under(u.Have, "metadata")["namespace"].(string); namespace != "" {
			title += namespace + "/"
		}
		title += under(u.Have, "metadata")["name"].(string)
		if len(u.Refused) > 0 {
			refused = append(refused, title)
		} else {
			accepted = append(accepted, title)
		}
	}
	first, second := withAddon(t, before.String()), withAddon(t, after.String())
	saved := bare(t, first)
	synctest.Test(t, func(t *testing.T) {
		a := restored(t, first, saved)
		installed(t, first, a)
		time.Sleep(time.Minute) // until definitions are established
		_, _, err := judged(t, second, a)
		var all *plan.RefusedError
		require.ErrorAs(t, err, &all)
		assert.Len(t, all.Reasons, len(refused))
		for _, title := range refused {
			assert.Contains(t, err.Error(), ": "+title+": ")
		}
		for _, title := range accepted {
			assert.NotContains(t, err.Error(), ": "+title+": ")
		}
		for _, reason := range all.Reasons {
			assert.ErrorContains(t, reason, "the API server does not permit this change of an existing object")
		}
	})
}

// unwatched returns all objects except pods, which become ready by themselves.
func unwatched(a *awssim.AWS) []string {
	return slices.DeleteFunc(objects(a), func(o string) bool { return strings.Contains(o, "/pods/") })
}

// installed applies a manifest without a wait for its pods.
func installed(t *testing.T, m *manifest.Cluster, a *awssim.AWS) {
	t.Helper()
	_, err := enginetest.Waiting(m, a.Process(), plan.NodesJoined).Apply(t.Context(), cluster.Options{Observe: enginetest.Tell(t)})
	require.NoError(t, err)
}

// definition is a definition of the kind Widget, whose objects have one of these sizes.
func definition(sizes ...any) kubesim.Object {
	size := kubesim.Object{"type": "string", "enum": sizes}
	schema := kubesim.Object{"type": "object", "properties": kubesim.Object{
		"spec": kubesim.Object{"type": "object", "properties": kubesim.Object{"size": size}},
	}}
	return kubesim.Object{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": kubesim.Object{"name": "widgets.example.org"},
		"spec": kubesim.Object{
			"group": "example.org", "scope": "Cluster", "names": kubesim.Object{"kind": "Widget", "plural": "widgets", "singular": "widget", "listKind": "WidgetList"},
			"versions": []any{kubesim.Object{"name": "v1", "served": true, "storage": true, "schema": kubesim.Object{"openAPIV3Schema": schema}}},
		},
	}
}

// yamlOf returns an object as YAML, of which JSON is a part.
func yamlOf(t *testing.T, o kubesim.Object) string {
	t.Helper()
	raw, err := json.Marshal(o)
	require.NoError(t, err)
	return string(raw) + "\n"
}

const (
	widgetYAML    = "apiVersion: example.org/v1\nkind: Widget\nmetadata: {name: a}\nspec: {size: large}\n"
	configMapYAML = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: default}\ndata: {a: b}\n"
	addressYAML   = "apiVersion: v1\nkind: Service\nmetadata: {name: a, namespace: default}\nspec: {clusterIP: 10.96.0.77, ports: [{port: 80}]}\n"
)

// A plan asks the API server about objects that are missing, too: what it refuses for certain is a problem, other refusals are warnings at
// most, and what depends on the run itself is neither.
func TestMissingObjectsAreAsked(t *testing.T) {
	other := kubesim.Object{
		"apiVersion": "v1", "kind": "Service", "metadata": kubesim.Object{"name": "other", "namespace": "default"},
		"spec": kubesim.Object{"clusterIP": "10.96.0.77", "ports": []any{kubesim.Object{"port": 80.0}}},
	}
	hook := kubesim.Object{
		"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration", "metadata": kubesim.Object{"name": "other"},
		"webhooks": []any{kubesim.Object{
			"name": "a.example.org", "sideEffects": "Some", "failurePolicy": "Ignore", "clientConfig": kubesim.Object{"url": "https://a"},
			"rules": []any{kubesim.Object{"apiGroups": []any{""}, "resources": []any{"configmaps"}}},
		}},
	}
	saved := bare(t, withAddon(t, configMapYAML))
	for name, tt := range map[string]struct {
		yaml          string
		before        func(c *kubesim.Cluster)
		refuses, warn string
	}{
		"accepted": {yaml: configMapYAML},
		"definition of somebody else": {
			yaml: widgetYAML, before: func(c *kubesim.Cluster) { c.Put(time.Now(), definition("small")) },
			refuses: `dir/mine.yaml:1): Widget a: spec.size: Unsupported value: large; mend it`,
		},
		"definition that the run changes": {
			yaml: yamlOf(t, definition("small", "large")) + "---\n" + widgetYAML, before: func(c *kubesim.Cluster) { c.Put(time.Now(), definition("small")) },
		},
		"no definition": {yaml: yamlOf(t, definition("large")) + "---\n" + widgetYAML},
		"namespace of the run": {
			yaml: "apiVersion: v1\nkind: Namespace\nmetadata: {name: mine}\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: mine}\n",
		},
		"address in use": {
			yaml: addressYAML, before: func(c *kubesim.Cluster) { c.Put(time.Now(), other) },
			warn: "dir/mine.yaml:1: it is not known whether the API server accepts this: Service default/a: ",
		},
		"denied": {
			yaml: configMapYAML, before: func(c *kubesim.Cluster) { c.Denied = []string{"configmaps"} },
			warn: "dir/mine.yaml:1: it is not known whether the API server accepts this: ConfigMap default/a: ",
		},
		"webhook with side effects": {
			yaml: configMapYAML, before: func(c *kubesim.Cluster) { c.Put(time.Now(), hook) },
			warn: `ConfigMap default/a: admission webhook "a.example.org" does not support dry run`,
		},
		"pod whose service account is missing": {
			yaml: "apiVersion: v1\nkind: Pod\nmetadata: {name: a, namespace: default}\nspec: {serviceAccountName: a, containers: [{name: c, image: i}]}\n" +
				"---\napiVersion: v1\nkind: ServiceAccount\nmetadata: {name: a, namespace: default}\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := withAddon(t, tt.yaml)
			synctest.Test(t, func(t *testing.T) {
				a := restored(t, m, saved)
				if tt.before != nil {
					enginetest.Inside(a, tt.before)
				}
				time.Sleep(time.Minute)
				_, warnings, err := judged(t, m, a)
				if tt.refuses != "" {
					require.ErrorAs(t, err, new(*plan.RefusedError))
					require.ErrorContains(t, err, tt.refuses)
					return
				}
				require.NoError(t, err)
				if tt.warn != "" {
					assert.Contains(t, strings.Join(warnings, "\n"), tt.warn)
					return
				}
				assert.Empty(t, warnings)
				installed(t, m, a)
				p, _, err := judged(t, m, a)
				require.NoError(t, err)
				assert.Zero(t, p.CountKind("resource-set", plan.Create)+p.CountKind("resource-set", plan.Update))
			})
		})
	}
}

// An object that does not fit the schema of its kind is refused with 500, and not accepted later: the run ends at once.
func TestUnfitObject(t *testing.T) {
	m := withAddon(t, "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a, namespace: default}\nspec: {selector: {matchLabels: {app: a}}, "+
		"template: {metadata: {labels: {app: a}}, spec: {schedulingGates: [{name: a.b/c}], containers: [{name: c, image: i}]}}}\n")
	for _, set := range m.ResourceSets { // the rules of manifests know this one
		for _, d := range set.Documents {
			if spec, gated := d.Object["spec"].(map[string]any); gated && strings.HasPrefix(d.Title(), "Deployment default/") {
				pod := under(spec, "template", "spec")
				pod["schedulingGates"] = append(pod["schedulingGates"].([]any), map[string]any{"name": "a.b/c"})
			}
		}
	}
	synctest.Test(t, func(t *testing.T) {
		a := enginetest.Account(m, enginetest.Lag)
		began := time.Now()
		_, err := enginetest.Waiting(m, a.Process(), plan.NodesReady).Apply(t.Context(), cluster.Options{})
		require.ErrorContains(t, err, "failed to create typed patch object")
		require.ErrorContains(t, err, "duplicate entries for key")
		require.ErrorContains(t, err, "; mend it")
		assert.Less(t, time.Since(began), 10*time.Minute)
		_, _, err = judged(t, m, a)
		require.ErrorAs(t, err, new(*plan.RefusedError))
	})
}

// A namespace that somebody is deleting is created again when it is gone, with its objects.
func TestNamespaceThatIsDeleted(t *testing.T) {
	m := withAddon(t, "apiVersion: v1\nkind: Namespace\nmetadata: {name: mine}\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: mine}\n")
	saved := bare(t, m)
	synctest.Test(t, func(t *testing.T) {
		a := restored(t, m, saved)
		enginetest.Inside(a, func(c *kubesim.Cluster) {
			c.Put(time.Now(), kubesim.Object{
				"apiVersion": "v1", "kind": "Namespace", "status": kubesim.Object{"phase": "Terminating"},
				"metadata": kubesim.Object{"name": "mine", "deletionTimestamp": time.Now().UTC().Format(time.RFC3339)},
			})
		})
		installed(t, m, a)
		time.Sleep(time.Minute)
		enginetest.Inside(a, func(c *kubesim.Cluster) { assert.NotNil(t, c.Get("/api/v1/namespaces/mine/configmaps/a")) })
	})
}
