package rules_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/internal/enginetest/manifests"
	"github.com/clusterawsadm/clusterawsadm/pkg/input"
)

// Each line of Kubernetes objects beside an example causes one problem, one warning, or neither. The simulated API server refuses the same
// (kubesim.TestPodAdmission).
func TestRefusedPods(t *testing.T) {
	const (
		high    = "{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: high}, value: 1000}\n---\n"
		usual   = "{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: usual}, value: 5, globalDefault: true}\n---\n"
		sandbox = "{apiVersion: node.k8s.io/v1, kind: RuntimeClass, metadata: {name: sandbox}, handler: runsc, overhead: {podFixed: {cpu: 100m}}, scheduling: {nodeSelector: {a: b}}}\n---\n"
		strict  = "{apiVersion: v1, kind: Namespace, metadata: {name: strict, labels: {pod-security.kubernetes.io/enforce: restricted}}}\n---\n"
		old     = "{apiVersion: v1, kind: Namespace, metadata: {name: strict, labels: {pod-security.kubernetes.io/enforce: restricted, pod-security.kubernetes.io/enforce-version: v1.0}}}\n---\n"
		account = "{apiVersion: v1, kind: ServiceAccount, metadata: {name: web}}\n---\n"
		hook    = "{apiVersion: admissionregistration.k8s.io/v1, kind: MutatingWebhookConfiguration, metadata: {name: a}}\n---\n"
		safe    = "securityContext: {runAsNonRoot: true}, containers: [{name: a, image: a, securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}}]"
		some    = "containers: [{name: a, image: a}]"
	)
	pod := func(namespace, spec string) string {
		return "{apiVersion: v1, kind: Pod, metadata: {name: a, namespace: " + namespace + "}, spec: {" + spec + "}}"
	}
	of := func(kind, spec string) string {
		version, more := "apps/v1", "selector: {matchLabels: {a: b}}, "
		switch kind {
		case "Job":
			version, more, spec = "batch/v1", "", "restartPolicy: Never, "+spec
		case "DaemonSet", "StatefulSet", "Deployment", "ReplicaSet":
		}
		return "{apiVersion: " + version + ", kind: " + kind + ", metadata: {name: a, namespace: default}, spec: {" + more + "template: {metadata: {labels: {a: b}}, spec: {" + spec + "}}}}"
	}
	for _, tt := range []struct{ objects, problem, warning string }{
		{pod("default", some), "", ""},
		{account + of("Deployment", some+", serviceAccountName: web"), "", ""},
		{of("Deployment", some+", serviceAccountName: coredns"), "", "the API server refuses the pods of Deployment default/a: spec.template.spec.serviceAccountName: nothing in the manifest makes the ServiceAccount default/coredns — bring the ServiceAccount too"},
		{account + of("Deployment", some+", serviceAccountName: wbe"), "", `did you mean "web"?`},
		{of("DaemonSet", some+", serviceAccount: web"), "", "the ServiceAccount default/web"},
		{of("StatefulSet", some+", serviceAccountName: web"), "", "the ServiceAccount default/web"},
		{of("ReplicaSet", some+", serviceAccountName: web"), "", "the ServiceAccount default/web"},
		{of("Job", some+", serviceAccountName: web"), "", "the ServiceAccount default/web"},
		{pod("kube-system", some+", serviceAccountName: web"), "", "the API server refuses Pod kube-system/a: spec.serviceAccountName: nothing"},
		{"{apiVersion: batch/v1, kind: CronJob, metadata: {name: a}, spec: {schedule: '@daily', jobTemplate: {spec: {template: {spec: {restartPolicy: Never, serviceAccountName: web, " + some + "}}}}}}", "", "spec.jobTemplate.spec.template.spec.serviceAccountName"},
		{strings.Replace(of("Deployment", some+", serviceAccountName: web"), "template:", "replicas: 0, template:", 1), "", ""},

		{of("Deployment", "containers: [{name: a, image: 'localhost:5000/a/b_c:1.0@sha256:0123456789012345678901234567890123456789012345678901234567890123'}]"), "", ""},
		{of("Deployment", "containers: [{name: a, image: ' nginx'}]"), `the API server refuses the pods of Deployment default/a: spec.template.spec.containers[0].image: " nginx" begins or ends with a space — remove it`, ""},
		{of("DaemonSet", "containers: [{name: a, image: Nginx}]"), `spec.template.spec.containers[0].image of DaemonSet default/a: "Nginx" is not the name of an image — write it in lower case`, ""},
		{of("Job", "initContainers: [{name: b, image: 'nginx:'}], "+some), `spec.template.spec.initContainers[0].image of Job default/a: "nginx:" is not the name of an image — write one such as`, ""},
		{pod("default", "containers: [{name: a, image: 'https://example.com/a'}]"), "spec.containers[0].image of Pod default/a", ""},
		{pod("default", "containers: [{name: a, image: 'nginx:1.27@sha256:12'}]"), "spec.containers[0].image of Pod default/a", ""},
		{of("Deployment", some+", securityContext: {sysctls: [{name: net.ipv4.tcp_syncookies, value: '1'}]}"), "", ""},
		{of("Deployment", some+", securityContext: {sysctls: [{name: net.core.somaxconn, value: '1024'}]}"), "", "kubelets refuse the pods of Deployment default/a: spec.template.spec.securityContext.sysctls[0].name: net.core.somaxconn is not one of the parameters that they permit by default — add {name: allowed-unsafe-sysctls, value: net.core.somaxconn}"},

		{of("Deployment", some+", priorityClassName: system-node-critical"), "", ""},
		{of("Deployment", some+", priorityClassName: system-node-critcal"), "", `nothing in the manifest makes the PriorityClass system-node-critcal — did you mean "system-node-critical"?`},
		{high + of("Deployment", some+", priorityClassName: high, priority: 1000"), "", ""},
		{high + of("Deployment", some+", priorityClassName: high, priority: 7"), "spec.template.spec.priority is 7, and that of its PriorityClass is 1000 — remove it", ""},
		{usual + of("Deployment", some+", priority: 5"), "", ""},
		{of("Deployment", some+", priority: 5"), "that of its PriorityClass is 0", ""},
		{of("Deployment", some+", preemptionPolicy: Never"), "spec.template.spec.preemptionPolicy is Never, and that of its PriorityClass is PreemptLowerPriority", ""},
		{usual + strings.Replace(usual, "name: usual", "name: other", 1), "pods that name none have the PriorityClass usual already", ""},

		{sandbox + of("Deployment", some+", runtimeClassName: sandbox, overhead: {cpu: '0.1'}"), "", ""},
		{of("Deployment", some+", runtimeClassName: sandbox"), "", "nothing in the manifest makes the RuntimeClass sandbox"},
		{of("Deployment", some+", overhead: {cpu: '0.1'}"), "overhead is not that of its RuntimeClass", ""},
		{sandbox + of("Deployment", some+", runtimeClassName: sandbox, nodeSelector: {a: c}"), "nodeSelector has a=c, and the RuntimeClass sandbox has a=b", ""},

		{strict + pod("strict", some), "the Namespace strict enforces the Pod Security Standard restricted: allowPrivilegeEscalation != false (container", ""},
		{strict + pod("strict", safe), "seccompProfile (pod or container", ""},
		{old + pod("strict", safe), "", ""},
		{strict + hook + pod("strict", some), "", "the Namespace strict enforces"},
		{strings.ReplaceAll(strict, "restricted", "baseline") + pod("strict", some), "", ""},
		{strings.ReplaceAll(strict, "restricted", "baseline") + pod("strict", some+", hostNetwork: true"), "host namespaces (hostNetwork=true)", ""},
		{strings.ReplaceAll(strict, "enforce", "warn") + pod("strict", some), "", ""},
	} {
		t.Run(tt.objects, func(t *testing.T) { brings(t, tt.objects, tt.problem, tt.warning) })
	}
}

