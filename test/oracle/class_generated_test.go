package oracle

import (
	"fmt"
	"strings"

	"pgregory.net/rapid"
)

// generated is a manifest with a class, its templates and a Cluster.
func generated(r *rapid.T) string {
	old := rapid.Bool().Draw(r, "old control plane")
	planeVersion := "v1beta2"
	if old {
		planeVersion = "v1beta1"
	}
	machine := rapid.IntRange(0, 4).Draw(r, "machine infrastructure") > 0
	var b strings.Builder
	fmt.Fprintf(&b, "apiVersion: cluster.x-k8s.io/v1beta2\nkind: Cluster\nmetadata:\n  name: %s\n%s", rapid.SampledFrom([]string{
		"one", "a-rather-long-name-of-a-cluster-that-makes-others-longer",
	}).Draw(r, "name"), maybe(r, "  labels: {tier: gold}\n  annotations: {a: b}\n"))
	b.WriteString("spec:\n  clusterNetwork:\n    pods: {cidrBlocks: [10.0.0.0/8, 192.168.0.0/16]}\n" + maybe(r, "    serviceDomain: x.local\n"))
	b.WriteString("  topology:\n    classRef: {name: c}\n    version: v1.34.2\n    controlPlane:\n      replicas: 3\n")
	b.WriteString(maybe(r, "      metadata: {labels: {a: plane, b: plane}, annotations: {c: plane}}\n"))
	b.WriteString(maybe(r, "      deletion: {nodeDrainTimeoutSeconds: 90, nodeDeletionTimeoutSeconds: 5}\n"))
	b.WriteString(maybe(r, "      taints: [{key: t, effect: NoSchedule, propagation: Always}]\n"))
	b.WriteString(maybe(r, "      readinessGates: [{conditionType: Own}]\n"))
	b.WriteString(maybe(r, "      variables: {overrides: [{name: size, value: big}]}\n"))
	b.WriteString("    variables:\n    - {name: needed, value: 7}\n")
	b.WriteString(maybe(r, "    - {name: disk, value: {size: 80, zones: [{name: b}]}}\n"))
	b.WriteString(maybe(r, "    - {name: flag, value: true}\n"))
	b.WriteString("    workers:\n      machineDeployments:\n")
	for i := range rapid.IntRange(1, 3).Draw(r, "machine deployments") {
		class := rapid.SampledFrom([]string{"small-worker", "large-worker"}).Draw(r, "class")
		fmt.Fprintf(&b, "      - class: %s\n        name: md-%d\n", class, i)
		for _, line := range []string{
			"replicas: 2", "failureDomain: eu-west-1a", "minReadySeconds: 4", "metadata: {labels: {a: topology}, annotations: {x: one}}",
			"deletion: {order: Newest, nodeDrainTimeoutSeconds: 0}", "rollout: {strategy: {type: OnDelete}}", "taints: []",
			"variables: {overrides: [{name: size, value: huge}, {name: disk, value: {size: 9}}]}",
			"healthCheck: {remediation: {maxInFlight: 2}}",
		} {
			b.WriteString(maybe(r, "        "+line+"\n"))
		}
	}
	b.WriteString(generatedClass(r, planeVersion, machine))
	b.WriteString(generatedTemplates(r, planeVersion))
	return b.String()
}

func maybe(r *rapid.T, text string) string {
	if rapid.Bool().Draw(r, strings.TrimSpace(text)) {
		return text
	}
	return ""
}

