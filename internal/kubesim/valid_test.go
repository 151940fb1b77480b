package kubesim

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/clusterawsadm/clusterawsadm/internal/enginetest/objects"
)

// The API server decodes and accepts what it would in a real cluster.
func TestValid(t *testing.T) {
	for object, want := range map[string]int{
		`{apiVersion: v1, kind: ConfigMap, metadata: {name: a.b-1}, data: {a: "1"}}`:                                                                                                                     0,
		`{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: "system:a"}}`:                                                                                                    0,
		`{apiVersion: v1, kind: ConfigMap, metadata: {name: My_Map}}`:                                                                                                                                    http.StatusUnprocessableEntity,
		`{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {a: 1}}`:                                                                                                                           http.StatusBadRequest,
		`{apiVersion: v1, kind: Secret, metadata: {name: a}, data: {a: "!"}}`:                                                                                                                            http.StatusBadRequest,
		`{apiVersion: v1, kind: Pod, metadata: {name: a, annotations: {a: true}}}`:                                                                                                                       http.StatusBadRequest,
		`{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {containers: [{name: a, env: [{name: A, value: 1}]}]}}`:                                                                                  http.StatusBadRequest,
		`{apiVersion: v1, kind: ConfigMap, metadata: {name: a, labels: {"app.kubernetes.io/name": a}, annotations: {"A.b/c_d": "x y"}}}`:                                                                 0,
		`{apiVersion: v1, kind: ConfigMap, metadata: {name: a, labels: {"a b": c}}}`:                                                                                                                     http.StatusUnprocessableEntity,
		`{apiVersion: v1, kind: ConfigMap, metadata: {name: a, labels: {a: "b c"}}}`:                                                                                                                     http.StatusUnprocessableEntity,
		`{apiVersion: v1, kind: ConfigMap, metadata: {name: a, annotations: {"a/b/c": d}}}`:                                                                                                              http.StatusUnprocessableEntity,
		`{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {containers: [{name: A_b}]}}`:                                                                                                            http.StatusUnprocessableEntity,
		`{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {containers: [{name: a}, {name: a}]}}`:                                                                                                   http.StatusUnprocessableEntity,
		`{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {containers: [{name: a, resources: {limits: {memory: 1GB}}}]}}`:                                                                          http.StatusUnprocessableEntity,
		`{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {containers: [{name: a, image: b, resources: {limits: {memory: 1Gi, cpu: 1}}}]}}`:                                                        0,
		`{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {ports: [{port: 70000}]}}`:                                                                                                           http.StatusUnprocessableEntity,
		`{apiVersion: apps/v1, kind: Deployment, metadata: {name: a}, spec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: c}}}}}`:                                                  http.StatusUnprocessableEntity,
		`{apiVersion: apps/v1, kind: Deployment, metadata: {name: a}, spec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b, c: d}}, spec: {containers: [{name: a, image: b}]}}}}`: 0,
	} {
		o := Object{}
		require.NoError(t, yaml.Unmarshal([]byte(object), &o))
		code, _ := valid(o)
		assert.Equal(t, want, code, object)
	}
}

// The simulated API server accepts and refuses the same objects as the real one.
func TestAppliedObjects(t *testing.T) {
	c := New("v1.34.2", time.Time{})
	judge := func(o objects.Object) string {
		object := Object{}
		require.NoError(t, yaml.Unmarshal([]byte(o.Text), &object))
		r, ok := c.resourceOf(text(object, "apiVersion"), text(object, "kind"))
		require.True(t, ok, o.Text)
		at := place{resource: r, namespace: text(object, "metadata", "namespace"), name: text(object, "metadata", "name")}
		code, answer := c.apply(time.Time{}, at, patch{manager: "test", dry: true}, object)
		if code < http.StatusBadRequest {
			return ""
		}
		return fmt.Sprint(answer)
	}
	for _, o := range objects.Accepted() {
		assert.Empty(t, judge(o), o.Text)
	}
	for _, o := range objects.Refused() {
		assert.NotEmpty(t, judge(o), o.Text)
	}
}

// An API server serves the kinds of its version.
func TestKindsOfVersions(t *testing.T) {
	for version, want := range map[string]bool{"v1.32.9": false, "v1.33.0": true, "v1.34.2": true} {
		c := New(version, time.Time{})
		_, is := c.resourceOf("networking.k8s.io/v1", "ServiceCIDR")
		assert.Equal(t, want, is, version)
		_, is = c.resourceOf("apps/v1", "Deployment")
		assert.True(t, is)
	}
	for _, g := range New("v1.33.0", time.Time{}).groups().Groups {
		assert.NotEqual(t, "resource.k8s.io", g.Name)
	}
}