// Arguments of the API server may turn admission plugins off.
func TestPodsWithoutAdmission(t *testing.T) {
	const objects = "{apiVersion: v1, kind: Namespace, metadata: {name: strict, labels: {pod-security.kubernetes.io/enforce: restricted}}}\n---\n" +
		"{apiVersion: v1, kind: Pod, metadata: {name: a, namespace: strict}, spec: {priorityClassName: low, containers: [{name: a, image: a}]}}"
	for arguments, admitted := range map[string]bool{
		"{name: disable-admission-plugins, value: 'PodSecurity,Priority'}": true,
		"{name: admission-control-config-file, value: /etc/kubernetes/admission.yaml}], extraVolumes: [{name: a, hostPath: /etc/kubernetes/admission.yaml, mountPath: /etc/kubernetes/admission.yaml}": true,
		"{name: audit-log-maxage, value: '7'}": false,
	} {
		text := manifests.Edit(
			t, manifests.Read(t, "../../../../configs/quickstart.yaml"),
			"    clusterConfiguration:\n", "    clusterConfiguration:\n      apiServer: {extraArgs: ["+arguments+"]}\n",
		)
		c, err := loadBeside(t, text, objects)
		if !admitted {
			require.ErrorContains(t, err, "low", arguments)
			continue
		}
		require.NoError(t, err, arguments)
		assert.NotContains(t, strings.Join(manifests.Warnings(c), "\n"), "mine.yaml", arguments)
	}
}

