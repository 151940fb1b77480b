package apiserver_test

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	schemas "k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest/crd"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest/rules/apiserver"
	"github.com/clusterawsadm/clusterawsadm/internal/enginetest/objects"
)

func decoded(t *testing.T, text string) map[string]any {
	t.Helper()
	var o map[string]any
	require.NoError(t, yaml.Unmarshal([]byte(text), &o))
	return o
}

// For each object that the API server refuses, the first reason names the same field as the API server does.
func TestRefusals(t *testing.T) {
	server := apiserver.Server{Minor: 34, Gates: true, Services: []netip.Prefix{netip.MustParsePrefix("10.96.0.0/12")}, NodePort: [2]int32{30000, 32767}}
	for _, o := range objects.Accepted() {
		assert.Empty(t, server.Refusals(decoded(t, o.Text)), o.Text)
		_, bad := server.Unserved(decoded(t, o.Text))
		assert.False(t, bad, o.Text)
	}
	for _, o := range objects.Refused() {
		found := server.Refusals(decoded(t, o.Text))
		if assert.NotEmpty(t, found, o.Text) {
			assert.Equal(t, o.Field, found[0].Field, o.Text)
			assert.NotEmpty(t, found[0].Fix, o.Text)
		}
		assert.LessOrEqual(t, len(found), 2, "%s: %v", o.Text, found)
	}
}

// An object whose kind the manifest defines follows the schema of the definition.
func TestRefusalsOfDefinedKinds(t *testing.T) {
	schema, err := crd.Parse([]byte(`{"type": "object", "properties": {"spec": {"type": "object", "required": ["size"], "properties": {
		"size": {"type": "integer", "maximum": 5}, "members": {"type": "array", "items": {"type": "string"}}},
		"x-kubernetes-validations": [{"rule": "self.size > 1", "message": "too small"}]}}}`))
	require.NoError(t, err)
	server := apiserver.Server{Schemas: map[schemas.GroupVersionKind]*crd.Schema{{Group: "example.com", Version: "v1", Kind: "Team"}: schema}}
	for spec, want := range map[string]string{
		"{size: 2, members: [ada]}": "",
		"{size: 2, members: ada}":   "spec.members: must be of type array — change it",
		"{size: 2, member: [ada]}":  `spec.member: the kind has no such field — did you mean "members"?`,
		"{members: [ada]}":          "spec.size: a value is required — change it",
		"{size: 9}":                 "spec.size: should be less than or equal to 5 — change it",
		"{size: 1}":                 "spec: too small — change it",
	} {
		found := server.Refusals(decoded(t, "apiVersion: example.com/v1\nkind: Team\nmetadata: {name: a}\nspec: "+spec))
		got := ""
		if len(found) > 0 {
			got = found[0].Field + ": " + found[0].What + " — " + found[0].Fix
		}
		assert.Equal(t, want, got, spec)
	}
	assert.Empty(t, server.Refusals(decoded(t, "apiVersion: example.com/v2\nkind: Team\nspec: {a: 1}")))
}

