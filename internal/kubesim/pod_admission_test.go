package kubesim

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"
)

// A kubelet does not start pods whose images have no name, and pods with parameters of the kernel that it does not permit.
func TestPodsThatNoKubeletStarts(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	c := New("v1.34.2", now)
	c.Join(now, Machine{Name: "node", Sysctls: []string{"net.core.*", "kernel/msgmax"}})
	sysctl := func(name string) string { return "a, securityContext: {sysctls: [{name: " + name + ", value: '1'}]}" }
	for spec, want := range map[string]string{
		"nginx": "", "nginx:1.27": "", "localhost:5000/A:b": "InvalidImageName", "registry.k8s.io/pause:3.10": "", "Nginx": "InvalidImageName",
		"nginx:": "InvalidImageName", "https://a/b": "InvalidImageName", "a@sha256:12": "InvalidImageName", "Host/a": "",
		"a@sha256:" + strings.Repeat("0", 64): "", "'a b'": "InvalidImageName",
		sysctl("net.core.somaxconn"): "", sysctl("kernel.msgmax"): "", sysctl("net.ipv4.tcp_syncookies"): "",
		sysctl("net/ipv4/ip_forward"): "SysctlForbidden", sysctl("kernel.msgmnb"): "SysctlForbidden",
	} {
		image, rest, _ := strings.Cut(spec, ", ")
		pod := read(t, "{spec: {containers: [{name: a, image: "+image+"}], "+rest+"}}")
		if why := c.notStarted(pod); want == "" {
			assert.Empty(t, why, spec)
		} else {
			assert.Contains(t, why, want, spec)
		}
	}
	spaces := read(
		t,
		`{apiVersion: apps/v1, kind: Deployment, metadata: {name: a, namespace: default}, spec: {template: {spec: {containers: [{name: a, image: " a"}]}}}}`,
	)
	assert.Contains(t, c.refusedPods(spaces), "must not have leading or trailing whitespace")
}

// The API server refuses pods whose service account, priority or runtime does not exist, and those that their namespace does not permit.
func TestPodAdmission(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	c := New("v1.34.2", now)
	for _, text := range []string{
		`{apiVersion: v1, kind: ServiceAccount, metadata: {name: web, namespace: default}}`,
		`{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: high}, value: 1000}`,
		`{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: usual}, value: 5, globalDefault: true, preemptionPolicy: Never}`,
		`{apiVersion: node.k8s.io/v1, kind: RuntimeClass, metadata: {name: sandbox}, handler: runsc, overhead: {podFixed: {cpu: 100m}}, ` +
			`scheduling: {nodeSelector: {sandbox: "yes"}}}`,
		`{apiVersion: v1, kind: Namespace, metadata: {name: strict, labels: {pod-security.kubernetes.io/enforce: restricted}}}`,
		`{apiVersion: v1, kind: Namespace, metadata: {name: old, labels: {pod-security.kubernetes.io/enforce: restricted, ` +
			`pod-security.kubernetes.io/enforce-version: v1.0}}}`,
	} {
		c.Put(now, read(t, text))
	}
	const safe = "containers: [{name: a, image: a, securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}}], securityContext: {runAsNonRoot: true"
	for _, tt := range []struct{ namespace, spec, want string }{
		{"default", "", ""},
		{"default", "serviceAccountName: web", ""},
		{"default", "serviceAccount: wbe", `error looking up service account default/wbe: serviceaccount "wbe" not found`},
		{"kube-system", "serviceAccountName: web", "error looking up service account kube-system/web"},
		{"default", "priorityClassName: high, priority: 1000", ""},
		{"default", "priorityClassName: system-node-critical", ""},
		{"default", "priorityClassName: low", "no PriorityClass with name low was found"},
		{"default", "priorityClassName: high, priority: 7", "the integer value of priority (7) must not be provided in pod spec"},
		{"default", "priority: 7", "computed 5"},
		{"default", "preemptionPolicy: PreemptLowerPriority", "the string value of PreemptionPolicy (PreemptLowerPriority) must not be provided"},
		{"default", "runtimeClassName: sandbox, overhead: {cpu: 100m}", ""},
		{"default", "runtimeClassName: kata", `pod rejected: RuntimeClass "kata" not found`},
		{"default", "overhead: {cpu: 100m}", "pod rejected: Pod Overhead set without"},
		{"default", "runtimeClassName: sandbox, overhead: {cpu: 200m}", "doesn't match"},
		{"default", "runtimeClassName: sandbox, nodeSelector: {sandbox: 'no'}", "conflict: runtimeClass.scheduling.nodeSelector[sandbox] = yes"},
		{"strict", "", `violates PodSecurity "restricted:v1.34": allowPrivilegeEscalation != false`},
		{"strict", safe + ", seccompProfile: {type: RuntimeDefault}}", ""},
		{"strict", safe + "}", "seccompProfile"},
		{"old", safe + "}", ""},
	} {
		pod := read(t, fmt.Sprintf("{apiVersion: v1, kind: Pod, metadata: {name: a, namespace: %s}, spec: {containers: [{name: a, image: a}]}}", tt.namespace))
		given := read(t, "{"+tt.spec+"}")
		for k, v := range given {
			pod["spec"].(Object)[k] = v
		}
		r, _ := c.resourceOf("v1", "Pod")
		code, answer := c.apply(now, place{resource: r, namespace: tt.namespace, name: "a"}, patch{manager: "test", dry: true}, pod)
		if tt.want == "" {
			assert.Less(t, code, http.StatusBadRequest, "%s: %v", tt.spec, answer)
			continue
		}
		assert.Equal(t, http.StatusForbidden, code, tt.spec)
		assert.Contains(t, fmt.Sprint(answer), tt.want, tt.spec)

		deployment := read(t, `{apiVersion: apps/v1, kind: Deployment, metadata: {name: a}}`)
		deployment["metadata"].(Object)["namespace"], deployment["spec"] = tt.namespace, Object{
			"template": Object{"spec": pod["spec"]},
		}
		c.Put(now, deployment)
		c.settleWorkloads(now)
		assert.Contains(t, fmt.Sprint(deployment["status"]), tt.want, tt.spec)
		assert.Contains(t, fmt.Sprint(deployment["status"]), "ReplicaFailure", tt.spec)
	}
	r, _ := c.resourceOf("scheduling.k8s.io/v1", "PriorityClass")
	second := read(t, `{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: other}, value: 1, globalDefault: true}`)
	code, answer := c.apply(now, place{resource: r, name: "other"}, patch{manager: "test", dry: true}, second)
	assert.Equal(t, http.StatusForbidden, code)
	assert.Contains(t, fmt.Sprint(answer), "PriorityClass usual is already marked as default")
}