// kube-system has pods that no Pod Security Standard permits. A set that is applied once does not change its Namespace.
func TestSystemNamespace(t *testing.T) {
	const set = "---\napiVersion: addons.cluster.x-k8s.io/v1beta2\nkind: ClusterResourceSet\nmetadata: {name: mine}\n" +
		"spec: {strategy: Reconcile, clusterSelector: {matchLabels: {network: flannel}}, resources: [{kind: ConfigMap, name: mine}]}\n" +
		"---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: mine}\ndata:\n" +
		"  a.yaml: '{apiVersion: v1, kind: Namespace, metadata: {name: kube-system, labels: {pod-security.kubernetes.io/enforce: baseline}}}'\n"
	text := manifests.Read(t, "../../../../configs/resource-sets.yaml")
	_, err := manifests.Load(t, text+set, input.LoadOptions{})
	require.ErrorContains(t, err, "the API server refuses the pods of kube-proxy")
	manifests.MustLoad(t, text+strings.Replace(set, "Reconcile", "ApplyOnce", 1), input.LoadOptions{})
}

// loadBeside loads a manifest with objects in a file of their own, mine.yaml; "" for none.
func loadBeside(t *testing.T, text, objects string) (*manifest.Cluster, error) {
	t.Helper()
	o := input.LoadOptions{}
	if objects != "" {
		o.Addons = []input.Source{{Name: "mine.yaml", Data: []byte(objects)}}
	}
	return manifests.Load(t, text, o)
}

// brings expects a problem or a warning of objects beside the quick start, or neither.
func brings(t *testing.T, objects, problem, warning string) {
	t.Helper()
	c, err := loadBeside(t, manifests.Read(t, "../../../../configs/quickstart.yaml"), objects)
	if problem != "" {
		require.ErrorContains(t, err, problem)
		assert.Equal(t, 1, strings.Count(err.Error(), "mine.yaml:"), err.Error())
		return
	}
	require.NoError(t, err)
	var found []string
	for _, line := range manifests.Warnings(c) {
		if strings.HasPrefix(line, "mine.yaml:") {
			found = append(found, line)
		}
	}
	if warning == "" {
		assert.Empty(t, found)
		return
	}
	require.Len(t, found, 1)
	assert.Contains(t, found[0], warning)
}