func generatedClass(r *rapid.T, planeVersion string, machine bool) string {
	var b strings.Builder
	b.WriteString("---\napiVersion: cluster.x-k8s.io/v1beta2\nkind: ClusterClass\nmetadata: {name: c}\nspec:\n")
	b.WriteString("  infrastructure:\n    templateRef: {apiVersion: infrastructure.cluster.x-k8s.io/v1beta2, kind: AWSClusterTemplate, name: infra}\n")
	b.WriteString(maybe(r, "    naming: {template: '{{ .cluster.name }}-net-{{ .random }}'}\n"))
	fmt.Fprintf(
		&b,
		"  controlPlane:\n    templateRef: {apiVersion: controlplane.cluster.x-k8s.io/%s, kind: KubeadmControlPlaneTemplate, name: plane}\n",
		planeVersion,
	)
	if machine {
		b.WriteString("    machineInfrastructure: {templateRef: {apiVersion: infrastructure.cluster.x-k8s.io/v1beta2, kind: AWSMachineTemplate, name: plane}}\n")
	}
	b.WriteString(maybe(r, "    metadata: {labels: {b: class, c: class}}\n"))
	b.WriteString(maybe(r, "    deletion: {nodeDrainTimeoutSeconds: 30, nodeVolumeDetachTimeoutSeconds: 600}\n"))
	b.WriteString(maybe(r, "    readinessGates: [{conditionType: Theirs}]\n"))
	b.WriteString(maybe(r, "    healthCheck: {checks: {nodeStartupTimeoutSeconds: 600}}\n"))
	b.WriteString("  workers:\n    machineDeployments:\n")
	for _, name := range []string{"small-worker", "large-worker"} {
		fmt.Fprintf(
			&b,
			"    - class: %s\n      bootstrap: {templateRef: {apiVersion: bootstrap.cluster.x-k8s.io/v1beta2, kind: KubeadmConfigTemplate, name: worker}}\n",
			name,
		)
		b.WriteString("      infrastructure: {templateRef: {apiVersion: infrastructure.cluster.x-k8s.io/v1beta2, kind: AWSMachineTemplate, name: worker}}\n")
		for _, line := range []string{
			"metadata: {labels: {a: class, b: class}, annotations: {z: class}}", "failureDomain: eu-west-1b", "minReadySeconds: 9",
			"naming: {template: '{{ .cluster.name }}-x-{{ .machineDeployment.topologyName }}-{{ .random }}'}",
			"deletion: {order: Oldest, nodeDeletionTimeoutSeconds: 11}", "rollout: {strategy: {type: RollingUpdate, rollingUpdate: {maxSurge: 3}}}",
			"taints: [{key: k, effect: NoExecute, propagation: OnInitialization}]", "healthCheck: {remediation: {maxInFlight: 50%}}",
		} {
			b.WriteString(maybe(r, "      "+line+"\n"))
		}
	}
	b.WriteString(`  variables:
  - {name: needed, required: true, schema: {openAPIV3Schema: {type: integer}}}
  - {name: size, schema: {openAPIV3Schema: {type: string, default: small}}}
  - {name: flag, schema: {openAPIV3Schema: {type: boolean}}}
  - name: disk
    schema:
      openAPIV3Schema:
        type: object
        default: {}
        properties:
          size: {type: integer, default: 20}
          type: {type: string, default: gp3}
          zones: {type: array, items: {type: object, properties: {name: {type: string}, weight: {type: integer, default: 1}}}}
`)
	patches := strings.ReplaceAll(generatedPatches(r), "MACHINE", fmt.Sprint(machine))
	b.WriteString(
		strings.ReplaceAll(
			patches,
			"PLANE",
			"{apiVersion: controlplane.cluster.x-k8s.io/"+planeVersion+", kind: KubeadmControlPlaneTemplate, matchResources: {controlPlane: true}}",
		),
	)
	return b.String()
}