func read(t *testing.T, text string) Object {
	t.Helper()
	o := Object{}
	require.NoError(t, yaml.Unmarshal([]byte(text), &o))
	return o
}

// Pods do not start without what they mount and read.
func TestMounts(t *testing.T) {
	for spec, want := range map[string]string{
		"volumes: [{configMap: {name: a}}]":                        "",
		"volumes: [{configMap: {name: b}}]":                        `configmaps "b" not found`,
		"volumes: [{configMap: {name: b, optional: true}}]":        "",
		"volumes: [{configMap: {name: a, items: [{key: d}]}}]":     "references non-existent key d",
		"volumes: [{projected: {sources: [{secret: {name: c}}]}}]": `secrets "c" not found`,
		"volumes: [{persistentVolumeClaim: {claimName: c}}]":       `persistentvolumeclaims "c" not found`,
		"containers: [{env: [{name: A, valueFrom: {configMapKeyRef: {name: a, key: b}}}], envFrom: [{configMapRef: {name: a}}]}]":  "",
		"initContainers: [{env: [{name: A, valueFrom: {configMapKeyRef: {name: a, key: c}}}]}], containers: [{name: a, image: a}]": "references non-existent key c",
		"containers: [{envFrom: [{secretRef: {name: a}}]}]":                                                                        `secrets "a" not found`,
	} {
		c := New("v1.34.2", time.Time{})
		c.Put(time.Time{}, read(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: default}, data: {b: c}}"))
		found := c.withoutFiles("default", Object{"spec": read(t, "{"+spec+"}")})
		assert.Equal(t, want == "", found == "", spec)
		assert.Contains(t, found, want, spec)
	}
}

// Pods that cannot run on one Node with each other need a Node each.
func TestPodsThatAreAlone(t *testing.T) {
	const anti = ", affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: {a: %s}}}]}}"
	for spec, ready := range map[string]float64{
		"containers: [{name: a}]":                                             3,
		"containers: [{name: a}]" + fmt.Sprintf(anti, "b"):                    1,
		"containers: [{name: a}]" + fmt.Sprintf(anti, "c"):                    3,
		"containers: [{name: a, ports: [{containerPort: 80, hostPort: 80}]}]": 1,
		"containers: [{name: a, ports: [{containerPort: 80}]}]":               3,
		"hostNetwork: true, containers: [{ports: [{containerPort: 80}]}]":     1,
	} {
		c := New("v1.34.2", time.Time{})
		c.Put(time.Time{}, read(t, "{apiVersion: v1, kind: Node, metadata: {name: a}, status: {conditions: [{type: Ready, status: 'True'}]}}"))
		o := read(
			t,
			"{apiVersion: apps/v1, kind: Deployment, metadata: {name: a, namespace: default}, spec: {replicas: 3, template: {metadata: {labels: {a: b}}, spec: {"+spec+"}}}}",
		)
		c.Put(time.Time{}, o)
		c.settleWorkloads(time.Time{})
		assert.InDelta(t, ready, value(o, "status", "readyReplicas"), 0, spec)
	}
}