// Services beside an example. The simulated API server refuses the same (kubesim.TestServiceAddresses).
func TestServices(t *testing.T) {
	service := func(name, spec string) string {
		return "{apiVersion: v1, kind: Service, metadata: {name: " + name + ", namespace: kube-system}, spec: {ports: [{port: 80}], " + spec + "}}\n---\n"
	}
	open := func(name, ports string) string {
		return "{apiVersion: v1, kind: Service, metadata: {name: " + name + ", namespace: kube-system}, spec: {type: NodePort, ports: [" + ports + "]}}\n---\n"
	}
	for _, tt := range []struct{ objects, problem string }{
		{service("a", "clusterIP: 10.96.0.20") + service("b", "clusterIP: 10.96.0.21"), ""},
		{service("a", "clusterIP: 10.96.0.20") + service("b", "clusterIP: 10.96.0.20, clusterIPs: [10.96.0.20]"), "Service kube-system/b: 10.96.0.20 is the address of Service kube-system/a — change it, or remove it"},
		{service("a", "clusterIP: 10.96.0.1"), "10.96.0.1 is the address of Service default/kubernetes"},
		{service("a", "clusterIP: 10.96.0.10"), "10.96.0.10 is the address of Service kube-system/kube-dns"},
		{service("kube-dns", "clusterIP: 10.96.0.10"), ""},
		{service("a", "clusterIP: 172.20.0.10"), "172.20.0.10 is not an address of Services"},
		{service("a", "clusterIP: 172.20.0.10, clusterIPs: [172.20.0.10]"), "spec.clusterIP: 172.20.0.10 is not an address of Services"},
		{service("a", "clusterIP: 10.96.0.20, clusterIPs: [10.96.0.21]"), "10.96.0.21 is not clusterIP"},
		{service("a", "clusterIP: 10.96.0.20, ipFamilies: [IPv6]"), "10.96.0.20 is not an address of IPv6, as ipFamilies[0] says"},
		{service("a", "ipFamilies: [IPv6]"), "spec.ipFamilies[0]: Services of the cluster have no IPv6 — remove it, or add a block"},
		{service("a", "ipFamilyPolicy: RequireDualStack"), "spec.ipFamilyPolicy: Services of the cluster have one family"},
		{service("a", "ipFamilyPolicy: PreferDualStack"), ""},
		{service("a", "ipFamilyPolicy: Dual"), `spec.ipFamilyPolicy: "Dual" is not one of`},
		{service("a", "ipFamilies: [IPv4, IPv6]"), "two families need another one"},
		{service("a", "clusterIP: None, ipFamilyPolicy: RequireDualStack, ipFamilies: [IPv4, IPv6]"), ""},
		{open("a", "{port: 80, nodePort: 30080}") + open("b", "{port: 80, protocol: UDP, nodePort: 30080}"), "spec.ports[0].nodePort: 30080 is a node port of Service kube-system/a — change one of them"},
		{open("a", "{name: a, port: 80, nodePort: 30080}, {name: b, port: 80, protocol: UDP, nodePort: 30080}") + open("b", "{port: 80}") + open("c", "{port: 80}"), ""},
	} {
		t.Run(tt.objects, func(t *testing.T) { brings(t, tt.objects, tt.problem, "") })
	}
}

// Services that the API server calls, beside an example. kubesim.TestCalledServices has the other side.
func TestCalledServices(t *testing.T) {
	const (
		pods = "{apiVersion: apps/v1, kind: Deployment, metadata: {name: a}, spec: {selector: {matchLabels: {a: b}}, " +
			"template: {metadata: {labels: {a: b, c: d}}, spec: {containers: [{name: a, image: a}]}}}}\n---\n"
		service = "{apiVersion: v1, kind: Service, metadata: {name: a, namespace: default}, spec: {ports: [{port: 443}], selector: {a: b}}}\n---\n"
		api     = "{apiVersion: apiregistration.k8s.io/v1, kind: APIService, metadata: {name: v1.a.b}, spec: {group: a.b, version: v1, groupPriorityMinimum: 1, versionPriority: 1, service: {name: a, namespace: default}}}"
		local   = "{apiVersion: apiregistration.k8s.io/v1, kind: APIService, metadata: {name: v1.a.b}, spec: {group: a.b, version: v1, groupPriorityMinimum: 1, versionPriority: 1}}"
		kinds   = "{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: foos.example.com}, spec: {group: example.com, scope: Namespaced, names: {plural: foos, singular: foo, kind: Foo}, " +
			"conversion: {strategy: Webhook, webhook: {conversionReviewVersions: [v1], clientConfig: {service: {name: a, namespace: default}}}}, versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}, {name: v2, served: true, storage: false, schema: {openAPIV3Schema: {type: object}}}]}}"
	)
	hook := func(kind, more string) string {
		return "{apiVersion: admissionregistration.k8s.io/v1, kind: " + kind + "WebhookConfiguration, metadata: {name: a}, webhooks: [{name: a.b.c, sideEffects: None, admissionReviewVersions: [v1], " +
			"rules: [{apiGroups: [''], apiVersions: [v1], operations: [CREATE], resources: [pods, services]}], clientConfig: {service: {name: a, namespace: default}}" + more + "}]}"
	}
	for _, tt := range []struct{ objects, problem, warning string }{
		{pods + service + hook("Validating", ""), "", ""},
		{hook("Validating", ""), "", "ValidatingWebhookConfiguration a: webhooks[0].clientConfig.service: nothing in the manifest makes the Service default/a: the API server refuses pods, services — bring the Service and its pods too"},
		{hook("Mutating", ", failurePolicy: Fail"), "", "nothing in the manifest makes the Service default/a"},
		{hook("Mutating", ", failurePolicy: Ignore"), "", ""},
		{service + hook("Validating", ""), "", "no pods of the manifest have the labels that the Service default/a selects"},
		{pods + strings.Replace(service, "443", "8443", 1) + hook("Validating", ""), "webhooks[0].clientConfig.service: the Service default/a has no port 443", ""},
		{pods + service + api, "", ""},
		{api, "", "spec.service: nothing in the manifest makes the Service default/a: the API does not become available"},
		{local, "", ""},
		{pods + service + kinds, "", ""},
		{kinds, "", "the API server does not convert its objects"},
	} {
		t.Run(tt.objects, func(t *testing.T) { brings(t, tt.objects, tt.problem, tt.warning) })
	}
}

