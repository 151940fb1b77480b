package kubesim

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// A Service gets the address and the node ports that it asks for, or is refused.
func TestServiceAddresses(t *testing.T) {
	const ports, dual = "ports: [{port: 80}]", "kind: ClusterConfiguration\nnetworking: {serviceSubnet: '10.96.0.0/12,fd00::/108'}\n"
	for _, tt := range []struct{ config, spec, want string }{
		{"", ports + ", clusterIP: 10.96.0.20", ""},
		{"", ports + ", clusterIP: 10.96.0.50", "provided IP is already allocated"},
		{"", ports + ", clusterIP: 10.96.0.1", "provided IP is already allocated"},
		{"", ports + ", clusterIP: 10.96.0.10", "provided IP is already allocated"},
		{"", ports + ", clusterIP: 10.200.0.1", "not in the valid range"},
		{"", ports + ", clusterIP: 'fd00::5'", "not in the valid range"},
		{"", ports + ", clusterIPs: [10.96.0.20], clusterIP: 10.96.0.21", "first value must match"},
		{"", ports + ", clusterIP: 10.96.0.20, ipFamilies: [IPv6]", "expected an IPv6 value"},
		{"", ports + ", ipFamilies: [IPv6]", "spec.ipFamilies[0]: Invalid value: \"IPv6\": not configured on this cluster"},
		{"", ports + ", ipFamilyPolicy: RequireDualStack", "this cluster is not configured for dual-stack services"},
		{"", ports + ", ipFamilyPolicy: PreferDualStack", ""},
		{dual, ports + ", ipFamilyPolicy: RequireDualStack, ipFamilies: [IPv6, IPv4]", ""},
		{dual, ports + ", ipFamilies: [IPv6, IPv4]", "when multiple IP families are specified"},
		{dual, ports + ", clusterIP: 'fd00::5', ipFamilies: [IPv6]", ""},
		{"", "type: NodePort, ports: [{port: 80, nodePort: 30080}]", "30080: provided port is already allocated"},
		{"", "type: NodePort, ports: [{port: 80, nodePort: 30080, protocol: UDP}]", "30080: provided port is already allocated"},
		{"", "type: NodePort, ports: [{port: 80, nodePort: 30081}, {name: b, port: 80, protocol: UDP, nodePort: 30081}]", ""},
		{"", "type: NodePort, ports: [{port: 80, nodePort: 80}]", "80: provided port is not in the valid range. The range of valid ports is 30000-32767"},
		{"", "type: LoadBalancer, externalTrafficPolicy: Local, healthCheckNodePort: 80, " + ports, "provided port is not in the valid range"},
		{"apiServer: {extraArgs: [{name: service-node-port-range, value: 80-90}]}", "type: NodePort, ports: [{port: 80, nodePort: 80}]", ""},
	} {
		c := New("v1.34.2", time.Time{})
		c.Put(time.Time{}, read(t, "{apiVersion: apps/v1, kind: Deployment, metadata: {name: coredns, namespace: kube-system}}"))
		c.Put(
			time.Time{},
			read(
				t,
				"{apiVersion: v1, kind: Service, metadata: {name: b, namespace: default}, spec: {clusterIP: 10.96.0.50, type: NodePort, ports: [{port: 80, nodePort: 30080}]}}",
			),
		)
		if tt.config != "" {
			c.Put(time.Time{}, Object{
				"apiVersion": "v1",
				"kind":       "ConfigMap",
				"metadata":   Object{"name": "kubeadm-config", "namespace": "kube-system"},
				"data":       Object{"ClusterConfiguration": tt.config},
			})
		}
		o := read(t, "{apiVersion: v1, kind: Service, metadata: {name: a, namespace: default}, spec: {"+tt.spec+"}}")
		if ports, _ := value(o, "spec", "ports").([]any); len(ports) > 1 {
			ports[0].(Object)["name"] = "a"
		}
		r, _ := c.resourceOf("v1", "Service")
		code, answer := c.apply(time.Time{}, place{resource: r, namespace: "default", name: "a"}, patch{manager: "test"}, o)
		if tt.want == "" {
			assert.Less(t, code, http.StatusBadRequest, "%s: %v", tt.spec, answer)
			continue
		}
		assert.Equal(t, http.StatusUnprocessableEntity, code, tt.spec)
		assert.Contains(t, fmt.Sprint(answer), tt.want, tt.spec)
	}
}

// Webhooks and APIs without a Service, its port or its pods do not answer.
func TestCalledServices(t *testing.T) {
	const pods = "{apiVersion: apps/v1, kind: Deployment, metadata: {name: a, namespace: default}, spec: {template: {metadata: {labels: {a: b}}}}}"
	for _, tt := range []struct{ service, want string }{
		{"", `service "a" not found`},
		{"ports: [{port: 8443}]", `no service port 443 found for service "a"`},
		{"ports: [{port: 443}], selector: {a: c}", `no endpoints available for service "a"`},
		{"ports: [{port: 443}], selector: {a: b}", ""},
	} {
		c := New("v1.34.2", time.Time{})
		c.Running = time.Unix(1, 0)
		now := c.Running.Add(time.Hour)
		c.Put(now, read(t, pods))
		if tt.service != "" {
			c.Put(now, read(t, "{apiVersion: v1, kind: Service, metadata: {name: a, namespace: default}, spec: {"+tt.service+"}}"))
		}
		c.Put(now, read(t, "{apiVersion: apiregistration.k8s.io/v1, kind: APIService, metadata: {name: v1.a.b}, spec: {service: {name: a, namespace: default}}}"))
		c.Put(now, read(t, "{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingWebhookConfiguration, metadata: {name: a}, webhooks: "+
			"[{name: a.b.c, rules: [{apiGroups: [''], resources: [configmaps]}], clientConfig: {service: {name: a, namespace: default}}}]}"))
		c.settleAPIServices(now)
		r, _ := c.resourceOf("v1", "ConfigMap")
		_, answer := c.hooked(now, place{resource: r, namespace: "default", name: "a"}, http.MethodPatch, false)
		status := fmt.Sprint(c.Get("/apis/apiregistration.k8s.io/v1/apiservices/v1.a.b")["status"])
		if tt.want == "" {
			assert.Nil(t, answer)
			assert.Contains(t, status, "True")
			continue
		}
		assert.Contains(t, fmt.Sprint(answer), tt.want)
		assert.Contains(t, status, tt.want)
	}
}