// patches for the templates below; a random selection is used.
func generatedPatches(r *rapid.T) string {
	const (
		infra  = "{apiVersion: infrastructure.cluster.x-k8s.io/v1beta2, kind: AWSClusterTemplate, matchResources: {infrastructureCluster: true}}"
		all    = "{apiVersion: infrastructure.cluster.x-k8s.io/v1beta2, kind: AWSMachineTemplate, matchResources: {controlPlane: MACHINE, machineDeploymentClass: {names: ['*-worker']}}}"
		large  = "{apiVersion: infrastructure.cluster.x-k8s.io/v1beta2, kind: AWSMachineTemplate, matchResources: {machineDeploymentClass: {names: [large-worker]}}}"
		join   = "{apiVersion: bootstrap.cluster.x-k8s.io/v1beta2, kind: KubeadmConfigTemplate, matchResources: {machineDeploymentClass: {names: ['*']}}}"
		change = "{op: %s, path: %s, %s}"
	)
	var b strings.Builder
	n := 0
	for _, p := range []struct{ condition, selector, patch string }{
		{"", infra, fmt.Sprintf(change, "add", "/spec/template/spec/region", "value: eu-west-1")},
		{"", infra, fmt.Sprintf(change, "add", "/spec/template/metadata", "value: {labels: {patched: indeed}}")},
		{"", infra, fmt.Sprintf(change, "replace", "/spec/template/spec/network", "valueFrom: {template: '{\"vpc\": {\"cidrBlock\": {{ index .builtin.cluster.network.pods 1 | quote }} } }'}")},
		{"{{ if .flag }}true{{ end }}", infra, `{op: remove, path: /spec/template/spec/sshKeyName}`},
		{"", all, fmt.Sprintf(change, "replace", "/spec/template/spec/instanceType", "valueFrom: {variable: size}")},
		{"", all, fmt.Sprintf(change, "add", "/spec/template/spec/rootVolume", "valueFrom: {variable: disk}")},
		{"{{ gt .disk.size 10.0 }}", all, fmt.Sprintf(change, "add", "/spec/template/spec/rootVolumeSize", "valueFrom: {variable: disk.size}")},
		{"{{ not (empty .disk.zones) }}", all, fmt.Sprintf(change, "add", "/spec/template/spec/zone", "valueFrom: {variable: 'disk.zones[0].name'}")},
		{`{{ semverCompare ">= 1.30" .builtin.machineDeployment.version }}`, large, fmt.Sprintf(change, "add", "/spec/template/spec/additionalTags", `valueFrom: {template: "owner: {{ .builtin.machineDeployment.name }}\nkind: {{ .builtin.machineDeployment.class | upper }}\nmany: '{{ .builtin.machineDeployment.replicas | default 1 }}'\n"}`)},
		{"", large, fmt.Sprintf(change, "add", "/spec/template/spec/groups/0", "value: {id: first}")},
		{"", large, fmt.Sprintf(change, "add", "/spec/template/spec/groups/-", "valueFrom: {variable: needed}")},
		{"", join, fmt.Sprintf(change, "add", "/spec/template/spec/files/-", `valueFrom: {template: "path: /etc/x\ncontent: |\n{{ toJson .builtin.machineDeployment.metadata | nindent 2 }}\n"}`)},
		{"", join, fmt.Sprintf(change, "add", "/spec/template/metadata", "value: {annotations: {patched: bootstrap}}")},
		{"", "PLANE", fmt.Sprintf(change, "add", "/spec/template/spec/replicas", "value: 99")},
		{"", "PLANE", fmt.Sprintf(change, "add", "/spec/template/spec/kubeadmConfigSpec/files", `valueFrom: {template: "{{ range $i, $p := .builtin.cluster.network.pods }}\n- path: /{{ $i }}\n  content: {{ $p }} {{ $.builtin.controlPlane.name }}\n{{ end }}"}`)},
		{"", "PLANE", fmt.Sprintf(change, "add", "/spec/template/spec/machineTemplate", `valueFrom: {variable: builtin.controlPlane}`)},
	} {
		if !rapid.Bool().Draw(r, p.patch) {
			continue
		}
		if n == 0 {
			b.WriteString("  patches:\n")
		}
		fmt.Fprintf(&b, "  - name: p%d\n", n)
		if p.condition != "" {
			fmt.Fprintf(&b, "    enabledIf: %q\n", p.condition)
		}
		fmt.Fprintf(&b, "    definitions:\n    - selector: %s\n      jsonPatches: [%s]\n", p.selector, p.patch)
		n++
	}
	return b.String()
}

func generatedTemplates(r *rapid.T, planeVersion string) string {
	metadata := maybe(r, "    metadata: {labels: {c: template, d: template}, annotations: {e: template}}\n")
	return `---
apiVersion: infrastructure.cluster.x-k8s.io/v1beta2
kind: AWSClusterTemplate
metadata: {name: infra, labels: {own: template}}
spec:
  template:
` + metadata + `    spec: {sshKeyName: k, network: {}}
---
apiVersion: controlplane.cluster.x-k8s.io/` + planeVersion + `
kind: KubeadmControlPlaneTemplate
metadata: {name: plane}
spec:
  template:
` + metadata + `    spec:
      kubeadmConfigSpec: {}
` + maybe(r, "      machineTemplate: {metadata: {labels: {c: machine, f: machine}}}\n") + `---
apiVersion: infrastructure.cluster.x-k8s.io/v1beta2
kind: AWSMachineTemplate
metadata: {name: plane}
spec: {template: {spec: {instanceType: x, groups: []}}}
---
apiVersion: infrastructure.cluster.x-k8s.io/v1beta2
kind: AWSMachineTemplate
metadata: {name: worker, labels: {g: template}, annotations: {h: template}}
spec:
  template:
` + metadata + `    spec: {instanceType: x, groups: [{id: a}]}
---
apiVersion: bootstrap.cluster.x-k8s.io/v1beta2
kind: KubeadmConfigTemplate
metadata: {name: worker}
spec: {template: {spec: {files: []}}}
`
}