// Some refusals depend on the version of the API server, on its addresses of Services and on its node ports.
func TestRefusalsOfServers(t *testing.T) {
	service := "apiVersion: v1\nkind: Service\nmetadata: {name: a}\nspec: "
	for text, want := range map[string]string{
		service + "{clusterIP: 10.200.0.5, ports: [{port: 80}]}":                                                     "spec.clusterIP: 10.200.0.5 is not an address of Services, 10.96.0.0/12 — change it, or remove it",
		service + "{type: NodePort, ports: [{port: 80, nodePort: 80}]}":                                              "spec.ports[0].nodePort: 80 is not in the range of node ports, 30000-32767 — change it, or remove it",
		service + "{type: LoadBalancer, externalTrafficPolicy: Local, healthCheckNodePort: 80, ports: [{port: 80}]}": "spec.healthCheckNodePort: 80 is not in the range of node ports, 30000-32767 — change it, or remove it",
		"apiVersion: networking.k8s.io/v1\nkind: ServiceCIDR":                                                        "apiVersion: the kind ServiceCIDR of networking.k8s.io/v1 is there since Kubernetes 1.33, and the cluster has 1.32 — remove it, or use Kubernetes 1.33",
		"apiVersion: v1\nkind: Deployment":                                                                           "kind: there is no kind Deployment in v1 — write apiVersion: apps/v1",
		"apiVersion: apps/v1\nkind: Deploymnet":                                                                      `kind: there is no kind Deploymnet in apps/v1 — did you mean "Deployment"?`,
		"apiVersion: v1\nkind: CustomResourceDefinition":                                                             "kind: there is no kind CustomResourceDefinition in v1 — write apiVersion: apiextensions.k8s.io/v1",
		"apiVersion: apps/v1\nkind: Deployment\nspec: {replica: 2}":                                                  `spec.replica: the kind has no such field — did you mean "replicas"?`,
		"apiVersion: apps/v1\nkind: Deployment\nspec: {replicas: '2'}":                                               "spec.replicas: is a text, not a whole number — write the number without quotes",
		"apiVersion: v1\nkind: Pod\nspec: {hostNetwork: 'true'}":                                                     "spec.hostNetwork: is a text, not true or false — write it without quotes",
		"apiVersion: v1\nkind: Pod\nspec: {containers: {name: a}}":                                                   "spec.containers: is a mapping, not a list — write a list",
		"apiVersion: v1\nkind: Pod\nspec: {nodeSelector: {gpu: true}}":                                               "spec.nodeSelector.gpu: is true or false, not a text — put the value in quotes",
		"apiVersion: resource.k8s.io/v1\nkind: DeviceClass":                                                          "apiVersion: the kind DeviceClass of resource.k8s.io/v1 is there since Kubernetes 1.34, and the cluster has 1.32 — remove it, or use Kubernetes 1.34",
		"apiVersion: resource.k8s.io/v1beta1\nkind: DeviceClass":                                                     "apiVersion: resource.k8s.io/v1beta1 is off by default — use another version, or set runtime-config of the API server",
		"apiVersion: flowcontrol.apiserver.k8s.io/v1beta3\nkind: FlowSchema":                                         "",
		"apiVersion: apiregistration.k8s.io/v1\nkind: APIService\nmetadata: {name: v1.a.b}\nspec: {group: a.b, version: v1, groupPriorityMinimum: 1, versionPriority: 1}": "",
		"apiVersion: apps/v1\nkind: ControllerRevision\nrevision: 1\ndata: {}":                                                                                            "",
	} {
		o, found := decoded(t, text), ""
		server := apiserver.Server{Minor: 32, Services: []netip.Prefix{netip.MustParsePrefix("10.96.0.0/12")}, NodePort: [2]int32{30000, 32767}, Defaults: true}
		r, bad := server.Unserved(o)
		if all := server.Refusals(o); !bad && len(all) > 0 {
			r, bad = all[0], true
		}
		if bad {
			found = strings.Join([]string{r.Field, r.What}, ": ") + " — " + r.Fix
		}
		assert.Equal(t, want, found, text)
	}
}

// The API server refuses objects that are too large.
func TestRefusalsOfSizes(t *testing.T) {
	const mebibyte = 1 << 20
	fill := func(n int) string { return strings.Repeat("a", n) }
	for _, c := range []struct {
		object map[string]any
		field  string
	}{
		{map[string]any{"kind": "ConfigMap", "data": map[string]any{"a": fill(mebibyte)}}, ""},
		{map[string]any{"kind": "ConfigMap", "data": map[string]any{"a": fill(mebibyte), "b": "c"}}, "data"},
		{map[string]any{"kind": "Secret", "stringData": map[string]any{"a": fill(mebibyte + 1)}}, "data"},
		{map[string]any{"kind": "ConfigMap", "metadata": map[string]any{"annotations": map[string]any{"a": fill(mebibyte / 4)}}}, "metadata.annotations"},
	} {
		c.object["apiVersion"] = "v1"
		found := apiserver.Server{}.Refusals(c.object)
		if c.field == "" {
			assert.Empty(t, found)
		} else if assert.Len(t, found, 1) {
			assert.Equal(t, c.field, found[0].Field)
		}
	}
}