// Pods that mount or read an object or a key that does not exist. In the simulated cluster they do not start (kubesim.TestMounts).
func TestMountedFiles(t *testing.T) {
	const (
		files  = "{apiVersion: v1, kind: ConfigMap, metadata: {name: app-files}, data: {a: b}}\n---\n"
		secret = "{apiVersion: v1, kind: Secret, metadata: {name: app-secret}, stringData: {a: b}}\n---\n"
		claim  = "{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: app-data}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}\n---\n"
		job    = "{apiVersion: batch/v1, kind: Job, metadata: {name: c}, spec: {template: {spec: {restartPolicy: Never, containers: [{name: a, image: a, args: [--secret-name=app-secret]}]}}}}\n---\n"
	)
	pod := func(spec, container string) string {
		return "{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {containers: [{name: a, image: a" + container + "}]" + spec + "}}"
	}
	volume := func(v string) string { return pod(", volumes: [{name: v, "+v+"}]", "") }
	twice := strings.Replace(volume("secret: {secretName: app-secret}"), "name: a", "name: b", 1) + "\n---\n" + volume("secret: {secretName: app-secret}")
	for _, tt := range []struct{ objects, problem, warning string }{
		{files + volume("configMap: {name: app-files}"), "", ""},
		{volume("configMap: {name: app-files}"), "", "the pods of Pod a do not start: spec.volumes[0].configMap.name: nothing in the manifest makes the ConfigMap default/app-files — bring it too"},
		{volume("configMap: {name: app-files, optional: true}"), "", ""},
		{volume("configMap: {name: kube-root-ca.crt}"), "", ""},
		{files + volume("configMap: {name: app-files, items: [{key: c, path: c}]}"), "spec.volumes[0].configMap.name: the ConfigMap default/app-files has no key c", ""},
		{volume("secret: {secretName: app-secret}"), "", "nothing in the manifest makes the Secret default/app-secret"},
		{job + volume("secret: {secretName: app-secret}"), "", ""},
		{twice, "", "nothing in the manifest makes the Secret default/app-secret"},
		{volume("projected: {sources: [{configMap: {name: app-files}}, {serviceAccountToken: {path: a}}]}"), "", "spec.volumes[0].projected.sources[0].configMap.name"},
		{claim + volume("persistentVolumeClaim: {claimName: app-data}"), "", ""},
		{volume("persistentVolumeClaim: {claimName: app-data}"), "", "the PersistentVolumeClaim default/app-data"},
		{pod("", ", envFrom: [{configMapRef: {name: app-files}}]"), "", "spec.containers[0].envFrom[0].configMapRef.name"},
		{pod("", ", envFrom: [{secretRef: {name: app-secret, optional: true}}]"), "", ""},
		{secret + pod("", ", env: [{name: A, valueFrom: {secretKeyRef: {name: app-secret, key: a}}}]"), "", ""},
		{secret + pod("", ", env: [{name: A, valueFrom: {secretKeyRef: {name: app-secret, key: b}}}]"), "spec.containers[0].env[0].valueFrom.secretKeyRef: the Secret default/app-secret has no key b", ""},
	} {
		t.Run(tt.objects, func(t *testing.T) { brings(t, tt.objects, tt.problem, tt.warning) })
	}
}
