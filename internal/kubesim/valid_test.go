package kubesim

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"
)

// The API server decodes and accepts what it would in a real cluster.
func TestValid(t *testing.T) {
	for object, want := range map[string]int{
		`{apiVersion: v1, kind: ConfigMap, metadata: {name: a.b-1}, data: {a: "1"}}`:                                                                                    0,
		`{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: "system:a"}}`:                                                                   0,
		`{apiVersion: v1, kind: ConfigMap, metadata: {name: My_Map}}`:                                                                                                   http.StatusUnprocessableEntity,
		`{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {a: 1}}`:                                                                                          http.StatusBadRequest,
		`{apiVersion: v1, kind: Secret, metadata: {name: a}, data: {a: "!"}}`:                                                                                           http.StatusBadRequest,
		`{apiVersion: v1, kind: Pod, metadata: {name: a, annotations: {a: true}}}`:                                                                                      http.StatusBadRequest,
		`{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {containers: [{name: a, env: [{name: A, value: 1}]}]}}`:                                                 http.StatusBadRequest,
		`{apiVersion: v1, kind: ConfigMap, metadata: {name: a, labels: {"app.kubernetes.io/name": a}, annotations: {"A.b/c_d": "x y"}}}`:                                0,
		`{apiVersion: v1, kind: ConfigMap, metadata: {name: a, labels: {"a b": c}}}`:                                                                                    http.StatusUnprocessableEntity,
		`{apiVersion: v1, kind: ConfigMap, metadata: {name: a, labels: {a: "b c"}}}`:                                                                                    http.StatusUnprocessableEntity,
		`{apiVersion: v1, kind: ConfigMap, metadata: {name: a, annotations: {"a/b/c": d}}}`:                                                                             http.StatusUnprocessableEntity,
		`{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {containers: [{name: A_b}]}}`:                                                                           http.StatusUnprocessableEntity,
		`{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {containers: [{name: a}, {name: a}]}}`:                                                                  http.StatusUnprocessableEntity,
		`{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {containers: [{name: a, resources: {limits: {memory: 1GB}}}]}}`:                                         http.StatusUnprocessableEntity,
		`{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {containers: [{name: a, resources: {limits: {memory: 1Gi, cpu: 1}}}]}}`:                                 0,
		`{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {ports: [{port: 70000}]}}`:                                                                          http.StatusUnprocessableEntity,
		`{apiVersion: apps/v1, kind: Deployment, metadata: {name: a}, spec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: c}}}}}`:                 http.StatusUnprocessableEntity,
		`{apiVersion: apps/v1, kind: Deployment, metadata: {name: a}, spec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b, c: d}}, spec: {}}}}`: 0,
	} {
		o := Object{}
		require.NoError(t, yaml.Unmarshal([]byte(object), &o))
		code, _ := valid(o)
		assert.Equal(t, want, code, object)
	}
}
